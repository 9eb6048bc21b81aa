//! The lines of an execution: what it took, what came of it, and what it showed.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::iter::Peekable;
use std::vec::IntoIter;

use workflow_core::{
    BoundInput, DisplayItem, ExecutionId, ExecutionOutcome, ExecutionTrace, RunReport, Seq, Violation,
};

use super::event::{in_scope, value};

/// Writes executions in the order of what triggered them.
pub(super) struct Executions<'a> {
    left: Peekable<IntoIter<&'a ExecutionTrace>>,
    shown: HashMap<ExecutionId, Vec<&'a DisplayItem>>,
    /// What was refused after the end.
    refused: HashMap<ExecutionId, &'a [String]>,
}

impl<'a> Executions<'a> {
    pub(super) fn of(report: &'a RunReport, displayed: &'a [DisplayItem]) -> Self {
        let mut left: Vec<&ExecutionTrace> = report.trace.iter().collect();
        left.sort_by_key(|trace| (trace.trigger, trace.execution));
        let mut shown: HashMap<ExecutionId, Vec<&DisplayItem>> = HashMap::new();
        for item in displayed {
            if let DisplayItem::Shown { execution, .. } | DisplayItem::Retracted { execution, .. } = item {
                shown.entry(*execution).or_default().push(item);
            }
        }
        let refused = report.violations.iter().filter_map(|violation| match violation {
            Violation::CommitAfterEnd { execution, events, .. } => Some((*execution, &events[..])),
            _ => None,
        });
        Self { left: left.into_iter().peekable(), shown, refused: refused.collect() }
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
        for item in self.shown.get(&trace.execution).into_iter().flatten() {
            match item {
                DisplayItem::Shown { event, .. } => {
                    write!(text, "   showed {}", event.name())?;
                    value(text, event)?;
                    text.push('\n');
                }
                _ => text.push_str("   took back what it showed\n"),
            }
        }
        Ok(())
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
