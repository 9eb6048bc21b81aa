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

use super::graph::{Graph, Stuck};

impl Graph<'_, '_> {
    /// Marks the steps that deadlock: one per circle, and none of the steps that wait for a circle.
    pub(super) const fn note_stuck(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            if self.steps.get(step).reached {
                step += 1;
                continue;
            }
            let blamed = self.to_blame(step);
            let stuck = match self.waits_for(blamed) {
                Some((event, emitter)) => Stuck::Behind { event, emitter },
                None => Stuck::Idle,
            };
            self.steps.row(blamed).stuck = Some(stuck);
            self.reach(blamed);
            self.follow();
        }
    }

    /// The step to report for an unreachable step. The search walks from each step to one that it waits for.
    /// It ends at a step that waits for none, or in a circle, of which it takes the first step in declaration
    /// order.
    const fn to_blame(&self, step: usize) -> usize {
        let (mut at, mut walked) = (step, 0);
        while walked < self.steps.len() {
            match self.waits_for(at) {
                Some((_, emitter)) => at = emitter,
                None => return at,
            }
            walked += 1;
        }
        let (start, mut first) = (at, at);
        while let Some((_, emitter)) = self.waits_for(at) {
            at = emitter;
            first = if at < first { at } else { first };
            if at == start {
                break;
            }
        }
        first
    }

    /// The first event that the step lacks, with a step that emits it.
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
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            let row = self.outputs.get(output);
            let direct = self.is_linked(row.event, input);
            let replied = match self.events.get(row.event).reply {
                Some(reply) => self.is_linked(reply, input),
                None => false,
            };
            let gathered = match row.fan_out {
                Some(fan_out) => self.is_linked(self.fan_outs.get(fan_out).gathered, input),
                None => false,
            };
            if direct || replied || gathered {
                return Some(row.event);
            }
            output += 1;
        }
        match self.steps.get(step).failed {
            Some(failed) if self.is_linked(failed, input) => Some(failed),
            _ => None,
        }
    }
}
