//! The reports on crashes: the number survived, and the failing one.

use std::fmt;

use serde_json::Value;

use super::confirm::Confirms;
use super::store::Crash;

/// The number of reported records before a crash.
const SHOWN: usize = 5;

/// The reported length of a record.
const WIDTH: usize = 300;

/// The number of crashes that a scenario has survived. It prints as a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Crashes {
    pub(super) appends: u64,
    pub(super) once: u64,
    pub(super) twice: u64,
}

impl Crashes {
    /// The number of answered writes of the uninterrupted runs, child runs included.
    ///
    /// Summed over all tried ways of [confirming](crate::Confirms).
    pub fn appends(&self) -> u64 {
        self.appends
    }

    /// The number of runs resumed after one crash: after each stored write, and before each.
    pub fn once(&self) -> u64 {
        self.once
    }

    /// The number of runs resumed after two crashes.
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

/// A crash that a scenario has not survived.
#[derive(Debug)]
pub(super) struct NotSurvived<'a> {
    /// The problem.
    pub(super) what: &'a str,
    pub(super) crashes: &'a [Crash],
    /// How many appends the uninterrupted run had.
    pub(super) appends: u64,
    /// When the store confirms.
    pub(super) confirms: Confirms,
    /// The records of the last run whose write the store went down with, as JSON.
    pub(super) records: &'a [Value],
    /// The transcript of the uninterrupted run.
    pub(super) whole: &'a str,
    /// The transcript of the last process, if there is one.
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
