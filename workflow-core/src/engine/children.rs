//! Starting child runs within the limits on their depth and their permits.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Inner;
use super::registration::{Registered, Unbegun};
use super::reminders::MAX_CONCURRENT_LOADS;
use crate::id::{ExecutionId, RunId, ThreadId};
use crate::outcome::StartError;
use crate::panics::Driven;
use crate::run::{
    Host, HostsRuns, Journal, ParentLink, Reattach, Received, Run, RunOptions, RunShared, Spawned, Start,
    check_deadline,
};
use crate::store::{EndedChild, StoreError, StoredRun};

/// A registered child before its task is spawned.
pub(super) struct NewChild {
    pub(super) run: Box<Run>,
    pub(super) shared: Arc<RunShared>,
    pub(super) registered: Registered,
    /// Keeps the engine's end waiting until the task is spawned.
    pub(super) _task: TaskTrackerToken,
}

impl HostsRuns for Inner {
    // The child does not wait for a permit: its steps do, so that the step that starts it can continue.
    fn start_child(
        self: Arc<Self>,
        start: Start,
        options: RunOptions,
        link: ParentLink,
    ) -> Result<Spawned, StartError> {
        self.concurrency.check_depth(link.depth)?;
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let (host, index, mut event) = self.hosts.of(start, options.workflow.as_ref())?;
        self.common.event_check().check(&mut event, 1)?;
        options.check()?;
        check_deadline(options.deadline_at(), || self.common.clock.now())?;
        let layers = self.journals.layers(&host, &options);
        let origin = options.checked_origin()?;
        let made = self.shared(&host, options, Some(link))?;
        let NewChild { run, shared, registered, _task } =
            self.register_child(host, made, |shared| self.journals.begin(shared, layers))?;
        let (done, written) = self.journals.are_kept().then(oneshot::channel).unzip();
        let start = Received { event, origin, done };
        runtime.spawn(self.ending.track(Driven::new(run.drive(start, index, registered))));
        Ok(Spawned { shared, written })
    }

    fn asks_sources(&self, start: &Start, options: &RunOptions) -> bool {
        Self::asks_sources(self, start, options)
    }

    // In a task of its own: the step may not poll this for long, and other tasks wait for the run's lock.
    fn find_child(
        self: Arc<Self>,
        start: Start,
        options: RunOptions,
        link: ParentLink,
    ) -> BoxFuture<'static, Result<Spawned, StartError>> {
        Box::pin(async move {
            let may_have_begun = link.may_have_earlier_children && self.journals.are_kept();
            let Some(id) = options.id.clone().filter(|_| may_have_begun) else {
                let options = self.with_sources(&start, options).await?;
                return self.start_child(start, options, link);
            };
            let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
            let engine = Arc::clone(&self);
            let found = async move { engine.find_or_start_child(&id, start, options, link).await };
            let found = runtime.spawn(self.ending.track(found));
            drop(self);
            // A task without a result was dropped with its runtime.
            found.await.unwrap_or_else(|error| Err(StartError::Store(StoreError::unavailable(error))))
        })
    }

    fn cancel_orphans_of(
        self: Arc<Self>,
        parent: RunId,
        before: Option<ExecutionId>,
    ) -> BoxFuture<'static, Vec<EndedChild>> {
        Box::pin(async move { self.orphaned_children().cancel_children_of(&parent, before).await })
    }

    fn cancel_left_child(
        self: Arc<Self>,
        child: RunId,
        parent: RunId,
    ) -> BoxFuture<'static, Option<EndedChild>> {
        Box::pin(async move {
            // What the store does not answer now, the end of the parent asks again.
            let left = self.cancel_orphan(&child, &parent, None).await.ok()??;
            left.ended().await;
            left.has_ended_for_good().then(|| EndedChild { run: child, status: left.status() })
        })
    }

    fn look_for_children(
        self: Arc<Self>,
        parent: Arc<RunShared>,
        children: Vec<RunId>,
    ) -> BoxFuture<'static, Vec<EndedChild>> {
        Box::pin(async move {
            let looked = stream::iter(children).map(|run| Arc::clone(&self).look_for_child(&parent, run));
            looked.buffered(MAX_CONCURRENT_LOADS).filter_map(std::future::ready).collect().await
        })
    }

    fn wake(self: Arc<Self>, run: RunId) -> BoxFuture<'static, Result<bool, StoreError>> {
        // In the caller's task: otherwise the run could be unloaded again before the caller's message.
        Box::pin(async move { Self::wake(&self, &run, None).await })
    }

    fn deliver_signal(self: Arc<Self>, run: Arc<RunShared>) {
        if self.runs.is_unloaded(&run.id)
            && let Some(runtime) = self.reminders.runtime()
        {
            let deliver = Arc::clone(&self).deliver(run);
            runtime.spawn(self.ending.track(deliver));
        }
    }

    fn clear_contexts(self: Arc<Self>, run: RunId, thread: Option<ThreadId>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Err(error) = self.contexts.clear(&run, thread).await {
                tracing::warn!(%run, %error, "the context of a run that has ended could not be cleared");
            }
        })
    }

    fn handles_gone(&self, run: &RunId) {
        self.runs.handles_gone(run);
    }
}

impl Inner {
    /// Re-attaches a child that was resumed before its parent, or returns its end.
    async fn look_for_child(self: Arc<Self>, parent: &Arc<RunShared>, run: RunId) -> Option<EndedChild> {
        if let Some(child) = self.runs.driven(&run) {
            let names = child.parent().filter(|names| names.run == parent.id)?;
            let awaited = parent.child_registry().awaits(&run)?;
            Reattach::without_request(parent, names, awaited).attach(parent, &child);
            return None;
        }
        // If the store does not answer, the next load looks again.
        let StoredRun { run: summary, .. } = self.journals.listed(&run).await.ok()??;
        let is_child = summary.parent.is_none_or(|names| names.run == parent.id);
        (is_child && summary.status.is_ended()).then_some(EndedChild { run, status: summary.status })
    }

    /// Registers a child with the engine and its parent, and makes its run.
    pub(super) fn register_child(
        self: &Arc<Self>,
        host: Arc<Host>,
        shared: RunShared,
        journal: impl FnOnce(&RunShared) -> Option<Journal>,
    ) -> Result<NewChild, StartError> {
        let shared = Arc::new(shared);
        let lent = shared.parent_link().and_then(|link| link.lent.clone());
        let places = self.concurrency.child_places(&shared.id, &host.table.name, lent);
        // A parent that ends waits for this, so that no id of a child outlives it.
        let joining = shared.parent_link().map(ParentLink::enter).transpose()?;
        let unbegun = Unbegun::new(self, Arc::clone(&shared))?;
        let joins = || {
            let task = self.ending.enter().ok_or(StartError::ShutDown)?;
            if let Some(link) = &shared.parent_link() {
                let child = link.child(shared.id.clone(), Arc::clone(&host.table.name));
                link.join(child, &shared)?;
            }
            Ok(task)
        };
        let task = match joins() {
            Ok(task) => task,
            Err(error) => {
                unbegun.refuse(&error);
                return Err(error);
            }
        };
        drop(joining);
        let (registered, shared) = unbegun.begins().ok_or(StartError::ShutDown)?;
        let journal = journal(&shared);
        let run =
            Run::new(Arc::clone(&shared), host, self.common.settings.limits, Some((places, None)), journal);
        Ok(NewChild { run, shared, registered, _task: task })
    }
}
