//! The comparison at the end of a run, and the text of a difference.

use std::fmt::Write as _;

use workflow_core::scheduler::{Decision, Verdict};
use workflow_testkit::model::{Evaluation, Line};

use super::play::{Moment, Play};

impl Play<'_> {
    /// Compares the data behind the run's report (S34).
    pub(super) fn compare_totals(&self) -> Result<(), String> {
        let steps = || 0..self.plan.steps.len();
        let (scheduler, model) = (&self.scheduler, &self.model);
        let index = |step: usize| {
            self.table.step_named(self.table.steps()[step].name()).expect("a name of the table")
        };
        let calls =
            || (1..).zip(model.executed()).map(|(id, call)| (id, call.step, call.scope, call.trigger));
        let said = (
            scheduler.end().cloned(),
            scheduler.is_degraded(),
            scheduler.open_requests().map(|(seq, _)| seq.0).collect::<Vec<u64>>(),
            scheduler.timers().map(|timer| timer.timer.0).collect::<Vec<u64>>(),
            steps().map(|step| scheduler.executions_of(index(step))).collect::<Vec<u64>>(),
            steps().map(|step| scheduler.surplus_of(index(step))).collect::<Vec<u64>>(),
            self.executed(),
        );
        let expected = (
            model.end().cloned(),
            model.is_degraded(),
            model.open_requests(),
            model.pending_timers(),
            steps()
                .map(|step| calls().filter(|(_, of, ..)| *of == step).count() as u64)
                .collect::<Vec<u64>>(),
            steps().map(|step| model.surplus_of(step)).collect::<Vec<u64>>(),
            calls().filter(|(_, step, ..)| self.plan.steps[*step].on_end.is_none()).collect(),
        );
        if said == expected {
            return self.compare_evaluations();
        }
        Err(format!("{}\nscheduler: {said:?}\nmodel:     {expected:?}", self.story()))
    }

    /// Compares every evaluation in order, including those in open branches that the scheduler derives on demand.
    pub(super) fn compare_evaluations(&self) -> Result<(), String> {
        let derived = self.scheduler.decisions().map(|decision| {
            let Decision { step, scope, trigger, verdict } = decision;
            Evaluation { step: step.get(), scope: scope.0, trigger: trigger.0, verdict }
        });
        let (derived, expected) = (derived.collect::<Vec<_>>(), self.model.evaluations());
        if derived == expected {
            return Ok(());
        }
        let same = derived.iter().zip(expected).take_while(|(one, other)| one == other).count();
        let next = (derived.get(same), expected.get(same));
        Err(format!("{}\nevaluation {same}, of the scheduler and of the model: {next:?}", self.story()))
    }

    /// Step, scope and trigger of every execution, as the record of evaluations has them.
    fn executed(&self) -> Vec<(u64, usize, u32, u64)> {
        let decisions = self.scheduler.decisions();
        let executed = decisions.filter_map(|decision| match decision.verdict {
            Verdict::Executed(id) => Some((id.0, decision.step.get(), decision.scope.0, decision.trigger.0)),
            _ => None,
        });
        let mut executed: Vec<_> = executed.collect();
        executed.sort_unstable();
        executed
    }

    pub(super) fn difference(&mut self, said: Option<Line>, expected: Option<Line>) -> String {
        let mut text = self.story();
        let _ = writeln!(text, "\nThen the scheduler says:");
        let mut next = said;
        for _ in 0..12 {
            let Some(line) = next else { break };
            let _ = writeln!(text, "  {}", line.text(&self.table));
            next = self.scheduler.next_action().map(|action| self.reader.read(&action));
        }
        let _ = writeln!(text, "but the model says:");
        let mut next = expected;
        for _ in 0..12 {
            let Some(line) = next else { break };
            let _ = writeln!(text, "  {}", line.text(&self.table));
            next = self.model.next_line();
        }
        text
    }

    /// The table, and the lines on which both sides agree.
    pub(super) fn story(&self) -> String {
        let mut text = format!("the scheduler and the model differ\n\n{}\n", self.plan);
        for moment in &self.history {
            let _ = match moment {
                Moment::Told(fact) => writeln!(text, "* {fact:?}"),
                Moment::Said(line) => writeln!(text, "  {}", line.text(&self.table)),
                Moment::Stalled | Moment::Quiet => Ok(()),
            };
        }
        text
    }
}
