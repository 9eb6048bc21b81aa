//! The engine: hosts workflows, starts runs within its limits, and outlives them.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::children::{Birth, HostsRuns};
use crate::config::ConfigSet;
use crate::context::ContextStore;
use crate::display::Forward;
use crate::error::{RunError, SendError, StartError};
use crate::event::{AnyEvent, StartEvent};
use crate::id::{EngineId, RunId};
use crate::panics::Driven;
use crate::run::{
    Common, Gate, Held, Host, Peculiar, Place, Places, Queue, Received, ReplayFailures, Run, RunHandle,
    RunLimits, RunOptions, RunShared, Unhosted,
};
use crate::store::{EventStore, StoreError};
use crate::table::EventIndex;
use crate::workflow::Workflow;

mod builder;
mod children;
mod claim;
mod contexts;
mod ending;
mod forsaken;
mod found;
mod guarded;
mod hand_over;
mod holds;
mod idle;
mod known;
mod lease;
mod removal;
mod resume;
mod stored;
mod when_full;

pub use builder::EngineBuilder;
#[cfg(feature = "replay-check")]
pub use builder::without_replay_check;
pub use resume::Resumed;
pub use when_full::WhenFull;

pub(crate) use lease::Lease;
pub(crate) use stored::begun;

use children::ChildLimits;
use claim::Unfit;
use ending::{Ending, or_never};
use idle::Idle;
use known::{Known, Registered};
use lease::Leased;

/// How long an engine that ends waits for its store at least.
const SHORTEST_PATIENCE: Duration = Duration::from_secs(1);

/// Hosts workflows and starts their runs. Clones are the same engine.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet { name: String }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeting(String);
/// # struct Greeter;
/// # #[workflow]
/// # impl Greeter {
/// #     #[step]
/// #     async fn greet(&self, greet: &Greet) -> Greeting {
/// #         Greeting(format!("Hello, {}!", greet.name))
/// #     }
/// # }
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Greeter).max_concurrent_runs(10).build()?;
/// let run = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?;
/// assert_eq!(run.outcome().await?, Greeting("Hello, Ada!".into()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    id: EngineId,
    hosts: HashMap<TypeId, Arc<Host>>,
    configs: ConfigSet,
    store: Option<Arc<dyn EventStore>>,
    contexts: Arc<dyn ContextStore>,
    /// None if the engine takes no leases.
    lease: Option<Leased>,
    unfit: Unfit,
    common: Arc<Common>,
    limits: RunLimits,
    run_timeout: Option<Duration>,
    /// The places of all runs together, and those of each workflow that has a bound of its own.
    gate: Option<Arc<Gate>>,
    gates: HashMap<TypeId, Arc<Gate>>,
    queue: Arc<Queue>,
    when_full: WhenFull,
    children: ChildLimits,
    /// The runs that have not ended.
    known: Known,
    idle: Idle,
    ending: Ending,
}

/// The engine of a run that belongs to none.
pub(crate) fn no_engine() -> Weak<dyn HostsRuns> {
    Weak::<Inner>::new()
}

/// What opens a run: a workflow and its start event, without their types.
pub(crate) struct Start {
    workflow: &'static str,
    workflow_type: TypeId,
    event: AnyEvent,
}

impl Start {
    pub(crate) fn of<W: Workflow, S: StartEvent>(event: S) -> Self {
        let (workflow, workflow_type) = (W::TABLE.name(), TypeId::of::<W>());
        Self { workflow, workflow_type, event: AnyEvent::new(event) }
    }
}

