//! Deadlocks: steps that cannot run although every event they require has an emitter, since they wait for
//! each other.
//!
//! Example: `a` takes `B` and emits `A`, and `b` takes `A` and emits `B`. The first step of the circle gets
//! the message, and counts as reached from then on. So steps that wait for the circle get none.
//!
//! ```text
//!  a: takes B, emits A ──▶ A        the walk from `a`: a waits for b, b waits for a
//!    ▲                     │        ─▶ circle {a, b}, report `a`
//!    B ◀── b: takes A, emits B      c: takes B ─▶ waits for the circle, no message
//! ```
//!
//! Invariant: each round reaches at least one more step, so the search ends. The caller has searched from the given
//! events before. So a step that is left lacks an event that only other such steps emit, or all its optional ones.

use super::graph::{Fault, RuleGraph};
use super::nodes::Deadlock;

/// Which step comes after another.
#[derive(Clone, Copy)]
pub(super) enum Follow {
    /// One that it waits for.
    Waiting,
    /// One that it always triggers.
    Triggered,
}

impl RuleGraph<'_, '_> {
    /// Marks the steps that deadlock: one per circle, and none of the steps that wait for a circle.
    pub(super) const fn note_deadlocks(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            if self.steps.get(step).reached {
                step += 1;
                continue;
            }
            // `step` itself may only wait for a circle: then it is reached as a consequence, in this round or
            // a later one.
            let blamed = self.first_of_circle(step, Follow::Waiting);
            let deadlock = match self.waits_for(blamed) {
                // That it triggers itself has been said.
                Some((_, emitter)) if emitter == blamed && self.has_fault(blamed, Fault::Own(0)) => None,
                Some((event, emitter)) => Some(Deadlock::Behind { event, emitter }),
                // Required events without any emitter have a fault and count as filled, so only optional ones
                // are left.
                None => Some(Deadlock::Idle),
            };
            self.steps.row(blamed).deadlock = deadlock;
            // As if the mistake were repaired: steps behind it are judged by their own inputs.
            self.reach(blamed);
            self.follow();
        }
    }

    /// The walk has one way from each step, so it must run into a circle or end.
    const fn after(&self, step: usize, follow: Follow) -> Option<usize> {
        match follow {
            Follow::Triggered => self.next(step),
            Follow::Waiting => match self.waits_for(step) {
                Some((_, emitter)) => Some(emitter),
                None => None,
            },
        }
    }

    /// Goes from the step to the one after it, and so on. That ends in a circle or at a step that none comes after:
    /// the first step of the circle in the order of declaration, or that step.
    pub(super) const fn first_of_circle(&self, step: usize, follow: Follow) -> usize {
        let (mut at, mut walked) = (step, 0);
        while let (Some(next), true) = (self.after(at, follow), walked < self.steps.len()) {
            at = next;
            walked += 1;
        }
        // After as many moves as there are steps, the walk is on its circle or at its end.
        let (start, mut first) = (at, at);
        while let Some(next) = self.after(at, follow) {
            at = next;
            first = if at < first { at } else { first };
            if at == start {
                break;
            }
        }
        first
    }

    /// The first event that the step lacks, with a step that emits it. Required parameters come first. An optional one
    /// counts only if no required one is lacking: then the step waits for any of them.
    const fn waits_for(&self, step: usize) -> Option<(usize, usize)> {
        let inputs = self.steps.get(step).inputs;
        let mut input = inputs.start;
        let mut optional = None;
        while input < inputs.end {
            let row = self.inputs.get(input);
            if row.kind.takes_events() && !row.filled {
                let found = self.emitter_for(input);
                if !row.optional && found.is_some() {
                    return found;
                }
                optional = if optional.is_none() { found } else { optional };
            }
            input += 1;
        }
        optional
    }

    /// An event of the parameter, with the first unreachable step that emits it.
    const fn emitter_for(&self, input: usize) -> Option<(usize, usize)> {
        let mut step = 0;
        while step < self.steps.len() {
            // The event of a reached step occurs, so nothing can wait for it.
            if !self.steps.get(step).reached
                && let Some(event) = self.leads_to(step, input)
            {
                return Some((event, step));
            }
            step += 1;
        }
        None
    }

    /// The event by which the step fills the parameter: an output, a request for its reply, the item of a
    /// gathered fan-out, or the step's failure.
    const fn leads_to(&self, step: usize, input: usize) -> Option<usize> {
        let mut effect = 0;
        while effect < self.effects(step) {
            match self.effect(step, effect) {
                // A failure stands for itself; any other effect appears in the message as the output that
                // leads to it.
                Some(event) if self.is_linked(event, input) && effect == 0 => return Some(event),
                Some(event) if self.is_linked(event, input) => {
                    return Some(self.outputs.get(self.output_of(step, effect)).event);
                }
                _ => effect += 1,
            }
        }
        None
    }
}
