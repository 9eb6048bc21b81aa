//! A hosted workflow with its type erased, so that one run type drives every workflow.

use std::any::TypeId;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use dashmap::DashMap;

use super::timeout::Timeout;
use super::weight::Weight;
use crate::error::StepError;
use crate::event::{AnyEvent, JsonEvent, Unreadable};
use crate::input::StepCall;
use crate::limit::Limiter;
use crate::middleware::{Middleware, Next, Surrounded};
use crate::output::Emitted;
use crate::panics::caught_in;
use crate::retry::{RetryPolicy, Rules};
use crate::runtime_workflow::{RuntimeWorkflow, Steps};
use crate::spec::{TableError, TableSpec};
use crate::store::RecordedEvent;
use crate::table::{DependencyTable, EventIndex, StepIndex};
use crate::workflow::{Check, Compaction, StepFuture, Workflow, no_such_row};

/// How long an attempt of a clean-up step without a `timeout` counts for the time of the step.
const CLEAN_UP_ATTEMPT: Duration = Duration::from_mins(1);

/// The most time of a clean-up step, unless the engine sets another one.
const LONGEST_CLEAN_UP: Duration = Duration::from_hours(24);

/// The calls that a host makes to a workflow.
pub(crate) trait HostedSteps: Send + Sync {
    fn call(self: Arc<Self>, step: usize, call: StepCall) -> StepFuture;
    fn check(self: Arc<Self>, step: usize, call: &mut StepCall) -> Check;
    fn limit_key(self: Arc<Self>, step: usize, call: &mut StepCall) -> Check<String>;
    fn compact<'a>(&'a self, step: usize, call: &'a mut StepCall) -> Result<Compaction<'a>, StepError>;
}

impl<W: Workflow> HostedSteps for W {
    fn call(self: Arc<Self>, step: usize, call: StepCall) -> StepFuture {
        W::call(self, step, call)
    }

    fn check(self: Arc<Self>, step: usize, call: &mut StepCall) -> Check {
        W::check(&self, step, call)
    }

    fn limit_key(self: Arc<Self>, step: usize, call: &mut StepCall) -> Check<String> {
        W::limit_key(&self, step, call)
    }

    fn compact<'a>(&'a self, step: usize, call: &'a mut StepCall) -> Result<Compaction<'a>, StepError> {
        W::compact(self, step, call)
    }
}

/// The steps of a workflow of which only the table is known. Every call fails.
struct NoSteps;

impl NoSteps {
    fn refusal() -> StepError {
        StepError::permanent("there is only the table of the workflow, without its steps")
    }
}

impl HostedSteps for NoSteps {
    fn call(self: Arc<Self>, _: usize, _: StepCall) -> StepFuture {
        Box::pin(std::future::ready(Err(Self::refusal())))
    }

    fn check(self: Arc<Self>, _: usize, _: &mut StepCall) -> Check {
        Check::Answered(Err(Self::refusal()))
    }

    fn limit_key(self: Arc<Self>, _: usize, _: &mut StepCall) -> Check<String> {
        Check::Answered(Err(Self::refusal()))
    }

    fn compact<'a>(&'a self, _: usize, _: &'a mut StepCall) -> Result<Compaction<'a>, StepError> {
        Err(Self::refusal())
    }
}

/// The steps of a run-time workflow.
struct RuntimeSteps(Arc<dyn Steps>);

impl HostedSteps for RuntimeSteps {
    fn call(self: Arc<Self>, step: usize, call: StepCall) -> StepFuture {
        // Called by the first poll, which contains its panics like those of a typed step.
        Box::pin(async move { Arc::clone(&self.0).call(StepIndex::at(step), call).await })
    }

    fn check(self: Arc<Self>, step: usize, call: &mut StepCall) -> Check {
        Check::Answered(self.0.check(StepIndex::at(step), call))
    }

    fn limit_key(self: Arc<Self>, _: usize, _: &mut StepCall) -> Check<String> {
        Check::Answered(Ok(String::new()))
    }

