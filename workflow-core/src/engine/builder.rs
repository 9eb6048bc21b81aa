//! Building an engine: its workflows, configuration and limits. All problems are reported at once.

use std::any::TypeId;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::claim::ClaimMemory;
use super::concurrency::{Concurrency, WorkflowKey};
use super::contexts::{ContextScopes, NoContexts};
use super::ended_runs::{EndedRuns, Keeping};
use super::ending::Ending;
use super::guarded_store::GuardedStore;
use super::hosts::Hosts;
use super::inbox::EngineInbox;
use super::journals::Journals;
use super::registry::RunRegistry;
use super::reminders::Reminders;
use super::{Engine, Inner, WhenFull};
use crate::clock::{Clock, EngineClock};
use crate::config::{ConfigLayers, ConfigSet};
use crate::context::{ContextStore, MemoryContexts};
use crate::error::{ErrorClass, find_behind};
use crate::id::EngineId;
use crate::lease::{Lease, LeaseOwner, SHORTEST};
use crate::limit::Limit;
use crate::middleware::Middleware;
use crate::observe::{Observer, Observers};
use crate::outcome::{BuildError, BuildProblem, behind};
use crate::panics::caught;
use crate::patience::StorePatience;
use crate::retry::{RetryPolicy, Rules};
use crate::run::{EngineParts, Host, RunSettings, UnhostedWorkflow, WindDown, describe_metrics};
use crate::runtime_workflow::RuntimeWorkflow;
use crate::store::{EventStore, Inbox};
use crate::table::{DependencyTable, EventRow};
use crate::workflow::Workflow;

/// Builds an [`Engine`]. Nothing is checked before [`build`](Self::build).
///
/// ```
/// use std::time::Duration;
/// use workflow_core::prelude::*;
/// use workflow_core::store::MemoryStore;
/// use workflow_core::{RetryPolicy, WhenFull};
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
/// let engine = Engine::builder()
///     .workflow(Greeter)
///     .store(MemoryStore::default())
///     .retry(RetryPolicy::standard())
///     // One run
///     .run_timeout(Duration::from_secs(600))
///     .max_concurrent_executions(64)
///     .max_executions_per_run(10_000)
///     .max_events_per_run(100_000)
///     .max_event_bytes(1 << 20)
///     .mailbox_capacity(16)
///     .display_capacity(256)
///     // All runs
///     .max_concurrent_runs(1_000)
///     .max_concurrent_runs_of::<Greeter>(100)
///     .when_full(WhenFull::Refuse)
///     .unload_waiting_after(Duration::from_secs(60))
///     // Child runs
///     .max_child_depth(2)
///     .max_concurrent_children(4)
///     .build()?;
/// # drop(engine);
/// # Ok::<(), workflow_core::BuildError>(())
/// ```
///
/// All problems are reported at once:
///
/// ```
/// use std::time::Duration;
/// use workflow_core::Engine;
///
/// let error = Engine::builder().lease(Duration::from_millis(1)).build().unwrap_err();
/// assert_eq!(error.problems.len(), 2); // it is too short, and there is no store
/// ```
#[must_use = "an engine is made by `build`"]
#[derive(Default)]
pub struct EngineBuilder {
    hosts: Vec<Host>,
    configs: ConfigSet,
    durability: Durability,
    observers: Vec<Arc<dyn Observer>>,
    middleware: Vec<Arc<dyn Middleware>>,
    rules: Rules,
    clock: EngineClock,
    settings: RunSettings,
    concurrency: Concurrency,
    ended: Option<Keeping>,
    replay_check: ReplayCheck,
    problems: Vec<BuildProblem>,
}

thread_local! {
    static IS_UNCHECKED: Cell<bool> = const { Cell::new(false) };
}

/// Switches the [replay check](EngineBuilder::replay_check) off while `make` runs.
///
/// It applies to builders that this thread makes and to one-line runs that it begins. For tests that count the cost of
/// a run.
#[cfg(feature = "replay-check")]
pub fn without_replay_check<T>(make: impl FnOnce() -> T) -> T {
    let before = IS_UNCHECKED.replace(true);
    let result = make();
    IS_UNCHECKED.set(before);
    result
}

/// Whether runs are compared with their journals.
struct ReplayCheck(bool);

impl Default for ReplayCheck {
    fn default() -> Self {
        Self(cfg!(all(feature = "replay-check", debug_assertions)) && !IS_UNCHECKED.get())
    }
}

impl EngineBuilder {
    /// Hosts a workflow. An engine can host any number of them, each under its own name.
    pub fn workflow<W: Workflow>(self, workflow: W) -> Self {
        // The table of a generic workflow is known only here.
        const { crate::spec::check::all(W::TABLE) };
        self.host(UnhostedWorkflow::new(workflow))
    }

