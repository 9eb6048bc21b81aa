//! The end of an engine: detaching all runs, so that another process can resume them, or cancelling them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;
use futures_util::{StreamExt as _, stream};

use super::ending::sleep_or_pend;
use super::reminders::MAX_CONCURRENT_LOADS;
use super::{EndWaits, Engine, Inner};
use crate::id::{RunId, RunStatus};
use crate::outcome::RunError;
use crate::run::{RunShared, end_blocked};
use crate::text::bounded_shared;

impl Engine {
    /// Refuses new runs, lets executions end, and detaches all open runs for another process.
    ///
    /// Use it when a process ends and another one follows, as in the handler of a SIGTERM. Another engine over the same
    /// [store](crate::EngineBuilder::store) can resume the runs at once.
    ///
    /// 1. **Nothing more begins**: no execution, attempt, precondition or child run. Running executions continue, and
    ///    their results are committed. Meanwhile runs take messages and cancels, and timers fire: all of that enters the
    ///    journals, and the next process continues from there.
    /// 2. Once no run executes anything, and after `within` by the engine's clock at the latest, all runs **detach**.
    ///    Executions that still run are dropped. The next process runs them again, as after a crash. Journals stay open.
    ///    A run whose end is being written ends, and so does a run that is cancelled meanwhile.
    /// 3. Once all journals are written, the engine gives up its [lease](crate::EngineBuilder::lease), and observers
    ///    see the rest. The call waits for the store for what is left of `within`, and at least for a second; then for
    ///    observers, at most `within`.
    ///
    /// A wait for a retry does not execute, nor does an execution whose awaited children have nothing under way. An
    /// execution that waits for another run in any other way, through a handle for example, does execute. A step that
    /// starts a run through the engine gets [`StartError::ShutDown`](crate::StartError::ShutDown); one that asks for a
    /// child run gets no answer, and runs again in the next process.
    ///
    /// A step that blocks its thread outlives the call, which waits for such steps no longer than for the store, and then a
    /// second more. Handles on their runs return as those on detached ones. The next process runs these steps again, as
    /// after a crash, also while they still run here.
    ///
    /// `Duration::ZERO` detaches at once. A store that never answers delays the call as said: then handles on its runs
    /// return [`RunError::Store`](crate::RunError::Store). Engines are independent of each other. If the future is
    /// dropped, the engine still begins nothing: call again.
    ///
    /// Handles on detached runs return [`RunError::Detached`], with
    /// [`RunStatus::Cancelled`](crate::RunStatus::Cancelled). A message that the run has not accepted by then is refused
    /// with [`SendError::Stopped`](crate::SendError::Stopped). Runs without a store cannot be resumed: the call
    /// cancels them as [`cancel_all`](Self::cancel_all) does, and waits for their clean-ups.
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
    pub async fn shut_down(&self, within: Duration) {
        let inner = &self.inner;
        if !inner.journals.are_kept() {
            self.cancel_all("the engine is shutting down", within).await;
            return;
        }
        let began = inner.common.clock.shown();
        inner.common.wind_down.begin();
        inner.ending.begin();
        if !within.is_zero() {
            let over = sleep_or_pend(inner.common.clock.clone(), within);
            select(pin!(inner.all_rest()), pin!(over)).await;
        }
        // Every run is detached before any run refuses a call. Otherwise a step could receive such a refusal, or the
        // detach of its child, and fail.
        inner.common.wind_down.detach();
        inner.each_driven(RunShared::signal_detach);
        let runs = stream::iter(inner.runs.ids());
        let left =
            runs.for_each_concurrent(MAX_CONCURRENT_LOADS, |run| async move { inner.leave(&run).await });
        let took = inner.common.clock.shown().duration_since(began).unwrap_or_default();
        let waits = EndWaits { runs: within.saturating_sub(took), observers: within };
        inner.end_all(waits, RunError::Detached, left).await;
    }

