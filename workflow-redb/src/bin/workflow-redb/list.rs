//! `list`: the runs that a file has.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use workflow_core::RunStatus;
use workflow_core::store::{EngineId, RunQuery, RunSummary, StoredRun};
use workflow_redb::StoreFile;

use crate::table::Table;
use crate::time::utc;
use crate::{NoRun, Output, Problem};

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only the run with this id.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Only runs below the one with this id: its children, and theirs.
    #[arg(long, value_name = "RUN")]
    below: Option<String>,
    /// Only runs of this workflow.
    #[arg(long)]
    workflow: Option<String>,
    /// Only runs of this thread.
    #[arg(long)]
    thread: Option<String>,
    /// Only runs that have not ended.
    #[arg(long)]
    open: bool,
    /// Only runs with unfinished clean-up steps.
    #[arg(long)]
    incomplete_clean_up: bool,
    /// Only runs with this status. Repeatable.
    #[arg(long, value_parser = status_parser())]
    status: Vec<RunStatus>,
    /// Only runs whose latest write is not of this engine. Repeatable.
    #[arg(long, value_name = "ENGINE")]
    not_owned_by: Vec<String>,
    /// Begin with the run that started last.
    #[arg(long)]
    newest_first: bool,
    /// At most so many runs.
    #[arg(long, value_name = "RUNS", default_value_t = 1_000)]
    limit: usize,
    /// Only runs with a greater id than this one: the next page.
    #[arg(long, value_name = "RUN", conflicts_with = "newest_first")]
    after: Option<String>,
    /// Only runs that started before this one: the next page, newest first.
    #[arg(long, value_name = "RUN", requires = "newest_first")]
    older_than: Option<String>,
}

/// The statuses by their names.
fn status_parser() -> impl TypedValueParser<Value = RunStatus> {
    let names = [
        "running",
        "waiting",
        "paused",
        "cleaning-up",
        "completed",
        "failed",
        "stalled",
        "cancelled",
        "timed-out",
    ];
    PossibleValuesParser::new(names)
        .try_map(|name| serde_json::from_value::<RunStatus>(name.replace('-', "_").into()))
}

impl List {
    pub(crate) fn run(&self, file: &StoreFile, output: &mut Output<'_>) -> Result<(), Problem> {
        let runs = file.runs(&self.query(file)?)?;
        if output.json {
            serde_json::to_writer(&mut *output.to, &runs)?;
            return Ok(writeln!(output.to)?);
        }
        let mut table = Table::new(["RUN", "WORKFLOW", "STATUS", "RECORDS", "STARTED (UTC)", "WAITS FOR"]);
        for stored in &runs {
            table.row(row(stored));
        }
        table.print(output.to, output.colour)?;
        if runs.len() >= self.limit.max(1) {
            let next = if self.newest_first { "--older-than" } else { "--after" };
            writeln!(output.to, "There may be more: see --limit and {next}.")?;
        }
        Ok(())
    }

    fn query(&self, file: &StoreFile) -> Result<RunQuery, Problem> {
        let mut query = RunQuery::new().at_most(self.limit);
        query = query.not_owned_by(self.not_owned_by.iter().map(|engine| EngineId::new(engine.as_str())));
        query = self.status.iter().fold(query, |query, status| query.status(*status));
        if let Some(run) = &self.run {
            query = query.run(run.as_str());
        }
        if let Some(above) = &self.below {
            query = query.below(above.as_str());
        }
        if let Some(workflow) = &self.workflow {
            query = query.workflow(workflow.as_str());
        }
        if let Some(thread) = &self.thread {
            query = query.thread(thread.as_str());
        }
        if let Some(after) = &self.after {
            query = query.after(after.as_str());
        }
        if let Some(run) = &self.older_than {
            let stored = file.run(&run.as_str().into())?.ok_or_else(|| NoRun(run.clone()))?;
            query = query.older_than(stored.run.started, stored.id);
        }
        query = if self.open { query.open() } else { query };
        query = if self.incomplete_clean_up { query.incomplete_clean_up() } else { query };
        Ok(if self.newest_first { query.newest_first() } else { query })
    }
}

fn row(stored: &StoredRun) -> [String; 6] {
    let run = &stored.run;
    let unfinished = if run.incomplete_clean_up.is_empty() { "" } else { ", clean-up incomplete" };
    let status = format!("{:?}{unfinished}", run.status);
    [
        stored.id.to_string(),
        run.workflow.to_string(),
        status,
        stored.end.to_string(),
        utc(run.started),
        waits_for(run),
    ]
}

/// The events, replies or timers that a waiting run waits for.
fn waits_for(run: &RunSummary) -> String {
    let Some(waits_for) = &run.waits_for else { return String::new() };
    let until = waits_for.until.map(|until| format!(" at {}", utc(until))).unwrap_or_default();
    format!("{waits_for}{until}")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use workflow_core::store::WaitingFor;

    use super::*;

    #[test]
    fn a_waiting_run_is_listed_with_its_reasons_and_date() {
        let run = RunSummary::running("Orders", SystemTime::UNIX_EPOCH);
        assert_eq!(waits_for(&run), "");
        let mut waiting = WaitingFor::default();
        waiting.requests = vec!["Approve".into()];
        waiting.open_requests = 3;
        waiting.until = Some(SystemTime::UNIX_EPOCH + Duration::from_hours(24));
        let run = run.waiting(waiting);
        assert_eq!(waits_for(&run), "a reply to Approve and 2 more, or a timer at 1970-01-02 00:00:00");
    }
}
