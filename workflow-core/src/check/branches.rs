//! What the branches of a fan-out can hold, and so which gathers fit it and whether it can end (S48).

use super::graph::{Event, FanOut, Graph};
use crate::event::Roles;
use crate::input::InputKind;

impl Graph<'_, '_> {
    /// Lets every parameter of a step be found by the events that it takes.
    pub(super) const fn link_inputs(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            let inputs = self.steps.get(step).inputs;
            let mut input = inputs.start;
            while input < inputs.end {
                self.link_input(step, input);
                input += 1;
            }
            step += 1;
        }
    }

    const fn link_input(&mut self, step: usize, input: usize) {
        let row = self.inputs.get(input);
        // A gather is triggered by the event that says that it is due, not by those that it collects.
        if !row.kind.takes_events() || matches!(row.kind, InputKind::Gather) {
            return;
        }
        let mut member = row.members.start;
        while member < row.members.end {
            self.link(self.members.get(member).event, step, input);
            member += 1;
        }
    }

    /// Grows what each fan-out's branches can hold, and what each gather takes, until neither grows.
    pub(super) const fn match_gathers(&mut self) {
        self.open_fan_outs();
        if self.fan_outs.len() == 0 || self.overflowed() {
            return;
        }
        self.grow_branches();
        while self.link_gathers() {
            self.grow_branches();
        }
        let mut nested = 0;
        while nested < self.fan_outs.len() {
            self.note_stops();
            nested += 1;
        }
    }

    const fn open_fan_outs(&mut self) {
        let mut output = 0;
        while output < self.outputs.len() {
            if self.outputs.get(output).fan_out.is_some() {
                self.open_fan_out(output);
            }
            output += 1;
        }
        let cells = self.fan_outs.len() * self.events.len();
        while self.own.len() < cells && !self.own.overflowed {
            self.own.push(false);
        }
    }

    /// Adds the event that says that the fan-out is gathered.
    const fn open_fan_out(&mut self, output: usize) {
        let (index, item) = (self.fan_outs.len(), self.outputs.get(output).event);
        let event = Event { gathers: Some(index), ..Event::new("", Roles::NONE) };
        let gathered = self.events.push(event);
        self.outputs.row(output).fan_out = Some(index);
        self.fan_outs.push(FanOut { item, gathered, stops: false });
    }

    const fn grow_branches(&mut self) {
        let mut fan_out = 0;
        while fan_out < self.fan_outs.len() {
            self.grow_branch(fan_out);
            fan_out += 1;
        }
    }

    /// Follows the item to every step that takes it, from there to what that emits, and so on.
    const fn grow_branch(&mut self, fan_out: usize) {
        let mut event = 0;
        while event < self.events.len() {
            *self.own.row(fan_out * self.events.len() + event) = false;
            event += 1;
        }
        self.enter(fan_out, self.fan_outs.get(fan_out).item);
        while let Some(event) = self.pending.pop() {
            let mut taken = self.events.get(event).taken;
            while let Some(member) = taken {
                let member = self.members.get(member);
                self.enter_outputs(fan_out, member.step);
                taken = member.next;
            }
        }
    }

    const fn enter_outputs(&mut self, fan_out: usize, step: usize) {
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            let row = self.outputs.get(output);
            // A fan-out's items lie in branches below; that it is gathered is said in the step's own scope.
            let event = match row.fan_out {
                Some(inner) => self.fan_outs.get(inner).gathered,
                None => row.event,
            };
            self.enter(fan_out, event);
            output += 1;
        }
    }

    const fn enter(&mut self, fan_out: usize, event: usize) {
        let cell = fan_out * self.events.len() + event;
        if self.own.get(cell) {
            return;
        }
        *self.own.row(cell) = true;
        self.pending.push(event);
        if let Some(reply) = self.events.get(event).reply {
            self.enter(fan_out, reply);
        }
    }

    /// Whether a branch of the fan-out can have the event in its own scope.
    pub(super) const fn holds(&self, fan_out: usize, event: usize) -> bool {
        self.own.get(fan_out * self.events.len() + event)
    }

    /// Links each gather to the fan-outs that it fits, and says whether it found a new pair.
    const fn link_gathers(&mut self) -> bool {
        let (mut step, mut found) = (0, false);
        while step < self.steps.len() {
            let inputs = self.steps.get(step).inputs;
            let mut input = inputs.start;
            while input < inputs.end {
                if matches!(self.inputs.get(input).kind, InputKind::Gather) {
                    found = self.link_gather(step, input) || found;
                }
                input += 1;
            }
            step += 1;
        }
        found
    }

    const fn link_gather(&mut self, step: usize, input: usize) -> bool {
        let Some(event) = self.only_event(self.inputs.get(input)) else { return false };
        let (mut fan_out, mut found) = (0, false);
        while fan_out < self.fan_outs.len() {
            let gathered = self.fan_outs.get(fan_out).gathered;
            if self.holds(fan_out, event) && !self.is_linked(gathered, input) {
                self.link(gathered, step, input);
                found = true;
            }
            fan_out += 1;
        }
        found
    }

    pub(super) const fn is_linked(&self, event: usize, input: usize) -> bool {
        let mut taken = self.events.get(event).taken;
        while let Some(member) = taken {
            let member = self.members.get(member);
            if member.input == input {
                return true;
            }
            taken = member.next;
        }
        false
    }

    /// Whether the gather fits a fan-out.
    pub(super) const fn fits(&self, input: usize) -> bool {
        let mut fan_out = 0;
        while fan_out < self.fan_outs.len() {
            if self.is_linked(self.fan_outs.get(fan_out).gathered, input) {
                return true;
            }
            fan_out += 1;
        }
        false
    }

    /// Whether branches can end in a gather or a stop.
    pub(super) const fn ends(&self, fan_out: usize) -> bool {
        let row = self.fan_outs.get(fan_out);
        row.stops || self.events.get(row.gathered).taken.is_some()
    }

    /// Notes which branches can stop the run, knowing it of the branches below so far.
    const fn note_stops(&mut self) {
        let mut fan_out = 0;
        while fan_out < self.fan_outs.len() {
            let mut event = 0;
            while event < self.events.len() {
                if self.holds(fan_out, event) && self.stops(event) {
                    self.fan_outs.row(fan_out).stops = true;
                }
                event += 1;
            }
            fan_out += 1;
        }
    }

    const fn stops(&self, event: usize) -> bool {
        let row = self.events.get(event);
        match row.gathers {
            Some(fan_out) => self.fan_outs.get(fan_out).stops,
            None => row.roles.is_stop(),
        }
    }
}
