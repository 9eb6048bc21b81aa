//! A lock per run, for loading it, looking it up and unloading it.
//!
//! Invariant: an entry of the map exists exactly while a task holds its lock or waits for it, so that the map stays
//! small however many runs the store has. A task announces itself by a `Turn` before it waits, and the last `Turn`
//! removes the entry.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::id::RunId;
use crate::run::RunLockGuard;

/// The locks in use. Runs without a holder or waiter have no entry.
#[derive(Debug, Default)]
pub(super) struct RunLocks(DashMap<RunId, Arc<Mutex<()>>>);

impl RunLocks {
    /// Waits for the run's lock. Dropping the future gives up the wait.
    pub(super) fn hold(self: &Arc<Self>, run: &RunId) -> impl Future<Output = RunLockGuard> + Send + use<> {
        let (locks, run) = (Arc::clone(self), run.clone());
        async move {
            let turn = Turn::of(locks, run);
            let guard = turn.lock.clone().unwrap_or_default().lock_owned().await;
            Box::new(Holder { _guard: guard, _turn: turn }) as RunLockGuard
        }
    }
}

/// A held lock. It is dropped before the turn.
struct Holder {
    _guard: OwnedMutexGuard<()>,
    _turn: Turn,
}

/// One holder or waiter of a lock. The last one removes the lock.
struct Turn {
    locks: Arc<RunLocks>,
    run: RunId,
    /// `None` once it is dropped.
    lock: Option<Arc<Mutex<()>>>,
}

impl Turn {
    fn of(locks: Arc<RunLocks>, run: RunId) -> Self {
        let lock = Arc::clone(&locks.0.entry(run.clone()).or_default());
        Self { locks, run, lock: Some(lock) }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.lock = None;
        // No other turn can take the lock meanwhile: `Turn::of` takes it while the map's shard is locked.
        self.locks.0.remove_if(&self.run, |_, lock| Arc::strong_count(lock) == 1);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_lock_exists_while_a_task_holds_it_or_waits_for_it() {
        let locks = Arc::new(RunLocks::default());
        let run = RunId::new("r");
        let held = locks.hold(&run).now_or_never().unwrap();
        {
            let mut second = pin!(locks.hold(&run));
            assert!(second.as_mut().now_or_never().is_none());
            assert!(locks.hold(&"other".into()).now_or_never().is_some());
            drop(held);
            assert_eq!(locks.0.len(), 1);
            assert!(second.now_or_never().is_some());
        }
        assert!(locks.0.is_empty());
    }
}