    /// Hosts a workflow under a name, for an engine with several workflows of one type.
    ///
    /// The name is unique in the engine. Journals, queries, metrics and children have it.
    /// [`RunOptions::workflow`](crate::RunOptions::workflow) names the workflow to start. Without it,
    /// [`start`](Engine::start) takes the workflow that has the type's own name, or else the only one of the type.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::{RunOptions, StartError};
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Greet;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Greeting(String);
    /// struct Greeter { word: &'static str }
    ///
    /// #[workflow]
    /// impl Greeter {
    ///     #[step]
    ///     async fn greet(&self, _greet: &Greet) -> Greeting { Greeting(self.word.into()) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder()
    ///     .workflow_named("english", Greeter { word: "Hello" })
    ///     .workflow_named("german", Greeter { word: "Hallo" })
    ///     .build()?;
    /// let run = engine.start_with::<Greeter>(Greet, RunOptions::new().workflow("german")).await?;
    /// assert_eq!(run.outcome().await?, Greeting("Hallo".into()));
    ///
    /// let unnamed = engine.start::<Greeter>(Greet).await.unwrap_err();
    /// assert!(matches!(unnamed, StartError::WhichWorkflow { names } if names.len() == 2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`build`](Self::build) reports a name that two workflows have.
    pub fn workflow_named<W: Workflow>(self, name: impl Into<Arc<str>>, workflow: W) -> Self {
        const { crate::spec::check::all(W::TABLE) };
        self.host(UnhostedWorkflow::named(workflow, name.into()))
    }

    /// Hosts workflows that were built at run time, each under the name of its table.
    ///
    /// [`RuntimeWorkflow`] has an example.
    ///
    /// # Errors
    /// [`build`](Self::build) reports a name that two workflows have, and a table whose events have Rust types.
    pub fn workflows(self, workflows: impl IntoIterator<Item = RuntimeWorkflow>) -> Self {
        workflows.into_iter().fold(self, |mut builder, workflow| {
            if let Some(event) = workflow.table.events.iter().find(|event| event.type_id.is_some()) {
                let (workflow, event) = (workflow.table.name.to_string(), event.name.to_string());
                builder.problems.push(BuildProblem::TypedEvent { workflow, event });
            }
            builder.host(UnhostedWorkflow::at_run_time(workflow))
        })
    }

    /// The same for a workflow that has been checked.
    pub(crate) fn host(mut self, unhosted: UnhostedWorkflow) -> Self {
        // A mistake in its table does not hide the others.
        let (host, error) = Host::new(unhosted);
        self.problems.extend(error.map(BuildProblem::Table));
        self.hosts.push(host);
        self
    }

