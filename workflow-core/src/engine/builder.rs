//! Building an engine: what it hosts, its configuration and its limits, with every problem reported at once.

use std::any::TypeId;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::claim::IncompatibleOrphans;
use super::concurrency::Concurrency;
use super::contexts::ContextScopes;
use super::ending::{Ending, Patience};
use super::guarded::Guarded;
use super::hosts::Hosts;
use super::journals::Journals;
use super::lease::{Lease, Leased, SHORTEST};
use super::registry::RunRegistry;
use super::reminders::Reminders;
use super::{Engine, Inner, WhenFull};
use crate::clock::{Clock, EngineClock};
use crate::config::{ConfigLayers, ConfigSet};
use crate::context::{ContextStore, MemoryContexts};
use crate::error::{BuildError, BuildProblem, ErrorClass};
use crate::id::EngineId;
use crate::middleware::Middleware;
use crate::observe::{Observer, Observers};
use crate::retry::{RetryPolicy, Rules};
use crate::run::{Common, Host, RunSettings, Unhosted, describe_metrics};
use crate::store::EventStore;
use crate::table::{DependencyTable, EventRow};
use crate::workflow::Workflow;

/// Builds an [`Engine`]. Nothing is checked before [`build`](Self::build).
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
    replay_check: ReplayCheck,
    problems: Vec<BuildProblem>,
}

thread_local! {
    static IS_UNCHECKED: Cell<bool> = const { Cell::new(false) };
}

