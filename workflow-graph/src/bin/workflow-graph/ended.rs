//! The end of a driven run, as it is printed: its result, its failure, or how it goes on.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use workflow_core::RunError;
use workflow_graph::{GraphFailure, GraphResult, GraphRun, GraphStatus};

use crate::drive::Driven;
use crate::problem::Problem;
use crate::quote;
use crate::reply;
use crate::session::{Done, With};
use crate::standing::Open;
use crate::text::{one_line, plain_lines, print_json, short, time_to_answer};
use crate::{Exit, Output};

/// The most characters of a question that is listed.
const TEXT: usize = 200;

/// The longest input that a proposed command repeats.
const INPUT: usize = 500;

/// The options with which a later command continues the run.
pub(crate) struct Again<'a> {
    pub(crate) store: Option<&'a Path>,
    /// The document, if the later command has to name it.
    pub(crate) document: Option<&'a Path>,
    /// The file of the document, for a new run.
    pub(crate) file: &'a Path,
    /// The input of the run, if this command was given it.
    pub(crate) input: Option<&'a str>,
    pub(crate) with: &'a With,
}

impl Again<'_> {
    /// The command that does something with the run; nothing for a run without a store.
    fn command(&self, run: &GraphRun, action: &str, rest: &[&str]) -> Option<String> {
        let run = run.id().to_string();
        let script = self.with.script.as_deref();
        Some(self.allowing(quote::command((action, &run, rest), self.store?, self.document, script)))
    }

    /// The command that starts another run of the document.
    fn new_run(&self) -> String {
        let mut words = vec!["workflow-graph".to_owned(), "run".to_owned(), self.file.display().to_string()];
        match self.input {
            Some("{}") => {}
            Some(input) if input.len() <= INPUT => words.extend(["--input".to_owned(), input.to_owned()]),
            _ => words.extend(["--input".to_owned(), "@FILE".to_owned()]),
        }
        if let Some(store) = self.store {
            words.extend(["--store".to_owned(), store.display().to_string()]);
        }
        if let Some(script) = &self.with.script {
            words.extend(["--script".to_owned(), script.display().to_string()]);
        }
        self.allowing(words)
    }

    /// The line of these words, with the leave to run programs if this command has it.
    fn allowing(&self, mut words: Vec<String>) -> String {
        words.extend(self.with.allow_commands.then(|| "--allow-commands".to_owned()));
        quote::line(&words)
    }
}

/// Prints the end of a drive.
pub(crate) fn print(done: &Done, again: &Again<'_>, output: &mut Output<'_>) -> Result<Exit, Problem> {
    let run = &done.run;
    match &done.driven {
        Driven::Ended(result) => completed(result, again, output),
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

fn completed(result: &GraphResult, again: &Again<'_>, output: &mut Output<'_>) -> Result<Exit, Problem> {
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
            note(&format!(
                "the run has ended and cannot continue: raise `limits.steps`, then start a new run with: {}",
                again.new_run()
            ));
        }
        GraphStatus::DryRun => {
            let routes = match &result.candidates[..] {
                [] => "nowhere".to_owned(),
                routes => routes.join(", "),
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
    let expired = expired(&failure.error);
    let command = again.command(run, "resume", &[]).filter(|_| expired.is_none());
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
        match (expired, command) {
            (Some(node), _) => note(&format!(
                "the time to answer `{node}` is over, and to resume does not ask again: start a new run with: {}; \
                 `on_failure` of `{node}` would lead on",
                again.new_run()
            )),
            (None, Some(command)) => {
                let first = match failure.error {
                    RunError::Cancelled { .. } => "continue it with",
                    RunError::TimedOut { .. } => "raise `limits.time`, then continue with",
                    _ => "mend the cause, then continue with",
                };
                note(&format!("{first}: {command}"));
            }
            (None, None) => {}
        }
    }
    Ok(Exit::Failure)
}

/// The node whose question nobody answered in time, if that ended the run.
fn expired(error: &RunError) -> Option<&str> {
    let RunError::StepFailed { step, .. } = error else { return None };
    step.strip_suffix(":expired")
}

fn status(error: &RunError) -> &'static str {
    match error {
        RunError::Cancelled { .. } => "cancelled",
        RunError::TimedOut { .. } | RunError::DeadlinePassed { .. } => "timed_out",
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
        if let Some(time) = time_to_answer(&open.gate) {
            note(&format!("  {time}"));
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
    drop(writeln!(io::stderr(), "{}", one_line(line)));
}
