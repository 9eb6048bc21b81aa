//! The contexts of runs that have ended: clearing them, also those that a process left which was killed between the end
//! of a run and that.

use std::sync::Weak;

use futures::future::BoxFuture;

use super::{Engine, Inner};
use crate::context::{ContextError, ContextScope, ContextStore, PRIVATE_THREAD};
use crate::id::{RunId, ThreadId};
use crate::panics::caught_in;
use crate::store::StoreError;

/// How many scopes are asked for at a time.
const PAGE: usize = 1_024;

impl Inner {
    /// Asks the store of contexts, until nobody waits for it any more. A panic of it is an error.
    async fn ask_contexts<'a, T>(
        &'a self,
        ask: impl FnOnce(&'a dyn ContextStore) -> BoxFuture<'a, Result<T, ContextError>>,
    ) -> Result<T, StoreError> {
        let asked = caught_in(async { ask(&*self.contexts).await });
        match self.ending.patiently(asked).await? {
            Ok(answer) => answer.map_err(StoreError::unavailable),
            Err(panic) => Err(StoreError::unavailable(panic)),
        }
    }

    /// Clears the context of a run, and before it that of this thread, which is the run's alone.
    ///
    /// The run's scope goes last: it says which thread goes with it. So whatever ends the process in between, the next
    /// one finds what is left. An engine without journals has no next one: there a thread that cannot be cleared does not
    /// keep the run's scope.
    pub(super) async fn clear(&self, run: &RunId, thread: Option<ThreadId>) -> Result<(), StoreError> {
        let mut of_thread = Ok(());
        if let Some(thread) = thread {
            let scope = ContextScope::Thread(thread);
            of_thread = self.ask_contexts(|contexts| clear_scope(contexts, scope)).await;
        }
        if of_thread.is_err() && self.store.is_some() {
            return of_thread;
        }
        let scope = ContextScope::Run(run.clone());
        let of_run = self.ask_contexts(|contexts| clear_scope(contexts, scope)).await;
        of_thread.and(of_run)
    }
}

fn clear_scope(contexts: &dyn ContextStore, scope: ContextScope) -> BoxFuture<'_, Result<(), ContextError>> {
    Box::pin(async move { contexts.clear(&scope).await })
}

impl Engine {
    /// Clears the contexts of runs that have ended, as the store says, and are not about to clear them themselves: those
    /// whose process was killed between their end and that.
    ///
    /// What belongs to a run that the store does not list is left alone: it may be one of an engine that keeps no journals,
    /// or keeps them elsewhere. So is what belongs to a run that has not ended, whoever drives it. A run begins to use its
    /// context once the store has its beginning, so that one that is starting is listed as one that goes on.
    ///
    /// O(runs with contexts) calls of the stores.
    pub(super) async fn clear_left_contexts(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = (&after, PAGE);
            let page = self.inner.ask_contexts(|contexts| contexts.scopes(page.0.as_ref(), page.1)).await?;
            for scope in &page {
                // That of a thread goes with a run only if the run's own says so.
                if let ContextScope::Run(run) = scope {
                    self.clear_if_left(run).await?;
                }
            }
            match page.last() {
                Some(last) => after = Some(last.clone()),
                None => return Ok(()),
            }
        }
    }

    async fn clear_if_left(&self, run: &RunId) -> Result<(), StoreError> {
        if self.inner.known.has(run) || !self.is_listed_as_ended(run).await? {
            return Ok(());
        }
        let _held = self.hold(run).await?;
        let Ok(_taken) = self.register(run, Weak::new()) else { return Ok(()) };
        // Its id was free until here, for another run to begin.
        if !self.is_listed_as_ended(run).await? {
            return Ok(());
        }
        let scope = ContextScope::Run(run.clone());
        let thread = self
            .inner
            .ask_contexts(|contexts| Box::pin(async move { contexts.get(&scope, PRIVATE_THREAD).await }));
        // One that cannot be read is no thread that the engine has noted.
        let thread = thread.await?.and_then(|thread| thread.get::<ThreadId>().ok());
        self.inner.clear(run, thread).await
    }

    async fn is_listed_as_ended(&self, run: &RunId) -> Result<bool, StoreError> {
        Ok(self.stored_run(run).await?.is_some_and(|stored| stored.run.status.is_ended()))
    }
}
