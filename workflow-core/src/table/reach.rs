//! Which events can be emitted in a fan-out's own branch scope, and so which gathers fit it (S48).

use super::{DependencyTable, EventIndex, FanOutIndex, FanOutRow, InputRow, StepRow};
use crate::input::InputKind;

impl DependencyTable {
    /// Grows what each fan-out's branches can emit, and what each gather takes, until neither grows.
    pub(super) fn match_gathers(&mut self) {
        while self.grow_branches() | self.grow_gathers() {}
        for fan_out in 0..self.fan_outs.len() {
            self.note_carried(FanOutIndex::at(fan_out));
        }
    }

    fn grow_branches(&mut self) -> bool {
        let mut grew = false;
        for fan_out in 0..self.fan_outs.len() {
            let own = &self.fan_outs[fan_out].own;
            let running = self.steps.iter().filter(|step| takes_any(step, own));
            let emitted = running.flat_map(|step| self.emits_in_its_scope(step));
            let replies = own.iter().filter_map(|event| self.event(*event).reply);
            let new: Vec<EventIndex> = emitted.chain(replies).filter(|event| !own.contains(event)).collect();
            for event in new {
                if !self.fan_outs[fan_out].own.contains(&event) {
                    self.fan_outs[fan_out].own.push(event);
                    grew = true;
                }
            }
        }
        grew
    }

    /// A fan-out's items lie in branches below; what says that it is gathered lies in the step's scope.
    fn emits_in_its_scope<'a>(&'a self, step: &'a StepRow) -> impl Iterator<Item = EventIndex> + 'a {
        step.outputs.iter().map(|output| match output.fan_out {
            Some(fan_out) => self.fan_out(fan_out).gathered,
            None => output.event,
        })
    }

    fn grow_gathers(&mut self) -> bool {
        let fan_outs = &self.fan_outs;
        let gathers = self.steps.iter_mut().flat_map(|step| &mut step.inputs);
        gathers.filter(|input| input.kind == InputKind::Gather).fold(false, |grew, input| {
            let fitting = fan_outs.iter().filter(|fan_out| fits(input, fan_out));
            let gathered: Vec<EventIndex> = fitting.map(|fan_out| fan_out.gathered).collect();
            let grows = gathered.len() > input.events.len();
            input.events = gathered;
            grew | grows
        })
    }

    fn note_carried(&mut self, index: FanOutIndex) {
        let gathered = self.fan_out(index).gathered;
        let inputs = self.steps.iter().flat_map(|step| &step.inputs);
        let takers =
            inputs.filter(|input| input.kind == InputKind::Gather && input.events.contains(&gathered));
        let mut carried: Vec<EventIndex> = takers.filter_map(|input| input.gathered).collect();
        carried.sort_unstable();
        carried.dedup();
        for event in &carried {
            self.events[event.get()].carried = true;
        }
        self.fan_outs[index.get()].carried = carried;
    }

    /// Whether a fan-out's branches can end in a gather or a stop.
    pub(super) fn can_end(&self, fan_out: &FanOutRow) -> bool {
        let gathered = self.steps.iter().any(|step| takes_any(step, &[fan_out.gathered]));
        let stops = |fan_out: &FanOutRow| fan_out.own.iter().any(|event| self.event(*event).roles.is_stop());
        let below = fan_out.own.iter().filter_map(|event| self.event(*event).gathers);
        gathered || stops(fan_out) || below.into_iter().any(|inner| stops(self.fan_out(inner)))
    }
}

fn fits(input: &InputRow, fan_out: &FanOutRow) -> bool {
    input.gathered.is_some_and(|event| fan_out.own.contains(&event))
}

fn takes_any(step: &StepRow, events: &[EventIndex]) -> bool {
    step.inputs
        .iter()
        .filter(|input| input.kind.takes_events())
        .any(|input| input.events.iter().any(|event| events.contains(event)))
}