    fn compact<'a>(&'a self, _: usize, _: &'a mut StepCall) -> Result<Compaction<'a>, StepError> {
        Err(no_such_row())
    }
}

/// A workflow that is about to be hosted.
pub(crate) struct UnhostedWorkflow {
    steps: Arc<dyn HostedSteps>,
    id: TypeId,
    table: TableSource,
    /// Whether it runs once, without an engine of the caller's.
    is_alone: bool,
}

/// Where the table of a workflow comes from.
enum TableSource {
    /// The workflow's type.
    Spec {
        spec: &'static TableSpec,
        /// The name under which it is hosted; `None` for its own.
        name: Option<Arc<str>>,
    },
    /// The program, at run time.
    Built(Arc<DependencyTable>),
}

impl UnhostedWorkflow {
    pub(crate) fn new<W: Workflow>(workflow: W) -> Self {
        Self::of(workflow, None)
    }

    /// The workflow for one run. All such runs of its type share what they learn of its steps.
    pub(crate) fn alone<W: Workflow>(workflow: W) -> Self {
        Self { is_alone: true, ..Self::of(workflow, None) }
    }

    /// The workflow under another name than its own.
    pub(crate) fn named<W: Workflow>(workflow: W, name: Arc<str>) -> Self {
        Self::of(workflow, Some(name).filter(|name| **name != *W::TABLE.name()))
    }

    fn of<W: Workflow>(workflow: W, name: Option<Arc<str>>) -> Self {
        let table = TableSource::Spec { spec: W::TABLE, name };
        Self { steps: Arc::new(workflow), id: TypeId::of::<W>(), table, is_alone: false }
    }

    pub(crate) fn at_run_time(workflow: RuntimeWorkflow) -> Self {
        let RuntimeWorkflow { table, steps } = workflow;
        let steps = Arc::new(RuntimeSteps(steps));
        Self { steps, id: TypeId::of::<RuntimeWorkflow>(), table: TableSource::Built(table), is_alone: false }
    }
}

/// A hosted workflow: its steps, its table, and the engine's policies for it.
pub(crate) struct Host {
    steps: Arc<dyn HostedSteps>,
    pub(crate) id: TypeId,
    pub(crate) table: Arc<DependencyTable>,
    /// The own name of its type.
    pub(crate) type_name: &'static str,
    /// The middleware around the calls of its steps, outermost first.
    pub(crate) middleware: Arc<[Arc<dyn Middleware>]>,
    /// The engine's rules for failures.
    rules: Arc<Rules>,
    /// Retry policies that steps declare themselves, by row.
    retries: HashMap<usize, RetryPolicy>,
    /// The rows of the steps that have a compaction.
    compacting: Vec<usize>,
    /// The engine's limits by row, for the rows that have one; empty if none has.
    limiters: Box<[Option<Arc<Limiter>>]>,
    /// Which steps compute, by row.
    weights: Arc<[Weight]>,
    /// The host whose types read events, where this one has a table of a journal.
    present: Option<Arc<Self>>,
}

impl Host {
    /// Hosts the workflow. Returns the errors of its table too, so that all errors of an engine are found
    /// together; a host with an error must not run.
    pub(crate) fn new(unhosted: UnhostedWorkflow) -> (Self, Option<TableError>) {
        let UnhostedWorkflow { steps, id, table, is_alone } = unhosted;
        let mut shared = None;
        let (table, type_name, retries, compacting, error) = match table {
            TableSource::Spec { spec, name } => {
                let (table, error) = match name {
                    None => {
                        let (known, error) = table_of(id, spec);
                        shared = Some(known.weights).filter(|_| is_alone);
                        (known.table, error)
                    }
                    Some(name) => {
                        let (table, error) = DependencyTable::with_problems(spec);
                        (Arc::new(table.renamed(name)), error)
                    }
                };
                let rows = || spec.steps.iter().enumerate();
                let retries = rows().filter_map(|(row, step)| Some((row, step.retry?()))).collect();
                let compacting = rows().filter(|(_, step)| step.compacts).map(|(row, _)| row).collect();
                (table, spec.name(), retries, compacting, error)
            }
            TableSource::Built(table) => {
                let retries = table.edges.retries.iter().cloned().collect();
                (table, "", retries, Vec::new(), None)
            }
        };
        let host = Self {
            steps,
            id,
            type_name,
            middleware: Arc::new([]),
            rules: Arc::default(),
            retries,
            compacting,
            limiters: Box::default(),
            weights: shared.unwrap_or_else(|| weights_of(&table)),
            table,
            present: None,
        };
        (host, error)
    }

