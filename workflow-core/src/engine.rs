//! The engine: hosts workflows, starts runs within its limits, and outlives them.
//!
//! ```text
//! Engine (a handle) ─ Inner ┬ hosts        the workflows and their configuration
//!                           ├ concurrency  the limits of runs
//!                           ├ journals     the store (`guarded`), and the engine's lease in it (`lease`, `owner`)
//!                           ├ runs         the table of driven and unloaded runs (`registry`), with their `locks`
//!                           ├ reminders    the timers of unloaded runs
//!                           ├ contexts     the store of contexts
//!                           ├ inbox        messages to runs, and the readers that apply them
//!                           └ ending       the engine's tasks, and the bound on waiting for stores
//! begins runs    start, children, found
//! loads runs     load, for resume, claim and unloaded
//! ends them      orphans, removal, shut_down
//! ```
//!
//! The engine makes runs, spawns their tasks and signals them. It never looks into a run's log or state.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, select};
use serde::Serialize;
use tokio::runtime::Handle;

use crate::context::ThreadContext;
use crate::event::{AnyEvent, StartEvent};
use crate::id::{EngineId, RunId, ThreadId};
use crate::outcome::{RunError, StartError};
use crate::run::{AnyRun, EngineParts, ReplayFailures, RunOptions, Start, UnhostedWorkflow};
use crate::workflow::Workflow;

mod alone;
mod first_record;
mod builder;
mod bulk;
mod children;
mod claim;
mod concurrency;
mod contexts;
mod ended_runs;
mod ending;
#[cfg(test)]
pub(crate) mod fixtures;
mod find_child;
mod config_sources;
mod guarded_store;
mod shut_down;
mod hosted;
mod hosts;
mod inbox;
mod injected;
mod journals;
mod keep;
mod load;
mod locks;
mod orphaned_children;
mod observing;
mod owner;
mod permit;
mod queued;
mod redrive;
mod registration;
mod registry;
mod reminders;
mod removal;
mod resume;
mod start;
mod unloaded;
mod waiting;
mod when_full;

pub use alone::{Running, WorkflowExt};
pub use builder::EngineBuilder;
#[cfg(feature = "replay-check")]
pub use builder::without_replay_check;
pub use bulk::{RunResult, RunResults};
pub use hosted::{HostedConfig, HostedEvent, HostedWorkflow};
pub use permit::RunPermit;
pub use redrive::Redriven;
pub use resume::Resumed;
pub use start::Starting;
pub use when_full::WhenFull;

#[cfg(test)]
pub(crate) use guarded_store::GuardedStore;

use claim::ClaimMemory;
use concurrency::Concurrency;
use contexts::ContextScopes;
use ending::{Ending, sleep_or_pend};
use hosts::Hosts;
use inbox::EngineInbox;
use journals::Journals;
use load::Loaded;
use registry::RunRegistry;
use reminders::Reminders;

/// How long an engine that ends waits for its runs and its store at least.
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
/// [`Registered`](registration::Registered).
struct Inner {
    id: EngineId,
    hosts: Hosts,
    journals: Journals,
    contexts: ContextScopes,
    /// Messages to runs, which come first when a run is loaded; `None` without an inbox.
    inbox: Option<EngineInbox>,
    common: Arc<EngineParts>,
    concurrency: Concurrency,
    /// The runs that have not ended.
    runs: RunRegistry,
    reminders: Reminders,
    ending: Ending,
    claims: ClaimMemory,
}

