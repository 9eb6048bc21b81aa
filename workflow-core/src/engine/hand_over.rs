//! Leaving every run to another engine.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use super::reminders::LOADED_AT_ONCE;
use super::{Engine, Inner};
use crate::error::RunError;
use crate::id::RunId;

impl Engine {
    /// Refuses new runs, and lets go of those that have not ended where their journals end, so that another engine over
    /// the same [store](crate::EngineBuilder::store) goes on with them at once: for a process that is followed by another.
    ///
    /// Runs take in and begin nothing more. What executions have returned by then is written, and what still runs is
    /// dropped, to run again elsewhere (S39), as if the process had ended. Journals stay open. Runs that are being loaded
    /// are waited for, at most for `at_most`, however many there are: what the store does not answer until then is left
    /// unread. Once all journals are written, the engine's [lease](crate::EngineBuilder::lease) is given up; then it waits,
    /// at most for `at_most` too, until observers have seen everything. A run whose end is being written ends, and so does
    /// one that is cancelled meanwhile.
    ///
    /// Handles on what was left answer [`RunError::Abandoned`], with
    /// [`RunStatus::Cancelled`](crate::RunStatus::Cancelled), and [`SendError::Ended`](crate::SendError::Ended) whatever was
    /// sent and not taken. Runs of an engine without a store have nowhere to go on: they are cancelled, as by
    /// [`shut_down`](Self::shut_down).
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// use workflow_core::prelude::*;
    /// use workflow_core::{MemoryStore, RunError, RunOptions};
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
    /// engine.hand_over(Duration::from_secs(5)).await;
    /// assert!(matches!(run.outcome().await, Err(RunError::Abandoned)));
    ///
    /// let next = Engine::builder().workflow(Desk).store(store).build()?;
    /// assert_eq!(next.resume_open_runs().await?.runs, ["d-1".into()]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn hand_over(&self, at_most: Duration) {
        if !self.inner.journals.are_kept() {
            return self.shut_down(at_most).await;
        }
        // All runs at once, and before anything is refused: no step is told so, or of another run that was left, and fails
        // for that.
        let inner = &self.inner;
        inner.common.hands_over.store(true, Ordering::SeqCst);
        inner.ending.begin();
        inner.wake_driven();
        let runs = stream::iter(inner.runs.ids());
        let left = runs.for_each_concurrent(LOADED_AT_ONCE, |run| async move { inner.leave(&run).await });
        inner.wind_up(at_most, left).await;
    }
}

impl Inner {
    /// Leaves a run, once nobody loads it or looks for it any more.
    async fn leave(&self, id: &RunId) {
        // Its holder gives up when nobody waits for the store any more, or is not polled.
        let _held = self.runs.lock(id).await;
        match self.runs.driven(id) {
            Some(run) => run.note_leave(),
            // Of one that was unloaded, the journal has everything.
            None => self.give_up_unloaded(id, RunError::Abandoned),
        }
    }

    /// Wakes every run that is driven, to find that it is to be left.
    fn wake_driven(&self) {
        for id in self.runs.ids() {
            if let Some(run) = self.runs.driven(&id) {
                run.note_leave();
            }
        }
    }
}