    /// A host of a table alone: no step can be called, and events stay JSON.
    pub(crate) fn of_table(table: Arc<DependencyTable>) -> Self {
        Self {
            steps: Arc::new(NoSteps),
            id: TypeId::of::<NoSteps>(),
            weights: weights_of(&table),
            table,
            type_name: "",
            middleware: Arc::new([]),
            rules: Arc::default(),
            retries: HashMap::new(),
            compacting: Vec::new(),
            limiters: Box::default(),
            present: None,
        }
    }

    /// A host of a table that a journal has. Events have the types of the present host, where these can read them.
    pub(crate) fn of_journal(table: Arc<DependencyTable>, present: &Arc<Self>) -> Self {
        Self { present: Some(Arc::clone(present)), ..Self::of_table(table) }
    }

    /// Decodes an event of a journal. `request` is the request of a reply or of an expiry.
    pub(crate) fn read(
        &self,
        recorded: &RecordedEvent,
        event: EventIndex,
        request: Option<&AnyEvent>,
    ) -> Result<AnyEvent, Unreadable> {
        if let Some(present) = &self.present
            && let Some(event) = present.table.event_named(recorded.name())
            && let Ok(event) = present.read(recorded, event, request)
        {
            return Ok(event);
        }
        let row = self.table.event(event);
        let Some(known) = self.table.json_type(event) else {
            return value_of(&self.table, recorded, event, request);
        };
        let (found, known_version) = (recorded.version(), row.version);
        // A table that is only viewed shows every version as it is.
        if self.table.edges.accept.is_some() && found != known_version {
            return Err(Unreadable::OtherVersion { found, known: known_version });
        }
        match recorded.value() {
            // A typed value in a store in memory, viewed without its workflow.
            Some(value) if self.table.edges.accept.is_none() && value.as_json().is_none() => {
                Ok(value.clone())
            }
            _ => Ok(JsonEvent::new(known, recorded.to_json()?).to(request).into()),
        }
    }

    /// The same host with this middleware.
    pub(crate) fn within(self, middleware: &Arc<[Arc<dyn Middleware>]>) -> Self {
        Self { middleware: Arc::clone(middleware), ..self }
    }

    /// The same host with these rules for failures.
    pub(crate) fn ruled(self, rules: &Arc<Rules>) -> Self {
        Self { rules: Arc::clone(rules), ..self }
    }

    /// The same host with the limits of these names.
    pub(crate) fn limited(self, named: impl Fn(&str) -> Option<Arc<Limiter>>) -> Self {
        let limiters = self.table.steps.iter().map(|step| step.limit().and_then(&named));
        let limiters: Box<[_]> = limiters.collect();
        let has_some = limiters.iter().any(Option::is_some);
        Self { limiters: if has_some { limiters } else { Box::default() }, ..self }
    }

    /// Whether the step's attempts have a limit.
    #[inline]
    pub(super) fn has_limit(&self, step: StepIndex) -> bool {
        self.limiters.get(step.get()).is_some_and(Option::is_some)
    }

    /// The limit of the step's attempts.
    pub(super) fn limiter(&self, step: usize) -> Option<&Arc<Limiter>> {
        self.limiters.get(step)?.as_ref()
    }

    /// Asks for the step's key at its limit.
    pub(super) fn limit_key(&self, step: usize, mut call: StepCall) -> Check<String> {
        Arc::clone(&self.steps).limit_key(step, &mut call)
    }

