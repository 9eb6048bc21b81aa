//! The rules that no one place of a graph breaks: that runs begin, and that they end.

use super::graph::{Fault, Graph};
use super::mistake::Mistake;

impl<'n> Graph<'_, 'n> {
    /// Whether no run can begin, and no step with a mistake may have been meant to begin it.
    pub(super) const fn mistake_of_whole(&self) -> Option<Mistake<'n>> {
        let mut step = 0;
        while step < self.steps.len() {
            if self.is_open_to_all(step) || self.steps.get(step).stuck.is_some() {
                return None;
            }
            step += 1;
        }
        if self.has_taken_start() { None } else { Some(Mistake::NoStart) }
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

    const fn has_taken_start(&self) -> bool {
        let mut event = 0;
        while event < self.events.len() {
            let row = self.events.get(event);
            // Of an event type without a name, which the compiler has reported, anything can be true.
            if row.taken.is_some() && (row.roles.is_start() || row.name.is_empty()) {
                return true;
            }
            event += 1;
        }
        self.steps.len() == 0
    }

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

    pub(super) const fn has_stop(&self) -> bool {
        let mut event = 0;
        while event < self.events.len() {
            let row = self.events.get(event);
            if row.arrives && row.stops {
                return true;
            }
            event += 1;
        }
        self.steps.len() == 0
    }
}
