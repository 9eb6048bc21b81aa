//! Endless loops: steps that always trigger each other, while nothing that follows can end the run.
//!
//! Example: `draft` always emits `Draft`, which `review` takes; `review` always emits `Notes`, which `draft`
//! takes. No stop event follows from either. If `review` returned an `EventSet` with a stop event, the loop
//! would have an exit.
//!
//! The search has two parts. First it removes every step that does not always trigger a remaining step, until
//! none can be removed. Then each remaining step lies in a loop or leads to one. Such a loop is endless if no
//! event that can follow from it ends the run, not even sometimes.

use super::graph::Graph;
use super::names::Names;
use crate::spec::InputKind;

impl<'n> Graph<'_, 'n> {
    /// Marks the first step of each endless loop. A step with `#[step(loops)]` may leave the end of the run
    /// to other steps, so it belongs to no loop.
    pub(super) const fn note_loops(&mut self) {
        self.assume_endless();
        while self.drop_ending() {}
        let mut step = 0;
        while step < self.steps.len() {
            if self.steps.get(step).endless && !self.leads_to_stop(step) {
                let first = self.first_of_loop(step);
                self.steps.row(first).begins_loop = true;
            }
            step += 1;
        }
    }

    /// Whether a step is triggered by itself or by a later step, as happens in every loop. Most workflows
    /// need no further search.
    pub(super) const fn may_loop(&self) -> bool {
        let mut step = 0;
        while step < self.steps.len() {
            if self.is_triggered_from_behind(step) {
                return true;
            }
            step += 1;
        }
        false
    }

    /// Whether the step takes an event that itself or a later step emits.
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

    /// Starts with every step that is not declared to loop.
    const fn assume_endless(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            self.steps.row(step).endless = !self.steps.get(step).loops;
            step += 1;
        }
    }

    /// Removes the steps that trigger none of the remaining steps in every execution. Returns whether it
    /// removed any.
    const fn drop_ending(&mut self) -> bool {
        let (mut step, mut dropped) = (self.steps.len(), false);
        while step > 0 {
            step -= 1;
            if self.steps.get(step).endless && self.next(step).is_none() {
                self.steps.row(step).endless = false;
                dropped = true;
            }
        }
        dropped
    }

    /// A remaining step that every execution of this one triggers. Where the step chooses among events, the
    /// one that the first of them triggers.
    const fn next(&self, step: usize) -> Option<usize> {
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            let row = self.outputs.get(output);
            let choices = if row.always && row.fan_out.is_none() { 1 } else { row.choices };
            if choices > 0 && self.all_go_on(output, choices) {
                return self.goes_on(row.event);
            }
            output += 1;
        }
        None
    }

    /// Whether each of these alternatives triggers a remaining step.
    const fn all_go_on(&self, first: usize, choices: usize) -> bool {
        let mut output = first;
        while output < first + choices {
            if self.goes_on(self.outputs.get(output).event).is_none() {
                return false;
            }
            output += 1;
        }
        true
    }

    /// The first remaining step that runs at every event of the type.
    const fn goes_on(&self, event: usize) -> Option<usize> {
        let (mut taken, mut first) = (self.events.get(event).taken, None);
        while let Some(member) = taken {
            let member = self.members.get(member);
            let is_first = match first {
                Some(first) => member.step < first,
                None => true,
            };
            if is_first && self.steps.get(member.step).endless && self.always_runs(member.step, member.input)
            {
                first = Some(member.step);
            }
            taken = member.next;
        }
        first
    }

    /// Whether the step runs at every event that this parameter gets.
    const fn always_runs(&self, step: usize, input: usize) -> bool {
        let row = self.steps.get(step);
        // A fixed list fires once; a reply is the outside's to give, and a gather waits for branches to
        // settle.
        let retriggers = matches!(self.inputs.get(input).kind, InputKind::One | InputKind::List);
        retriggers && row.precondition.is_none() && row.limit.is_none() && !row.unclear
    }

    /// The first step in declaration order of the loop that this step leads to.
    const fn first_of_loop(&self, step: usize) -> usize {
        let (mut at, mut walked) = (step, 0);
        while let (Some(next), true) = (self.next(at), walked < self.steps.len()) {
            at = next;
            walked += 1;
        }
        let (start, mut first) = (at, at);
        while let Some(next) = self.next(at) {
            at = next;
            first = if at < first { at } else { first };
            if at == start {
                break;
            }
        }
        first
    }

    /// The names of the steps in the loop that begins with this one.
    pub(super) const fn loop_from(&self, step: usize) -> Names<'n> {
        let (mut names, mut at) = (Names::NONE, step);
        loop {
            names.push(self.steps.get(at).name);
            match self.next(at) {
                Some(next) if next != step && names.count() < self.steps.len() => at = next,
                _ => return names,
            }
        }
    }

    /// Adds an event to the walk, once.
    const fn pend(&mut self, event: usize, from: usize) {
        if self.events.get(event).from.is_none() {
            self.events.row(event).from = Some(from);
            self.pending.push(event);
        }
    }

    /// Resets the marks of an earlier walk.
    const fn forget_walk(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            self.steps.row(step).walked = false;
            step += 1;
        }
        let mut event = 0;
        while event < self.events.len() {
            self.events.row(event).from = None;
            event += 1;
        }
    }

    /// Whether any event that can follow from the step ends the run.
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

    /// Adds all events that can follow from the step, its failure and replies included.
    const fn pend_possible(&mut self, step: usize) {
        self.steps.row(step).walked = true;
        if let Some(failed) = self.steps.get(step).failed {
            self.pend(failed, step);
        }
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
