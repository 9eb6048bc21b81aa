//! `export`: the records of a run, a line of JSON each.

use clap::Args;
use workflow_core::RunId;
use workflow_core::store::{Position, Record};
use workflow_redb::StoreFile;

use crate::{NoRun, Output, Problem};

/// How many records are read at a time.
const PAGE: usize = 1_024;

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The run's id.
    run: String,
}

impl Export {
    /// The output is JSON with and without the option.
    pub(crate) fn run(&self, file: &StoreFile, output: &mut Output<'_>) -> Result<(), Problem> {
        let run = RunId::from(self.run.as_str());
        if file.run(&run)?.is_none() {
            return Err(NoRun(self.run.clone()).into());
        }
        each_record(file, &run, |_, record| {
            serde_json::to_writer(&mut *output.to, record)?;
            Ok(writeln!(output.to)?)
        })
    }
}

/// Passes every record of a run to `work`, in order.
pub(crate) fn each_record(
    file: &StoreFile,
    run: &RunId,
    mut work: impl FnMut(Position, &Record) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut position = Position(0);
    loop {
        let page = file.read(run, position, PAGE)?;
        if page.is_empty() {
            return Ok(());
        }
        for record in &page {
            work(position, record)?;
            position = position.after(1);
        }
    }
}
