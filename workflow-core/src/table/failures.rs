//! Caught failures as events (S29): one internal event type per step whose failure a step catches. The inputs
//! that name the library's failure event take these instead.

use super::compile::event_row;
use super::draft::{EventDraft, StepDraft, TableDraft};
use super::{DependencyTable, EventIndex, StepIndex, StepRow};
use crate::event::{Event as _, Roles};
use crate::failure::StepFailed;
use crate::spec::InputKind;

impl TableDraft {
    /// Whether the step takes failures.
    pub(super) fn takes_failures(&self, step: &StepDraft) -> bool {
        let inputs = step.inputs.iter().filter(|input| input.triggers() && input.kind != InputKind::Gather);
        inputs.flat_map(|input| &input.events).any(|event| self.events[*event].roles.is_failure())
    }

    /// The steps whose failures this step catches: those it names, else every step that takes no failures.
    fn caught_by(&self, place: usize) -> Vec<usize> {
        let step = &self.steps[place];
        if !self.takes_failures(step) || step.on_end.is_some() {
            return Vec::new();
        }
        if !step.catches.is_empty() {
            return step.catches.clone();
        }
        // S31: the failure of a clean-up step is no event.
        let is_caught = |other: &StepDraft| other.on_end.is_none() && !self.takes_failures(other);
        (0..self.steps.len()).filter(|other| is_caught(&self.steps[*other])).collect()
    }
}

impl DependencyTable {
    /// Adds the internal events and lets the catching inputs take them.
    pub(super) fn take_failures(&mut self, draft: &TableDraft) {
        let caught: Vec<Vec<usize>> = (0..draft.steps.len()).map(|step| draft.caught_by(step)).collect();
        let mut is_caught = vec![false; self.steps.len()];
        caught.iter().flatten().for_each(|step| is_caught[*step] = true);
        for step in (0..is_caught.len()).filter(|step| is_caught[*step]) {
            self.add_failure(StepIndex::at(step));
        }
        for (step, caught) in caught.iter().enumerate().filter(|(_, caught)| !caught.is_empty()) {
            let failed: Vec<EventIndex> = caught.iter().filter_map(|step| self.steps[*step].failed).collect();
            self.hand_on(step, &failed);
        }
    }

    fn add_failure(&mut self, step: StepIndex) {
        let event = EventIndex::at(self.events.len());
        let name = format!("{}.failed", self.step(step).name);
        let draft = EventDraft::new(name.into(), Roles::NONE);
        let decode = Some(StepFailed::TYPE.decode);
        self.events.push(super::EventRow { fails: Some(step), decode, ..event_row(&draft) });
        self.steps[step.get()].failed = Some(event);
    }

    /// Replaces the library's failure event in the step's inputs by these events.
    fn hand_on(&mut self, step: usize, failed: &[EventIndex]) {
        let events = &self.events;
        for input in &mut self.steps[step].inputs {
            let is_failure = |event: &EventIndex| events[event.get()].roles.is_failure();
            if let Some(place) = input.events.iter().position(is_failure) {
                input.events.retain(|event| !is_failure(event));
                input.events.insert_many(place, failed.iter().copied());
            }
        }
    }
}

impl StepRow {
    /// The events that an execution can add to its own scope, its failure included. A fan-out adds the event
    /// that completes it; its items belong to the branches below.
    pub(super) fn emits_in_its_scope<'a>(
        &'a self,
        table: &'a DependencyTable,
    ) -> impl Iterator<Item = EventIndex> + 'a {
        let gathered = |of| table.fan_out(of).gathered;
        let emitted = self.outputs.iter().map(move |output| output.fan_out.map_or(output.event, gathered));
        emitted.chain(self.failed)
    }
}