    /// Sets the layers of `Config<C>`; a value of `C` is a layer too. Default: the serde defaults of `C`, if each of
    /// its fields has one.
    pub fn config<C: DeserializeOwned + Send + Sync + 'static>(
        mut self,
        layers: impl Into<ConfigLayers<C>>,
    ) -> Self {
        self.configs.insert::<C>(layers.into());
        self
    }

    /// Sets the store of journals, and of the contexts and the inbox that it hands out. Default: none, and
    /// runs have no journal.
    ///
    /// With a store, an event is in the store before the run starts anything that depends on it.
    /// [`contexts`](Self::contexts) sets another store of contexts. Without one, [`build`](Self::build) reports
    /// workflows that take a context if this store hands out none.
    pub fn store(mut self, store: impl EventStore) -> Self {
        self.durability.store = Some(Arc::new(store));
        self
    }

    /// Sets the duration of the engine's lease. At least a second. Default: none.
    ///
    /// Engines that share a store use leases to find runs whose owners are gone. Without a lease, the engine resumes a
    /// run only when a caller asks for it.
    ///
    /// The engine takes a lease before it writes to its first run, and renews it at every third of the duration. After
    /// each renewal it claims open runs of engines whose leases have run out, and resumes them as
    /// [`resume_open_runs`](Engine::resume_open_runs) does. An engine that only stands by calls that function once to
    /// take its lease. It claims nothing before the lease is one duration old, and only as many runs as its limits have free
    /// permits, as [`claim_orphans`](Engine::claim_orphans) says. The engine claims its own runs too that it stopped driving because its store was
    /// unavailable, and never runs of engines without leases. It logs a warning for each run that it could not resume; one that
    /// its workflow does not fit is logged once, until somebody writes to that run.
    ///
    /// An engine that could not renew its lease in time begins no execution and evaluates no precondition until it
    /// holds a lease again; executions in flight continue. With the next renewal each run that the engine drives writes one
    /// record, at most 32 at a time. If another engine has claimed a run meanwhile, the run ends
    /// here with [`RunError::Conflict`](crate::RunError::Conflict) before it begins anything more. The engine gives its
    /// lease up in [`shut_down`](Engine::shut_down) and [`cancel_all`](Engine::cancel_all), and
    /// when it is dropped and has no run.
    ///
    /// A short lease is lost in every pause of the machine; with a long one, orphaned runs wait longer. A renewal is
    /// one call of the store. A search for orphans takes O(open runs of the store) time, in pages of 1,000 with two
    /// calls each, and O(open runs of other engines) memory. Leases use the clocks of the machine and of the store, and
    /// not the engine's [`clock`](Self::clock); they need a runtime with timers (`enable_time`).
    ///
    /// [`build`](Self::build) reports a lease without a [`store`](Self::store), and a shorter duration.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Engine;
    /// use workflow_core::store::MemoryStore;
    ///
    /// let engine = Engine::builder().store(MemoryStore::default()).lease(Duration::from_secs(30)).build()?;
    /// assert!(Engine::builder().lease(Duration::from_secs(30)).build().is_err());
    /// # drop(engine);
    /// # Ok::<(), workflow_core::BuildError>(())
    /// ```
    pub fn lease(mut self, duration: Duration) -> Self {
        self.durability.lease = Some(duration);
        self
    }

    /// Sets the store of contexts. Default: the contexts that the [`store`](Self::store) hands out, or
    /// [`MemoryContexts`] without a store.
    ///
    /// If runs have journals that survive a restart, their contexts should survive it too. Where they need not,
    /// [`MemoryContexts::forgetful`] says so.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use workflow_core::Engine;
    /// use workflow_core::store::{MemoryContexts, MemoryStore};
    ///
    /// let both = Engine::builder().store(MemoryStore::default()).build()?;
    /// let apart = Arc::new(MemoryContexts::default());
    /// let engine = Engine::builder().store(MemoryStore::default()).contexts(Arc::clone(&apart)).build()?;
    /// # drop((both, engine));
    /// # Ok::<(), workflow_core::BuildError>(())
    /// ```
    pub fn contexts(mut self, contexts: impl ContextStore) -> Self {
        self.durability.contexts = Some(Arc::new(contexts));
        self
    }

    /// Sets the inbox: messages to runs that the engine applies when it loads a run, and when it is
    /// [notified](Engine::notify_inbox). Default: the inbox that the [`store`](Self::store) hands out, if it has one.
    ///
    /// [`Inbox`] has an example.
    pub fn inbox(mut self, inbox: impl Inbox) -> Self {
        self.durability.inbox = Some(Arc::new(inbox));
        self
    }

    /// Adds an observer. Each observer has a queue and a thread of its own.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Adds middleware around every call of every step. The first one added is the outermost.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Sets the retry policy of steps that have no policy of their own. Default: [`RetryPolicy::standard`].
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.rules.policy = policy;
        self
    }

    /// Sets the class of errors of type `E` that steps return by `?`.
    ///
    /// An error that a step has classified keeps its class. A later call for the same type replaces the earlier one.
    ///
    /// ```
    /// use std::io;
    /// use workflow_core::{Engine, ErrorClass};
    ///
    /// let engine = Engine::builder().classify(|error: &io::Error| match error.kind() {
    ///     io::ErrorKind::TimedOut | io::ErrorKind::ConnectionReset => ErrorClass::Transient,
    ///     _ => ErrorClass::Permanent,
    /// });
    /// # engine.build()?;
    /// # Ok::<(), workflow_core::BuildError>(())
    /// ```
    pub fn classify<E: Error + 'static>(
        mut self,
        class: impl Fn(&E) -> ErrorClass + Send + Sync + 'static,
    ) -> Self {
        self.rules.classify(class);
        self
    }

    /// Uses this clock as the default one.
    #[cfg(test)]
    pub(crate) fn system_clock(mut self, clock: EngineClock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the clock of all times that the library records or shows.
    ///
    /// Default: the system's clock, as [`SystemClock`](crate::SystemClock) reads it. Several engines share a clock in an
    /// `Arc`, or one whose clones share it.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = EngineClock::new(clock);
        self
    }

    /// Sets how many runs may be active at a time. Default: no limit.
    ///
    /// A start waits for a permit, unless [`when_full`](Self::when_full) refuses it. A run that waits for a timer or
    /// for an event from outside needs no permit, and a run that waits for a retry keeps its own. 0 counts as 1.
    pub fn max_concurrent_runs(mut self, most: usize) -> Self {
        self.concurrency.limit_runs(most);
        self
    }

    /// Sets how many runs of `W` may be active at a time, under all of its names together. Default: no limit.
    ///
    /// The limit applies within [`max_concurrent_runs`](Self::max_concurrent_runs). Runs of `W` that wait for a permit
    /// delay no run of another type of workflow. 0 counts as 1. [`build`](Self::build) reports a `W` that the engine does not
    /// host.
    pub fn max_concurrent_runs_of<W: Workflow>(mut self, most: usize) -> Self {
        self.concurrency.limit_runs_of(TypeId::of::<W>(), W::TABLE.name(), most);
        self
    }

    /// Sets how many runs of the workflow with this name may be active at a time. Default: no limit.
    ///
    /// The limit applies within [`max_concurrent_runs_of`](Self::max_concurrent_runs_of) its type and
    /// [`max_concurrent_runs`](Self::max_concurrent_runs). 0 counts as 1. [`build`](Self::build) reports a name that the
    /// engine does not host.
    ///
    /// ```
    /// # use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Greet;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Greeting;
    /// # struct Greeter;
    /// # #[workflow]
    /// # impl Greeter {
    /// #     #[step]
    /// #     async fn greet(&self, _greet: &Greet) -> Greeting { Greeting }
    /// # }
    /// let engine = Engine::builder()
    ///     .workflow_named("tenant-1", Greeter)
    ///     .max_concurrent_runs_named("tenant-1", 4)
    ///     .build()?;
    /// assert!(Engine::builder().max_concurrent_runs_named("tenant-2", 4).build().is_err());
    /// # Ok::<(), workflow_core::BuildError>(())
    /// ```
    pub fn max_concurrent_runs_named(mut self, name: impl Into<Arc<str>>, most: usize) -> Self {
        self.concurrency.limit_runs_named(name.into(), most);
        self
    }

    /// Sets whether a start without a free permit waits or is refused. Default: it waits.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.concurrency.when_full = when_full;
        self
    }

    /// Sets a named limit of attempts, over all runs of the engine. Default: no limits.
    ///
    /// A step takes part with `#[step(limit = "bank")]`: each of its attempts needs a permit of the limit. With
    /// `#[step(limit = "bank", limit_key = customer)]` the limit holds for each key apart; the method `customer` makes
    /// the key of the step's parameters. Attempts of all steps and workflows with one limit and one key share its
    /// permits; those without a key share one.
    ///
    /// An attempt that has to wait begins in order of arrival among those of its key. It has not begun: no timeout
    /// runs, no attempt is counted, and neither the step's `concurrency` nor
    /// [`max_concurrent_executions`](Self::max_concurrent_executions) count it. If the step or the run is full when its
    /// turn comes, others have the permit, and the run keeps its next free permit for one such attempt at a time. The run
    /// stays active, as during a retry delay. Reports and explanations name the limit and what holds its permits
    /// ([`WaitsFor::Limit`](crate::report::WaitsFor::Limit)). A permit is released when its attempt ends, in whichever
    /// way; the next attempt of a retried execution needs another one. A step that awaits a child run holds its permit
    /// meanwhile, so its children must not need the last permit of the same limit and key.
    ///
    /// Limits hold in one process: engines that share a store limit themselves each. After a crash, an attempt that
    /// waited is taken for one that may have begun, so an `at_most_once` step fails with class
    /// [`InDoubt`](crate::ErrorClass::InDoubt).
    ///
    /// A permit costs O(log n), with n attempts of its key that hold one or wait. A key that nothing uses takes no memory
    /// for long. A later call for a name replaces the earlier one, and the name of a limit that no step has is no mistake.
    ///
    /// # Errors
    /// [`build`](Self::build) returns [`BuildProblem::UnknownLimit`](crate::errors::BuildProblem::UnknownLimit) for each
    /// step whose limit is not set. It names those that are.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Limit;
    /// use workflow_core::prelude::*;
    ///
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Transfer { customer: String, cents: u64 }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Transferred;
    /// struct Transfers;
    ///
    /// #[workflow]
    /// impl Transfers {
    ///     #[step(limit = "bank", limit_key = customer)]
    ///     async fn transfer(&self, transfer: &Transfer) -> Transferred {
    ///         Transferred
    ///     }
    ///
    ///     fn customer(transfer: &Transfer) -> &str {
    ///         &transfer.customer
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bank = Limit::concurrent(4).rate(10, Duration::from_secs(1));
    /// let engine = Engine::builder().workflow(Transfers).limit("bank", bank).build()?;
    /// let run = engine.start::<Transfers>(Transfer { customer: "ada".into(), cents: 100 }).await?;
    /// assert_eq!(run.outcome().await?, Transferred);
    ///
    /// let unknown = Engine::builder().workflow(Transfers).build().unwrap_err();
    /// assert!(unknown.to_string().contains("`bank`"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit(mut self, name: impl Into<Arc<str>>, limit: Limit) -> Self {
        self.concurrency.limit_attempts(name.into(), limit);
        self
    }

    /// Sets how deep [child runs](crate::Children) may nest. Default: 3.
    ///
    /// At 1 children have no children themselves, and at 0 there are none.
    pub fn max_child_depth(mut self, most: u32) -> Self {
        self.concurrency.child_depth = most;
        self
    }

    /// Sets how many [child runs](crate::Children) may execute steps at a time. Default: 8.
    ///
    /// Further children begin, and their steps wait for a permit, in order. A child that waits for a timer or for an
    /// event from outside needs no permit, and one that waits for a retry keeps its own. A child with children of its
    /// own lends them its permit, and its other steps may run meanwhile, so more children may be active than this. 0
    /// counts as 1.
    pub fn max_concurrent_children(mut self, most: usize) -> Self {
        self.concurrency.limit_children(most);
        self
    }

    /// Sets how many executions of one run may be in flight. Default: 1,024.
    ///
    /// Further executions wait in order. 0 counts as 1.
    pub fn max_concurrent_executions(mut self, most: usize) -> Self {
        self.settings.limits.concurrent_executions = most.max(1);
        self
    }

    /// Sets how many attempts of an execution may be interrupted. Default: 5.
    ///
    /// An attempt is interrupted when the process ends under it, without [`shut_down`](Engine::shut_down): a step may
    /// have aborted it. From the third such attempt on, the execution begins only while no other such execution runs in
    /// this engine, so that it takes no neighbour with it. After this many the execution fails with class
    /// [`Interrupted`](crate::ErrorClass::Interrupted), which is not retried, and which a catching step can take.
    /// Attempts count that the process may have begun, and a lost store counts as an end of the process. An execution
    /// that waits for another run through a handle keeps its turn: give such a step a timeout. 0 counts as 1.
    pub fn max_interrupted_attempts(mut self, most: u32) -> Self {
        self.settings.interrupted_attempts = most.max(1);
        self
    }

    /// Sets how many events one run's log may have. Default: 10,000,000.
    ///
    /// A run that exceeds the limit fails, so a loop without an exit ends. An execution that returns more events than the
    /// log has room for ends the run before any of them enters. 0 counts as 1.
    pub fn max_events_per_run(mut self, most: u64) -> Self {
        self.settings.limits.scheduler.events = most.max(1);
        self
    }

    /// Sets how many executions one run may have, over all its steps. Default: 100,000.
    ///
    /// When another is due, the run fails with [`RunError::TooManyExecutions`](crate::RunError::TooManyExecutions),
    /// which names the loop. 0 counts as 1.
    ///
    /// A [`FanOut`](crate::FanOut) with more items than the run may still have executions ends the run before any
    /// branch opens, and the error has both numbers. With [`until`](crate::FanOut::until) as many items count as have
    /// to settle. Items do not count if no step is certain to run for them: where a precondition decides, or where a
    /// step lacks another event that it requires.
    ///
    /// ```
    /// use workflow_core::RunError;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Begin;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Draft;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Accepted;
    ///
    /// struct Writer;
    ///
    /// #[workflow]
    /// impl Writer {
    ///     #[step]
    ///     async fn begin(&self, _begin: &Begin) -> Draft { Draft }
    ///
    ///     #[step(loops)]
    ///     async fn improve(&self, _draft: &Draft) -> (Draft, Option<Accepted>) { (Draft, None) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Writer).max_executions_per_run(50).build()?;
    /// let run = engine.start::<Writer>(Begin).await?;
    /// let Err(RunError::TooManyExecutions { looping, .. }) = run.outcome().await else { panic!() };
    /// assert_eq!(looping, ["improve".into()]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_executions_per_run(mut self, most: u64) -> Self {
        self.settings.limits.scheduler.executions = most.max(1);
        self
    }

    /// Sets how long each run may be active. Default: no limit. [`build`](Self::build) refuses 0.
    ///
    /// Active time excludes the time in which the run [waits](crate::RunStatus::Waiting), by the engine's clock.
    /// [`RunOptions::timeout`](crate::RunOptions::timeout) sets the limit of one run, and explains what counts.
    pub fn run_timeout(mut self, active: Duration) -> Self {
        self.settings.timeout = Some(active);
        self
    }

    /// Sets how long each clean-up step of a run may take. Default: as long as its retries.
    ///
    /// By default a step has the time of all attempts and delays of its [`RetryPolicy`](crate::RetryPolicy), in every
    /// class, where an attempt counts with the `timeout` of the step, or with 60 seconds; at most 24 hours.
    ///
    /// A run cleans up once its children have, and once it has the permits that its steps need. The time of a step counts
    /// from its beginning, by the engine's clock, and includes the delays of retries. An execution that takes longer is
    /// dropped, and the step fails; the steps behind it run. The clean-up is then incomplete, as the run's report and its
    /// [summary](crate::store::RunSummary::incomplete_clean_up) say, and
    /// [`Redrive::clean_up`](crate::Redrive::clean_up) runs the step again. A process that resumes a run in its clean-up
    /// counts anew for the step that is open. Cancelling many runs, as [`cancel_all`](crate::Engine::cancel_all) does, may
    /// take the time of all steps for each group of runs that [`max_concurrent_runs`](Self::max_concurrent_runs) admits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Engine;
    ///
    /// let engine = Engine::builder().cleanup_within(Duration::from_secs(300)).build()?;
    /// # Ok::<(), workflow_core::BuildError>(())
    /// ```
    pub fn cleanup_within(mut self, time: Duration) -> Self {
        self.settings.clean_up = Some(time);
        self
    }

    /// Sets how many displayed items a run keeps for viewers. 0 counts as 1. Default: 1,024.
    pub fn display_capacity(mut self, items: usize) -> Self {
        self.settings.display_capacity = items.max(1);
        self
    }

    /// Sets how many commands of handles may queue for a busy run. Default: 64.
    ///
    /// Commands are events, replies, questions and cancellations. A further sender waits for room. 0 counts as 1.
    pub fn mailbox_capacity(mut self, commands: usize) -> Self {
        self.settings.mailbox_capacity = commands.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// Sets how long a run [waits](crate::RunStatus::Waiting) before the engine unloads it. Default: 10 s.
    ///
    /// An unloaded run needs neither a task nor memory, because its journal has its state. The engine loads it again
    /// when one of its timers is due, or a caller sends to it, replies, asks it something or
    /// [attaches](Engine::attach). Loading takes time in proportion to the journal. Handles stay valid. Displayed items
    /// are lost unless there is a handle or a viewer.
    ///
    /// Child runs, and runs with open children, stay loaded: a step that awaits a child keeps both runs in memory for
    /// as long as the child waits. 0 unloads a run at once, and [`Duration::MAX`] never. A run that waits when
    /// [`resume_open_runs`](Engine::resume_open_runs) takes it up is unloaded with any setting. Without a store the setting
    /// has no effect.
    pub fn unload_waiting_after(mut self, waiting: Duration) -> Self {
        self.settings.idle_timeout = Some(waiting);
        self
    }

    /// Keeps ended runs for this long after their ends, by the engine's clock, and at most so many. Default: none.
    ///
    /// For front ends of an engine without a store, whose runs are otherwise forgotten once they have ended and the last
    /// handle is dropped. Meanwhile [`find`](Engine::find) and [`attach`](Engine::attach) return handles with the
    /// outcome, the report, the explanation and the last displayed items. [`runs`](Engine::runs) lists these runs, no other
    /// run starts under their ids ([`StartError::DuplicateRun`](crate::StartError::DuplicateRun)), and
    /// [`remove_run`](Engine::remove_run) removes one early. Afterwards a run is unknown.
    ///
    /// Beyond `at_most` the run that ended first goes. Children do not count: they are in the reports of the runs above. A
    /// kept run costs the memory of its log and trace and of its last
    /// [displayed items](Self::display_capacity), and no task. The engine has them until it is dropped, also after
    /// [`shut_down`](Engine::shut_down). A run whose time is over frees its memory when another run ends, or with the next
    /// look-up.
    ///
    /// With a [`store`](Self::store), which has ended runs itself, the setting has no effect. Zero is refused, for either.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Greet;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Greeted;
    /// # struct Greeter;
    /// # #[workflow]
    /// # impl Greeter {
    /// #     #[step]
    /// #     async fn greet(&self, _greet: &Greet) -> Greeted { Greeted }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Greeter).keep_ended(Duration::from_secs(600), 1_000).build()?;
    /// let id = engine.start::<Greeter>(Greet).await?.id().clone();
    /// // Later, when nobody has a handle any more:
    /// let run = engine.attach::<Greeter>(id).await?;
    /// assert_eq!(run.outcome().await?, Greeted);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_ended(mut self, time: Duration, at_most: usize) -> Self {
        self.ended = Some(Keeping { time, at_most });
        self
    }

    /// Sets how many bytes of JSON an event may have that enters a log. Default: no limit.
    ///
    /// An execution that emits a larger event fails with [`EventTooLarge`](crate::errors::EventTooLarge), a permanent error. A
    /// larger event or reply from outside is refused with [`SendError::TooLarge`](crate::SendError::TooLarge), and a
    /// larger start event with [`StartError::TooLarge`](crate::StartError::TooLarge). Displayed items have no limit.
    ///
    /// With a limit, the engine serialises every event once to count its bytes, up to the limit, and stores no text. An
    /// event whose `Serialize` fails has no size, and passes; one whose `Serialize` panics is refused as unfit. Without a limit, a run in memory serialises nothing.
    pub fn max_event_bytes(mut self, most: usize) -> Self {
        self.settings.events.most_bytes = Some(most);
        self
    }

    /// Sets whether each run is compared with its journal while it runs.
    ///
    /// A second state follows the journal, record by record as read back from JSON, and has to equal the run's state. A
    /// run without a store is checked as if it had one, unless one of its events has no JSON. A difference ends the
    /// run's task with a panic that shows the record, its position and both sides. Dropping the engine then panics too,
    /// so that no test misses the difference.
    ///
    /// For tests: a run takes several times as long. Default: on in builds with this feature and debug assertions;
    /// `workflow-testkit` enables the feature.
    ///
    /// ```
    /// use workflow_core::Engine;
    ///
    /// let engine = Engine::builder().replay_check(false).build()?; // for a test that measures
    /// # drop(engine);
    /// # Ok::<(), workflow_core::BuildError>(())
    /// ```
    #[cfg(feature = "replay-check")]
    pub fn replay_check(mut self, is_on: bool) -> Self {
        self.replay_check = ReplayCheck(is_on);
        self
    }

    /// Builds the engine.
    ///
    /// # Errors
    /// [`BuildError`] with every problem: mistakes in tables, two workflows or event types with one name, missing or
    /// wrong configuration, impossible limits or leases.
    pub fn build(mut self) -> Result<Engine, BuildError> {
        find_behind(behind);
        self.check_names();
        self.check_times();
        self.check_events();
        self.check_configs();
        self.check_limits();
        self.check_ended();
        self.durability.settle_contexts();
        self.durability.settle_inbox();
        self.problems.extend(self.durability.problems());
        self.check_contexts();
        if !self.problems.is_empty() {
            return Err(BuildError { problems: self.problems });
        }
        describe_metrics();
        let middleware: Arc<[_]> = self.middleware.into();
        self.settings.has_middleware = !middleware.is_empty();
        let rules = Arc::new(self.rules);
        let limiters = self.concurrency.limiters(&self.clock);
        let named = |name: &str| limiters.get(name).cloned();
        let hosts = self.hosts.into_iter();
        let hosts = hosts.map(|host| host.within(&middleware).ruled(&rules).limited(named));
        let hosts = Hosts::new(hosts, self.configs);
        let (id, ending) = (EngineId::generate(), Ending::default());
        let inbox = self.durability.inbox.take();
        let inbox = inbox.map(|inbox| EngineInbox::new(inbox, ending.patience(), self.clock.clone()));
        let (journals, contexts) = self.durability.open(&id, &ending.patience(), &self.clock);
        let serialises = journals.store().is_ok_and(EventStore::serialises);
        // A store has the ended runs itself.
        let ended = self.ended.filter(|_| !journals.are_kept());
        let ended = ended.map(|keeping| EndedRuns::new(keeping, self.clock.clone()));
        let runs = RunRegistry::new(ending.patience()).keeping(ended);
        Ok(Engine {
            inner: Arc::new_cyclic(|engine: &Weak<Inner>| Inner {
                common: Arc::new(EngineParts {
                    observers: Observers::start(self.observers),
                    clock: self.clock,
                    contexts: contexts.downgrade(),
                    lease: journals.lease().cloned(),
                    is_durable: journals.are_kept(),
                    settings: self.settings.kept(journals.are_kept(), serialises),
                    wind_down: WindDown::default(),
                    turns: Arc::default(),
                    tasks: ending.tasks(),
                    lingering: Arc::default(),
                    replay_check: self.replay_check.0.then(Arc::default),
                    engine: Some(Weak::<Inner>::clone(engine) as _),
                }),
                id,
                hosts,
                journals,
                contexts,
                inbox,
                concurrency: self.concurrency,
                runs,
                reminders: Reminders::default(),
                ending,
                claims: ClaimMemory::default(),
            }),
        })
    }

    fn tables(&self) -> impl Iterator<Item = &DependencyTable> {
        self.hosts.iter().map(|host| &*host.table)
    }

    fn check_times(&mut self) {
        let is_zero = |time: &Option<Duration>| time.is_some_and(|time| time.is_zero());
        let hurried = self.tables().filter(|table| is_zero(&table.edges.timeout));
        let hurried = hurried.map(|table| BuildProblem::NoTime { workflow: Some(table.name().to_owned()) });
        let all = is_zero(&self.settings.timeout).then_some(BuildProblem::NoTime { workflow: None });
        let problems: Vec<BuildProblem> = hurried.chain(all).collect();
        self.problems.extend(problems);
    }

    fn check_names(&mut self) {
        let mut names = HashSet::new();
        let again = self.hosts.iter().map(|host| host.table.name()).filter(|name| !names.insert(*name));
        self.problems.extend(again.map(|name| BuildProblem::DuplicateWorkflow { workflow: name.to_owned() }));
    }

    /// S1: a wire name means one type in the whole engine.
    fn check_events(&mut self) {
        let mut named: HashMap<&str, TypedEvent<'_>> = HashMap::new();
        let (mut pairs, mut problems) = (HashSet::new(), Vec::new());
        for table in self.tables() {
            for other in table.events.iter().filter_map(TypedEvent::of) {
                let known = *named.entry(other.name).or_insert(other);
                let is_new = known.id != other.id && pairs.insert([known.id, other.id]);
                // A table with both reports them itself.
                if is_new && !table.by_type.contains_key(&known.id) {
                    let (event, types) = (other.name.to_owned(), [known, other].map(TypedEvent::type_name));
                    problems.push(BuildProblem::DuplicateEvent { event, types });
                }
            }
        }
        self.problems.extend(problems);
    }

    fn check_configs(&mut self) {
        let layers = self.configs.problems().cloned().map(BuildProblem::ConfigLayer);
        let unfit = self.tables().flat_map(|table| self.unfit_configs(table));
        let problems: Vec<BuildProblem> = layers.chain(unfit).collect();
        self.problems.extend(problems);
    }

    fn check_limits(&mut self) {
        let unknown = self.concurrency.unknown(|key| {
            self.hosts.iter().any(|host| match key {
                WorkflowKey::Type(id) => host.id == id,
                WorkflowKey::Name(name) => host.table.name() == name,
            })
        });
        self.problems.extend(unknown.into_iter().map(|workflow| BuildProblem::LimitOfUnknown { workflow }));
        let known: Vec<String> = self.concurrency.named().map(ToString::to_string).collect();
        let steps = self.tables().flat_map(|table| table.steps().iter().map(move |step| (table, step)));
        let limited = steps.filter_map(|(table, step)| Some((table, step, step.limit()?)));
        let unknown = limited.filter(|(.., limit)| !known.iter().any(|known| known == limit));
        let problems = unknown.map(|(table, step, limit)| BuildProblem::UnknownLimit {
            workflow: table.name().to_owned(),
            step: step.name().to_owned(),
            limit: limit.to_owned(),
            known: known.clone(),
        });
        let problems: Vec<BuildProblem> = problems.collect();
        self.problems.extend(problems);
    }

    fn check_ended(&mut self) {
        let nothing = self.ended.filter(|ended| ended.time.is_zero() || ended.at_most == 0);
        let nothing = nothing.map(|Keeping { time, at_most }| BuildProblem::KeepsNothing { time, at_most });
        self.problems.extend(nothing);
    }

    /// Refuses workflows whose contexts a restart would lose while their journals survive it.
    fn check_contexts(&mut self) {
        if self.durability.contexts.is_some() {
            return;
        }
        let takers = self.tables().filter_map(|table| Some((table.name(), table.context_taker()?)));
        let problems = takers.map(|(workflow, (step, input))| BuildProblem::ContextsWithoutStore {
            workflow: workflow.to_owned(),
            step: step.name().to_owned(),
            input: input.to_string(),
        });
        let problems: Vec<BuildProblem> = problems.collect();
        self.problems.extend(problems);
    }

    /// The configurations of a workflow that are missing or do not fit. A layer that cannot be read is reported once,
    /// for the layer.
    fn unfit_configs(&self, table: &DependencyTable) -> impl Iterator<Item = BuildProblem> {
        let mut seen = HashSet::new();
        let configs = table.configs().filter(move |config| seen.insert(config.type_id()));
        // Without the layers of its sources, a configuration may not be complete.
        let complete = configs.filter(|config| self.configs.sources(config).is_none());
        let readable = complete.filter(|config| self.configs.is_readable(config));
        let errors = readable.filter_map(|config| self.configs.resolve_for(&config, None).err());
        errors.map(|source| BuildProblem::Config { workflow: table.name.to_string(), source })
    }
}

