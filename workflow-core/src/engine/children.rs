//! Starting child runs, within their limits: how deep they nest, and how many have a place to execute steps in.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::stored::read_all;
use super::{Engine, Inner, Registered, Start};
use crate::children::{Birth, HostsRuns, Spawned, reunite};
use crate::error::{RunError, StartError};
use crate::id::RunId;
use crate::run::{Bounded, Gate, Places, Received, Run, RunOptions, RunShared};
use crate::store::{EventStore, StoreError};
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

impl HostsRuns for Inner {
    fn start_child(
        self: Arc<Self>,
        start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> Result<Spawned, StartError> {
        Engine { inner: self }.spawn_child(start, options, birth)
    }

    fn end_forsaken(self: Arc<Self>, parent: RunId) -> BoxFuture<'static, ()> {
        let engine = Engine { inner: self };
        Box::pin(async move { engine.end_forsaken_by(&parent).await })
    }

    fn wake(self: Arc<Self>, run: RunId) -> BoxFuture<'static, Result<bool, StoreError>> {
        let engine = Engine { inner: self };
        Box::pin(async move { engine.wake(&run, None).await })
    }

    fn note_left(self: Arc<Self>, run: Arc<RunShared>) {
        if self.known.is_released(&run.id)
            && let Some(runtime) = self.idle.runtime()
        {
            runtime.spawn(Engine { inner: self }.deliver(run));
        }
    }

    fn handles_gone(&self, run: &RunId) {
        self.known.handles_gone(run);
    }
}

impl Engine {
    /// Starts a child as a task of its own. It does not wait for a place: its steps do, so that whoever has started
    /// it can go on.
    fn spawn_child(&self, start: Start, options: RunOptions, birth: Birth) -> Result<Spawned, StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let ChildLimits { depth: limit, gate } = &self.inner.children;
        if birth.depth > *limit {
            return Err(StartError::TooDeep { depth: birth.depth, limit: *limit });
        }
        let (host, index) = self.host_of(&start)?;
        let layers = self.inner.layers(&host, &options);
        if let Some(spawned) = options.id.as_ref().and_then(|id| self.goes_on_already(id, &birth)) {
            return Ok(spawned);
        }
        let lent = birth.lent.clone();
        let (shared, commands) = self.shared(&host, options, Some(birth))?;
        let shared = Arc::new(shared);
        let places = Places::of_child(&shared.id, &host.table.name, gate, lent, &self.inner.queue);
        let registered = self.register(&shared.id, Arc::downgrade(&shared))?;
        if self.inner.shut_down.load(Ordering::SeqCst) {
            return Err(StartError::ShutDown);
        }
        if let Some(birth) = &shared.birth {
            let child = birth.child(shared.id.clone(), Arc::clone(&host.table.name));
            birth.join(child, &shared)?;
        }
        let (done, written) = self.inner.store.is_some().then(oneshot::channel).unzip();
        let (journal, limits) = (self.inner.journal(&shared, layers), self.inner.limits);
        let run = Run::new(Arc::clone(&shared), host, limits, commands, Some((places, None)), journal);
        let start = Received { event: start.event, done };
        // What an earlier process has begun goes on.
        match self.inner.store.clone().filter(|_| shared.birth.as_ref().is_some_and(Birth::is_of_resumed)) {
            Some(store) => runtime.spawn(find(store, run, start, index, registered)),
            None => runtime.spawn(run.drive(start, index, registered)),
        };
        Ok(Spawned { shared, written })
    }
}

impl Engine {
    /// The child that an earlier process has begun for the same, if it goes on here without having been asked for.
    fn goes_on_already(&self, id: &RunId, birth: &Birth) -> Option<Spawned> {
        let shared = self.here(id).filter(|_| birth.is_of_resumed())?;
        let is_the_same = shared.resumed && shared.parent() == Some(&birth.parent);
        let parent = self.here(&birth.parent.run).filter(|_| is_the_same)?;
        reunite(&parent, &birth.parent, &shared, Arc::clone(&birth.unwanted), birth.awaited);
        Some(Spawned { shared, written: None })
    }
}

/// Drives a child on from where its journal ends, or from its start event if it has none.
async fn find(
    store: Arc<dyn EventStore>,
    run: Run,
    start: Received,
    index: EventIndex,
    registered: Registered,
) {
    match read_all(&*store, run.id()).await {
        Ok(records) if records.is_empty() => run.drive(start, index, registered).await,
        Ok(records) => run.drive_from(store, &records, start, registered).await,
        Err(source) => {
            drop(registered);
            run.fail(RunError::Store { source });
        }
    }
}
