//! The engine: hosts workflows, starts runs within its limits, and outlives them.

use std::any::TypeId;
use std::fmt;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use tokio::runtime::Handle;

use crate::children::HostsRuns;
use crate::error::RunError;
use crate::event::{AnyEvent, StartEvent};
use crate::id::{EngineId, RunId};
use crate::run::{Common, ReplayFailures, RunOptions, Unhosted};
use crate::workflow::Workflow;

mod beginning;
mod builder;
mod children;
mod claim;
mod concurrency;
mod contexts;
mod ending;
#[cfg(test)]
pub(crate) mod fixtures;
mod found;
mod guarded;
mod hand_over;
mod hosts;
mod journals;
mod lease;
mod load;
mod locks;
mod orphans;
mod owner;
mod registered;
mod registry;
mod reminders;
mod removal;
mod resume;
mod start;
mod unloaded;
mod when_full;

pub use builder::EngineBuilder;
#[cfg(feature = "replay-check")]
pub use builder::without_replay_check;
pub use resume::Resumed;
pub use start::Starting;
pub use when_full::WhenFull;

pub(crate) use journals::begun;
pub(crate) use lease::Lease;

use claim::IncompatibleOrphans;
use concurrency::Concurrency;
use contexts::ContextScopes;
use ending::{Ending, or_never};
use hosts::Hosts;
use journals::Journals;
use registry::RunRegistry;
use reminders::Reminders;

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

/// The parts of an engine, with the methods that need several of them. Each driven run keeps it alive through
/// [`Registered`](registered::Registered).
struct Inner {
    id: EngineId,
    hosts: Hosts,
    journals: Journals,
    contexts: ContextScopes,
    common: Arc<Common>,
    concurrency: Concurrency,
    /// The runs that have not ended.
    runs: RunRegistry,
    reminders: Reminders,
    ending: Ending,
    unfit: IncompatibleOrphans,
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
    ///
    /// [`StartError::UnknownWorkflow`]: crate::StartError::UnknownWorkflow
    /// [`StartError::ShutDown`]: crate::StartError::ShutDown
    /// [`StartError::NoRuntime`]: crate::StartError::NoRuntime
    /// [`StartError::Full`]: crate::StartError::Full
    /// [`StartError::TooLarge`]: crate::StartError::TooLarge
    /// [`StartError::Unfit`]: crate::StartError::Unfit
    /// [`StartError::Store`]: crate::StartError::Store
    pub fn start<W: Workflow>(&self, event: impl StartEvent) -> Starting<'_, W> {
        self.start_with(event, RunOptions::new())
    }

    /// Starts a run with an id, a thread, configuration or metadata of its own.
    ///
    /// # Errors
    /// As [`start`](Self::start), and [`StartError::DuplicateRun`](crate::StartError::DuplicateRun) or
    /// [`StartError::Config`](crate::StartError::Config).
    pub fn start_with<W: Workflow>(&self, event: impl StartEvent, options: RunOptions) -> Starting<'_, W> {
        Self::assert_taken::<W, _>(&event);
        Starting::new(&self.inner, Start::of::<W, _>(event), options)
    }

    /// Which engine it is. Clones have one identity.
    pub fn id(&self) -> &EngineId {
        &self.inner.id
    }

    /// The ids of the runs that have not ended, in no order; those that wait for a place are among them.
    pub fn running(&self) -> Vec<RunId> {
        self.inner.runs.ids()
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
    ///     async fn never(&self, begin: &Begin) -> Done { std::future::pending().await }
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
        self.inner.concurrency.queued()
    }

    /// Refuses new runs, cancels those that have not ended, whether anybody holds a handle on them or not,
    /// waits for their ends, gives up the engine's [lease](EngineBuilder::lease), and then waits, at most for `at_most`,
    /// until observers have seen everything.
    ///
    /// Once it has returned, every run of the engine has ended for its handles, and no task of the engine is left: the
    /// [store](EngineBuilder::store) and the [contexts](EngineBuilder::contexts) are dropped with the last clone of the
    /// engine, whoever still has handles on runs. Starts that wait for a permit end with [`StartError::ShutDown`](crate::StartError::ShutDown), also
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
        self.inner.wind_up(at_most, self.inner.cancel_all(&reason)).await;
    }

    /// Does not compile if no step of `W` takes the event, whose type has no name where it is given.
    fn assert_taken<W: Workflow, S: StartEvent>(_: &S) {
        const { crate::check::taken_from_outside::<W, S>() };
    }

    /// Runs one workflow to its end in the caller's own task. Boxed, so that this too is compiled here.
    pub(crate) fn run_alone(
        workflow: Unhosted,
        start: Start,
    ) -> BoxFuture<'static, Result<AnyEvent, RunError>> {
        let builder = Self::builder();
        Box::pin(async move {
            let engine = builder.host(workflow).build()?;
            let (prepared, places) = engine.inner.prepare(start, RunOptions::new())?;
            let slot = engine.inner.admit(places).await?;
            let (run, shared) = engine.inner.task_for(prepared, slot, None)?;
            run.await;
            shared.outcome().await
        })
    }
}

impl Inner {
    /// Ends everything, and waits until nothing is left.
    async fn wind_up(&self, at_most: Duration, end_all: impl Future<Output = ()>) {
        let ending = &self.ending;
        let mut ended = pin!(async {
            end_all.await;
            ending.is_over().await;
            if let Some(lease) = self.journals.lease() {
                lease.give_up(&ending.patience()).await;
            }
        });
        let over = async {
            // Without a store there is nothing that may never answer, and no clock is needed.
            if self.journals.are_kept() {
                or_never(self.common.clock.clone(), at_most.max(SHORTEST_PATIENCE)).await;
            } else {
                pending::<()>().await;
            }
        };
        if let Either::Right(_) = select(ended.as_mut(), pin!(over)).await {
            ending.give_up();
            ended.await;
        }
        self.flush_observers(at_most).await;
    }

    async fn flush_observers(&self, at_most: Duration) {
        let observers = self.common.observers.clone();
        if observers.is_empty() {
            return;
        }
        match Handle::try_current() {
            // An error says that the runtime is going down as well.
            Ok(runtime) => drop(runtime.spawn_blocking(move || observers.flush(at_most)).await),
            Err(_) => observers.flush(at_most),
        }
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
        let workflows: Vec<&str> = self.inner.hosts.names().collect();
        f.debug_struct("Engine")
            .field("workflows", &workflows)
            .field("running", &self.inner.runs.len())
            .finish_non_exhaustive()
    }
}
