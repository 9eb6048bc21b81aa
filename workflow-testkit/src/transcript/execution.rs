//! The lines of an execution: what it took and what came of it. What it showed is in `shown`.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::iter::Peekable;
use std::vec::IntoIter;

use workflow_core::{
    BoundInput, ChildReport, DisplayItem, ExecutionId, ExecutionOutcome, ExecutionTrace, RunReport, Seq,
    Violation,
};

use super::event::in_scope;
use super::shown;

/// Writes executions in the order of what triggered them.
pub(super) struct Executions<'a> {
    left: Peekable<IntoIter<&'a ExecutionTrace>>,
    shown: HashMap<ExecutionId, Vec<&'a DisplayItem>>,
    children: &'a [ChildReport],
    /// What was refused after the end.
    refused: HashMap<ExecutionId, &'a [String]>,
}

impl<'a> Executions<'a> {
    pub(super) fn of(report: &'a RunReport, displayed: &'a [DisplayItem]) -> Self {
        let mut left: Vec<&ExecutionTrace> = report.trace.iter().collect();
        left.sort_by_key(|trace| (trace.trigger, trace.execution));
        let mut shown: HashMap<ExecutionId, Vec<&DisplayItem>> = HashMap::new();
        for item in displayed {
            let by = match item {
                DisplayItem::Shown { execution, .. } | DisplayItem::Retracted { execution, .. } => *execution,
                DisplayItem::Child { path, .. } => path[0].execution,
                _ => continue,
            };
            shown.entry(by).or_default().push(item);
        }
        let refused = report.violations.iter().filter_map(|violation| match violation {
            Violation::CommitAfterEnd { execution, events, .. } => Some((*execution, &events[..])),
            _ => None,
        });
        let (left, children) = (left.into_iter().peekable(), &report.children[..]);
        Self { left, shown, children, refused: refused.collect() }
    }

    /// Those that were triggered by the event at this position.
    pub(super) fn write_until(&mut self, text: &mut String, trigger: Seq) -> fmt::Result {
        while let Some(trace) = self.left.next_if(|trace| trace.trigger <= trigger) {
            self.write(text, trace)?;
        }
        Ok(())
    }

    fn write(&self, text: &mut String, trace: &ExecutionTrace) -> fmt::Result {
        write!(text, "{} {} by {}", trace.execution, trace.step, trace.trigger)?;
        with_inputs(text, trace)?;
        in_scope(text, trace.scope)?;
        self.outcome(text, trace)?;
        for ChildReport { child, status, .. } in self.children_of(trace) {
            let verb = if child.awaited { "ran" } else { "started" };
            writeln!(text, "   {verb} {} of {}: {status}", child.run, child.workflow)?;
        }
        self.shown.get(&trace.execution).map_or(Ok(()), |items| shown::write(text, items))
    }

    fn children_of(&self, trace: &ExecutionTrace) -> impl Iterator<Item = &ChildReport> {
        self.children.iter().filter(|report| report.child.execution == trace.execution)
    }

    fn outcome(&self, text: &mut String, trace: &ExecutionTrace) -> fmt::Result {
        match &trace.outcome {
            ExecutionOutcome::Succeeded => writeln!(text, ": succeeded"),
            ExecutionOutcome::Failed { class, error } => {
                writeln!(text, ": failed ({class}): {}", indented(error))
            }
            ExecutionOutcome::Refused => match self.refused.get(&trace.execution) {
                Some(events) => writeln!(text, ": refused with {}", events.join(", ")),
                None => writeln!(text, ": refused"),
            },
            ExecutionOutcome::Dropped => writeln!(text, ": dropped"),
            _ => writeln!(text, ": running"),
        }
    }
}

/// What it was bound to besides its trigger.
fn with_inputs(text: &mut String, trace: &ExecutionTrace) -> fmt::Result {
    let inputs = trace.inputs.iter().filter_map(|input| match input {
        BoundInput::One(seq) if *seq != trace.trigger => Some(seq.to_string()),
        BoundInput::List(count) => Some(format!("a list of {count}")),
        _ => None,
    });
    let inputs: Vec<String> = inputs.collect();
    if inputs.is_empty() { Ok(()) } else { write!(text, " with {}", inputs.join(", ")) }
}

/// A text whose further lines stand below its first.
pub(super) fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n   ")
}
