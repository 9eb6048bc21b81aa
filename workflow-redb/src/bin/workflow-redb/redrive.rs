//! `redrive`: makes a run continue that failed, was cancelled, timed out or stalled.

use std::path::Path;
use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::json;
use workflow_core::store::{EventStore as _, Position};
use workflow_core::{RecordedRun, RunId};
use workflow_redb::RedbStore;

use crate::table::plain;
use crate::{Output, Problem, block_on, open_to_write};

/// How many records are read at once.
const PAGE: usize = 8_192;

#[derive(Debug, Args)]
pub(crate) struct Redrive {
    /// The run's id.
    run: String,
    /// Continue although the run was cleaned up: its log still shows as done the work that this undid. `--clean-up` instead
    /// repeats unfinished clean-up steps.
    #[arg(long)]
    despite_clean_up: bool,
    /// Run only the unfinished clean-up steps of the run again. The outcome of the run stays.
    #[arg(long, conflicts_with_all = ["despite_clean_up", "deadline_in"])]
    clean_up: bool,
    /// Make the executions of this step again that are in doubt: an `at_most_once` step whose attempt may have begun.
    #[arg(long, value_name = "STEP")]
    again: Vec<String>,
    /// Give the run another deadline, this many seconds from now. A run whose deadline has passed needs one.
    #[arg(long, value_name = "SECONDS")]
    deadline_in: Option<u64>,
}

impl Redrive {
    /// Opens the file to write to it, which fails while a process has it open.
    pub(crate) fn run(&self, path: &Path, output: &mut Output<'_>) -> Result<(), Problem> {
        let run = RunId::from(self.run.as_str());
        let store = open_to_write(path)?;
        let mut how = workflow_core::Redrive::new();
        if self.despite_clean_up {
            how = how.despite_clean_up();
        }
        if self.clean_up {
            how = how.clean_up();
        }
        for step in &self.again {
            how = how.again(step);
        }
        if let Some(seconds) = self.deadline_in {
            let deadline = SystemTime::now().checked_add(Duration::from_secs(seconds));
            how = how.deadline(deadline.ok_or(Problem::from("that deadline is beyond the end of time"))?);
        }
        block_on(redrive(&store, &run, &how))?;
        if output.json {
            serde_json::to_writer(&mut *output.to, &json!({ "redriven": run }))?;
            writeln!(output.to)?;
        } else {
            let run = plain(run.as_str());
            writeln!(output.to, "{run} is open again: the next engine that resumes open runs continues it")?;
        }
        Ok(())
    }
}

async fn redrive(store: &RedbStore, run: &RunId, how: &workflow_core::Redrive) -> Result<(), Problem> {
    let (mut records, mut end) = (Vec::new(), Position::default());
    loop {
        let page = store.read(run, end, PAGE).await?;
        if page.is_empty() {
            break;
        }
        end = end.after(page.len());
        records.extend(page);
    }
    let write = RecordedRun::redrive(run, &records, how, SystemTime::now())?;
    store.append(run, end, write).await?;
    Ok(store.sync().await?)
}
