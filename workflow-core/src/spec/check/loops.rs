//! Endless loops: steps that always trigger each other, while nothing that follows can end the run.
//!
//! Example: `draft` always emits `Draft`, which `review` takes; `review` always emits `Notes`, which `draft`
//! takes. No stop event follows from either. If `review` returned an `EventSet` with a stop event, the loop
//! would have an exit.
//!
//! The search has two parts. First it removes every step that does not always trigger a remaining step, until
//! none can be removed, in the order of `order`. Then each remaining step lies in a loop or leads to one. Such a loop is endless if no
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
use super::graph::{Output, RuleGraph};
use super::names::Names;
use super::nodes::{Event, Step, Triggers};
use super::order::Node;
use crate::spec::InputKind;

/// How many outputs from this one on are alternatives of which every execution emits one. An alternative of an `EventSet` is
/// no certain event, but one of them all is.
const fn choices(output: &Output) -> usize {
    if output.always && output.fan_out.is_none() { 1 } else { output.choices }
}

impl Triggers {
    /// With this step too.
    const fn and(self, step: usize) -> Self {
        match self {
            Self::None => Self::One(step),
            Self::One(known) if known == step => self,
            _ => Self::Several,
        }
    }

    /// Whether there is a step other than this one.
    const fn other_than(self, step: usize) -> bool {
        match self {
            Self::None => false,
            Self::One(known) => known != step,
            Self::Several => true,
        }
    }

    /// Whether both are the same. Steps are only removed, so one step is never replaced by another.
    const fn is(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::None, Self::None) | (Self::One(_), Self::One(_)) | (Self::Several, Self::Several)
        )
    }
}

impl<'n> RuleGraph<'_, 'n> {
    /// Marks the first step of each endless loop. A step with `#[step(loops)]` may leave the end of the run
    /// to other steps, so it belongs to no loop.
    pub(super) const fn note_loops(&mut self) {
        // From above: the largest set in which each step always triggers another is left.
        self.put_in_order();
        self.assume_endless();
        // Backwards first, since a step that triggers nothing may be all that another one triggers.
        let mut forwards = false;
        while self.drop_ending(forwards) {
            forwards = !forwards;
        }
        while self.note_ways_to_stop(forwards) {
            forwards = !forwards;
        }
        let mut step = if self.any_leads_to_stop() { self.steps.len() } else { 0 };
        while step < self.steps.len() {
            if self.steps.get(step).endless && !self.steps.get(step).leads_to_stop {
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
        let mut event = 0;
        while event < self.events.len() {
            self.events.row(event).triggers = Triggers::Several;
            event += 1;
        }
    }

    /// Removes the steps that trigger none of the remaining steps in every execution. Returns whether anything
    /// changed.
    const fn drop_ending(&mut self, forwards: bool) -> bool {
        let (mut place, mut changed) = (0, false);
        while place < self.order.len() {
            match self.node(place, forwards) {
                Node::Event(event) => changed |= self.note_triggers(event),
                Node::Step(step) if self.steps.get(step).endless && !self.goes_on_always(step) => {
                    self.steps.row(step).endless = false;
                    changed = true;
                }
                Node::Step(_) => {}
            }
            place += 1;
        }
        changed
    }

    /// Stores which steps without an end an event always triggers. Returns whether that is new.
    const fn note_triggers(&mut self, event: usize) -> bool {
        let &Event { mut taken, triggers: known, .. } = self.events.get(event);
        let mut triggers = Triggers::None;
        while let Some(member) = taken {
            let member = *self.members.get(member);
            if self.steps.get(member.step).endless && self.always_runs(member.step, member.input) {
                triggers = triggers.and(member.step);
            }
            taken = member.next;
        }
        self.events.row(event).triggers = triggers;
        !triggers.is(known)
    }

    /// Whether every execution triggers another step without an end, by what is stored of its events.
    const fn goes_on_always(&self, step: usize) -> bool {
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            let choices = choices(self.outputs.get(output));
            let (mut choice, mut all_go_on) = (output, choices > 0);
            while choice < output + choices && all_go_on {
                let event = self.outputs.get(choice).event;
                all_go_on = self.events.get(event).triggers.other_than(step);
                choice += 1;
            }
            if all_go_on {
                return true;
            }
            output += 1;
        }
        false
    }

    /// Another step without an end that every execution of this one triggers; where it chooses among events, one
    /// that the first of these triggers. That a step triggers itself is said elsewhere.
    pub(super) const fn next(&self, step: usize) -> Option<usize> {
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            let row = self.outputs.get(output);
            let choices = choices(row);
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

    /// Marks the events and steps from which something that ends the run follows, be it only sometimes. Returns whether
    /// any mark is new.
    const fn note_ways_to_stop(&mut self, forwards: bool) -> bool {
        let (mut place, mut grew) = (0, false);
        while place < self.order.len() {
            match self.node(place, forwards) {
                Node::Event(event) if !self.events.get(event).leads_to_stop => {
                    let leads = self.event_leads_to_stop(event);
                    self.events.row(event).leads_to_stop = leads;
                    grew |= leads;
                }
                Node::Step(step) if !self.steps.get(step).leads_to_stop => {
                    let leads = self.step_leads_to_stop(step);
                    self.steps.row(step).leads_to_stop = leads;
                    grew |= leads;
                }
                _ => {}
            }
            place += 1;
        }
        grew
    }

    const fn event_leads_to_stop(&self, event: usize) -> bool {
        let &Event { stops, mut taken, .. } = self.events.get(event);
        while let Some(member) = taken {
            let member = self.members.get(member);
            if self.steps.get(member.step).leads_to_stop {
                return true;
            }
            taken = member.next;
        }
        stops
    }

    /// By any event that can follow from the step, its failure and replies included.
    const fn step_leads_to_stop(&self, step: usize) -> bool {
        let mut effect = 0;
        while effect < self.effects(step) {
            if let Some(event) = self.effect(step, effect)
                && self.events.get(event).leads_to_stop
            {
                return true;
            }
            effect += 1;
        }
        false
    }

    /// Whether a step that may have been meant to take any event leads to a stop. Its effects are assumed to follow from
    /// each step.
    const fn any_leads_to_stop(&self) -> bool {
        let mut step = 0;
        while step < self.steps.len() {
            if self.steps.get(step).leads_to_stop && self.is_open_to_all(step) {
                return true;
            }
            step += 1;
        }
        false
    }
}
