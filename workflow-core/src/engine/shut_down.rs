//! Detaching all runs of an engine, so that another process can resume them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use super::reminders::MAX_CONCURRENT_LOADS;
use super::{Engine, Inner};
use crate::id::RunId;
use crate::outcome::RunError;

impl Engine {
    /// Refuses new runs, and detaches all open runs for another process.
    ///
    /// Another engine over the same [store](crate::EngineBuilder::store) can resume the runs at once. Use it when a
    /// process ends and another one follows.
    ///
    /// A run accepts and begins nothing more. The engine writes the results that executions have returned so far, and
    /// drops executions that are still running; another engine runs these again, as after a crash. Journals stay open.
    /// A run whose end is being written ends, and so does a run that is cancelled meanwhile.
    ///
    /// The call waits at most `at_most`, by the engine's clock, for runs that are being loaded, and does not read the
    /// rest. Once all journals are written, the engine gives up its [lease](crate::EngineBuilder::lease). Then the call
    /// waits at most `at_most` again, until observers have seen everything.
    ///
    /// Handles on detached runs return [`RunError::Detached`], with
    /// [`RunStatus::Cancelled`](crate::RunStatus::Cancelled). A message that the run has not accepted is refused with
    /// [`SendError::Ended`](crate::SendError::Ended). An engine without a store cancels its runs, as
    /// [`cancel_and_shut_down`](Self::cancel_and_shut_down) does.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// use workflow_core::prelude::*;
    /// use workflow_core::{RunError, RunOptions};
    /// use workflow_core::store::MemoryStore;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Open;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(external)]
    /// # struct Note;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Closed;
    /// # struct Desk;
    /// # #[workflow]
    /// # impl Desk {
    /// #     #[step]
    /// #     async fn close(&self, _open: &Open, _note: &Note) -> Closed { Closed }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Arc::new(MemoryStore::default());
    /// let engine = Engine::builder().workflow(Desk).store(Arc::clone(&store)).build()?;
    /// let run = engine.start_with::<Desk>(Open, RunOptions::new().id("d-1")).await?;
    /// engine.shut_down(Duration::from_secs(5)).await;
    /// assert!(matches!(run.outcome().await, Err(RunError::Detached)));
    ///
    /// let next = Engine::builder().workflow(Desk).store(store).build()?;
    /// assert_eq!(next.resume_open_runs().await?.runs, ["d-1".into()]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shut_down(&self, at_most: Duration) {
        if !self.inner.journals.are_kept() {
            return self.cancel_and_shut_down(at_most).await;
        }
        // Every run is detached before any run refuses a call. Otherwise a step could receive such a refusal, or the
        // detach of its child, and fail.
        let inner = &self.inner;
        inner.common.shuts_down.store(true, Ordering::SeqCst);
        inner.ending.begin();
        inner.wake_driven();
        let runs = stream::iter(inner.runs.ids());
        let left =
            runs.for_each_concurrent(MAX_CONCURRENT_LOADS, |run| async move { inner.leave(&run).await });
        inner.end_all(at_most, left).await;
    }
}

impl Inner {
    /// Detaches a run, once no task loads it or looks it up.
    async fn leave(&self, id: &RunId) {
        // The holder gives up when the engine stops waiting for the store, or its future is not polled.
        let _run_lock = self.runs.lock(id).await;
        match self.runs.driven(id) {
            Some(run) => run.signal_detach(),
            // The journal of an unloaded run is complete.
            None => self.give_up_unloaded(id, RunError::Detached),
        }
    }

    /// Wakes every driven run, so that it sees the detach signal.
    fn wake_driven(&self) {
        for id in self.runs.ids() {
            if let Some(run) = self.runs.driven(&id) {
                run.signal_detach();
            }
        }
    }
}
