//! The two rules about a workflow as a whole: its runs can begin, and its runs can complete.
//!
//! Invariant: one mistake, one message. A step with a mistake may be the one that was meant to begin or to
//! end the runs, so in doubt both rules say nothing.
//!
//! Example: the only step takes `Begin`, which lacks `#[event(start)]`. The parameter has the message that
//! nothing produces `Begin`, and the workflow has none.

use super::graph::{Fault, RuleGraph, Wanted};
use super::mistake::Mistake;

impl<'n> RuleGraph<'_, 'n> {
    /// Whether no run can begin, and no step with a mistake may have been meant to begin it.
    pub(super) const fn mistake_of_whole(&self) -> Option<Mistake<'n>> {
        let mut step = 0;
        while step < self.steps.len() {
            if self.is_open_to_all(step) || self.steps.get(step).deadlock.is_some() {
                return None;
            }
            step += 1;
        }
        if self.steps.len() == 0 || self.first(Wanted::TakenStart).is_some() {
            None
        } else {
            Some(Mistake::NoStart)
        }
    }

    /// Whether no run can complete: not where it is unclear what steps emit.
    pub(super) const fn mistake_of_end(&self) -> Option<Mistake<'n>> {
        match self.mistake_of_output_type() {
            None if !self.unclear && !self.has_stop() => Some(Mistake::NoStop),
            mistake => mistake,
        }
    }

    /// Whether the step may have been meant to take any event: nothing is known of a parameter, nothing brings about
    /// what it takes, or it takes nothing.
    pub(super) const fn is_open_to_all(&self, step: usize) -> bool {
        self.steps.get(step).unclear || !self.takes_events(step) || self.has_fault(step, Fault::Unproduced)
    }

    /// Whether the compiler has reported a parameter of some step.
    pub(super) const fn has_unclear_step(&self) -> bool {
        let mut step = 0;
        while step < self.steps.len() {
            if self.steps.get(step).unclear {
                return true;
            }
            step += 1;
        }
        false
    }

    /// Whether a stop event can occur. A workflow without steps gets no message about it.
    pub(super) const fn has_stop(&self) -> bool {
        self.steps.len() == 0 || self.first(Wanted::Stop).is_some()
    }
}
