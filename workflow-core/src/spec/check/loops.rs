//! Endless loops: steps that always trigger each other, while nothing that follows can end the run.
//!
//! Example: `draft` always emits `Draft`, which `review` takes; `review` always emits `Notes`, which `draft`
//! takes. No stop event follows from either. If `review` returned an `EventSet` with a stop event, the loop
//! would have an exit.
//!
//! The search has two parts. First it removes every step that does not always trigger a remaining step, until
//! none can be removed. Then each remaining step lies in a loop or leads to one. Such a loop is endless if no
//! event that can follow from it ends the run, not even sometimes.
//!
//! ```text
//!  draft ─ Draft ─▶ review ─ Notes ─▶ draft        both remain, and no stop event follows: endless
//!                      └─ or Done (stop)            `Done` triggers no step, so `review` is removed, then `draft`
//! ```
//!
//! Invariant: any doubt removes a step. A precondition, `max_executions`, an optional output, a reply from outside or
//! the settling of branches may break a loop, so no loop with one of them is reported.

use super::deadlock::Follow;
use super::graph::{RuleGraph, Step};
use super::names::Names;
use crate::spec::InputKind;

impl<'n> RuleGraph<'_, 'n> {
    /// Marks the first step of each endless loop. A step with `#[step(loops)]` may leave the end of the run
    /// to other steps, so it belongs to no loop.
    pub(super) const fn note_loops(&mut self) {
        // From above: the largest set in which each step always triggers another is left.
        self.assume_endless();
        while self.drop_ending() {}
        let mut step = 0;
        while step < self.steps.len() {
            if self.steps.get(step).endless && !self.leads_to_stop(step) {
                // `step` may only lead to the loop. The message stands at the first step of the circle
                // itself.
                let first = self.first_of_circle(step, Follow::Triggered);
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
                    // The last emitter is enough: a loop must have an edge that leads back, or to the same
                    // step.
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
            let &Step { loops, deadlock, disjoint, .. } = self.steps.get(step);
            self.steps.row(step).endless = !loops && deadlock.is_none() && disjoint.is_none();
            step += 1;
        }
    }

    /// Removes the steps that trigger none of the remaining steps in every execution. Returns whether it
    /// removed any.
    const fn drop_ending(&mut self) -> bool {
        let (mut step, mut dropped) = (self.steps.len(), false);
        // Backwards, since steps mostly trigger later ones: then one pass removes a whole chain.
        while step > 0 {
            step -= 1;
            if self.steps.get(step).endless && self.next(step).is_none() {
                self.steps.row(step).endless = false;
                dropped = true;
            }
        }
        dropped
    }

    /// Another step without an end that every execution of this one triggers; where it chooses among events, one
    /// that the first of these triggers. That a step triggers itself is said elsewhere.
    pub(super) const fn next(&self, step: usize) -> Option<usize> {
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            let row = self.outputs.get(output);
            // An alternative of an `EventSet` is no certain event, but one of them all is.
            let choices = if row.always && row.fan_out.is_none() { 1 } else { row.choices };
            if choices > 0 && self.all_go_on(step, output, choices) {
                return self.goes_on(step, row.event);
            }
            output += 1;
        }
        None
    }

    /// Whether each of these alternatives triggers a remaining step.
    const fn all_go_on(&self, step: usize, first: usize, choices: usize) -> bool {
        let mut output = first;
        while output < first + choices {
            if self.goes_on(step, self.outputs.get(output).event).is_none() {
                return false;
            }
            output += 1;
        }
        true
    }

    /// The first other step without an end that runs at every event of the type.
    const fn goes_on(&self, step: usize, event: usize) -> Option<usize> {
        let (mut taken, mut first) = (self.events.get(event).taken, None);
        while let Some(member) = taken {
            let member = self.members.get(member);
            // The list of takers is in reverse order, and the message has the order of declaration.
            let is_first = match first {
                Some(first) => member.step < first,
                None => true,
            };
            let is_other = member.step != step && self.steps.get(member.step).endless;
            if is_first && is_other && self.always_runs(member.step, member.input) {
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

    /// The names of the steps in the loop that begins with this one. The bound on their number ends the walk also where
    /// a step chooses among loops, and the way from it leads into another one.
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
    /// Marks where the walk came from, so that an event is walked once.
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

    /// Whether anything that follows from the step, be it only sometimes, ends the run. The effects of a step that may
    /// have been meant to take any event are assumed to follow.
    const fn leads_to_stop(&mut self, step: usize) -> bool {
        // Each question walks anew: the marks of the question before would cut this walk short.
        self.forget_walk();
        self.pend_effects(step);
        let mut other = 0;
        while other < self.steps.len() {
            if self.is_open_to_all(other) {
                self.pend_effects(other);
            }
            other += 1;
        }
        let mut stops = false;
        while let Some(event) = self.pending.pop() {
            stops = stops || self.events.get(event).stops;
            let mut taken = self.events.get(event).taken;
            while let Some(member) = taken {
                let member = *self.members.get(member);
                if !self.steps.get(member.step).walked {
                    self.pend_effects(member.step);
                }
                taken = member.next;
            }
        }
        stops
    }

    /// Adds all events that can follow from the step, its failure and replies included.
    const fn pend_effects(&mut self, step: usize) {
        self.steps.row(step).walked = true;
        let mut effect = 0;
        while effect < self.effects(step) {
            if let Some(event) = self.effect(step, effect) {
                self.pend(event, step);
            }
            effect += 1;
        }
    }
}
