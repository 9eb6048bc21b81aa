//! A workflow with its type erased, so that one run type drives all of them.

use std::any::TypeId;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::timeout::Timeout;
use crate::error::{StepError, TableError};
use crate::event::{AnyEvent, Unreadable};
use crate::input::StepCall;
use crate::middleware::{Middleware, Next};
use crate::output::Emitted;
use crate::panics::caught_in;
use crate::retry::{RetryPolicy, Rules};
use crate::store::RecordedEvent;
use crate::table::{DependencyTable, EventIndex, TableSpec};
use crate::workflow::{Check, Compaction, StepFuture, Workflow};

/// A workflow without its type: all that a host asks of it.
pub(crate) trait Steps: Send + Sync {
    fn call(self: Arc<Self>, step: usize, call: StepCall) -> StepFuture;
    fn check(self: Arc<Self>, step: usize, call: &mut StepCall) -> Check;
    fn compact<'a>(&'a self, step: usize, call: &'a mut StepCall) -> Result<Compaction<'a>, StepError>;
}

impl<W: Workflow> Steps for W {
    fn call(self: Arc<Self>, step: usize, call: StepCall) -> StepFuture {
        W::call(self, step, call)
    }

    fn check(self: Arc<Self>, step: usize, call: &mut StepCall) -> Check {
        W::check(&self, step, call)
    }

    fn compact<'a>(&'a self, step: usize, call: &'a mut StepCall) -> Result<Compaction<'a>, StepError> {
        W::compact(self, step, call)
    }
}

/// The steps of a workflow of which there is only the table.
struct NoSteps;

impl NoSteps {
    fn refusal() -> StepError {
        StepError::permanent("there is only the table of the workflow, without its steps")
    }
}

impl Steps for NoSteps {
    fn call(self: Arc<Self>, _: usize, _: StepCall) -> StepFuture {
        Box::pin(std::future::ready(Err(Self::refusal())))
    }

    fn check(self: Arc<Self>, _: usize, _: &mut StepCall) -> Check {
        Check::Answered(Err(Self::refusal()))
    }

    fn compact<'a>(&'a self, _: usize, _: &'a mut StepCall) -> Result<Compaction<'a>, StepError> {
        Err(Self::refusal())
    }
}

/// How heavy the polls of a step are. One long poll makes it heavy; a few short ones make it light again, so
/// that a poll that was merely interrupted does no lasting harm.
#[derive(Debug, Default)]
pub(crate) struct Weight(AtomicU8);

impl Weight {
    /// Moving an execution to another task and back takes a few microseconds, a small part of this.
    const LONG_POLL: Duration = Duration::from_micros(20);
    const HEAVY: u8 = 16;
    const MOST: u8 = 128;

    pub(crate) fn is_heavy(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Self::HEAVY
    }

    /// Takes one poll into account. Lost updates between threads do not matter.
    pub(crate) fn note(&self, poll: Duration) {
        let weight = self.0.load(Ordering::Relaxed);
        if poll > Self::LONG_POLL {
            self.0.store(weight.saturating_add(Self::HEAVY).min(Self::MOST), Ordering::Relaxed);
        } else if weight > 0 {
            self.0.store(weight - 1, Ordering::Relaxed);
        }
    }
}

/// A workflow to be hosted.
pub(crate) struct Unhosted {
    steps: Arc<dyn Steps>,
    id: TypeId,
    spec: &'static TableSpec,
}

impl Unhosted {
    pub(crate) fn new<W: Workflow>(workflow: W) -> Self {
        Self { steps: Arc::new(workflow), id: TypeId::of::<W>(), spec: W::TABLE }
    }
}

/// A hosted workflow: its steps, its table, and what was learned of them.
pub(crate) struct Host {
    steps: Arc<dyn Steps>,
    pub(crate) id: TypeId,
    pub(crate) table: Arc<DependencyTable>,
    /// What stands around the calls of its steps, the outermost first.
    pub(crate) middleware: Arc<[Arc<dyn Middleware>]>,
    /// What the engine does about failures.
    rules: Arc<Rules>,
    /// The retry policies of steps that have one of their own, by their rows.
    retries: HashMap<usize, RetryPolicy>,
    /// The rows of the steps that have a compaction.
    compacting: Vec<usize>,
    weights: Box<[Weight]>,
    /// Whether there are steps, and types for what journals have.
    has_steps: bool,
}

impl Host {
    /// The workflow, and what is wrong with its table. With a mistake it must not run; it is made all the same,
    /// so that its other mistakes are found too.
    pub(crate) fn new(unhosted: Unhosted) -> (Self, Option<TableError>) {
        let Unhosted { steps, id, spec } = unhosted;
        let (table, error) = table_of(id, spec);
        let weights = table.steps.iter().map(|_| Weight::default()).collect();
        let own = spec.steps.iter().enumerate();
        let retries = own.filter_map(|(row, step)| Some((row, step.retry?()))).collect();
        let compacting = spec.steps.iter().enumerate().filter(|(_, step)| step.compacts);
        let compacting = compacting.map(|(row, _)| row).collect();
        let (middleware, rules): (Arc<[_; 0]>, _) = (Arc::new([]), Arc::default());
        let has_steps = true;
        (Self { steps, id, table, middleware, rules, retries, compacting, weights, has_steps }, error)
    }

