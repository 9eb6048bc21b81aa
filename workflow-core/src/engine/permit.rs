//! Permits that a worker takes before it knows which run it will drive (S65).

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::hosts::AskedType;
use super::load::{LoadAs, LoadedBy};
use super::owner::Availability;
use super::start::Slot;
use super::{Engine, Inner, Loaded};
use crate::id::RunId;
use crate::outcome::{ResumeError, RunError, StartError};
use crate::run::{AnyRun, Host, RunShared};

/// A permit for one run of a workflow, which [`Engine::permit`] hands out and [`Engine::attach_with`] takes.
///
/// It counts as a running run from the beginning. Dropping it gives it to the next run that waits for one, and
/// so does an [`attach_with`](Engine::attach_with) that fails. A worker that finds no run drops it: a permit that is held
/// makes starts wait.
#[must_use = "dropping it returns it"]
pub struct RunPermit {
    workflow: Arc<str>,
    /// The limits, with a permit of each; `None` if the workflow has no limit.
    slot: Option<Slot>,
}

impl RunPermit {
    /// The name of the workflow.
    pub fn workflow(&self) -> &str {
        &self.workflow
    }

    /// An error if the run is of another workflow.
    pub(super) fn check(&self, run: &RunId, workflow: &Arc<str>) -> Result<(), ResumeError> {
        if self.workflow == *workflow {
            return Ok(());
        }
        let (run, workflow, asked) = (run.clone(), Arc::clone(workflow), Arc::clone(&self.workflow));
        Err(ResumeError::WrongWorkflow { run, workflow, asked })
    }

    /// The run's limits, with the permit that it has of them.
    pub(super) fn into_slot(self, run: &RunId) -> Option<Slot> {
        let (request, permit) = self.slot?;
        let request = match &permit {
            Some(permit) => request.of_run(run, permit),
            None => request,
        };
        Some((request, permit))
    }
}

impl fmt::Debug for RunPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunPermit").field("workflow", &self.workflow).finish_non_exhaustive()
    }
}

impl Engine {
    /// Takes a permit for a run of this workflow, for a worker that then chooses the run.
    ///
    /// A worker that first has a permit chooses a run only when it can drive it, and leaves the others to other workers.
    /// The wait is that of a [start](Self::start): in the order of the requests, and not at all with
    /// [`WhenFull::Refuse`](crate::WhenFull::Refuse). [`queued`](Self::queued) lists runs alone, and so not this wait.
    /// A workflow without limits has a permit at once. Dropping the future gives up the wait.
    ///
    /// [`Write::queued`](crate::store::Write::queued) has an example.
    ///
    /// # Errors
    /// [`StartError::UnknownWorkflow`], [`StartError::ShutDown`], [`StartError::Full`].
    pub fn permit(&self, workflow: &str) -> BoxFuture<'_, Result<RunPermit, StartError>> {
        let workflow: Arc<str> = workflow.into();
        Box::pin(async move { self.inner.permit(workflow).await })
    }

    /// Attaches to a run with a permit that was taken before, and waits until this engine owns the run.
    ///
    /// A run that no engine drives is resumed with the permit. The call returns once the store has that the run was
    /// resumed, so of several engines that attach to one run at the same time one succeeds. If the run has ended, or this
    /// engine drives it already, the call returns at once, and the permit is free again.
    ///
    /// # Errors
    /// [`ResumeError::Elsewhere`] if another engine with a lease drives the run. [`ResumeError::Contended`] if another
    /// engine wrote to it meanwhile and has no lease. [`ResumeError::WrongWorkflow`] if the permit is for another workflow.
    /// Otherwise those of [`attach`](Self::attach).
    pub fn attach_with(
        &self,
        run: impl Into<RunId>,
        permit: RunPermit,
    ) -> BoxFuture<'_, Result<AnyRun, ResumeError>> {
        let run = run.into();
        Box::pin(async move { Ok(AnyRun::new(self.inner.attached_with(&run, permit).await?)) })
    }
}

impl Inner {
    async fn permit(self: &Arc<Self>, workflow: Arc<str>) -> Result<RunPermit, StartError> {
        let Some(host) = self.hosts.get(&workflow) else {
            return Err(StartError::UnknownWorkflow { workflow });
        };
        if self.ending.has_begun() {
            return Err(StartError::ShutDown);
        }
        let slot = match self.concurrency.permit_request(None, host.id, &host.table.name) {
            Some(request) => Some(self.concurrency.take(request, self.ending.begins()).await?),
            None => None,
        };
        Ok(RunPermit { workflow, slot })
    }

    /// A permit for a run of this workflow, if one is free now.
    pub(super) fn permit_now(&self, host: &Host) -> Result<RunPermit, StartError> {
        let request = self.concurrency.permit_request(None, host.id, &host.table.name);
        let slot = match request {
            Some(request) => {
                let permit = request.take_now()?;
                Some((request, Some(permit)))
            }
            None => None,
        };
        Ok(RunPermit { workflow: Arc::clone(&host.table.name), slot })
    }

    async fn attached_with(
        self: &Arc<Self>,
        id: &RunId,
        permit: RunPermit,
    ) -> Result<Arc<RunShared>, ResumeError> {
        let mut permit = Some(permit);
        let how = LoadAs { by: LoadedBy::Handle(None), cancelled: None, permit: &mut permit };
        let run = match self.find_as(id, how).await? {
            Loaded::Ended(run) => return Ok(run),
            Loaded::Resumed(run) | Loaded::Here(run) => run,
            Loaded::Waiting | Loaded::Awaited | Loaded::Moved(_) | Loaded::Full => {
                return Err(ResumeError::UnknownRun { run: id.clone() });
            }
        };
        drop(permit);
        if run.status.begun().await {
            return Ok(run);
        }
        // It ended before the store had that it was resumed.
        match run.outcome().await {
            Err(RunError::Conflict { run }) => self.lost(run).await,
            Err(RunError::Store { source }) => Err(ResumeError::Store(source)),
            Err(RunError::Detached) => Err(ResumeError::ShutDown),
            // A caller cancelled it at once, and its handle says so.
            _ => Ok(run),
        }
    }

    /// The run that another engine took up first: the engine that has it, or the run if it has ended since.
    async fn lost(self: &Arc<Self>, run: RunId) -> Result<Arc<RunShared>, ResumeError> {
        match self.journals.availability(&run).await.map_err(ResumeError::Store)? {
            Availability::Elsewhere(engine) => return Err(ResumeError::Elsewhere { run, engine }),
            Availability::Unknown => return Err(ResumeError::UnknownRun { run }),
            Availability::Free(_) => {}
        }
        if self.journals.is_listed_as_ended(&run).await.map_err(ResumeError::Store)?
            && let Loaded::Ended(ended) = self.find(&run, None::<AskedType>).await?
        {
            return Ok(ended);
        }
        Err(ResumeError::Contended { run })
    }
}
