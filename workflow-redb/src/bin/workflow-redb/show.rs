//! `show`: one run, record by record.

use std::time::SystemTime;

use clap::Args;
use serde_json::{Map, Value};
use workflow_core::store::{Position, Record, RunSummary, StoredRun};
use workflow_redb::StoreFile;

use crate::export::each_record;
use crate::table::{Table, plain, short};
use crate::time::utc;
use crate::{NoRun, Output, Problem};

/// How much of a record is shown in a row.
const WIDTH: usize = 160;

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The run's id.
    run: String,
    /// Show records as a whole, however long.
    #[arg(long)]
    full: bool,
}

impl Show {
    pub(crate) fn run(&self, file: &StoreFile, output: &mut Output<'_>) -> Result<(), Problem> {
        let stored = file.run(&self.run.as_str().into())?.ok_or_else(|| NoRun(self.run.clone()))?;
        if output.json { json(file, &stored, output) } else { self.table(file, &stored, output) }
    }

    fn table(&self, file: &StoreFile, stored: &StoredRun, output: &mut Output<'_>) -> Result<(), Problem> {
        let run = &stored.run;
        let (id, workflow) = (plain(stored.id.as_str()), plain(&run.workflow));
        writeln!(output.to, "run       {id}\nworkflow  {workflow}\nstatus    {:?}", run.status)?;
        writeln!(output.to, "started   {}", utc(run.started))?;
        for (name, value) in facts(run) {
            writeln!(output.to, "{name:<9} {}", plain(&value))?;
        }
        writeln!(output.to, "records   {}\n", stored.end)?;
        let mut table = Table::new(["POSITION", "AT (UTC)", "RECORD", "WHAT"]);
        each_record(file, &stored.id, |position, record| {
            table.row(self.row(position, record)?);
            Ok(())
        })?;
        Ok(table.print(output.to, output.colour)?)
    }

    fn row(&self, position: Position, record: &Record) -> Result<[String; 4], Problem> {
        let (kind, mut fields) = parts(serde_json::to_value(record)?);
        // A table is long, and its fingerprint identifies it.
        if let Some(fingerprint) = fields.get("table").and_then(|table| table.get("fingerprint")).cloned()
            && !self.full
        {
            fields.insert("table".to_owned(), fingerprint);
        }
        let at = fields.remove("at").and_then(|at| serde_json::from_value::<SystemTime>(at).ok());
        let what = fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
        let what = if self.full { what } else { short(&what, WIDTH) };
        Ok([position.to_string(), at.map(utc).unwrap_or_default(), kind, what])
    }
}

/// The facts of a summary that not every run has.
fn facts(run: &RunSummary) -> Vec<(&'static str, String)> {
    let labels = run.metadata.iter().map(|(name, value)| ("label", format!("{name}={value}")));
    let facts = [
        run.ended.map(|at| ("ended", utc(at))),
        run.quality.map(|quality| ("quality", format!("{quality:?}"))),
        Some(run.incomplete_clean_up.join(", "))
            .filter(|steps| !steps.is_empty())
            .map(|steps| ("not done", steps)),
        run.stop.map(|stop| ("stop", stop.to_string())),
        run.thread.as_ref().map(|thread| ("thread", thread.to_string())),
        run.parent.as_ref().map(|parent| ("parent", parent.run.to_string())),
        run.owner.as_ref().map(|owner| ("owner", owner.to_string())),
    ];
    facts.into_iter().flatten().chain(labels).collect()
}

/// The kind of a record, and its fields.
fn parts(record: Value) -> (String, Map<String, Value>) {
    let Value::Object(record) = record else { return (record.to_string(), Map::new()) };
    match record.into_iter().next() {
        Some((kind, Value::Object(fields))) => (kind, fields),
        Some((kind, other)) => (kind, Map::from_iter([("value".to_owned(), other)])),
        None => (String::new(), Map::new()),
    }
}

/// The run as it is listed, with its records, written as they are read.
fn json(file: &StoreFile, stored: &StoredRun, output: &mut Output<'_>) -> Result<(), Problem> {
    let (id, run) = (serde_json::to_string(&stored.id)?, serde_json::to_string(&stored.run)?);
    write!(output.to, r#"{{"id":{id},"end":{},"run":{run},"records":["#, stored.end)?;
    each_record(file, &stored.id, |position, record| {
        if position > Position(0) {
            write!(output.to, ",")?;
        }
        Ok(serde_json::to_writer(&mut *output.to, record)?)
    })?;
    Ok(writeln!(output.to, "]}}")?)
}
