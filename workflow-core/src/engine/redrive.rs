//! Redriving: a run that ended before it was complete continues (S39).
//!
//! ```text
//! lock(run) ─▶ read journal ─▶ ended, no child? ─▶ replay with `RunRedriven` ─▶ append it ─▶ resume, as any open run
//!                                                        │ does not fit
//!                                                        └──▶ RedriveError, nothing is written
//! ```
//!
//! The record alone reopens the run: a process that ends right after the append leaves an open run, which the next one
//! resumes.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{BoxFuture, Either, select};

use super::config_sources::FromSources;
use super::first_record::Beginning;
use super::hosts::AskedType;
use super::journals::Pages;
use super::load::{Loaded, ResumeAs};
use super::owner::Availability;
use super::queued::FirstLook;
use super::reminders::RETRY_DELAY;
use super::{Engine, Inner};
use crate::id::{Redriver, RunId, RunStatus};
use crate::outcome::{RedriveError, ResumeError};
use crate::run::{Redrive, RunHandle, RunLockGuard, RunShared};
use crate::store::{Position, Record, RunQuery, StoreError};
use crate::workflow::Workflow;

/// The result of [`Engine::redrive_all`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Redriven {
    /// The runs that this engine has redriven, and drives now.
    pub runs: Vec<RunId>,
    /// The runs that were not redriven, with the reasons. Their journals stay as they are.
    pub refused: Vec<(RunId, RedriveError)>,
    /// Whether the limit was reached, and further runs may match.
    pub more: bool,
    /// The error that ended the listing early, if one did. The lists above have the runs before it.
    pub error: Option<StoreError>,
}

