//! Starting child runs, within their limits: how deep they nest, and how many have a place to execute steps in.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::registered::Registered;
use super::tasks::TaskToken;
use super::{Inner, Start};
use crate::children::{Birth, HostsRuns, Spawned};
use crate::error::StartError;
use crate::id::{RunId, ThreadId};
use crate::panics::Driven;
use crate::run::{Host, Journal, Received, Run, RunOptions, RunShared};
use crate::store::StoreError;
use crate::table::EventIndex;

/// A child that is to be driven.
pub(super) struct Born {
    pub(super) run: Box<Run>,
    pub(super) shared: Arc<RunShared>,
    pub(super) registered: Registered,
    /// The engine's end waits for it until it is driven.
    pub(super) _task: TaskToken,
}

impl HostsRuns for Inner {
    // The child does not wait for a permit: its steps do, so that the step that starts it can go on.
    fn start_child(
        self: Arc<Self>,
        mut start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> Result<Spawned, StartError> {
        self.concurrency.check_depth(birth.depth)?;
        let (runtime, host, index) = self.child_host(&start)?;
        self.common.event_check().check(&mut start.event, 1)?;
        let layers = self.journals.layers(&host, &options);
        let made = self.shared(&host, options, Some(birth))?;
        let Born { run, shared, registered, _task } =
            self.bear(host, made, |shared| self.journals.begin(shared, layers))?;
        let (done, written) = self.journals.are_kept().then(oneshot::channel).unzip();
        let start = Received { event: start.event, done };
        runtime.spawn(self.ending.track(Driven::new(run.drive(start, index, registered))));
        Ok(Spawned { shared, written })
    }

    // In a task of its own: the step that asks may not poll this for long, and others wait for the run's lock.
    fn find_child(
        self: Arc<Self>,
        start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> BoxFuture<'static, Result<Spawned, StartError>> {
        Box::pin(async move {
            let Some(id) = options.id.clone().filter(|_| self.journals.are_kept()) else {
                return self.start_child(start, options, birth);
            };
            let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
            let engine = Arc::clone(&self);
            let found = async move { engine.found(&id, start, options, birth).await };
            let found = runtime.spawn(self.ending.track(found));
            drop(self);
            // A task that gives no answer is gone with its runtime.
            found.await.unwrap_or_else(|error| Err(StartError::Store(StoreError::unavailable(error))))
        })
    }

    fn end_forsaken(self: Arc<Self>, parent: RunId) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.orphans().end_children_of(&parent).await })
    }

    fn wake(self: Arc<Self>, run: RunId) -> BoxFuture<'static, Result<bool, StoreError>> {
        // Not in a task of its own: the run would be unloaded again before the caller has sent it anything.
        Box::pin(async move { Self::wake(&self, &run, None).await })
    }

    fn note_left(self: Arc<Self>, run: Arc<RunShared>) {
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
    /// Where a child runs, and what it is of.
    pub(super) fn child_host(&self, start: &Start) -> Result<(Handle, Arc<Host>, EventIndex), StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let (host, index) = self.hosts.of(start)?;
        Ok((runtime, host, index))
    }

    /// A child among its parent's and the engine's runs, which is to be driven.
    pub(super) fn bear(
        self: &Arc<Self>,
        host: Arc<Host>,
        shared: RunShared,
        journal: impl FnOnce(&RunShared) -> Option<Journal>,
    ) -> Result<Born, StartError> {
        let shared = Arc::new(shared);
        let lent = shared.birth().and_then(|birth| birth.lent.clone());
        let places = self.concurrency.child_places(&shared.id, &host.table.name, lent);
        let registered = Registered::new(self, &shared)?;
        let task = self.ending.enter().ok_or(StartError::ShutDown)?;
        if let Some(birth) = &shared.birth() {
            let child = birth.child(shared.id.clone(), Arc::clone(&host.table.name));
            birth.join(child, &shared)?;
        }
        let journal = journal(&shared);
        let run =
            Run::new(Arc::clone(&shared), host, self.common.settings.limits, Some((places, None)), journal);
        Ok(Born { run, shared, registered, _task: task })
    }
}
