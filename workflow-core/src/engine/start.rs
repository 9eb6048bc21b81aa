//! Starting runs.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use futures_util::future::{BoxFuture, Either, select};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::Inner;
use super::registration::Unbegun;
use super::resume::Resumed;
use crate::display::Forward;
use crate::event::AnyEvent;
use crate::id::{Origin, RunId};
use crate::outcome::{SendError, StartError};
use crate::panics::Driven;
use crate::run::{
    Host, ParentLink, Permit, PermitRequest, Received, Run, RunExtras, RunHandle, RunOptions, RunShared,
    Start, begun, check_deadline,
};
use crate::store::StoreError;
use crate::table::EventIndex;

/// Reports whether the store took the beginning of a run.
type Written = oneshot::Sender<Result<(), SendError>>;

/// The limits of a run, and the permit that it has among them.
pub(super) type Slot = (PermitRequest, Option<Permit>);

/// A run that is being started: a future of the run's handle.
///
/// [`Engine::start`](crate::Engine::start) returns it. It does nothing before its first poll. Without a store and
/// without limits it completes at its first poll. Dropping it gives up the wait for a permit.
///
/// # Panics
/// If it is polled after completion, as the future of an `async` function.
#[must_use = "a run starts when this is awaited"]
pub struct Starting<'a, W> {
    state: State<'a>,
    workflow: PhantomData<fn() -> W>,
}

/// The state of a start. Written by hand: all workflows share it, and a start that waits for nothing allocates nothing.
enum State<'a> {
    Unbegun { engine: &'a Arc<Inner>, start: Start, options: RunOptions },
    Waiting(BoxFuture<'a, Result<Arc<RunShared>, StartError>>),
    Over,
}

impl<'a, W> Starting<'a, W> {
    pub(super) fn new(engine: &'a Arc<Inner>, start: Start, options: RunOptions) -> Self {
        Self { state: State::Unbegun { engine, start, options }, workflow: PhantomData }
    }
}

impl<W> Future for Starting<'_, W> {
    type Output = Result<RunHandle<W>, StartError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut waiting = match std::mem::replace(&mut self.state, State::Over) {
            State::Unbegun { engine, start, options } => match engine.begin(start, options)? {
                Begun::Now(shared) => return Poll::Ready(Ok(RunHandle::new(shared))),
                Begun::Later(waiting) => waiting,
            },
            State::Waiting(waiting) => waiting,
            // As the future of an `async` function: a pending result would never wake the caller.
            State::Over => panic!("a start was polled after it was over"),
        };
        let polled = waiting.as_mut().poll(cx);
        if polled.is_pending() {
            self.state = State::Waiting(waiting);
        }
        polled.map_ok(RunHandle::new)
    }
}

impl<W> fmt::Debug for Starting<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Unbegun { .. } => "Starting(unbegun)",
            State::Waiting(_) => "Starting(waiting)",
            State::Over => "Starting(over)",
        })
    }
}

/// The result of the first poll of a start.
enum Begun<'a> {
    /// The run has its task.
    Now(Arc<RunShared>),
    /// The run gets its task, or the store takes its beginning, before this future completes.
    Later(BoxFuture<'a, Result<Arc<RunShared>, StartError>>),
}

impl Inner {
    /// Starts a run whose workflow's type the caller does not know.
    pub(super) async fn start_any(
        self: &Arc<Self>,
        start: Start,
        options: RunOptions,
    ) -> Result<Arc<RunShared>, StartError> {
        match self.begin(start, options)? {
            Begun::Now(shared) => Ok(shared),
            Begun::Later(waiting) => waiting.await,
        }
    }
}

/// A registered run without a task.
pub(super) struct Prepared {
    host: Arc<Host>,
    index: EventIndex,
    event: AnyEvent,
    origin: Option<Arc<Origin>>,
    layers: BTreeMap<String, Value>,
    unbegun: Unbegun,
}

