//! A rewound state takes over from the later state of the same run, whose last batches are in no journal.
//! See [`rewind`](crate::run::rewind).
//!
//! Invariant: the rewound state has its log, its executions and its decisions from the journal. Only facts that
//! no journal has come from the later state: when attempts began and which were lost, how long the run was active, and the engine's
//! limits.
//!
//! Example: `fetch` began its second attempt before the rewind. A journal has the failure of the first one,
//! and not this begin. The trace takes it over, so the failure of the second attempt is counted as such.

use super::{Effect, EffectKind, RunState};
use crate::store::Position;

impl RunState {
    /// Takes from the later state what no journal has: limits, start times, active time. `end` is the end of
    /// the journal with the entries that follow from this state. No effect begins before the store has that
    /// much.
    pub(in crate::run) fn inherit(&mut self, later: &Self, end: Position) {
        // The journal was replayed without limits; from here on those of the engine hold again.
        self.limit(later.limits());
        self.trace.inherit(&later.trace);
        self.active = later.active;
        self.lives.inherit_begun_before(&later.lives);
        // Of those that this state does not have, the numbers may go to others.
        let lost = later.lives.lost().filter(|execution| self.scheduler.is_running(*execution));
        lost.collect::<Vec<_>>().into_iter().for_each(|execution| self.lives.lose(execution));
        self.position = end;
        self.effects.postpone(end);
    }

    /// Replaces each effect by what `change` returns, or removes it.
    pub(in crate::run) fn change_effects(
        &mut self,
        mut change: impl FnMut(&Self, EffectKind) -> Option<EffectKind>,
    ) {
        // Taken out, so that `change` can read the rest of the state.
        let mut effects = std::mem::take(&mut self.effects);
        while let Some(Effect { after, begins }) = effects.pop_front() {
            if let Some(begins) = change(self, begins) {
                self.effects.push_back(Effect { after, begins });
            }
        }
    }
}