impl Engine {
    /// Begins an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Starts a run of `W` on the current tokio runtime and returns a handle on it.
    ///
    /// With [`max_concurrent_runs`](EngineBuilder::max_concurrent_runs) or
    /// [`max_concurrent_runs_of`](EngineBuilder::max_concurrent_runs_of) it waits for a place first, and is listed by
    /// [`queued`](Self::queued) meanwhile; dropping the future gives up the wait. With
    /// [`WhenFull::Refuse`] it does not wait. With a [`store`](EngineBuilder::store) it then waits until the store has
    /// the beginning of the run, which goes on if the future is dropped meanwhile. A start event that no step of `W` takes does not compile.
    ///
    /// # Errors
    /// [`StartError::UnknownWorkflow`], [`StartError::ShutDown`], [`StartError::NoRuntime`],
    /// [`StartError::Full`], [`StartError::TooLarge`], [`StartError::Unfit`], [`StartError::Store`].
    pub fn start<W: Workflow>(
        &self,
        event: impl StartEvent,
    ) -> BoxFuture<'_, Result<RunHandle<W>, StartError>> {
        self.start_with(event, RunOptions::new())
    }

    /// Starts a run with an id, a thread, configuration or metadata of its own.
    ///
    /// # Errors
    /// As [`start`](Self::start), and [`StartError::DuplicateRun`] or [`StartError::Config`].
    pub fn start_with<W: Workflow>(
        &self,
        event: impl StartEvent,
        options: RunOptions,
    ) -> BoxFuture<'_, Result<RunHandle<W>, StartError>> {
        Self::assert_taken::<W, _>(&event);
        let started = self.spawn(Start::of::<W, _>(event), options);
        Box::pin(async move { Ok(RunHandle::new(started.await?)) })
    }

    /// Which engine it is. Clones have one identity.
    pub fn id(&self) -> &EngineId {
        &self.inner.id
    }

    /// The ids of the runs that have not ended, in no order; those that wait for a place are among them.
    pub fn running(&self) -> Vec<RunId> {
        self.inner.known.ids()
    }

    /// The ids of the runs that wait for a place, in the order in which they began to wait: those whose
    /// [`start`](Self::start) has not returned, and those that were told something while they waited for the outside
    /// and need their place again.
    ///
    /// ```
    /// use workflow_core::RunOptions;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Begin;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Done;
    ///
    /// struct Slow;
    ///
    /// #[workflow]
    /// impl Slow {
    ///     #[step]
    ///     async fn never(&self, _begin: &Begin) -> Done { std::future::pending().await }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Slow).max_concurrent_runs(1).build()?;
    /// let _first = engine.start::<Slow>(Begin).await?;
    /// let second = engine.start_with::<Slow>(Begin, RunOptions::new().id("second"));
    /// # let second = tokio::spawn({ let engine = engine.clone(); async move {
    /// #     engine.start_with::<Slow>(Begin, RunOptions::new().id("second")).await.map(drop)
    /// # } });
    /// # tokio::task::yield_now().await;
    /// // Elsewhere, while that is awaited:
    /// assert_eq!(engine.queued(), ["second".into()]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn queued(&self) -> Vec<RunId> {
        self.inner.queue.runs()
    }

    /// Refuses new runs, cancels those that have not ended, whether anybody holds a handle on them or not,
    /// waits for their ends, gives up the engine's [lease](EngineBuilder::lease), and then waits, at most for `at_most`,
    /// until observers have seen everything.
    ///
    /// Once it has returned, every run of the engine has ended for its handles, and no task of the engine is left: the
    /// [store](EngineBuilder::store) and the [contexts](EngineBuilder::contexts) are dropped with the last clone of the
    /// engine, whoever still has handles on runs. Starts that wait for a permit end with [`StartError::ShutDown`], also
    /// those that are not polled meanwhile.
    ///
    /// It waits for the store for `at_most` as well, by the engine's clock, or for a second if that is longer. What the
    /// store has not answered by then is given up, with [`StoreError::ShutDown`](crate::StoreError::ShutDown): the runs
    /// that wait for it end here with [`RunError::Store`], and their journals stay as they are.
    ///
    /// [`hand_over`](Self::hand_over) leaves the runs of a store to be gone on with instead.
    pub async fn shut_down(&self, at_most: Duration) {
        self.inner.ending.begin();
        let reason = "the engine is shutting down".into();
        self.wind_up(at_most, self.cancel_all(&reason)).await;
    }

    /// Ends everything, and waits until nothing is left.
    async fn wind_up(&self, at_most: Duration, end_all: impl Future<Output = ()>) {
        let ending = &self.inner.ending;
        let mut ended = pin!(async {
            end_all.await;
            ending.is_over().await;
            self.give_up_lease().await;
        });
        let over = async {
            // Without a store there is nothing that may never answer, and no clock is needed.
            match self.inner.store {
                Some(_) => or_never(self.inner.common.clock.clone(), at_most.max(SHORTEST_PATIENCE)).await,
                None => pending().await,
            }
        };
        if let Either::Right(_) = select(ended.as_mut(), pin!(over)).await {
            ending.give_up();
            ended.await;
        }
        self.flush_observers(at_most).await;
    }

    async fn flush_observers(&self, at_most: Duration) {
        let observers = self.inner.common.observers.clone();
        if observers.is_empty() {
            return;
        }
        match Handle::try_current() {
            // An error says that the runtime is going down as well.
            Ok(runtime) => drop(runtime.spawn_blocking(move || observers.flush(at_most)).await),
            Err(_) => observers.flush(at_most),
        }
    }

    /// Waits for a run's lock, at most until nobody waits for the store any more.
    async fn hold(&self, run: &RunId) -> Result<Held, StoreError> {
        self.inner.ending.patiently(self.inner.known.hold(run)).await
    }

    /// Does not compile if no step of `W` takes the event, whose type has no name where it is given.
    fn assert_taken<W: Workflow, S: StartEvent>(_: &S) {
        const { crate::check::taken_from_outside::<W, S>() };
    }

    /// Starts a run as a task of its own. Without types, so that it is compiled here and not once more in every crate
    /// that starts runs.
    async fn spawn(&self, start: Start, options: RunOptions) -> Result<Arc<RunShared>, StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let (done, written) = self.inner.store.is_some().then(oneshot::channel).unzip();
        let (run, shared) = self.prepare(start, options, done).await?;
        runtime.spawn(run);
        if let Some(written) = written {
            Box::pin(stored::begun(&shared, written)).await?;
        }
        Ok(shared)
    }

    /// Runs one workflow to its end in the caller's own task. Boxed, so that this too is compiled here.
    pub(crate) fn run_alone(
        workflow: Unhosted,
        start: Start,
    ) -> BoxFuture<'static, Result<AnyEvent, RunError>> {
        let builder = Self::builder();
        Box::pin(async move {
            let engine = builder.host(workflow).build()?;
            let (run, shared) = engine.prepare(start, RunOptions::new(), None).await?;
            run.await;
            shared.outcome().await
        })
    }

    /// A run that is ready to be driven, and what its handle needs.
    async fn prepare(
        &self,
        mut start: Start,
        options: RunOptions,
        done: Option<oneshot::Sender<Result<(), SendError>>>,
    ) -> Result<(impl Future<Output = ()> + Send + use<>, Arc<RunShared>), StartError> {
        let (host, index) = self.host_of(&start)?;
        self.check_start(&mut start)?;
        let layers = self.inner.layers(&host, &options);
        let shared = Arc::new(self.shared(&host, options, None)?);
        let registered = self.register(&shared.id, Arc::downgrade(&shared))?;
        // What few have to wait for, the future of a start has no room for.
        let slot = match self.places(&host, &shared.id) {
            Some(places) => Some(Box::pin(self.take_slot(places)).await?),
            None => None,
        };
        if self.inner.lease.is_some() {
            Box::pin(self.take_lease()).await.map_err(StartError::Store)?;
        }
        // Asked once the run is registered: either it is refused here, or shutting down finds it there.
        let _task = self.inner.ending.enter().ok_or(StartError::ShutDown)?;
        let journal = self.inner.journal(&shared, layers);
        let run = Run::new(Arc::clone(&shared), host, self.inner.limits, slot, journal);
        let start = Received { event: start.event, done };
        let driven = Driven::new(run.drive(start, index, registered));
        Ok((self.inner.ending.track(driven), shared))
    }

    fn host_of(&self, start: &Start) -> Result<(Arc<Host>, EventIndex), StartError> {
        let unknown = || StartError::UnknownWorkflow { workflow: start.workflow };
        let host = Arc::clone(self.inner.hosts.get(&start.workflow_type).ok_or_else(unknown)?);
        let event_type = start.event.event_type().type_id();
        let index = *host.table.by_type.get(&event_type).ok_or_else(unknown)?;
        Ok((host, index))
    }

    /// The start event may enter a run.
    fn check_start(&self, start: &mut Start) -> Result<(), StartError> {
        Ok(self.inner.common.event_check().check(&mut start.event, 1)?)
    }

    /// What bounds a run that begins, if anything does.
    fn places(&self, host: &Host, run: &RunId) -> Option<Places> {
        let inner = &self.inner;
        Places::of(run, &host.table.name, inner.gates.get(&host.id), inner.gate.as_ref(), &inner.queue)
    }

    /// A place for a run that begins.
    async fn take_slot(&self, places: Places) -> Result<(Places, Option<Place>), StartError> {
        let place = match self.inner.when_full {
            WhenFull::Refuse => places.take_now()?,
            WhenFull::Queue => {
                let closing = pin!(self.inner.ending.begins());
                match select(pin!(places.clone().take()), closing).await {
                    Either::Left((place, _)) => place,
                    Either::Right(_) => return Err(StartError::ShutDown),
                }
            }
        };
        Ok((places, Some(place)))
    }

    /// What a run shares with its handles, and what they tell it.
    fn shared(
        &self,
        host: &Arc<Host>,
        options: RunOptions,
        birth: Option<Birth>,
    ) -> Result<RunShared, StartError> {
        let inner = &self.inner;
        let configs = inner.resolve_configs(host, &options)?;
        let RunOptions { id, thread, metadata, timeout, .. } = options;
        let id = id.unwrap_or_else(RunId::generate);
        let shows = birth.as_ref().map(|birth| {
            let child = birth.child(id.clone(), Arc::clone(&host.table.name));
            Forward::new(birth.display.clone(), child)
        });
        let peculiar = Peculiar { configs, metadata, birth, ..Peculiar::default() };
        let (table, common) = (Arc::clone(&host.table), Arc::clone(&inner.common));
        let shared = RunShared::new(id, thread, timeout.or(inner.run_timeout), table, common, peculiar);
        if let Some(shows) = shows {
            shared.display().forward(shows);
        }
        Ok(shared)
    }

    fn register(&self, id: &RunId, run: Weak<RunShared>) -> Result<Registered, StartError> {
        let registered = Registered::new(&self.inner, id, run);
        registered.ok_or_else(|| StartError::DuplicateRun { run: id.clone() })
    }
}

impl Inner {
    /// Every configuration that the workflow's parameters declare, checked into its type.
    fn resolve_configs(
        &self,
        host: &Arc<Host>,
        options: &RunOptions,
    ) -> Result<HashMap<TypeId, Arc<dyn std::any::Any + Send + Sync>>, StartError> {
        let configs = host.table.configs();
        let resolved = configs.map(|config| {
            let layer = options.configs.get(&config.type_id()).map(Result::as_ref).transpose();
            let layer = layer.map_err(|error| StartError::Config(error.clone()))?;
            let value = self.configs.resolve_for(&config, layer).map_err(StartError::Config)?;
            Ok((config.type_id(), value))
        });
        resolved.collect()
    }
}

impl Drop for Inner {
    /// No test passes over what the replay check has found.
    fn drop(&mut self) {
        let failures = self.common.replay_check.as_deref();
        if let Some(failure) = failures.and_then(ReplayFailures::first).filter(|_| !std::thread::panicking())
        {
            panic!("{failure}");
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workflows: Vec<&str> = self.inner.hosts.values().map(|host| host.table.name()).collect();
        f.debug_struct("Engine")
            .field("workflows", &workflows)
            .field("running", &self.inner.known.len())
            .finish_non_exhaustive()
    }
}
