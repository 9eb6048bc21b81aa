//! Calls for all runs of a query: cancelling and removing them, a few at a time.
//!
//! ```text
//! page of the store's list ─▶ up to 16 calls at a time ─▶ a result per run, as they complete
//! ```
//!
//! At most a page of ids is in memory. Nothing happens unless results are taken.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::ready;
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};

use super::journals::Pages;
use super::load::{LoadAs, Loaded, LoadedBy};
use super::{Engine, Inner};
use crate::id::{RunId, RunStatus};
use crate::outcome::ResumeError;
use crate::store::{RunQuery, StoreError, StoredRun};

/// How many runs one call works on at a time.
const AT_ONCE: usize = 16;

/// The result of a call for many runs, for one of them.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunResult<E> {
    /// The run.
    pub run: RunId,
    /// Its result, or why nothing happened to it.
    pub result: Result<(), E>,
}

/// The results of a call for many runs, in the order in which they complete: a stream, and [`next`](Self::next).
///
/// The call works on up to 16 runs at a time, and continues only while results are taken. After an error of the list
/// of runs, which is an item of its own, the stream ends. Dropping the stream ends the call: what was begun may or may
/// not happen.
#[must_use = "nothing happens unless the results are taken"]
pub struct RunResults<'a, E>(BoxStream<'a, Result<RunResult<E>, StoreError>>);

impl<'a, E: Send + 'a> RunResults<'a, E> {
    fn of<F: Future<Output = Option<RunResult<E>>> + Send + 'a>(
        listed: impl Stream<Item = Result<StoredRun, StoreError>> + Send + 'a,
        call: impl Fn(StoredRun) -> F + Send + Sync + Clone + 'a,
    ) -> Self {
        let calls = listed.map(move |run| {
            let call = call.clone();
            async move {
                match run {
                    Ok(run) => call(run).await.map(Ok),
                    Err(error) => Some(Err(error)),
                }
            }
        });
        Self(calls.buffer_unordered(AT_ONCE).filter_map(ready).boxed())
    }

    /// The next result, or `None` after the last. An error if the list of runs cannot be read further.
    pub async fn next(&mut self) -> Option<Result<RunResult<E>, StoreError>> {
        self.0.next().await
    }
}

impl<E> Stream for RunResults<'_, E> {
    type Item = Result<RunResult<E>, StoreError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl<E> fmt::Debug for RunResults<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunResults").finish_non_exhaustive()
    }
}

/// Where the listing of a query is: the pages to come, and the rest of this one; `None` once it is over.
type Listing<'a> = Option<(Pages<'a>, std::vec::IntoIter<StoredRun>)>;

