//! What is said of crashes: how many a scenario has survived, and which one it has not.

use std::fmt;

use serde_json::Value;

use super::confirm::Confirms;
use super::store::Crash;

/// The records before a crash that are shown.
const SHOWN: usize = 5;

/// How much is shown of a record.
const WIDTH: usize = 300;

/// The crashes that a scenario has survived. It prints as a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Crashes {
    pub(super) appends: u64,
    pub(super) once: u64,
    pub(super) twice: u64,
}

impl Crashes {
    /// How many writes of the uninterrupted run and its child runs the store has answered, in all the ways of
    /// [confirming](crate::Confirms) together that were tried.
    pub fn appends(&self) -> u64 {
        self.appends
    }

    /// How many runs were gone on with after one crash: after each append that was kept, and before each.
    pub fn once(&self) -> u64 {
        self.once
    }

    /// How many runs were gone on with after two crashes.
    pub fn twice(&self) -> u64 {
        self.twice
    }
}

impl fmt::Display for Crashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { appends, once, twice } = self;
        let (appends, pairs) = (counted(*appends, "append"), counted(*twice, "pair"));
        write!(f, "survived {once} crashes at {appends}, and {pairs} of crashes")
    }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What a scenario has not survived.
#[derive(Debug)]
pub(super) struct NotSurvived<'a> {
    /// What is wrong.
    pub(super) what: &'a str,
    pub(super) crashes: &'a [Crash],
    /// How many appends the uninterrupted run had.
    pub(super) appends: u64,
    /// When the store confirms.
    pub(super) confirms: Confirms,
    /// The records of the run that went down last with the store, as JSON.
    pub(super) records: &'a [Value],
    /// What the uninterrupted run did.
    pub(super) whole: &'a str,
    /// What the last process saw of the run, if it could be seen.
    pub(super) resumed: Option<&'a str>,
}

impl fmt::Display for NotSurvived<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, crashes, appends, confirms, records, whole, resumed } = self;
        writeln!(f, "the run does not survive a crash: resumed,\n{}\n", what.trim_end())?;
        for (place, crash) in crashes.iter().enumerate() {
            match place {
                0 => writeln!(f, "the store went down {crash}, of {appends} in all")?,
                _ => writeln!(f, "and, when it was resumed, {crash}")?,
            }
        }
        if *confirms != Confirms::AtOnce {
            writeln!(f, "where {confirms}")?;
        }
        let left_out = records.len().saturating_sub(SHOWN);
        writeln!(f, "\nthe journal at the crash:")?;
        if left_out > 0 {
            writeln!(f, "  … {left_out} more …")?;
        }
        for record in &records[left_out..] {
            let record = record.to_string();
            let end = record.char_indices().nth(WIDTH).map_or(record.len(), |(end, _)| end);
            writeln!(f, "  {}{}", &record[..end], if end < record.len() { "…" } else { "" })?;
        }
        if records.is_empty() {
            writeln!(f, "  empty")?;
        }
        write!(f, "\nwithout a crash the run did this:\n{whole}")?;
        if let Some(resumed) = resumed {
            write!(f, "\nresumed it did this:\n{resumed}")?;
        }
        Ok(())
    }
}
