//! Starting runs.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::hosts::recorded_layers;
use super::registered::Registered;
use super::{Inner, Start, journals};
use crate::children::Birth;
use crate::display::Forward;
use crate::error::{SendError, StartError};
use crate::id::RunId;
use crate::panics::Driven;
use crate::run::{Host, Place, Places, Received, Run, RunExtras, RunOptions, RunShared};
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
        let layers = self.recorded_layers(&host, &options);
        let shared = Arc::new(self.shared(&host, options, None)?);
        let registered = self.register(&shared)?;
        // What few have to wait for, the future of a start has no room for.
        let slot = match self.places(&host, &shared.id) {
            Some(places) => Some(Box::pin(self.take_slot(places)).await?),
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

    /// The layers of configuration for the journal of a run that begins.
    pub(super) fn recorded_layers(&self, host: &Host, options: &RunOptions) -> BTreeMap<String, Value> {
        if self.journals.are_kept() { recorded_layers(host, options) } else { BTreeMap::new() }
    }

    /// The limits of a run, if it has any.
    pub(super) fn places(&self, host: &Host, run: &RunId) -> Option<Places> {
        self.concurrency.places(run, host.id, &host.table.name)
    }

    /// A permit for a run that begins.
    async fn take_slot(&self, places: Places) -> Result<(Places, Option<Place>), StartError> {
        let place = self.concurrency.take(&places, self.ending.begins()).await?;
        Ok((places, Some(place)))
    }

    /// What a run shares with its handles, and what they tell it.
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

    pub(super) fn register(self: &Arc<Self>, run: &Arc<RunShared>) -> Result<Registered, StartError> {
        Registered::new(self, run).ok_or_else(|| StartError::DuplicateRun { run: run.id.clone() })
    }

    /// Takes the engine's lease if it is to have one, keeps it from then on, and claims orphans after each renewal.
    pub(super) async fn take_lease(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(lease) = self.journals.lease() else { return Ok(()) };
        let claims = || {
            let engine = Arc::downgrade(self);
            move || match engine.upgrade() {
                Some(engine) => ControlFlow::Continue(engine.claims()),
                None => ControlFlow::Break(()),
            }
        };
        lease.hold(claims).await
    }

    /// A task that claims orphans; none if the engine ends.
    fn claims(self: Arc<Self>) -> Option<BoxFuture<'static, ()>> {
        let _task = self.ending.enter()?;
        let inner = Arc::clone(&self);
        let claims = self.ending.track(async move { inner.claim_orphans().await });
        Some(Box::pin(claims))
    }
}