impl Engine {
    /// Cancels the open runs of a query, and waits for their ends.
    ///
    /// Ended runs are left out, and so are children for which an execution waits: they end with their parents. A run
    /// that no engine drives is loaded only to be cancelled; no step of it begins. Runs that begin during the call may
    /// be missed.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::store::{MemoryStore, RunQuery};
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Order;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(external)]
    /// # struct Payment;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Paid;
    /// # struct Orders;
    /// # #[workflow]
    /// # impl Orders {
    /// #     #[step]
    /// #     async fn pay(&self, _order: &Order, _payment: &Payment) -> Paid { Paid }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Orders).store(MemoryStore::default()).build()?;
    /// let run = engine.start::<Orders>(Order).await?;
    /// let mut cancelled = engine.cancel_where(&RunQuery::new().workflow("Orders"), "the shop closes")?;
    /// while let Some(cancelled) = cancelled.next().await {
    ///     let cancelled = cancelled?;
    ///     println!("{}: {:?}", cancelled.run, cancelled.result);
    /// }
    /// assert!(run.status().is_ended());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StoreError::NoStore`]. A run that another engine drives is a result with [`ResumeError::Elsewhere`].
    pub fn cancel_where(
        &self,
        runs: &RunQuery,
        reason: impl Into<Arc<str>>,
    ) -> Result<RunResults<'_, ResumeError>, StoreError> {
        let reason: Arc<str> = reason.into();
        let listed = self.listed(runs.clone().open())?;
        Ok(RunResults::of(listed, move |stored| {
            let reason = Arc::clone(&reason);
            async move {
                let run = stored.id;
                match self.inner.cancel_stored(&run, &reason).await {
                    Ok(true) => Some(RunResult { run, result: Ok(()) }),
                    Ok(false) => None,
                    Err(error) => Some(RunResult { run, result: Err(error) }),
                }
            }
        }))
    }

    /// Removes the ended runs of a query, as [`remove_run`](Self::remove_run) does each: with contexts and children.
    ///
    /// Open runs are left out. A child is removed with its parent, and has no result of its own then.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::RunStatus;
    /// use workflow_core::store::{MemoryStore, RunQuery};
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Order;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Paid;
    /// # struct Orders;
    /// # #[workflow]
    /// # impl Orders {
    /// #     #[step]
    /// #     async fn pay(&self, _order: &Order) -> Paid { Paid }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Orders).store(MemoryStore::default()).build()?;
    /// let run = engine.start::<Orders>(Order).await?;
    /// run.outcome().await?;
    /// let mut removed = engine.remove_where(&RunQuery::new().status(RunStatus::Completed))?;
    /// let mut count = 0;
    /// while let Some(removed) = removed.next().await {
    ///     removed?.result?;
    ///     count += 1;
    /// }
    /// assert_eq!(count, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StoreError::NoStore`].
    pub fn remove_where(&self, runs: &RunQuery) -> Result<RunResults<'_, StoreError>, StoreError> {
        let listed = self.listed(runs.clone())?;
        let ended = listed.filter(|run| ready(run.as_ref().is_ok_and(is_ended) || run.is_err()));
        Ok(RunResults::of(ended, move |stored| async move {
            let run = stored.id;
            match self.remove_run(&run).await {
                Ok(true) => Some(RunResult { run, result: Ok(()) }),
                // Another call, or the one for its parent, was faster.
                Ok(false) => None,
                Err(error) => Some(RunResult { run, result: Err(error) }),
            }
        }))
    }

    /// The runs of a query, page by page. Ends after an error.
    fn listed(
        &self,
        query: RunQuery,
    ) -> Result<impl Stream<Item = Result<StoredRun, StoreError>> + Send + '_, StoreError> {
        let pages = Pages::of(&**self.inner.journals.store()?, query);
        let listing: Listing<'_> = Some((pages, Vec::new().into_iter()));
        Ok(stream::unfold(listing, |listing| async move {
            let (mut pages, mut page) = listing?;
            loop {
                if let Some(run) = page.next() {
                    return Some((Ok(run), Some((pages, page))));
                }
                match pages.next().await {
                    Ok(Some(next)) => page = next.into_iter(),
                    Ok(None) => return None,
                    Err(error) => return Some((Err(error), None)),
                }
            }
        }))
    }
}

fn is_ended(stored: &StoredRun) -> bool {
    let status: RunStatus = stored.run.status;
    status.is_ended()
}

impl Inner {
    /// Cancels an open run of the store, and waits for its end. Returns `false` if the run has ended by itself, is gone, or is
    /// a child that ends with its parent. An error if the run stops here before its journal has the cancel.
    async fn cancel_stored(self: &Arc<Self>, id: &RunId, reason: &Arc<str>) -> Result<bool, ResumeError> {
        let how = LoadAs { by: LoadedBy::Engine, cancelled: Some(reason), permit: &mut None };
        let found = self.find_as(id, how).await;
        let run = match found {
            Ok(Loaded::Here(run) | Loaded::Resumed(run)) => run,
            Ok(Loaded::Ended(_) | Loaded::Waiting | Loaded::Awaited | Loaded::Moved(_) | Loaded::Full)
            | Err(ResumeError::UnknownRun { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        run.cancel(reason);
        let finished = run.finished().await;
        match finished.left_by() {
            // The next process continues its clean-up.
            Some(_) if run.signals.cancel_is_kept() => Ok(true),
            Some(source) => Err(ResumeError::Store(source)),
            None => Ok(finished.is_cancelled()),
        }
    }
}
