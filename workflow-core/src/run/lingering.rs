//! Aborted steps on threads of their own, which may be in a poll for long. They stay with the engine until they are gone.
//! These wait for them: the clean-up of their run, its end if another process may resume it, and a redrive
//! (S31, S39).

use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::driver::Driver;
use super::executor::Executor;
use crate::id::RunId;
use crate::panics::locked;

/// The runs of an engine with aborted steps that still have their threads.
#[derive(Debug, Default)]
pub(crate) struct Lingering(Mutex<FxHashMap<RunId, Aborted>>);

/// The aborted steps of one run.
#[derive(Debug, Default)]
struct Aborted {
    /// How many executors still have some.
    executors: usize,
    /// Set when none is left.
    gone: CancellationToken,
}

impl Lingering {
    /// Keeps the aborted tasks of a run until they are gone.
    #[cold]
    fn keep(self: &Arc<Self>, run: &RunId, mut tasks: Executor, tracker: &TaskTracker) {
        // Tasks are spawned only in a runtime, so there is one.
        let Ok(runtime) = Handle::try_current() else { return };
        locked(&self.0).entry(run.clone()).or_default().executors += 1;
        let kept = Kept { of: Arc::clone(self), run: run.clone() };
        runtime.spawn(tracker.track_future(async move {
            let _kept = kept;
            tasks.tasks_gone().await;
        }));
    }

    /// Whether the run has such tasks.
    pub(crate) fn has(&self, run: &RunId) -> bool {
        locked(&self.0).contains_key(run)
    }

    /// Waits until the run has none.
    pub(crate) async fn gone(&self, run: &RunId) {
        loop {
            let gone = locked(&self.0).get(run).map(|aborted| aborted.gone.clone());
            let Some(gone) = gone else { return };
            gone.cancelled().await;
        }
    }
}

/// The tasks of one executor; dropped once they are gone, and with the runtime.
struct Kept {
    of: Arc<Lingering>,
    run: RunId,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut all = locked(&self.of.0);
        if let Entry::Occupied(mut aborted) = all.entry(self.run.clone()) {
            aborted.get_mut().executors -= 1;
            if aborted.get().executors == 0 {
                aborted.remove().gone.cancel();
            }
        }
    }
}

impl Driver {
    /// Drops everything in flight. `waits`: something of the run may begin beside aborted tasks, and waits for them.
    pub(super) fn drop_in_flight(&mut self, waits: bool) {
        self.executor.clear(waits);
        if !self.executor.is_cleared() {
            let common = &self.committer.shared.common;
            let tasks = std::mem::take(&mut self.executor);
            common.lingering.keep(&self.committer.shared.id, tasks, &common.tasks);
        }
    }

    /// Whether aborted tasks are still there.
    #[inline]
    pub(super) fn lingers(&self) -> bool {
        self.committer.shared.common.lingering.has(&self.committer.shared.id)
    }
}
