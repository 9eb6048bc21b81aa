//! A run as text that is the same each time: for golden tests.

use std::collections::HashMap;
use std::fmt::Write as _;

use workflow_core::{
    BoundInput, DisplayItem, ExecutionId, ExecutionOutcome, ExecutionTrace, LoggedEvent, Quality, RunError,
    RunReport, RunStatus, ScopeId, Seq,
};

/// What is seen of a run that has ended, or waited when its report was made.
pub(crate) struct Seen<'a> {
    pub(crate) report: &'a RunReport,
    pub(crate) status: RunStatus,
    pub(crate) displayed: &'a [DisplayItem],
    pub(crate) error: Option<&'a RunError>,
}

/// Each event of the log, followed by the executions that it triggered with what they showed, and the end.
pub(crate) fn of(seen: &Seen<'_>) -> String {
    let (report, shown) = (seen.report, shown(seen.displayed));
    let mut text = String::new();
    let mut trace = report.trace.iter().collect::<Vec<_>>();
    trace.sort_by_key(|execution| (execution.trigger, execution.execution));
    let mut executions = trace.into_iter().peekable();
    for logged in &report.log {
        event(&mut text, logged);
        while let Some(execution) = executions.next_if(|execution| execution.trigger <= logged.seq) {
            executed(&mut text, execution);
            text.push_str(shown.get(&execution.execution).map_or("", String::as_str));
        }
    }
    ended(&mut text, seen);
    text
}

/// How many lines of a long text a failure prints, of its beginning and of its end.
const PRINTED: usize = 100;

/// A text as failures print it: of a long one the beginning and the end.
pub(crate) fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let Some(left_out) = lines.len().checked_sub(2 * PRINTED + 1) else { return text.to_owned() };
    let (first, last) = (lines[..PRINTED].join("\n"), lines[PRINTED + 1 + left_out..].join("\n"));
    format!("{first}\n… {} more lines …\n{last}\n", left_out + 1)
}

/// What each execution showed and took back, in order.
fn shown(displayed: &[DisplayItem]) -> HashMap<ExecutionId, String> {
    let mut texts: HashMap<ExecutionId, String> = HashMap::new();
    for item in displayed {
        // Writing to a `String` cannot fail.
        let _ = match item {
            DisplayItem::Shown { execution, event, .. } => {
                writeln!(texts.entry(*execution).or_default(), "   showed {}", event.name())
            }
            DisplayItem::Retracted { execution, .. } => {
                writeln!(texts.entry(*execution).or_default(), "   took back what it showed")
            }
            _ => Ok(()),
        };
    }
    texts
}

/// How the run ended, and why, where no execution says so.
fn ended(text: &mut String, seen: &Seen<'_>) {
    let (status, quality) = (seen.status, seen.report.quality);
    let _ = match (status, quality) {
        (RunStatus::Completed, Quality::Degraded) => writeln!(text, "{status}, {quality}"),
        _ => writeln!(text, "{status}"),
    };
    let why = seen
        .error
        .filter(|error| !matches!(error, RunError::StepFailed { .. } | RunError::BranchesFailed { .. }));
    if let Some(error) = why {
        let _ = writeln!(text, "{}", error.to_string().trim_end());
    }
}

fn event(text: &mut String, logged: &LoggedEvent) {
    let _ = write!(text, "{} {}", logged.seq, logged.event);
    if let Some(execution) = logged.execution {
        let _ = write!(text, " of {execution}");
    }
    in_scope(text, logged.scope);
    text.push('\n');
}

fn executed(text: &mut String, execution: &ExecutionTrace) {
    let _ = write!(text, "{} {} by {}", execution.execution, execution.step, execution.trigger);
    with_inputs(text, execution);
    in_scope(text, execution.scope);
    let _ = match &execution.outcome {
        ExecutionOutcome::Succeeded => writeln!(text, ": succeeded"),
        ExecutionOutcome::Failed { class, error } => writeln!(text, ": failed ({class}): {error}"),
        ExecutionOutcome::Refused => writeln!(text, ": refused"),
        ExecutionOutcome::Dropped => writeln!(text, ": dropped"),
        _ => writeln!(text, ": running"),
    };
}

/// What it was bound to besides its trigger.
fn with_inputs(text: &mut String, execution: &ExecutionTrace) {
    let other = |seq: &Seq| *seq != execution.trigger;
    let inputs = execution.inputs.iter().filter_map(|input| match input {
        BoundInput::One(seq) if other(seq) => Some(seq.to_string()),
        BoundInput::List(count) => Some(format!("a list of {count}")),
        _ => None,
    });
    let inputs: Vec<String> = inputs.collect();
    if !inputs.is_empty() {
        let _ = write!(text, " with {}", inputs.join(", "));
    }
}

fn in_scope(text: &mut String, scope: ScopeId) {
    if scope != ScopeId::ROOT {
        let _ = write!(text, " in {scope}");
    }
}