impl Engine {
    /// Returns a builder of an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Starts a run of `W` on the current tokio runtime and returns a handle on it.
    ///
    /// With [`max_concurrent_runs`](EngineBuilder::max_concurrent_runs) or
    /// [`max_concurrent_runs_of`](EngineBuilder::max_concurrent_runs_of) the run waits for a permit first, and
    /// [`queued`](Self::queued) lists it meanwhile. Dropping the future gives up the wait. With [`WhenFull::Refuse`]
    /// the start does not wait.
    ///
    /// With a [`store`](EngineBuilder::store) the call then waits until the store has the beginning of the run. If the
    /// future is dropped during that wait, the run continues. A start event that no step of `W` takes does not compile.
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
    /// As [`start`](Self::start), and [`StartError::DuplicateRun`](crate::StartError::DuplicateRun),
    /// [`StartError::DeadlinePassed`](crate::StartError::DeadlinePassed) or
    /// [`StartError::Config`](crate::StartError::Config).
    pub fn start_with<W: Workflow>(&self, event: impl StartEvent, options: RunOptions) -> Starting<'_, W> {
        Self::assert_taken::<W, _>(&event);
        Starting::new(&self.inner, Start::of::<W, _>(event), options)
    }

    /// Starts a run by the names of its workflow and its start event, which comes as JSON.
    ///
    /// The JSON is read as the event's type before anything happens. [`AnyRun::send_json`] has an example. A
    /// [workflow](RunOptions::workflow) in the options counts for nothing.
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_core::prelude::*;
    /// use workflow_core::{RunOptions, StartError};
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
    /// #     async fn greet(&self, greet: &Greet) -> Greeting { Greeting(format!("Hello, {}!", greet.name)) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Greeter).build()?;
    /// let run = engine.start_json("Greeter", "Greet", json!({"name": "Ada"}), RunOptions::new()).await?;
    /// assert_eq!(run.outcome_any().await?.to_json()?, json!("Hello, Ada!"));
    ///
    /// let unfit = engine.start_json("Greeter", "Greet", json!({"name": 7}), RunOptions::new()).await;
    /// assert!(matches!(unfit, Err(StartError::Unfit { path, .. }) if path == "name"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StartError::UnknownWorkflow`](crate::StartError::UnknownWorkflow).
    /// [`StartError::UnknownEvent`](crate::StartError::UnknownEvent) with the events that fit.
    /// [`StartError::Unfit`](crate::StartError::Unfit) with the path of the mistake. Otherwise those of
    /// [`start_with`](Self::start_with).
    pub fn start_json(
        &self,
        workflow: &str,
        event: &str,
        data: impl Serialize,
        options: RunOptions,
    ) -> BoxFuture<'_, Result<AnyRun, StartError>> {
        let start = Start::json(workflow, event, &data);
        Box::pin(async move { Ok(AnyRun::new(self.inner.start_any(start, options).await?)) })
    }

    /// The context of a thread, as its runs' steps have it.
    ///
    /// It keeps the store of contexts open. The context of a run's own thread ends with the run.
    ///
    /// ```
    /// use workflow_core::Engine;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().build()?;
    /// let user = engine.thread_context("user-4");
    /// assert_eq!(user.increment("orders", 1).await?, 1);
    /// assert_eq!(engine.thread_context("user-4").get::<i64>("orders").await?, Some(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn thread_context(&self, thread: impl Into<ThreadId>) -> ThreadContext {
        ThreadContext::new(thread.into(), self.inner.contexts.outside())
    }

    /// The engine's identity. Clones have the same one.
    pub fn id(&self) -> &EngineId {
        &self.inner.id
    }

    /// The ids of the open runs, in no order. Runs that wait for a permit are among them.
    pub fn running(&self) -> Vec<RunId> {
        self.inner.runs.ids()
    }

    /// The ids of the runs that wait for a permit, in the order in which they began to wait.
    ///
    /// These are runs whose [`start`](Self::start) has not returned, and runs that received a message while they waited
    /// for the outside and need their permit again.
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
    /// // Elsewhere, before that future completes:
    /// assert_eq!(engine.queued(), ["second".into()]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn queued(&self) -> Vec<RunId> {
        self.inner.concurrency.queued()
    }

    /// Does not compile if no step of `W` takes the event. An argument, because callers cannot name the event's type.
    fn assert_taken<W: Workflow, S: StartEvent>(_: &S) {
        const { crate::spec::check::taken_from_outside::<S>(W::TABLE) };
    }

    /// Runs one workflow to its end in the caller's task. Boxed, so that it is compiled once, in this crate.
    pub(crate) fn run_alone(
        workflow: UnhostedWorkflow,
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

/// How long an engine that ends waits.
#[derive(Clone, Copy)]
struct EndWaits {
    /// For its runs and its store; at least [`SHORTEST_PATIENCE`].
    runs: Duration,
    observers: Duration,
}

impl Inner {
    /// Ends all runs by `end_all`, and waits until no task is left. A store that does not answer and a step that blocks its
    /// thread are waited for as long as `waits` says: then runs that are left end with `left` for their handles.
    async fn end_all(&self, waits: EndWaits, left: RunError, end_all: impl Future<Output = ()>) {
        let ending = &self.ending;
        let mut ended = pin!(async {
            end_all.await;
            ending.is_over().await;
            self.give_lease_up().await;
        });
        let sleep = |time| sleep_or_pend(self.common.clock.clone(), time);
        let over = pin!(sleep(waits.runs.max(SHORTEST_PATIENCE)));
        if let Either::Right(_) = select(ended.as_mut(), over).await {
            ending.give_up();
            // What only waited for the store ends now. Clean-up has a time of its own.
            let set = self.common.settings.clean_up;
            let times = self.hosts.all().map(|host| host.whole_clean_up_time(set));
            let mut left_for_clean_up = times.max().unwrap_or_default();
            loop {
                if let Either::Left(_) = select(ended.as_mut(), pin!(sleep(SHORTEST_PATIENCE))).await {
                    break;
                }
                left_for_clean_up = left_for_clean_up.saturating_sub(SHORTEST_PATIENCE);
                if left_for_clean_up.is_zero() || !self.cleans_up() {
                    self.leave_blocked(&left);
                    self.give_lease_up().await;
                    break;
                }
            }
        }
        self.flush_observers(waits.observers).await;
    }

    async fn give_lease_up(&self) {
        if let Some(lease) = self.journals.lease() {
            lease.give_up(&self.ending.patience()).await;
        }
    }

    async fn flush_observers(&self, at_most: Duration) {
        let observers = self.common.observers.clone();
        if observers.is_empty() {
            return;
        }
        match Handle::try_current() {
            // An error means that the runtime is shutting down.
            Ok(runtime) => drop(runtime.spawn_blocking(move || observers.flush(at_most)).await),
            Err(_) => observers.flush(at_most),
        }
    }
}

impl Drop for Inner {
    /// Panics with the first difference that the replay check has found, so that no test misses it.
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
