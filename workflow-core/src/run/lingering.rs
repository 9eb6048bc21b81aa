//! Steps on threads of their own that are still in a poll when their run has ended. They were aborted, and a redrive of the
//! run waits until they are gone, so that no execution begins beside its earlier attempt (S39).

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::executor::Executor;
use crate::id::RunId;
use crate::panics::locked;

/// The ended runs of an engine whose aborted steps still have their threads, each with the signal that they are gone.
#[derive(Debug, Default)]
pub(crate) struct Lingering(Mutex<FxHashMap<RunId, CancellationToken>>);

impl Lingering {
    /// Notes that the run's aborted tasks are still there, until they are gone. The caller is a task of a tokio runtime.
    #[cold]
    pub(super) fn keep(self: &Arc<Self>, run: &RunId, mut tasks: Executor, tracker: &TaskTracker) {
        let gone = CancellationToken::new();
        locked(&self.0).insert(run.clone(), gone.clone());
        let kept = Kept { of: Arc::clone(self), run: run.clone(), _gone: gone.drop_guard() };
        Handle::current().spawn(tracker.track_future(async move {
            let _kept = kept;
            tasks.tasks_gone().await;
        }));
    }

    /// Waits until the run has no such tasks.
    pub(crate) async fn gone(&self, run: &RunId) {
        let gone = locked(&self.0).get(run).cloned();
        if let Some(gone) = gone {
            gone.cancelled().await;
        }
    }
}

/// The tasks of one run; dropped once they are gone, and with the runtime.
struct Kept {
    of: Arc<Lingering>,
    run: RunId,
    _gone: DropGuard,
}

impl Drop for Kept {
    fn drop(&mut self) {
        locked(&self.of.0).remove(&self.run);
    }
}