    /// Refuses new runs, cancels all open ones with this reason, and waits for their ends.
    ///
    /// Runs are cancelled with or without handles, and their journals have the reason. The call then gives up the
    /// engine's [lease](crate::EngineBuilder::lease), and waits at most `within` until observers have seen everything.
    ///
    /// Afterwards every run of the engine has ended for its handles, and no task of the engine is left. The
    /// [store](crate::EngineBuilder::store) and the [contexts](crate::EngineBuilder::contexts) are dropped with the last
    /// clone of the engine, even if handles on runs remain. Starts that wait for a permit end with
    /// [`StartError::ShutDown`](crate::StartError::ShutDown), even if no task polls them.
    ///
    /// `within` does not limit clean-ups, each step of which has [its own time](crate::EngineBuilder::cleanup_within).
    ///
    /// A step that blocks its thread outlives the call. The call waits for such steps for `within`, by the engine's clock
    /// and at least for a second, then for a second more, and until no other run cleans up. Their runs then end for their
    /// handles, over a store with [`RunError::Detached`], because the journals may lack the cancel.
    ///
    /// The call waits for the store for `within` too, by the engine's clock, and at least for a second. An unanswered
    /// call of the store then ends with [`StoreError::ShutDown`](crate::store::StoreError::ShutDown): a run that waits
    /// for it ends here with [`RunError::Store`], and its journal stays as it is.
    ///
    /// Returns the runs whose journals may lack the cancel, in the order of their ids: those of steps that block their
    /// threads, and those whose store failed or did not answer. The next process would continue them: cancel them there.
    /// A run whose journal has that it cleans up because of a cancel is none of them: the next process continues the
    /// clean-up. Nor is one that had stopped here before this call, since its store failed. Without a store the list is empty.
    ///
    /// [`shut_down`](Self::shut_down) instead detaches the runs of a store, so that another engine can resume them.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Print;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Printed;
    /// # struct Printer;
    /// # #[workflow]
    /// # impl Printer {
    /// #     #[step]
    /// #     async fn print(&self, _print: &Print) -> Printed { std::future::pending().await }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Printer).build()?;
    /// let run = engine.start::<Printer>(Print).await?;
    /// let not_recorded = engine.cancel_all("the office closes", Duration::from_secs(5)).await;
    /// assert!(not_recorded.is_empty());
    /// assert_eq!(run.outcome().await.unwrap_err().to_string(), "the run was cancelled: the office closes");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel_all(&self, reason: impl Into<Arc<str>>, within: Duration) -> Vec<RunId> {
        self.inner.ending.note_open_runs();
        self.inner.ending.begin();
        let reason = bounded_shared(reason.into());
        let waits = EndWaits { runs: within, observers: within };
        // Whether the journal of a run that is left has the cancel is unknown.
        let left = if self.inner.journals.are_kept() {
            RunError::Detached
        } else {
            RunError::Cancelled { reason: Arc::clone(&reason) }
        };
        self.inner.end_all(waits, left, self.inner.cancel_runs(&reason)).await;
        if self.inner.journals.are_kept() { self.inner.ending.left_open() } else { Vec::new() }
    }

    /// The former name of [`shut_down`](Self::shut_down).
    #[deprecated(note = "`shut_down` does this")]
    pub async fn hand_over(&self, within: Duration) {
        self.shut_down(within).await;
    }

    /// The former name of [`cancel_all`](Self::cancel_all), without a reason.
    #[deprecated(
        note = "`cancel_all` does this, and takes the reason; `shut_down` keeps runs of a store for another process"
    )]
    pub async fn cancel_and_shut_down(&self, within: Duration) {
        self.cancel_all("the engine is shutting down", within).await;
    }
}

impl Inner {
    /// Completes once no run executes anything. The engine winds down: nothing begins meanwhile.
    async fn all_rest(&self) {
        self.each_driven(|run| run.signals.wake());
        // A run that ends can let an execution continue that waited for it, so one pass without a wait is needed.
        let mut waited = true;
        while std::mem::take(&mut waited) {
            for id in self.runs.ids() {
                loop {
                    let progressed = self.common.wind_down.progressed();
                    if self.runs.driven(&id).is_none_or(|run| run.rests()) {
                        break;
                    }
                    waited = true;
                    progressed.await;
                }
            }
        }
    }

    /// Calls this for every driven run.
    fn each_driven(&self, signal: impl Fn(&RunShared)) {
        for id in self.runs.ids() {
            if let Some(run) = self.runs.driven(&id) {
                signal(&run);
            }
        }
    }

    /// Whether a run cleans up, and not only waits for a step that blocks its thread.
    pub(super) fn cleans_up(&self) -> bool {
        let mut driven = self.runs.ids().into_iter().filter_map(|id| self.runs.driven(&id));
        driven.any(|run| run.status() == RunStatus::CleaningUp && !self.common.lingering.has(&run.id))
    }

    /// Ends the runs whose tasks are still there for their handles: their steps block their threads.
    pub(super) fn leave_blocked(&self, error: &RunError) {
        let mut left = 0_usize;
        for id in self.runs.ids() {
            match self.runs.driven(&id) {
                Some(run) => {
                    end_blocked(&run, error.clone());
                    if run.is_left_uncancelled() {
                        self.ending.leaves_open(&id);
                    }
                }
                None => self.give_up_unloaded(&id, error.clone()),
            }
            left += 1;
        }
        if left > 0 {
            tracing::warn!(runs = left, "an engine that ends leaves runs whose steps block their threads");
        }
    }

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
}
