//! A run as text that is the same each time: for golden tests.

use std::fmt::Write as _;

use workflow_core::{BoundInput, ExecutionOutcome, ExecutionTrace, LoggedEvent, RunReport, ScopeId, Seq};

/// Each event of the log, followed by the executions that it triggered.
pub(crate) fn of(report: &RunReport) -> String {
    let mut text = String::new();
    let mut trace = report.trace.iter().collect::<Vec<_>>();
    trace.sort_by_key(|execution| (execution.trigger, execution.execution));
    let mut executions = trace.into_iter().peekable();
    for logged in &report.log {
        event(&mut text, logged);
        while let Some(execution) = executions.next_if(|execution| execution.trigger <= logged.seq) {
            executed(&mut text, execution);
        }
    }
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{}", report.status);
    text
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