impl Engine {
    /// Continues a run that failed, was cancelled, timed out or stalled, from where it ended: after a fix.
    ///
    /// The executions whose failures ended the run begin anew, and so do those that were running at the end.
    /// Their identity and their [idempotency keys](crate::RunInfo::idempotency_key) stay, their attempts are numbered
    /// on, and their retries count from the start. Children that they start are new ones. Everything that was
    /// committed stays, and so do failures that a step caught or a gather has. Of a fan-out that failed, the
    /// finished branches keep their results, and the others continue; branches that open again may be more than its
    /// `concurrency`, and see events that came from outside meanwhile, which do not trigger their steps. A precondition
    /// is asked again if it failed, or if its last answer in its scope was no.
    /// Requests and timers that were pending at the end are pending again; an overdue timer fires at once. Active time
    /// starts at zero, and the run's contexts are as the run left them.
    ///
    /// Refuses a run whose [clean-up](crate::step) has begun, and leaves executions in doubt that are
    /// [`at_most_once`](crate::step): [`redrive_with`](Self::redrive_with) takes what you insist on.
    ///
    /// The run continues with the present workflow. A change of the workflow must fit the journal, as with
    /// [`attach`](Self::attach). If a step catches the failure by now, or its policy tolerates it, the failure stays,
    /// and is caught or tolerated. Any number of redrives may follow each other; the journal and
    /// the [report](crate::report::RunReport::redrives) have each.
    ///
    /// A step with `spawn` that still blocks its thread after the run has ended in this engine is awaited for at most five
    /// seconds.
    ///
    /// Earlier handles keep the outcome that they have; the returned handle, and those of later calls of `attach`,
    /// have the new one. O(records).
    ///
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use workflow_core::prelude::*;
    /// use workflow_core::store::MemoryStore;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Order { cents: u64 }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Paid { cents: u64 }
    /// static BANK_IS_OPEN: AtomicBool = AtomicBool::new(false);
    ///
    /// struct Orders;
    ///
    /// #[workflow]
    /// impl Orders {
    ///     #[step]
    ///     async fn pay(&self, order: &Order) -> Result<Paid, String> {
    ///         if !BANK_IS_OPEN.load(Ordering::Relaxed) {
    ///             return Err("the bank is closed".into());
    ///         }
    ///         Ok(Paid { cents: order.cents })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Orders).store(MemoryStore::default()).build()?;
    /// let run = engine.start::<Orders>(Order { cents: 500 }).await?;
    /// assert!(run.outcome().await.is_err());
    ///
    /// BANK_IS_OPEN.store(true, Ordering::Relaxed);
    /// let redriven = engine.redrive::<Orders>(run.id().clone()).await?;
    /// assert_eq!(redriven.outcome().await?, Paid { cents: 500 });
    /// assert_eq!(redriven.report().await?.redrives.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RedriveError`], with the reason. The journal is as it was, unless the store may have taken the record.
    pub fn redrive<W: Workflow>(
        &self,
        run: impl Into<RunId>,
    ) -> BoxFuture<'_, Result<RunHandle<W>, RedriveError>> {
        self.redrive_with(run, Redrive::new())
    }

    /// The same, with what the caller insists on: to continue although the run was cleaned up, or to make an execution
    /// again that is in doubt.
    ///
    /// ```no_run
    /// use workflow_core::prelude::*;
    /// use workflow_core::Redrive;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Order { cents: u64 }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Paid { cents: u64 }
    /// # struct Orders;
    /// # #[workflow]
    /// # impl Orders {
    /// #     #[step(at_most_once)]
    /// #     async fn pay(&self, order: &Order) -> Paid { Paid { cents: order.cents } }
    /// # }
    /// # async fn again(engine: Engine) -> Result<(), Box<dyn std::error::Error>> {
    /// // The bank says that it has no such payment: so it is made again.
    /// let run = engine.redrive_with::<Orders>("order-17", Redrive::new().again("pay")).await?;
    /// run.outcome().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RedriveError`], with the reason. The journal is as it was, unless the store may have taken the record.
    pub fn redrive_with<W: Workflow>(
        &self,
        run: impl Into<RunId>,
        redrive: Redrive,
    ) -> BoxFuture<'_, Result<RunHandle<W>, RedriveError>> {
        let run = run.into();
        Box::pin(async move {
            Ok(RunHandle::new(self.inner.redrive(&run, &redrive, Some(AskedType::of::<W>())).await?))
        })
    }

    /// Redrives the runs of a query that failed, were cancelled, timed out or stalled: at most `limit` of them.
    ///
    /// Looks at the runs in the order of the query, and skips open and completed ones and children, which continue
    /// with their parents. The limit counts redriven and refused runs, so that the result stays bounded;
    /// the next call continues [`after`](RunQuery::after) the last of them, or with [`older_than`](RunQuery::older_than) if the
    /// query is newest first. The runs execute within the engine's limits.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::RunStatus;
    /// use workflow_core::store::{MemoryStore, RunQuery};
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Order { cents: u64 }
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
    /// let failed = RunQuery::new().workflow("Orders").status(RunStatus::Failed);
    /// let redriven = engine.redrive_all(&failed, 100).await?;
    /// for (run, error) in &redriven.refused {
    ///     println!("{run}: {error}");
    /// }
    /// # assert!(redriven.runs.is_empty() && !redriven.more);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and errors of the list of runs before any run is redriven. A later error is in
    /// [`Redriven::error`].
    pub async fn redrive_all(&self, runs: &RunQuery, limit: usize) -> Result<Redriven, StoreError> {
        let inner = &self.inner;
        let (mut pages, mut redriven) =
            (Pages::of(&**inner.journals.store()?, runs.clone()), Redriven::default());
        loop {
            let page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(redriven),
                Err(error) if redriven.runs.is_empty() && redriven.refused.is_empty() => return Err(error),
                Err(error) => {
                    redriven.error = Some(error);
                    return Ok(redriven);
                }
            };
            for run in page.into_iter().filter(|run| can_reopen(run.run.status)) {
                if redriven.runs.len() + redriven.refused.len() >= limit {
                    redriven.more = true;
                    return Ok(redriven);
                }
                match inner.redrive(&run.id, &Redrive::new(), None).await {
                    Ok(_) => redriven.runs.push(run.id),
                    // Another caller was faster, or it is the parent's.
                    Err(RedriveError::Child { .. } | RedriveError::NotEnded { .. }) => {}
                    Err(error) => redriven.refused.push((run.id, error)),
                }
            }
        }
    }
}

/// Whether a run that ended so can continue.
fn can_reopen(status: RunStatus) -> bool {
    status.is_ended() && status != RunStatus::Completed
}