/// Builders that are made meanwhile by this thread, and one-liners that are begun, leave the
/// [replay check](EngineBuilder::replay_check) off: for tests that count what a run costs.
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
        // Of a generic workflow the table is known only here.
        const { crate::check::all(W::TABLE) };
        self.host(Unhosted::new(workflow))
    }

    /// The same for a workflow that has been checked.
    pub(crate) fn host(mut self, unhosted: Unhosted) -> Self {
        // A mistake in its table does not hide the others.
        let (host, error) = Host::new(unhosted);
        self.problems.extend(error.map(BuildProblem::Table));
        self.hosts.push(host);
        self
    }

    /// Sets the layers of `Config<C>`; a value of `C` will do. Without them it is made of `C`'s own serde
    /// defaults, if it has one for every field.
    pub fn config<C: DeserializeOwned + Send + Sync + 'static>(
        mut self,
        layers: impl Into<ConfigLayers<C>>,
    ) -> Self {
        self.configs.insert::<C>(layers.into());
        self
    }

    /// Sets where the journals of runs are kept. Default: nowhere, and a run costs nothing for it.
    ///
    /// With a store, what enters a run's log is in the store first, and nothing that depends on it starts
    /// before that.
    pub fn store(mut self, store: impl EventStore) -> Self {
        self.durability.store = Some(Arc::new(store));
        self
    }

    /// Sets how long the engine's lease lasts, by which engines that share a store tell whose runs nobody drives any
    /// more. At least a second. Default: none, and runs go on only where somebody says so.
    ///
    /// The engine takes a lease before it writes the beginning of its first run, or goes on with a run, and renews it at
    /// every third of its time. With each renewal it claims the open runs of engines whose leases have run out, and goes
    /// on with them as [`resume_open_runs`](Engine::resume_open_runs) does: so an engine that is to stand by calls that
    /// once. Runs of engines that take no leases are nobody's orphans; neither are those that this engine has stopped to
    /// drive itself, after an error of its store.
    ///
    /// An engine that could not renew its lease in time begins no execution and asks no precondition until it has; what it
    /// had begun goes on. A run that was claimed meanwhile ends with [`RunError::Conflict`](crate::RunError::Conflict)
    /// before it begins anything more. The lease is given up by [`shut_down`](Engine::shut_down), and when the engine is
    /// dropped and none of its runs is left.
    ///
    /// Too short a lease is lost in every pause of the machine, and with a long one orphans wait. A renewal is one call of
    /// the store; looking for orphans is O(open runs of the store), page by page of 1,000, with two calls for each, and
    /// O(open runs of others) in memory. Leases go by the clocks of the machine and of the store, not by the engine's
    /// [`clock`](Self::clock); they need a runtime with timers (`enable_time`).
    ///
    /// It is a problem of the engine if it has no [`store`](Self::store), or if the time is shorter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::{Engine, MemoryStore};
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

    /// Sets where contexts are kept. Default: [`MemoryContexts`].
    pub fn contexts(mut self, contexts: impl ContextStore) -> Self {
        self.durability.contexts = Some(Arc::new(contexts));
        self
    }

    /// Adds an observer; each gets a thread of its own.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Puts something around every call of every step; what was added first is the outermost.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Sets which failures are followed by another attempt, for every step that has no policy of its own. Default:
    /// [`RetryPolicy::standard`].
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.rules.policy = policy;
        self
    }

    /// Says which class the errors of a type have that come out of steps by `?`. A class that a step gives stays. Of two
    /// for one type the later counts.
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

    /// Goes by this clock as if it was given none.
    #[cfg(test)]
    pub(crate) fn system_clock(mut self, clock: EngineClock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets where every time comes from that the library records or shows. Default: the system's clock, as
    /// [`SystemClock`](crate::SystemClock) reads it.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = EngineClock::new(clock);
        self
    }

    /// At most so many runs run at a time; [`Engine::start`] waits for a place, unless [`when_full`](Self::when_full)
    /// says otherwise. 0 is taken as 1. A run that waits for a timer or for something from outside takes no place; one
    /// that waits for a retry does. Default: no bound.
    pub fn max_concurrent_runs(mut self, most: usize) -> Self {
        self.concurrency.limit_runs(most);
        self
    }

    /// At most so many runs of `W` at a time, as well as within
    /// [`max_concurrent_runs`](Self::max_concurrent_runs); runs of other workflows are not held up by those of `W`
    /// that wait for it. 0 is taken as 1. Default: no bound.
    ///
    /// It is a problem of the engine if it does not host `W`.
    pub fn max_concurrent_runs_of<W: Workflow>(mut self, most: usize) -> Self {
        self.concurrency.limit_runs_of(TypeId::of::<W>(), W::TABLE.name(), most);
        self
    }

    /// Whether a start for which there is no place waits or is refused. Default: it waits.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.concurrency.when_full = when_full;
        self
    }

    /// How deep [child runs](crate::Children) nest: at 1 they have no children themselves, at 0 there are none.
    /// Default: 3.
    pub fn max_child_depth(mut self, most: u32) -> Self {
        self.concurrency.child_depth = most;
        self
    }

    /// At most so many [child runs](crate::Children) have a place in which they execute steps; the steps of the others
    /// wait for one, in order. 0 is taken as 1. A child that waits for a timer or for something from outside takes no
    /// place, one that waits for a retry does, and one that runs children of its own lends them its place, of which they
    /// take no other. Its other steps may go on meanwhile, so that more children than this may be at work. Default: 8.
    pub fn max_concurrent_children(mut self, most: usize) -> Self {
        self.concurrency.limit_children(most);
        self
    }

    /// At most so many executions of one run at a time; the surplus waits in order. 0 is taken as 1.
    /// Default: 1,024.
    pub fn max_concurrent_executions(mut self, most: usize) -> Self {
        self.settings.limits.concurrent_executions = most.max(1);
        self
    }

    /// At most so many events in the log of one run, which then fails; it ends loops without a way out.
    /// Default: 10,000,000.
    pub fn max_events_per_run(mut self, most: u64) -> Self {
        self.settings.limits.scheduler.events = most.max(1);
        self
    }

    /// At most so many executions of one run, of all its steps together. When another is due the run fails with
    /// [`RunError::TooManyExecutions`](crate::RunError::TooManyExecutions), which names the loop that ran away. 0 is
    /// taken as 1. Default: 100,000.
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

    /// How long each run may be active, by the engine's clock: the time in which it does not
    /// [wait](crate::RunStatus::Waiting). [`RunOptions::timeout`](crate::RunOptions::timeout) says it for one run, and
    /// what counts. Default: no bound.
    pub fn run_timeout(mut self, active: Duration) -> Self {
        self.settings.timeout = Some(active);
        self
    }

    /// How many displayed items a run keeps for viewers. 0 is taken as 1. Default: 1,024.
    pub fn display_capacity(mut self, items: usize) -> Self {
        self.settings.display_capacity = items.max(1);
        self
    }

    /// How many commands of its handles wait for a busy run: events, replies, questions, cancellations. Whoever sends
    /// more waits until there is room. 0 is taken as 1. Default: 64.
    pub fn mailbox_capacity(mut self, commands: usize) -> Self {
        self.settings.mailbox_capacity = commands.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// How long a run [waits](crate::RunStatus::Waiting) before it is let go of: with a store its journal says all that there
    /// is to know of it, so that it needs neither a task nor memory until one of its timers is due, or somebody sends,
    /// replies, asks something of it, or [attaches](Engine::attach). Then it is loaded again, which takes time in
    /// proportion to its journal. Handles stay valid meanwhile. What it has shown is gone unless there is a handle or a
    /// viewer. Child runs, and runs with children that have not ended, are kept: a step that awaits a child which waits for a
    /// person keeps both in memory for as long as that takes.
    ///
    /// 0 lets go of them at once, and [`Duration::MAX`] never. Without a store it means nothing. Default: 10 s.
    pub fn release_waiting_after(mut self, waiting: Duration) -> Self {
        self.settings.idle_timeout = Some(waiting);
        self
    }

    /// At most so many bytes of JSON per event that enters a log. An execution that emits a larger one fails with
    /// [`EventTooLarge`](crate::EventTooLarge), a permanent error; a larger event from outside or reply is refused
    /// with [`SendError::TooLarge`](crate::SendError::TooLarge), a larger start event with
    /// [`StartError::TooLarge`](crate::StartError::TooLarge). What is only displayed is not bounded.
    ///
    /// With a bound every event is serialised once to be counted, at most as far as the bound; no text is kept. One
    /// whose `Serialize` fails has no size, and passes. Default: no bound, and in memory nothing is serialised.
    pub fn max_event_bytes(mut self, most: usize) -> Self {
        self.settings.events.most_bytes = Some(most);
        self
    }

    /// Whether each run is compared with its journal while it runs: a second state follows the journal, record by record
    /// as they are read back from JSON, and has to be what the run has come to. A run without a store is checked as if it
    /// had one, unless one of its events has no JSON. A difference ends the run's task with a panic that shows the record,
    /// its position and both sides, and dropping the engine panics too, so that no test passes over it.
    ///
    /// For tests: a run takes several times as long. Default: on where this feature is, in builds with debug assertions;
    /// `workflow-testkit` switches the feature on.
    #[cfg(feature = "replay-check")]
    pub fn replay_check(mut self, is_on: bool) -> Self {
        self.replay_check = ReplayCheck(is_on);
        self
    }

    /// Makes the engine.
    ///
    /// # Errors
    /// [`BuildError`] with every problem: mistakes in tables, workflows or event types with one name,
    /// missing or wrong configuration, limits or leases that cannot be.
    pub fn build(mut self) -> Result<Engine, BuildError> {
        self.check_names();
        self.check_events();
        self.check_configs();
        self.check_limits();
        self.problems.extend(self.durability.problems());
        if !self.problems.is_empty() {
            return Err(BuildError { problems: self.problems });
        }
        describe_metrics();
        let middleware: Arc<[_]> = self.middleware.into();
        let rules = Arc::new(self.rules);
        let hosts = self.hosts.into_iter().map(|host| host.within(&middleware).ruled(&rules));
        let hosts = Hosts::new(hosts, self.configs);
        let (id, ending) = (EngineId::generate(), Ending::default());
        let (journals, contexts) = self.durability.open(&id, &ending.patience());
        let serialises = journals.store().is_ok_and(EventStore::serialises);
        let runs = RunRegistry::new(ending.patience());
        Ok(Engine {
            inner: Arc::new_cyclic(|engine: &Weak<Inner>| Inner {
                common: Arc::new(Common {
                    observers: Observers::start(self.observers),
                    clock: self.clock,
                    contexts: contexts.downgrade(),
                    lease: journals.lease().cloned(),
                    is_kept: journals.are_kept(),
                    settings: self.settings.kept(journals.are_kept(), serialises),
                    hands_over: AtomicBool::new(false),
                    replay_check: self.replay_check.0.then(Arc::default),
                    engine: Weak::<Inner>::clone(engine),
                }),
                id,
                hosts,
                journals,
                contexts,
                concurrency: self.concurrency,
                runs,
                reminders: Reminders::default(),
                ending,
                unfit: IncompatibleOrphans::default(),
            }),
        })
    }

    fn tables(&self) -> impl Iterator<Item = &DependencyTable> {
        self.hosts.iter().map(|host| &*host.table)
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
                // A table that has both reports them itself.
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
        let unknown = self.concurrency.unknown(|id| self.hosts.iter().any(|host| host.id == id));
        self.problems.extend(unknown.into_iter().map(|workflow| BuildProblem::LimitOfUnknown { workflow }));
    }

    /// The configurations of a workflow that are missing or do not fit, but for those whose layers cannot be
    /// read, which is reported of the layers.
    fn unfit_configs(&self, table: &DependencyTable) -> impl Iterator<Item = BuildProblem> {
        let mut seen = HashSet::new();
        let configs = table.configs().filter(move |config| seen.insert(config.type_id()));
        let readable = configs.filter(|config| self.configs.is_readable(config));
        let errors = readable.filter_map(|config| self.configs.resolve_for(&config, None).err());
        errors.map(|source| BuildProblem::Config { workflow: table.name.to_string(), source })
    }
}