/// Where journals and contexts are stored.
#[derive(Default)]
struct Durability {
    store: Option<Arc<dyn EventStore>>,
    lease: Option<Duration>,
    /// Once settled, `None` says that the store of journals hands out none.
    contexts: Option<Arc<dyn ContextStore>>,
    inbox: Option<Arc<dyn Inbox>>,
}

impl Durability {
    /// Takes the contexts that go with the store, or contexts in memory without one, unless they are set.
    fn settle_contexts(&mut self) {
        self.contexts = self.contexts.take().or_else(|| match &self.store {
            // A store that panics hands out none.
            Some(store) => caught(|| store.contexts()).ok().flatten(),
            None => Some(Arc::new(MemoryContexts::default())),
        });
    }

    /// The inbox that was set, or the one that goes with the store.
    fn settle_inbox(&mut self) {
        let with_store = || caught(|| self.store.as_ref()?.inbox()).ok().flatten();
        self.inbox = self.inbox.take().or_else(with_store);
    }

    fn problems(&self) -> impl Iterator<Item = BuildProblem> + use<> {
        let without_store = self.lease.filter(|_| self.store.is_none());
        let too_short = self.lease.filter(|lease| *lease < SHORTEST);
        let without_store = without_store.map(|_| BuildProblem::LeaseWithoutStore);
        let too_short = too_short.map(|lease| BuildProblem::LeaseTooShort { lease, shortest: SHORTEST });
        without_store.into_iter().chain(too_short)
    }

