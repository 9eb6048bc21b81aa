//! The lower bounds of forecasts: steps without which no run can complete, and steps that run in every
//! branch.
//!
//! The method is to remove something (a step, an event, all failures) and to test whether a run can still
//! complete.

use super::count::{Counts, taken};
use crate::spec::InputKind;
use crate::table::{DependencyTable, EventIndex, FanOutIndex, StepIndex, StepRow};

/// The parts of a table that the search treats as absent.
pub(super) struct Without {
    /// This step never runs.
    step: Option<StepIndex>,
    /// This event never occurs.
    event: Option<EventIndex>,
    /// No step fails.
    failures: bool,
}

impl Without {
    pub(super) const NOTHING: Self = Self { step: None, event: None, failures: false };
    const FAILURES: Self = Self { failures: true, ..Self::NOTHING };
}

impl DependencyTable {
    /// Whether no stop event can occur without the step, if no step fails.
    pub(super) fn is_needed(&self, step: StepIndex) -> bool {
        self.can_stop(&Without::FAILURES)
            && !self.can_stop(&Without { step: Some(step), ..Without::FAILURES })
    }

    /// Whether some start event can lead to a stop event in a table without these parts.
    fn can_stop(&self, without: &Without) -> bool {
        self.starts().any(|start| {
            let there = self.there(start, without);
            self.events.iter().zip(there).any(|(event, is_there)| is_there && event.roles.is_stop())
        })
    }

    /// The start events.
    pub(super) fn starts(&self) -> impl Iterator<Item = EventIndex> + '_ {
        (0..self.events.len()).map(EventIndex::at).filter(|event| self.event(*event).roles.is_start())
    }

    /// For each event, whether any scope can have it in a run with this start event.
    pub(super) fn there(&self, start: EventIndex, without: &Without) -> Vec<bool> {
        let mut there = vec![false; self.events.len()];
        let mut ran = vec![false; self.steps.len()];
        let given = |event: &EventIndex| *event == start || self.event(*event).roles.is_external();
        let mut new: Vec<EventIndex> = (0..self.events.len()).map(EventIndex::at).filter(given).collect();
        while let Some(event) = new.pop() {
            if without.event == Some(event) || std::mem::replace(&mut there[event.get()], true) {
                continue;
            }
            new.extend(self.event(event).reply);
            for step in &self.event(event).takers {
                if without.step != Some(*step) && !ran[step.get()] && self.is_ready(*step, &there) {
                    ran[step.get()] = true;
                    new.extend(self.brings_about(*step));
                    new.extend(self.step(*step).failed.filter(|_| !without.failures));
                }
            }
        }
        there
    }

    /// Whether every required input has an event that can occur.
    pub(super) fn is_ready(&self, step: StepIndex, there: &[bool]) -> bool {
        let mut required = taken(self.step(step)).filter(|input| !input.optional);
        required.all(|input| input.events.iter().any(|event| there[event.get()]))
    }

    /// The events that the step emits in any scope, and those that complete its fan-outs.
    fn brings_about(&self, step: StepIndex) -> impl Iterator<Item = EventIndex> + '_ {
        let gathered = |fan_out| self.fan_out(fan_out).gathered;
        let outputs = &self.step(step).outputs;
        outputs.iter().flat_map(move |output| [Some(output.event), output.fan_out.map(gathered)]).flatten()
    }

    /// Whether the step runs in every branch before the run completes. That holds if the fan-out opens once,
    /// no run completes before it is gathered, and nothing keeps the step from running in a branch.
    pub(super) fn runs_in_every_branch(
        &self,
        fan_out: FanOutIndex,
        step: StepIndex,
        counts: &mut Counts<'_>,
    ) -> bool {
        let row = self.fan_out(fan_out);
        let opens_once =
            counts.runs(None, row.step) == Some(1) && counts.branches_running(row.step).is_empty();
        opens_once
            && self.is_item_only(fan_out)
            && !self.can_stop(&Without { event: Some(row.gathered), ..Without::FAILURES })
            && self.is_certain(fan_out, step)
    }

    /// Whether each event of the item's type opens a branch of this fan-out.
    fn is_item_only(&self, fan_out: FanOutIndex) -> bool {
        let item = self.fan_out(fan_out).item;
        let roles = self.event(item).roles;
        let outputs = self.steps.iter().flat_map(|step| &step.outputs);
        let others = outputs.filter(|output| output.event == item && output.fan_out != Some(fan_out));
        let many = self
            .steps
            .iter()
            .flat_map(|step| &step.outputs)
            .any(|output| output.fan_out == Some(fan_out) && output.many);
        !roles.is_start() && !roles.is_external() && others.count() == 0 && !many
    }

    /// Whether the step runs in every branch whose steps all succeed. A step that depends on itself is not
    /// certain.
    fn is_certain(&self, fan_out: FanOutIndex, step: StepIndex) -> bool {
        let mut certain = vec![false; self.steps.len()];
        while self.find_certain(fan_out, &mut certain) {}
        certain[step.get()]
    }

    /// Adds the steps that are certain because others are. Returns whether it found any.
    fn find_certain(&self, fan_out: FanOutIndex, certain: &mut [bool]) -> bool {
        let mut found = false;
        for step in 0..certain.len() {
            if !certain[step] && self.follows(fan_out, &self.steps[step], certain) {
                (certain[step], found) = (true, true);
            }
        }
        found
    }

    /// Whether the step is certain, given the steps that are certain so far.
    fn follows(&self, fan_out: FanOutIndex, step: &StepRow, certain: &[bool]) -> bool {
        let opener = self.step(self.fan_out(fan_out).step);
        let comes =
            |event: &EventIndex| requires(opener, *event) || self.is_certain_event(fan_out, *event, certain);
        step.precondition.is_none()
            && taken(step).filter(|input| !input.optional).all(|input| {
                let plain = matches!(input.kind, InputKind::One | InputKind::List);
                plain && input.events.iter().any(comes)
            })
            && self.is_triggered_there(fan_out, step)
    }

    /// Whether an event of the branch itself is among the step's required inputs.
    fn is_triggered_there(&self, fan_out: FanOutIndex, step: &StepRow) -> bool {
        let own = &self.fan_out(fan_out).own;
        let mut required = taken(step).filter(|input| !input.optional);
        required.any(|input| input.events.iter().any(|event| own.contains(event)))
    }

    /// Whether every branch has the event: it is the item, or a certain step always emits it.
    fn is_certain_event(&self, fan_out: FanOutIndex, event: EventIndex, certain: &[bool]) -> bool {
        let emits = |step: &StepRow| {
            step.outputs
                .iter()
                .any(|output| output.event == event && output.least > 0 && output.fan_out.is_none())
        };
        let mut steps = self.steps.iter().zip(certain);
        self.fan_out(fan_out).item == event || steps.any(|(step, is_certain)| *is_certain && emits(step))
    }
}

/// Whether the step cannot run without the event.
fn requires(step: &StepRow, event: EventIndex) -> bool {
    let plain = taken(step).filter(|input| matches!(input.kind, InputKind::One | InputKind::List));
    plain.filter(|input| !input.optional).any(|input| input.events == [event])
}