/// Where journals and contexts are stored.
#[derive(Default)]
struct Durability {
    store: Option<Arc<dyn EventStore>>,
    lease: Option<Duration>,
    contexts: Option<Arc<dyn ContextStore>>,
}

impl Durability {
    fn problems(&self) -> impl Iterator<Item = BuildProblem> + use<> {
        let without_store = self.lease.filter(|_| self.store.is_none());
        let too_short = self.lease.filter(|lease| *lease < SHORTEST);
        let without_store = without_store.map(|_| BuildProblem::LeaseWithoutStore);
        let too_short = too_short.map(|lease| BuildProblem::LeaseTooShort { lease, shortest: SHORTEST });
        without_store.into_iter().chain(too_short)
    }

    /// The journals of this engine and its contexts, which it waits for with this patience.
    fn open(self, engine: &EngineId, patience: &Patience) -> (Journals, ContextScopes) {
        let store = self
            .store
            .map(|store| -> Arc<dyn EventStore> { Arc::new(Guarded::new(store, patience.clone())) });
        let lease = store.as_ref().zip(self.lease).map(|(store, duration)| {
            Leased(Arc::new(Lease::new(engine.clone(), Arc::clone(store), duration)))
        });
        let contexts = self.contexts.unwrap_or_else(|| Arc::new(MemoryContexts::default()));
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
        Durability { store, lease, contexts: None }
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
            let (journals, _) =
                durability(store, lease).open(&EngineId::generate(), &Ending::default().patience());
            (journals.are_kept(), journals.lease().is_some())
        };
        assert_eq!(open(false, None), (false, false));
        assert_eq!(open(true, None), (true, false));
        assert_eq!(open(true, Some(SHORTEST)), (true, true));
    }
}
