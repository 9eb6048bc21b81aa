//! `retain`: removes ended runs that no rule keeps.

use std::path::Path;
use std::time::Duration;

use clap::{ArgGroup, Args};
use serde_json::json;
use workflow_core::Engine;
use workflow_core::store::Retention;
use workflow_redb::StoreFile;

use crate::table::plain;
use crate::time::duration;
use crate::{Output, Problem, block_on, open_to_write};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("rule").required(true).multiple(true).args(["last", "within", "failed"])))]
pub(crate) struct Retain {
    /// Keep so many runs, those that ended last. With 0 and without another rule, every ended run is removed.
    #[arg(long, value_name = "RUNS")]
    last: Option<usize>,
    /// Keep runs that ended within this time, as in 30d, 12h, 90m or 45s.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    within: Option<Duration>,
    /// Keep runs that neither completed nor were cancelled.
    #[arg(long)]
    failed: bool,
    /// Remove runs of this workflow only.
    #[arg(long)]
    workflow: Option<String>,
    /// Print the runs that would be removed, and remove none. A process may have the file open to be read.
    #[arg(long)]
    dry_run: bool,
}

impl Retain {
    /// Opens the file to write to it, which fails while a process has it open.
    pub(crate) fn run(&self, path: &Path, output: &mut Output<'_>) -> Result<(), Problem> {
        let kept = self.rules();
        if self.dry_run {
            let runs = StoreFile::open(path)?.removable(&kept)?;
            if output.json {
                serde_json::to_writer(&mut *output.to, &runs)?;
                return Ok(writeln!(output.to)?);
            }
            for run in &runs {
                writeln!(output.to, "{}", plain(run.id.as_str()))?;
            }
            return Ok(());
        }
        let store = open_to_write(path)?;
        let removed = block_on(async {
            // An engine also clears the contexts of the runs.
            let removed = Engine::builder().store(store.clone()).build()?.retain(&kept).await?;
            store.sync().await?;
            Ok::<_, Problem>(removed)
        })?;
        if output.json {
            serde_json::to_writer(&mut *output.to, &json!({ "removed": removed }))?;
            return Ok(writeln!(output.to)?);
        }
        let runs = if removed == 1 { "run" } else { "runs" };
        Ok(writeln!(output.to, "{removed} {runs} removed; `compact` gives the room back to the disk")?)
    }

    fn rules(&self) -> Retention {
        let kept = Retention::none().last(self.last.unwrap_or_default());
        let kept = kept.within(self.within.unwrap_or_default());
        let kept = if self.failed { kept.failed() } else { kept };
        match &self.workflow {
            Some(workflow) => kept.workflow(workflow.as_str()),
            None => kept,
        }
    }
}
