//! No random run breaks the table's forecast, and no step runs that never can by the rules.

use std::collections::BTreeSet;

use workflow_core::scheduler::{End, Fact};
use workflow_core::table::{Forecast, TableProblem};
use workflow_testkit::model::Line;

use super::play::{Moment, Play};

impl Play<'_> {
    /// Checks that every step ran as often as forecast. A forecast covers only runs with one start event followed by
    /// external ones.
    pub(super) fn check_forecasts(&self) -> Result<(), String> {
        if !self.was_sent_what_can_be_sent() {
            return Ok(());
        }
        for step in 0..self.plan.steps.len() {
            let index = self.table.step_named(&format!("s{step}")).ok_or("the table lacks a step")?;
            let forecast = self.table.forecast(index);
            // A step of clean-up runs once per end, and a redriven run may end again.
            let cleans_up = self.plan.steps[step].on_end.is_some();
            let per = if cleans_up { self.clean_ups() } else { self.arrivals(&forecast) };
            let runs = self.starts(step);
            let too_many = forecast.greatest.is_some_and(|greatest| runs > greatest * per);
            let too_few = self.completed_cleanly() && runs < forecast.least * per;
            if too_many || too_few {
                return Err(format!("s{step} ran {runs} times, forecast was {forecast}\n{}", self.plan));
            }
        }
        Ok(())
    }

    /// Checks that no step ran that never can by the rules.
    pub(super) fn check_rules(&self) -> Result<(), String> {
        use TableProblem::{DisjointBranches, DisjointStarts, ListCapacity, NeverTriggered, Unreachable};
        let problems = if self.was_sent_what_can_be_sent() { self.plan.problems() } else { Vec::new() };
        for problem in problems {
            if let ListCapacity { step, .. }
            | NeverTriggered { step }
            | DisjointBranches { step, .. }
            | DisjointStarts { step, .. }
            | Unreachable { step, .. } = &problem
                && (0..self.plan.steps.len()).any(|row| *step == format!("s{row}") && self.starts(row) > 0)
            {
                return Err(format!("{problem}, but it ran\n{}", self.plan));
            }
        }
        Ok(())
    }

    pub(super) fn was_sent_what_can_be_sent(&self) -> bool {
        let received = self.history.iter().filter_map(|moment| match moment {
            Moment::Told(Fact::EventReceived { event }) => Some(event.get()),
            _ => None,
        });
        received.skip(1).all(|event| self.plan.events[event].external)
    }

    fn starts(&self, step: usize) -> u64 {
        // A redrive starts an execution again.
        let started = self.lines().filter_map(|line| match line {
            Line::Starts { execution, call } if call.step == step => Some(*execution),
            _ => None,
        });
        started.collect::<BTreeSet<u64>>().len() as u64
    }

    /// How many ends had a clean-up.
    fn clean_ups(&self) -> u64 {
        self.lines().filter(|line| matches!(line, Line::CleansUp { .. })).count() as u64
    }

    /// The number of logged events of the forecast's `per` type; 1 if the forecast is per run.
    fn arrivals(&self, forecast: &Forecast) -> u64 {
        let Some(per) = &forecast.per else { return 1 };
        let event = self.table.event_named(per).map(workflow_core::table::EventIndex::get);
        let entries = self.lines().flat_map(|line| match line {
            Line::Appends { entries, .. } => &entries[..],
            _ => &[],
        });
        entries.filter(|entry| Some(entry.event) == event).count() as u64
    }

    fn completed_cleanly(&self) -> bool {
        let failed = |moment: &Moment| matches!(moment, Moment::Told(Fact::ExecutionFailed { .. }));
        let completed = self.lines().any(|line| matches!(line, Line::Ends(End::Completed(_))));
        // A step runs in a branch that is dropped or never opens as far as it gets.
        let dropped = self.lines().any(|line| match line {
            Line::Gathers { branches, .. } => branches.iter().any(|branch| branch.dropped),
            _ => false,
        });
        // So does one that a pause deferred until the end.
        completed && !dropped && !self.ended_in_pause && !self.history.iter().any(failed)
    }
}
