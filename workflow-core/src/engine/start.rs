//! Starting runs.

use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::registered::Registered;
use super::{Inner, Start, journals};
use crate::children::Birth;
use crate::display::Forward;
use crate::error::{SendError, StartError};
use crate::id::RunId;
use crate::panics::Driven;
use crate::run::{Host, Received, Run, RunExtras, RunOptions, RunShared};
use crate::store::StoreError;

/// Reports whether the store took the beginning of a run.
type Written = oneshot::Sender<Result<(), SendError>>;

impl Inner {
    /// Starts a run as a task of its own. Without types, so that it is compiled here and not once more in every crate
    /// that starts runs.
    pub(super) async fn spawn(
        self: &Arc<Self>,
        start: Start,
        options: RunOptions,
    ) -> Result<Arc<RunShared>, StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let (done, written) = self.journals.are_kept().then(oneshot::channel).unzip();
        let (run, shared) = self.prepare(start, options, done).await?;
        runtime.spawn(run);
        if let Some(written) = written {
            Box::pin(journals::begun(&shared, written)).await?;
        }
        Ok(shared)
    }

    /// A run that is ready to be driven, and what its handle needs.
    pub(super) async fn prepare(
        self: &Arc<Self>,
        mut start: Start,
        options: RunOptions,
        done: Option<Written>,
    ) -> Result<(impl Future<Output = ()> + Send + use<>, Arc<RunShared>), StartError> {
        let (host, index) = self.hosts.of(&start)?;
        self.common.event_check().check(&mut start.event, 1)?;
        let layers = self.journals.layers(&host, &options);
        let shared = Arc::new(self.shared(&host, options, None)?);
        let registered = Registered::new(self, &shared)?;
        // Few starts wait for this: it has no room in the future of all of them.
        let slot = match self.concurrency.places(&shared.id, host.id, &host.table.name) {
            Some(places) => Some(Box::pin(self.concurrency.take(places, self.ending.begins())).await?),
            None => None,
        };
        if self.journals.lease().is_some() {
            Box::pin(self.take_lease()).await.map_err(StartError::Store)?;
        }
        // Asked once the run is registered: either it is refused here, or shutting down finds it there.
        let _task = self.ending.enter().ok_or(StartError::ShutDown)?;
        let journal = self.journals.begin(&shared, layers);
        let run = Run::new(Arc::clone(&shared), host, self.common.settings.limits, slot, journal);
        let start = Received { event: start.event, done };
        let driven = Driven::new(run.drive(start, index, registered));
        Ok((self.ending.track(driven), shared))
    }

    /// The part of a run that its task, its handles and its executions share.
    pub(super) fn shared(
        &self,
        host: &Host,
        options: RunOptions,
        birth: Option<Birth>,
    ) -> Result<RunShared, StartError> {
        let configs = self.hosts.configs(host, &options)?;
        let RunOptions { id, thread, metadata, timeout, .. } = options;
        let id = id.unwrap_or_else(RunId::generate);
        let shows = birth.as_ref().map(|birth| {
            let child = birth.child(id.clone(), Arc::clone(&host.table.name));
            Forward::new(birth.display.clone(), child)
        });
        let extras = RunExtras { configs, metadata, birth, ..RunExtras::default() };
        let (table, common) = (Arc::clone(&host.table), Arc::clone(&self.common));
        let timeout = timeout.or(common.settings.timeout);
        let shared = RunShared::new(id, thread, timeout, table, common, extras);
        if let Some(shows) = shows {
            shared.display().forward(shows);
        }
        Ok(shared)
    }

    /// Takes the engine's lease if it is to have one, keeps it from then on, and claims orphans after each renewal.
    pub(super) async fn take_lease(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(lease) = self.journals.lease() else { return Ok(()) };
        let claims = || {
            let engine = Arc::downgrade(self);
            move || {
                let Some(engine) = engine.upgrade() else { return ControlFlow::Break(()) };
                let Some(_task) = engine.ending.enter() else { return ControlFlow::Continue(None) };
                let inner = Arc::clone(&engine);
                let claims = engine.ending.track(async move { inner.claim_orphans().await });
                ControlFlow::Continue(Some(Box::pin(claims) as BoxFuture<'static, ()>))
            }
        };
        lease.hold(claims).await
    }
}
