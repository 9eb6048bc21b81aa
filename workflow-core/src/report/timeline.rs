//! A run over time as text: a line per execution, with a bar from its start to its end.

use std::fmt;
use std::time::Duration;

use super::{ExecutionOutcome, ExecutionTrace, RunReport};
use crate::id::ScopeId;

/// The width of a bar in characters.
const WIDTH: usize = 48;
/// The most executions that are drawn. The line after them has the number of the rest.
const LINES: usize = 200;

/// A run over time, for people. Made by [`RunReport::timeline`].
///
/// It prints a line per execution, at most 200, and a line per redrive.
#[derive(Debug, Clone, Copy)]
pub struct Timeline<'a> {
    report: &'a RunReport,
    length: Duration,
}

impl<'a> Timeline<'a> {
    pub(super) fn of(report: &'a RunReport) -> Self {
        let ends = report.trace.iter().map(|trace| trace.started + trace.took);
        Self { report, length: ends.max().unwrap_or_default() }
    }

    fn column(&self, at: Duration) -> usize {
        let part = at.as_secs_f64() / self.length.as_secs_f64().max(f64::MIN_POSITIVE);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a column between 0 and the width"
        )]
        let column = (part * WIDTH as f64) as usize;
        column.min(WIDTH - 1)
    }

    fn bar(&self, trace: &ExecutionTrace) -> String {
        let (from, to) = (self.column(trace.started), self.column(trace.started + trace.took));
        let mark = match trace.outcome {
            ExecutionOutcome::Failed { .. } => "x",
            ExecutionOutcome::Dropped | ExecutionOutcome::Refused => "~",
            _ => "=",
        };
        format!("{}{}", " ".repeat(from), mark.repeat(to - from + 1))
    }
}

impl fmt::Display for Timeline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = &self.report.trace;
        let width = trace.iter().take(LINES).map(|trace| trace.step.len()).max().unwrap_or(0);
        for execution in trace.iter().take(LINES) {
            let bar = self.bar(execution);
            let took = execution.took.as_secs_f64() * 1_000.0;
            write!(f, "{:width$} |{bar:WIDTH$}| {took:>9.3} ms", execution.step)?;
            if execution.scope != ScopeId::ROOT {
                write!(f, "  in {}", execution.scope)?;
            }
            writeln!(f)?;
        }
        match trace.len().saturating_sub(LINES) {
            0 => {}
            more => writeln!(f, "… and {more} more executions")?,
        }
        self.report.redrives.iter().try_for_each(|redrive| writeln!(f, "{redrive}"))
    }
}
