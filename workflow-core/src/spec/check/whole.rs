//! The two rules about a workflow as a whole: its runs can begin, and its runs can complete.

use super::graph::Graph;
use super::mistake::Mistake;

impl<'n> Graph<'_, 'n> {
    /// The mistake of a workflow whose runs can never begin. Evaluated only if no step has a mistake.
    pub(crate) const fn mistake_of_whole(&self) -> Option<Mistake<'n>> {
        if self.has_taken_start() { None } else { Some(Mistake::NoStart) }
    }

    /// The mistake of a workflow whose runs can never complete.
    pub(crate) const fn mistake_of_end(&self) -> Option<Mistake<'n>> {
        if self.has_stop() { None } else { Some(Mistake::NoStop) }
    }

    /// Whether a step takes a start event, or some unclear step may.
    pub(super) const fn has_taken_start(&self) -> bool {
        let mut event = 0;
        while event < self.events.len() {
            let row = self.events.get(event);
            // Of an event type without a name, which the compiler has reported, anything can be true.
            if row.taken.is_some() && (row.roles.is_start() || row.name.is_empty()) {
                return true;
            }
            event += 1;
        }
        self.steps.len() == 0 || self.has_unclear_step()
    }

    const fn has_unclear_step(&self) -> bool {
        let mut step = 0;
        while step < self.steps.len() {
            if self.steps.get(step).unclear {
                return true;
            }
            step += 1;
        }
        false
    }

    /// Whether a stop event can occur.
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
