//! `explain`: why each step of a run ran, and why it did not, by the run's journal alone.

use clap::Args;
use workflow_core::store::Record;
use workflow_core::{RecordedRun, RunId};
use workflow_redb::StoreFile;

use crate::export::each_record;
use crate::table::plain;
use crate::{NoRun, Output, Problem};

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The run's id.
    run: String,
}

impl Explain {
    pub(crate) fn run(&self, file: &StoreFile, output: &mut Output<'_>) -> Result<(), Problem> {
        let explanation = recorded(file, &self.run)?.explain();
        if output.json {
            serde_json::to_writer(&mut *output.to, &explanation)?;
            return Ok(writeln!(output.to)?);
        }
        let (bold, end) = if output.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        // Control characters in errors and names are shown as text, so they cannot affect the terminal.
        for (place, line) in explanation.to_string().lines().enumerate() {
            let (bold, end) = if place == 0 { (bold, end) } else { ("", "") };
            writeln!(output.to, "{bold}{}{end}", plain(line))?;
        }
        Ok(())
    }
}

/// A run, read from its journal.
pub(crate) fn recorded(file: &StoreFile, id: &str) -> Result<RecordedRun, Problem> {
    let run = RunId::from(id);
    if file.run(&run)?.is_none() {
        return Err(NoRun(id.to_owned()).into());
    }
    let mut records: Vec<Record> = Vec::new();
    each_record(file, &run, |_, record| {
        records.push(record.clone());
        Ok(())
    })?;
    Ok(RecordedRun::of(&run, &records)?)
}