impl Inner {
    /// Starts a run in a task of its own, at once if it waits for nothing. Without type parameters, so that it is
    /// compiled once, in this crate.
    fn begin(self: &Arc<Self>, start: Start, options: RunOptions) -> Result<Begun<'_>, StartError> {
        if !self.asks_sources(&start, &options) {
            return self.begin_with(start, options);
        }
        Ok(Begun::Later(Box::pin(async move {
            let options = self.with_sources(&start, options).await?;
            match self.begin_with(start, options)? {
                Begun::Now(shared) => Ok(shared),
                Begun::Later(waiting) => waiting.await,
            }
        })))
    }

    /// Starts a run whose configuration is complete.
    fn begin_with(self: &Arc<Self>, start: Start, options: RunOptions) -> Result<Begun<'_>, StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let (prepared, permit_request) = self.prepare(start, options)?;
        if permit_request.is_none() && !self.journals.are_kept() && self.journals.lease().is_none() {
            let (run, shared) = self.task_for(prepared, None, None)?;
            runtime.spawn(run);
            return Ok(Begun::Now(shared));
        }
        Ok(Begun::Later(Box::pin(async move {
            // With a store the start is complete only when the journal begins; a dropped future leaves the run running.
            let (done, written) = self.journals.are_kept().then(oneshot::channel).unzip();
            let deadline = prepared.unbegun.run().and_then(|run| run.deadline());
            let slot = match self.admit_before(deadline, permit_request).await {
                Ok(slot) => slot,
                Err(error) => {
                    prepared.unbegun.refuse(&error);
                    return Err(error);
                }
            };
            let (run, shared) = self.task_for(prepared, slot, done)?;
            runtime.spawn(run);
            if let Some(written) = written {
                begun(&shared, written).await?;
            }
            Ok(shared)
        })))
    }

    /// Registers a run. Also returns its limits, if it has any: the run needs a permit before it begins.
    pub(super) fn prepare(
        self: &Arc<Self>,
        start: Start,
        options: RunOptions,
    ) -> Result<(Prepared, Option<PermitRequest>), StartError> {
        // Everything that can refuse the start without waiting comes here. The registration reserves the id.
        let (host, index, mut event) = self.hosts.of(start, options.workflow.as_ref())?;
        self.common.event_check().check(&mut event, 1)?;
        options.check()?;
        check_deadline(options.deadline_at(), || self.common.clock.now())?;
        let layers = self.journals.layers(&host, &options);
        let origin = options.checked_origin()?;
        let shared = Arc::new(self.shared(&host, options, None)?);
        let unbegun = Unbegun::new(self, Arc::clone(&shared))?;
        let permit_request = self.concurrency.permit_request(Some(&shared.id), host.id, &host.table.name);
        Ok((Prepared { host, index, event, origin, layers, unbegun }, permit_request))
    }

    /// The same for a run that ends at its deadline, and with it the wait.
    async fn admit_before(
        self: &Arc<Self>,
        deadline: Option<SystemTime>,
        permit_request: Option<PermitRequest>,
    ) -> Result<Option<Slot>, StartError> {
        let Some(deadline) = deadline else { return self.admit(permit_request).await };
        let passes = pin!(self.common.clock.slept_until(deadline));
        match select(pin!(self.admit(permit_request)), passes).await {
            Either::Left((admitted, _)) => admitted,
            Either::Right(_) => Err(StartError::DeadlinePassed { deadline }),
        }
    }

    /// Waits for a permit and for the engine's lease.
    pub(super) async fn admit(
        self: &Arc<Self>,
        permit_request: Option<PermitRequest>,
    ) -> Result<Option<Slot>, StartError> {
        let slot = match permit_request {
            Some(permit_request) => Some(self.concurrency.take(permit_request, self.ending.begins()).await?),
            None => None,
        };
        self.take_lease().await.map_err(StartError::Store)?;
        Ok(slot)
    }

    /// The task of a prepared run, not yet spawned, and the part that its handles share.
    pub(super) fn task_for(
        &self,
        prepared: Prepared,
        slot: Option<Slot>,
        done: Option<Written>,
    ) -> Result<(impl Future<Output = ()> + Send + use<>, Arc<RunShared>), StartError> {
        let Prepared { host, index, event, origin, layers, unbegun } = prepared;
        // Checked once the run is registered: either the run is refused here, or shutting down finds it in the
        // registry.
        let _task = self.ending.enter().ok_or(StartError::ShutDown)?;
        let (registered, shared) = unbegun.begins().ok_or(StartError::ShutDown)?;
        let journal = self.journals.begin(&shared, layers);
        let run = Run::new(Arc::clone(&shared), host, self.common.settings.limits, slot, journal);
        let driven = Driven::new(run.drive(Received { event, origin, done }, index, registered));
        Ok((self.ending.track(driven), shared))
    }

    /// The part of a run that its task, its handles and its executions share.
    pub(super) fn shared(
        &self,
        host: &Host,
        options: RunOptions,
        link: Option<ParentLink>,
    ) -> Result<RunShared, StartError> {
        let configs = self.hosts.configs(host, &options)?;
        Ok(self.shared_with(host, options, link, configs))
    }

    /// The same, with these configurations.
    pub(super) fn shared_with(
        &self,
        host: &Host,
        options: RunOptions,
        link: Option<ParentLink>,
        configs: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    ) -> RunShared {
        let RunOptions { id, thread, metadata, timeout, rare, .. } = options;
        let id = id.unwrap_or_else(RunId::generate);
        let shows = link.as_ref().map(|link| {
            let child = link.child(id.clone(), Arc::clone(&host.table.name));
            Forward::new(link.display.clone(), child)
        });
        let (trace_parent, deadline) = rare.map_or((None, None), |rare| (rare.trace_parent, rare.deadline));
        let extras = RunExtras { configs, metadata, trace_parent, deadline, link, ..RunExtras::default() };
        let (table, common) = (Arc::clone(&host.table), Arc::clone(&self.common));
        // A workflow's own limit holds for each of its runs, in place of the engine's.
        let of_engine = common.settings.timeout.filter(|_| table.edges.timeout.is_none());
        let timeout = timeout.or(of_engine);
        let shared = RunShared::new(id, thread, timeout, table, common, extras);
        if let Some(shows) = shows {
            shared.display().forward(shows);
        }
        shared
    }

    /// Takes the engine's lease, if it has one, and keeps it. Each renewal starts a claim of orphans.
    pub(super) async fn take_lease(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(lease) = self.journals.lease() else { return Ok(()) };
        let claims = || {
            let engine = Arc::downgrade(self);
            move || {
                let Some(engine) = engine.upgrade() else { return ControlFlow::Break(()) };
                let Some(_task) = engine.ending.enter() else { return ControlFlow::Continue(None) };
                let inner = Arc::clone(&engine);
                let claims = engine.ending.track(async move {
                    // A claim looks for the parents of children among the engine's runs.
                    inner.keep_runs().await;
                    // The next renewal claims what this one could not.
                    log_unclaimed(&inner.claim_orphans().await);
                });
                ControlFlow::Continue(Some(Box::pin(claims) as BoxFuture<'static, ()>))
            }
        };
        lease.hold(claims).await
    }
}

/// Logs what a claim that nobody called could not do. A run that does not fit is not read again, so it is logged once.
fn log_unclaimed(claimed: &Result<Resumed, StoreError>) {
    let error = match claimed {
        Ok(claimed) => {
            for (run, error) in &claimed.refused {
                tracing::warn!(%run, %error, "a run whose engine is gone could not be resumed");
            }
            claimed.error.as_ref()
        }
        Err(error) => Some(error),
    };
    if let Some(error) = error {
        tracing::warn!(%error, "the runs of engines that are gone could not be looked for");
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::super::fixtures::{Greet, Greeter};
    use crate::prelude::*;

    fn engine() -> Engine {
        Engine::builder().workflow(Greeter).build().unwrap()
    }

    #[tokio::test]
    async fn a_start_that_waits_for_nothing_is_over_at_its_first_poll_and_does_nothing_before() {
        let engine = engine();
        let starting = engine.start::<Greeter>(Greet);
        assert_eq!((engine.running(), format!("{starting:?}")), (vec![], "Starting(unbegun)".to_owned()));
        let run = starting.now_or_never().expect("it waits for nothing").unwrap();
        assert_eq!(engine.running(), [run.id().clone()]);
        run.outcome().await.unwrap();
    }

    #[tokio::test]
    async fn a_start_that_is_dropped_while_it_waits_leaves_nothing() {
        let engine = Engine::builder().workflow(Greeter).max_concurrent_runs(1).build().unwrap();
        let first = engine.start::<Greeter>(Greet).await.unwrap();
        let mut second = engine.start::<Greeter>(Greet);
        assert!((&mut second).now_or_never().is_none());
        assert_eq!((format!("{second:?}"), engine.queued().len()), ("Starting(waiting)".to_owned(), 1));
        drop(second);
        assert_eq!((engine.running(), engine.queued()), (vec![first.id().clone()], vec![]));
        first.outcome().await.unwrap();
    }

    #[tokio::test]
    #[should_panic(expected = "polled after it was over")]
    async fn a_start_is_polled_until_it_is_over_and_no_further() {
        let engine = engine();
        let mut starting = engine.start::<Greeter>(Greet);
        assert!((&mut starting).now_or_never().is_some());
        let _ = starting.now_or_never();
    }
}
