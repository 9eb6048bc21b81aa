//! One lock for each run that somebody loads, looks for or lets go of, for as long as somebody does or waits to.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::id::RunId;
use crate::run::Held;
use crate::sharded::Sharded;

/// The locks that somebody has or waits for: runs that nobody is concerned with have none.
#[derive(Default)]
pub(super) struct RunLocks(Sharded<RunId, Arc<Mutex<()>>, foldhash::quality::RandomState>);

impl RunLocks {
    /// Waits for the run's lock. Dropping the future gives up the wait.
    pub(super) fn hold(self: &Arc<Self>, run: &RunId) -> impl Future<Output = Held> + Send + use<> {
        let (locks, run) = (Arc::clone(self), run.clone());
        async move {
            let turn = Turn::of(locks, run);
            let guard = turn.lock.clone().unwrap_or_default().lock_owned().await;
            Box::new(Holder { _guard: guard, _turn: turn }) as Held
        }
    }
}

/// The lock, held. It is dropped before the turn.
struct Holder {
    _guard: OwnedMutexGuard<()>,
    _turn: Turn,
}

/// A place among those who have the lock or wait for it: with the last of them the lock goes.
struct Turn {
    locks: Arc<RunLocks>,
    run: RunId,
    /// None once it is dropped.
    lock: Option<Arc<Mutex<()>>>,
}

impl Turn {
    fn of(locks: Arc<RunLocks>, run: RunId) -> Self {
        let lock = Arc::clone(locks.0.shard(&run).entry(run.clone()).or_default());
        Self { locks, run, lock: Some(lock) }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.lock = None;
        // Nobody takes one meanwhile: that is done where it is kept.
        let mut locks = self.locks.0.shard(&self.run);
        if locks.get(&self.run).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.run);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_lock_is_there_as_long_as_somebody_has_it_or_waits_for_it() {
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
        assert!(locks.0.len() == 0);
    }
}
