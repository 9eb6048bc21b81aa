//! Starting child runs, within their limits: how deep they nest, and how many have a place to execute steps in.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{Engine, Inner, Registered, Start};
use crate::children::{Birth, HostsRuns, Spawned};
use crate::error::StartError;
use crate::id::{RunId, ThreadId};
use crate::panics::Driven;
use crate::run::{Bounded, Gate, Host, Journal, Places, Received, Run, RunOptions, RunShared};
use crate::store::StoreError;
use crate::table::EventIndex;

/// The limits of child runs.
pub(super) struct ChildLimits {
    depth: u32,
    /// Places of their own: a parent that waits for its children keeps its place among the engine's runs.
    gate: Arc<Gate>,
}

impl ChildLimits {
    pub(super) fn new(depth: u32, concurrent: usize) -> Self {
        Self { depth, gate: Arc::new(Gate::new(concurrent, Bounded::Children)) }
    }
}

/// A child that is to be driven.
pub(super) struct Born {
    pub(super) run: Box<Run>,
    pub(super) shared: Arc<RunShared>,
    pub(super) registered: Registered,
    /// The engine's end waits for it until it is driven.
    pub(super) _task: TaskTrackerToken,
}

impl HostsRuns for Inner {
    fn start_child(
        self: Arc<Self>,
        start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> Result<Spawned, StartError> {
        Engine { inner: self }.spawn_child(start, options, birth)
    }

    fn find_child(
        self: Arc<Self>,
        start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> BoxFuture<'static, Result<Spawned, StartError>> {
        Box::pin(Engine { inner: self }.find_child(start, options, birth))
    }

    fn end_forsaken(self: Arc<Self>, parent: RunId) -> BoxFuture<'static, ()> {
        let engine = Engine { inner: self };
        Box::pin(async move { engine.end_forsaken_by(&parent).await })
    }

    fn wake(self: Arc<Self>, run: RunId) -> BoxFuture<'static, Result<bool, StoreError>> {
        // Not in a task of its own: the run would be let go of again before whoever asks has told it anything.
        let engine = Engine { inner: self };
        Box::pin(async move { engine.wake(&run, None).await })
    }

    fn note_left(self: Arc<Self>, run: Arc<RunShared>) {
        if self.known.is_released(&run.id)
            && let Some(runtime) = self.idle.runtime()
        {
            let deliver = Engine { inner: Arc::clone(&self) }.deliver(run);
            runtime.spawn(self.ending.track(deliver));
        }
    }

    fn clear_contexts(self: Arc<Self>, run: RunId, thread: Option<ThreadId>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Err(error) = self.clear(&run, thread).await {
                tracing::warn!(%run, %error, "the context of a run that has ended could not be cleared");
            }
        })
    }

    fn handles_gone(&self, run: &RunId) {
        self.known.handles_gone(run);
    }
}

impl Engine {
    /// Starts a child as a task of its own. It does not wait for a place: its steps do, so that whoever has started
    /// it can go on.
    pub(super) fn spawn_child(
        &self,
        mut start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> Result<Spawned, StartError> {
        let limit = self.inner.children.depth;
        if birth.depth > limit {
            return Err(StartError::TooDeep { depth: birth.depth, limit });
        }
        let (runtime, host, index) = self.child_host(&start)?;
        self.check_start(&mut start)?;
        let layers = self.inner.layers(&host, &options);
        let made = self.shared(&host, options, Some(birth))?;
        let Born { run, shared, registered, _task } =
            self.bear(host, made, |shared| self.inner.journal(shared, layers))?;
        let (done, written) = self.inner.store.is_some().then(oneshot::channel).unzip();
        let start = Received { event: start.event, done };
        runtime.spawn(self.inner.ending.track(Driven::new(run.drive(start, index, registered))));
        Ok(Spawned { shared, written })
    }

    /// Where a child runs, and what it is of.
    pub(super) fn child_host(&self, start: &Start) -> Result<(Handle, Arc<Host>, EventIndex), StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let (host, index) = self.host_of(start)?;
        Ok((runtime, host, index))
    }

    /// A child among its parent's and the engine's runs, which is to be driven.
    pub(super) fn bear(
        &self,
        host: Arc<Host>,
        shared: RunShared,
        journal: impl FnOnce(&RunShared) -> Option<Journal>,
    ) -> Result<Born, StartError> {
        let shared = Arc::new(shared);
        let (gate, lent) = (&self.inner.children.gate, shared.birth().and_then(|birth| birth.lent.clone()));
        let places = Places::of_child(&shared.id, &host.table.name, gate, lent, &self.inner.queue);
        let registered = self.register(&shared.id, Arc::downgrade(&shared))?;
        let task = self.inner.ending.enter().ok_or(StartError::ShutDown)?;
        if let Some(birth) = &shared.birth() {
            let child = birth.child(shared.id.clone(), Arc::clone(&host.table.name));
            birth.join(child, &shared)?;
        }
        let journal = journal(&shared);
        let run = Run::new(Arc::clone(&shared), host, self.inner.limits, Some((places, None)), journal);
        Ok(Born { run, shared, registered, _task: task })
    }
}
