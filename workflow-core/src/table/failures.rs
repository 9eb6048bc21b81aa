//! Failures as events (S29): one event type per step whose failure some step catches, taken by the inputs that
//! name the library's own.

use super::compile::event_row;
use super::draft::{EventDraft, StepDraft, TableDraft};
use super::{DependencyTable, EventIndex, StepIndex, StepRow};
use crate::event::{Event as _, Roles};
use crate::failure::StepFailed;
use crate::spec::InputKind;

impl TableDraft {
    /// Whether the step takes failures at all.
    pub(super) fn takes_failures(&self, step: &StepDraft) -> bool {
        let takes = |kind: InputKind| kind.takes_events() && kind != InputKind::Gather;
        let inputs = step.inputs.iter().filter(|input| takes(input.kind));
        inputs.flat_map(|input| &input.events).any(|event| self.events[*event].roles.is_failure())
    }

    /// The steps whose failures the step takes: those it names, or all but itself and others that take failures.
    fn caught_by(&self, place: usize) -> Vec<usize> {
        let step = &self.steps[place];
        if !self.takes_failures(step) {
            return Vec::new();
        }
        if !step.catches.is_empty() {
            return step.catches.clone();
        }
        (0..self.steps.len()).filter(|other| !self.takes_failures(&self.steps[*other])).collect()
    }
}

impl DependencyTable {
    /// Adds the events and hands them to the inputs that take them.
    pub(super) fn take_failures(&mut self, draft: &TableDraft) {
        let caught: Vec<Vec<usize>> = (0..draft.steps.len()).map(|step| draft.caught_by(step)).collect();
        for step in 0..self.steps.len() {
            if caught.iter().any(|steps| steps.contains(&step)) {
                self.add_failure(StepIndex::at(step));
            }
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

    /// Where an input names the library's event, these stand in its place.
    fn hand_on(&mut self, step: usize, failed: &[EventIndex]) {
        let events = &self.events;
        for input in &mut self.steps[step].inputs {
            let is_failure = |event: &EventIndex| events[event.get()].roles.is_failure();
            if let Some(place) = input.events.iter().position(is_failure) {
                input.events.retain(|event| !is_failure(event));
                input.events.splice(place..place, failed.iter().copied());
            }
        }
    }
}

impl StepRow {
    /// What its executions can leave in the scope that they run in, be it that they fail. A fan-out's items lie in
    /// branches below; what says that it is gathered lies in the step's own scope.
    pub(super) fn emits_in_its_scope<'a>(
        &'a self,
        table: &'a DependencyTable,
    ) -> impl Iterator<Item = EventIndex> + 'a {
        let gathered = |of| table.fan_out(of).gathered;
        let emitted = self.outputs.iter().map(move |output| output.fan_out.map_or(output.event, gathered));
        emitted.chain(self.failed)
    }
}
