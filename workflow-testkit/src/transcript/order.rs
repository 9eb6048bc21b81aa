//! The lines of the observations, in order.

use std::fmt::{self, Write as _};

use workflow_core::ExecutionId;
use workflow_core::observe::Observed;
use workflow_core::report::{CleanUpReport, CleanUpResult, Ending, RunReport};

use super::event::Events;
use super::execution::{Executions, begun, ended, showing};
use super::shown;

/// Writes the observations of a run until its end.
pub(super) fn write(text: &mut String, report: &RunReport, observed: &[Observed]) -> fmt::Result {
    let (events, executions) = (Events::of(report, observed), Executions::of(report, observed));
    let clean_up = report.clean_up.as_ref();
    let mut lines = Lines { text, events, executions, below: None, clean_up, waits: false };
    for stretch in observed.chunk_by(shown::is_one_text) {
        if let [Observed::RunEnded { .. }] = stretch {
            lines.begin()?;
            return lines.not_cleaned_up();
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
    clean_up: Option<&'a CleanUpReport>,
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
            Observed::CleanUpStarted { .. } => {
                self.begin()?;
                self.cleaning_up()
            }
            Observed::RunWaiting => {
                self.begin()?;
                self.waits = true;
                Ok(())
            }
            Observed::RunPaused => {
                self.begin()?;
                writeln!(self.text, "paused")
            }
            Observed::RunUnpaused => {
                self.begin()?;
                writeln!(self.text, "unpaused")
            }
            _ => self.execution(what),
        }
    }

    /// Called before each line about another execution.
    fn begin(&mut self) -> fmt::Result {
        self.below = None;
        if std::mem::take(&mut self.waits) { self.text.write_str("waits\n") } else { Ok(()) }
    }

    /// Writes that clean-up begins, and why.
    fn cleaning_up(&mut self) -> fmt::Result {
        match self.clean_up {
            // The last line has the error of a run that failed.
            Some(CleanUpReport { ending: Ending::Failed { .. }, .. }) | None => {
                writeln!(self.text, "cleans up")
            }
            Some(CleanUpReport { ending, .. }) => writeln!(self.text, "cleans up, {ending}"),
        }
    }

    /// Writes the clean-up steps that did not run.
    fn not_cleaned_up(&mut self) -> fmt::Result {
        let steps = self.clean_up.iter().flat_map(|clean_up| &clean_up.steps);
        for step in steps.filter(|step| step.result == CleanUpResult::NotReached) {
            writeln!(self.text, "{}: no time left", step.step)?;
        }
        Ok(())
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
