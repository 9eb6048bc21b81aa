//! How an engine ends: which of its tasks are left, and until when it waits for its store.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::tasks::{Counted, TaskToken, Tasks};
use crate::clock::EngineClock;
use crate::latch::Latch;
use crate::panics::caught_in;
use crate::store::StoreError;

/// The end of an engine.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Wakes those who wait for a permit, for a timer of a run, or to try again.
    begun: Latch,
    patience: Patience,
    /// The tasks of the engine. Each has dropped all that it held before it is counted out.
    tasks: Tasks,
}

impl Ending {
    /// Refuses what begins from here on. O(those who wait).
    pub(super) fn begin(&self) {
        self.begun.raise();
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_raised()
    }

    /// Waits until the engine begins to end.
    pub(super) async fn begins(&self) {
        self.begun.raised().await;
    }

    /// For a task that is about to be spawned; none if the engine ends. The engine's end waits for it from here on.
    pub(super) fn enter(&self) -> Option<TaskToken> {
        // Counted before it is asked: either it is refused here, or the engine's end waits for it.
        let token = self.tasks.token();
        (!self.has_begun()).then_some(token)
    }

    /// The same for what ends the engine's runs.
    pub(super) fn enter_late(&self) -> TaskToken {
        self.tasks.token()
    }

    /// A task of the engine: its end waits for the task.
    pub(super) fn track<F: Future>(&self, task: F) -> Counted<F> {
        Counted::new(task, self.tasks.token())
    }

    /// Waits until no task is left, once the engine has begun to end.
    pub(super) async fn is_over(&self) {
        self.tasks.none_left().await;
    }

    /// From here on nobody waits for the store.
    pub(super) fn give_up(&self) {
        self.patience.0.raise();
    }

    /// How long everybody waits for the store.
    pub(super) fn patience(&self) -> Patience {
        self.patience.clone()
    }
}

/// How long an engine waits for its stores: until it gives up. Clones end at the same moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Patience(Latch);

impl Patience {
    /// Waits for something that may wait for a store, until the engine gives up. An answer that is there counts.
    pub(super) async fn wait<T>(&self, waits: impl Future<Output = T>) -> Result<T, StoreError> {
        match select(pin!(waits), pin!(self.0.raised())).await {
            Either::Left((answer, _)) => Ok(answer),
            Either::Right(_) => Err(StoreError::ShutDown),
        }
    }
}

/// Ends after this time, or never if the engine's clock panics.
pub(super) async fn or_never(clock: EngineClock, time: Duration) {
    if caught_in(async move { clock.sleep(time).await }).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn an_engine_that_ends_refuses_tasks_and_waits_for_those_that_it_has() {
        let ending = Ending::default();
        let task = ending.enter().expect("it has not begun to end");
        let mut begins = pin!(ending.begins());
        assert!(begins.as_mut().now_or_never().is_none());
        ending.begin();
        assert!(begins.now_or_never().is_some());
        assert!(ending.enter().is_none());
        assert!(ending.is_over().now_or_never().is_none());
        drop(task);
        assert!(ending.is_over().now_or_never().is_some());
    }

    #[test]
    fn the_end_waits_for_tasks_that_end_its_runs() {
        let ending = Ending::default();
        ending.begin();
        let late = ending.enter_late();
        assert!(ending.is_over().now_or_never().is_none());
        drop(late);
        assert!(ending.is_over().now_or_never().is_some());
    }

    #[test]
    fn who_waits_for_a_store_waits_until_the_engine_gives_up() {
        let ending = Ending::default();
        let patience = ending.patience();
        let mut waits = pin!(patience.wait(pending::<()>()));
        assert!(waits.as_mut().now_or_never().is_none());
        ending.give_up();
        assert!(matches!(waits.now_or_never(), Some(Err(StoreError::ShutDown))));
        assert!(
            matches!(patience.wait(ready(1)).now_or_never(), Some(Ok(1))),
            "an answer that is there counts"
        );
    }
}
