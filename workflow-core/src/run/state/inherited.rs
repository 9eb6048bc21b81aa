//! A rewound state takes over from the later state of the same run, whose last batches are in no journal.
//! See [`rewind`](crate::run::rewind).

use super::{Effect, EffectKind, RunState};
use crate::store::Position;

impl RunState {
    /// Takes from the later state what no journal has: limits, start times, active time. `end` is the end of
    /// the journal with the entries that follow from this state. No effect begins before the store has that
    /// much.
    pub(in crate::run) fn inherit(&mut self, later: &Self, end: Position) {
        self.limit(later.limits());
        self.trace.inherit(&later.trace);
        self.active = later.active;
        self.position = end;
        self.effects.postpone(end);
    }

    /// Replaces each effect by what `change` returns, or removes it.
    pub(in crate::run) fn change_effects(
        &mut self,
        mut change: impl FnMut(&Self, EffectKind) -> Option<EffectKind>,
    ) {
        let mut effects = std::mem::take(&mut self.effects);
        while let Some(Effect { after, begins }) = effects.pop_front() {
            if let Some(begins) = change(self, begins) {
                self.effects.push_back(Effect { after, begins });
            }
        }
    }
}
