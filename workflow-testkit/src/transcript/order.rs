//! The lines of the observations, in order.

use std::fmt::{self, Write as _};

use workflow_core::ExecutionId;
use workflow_core::observe::Observed;
use workflow_core::report::RunReport;

use super::event::Events;
use super::execution::{Executions, begun, ended, showing};
use super::shown;

/// Writes the observations of a run until its end.
pub(super) fn write(text: &mut String, report: &RunReport, observed: &[Observed]) -> fmt::Result {
    let (events, executions) = (Events::of(report, observed), Executions::of(report, observed));
    let mut lines = Lines { text, events, executions, below: None, waits: false };
    for stretch in observed.chunk_by(shown::is_one_text) {
        if let [Observed::RunEnded { .. }] = stretch {
            return lines.begin();
        }
        lines.write(stretch)?;
    }
    Ok(())
}

struct Lines<'a> {
    text: &'a mut String,
    events: Events<'a>,
    executions: Executions<'a>,
    /// The execution of the last line; its displayed items and children follow below.
    below: Option<ExecutionId>,
    /// Whether the run waits; written once anything follows.
    waits: bool,
}

impl Lines<'_> {
    /// Writes one observation, or several pieces of one text.
    fn write(&mut self, stretch: &[Observed]) -> fmt::Result {
        let what = &stretch[0];
        // The line of the failed attempt already says so.
        if let Observed::AttemptStarted { .. } = what {
            return Ok(());
        }
        if let Some(execution) = showing(what) {
            return self.shown(execution, stretch);
        }
        match what {
            Observed::EventLogged { seq, .. } => {
                self.begin()?;
                self.events.write(self.text, *seq)
            }
            Observed::PreconditionAnswered { step, precondition, trigger, answer } => {
                self.begin()?;
                let answer = answer.map_or("failed", |answer| if answer { "yes" } else { "no" });
                writeln!(self.text, "asked `{precondition}` for {step} by {trigger}: {answer}")
            }
            Observed::RunWaiting => {
                self.begin()?;
                self.waits = true;
                Ok(())
            }
            _ => self.execution(what),
        }
    }

    /// Called before each line about another execution.
    fn begin(&mut self) -> fmt::Result {
        self.below = None;
        if std::mem::take(&mut self.waits) { self.text.write_str("waits\n") } else { Ok(()) }
    }

    fn execution(&mut self, what: &Observed) -> fmt::Result {
        let Some(execution) = begun(what).or(ended(what)) else { return Ok(()) };
        // The line of its beginning already contains its end.
        if ended(what).is_some() && self.executions.is_at_once(execution) {
            return Ok(());
        }
        self.begin()?;
        self.below = Some(execution);
        self.executions.write(self.text, what)
    }

    fn shown(&mut self, execution: ExecutionId, stretch: &[Observed]) -> fmt::Result {
        if self.below == Some(execution) {
            self.text.push_str("  ");
        } else {
            self.begin()?;
            self.below = Some(execution);
            write!(self.text, "{execution}")?;
        }
        shown::write(self.text, &self.executions, stretch)
    }
}
