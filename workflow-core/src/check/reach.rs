//! Which events can be there in a run, and so which steps can run: everything that follows from the events
//! that open runs or are sent in. A mistake that is reported at its own place is taken as mended, so that it
//! is not reported again at every step behind it.

use super::graph::{Event, Graph};
use crate::input::InputKind;

impl Graph<'_, '_> {
    /// Finds out everything that the rules ask of the graph.
    pub(crate) const fn explore(&mut self) {
        self.note_emitters();
        self.link_inputs();
        self.match_gathers();
        if self.overflowed() {
            return;
        }
        self.excuse_mistakes();
        self.give_events();
        self.note_stuck();
    }

    const fn note_emitters(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            let outputs = self.steps.get(step).outputs;
            let mut output = outputs.start;
            while output < outputs.end {
                let event = self.outputs.get(output).event;
                self.events.row(event).last_emitter = Some(step);
                output += 1;
            }
            step += 1;
        }
    }

    /// Whether anything brings the event about.
    pub(super) const fn is_produced(&self, event: usize) -> bool {
        let row = self.events.get(event);
        let answered = match row.request {
            Some(request) => self.is_given(request) || self.events.get(request).last_emitter.is_some(),
            None => false,
        };
        row.last_emitter.is_some() || answered || self.is_given(event)
    }

    /// Whether nothing brings any event of the parameter about.
    pub(super) const fn is_unproduced(&self, input: usize) -> bool {
        let row = self.inputs.get(input);
        if matches!(row.kind, InputKind::Gather) {
            return !self.fits(input);
        }
        let mut member = row.members.start;
        while member < row.members.end {
            if self.is_produced(self.members.get(member).event) {
                return false;
            }
            member += 1;
        }
        row.kind.takes_events()
    }

    /// The first event of the parameter that ends runs.
    pub(super) const fn stop_of(&self, input: usize) -> Option<usize> {
        let row = self.inputs.get(input);
        let mut member = row.members.start;
        while member < row.members.end && row.kind.takes_events() {
            let event = self.members.get(member).event;
            if self.events.get(event).roles.is_stop() {
                return Some(event);
            }
            member += 1;
        }
        None
    }

    const fn excuse_mistakes(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            let inputs = self.steps.get(step).inputs;
            let (mut input, mut taking) = (inputs.start, 0);
            while input < inputs.end {
                self.excuse_input(input);
                taking += self.inputs.get(input).kind.takes_events() as usize;
                input += 1;
            }
            if taking == 0 || self.steps.get(step).unclear {
                self.reach(step);
            } else {
                self.reach_if_ready(step);
            }
            step += 1;
        }
    }

    const fn excuse_input(&mut self, input: usize) {
        let row = self.inputs.get(input);
        // That nothing brings it about is no mistake of an optional parameter, unless it is a gather.
        let reported = !row.optional || matches!(row.kind, InputKind::Gather);
        if self.stop_of(input).is_some() || reported && self.is_unproduced(input) {
            self.inputs.row(input).filled = true;
        }
    }

    const fn give_events(&mut self) {
        let mut event = 0;
        while event < self.events.len() {
            if self.is_given(event) {
                self.arrive(event);
            }
            event += 1;
        }
        self.follow();
    }

    /// Notes that the event can be there, and with a request its reply.
    const fn arrive(&mut self, event: usize) {
        let Event { arrives, reply, .. } = self.events.get(event);
        if arrives {
            return;
        }
        self.events.row(event).arrives = true;
        self.pending.push(event);
        if let Some(reply) = reply {
            self.arrive(reply);
        }
    }

    /// Follows the events that can be there to the steps that take them, and those to what they emit.
    pub(super) const fn follow(&mut self) {
        while let Some(event) = self.pending.pop() {
            let mut taken = self.events.get(event).taken;
            while let Some(member) = taken {
                let member = self.members.get(member);
                self.inputs.row(member.input).filled = true;
                self.reach_if_ready(member.step);
                taken = member.next;
            }
        }
    }

    const fn reach_if_ready(&mut self, step: usize) {
        if !self.steps.get(step).reached && self.is_ready(step) {
            self.reach(step);
        }
    }

    /// Whether everything that the step requires can be there, and something that triggers it.
    const fn is_ready(&self, step: usize) -> bool {
        let inputs = self.steps.get(step).inputs;
        let (mut input, mut filled) = (inputs.start, false);
        while input < inputs.end {
            let row = self.inputs.get(input);
            if row.kind.takes_events() && !row.filled && !row.optional {
                return false;
            }
            filled = filled || row.filled;
            input += 1;
        }
        filled
    }

    pub(super) const fn reach(&mut self, step: usize) {
        self.steps.row(step).reached = true;
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            let row = self.outputs.get(output);
            self.arrive(row.event);
            if let Some(fan_out) = row.fan_out {
                self.arrive(self.fan_outs.get(fan_out).gathered);
            }
            output += 1;
        }
    }
}