    /// What stands in for a host where there is only a table: nothing can be called, and events stay the JSON that they
    /// are.
    pub(super) fn of_table(table: Arc<DependencyTable>) -> Self {
        Self {
            steps: Arc::new(NoSteps),
            id: TypeId::of::<NoSteps>(),
            weights: table.steps.iter().map(|_| Weight::default()).collect(),
            table,
            middleware: Arc::new([]),
            rules: Arc::default(),
            retries: HashMap::new(),
            compacting: Vec::new(),
            has_steps: false,
        }
    }

    /// An event that a journal has; a reply or an expired request with the request.
    pub(super) fn read(
        &self,
        recorded: &RecordedEvent,
        event: EventIndex,
        request: Option<&AnyEvent>,
    ) -> Result<AnyEvent, Unreadable> {
        if !self.has_steps {
            return Ok(recorded.undecoded());
        }
        let reader = self.table.event(event).reader();
        recorded.decoded(reader, request)
    }

    /// The same with something around the calls of its steps.
    pub(crate) fn within(self, middleware: &Arc<[Arc<dyn Middleware>]>) -> Self {
        Self { middleware: Arc::clone(middleware), ..self }
    }

    /// The same with these rules for failures.
    pub(crate) fn ruled(self, rules: &Arc<Rules>) -> Self {
        Self { rules: Arc::clone(rules), ..self }
    }

    /// What the engine does about failures.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Which failures of the step are followed by another attempt.
    pub(crate) fn retry_policy(&self, step: usize) -> Cow<'_, RetryPolicy> {
        let policy = self.retries.get(&step).unwrap_or(&self.rules.policy);
        if self.compacts(step) { Cow::Owned(policy.clone().compacting()) } else { Cow::Borrowed(policy) }
    }

    /// Whether the step has a compaction.
    pub(crate) fn compacts(&self, step: usize) -> bool {
        self.compacting.contains(&step)
    }

    /// One execution of a step, from its bindings to its batch.
    pub(crate) fn step(&self, step: usize, call: StepCall) -> StepFuture {
        Arc::clone(&self.steps).call(step, call)
    }

    /// The same with what stands around it.
    pub(crate) async fn surrounded(
        self: Arc<Self>,
        step: usize,
        call: StepCall,
    ) -> Result<Emitted, StepError> {
        Next::all(self, step).call(call).await
    }

    /// The same after its compaction, which is a part of the attempt and of its time.
    pub(super) async fn compacted(
        self: Arc<Self>,
        step: usize,
        mut call: StepCall,
        timeout: Option<Timeout>,
    ) -> Result<Emitted, StepError> {
        let is_compact = AtomicBool::new(false);
        let attempt = async {
            let compaction = caught_in(async { self.steps.compact(step, &mut call)?.await });
            compaction.await.unwrap_or_else(|panic| Err(StepError::permanent(panic)))?;
            is_compact.store(true, Ordering::Relaxed);
            call.clear_kept();
            Arc::clone(&self).surrounded(step, call).await
        };
        let ended = match timeout {
            Some(timeout) => timeout.around(attempt).await,
            None => attempt.await,
        };
        ended.map_err(|error| if is_compact.into_inner() { error } else { error.of_compaction() })
    }

    /// One question to the precondition of a step.
    pub(crate) fn check(&self, step: usize, mut call: StepCall) -> Check {
        Arc::clone(&self.steps).check(step, &mut call)
    }

    /// How heavy the step's polls proved to be.
    pub(crate) fn weight(&self, step: usize) -> &Weight {
        &self.weights[step]
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Host({})", self.table.name)
    }
}

/// The compiled table of a workflow, compiled once per process if nothing is wrong with it.
fn table_of(workflow: TypeId, spec: &'static TableSpec) -> (Arc<DependencyTable>, Option<TableError>) {
    static TABLES: RwLock<FxHashMap<TypeId, Arc<DependencyTable>>> =
        RwLock::new(HashMap::with_hasher(FxBuildHasher));
    if let Some(table) = TABLES.read().unwrap_or_else(PoisonError::into_inner).get(&workflow) {
        return (Arc::clone(table), None);
    }
    let (table, error) = DependencyTable::with_problems(spec);
    let table = Arc::new(table);
    if error.is_none() {
        TABLES.write().unwrap_or_else(PoisonError::into_inner).insert(workflow, Arc::clone(&table));
    }
    (table, error)
}