    /// The engine's journals and contexts, which wait for their stores until `patience` ends.
    fn open(
        self,
        engine: &EngineId,
        patience: &StorePatience,
        clock: &EngineClock,
    ) -> (Journals, ContextScopes) {
        let guarded = |store| GuardedStore::new(store, patience.clone(), clock.clone());
        let store = self.store.map(|store| -> Arc<dyn EventStore> { Arc::new(guarded(store)) });
        let lease = store.as_ref().zip(self.lease).map(|(store, duration)| {
            LeaseOwner(Arc::new(Lease::new(engine.clone(), Arc::clone(store), duration)))
        });
        let contexts = self.contexts.unwrap_or_else(|| Arc::new(NoContexts));
        let contexts = ContextScopes::new(contexts, patience.clone(), store.is_some());
        (Journals::new(store, lease), contexts)
    }
}

/// An event of a Rust type.
#[derive(Clone, Copy)]
struct TypedEvent<'a> {
    name: &'a str,
    id: TypeId,
    type_name: &'static str,
}

impl<'a> TypedEvent<'a> {
    fn of(row: &'a EventRow) -> Option<Self> {
        Some(Self { name: &row.name, id: row.type_id?, type_name: row.type_name? })
    }

    fn type_name(self) -> String {
        self.type_name.to_owned()
    }
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workflows: Vec<&str> = self.tables().map(DependencyTable::name).collect();
        f.debug_struct("EngineBuilder").field("workflows", &workflows).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    fn durability(store: bool, lease: Option<Duration>) -> Durability {
        let store = store.then(|| Arc::new(MemoryStore::default()) as Arc<dyn EventStore>);
        Durability { store, lease, ..Durability::default() }
    }

    #[test]
    fn a_lease_needs_a_store_and_some_time() {
        let problems = |store, lease| durability(store, Some(lease)).problems().collect::<Vec<_>>();
        assert!(problems(true, SHORTEST).is_empty());
        assert!(matches!(problems(false, SHORTEST)[..], [BuildProblem::LeaseWithoutStore]));
        let both = problems(false, SHORTEST / 2);
        assert!(matches!(both[..], [BuildProblem::LeaseWithoutStore, BuildProblem::LeaseTooShort { .. }]));
        assert!(durability(false, None).problems().next().is_none());
    }

    #[test]
    fn journals_and_leases_are_there_where_they_are_asked_for() {
        let open = |store, lease| {
            let (engine, patience, clock) =
                (EngineId::generate(), Ending::default().patience(), EngineClock::default());
            let (journals, _) = durability(store, lease).open(&engine, &patience, &clock);
            (journals.are_kept(), journals.lease().is_some())
        };
        assert_eq!(open(false, None), (false, false));
        assert_eq!(open(true, None), (true, false));
        assert_eq!(open(true, Some(SHORTEST)), (true, true));
    }
}
