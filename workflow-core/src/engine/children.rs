//! Starting child runs, within their limits: how deep they nest, and how many have a place to execute steps in.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::{Engine, Inner, Start};
use crate::children::{Birth, Spawned, StartChild};
use crate::error::StartError;
use crate::run::{Bounded, Gate, Places, Received, Run, RunOptions};

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

impl StartChild for Inner {
    fn start_child(
        self: Arc<Self>,
        start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> Result<Spawned, StartError> {
        Engine { inner: self }.spawn_child(start, options, birth)
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
        let lent = birth.lent.clone();
        let shared = Arc::new(self.shared(&host, options, Some(birth))?);
        let places = Places::of_child(&shared.id, &host.table.name, gate, lent, &self.inner.queue);
        let (mailbox, commands) = mpsc::channel(self.inner.mailbox_capacity);
        let registered = self.register(&shared.id, &mailbox)?;
        if self.inner.shut_down.load(Ordering::SeqCst) {
            return Err(StartError::ShutDown);
        }
        if let Some(birth) = &shared.birth {
            let child = birth.child(shared.id.clone(), Arc::clone(&host.table.name));
            birth.join(child, &shared)?;
        }
        let (done, written) = self.inner.store.is_some().then(oneshot::channel).unzip();
        let (journal, limits) = (self.inner.journal(&shared), self.inner.limits);
        let run = Run::new(Arc::clone(&shared), host, limits, commands, Some((places, None)), journal);
        runtime.spawn(run.drive(Received { event: start.event, done }, index, registered));
        Ok(Spawned { shared, mailbox, written })
    }
}
