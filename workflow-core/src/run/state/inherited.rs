//! A state that takes the place of a later one of the same run, whose last batches are in no journal.

use super::{Begins, Effect, RunState};
use crate::store::Position;

impl RunState {
    /// Takes from the later state what no journal says. The journal ends here with what follows from this state; nothing
    /// begins before it is written.
    pub(in crate::run) fn inherit(&mut self, later: &Self, end: Position) {
        self.limit(later.limits());
        self.trace.inherit(&later.trace);
        self.active = later.active;
        self.position = end;
        self.effects.postpone(end);
    }

    /// Puts something in the place of each effect, or leaves it out.
    pub(in crate::run) fn change_effects(&mut self, mut change: impl FnMut(&Self, Begins) -> Option<Begins>) {
        let mut effects = std::mem::take(&mut self.effects);
        while let Some(Effect { after, begins }) = effects.pop_front() {
            if let Some(begins) = change(self, begins) {
                self.effects.push_back(Effect { after, begins });
            }
        }
    }
}
