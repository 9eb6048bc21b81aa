//! No random run breaks what the table forecast of it, nor has a step that the rules say can never run.

use workflow_core::scheduler::{End, Fact};
use workflow_core::{Forecast, TableProblem};
use workflow_testkit::model::Line;

use super::play::{Moment, Play};

impl Play<'_> {
    /// Whether every step ran as often as was forecast. A forecast is of runs that are sent one start event and
    /// then external ones; nothing is said of others.
    pub(super) fn check_forecasts(&self) -> Result<(), String> {
        if !self.was_sent_what_can_be_sent() {
            return Ok(());
        }
        for step in 0..self.plan.steps.len() {
            let index = self.table.step_named(&format!("s{step}")).ok_or("the table lacks a step")?;
            let forecast = self.table.forecast(index);
            let (runs, per) = (self.starts(step), self.arrivals(&forecast));
            let too_many = forecast.greatest.is_some_and(|greatest| runs > greatest * per);
            let too_few = self.completed_cleanly() && runs < forecast.least * per;
            if too_many || too_few {
                return Err(format!("s{step} ran {runs} times, forecast was {forecast}\n{}", self.plan));
            }
        }
        Ok(())
    }

    /// Whether no step ran of which the rules say that it never can.
    pub(super) fn check_rules(&self) -> Result<(), String> {
        use TableProblem::{ListNeverFull, NeverTriggered, PartedByBranches, PartedByStarts, Unreachable};
        let problems = if self.was_sent_what_can_be_sent() { self.plan.problems() } else { Vec::new() };
        for problem in problems {
            if let ListNeverFull { step, .. }
            | NeverTriggered { step }
            | PartedByBranches { step, .. }
            | PartedByStarts { step, .. }
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
        self.lines().filter(|line| matches!(line, Line::Starts { call, .. } if call.step == step)).count()
            as u64
    }

    /// How many events of the type that the forecast is per were logged; 1 if it is per run.
    fn arrivals(&self, forecast: &Forecast) -> u64 {
        let Some(per) = &forecast.per else { return 1 };
        let event = self.table.event_named(per).map(workflow_core::EventIndex::get);
        let entries = self.lines().flat_map(|line| match line {
            Line::Appends { entries, .. } => &entries[..],
            _ => &[],
        });
        entries.filter(|entry| Some(entry.event) == event).count() as u64
    }

    fn completed_cleanly(&self) -> bool {
        let failed = |moment: &Moment| matches!(moment, Moment::Told(Fact::ExecutionFailed { .. }));
        let completed = self.lines().any(|line| matches!(line, Line::Ends(End::Completed(_))));
        completed && !self.history.iter().any(failed)
    }
}
