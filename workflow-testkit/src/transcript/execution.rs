//! The lines of an execution: its inputs and its result. `shown` has its displayed items.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};

use workflow_core::observe::Observed;
use workflow_core::report::{BoundInput, ExecutionTrace, RunReport};
use workflow_core::{DisplayItem, ExecutionId, ScopeId, Seq};

use super::event::in_scope;

/// Writes the beginnings and the ends of executions.
pub(super) struct Executions<'a> {
    traces: HashMap<ExecutionId, &'a ExecutionTrace>,
    ends: HashMap<ExecutionId, &'a Observed>,
    at_once: HashSet<ExecutionId>,
    /// The attempts that began after the first of their executions.
    attempts: HashSet<(ExecutionId, u32)>,
}

impl<'a> Executions<'a> {
    pub(super) fn of(report: &'a RunReport, observed: &'a [Observed]) -> Self {
        let traces = report.trace.iter().map(|trace| (trace.execution, trace)).collect();
        let ends = observed.iter().filter_map(|what| Some((ended(what)?, what))).collect();
        let attempts = observed.iter().filter_map(|what| match what {
            Observed::AttemptStarted { execution, attempt, .. } => Some((*execution, *attempt)),
            _ => None,
        });
        Self { traces, ends, at_once: at_once(observed), attempts: attempts.collect() }
    }

    /// Words for the attempt after a failed one: started, planned, or never started.
    pub(super) fn retried(&self, execution: ExecutionId, failed: u32) -> &'static str {
        match (self.attempts.contains(&(execution, failed + 1)), self.ends.contains_key(&execution)) {
            (true, _) => "retried",
            (false, false) => "to be retried",
            (false, true) => "was to be retried",
        }
    }

    /// Whether only its own displayed items and its children's came between its beginning and end: then one line has
    /// both.
    pub(super) fn is_at_once(&self, execution: ExecutionId) -> bool {
        self.at_once.contains(&execution)
    }

    /// Writes the beginning of an execution, or its result.
    pub(super) fn write(&self, text: &mut String, what: &Observed) -> fmt::Result {
        let Observed::ExecutionStarted { execution, step, scope, trigger } = what else {
            return self.end(text, what);
        };
        write!(text, "{execution} {step} by {trigger}")?;
        self.inputs(text, *execution, *trigger)?;
        in_scope(text, *scope)?;
        match self.ends.get(execution) {
            Some(end) if self.is_at_once(*execution) => outcome(text, end),
            Some(_) => text.write_str(" starts\n"),
            None => text.write_str(": running\n"),
        }
    }

    fn end(&self, text: &mut String, what: &Observed) -> fmt::Result {
        let (Observed::ExecutionSucceeded { execution, step, .. }
        | Observed::ExecutionFailed { execution, step, .. }
        | Observed::ExecutionDropped { execution, step }
        | Observed::CommitRefused { execution, step, .. }) = what
        else {
            return Ok(());
        };
        write!(text, "{execution} {step}")?;
        in_scope(text, self.traces.get(execution).map_or(ScopeId::ROOT, |trace| trace.scope))?;
        outcome(text, what)
    }

    /// What it was bound to besides its trigger.
    fn inputs(&self, text: &mut String, execution: ExecutionId, trigger: Seq) -> fmt::Result {
        let inputs = self.traces.get(&execution).into_iter().flat_map(|trace| &trace.inputs);
        let inputs = inputs.filter_map(|input| match input {
            BoundInput::One(seq) if *seq != trigger => Some(seq.to_string()),
            BoundInput::List(count) => Some(format!("a list of {count}")),
            _ => None,
        });
        let inputs: Vec<String> = inputs.collect();
        if inputs.is_empty() { Ok(()) } else { write!(text, " with {}", inputs.join(", ")) }
    }
}

/// The execution that began.
pub(super) fn begun(what: &Observed) -> Option<ExecutionId> {
    match what {
        Observed::ExecutionStarted { execution, .. } => Some(*execution),
        _ => None,
    }
}

/// The execution that ended.
pub(super) fn ended(what: &Observed) -> Option<ExecutionId> {
    match what {
        Observed::ExecutionSucceeded { execution, .. }
        | Observed::ExecutionFailed { execution, .. }
        | Observed::ExecutionDropped { execution, .. }
        | Observed::CommitRefused { execution, .. } => Some(*execution),
        _ => None,
    }
}

/// The execution that displayed an item, is retried, or has news of a child.
pub(super) fn showing(what: &Observed) -> Option<ExecutionId> {
    match what {
        Observed::AttemptFailed { execution, .. } | Observed::AttemptStarted { execution, .. } => {
            Some(*execution)
        }
        Observed::ChildStarted { child } | Observed::ChildEnded { child, .. } => Some(child.execution),
        Observed::Displayed(item) => match item {
            DisplayItem::Shown { execution, .. } | DisplayItem::Retracted { execution, .. } => {
                Some(*execution)
            }
            DisplayItem::Child { path, .. } => path.first().map(|child| child.execution),
            _ => None,
        },
        _ => None,
    }
}

/// The executions without anything else between their beginning and end.
fn at_once(observed: &[Observed]) -> HashSet<ExecutionId> {
    let (mut alone, mut found) = (None, HashSet::new());
    for what in observed {
        if let Some(execution) = ended(what).filter(|execution| alone == Some(*execution)) {
            found.insert(execution);
        }
        let still = alone.filter(|execution| showing(what) == Some(*execution));
        alone = begun(what).or(still);
    }
    found
}

fn outcome(text: &mut String, end: &Observed) -> fmt::Result {
    match end {
        Observed::ExecutionSucceeded { .. } => writeln!(text, ": succeeded"),
        Observed::ExecutionFailed { class, error, .. } => {
            writeln!(text, ": failed ({class}): {}", indented(error))
        }
        Observed::CommitRefused { events, .. } if !events.is_empty() => {
            writeln!(text, ": refused with {}", events.join(", "))
        }
        Observed::CommitRefused { .. } => writeln!(text, ": refused"),
        _ => writeln!(text, ": dropped"),
    }
}

/// Indents the further lines of a text below its first.
pub(super) fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n   ")
}