impl Inner {
    /// Redrives a run. `asked` is the type of workflow that it has to be of.
    async fn redrive(
        self: &Arc<Self>,
        id: &RunId,
        redrive: &Redrive,
        asked: Option<AskedType>,
    ) -> Result<Arc<RunShared>, RedriveError> {
        let read = |error| RedriveError::Resume(ResumeError::Store(error));
        let store = Arc::clone(self.journals.store().map_err(read)?);
        self.take_lease().await.map_err(read)?;
        let _run_lock = self.lock_without_aborted(id).await?;
        let not_ended = |status| RedriveError::NotEnded { run: id.clone(), status };
        if let Some(run) = self.runs.driven(id) {
            return Err(not_ended(run.status()));
        }
        let mut records = self.journals.read(id).await.map_err(read)?;
        let beginning = Beginning::of(id, &records)?;
        asked.map_or(Ok(()), |asked| self.hosts.is_of(id, beginning.workflow, asked))?;
        let by = Redriver::Engine(self.id.clone());
        let write = redrive.write(id, &records, by, self.common.clock.now());
        if self.runs.has(id) {
            // It is unloaded: it waits, or is paused.
            let status = match write {
                Err(RedriveError::NotEnded { status, .. }) => status,
                _ => RunStatus::Waiting,
            };
            return Err(not_ended(status));
        }
        let mut write = match write {
            Err(RedriveError::NotEnded { status, .. }) => return Err(self.not_ended(id, status).await),
            write => write?,
        };
        write.run = write.run.owned_by(self.journals.lease().map(|lease| lease.engine().clone()));
        let end = Position::default().after(records.len());
        records.extend(write.records.iter().cloned());
        let given = match self.look_at_queued(id, &records).await? {
            None => self.secrets_of(id, &records, false).await?,
            Some(FirstLook::Fits(given)) => Some(given),
            Some(FirstLook::Unfit(source)) => return Err(RedriveError::Start { run: id.clone(), source }),
        };
        self.try_resume(id, &records, given.as_ref())?;
        redrive.check(&self.hosts.named(id, Beginning::of(id, &records)?.workflow)?.table)?;
        match store.append(id, end, write).await {
            Ok(()) => {}
            Err(StoreError::Conflict { .. }) => {
                return Err(ResumeError::Contended { run: id.clone() }.into());
            }
            Err(error) => return Err(RedriveError::Store(error)),
        }
        match self.resume(id, &records, ResumeAs { given: given.as_ref(), ..ResumeAs::default() })? {
            Loaded::Resumed(shared) | Loaded::Here(shared) | Loaded::Ended(shared) => Ok(shared),
            Loaded::Waiting | Loaded::Awaited | Loaded::Moved(_) | Loaded::Full => {
                Err(ResumeError::UnknownRun { run: id.clone() }.into())
            }
        }
    }

    /// The lock of a run without aborted steps that still have their threads. Waits for them without the lock, which others
    /// need meanwhile, and not for long.
    async fn lock_without_aborted(&self, id: &RunId) -> Result<RunLockGuard, RedriveError> {
        let lingering = &self.common.lingering;
        loop {
            if lingering.has(id) {
                let gone = pin!(lingering.gone(id));
                if let Either::Right(_) = select(gone, self.common.clock.sleep(RETRY_DELAY)).await {
                    return Err(RedriveError::StepStillRuns { run: id.clone() });
                }
            }
            let lock = self.runs.lock(id).await;
            let lock = lock.map_err(|error| RedriveError::Resume(ResumeError::Store(error)))?;
            if !lingering.has(id) {
                return Ok(lock);
            }
        }
    }

    /// The error of a run that is open in the store, and that this engine does not drive.
    async fn not_ended(&self, id: &RunId, status: RunStatus) -> RedriveError {
        match self.journals.availability(id).await {
            Ok(Availability::Elsewhere(engine)) => ResumeError::Elsewhere { run: id.clone(), engine }.into(),
            _ => RedriveError::NotEnded { run: id.clone(), status },
        }
    }

    /// Whether the run can be resumed from these records. Resumes nothing.
    fn try_resume(
        self: &Arc<Self>,
        id: &RunId,
        records: &[Record],
        given: Option<&FromSources>,
    ) -> Result<(), ResumeError> {
        if self.ending.has_begun() {
            return Err(ResumeError::ShutDown);
        }
        self.reminders.runtime().ok_or(ResumeError::NoRuntime)?;
        let beginning = Beginning::of(id, records)?;
        let host = &self.hosts.named(id, beginning.workflow)?;
        let shared = self.restored(id, host, beginning, given)?;
        let resumed = self.made(&shared, host, None).resume(records);
        let incompatible = |difference| ResumeError::Incompatible { run: id.clone(), difference };
        resumed.map(|_| ()).map_err(incompatible)
    }
}
