//! Loops of steps that always trigger each other, and from which nothing leads to the end of the run.

use super::graph::{Graph, Step};
use super::names::Names;
use crate::input::InputKind;

impl<'n> Graph<'_, 'n> {
    /// The steps of the first loop with no way out. One that says that it is meant to loop can leave it to
    /// others to end the run.
    pub(super) const fn endless_loop(&mut self) -> Option<Names<'n>> {
        let mut step = 0;
        while step < self.steps.len() {
            if self.is_triggered_from_behind(step)
                && let Some(last) = self.returns_to(step)
            {
                let steps = self.path_to(last);
                let is_meant = self.is_meant(last);
                if !is_meant && !self.leads_to_stop(step) {
                    return Some(steps);
                }
            }
            step += 1;
        }
        None
    }

    /// Whether a step from this one on in the order of declaration always triggers it, as one of every loop
    /// does: most steps need no further look.
    const fn is_triggered_from_behind(&self, step: usize) -> bool {
        let inputs = self.steps.get(step).inputs;
        let mut input = inputs.start;
        while input < inputs.end {
            let members = self.inputs.get(input).members;
            let mut member = members.start;
            while member < members.end {
                let event = self.members.get(member).event;
                if let Some(emitter) = self.events.get(event).last_emitter
                    && emitter >= step
                {
                    return true;
                }
                member += 1;
            }
            input += 1;
        }
        false
    }

    /// The last step of a loop that begins with this one and in which each step always triggers the next, if
    /// there is one. A loop is found at the first of its steps.
    const fn returns_to(&mut self, step: usize) -> Option<usize> {
        self.forget_walk();
        self.pend_always(step);
        while let Some(event) = self.pending.pop() {
            let from = self.events.get(event).from;
            let mut taken = self.events.get(event).taken;
            while let Some(member) = taken {
                let member = self.members.get(member);
                taken = member.next;
                if self.always_runs(member.step, member.input) {
                    if member.step == step {
                        self.pending.clear();
                        return from;
                    }
                    self.walk_to(member.step, from, step);
                }
            }
        }
        None
    }

    const fn walk_to(&mut self, step: usize, from: Option<usize>, start: usize) {
        if step > start && !self.steps.get(step).walked {
            self.steps.row(step).from = from;
            self.pend_always(step);
        }
    }

    /// Whether the step runs at every event that arrives for this parameter.
    const fn always_runs(&self, step: usize, input: usize) -> bool {
        let row = self.steps.get(step);
        // A fixed list fires once; a reply is the outside's to give, and a gather waits for branches to
        // settle.
        let retriggers = matches!(self.inputs.get(input).kind, InputKind::One | InputKind::List);
        retriggers && row.precondition.is_none() && !row.limited && !row.unclear
    }

    const fn pend_always(&mut self, step: usize) {
        self.steps.row(step).walked = true;
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            let row = self.outputs.get(output);
            if row.always && row.fan_out.is_none() {
                self.pend(row.event, step);
            }
            output += 1;
        }
    }

    const fn pend(&mut self, event: usize, from: usize) {
        if self.events.get(event).from.is_none() {
            self.events.row(event).from = Some(from);
            self.pending.push(event);
        }
    }

    const fn forget_walk(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            self.steps.row(step).walked = false;
            self.steps.row(step).from = None;
            step += 1;
        }
        let mut event = 0;
        while event < self.events.len() {
            self.events.row(event).from = None;
            event += 1;
        }
    }

    /// The names of the steps that the walk came by.
    const fn path_to(&self, last: usize) -> Names<'n> {
        let (mut names, mut left) = (Names::NONE, self.steps_before(last) + 1);
        while left > 0 {
            left -= 1;
            let (mut at, mut back) = (last, left);
            while let (Some(from), true) = (self.steps.get(at).from, back > 0) {
                at = from;
                back -= 1;
            }
            names.push(self.steps.get(at).name);
        }
        names
    }

    const fn steps_before(&self, last: usize) -> usize {
        let (mut at, mut count) = (last, 0);
        while let Some(from) = self.steps.get(at).from {
            at = from;
            count += 1;
        }
        count
    }

    /// Whether a step that the walk came by says that it is meant to loop.
    const fn is_meant(&self, last: usize) -> bool {
        let mut at = last;
        loop {
            let Step { loops, from, .. } = self.steps.get(at);
            match from {
                _ if *loops => return true,
                Some(from) => at = *from,
                None => return false,
            }
        }
    }

    /// Whether anything that follows from the step, be it only sometimes, ends the run.
    const fn leads_to_stop(&mut self, step: usize) -> bool {
        self.forget_walk();
        self.pend_possible(step);
        let mut stops = false;
        while let Some(event) = self.pending.pop() {
            stops = stops || self.events.get(event).stops;
            let mut taken = self.events.get(event).taken;
            while let Some(member) = taken {
                let member = *self.members.get(member);
                if !self.steps.get(member.step).walked {
                    self.pend_possible(member.step);
                }
                taken = member.next;
            }
        }
        stops
    }

    const fn pend_possible(&mut self, step: usize) {
        self.steps.row(step).walked = true;
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            let row = *self.outputs.get(output);
            self.pend(row.event, step);
            if let Some(fan_out) = row.fan_out {
                self.pend(self.fan_outs.get(fan_out).gathered, step);
            }
            if let Some(reply) = self.events.get(row.event).reply {
                self.pend(reply, step);
            }
            output += 1;
        }
    }
}
