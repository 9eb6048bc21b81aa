//! The records of a pause (S61).

use std::sync::Arc;

use super::{Replay, ReplayResult};
use crate::run::state::{Batch, PauseStart};
use crate::store::Record;

impl Replay {
    /// Takes the begin or the end of a pause, or that nothing runs in it.
    pub(super) fn paused(&mut self, record: &Record) -> ReplayResult {
        match record {
            Record::RunPaused { by_parent, running, dropped, origin, at } => {
                let (by_parent, running, dropped) = (*by_parent, running.clone(), dropped.clone());
                let origin = origin.clone().map(Arc::new);
                self.apply(Batch::Paused(Box::new(PauseStart { by_parent, running, dropped, origin })), *at)?;
                // Effects that were deferred follow again with the end of the pause.
                let state = &self.state;
                self.effects.retain(|effect| state.is_wanted(&effect.begins));
            }
            Record::RunUnpaused { by_parent, origin, at } => {
                let (by_parent, origin) = (*by_parent, origin.clone().map(Arc::new));
                self.apply(Batch::Unpaused { by_parent, origin }, *at)?;
            }
            // Waiting follows from the batches, but that nothing runs in a paused run does not.
            Record::RunWaiting { at, .. } => {
                self.complete();
                self.state.note_rest(self.since_began(*at));
            }
            _ => {}
        }
        Ok(())
    }
}
