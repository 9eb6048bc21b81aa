//! Turns of executions under which processes ended: one of them runs at a time in an engine (S35). So one that kills its
//! process does not take the attempts of others with it.
//!
//! ```text
//! x3 of run a ─┐
//! x7 of run b ─┼─ in order ─▶ holder ─▶ AttemptBegan ─▶ the attempt ─▶ released
//! x1 of run c ─┘                 │
//!                                └─ released early once it asks for a child: the child takes turns of its own
//! ```

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::id::{ExecutionId, RunId};
use crate::panics::locked;

/// The one turn of an engine.
#[derive(Debug)]
pub(crate) struct Turns {
    /// One permit. Who waits gets it in order.
    turn: Arc<Semaphore>,
    holder: Mutex<Option<Holder>>,
}

/// The execution whose turn it is.
#[derive(Debug)]
struct Holder {
    run: RunId,
    execution: ExecutionId,
    /// Dropped with the holder.
    _permit: OwnedSemaphorePermit,
}

/// A turn, from the begin of the wait for it. Dropping it gives the turn to the next execution.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    run: RunId,
    execution: ExecutionId,
}

impl Default for Turns {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), holder: Mutex::default() }
    }
}

impl Turns {
    /// Waits for the turn of an execution. Returns the turn, to be kept until the attempt has ended, and the wait.
    pub(super) fn wait(
        self: &Arc<Self>,
        run: &RunId,
        execution: ExecutionId,
    ) -> (Arc<Turn>, BoxFuture<'static, ()>) {
        let turn = Arc::new(Turn { turns: Arc::clone(self), run: run.clone(), execution });
        let waiting = Arc::clone(&turn);
        let wait = Box::pin(async move {
            // The semaphore is never closed.
            let Ok(permit) = Arc::clone(&waiting.turns.turn).acquire_owned().await else { return };
            let Turn { turns, run, execution } = &*waiting;
            let holder = Holder { run: run.clone(), execution: *execution, _permit: permit };
            let before = locked(&turns.holder).replace(holder);
            debug_assert!(before.is_none(), "the permit is the holder's");
        });
        (turn, wait)
    }

    /// Gives up the turn of an execution, if it has it.
    pub(crate) fn release(&self, run: &RunId, execution: ExecutionId) {
        let holder =
            locked(&self.holder).take_if(|holder| holder.execution == execution && holder.run == *run);
        // Dropped outside of the lock: it wakes the next one.
        drop(holder);
    }

    /// The execution whose turn it is.
    pub(super) fn holder(&self) -> Option<(RunId, ExecutionId)> {
        locked(&self.holder).as_ref().map(|holder| (holder.run.clone(), holder.execution))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.release(&self.run, self.execution);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn holder(turns: &Turns) -> Option<(String, u64)> {
        turns.holder().map(|(run, execution)| (run.to_string(), execution.0))
    }

    // S35
    #[test]
    fn one_execution_at_a_time_has_the_turn_in_the_order_in_which_they_ask() {
        let turns = Arc::<Turns>::default();
        let (first, mut first_waits) = turns.wait(&"a".into(), ExecutionId(1));
        let (second, mut second_waits) = turns.wait(&"b".into(), ExecutionId(1));
        assert!((&mut first_waits).now_or_never().is_some() && (&mut second_waits).now_or_never().is_none());
        assert_eq!(holder(&turns), Some(("a".into(), 1)));
        drop((first, first_waits));
        assert!((&mut second_waits).now_or_never().is_some());
        assert_eq!(holder(&turns), Some(("b".into(), 1)));
        turns.release(&"b".into(), ExecutionId(2));
        assert!(holder(&turns).is_some(), "another execution gives up nothing");
        turns.release(&"b".into(), ExecutionId(1));
        assert_eq!(holder(&turns), None);
        drop((second, second_waits));
    }

    #[test]
    fn an_execution_that_is_dropped_while_it_waits_or_right_after_leaves_the_turn_to_others() {
        let turns = Arc::<Turns>::default();
        let (first, mut first_waits) = turns.wait(&"a".into(), ExecutionId(1));
        drop(first);
        assert!((&mut first_waits).now_or_never().is_some());
        drop(first_waits);
        assert_eq!(holder(&turns), None);
        let (_second, mut second_waits) = turns.wait(&"b".into(), ExecutionId(1));
        assert!((&mut second_waits).now_or_never().is_some());
    }
}
