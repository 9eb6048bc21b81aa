//! The end of a driven run, as it is printed: its result, its failure, or how it goes on.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use workflow_core::RunError;
use workflow_graph::{GraphFailure, GraphResult, GraphRun, GraphStatus};

use crate::drive::Driven;
use crate::problem::Problem;
use crate::quote::word;
use crate::reply;
use crate::session::{Done, With};
use crate::standing::Open;
use crate::text::{plain, plain_lines, print_json, short};
use crate::{Exit, Output};

/// The most characters of a question that is listed.
const TEXT: usize = 200;

/// The options with which a later command continues the run.
pub(crate) struct Again<'a> {
    pub(crate) store: Option<&'a Path>,
    /// The document, if the later command has to name it.
    pub(crate) document: Option<&'a Path>,
    pub(crate) with: &'a With,
}

impl Again<'_> {
    /// The command that does something with the run; nothing for a run without a store.
    fn command(&self, run: &GraphRun, action: &str, rest: &[&str]) -> Option<String> {
        let path = |path: &Path| path.display().to_string();
        let mut words = vec!["workflow-graph".to_owned(), action.to_owned(), run.id().to_string()];
        words.extend(rest.iter().map(|&word| word.to_owned()));
        words.extend(["--store".to_owned(), path(self.store?)]);
        if let Some(document) = self.document {
            words.extend(["--document".to_owned(), path(document)]);
        }
        if let Some(script) = &self.with.script {
            words.extend(["--script".to_owned(), path(script)]);
        }
        if self.with.allow_commands {
            words.push("--allow-commands".to_owned());
        }
        Some(plain(&words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" ")))
    }
}

/// Prints the end of a drive.
pub(crate) fn print(done: &Done, again: &Again<'_>, output: &mut Output<'_>) -> Result<Exit, Problem> {
    let run = &done.run;
    match &done.driven {
        Driven::Ended(result) => completed(result, output),
        Driven::Failed(failure) => failed(run, failure, again, output),
        Driven::Waits(gates) => waits(run, gates, again, output),
        Driven::Paused => {
            let command = again.command(run, "resume", &[]);
            if output.json {
                print_json(output.to, &json!({ "status": "paused", "run": run.id(), "resume": command }))?;
            } else {
                note(&format!("run {} is paused", run.id()));
                note(&format!("continue it with: {}", command.unwrap_or_default()));
            }
            Ok(Exit::Waits)
        }
    }
}

fn completed(result: &GraphResult, output: &mut Output<'_>) -> Result<Exit, Problem> {
    let exit = if result.status == GraphStatus::StepLimit { Exit::Failure } else { Exit::Success };
    if output.json {
        print_json(output.to, result)?;
        return Ok(exit);
    }
    result.warnings.iter().for_each(|warning| note(&format!("warning: {warning}")));
    if result.document_changed {
        note("the run began with another version of the document");
    }
    let at = &result.at;
    let visits = result.trace.visits.len();
    match result.status {
        GraphStatus::NoMatch => note(&format!("no route held at `{at}`: the run ended there")),
        GraphStatus::StepLimit => {
            note(&format!(
                "error: the run made as many visits as `limits.steps` allows, the last one at `{at}`"
            ));
        }
        GraphStatus::DryRun => {
            let routes = match &result.candidates[..] {
                [] => "nowhere".to_owned(),
                routes => routes.join(", or "),
            };
            note(&format!("the dry run ended at `{at}`, from which the run could go: {routes}"));
        }
        _ => note(&format!(
            "completed at `{at}` after {visits} visit{}, quality {}",
            if visits == 1 { "" } else { "s" },
            json!(result.quality).as_str().unwrap_or_default()
        )),
    }
    match &result.output {
        Value::Null if result.status != GraphStatus::Completed => {}
        Value::String(text) => writeln!(output.to, "{}", plain_lines(text))?,
        value => print_json(output.to, value)?,
    }
    Ok(exit)
}

fn failed(
    run: &GraphRun,
    failure: &GraphFailure,
    again: &Again<'_>,
    output: &mut Output<'_>,
) -> Result<Exit, Problem> {
    let text = failure.to_string();
    let command = again.command(run, "resume", &[]);
    if output.json {
        let failed = json!({
            "status": status(&failure.error),
            "run": run.id(),
            "error": text,
            "node": failure.node,
            "results": failure.results,
            "trace": failure.trace,
            "warnings": failure.warnings,
            "resume": command,
        });
        print_json(output.to, &failed)?;
    } else {
        failure.warnings.iter().for_each(|warning| note(&format!("warning: {warning}")));
        note(&format!("error: {text}"));
        if let Some(command) = command {
            note(&format!("mend the cause, then continue with: {command}"));
        }
    }
    Ok(Exit::Failure)
}

fn status(error: &RunError) -> &'static str {
    match error {
        RunError::Cancelled { .. } => "cancelled",
        RunError::TimedOut { .. } => "timed_out",
        RunError::Stalled(_) => "stalled",
        _ => "failed",
    }
}

fn waits(
    run: &GraphRun,
    gates: &[Open],
    again: &Again<'_>,
    output: &mut Output<'_>,
) -> Result<Exit, Problem> {
    let command = |open: &Open| {
        let sample = reply::sample(open.gate.schema.as_ref()).to_string();
        again.command(run, "answer", &[&open.label, &sample])
    };
    if output.json {
        let gates = gates.iter().map(|open| {
            let mut gate = json!(open.gate);
            if let Value::Object(fields) = &mut gate {
                fields.insert("name".into(), open.label.clone().into());
                fields.insert("run".into(), open.run.id().to_string().into());
                fields.insert("answer".into(), command(open).into());
            }
            gate
        });
        let gates: Vec<Value> = gates.collect();
        print_json(output.to, &json!({ "status": "waiting", "run": run.id(), "gates": gates }))?;
        return Ok(Exit::Waits);
    }
    note(&format!("run {} waits for answers", run.id()));
    for open in gates {
        note(&format!("{}: {}", open.label, short(&open.gate.text, TEXT)));
        for field in reply::fields(open.gate.schema.as_ref()) {
            note(&format!("  {field}"));
        }
        match command(open) {
            Some(command) => note(&format!("  answer with: {command}")),
            None => note(
                "  nobody answers here, and the run has no store, so it is cancelled: give --store and --id",
            ),
        }
    }
    Ok(Exit::Waits)
}

/// A line for people. If it cannot be printed, the exit code reports the end.
fn note(line: &str) {
    drop(writeln!(io::stderr(), "{}", plain(line)));
}