    /// How long a clean-up step may take (S85): the time that the engine sets, or else that of its retries.
    pub(super) fn clean_up_time(&self, step: StepIndex, set: Option<Duration>) -> Duration {
        set.unwrap_or_else(|| {
            let attempt = self.table.step(step).policy.timeout.unwrap_or(CLEAN_UP_ATTEMPT);
            self.retry_policy(step.get()).longest(attempt).min(LONGEST_CLEAN_UP)
        })
    }

    /// The same for all clean-up steps together.
    pub(crate) fn whole_clean_up_time(&self, set: Option<Duration>) -> Duration {
        let times = self.table.clean_up.iter().map(|step| self.clean_up_time(*step, set));
        times.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// The engine's rules for failures.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The retry policy of the step.
    pub(crate) fn retry_policy(&self, step: usize) -> Cow<'_, RetryPolicy> {
        let policy = self.retries.get(&step).unwrap_or(&self.rules.policy);
        if self.compacts(step) { Cow::Owned(policy.clone().compacting()) } else { Cow::Borrowed(policy) }
    }

    /// Whether the step has a compaction.
    pub(crate) fn compacts(&self, step: usize) -> bool {
        self.compacting.contains(&step)
    }

    /// Calls a step, without middleware.
    pub(crate) fn step(&self, step: usize, call: StepCall) -> StepFuture {
        Arc::clone(&self.steps).call(step, call)
    }

    /// Calls a step with its middleware.
    pub(crate) async fn surrounded(
        self: Arc<Self>,
        step: usize,
        call: StepCall,
    ) -> Result<Emitted, StepError> {
        Next::all(self, step).call(call).await
    }

    /// Calls a step with its middleware after its compaction, both within one attempt and its timeout.
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

    /// Asks the precondition of a step.
    pub(crate) fn check(&self, step: usize, mut call: StepCall) -> Check {
        Arc::clone(&self.steps).check(step, &mut call)
    }

    /// Whether the step computes.
    #[inline]
    pub(super) fn weight(&self, step: usize) -> &Weight {
        &self.weights[step]
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Host({})", self.table.name)
    }
}

/// The value of an event of a Rust type.
pub(super) fn value_of(
    table: &DependencyTable,
    recorded: &RecordedEvent,
    event: EventIndex,
    request: Option<&AnyEvent>,
) -> Result<AnyEvent, Unreadable> {
    match recorded.value() {
        Some(value) if table.is_of(event, value.kind()) => Ok(value.clone()),
        // A store in memory has the value that another workflow of the same name recorded.
        _ => recorded.decoded(table.event(event).reader(), request),
    }
}

/// The table of a workflow, and what its runs without an engine have learned of its steps.
#[derive(Clone)]
struct Known {
    table: Arc<DependencyTable>,
    weights: Arc<[Weight]>,
}

/// The compiled table of a workflow. Compiled once per process, if it has no errors.
fn table_of(workflow: TypeId, spec: &'static TableSpec) -> (Known, Option<TableError>) {
    static TABLES: LazyLock<DashMap<TypeId, Known>> = LazyLock::new(DashMap::new);
    if let Some(known) = TABLES.get(&workflow) {
        return (known.clone(), None);
    }
    let (table, error) = DependencyTable::with_problems(spec);
    let known = Known { weights: weights_of(&table), table: Arc::new(table) };
    if error.is_none() {
        TABLES.insert(workflow, known.clone());
    }
    (known, error)
}

/// The weights of steps of which nothing is known.
fn weights_of(table: &DependencyTable) -> Arc<[Weight]> {
    table.steps.iter().map(|step| Weight::new(step.policy.spawn)).collect()
}

impl Surrounded for Host {
    fn middleware(&self, place: usize) -> Option<Arc<dyn Middleware>> {
        self.middleware.get(place).map(Arc::clone)
    }

    fn step(&self, step: usize, call: StepCall) -> StepFuture {
        Self::step(self, step, call)
    }

    fn step_name(&self, step: usize) -> &str {
        &self.table.steps[step].name
    }
}
