//! How building an engine, starting, resuming and sending into a run fail, and how a run ends without an output: one type
//! per boundary. The error of a step is [`StepError`](crate::StepError).

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::config::ConfigError;
use crate::error::{
    BranchFailure, BranchItem, ErrorClass, EventTooLarge, FailedIn, SharedError, UnfitEvent, UnfitValue,
    WithFacts, at, chain, unfit_text,
};
use crate::event::Inadmissible;
use crate::explain::StallReport;
use crate::id::{EngineId, ExecutionId, RunId, RunStatus, Seq};
use crate::report::WaitsFor;
use crate::spec::TableError;
use crate::store::StoreError;
use crate::text::{enumerated, quoted};

mod debug;
mod incompatible;
mod recorded;
mod redrive;
mod runaway;

pub use incompatible::Incompatibility;
pub use recorded::RecordedRunError;
pub use redrive::RedriveError;

/// The problems of an engine that cannot be built: all of them, not just the first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BuildError {
    /// The problems.
    pub problems: Vec<BuildProblem>,
}

/// One problem of an engine.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildProblem {
    /// A workflow's table has problems.
    #[error(transparent)]
    Table(TableError),
    /// A configuration is missing or does not fit its type.
    #[error("workflow `{workflow}` needs a configuration: {}; give it with `.config::<…>(…)`", chain(.source))]
    Config {
        /// The workflow that needs it.
        workflow: String,
        /// The problem.
        source: ConfigError,
    },
    /// A layer of a configuration cannot be read.
    #[error("a configuration layer cannot be used: {}", chain(.0))]
    ConfigLayer(ConfigError),
    /// Two workflows have one name.
    #[error("two workflows are named `{workflow}`: host one under another name with `.workflow_named(…)`")]
    DuplicateWorkflow {
        /// The name.
        workflow: String,
    },
    /// A run-time workflow has the table of a typed one, whose events are Rust types.
    #[error(
        "the run-time workflow `{workflow}` declares `{event}` with a Rust type: build its table with `DependencyTable::builder`"
    )]
    TypedEvent {
        /// The workflow.
        workflow: String,
        /// The first such event.
        event: String,
    },
    /// There is a limit for the runs of a workflow that the engine does not host.
    #[error(
        "`max_concurrent_runs_of` or `max_concurrent_runs_named` is set for workflow `{workflow}`, which the engine does not host: add it with `.workflow(…)`"
    )]
    LimitOfUnknown {
        /// The workflow.
        workflow: Arc<str>,
    },
    /// A step has a named limit that is not set.
    #[error(
        "step `{step}` of workflow `{workflow}` has the limit `{limit}`, which is not set: set it with `.limit(\"{limit}\", …)`; {}",
        set_limits(.known)
    )]
    UnknownLimit {
        /// The workflow.
        workflow: String,
        /// The step.
        step: String,
        /// The name of the limit.
        limit: String,
        /// The names of the limits that are set, sorted.
        known: Vec<String>,
    },
    /// The engine has a lease, and no store for it.
    #[error("a lease is set, and there is no store to take it from: give one with `.store(…)`")]
    LeaseWithoutStore,
    /// A workflow takes a context, and the engine's store of journals hands out no store of contexts.
    #[error(
        "step `{step}` of workflow `{workflow}` takes a `{input}`, which a restart would lose: `.store(…)` keeps journals and hands out no contexts, and `.contexts(…)` is not set; store them with `.contexts(store)`, or lose them with `.contexts(MemoryContexts::forgetful())`"
    )]
    ContextsWithoutStore {
        /// The workflow.
        workflow: String,
        /// Its first step that takes a context, itself or by its precondition.
        step: String,
        /// The name of the parameter, such as `RunContext`.
        input: String,
    },
    /// The lease is too short for its renewals.
    #[error(
        "a lease of {lease:?} is too short to be renewed in time: give `.lease(…)` at least {shortest:?}"
    )]
    LeaseTooShort {
        /// Its duration.
        lease: Duration,
        /// The shortest duration.
        shortest: Duration,
    },
    /// Two event types have one wire name.
    #[error(
        "two event types are named `{event}`: `{}` and `{}`; give one another name with `#[event(name = \"…\")]`",
        types[0], types[1]
    )]
    DuplicateEvent {
        /// The wire name.
        event: String,
        /// The Rust types.
        types: [String; 2],
    },
}

fn unknown_event(kind: &str, event: &str, fitting: &[Arc<str>]) -> String {
    let fitting = match &quoted(fitting)[..] {
        [] => "it has none".to_owned(),
        all => format!("it has {}", enumerated(all, "and")),
    };
    format!("the workflow takes no {kind} `{event}`: {fitting}")
}

/// The limits that are set, at the end of a sentence.
fn set_limits(known: &[String]) -> String {
    match &quoted(known)[..] {
        [] => "no limit is set".to_owned(),
        [only] => format!("{only} is set"),
        all => format!("{} are set", enumerated(all, "and")),
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the engine cannot be built:")?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n- {problem}"))
    }
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.problems.first().map(|problem| problem as _)
    }
}

/// Why a run could not be resumed or found. Its journal stays as it is.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// Neither the engine nor its store has such a run.
    #[error("there is no run `{run}`")]
    UnknownRun {
        /// The run.
        run: RunId,
    },
    /// The engine does not host the run's workflow.
    #[error(
        "run `{run}` is of workflow `{workflow}`, which the engine does not host: add it with `.workflow(…)`"
    )]
    UnknownWorkflow {
        /// The run.
        run: RunId,
        /// Its workflow.
        workflow: Arc<str>,
    },
    /// The run's workflow is of another type than the caller's.
    #[error("run `{run}` is of workflow `{workflow}`, not of `{asked}`")]
    WrongWorkflow {
        /// The run.
        run: RunId,
        /// Its workflow.
        workflow: Arc<str>,
        /// The workflow that the caller expects: the own name of its type, or the name that it gave.
        asked: Arc<str>,
    },
    /// The workflow has changed since the run's journal was written, and does not fit it.
    #[error("run `{run}` cannot be resumed with the workflow as it is now: {difference}")]
    Incompatible {
        /// The run.
        run: RunId,
        /// The differences.
        difference: Incompatibility,
    },
    /// Another engine drives the run, and holds its lease.
    #[error("run `{run}` is driven by engine `{engine}`, which holds its lease")]
    Elsewhere {
        /// The run.
        run: RunId,
        /// The engine that drives the run.
        engine: EngineId,
    },
    /// Another engine wrote to the run at each look-up. Only with [leases](crate::EngineBuilder::lease). The call can
    /// be repeated.
    #[error("run `{run}` is being written to by another engine: try again")]
    Contended {
        /// The run.
        run: RunId,
    },
    /// Five or more processes have resumed the run one after the other, and recorded nothing after that: the run may kill
    /// its process. Claims leave it as it is; [`Engine::resume_open_runs`](crate::Engine::resume_open_runs) and
    /// [`Engine::attach`](crate::Engine::attach) resume it.
    #[error(
        "run `{run}` was resumed {resumed} times and recorded nothing since: it may end its process; attach to it to resume it"
    )]
    Crashing {
        /// The run.
        run: RunId,
        /// How often it was resumed since it last recorded anything.
        resumed: usize,
    },
    /// The engine's present configuration does not fit the run.
    #[error(transparent)]
    Config(ConfigError),
    /// The engine was shut down.
    #[error("the engine was shut down: it resumes no runs")]
    ShutDown,
    /// There is no tokio runtime here to run it on.
    #[error("a resumed run is a tokio task: call this within a tokio runtime")]
    NoRuntime,
    /// The store cannot be read.
    #[error("the run cannot be read: {}", chain(.0))]
    Store(#[source] StoreError),
}

/// Why a run was not started. No trace of the run remains.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The engine does not host the workflow.
    #[error(
        "the engine does not host workflow `{workflow}`: add it with `.workflow(…)`; a workflow that the one-line `.run(…)` runs has no engine"
    )]
    UnknownWorkflow {
        /// The workflow.
        workflow: Arc<str>,
    },
    /// The engine hosts several workflows of the type, and the options name none of them.
    #[error(
        "the engine hosts this type of workflow as {}: name one with `RunOptions::workflow`",
        enumerated(&quoted(.names), "and")
    )]
    WhichWorkflow {
        /// The names of those workflows, sorted.
        names: Vec<Arc<str>>,
    },
    /// A run of this id is running, or the engine's store has its journal. For a child run, the journal is of another
    /// parent's child, of no child, or of a child begun by the other of [`Children::run`](crate::Children::run) and
    /// [`Children::start`](crate::Children::start).
    #[error("run `{run}` exists already: attach to it, choose another id, or leave the id out")]
    DuplicateRun {
        /// The id.
        run: RunId,
    },
    /// The child run that an earlier process began for the execution is of another workflow. The repeated step does
    /// something else than before.
    #[error(
        "child run `{run}` was begun as one of workflow `{workflow}`, and is asked for as one of `{asked}` now: give another id to the child, or let the step begin what it began before"
    )]
    WrongWorkflow {
        /// The child.
        run: RunId,
        /// Its workflow.
        workflow: Arc<str>,
        /// The workflow that the execution asks for.
        asked: Arc<str>,
    },
    /// A child run would be nested deeper than the engine allows.
    #[error(
        "the child run would be {depth} deep, and children nest {limit} deep at most: end the recursion, or raise `max_child_depth`"
    )]
    TooDeep {
        /// How many runs would be above the child.
        depth: u32,
        /// The most levels.
        limit: u32,
    },
    /// The execution that was to start a child run has ended, or its run has.
    #[error("the execution in run `{run}` that was to start the child has ended")]
    ParentEnded {
        /// The run of the execution.
        run: RunId,
    },
    /// Another engine drives the child run, and holds its lease. An earlier process of the parent began the child, and
    /// a caller has [attached](crate::Engine::attach) to it. No step sees this error: the parent stops with its journal
    /// unchanged, and can be resumed when the child has ended or its engine is gone.
    #[error("child run `{run}` is driven by engine `{engine}`, which holds its lease")]
    Elsewhere {
        /// The child.
        run: RunId,
        /// The engine that drives the child.
        engine: EngineId,
    },
    /// The configuration of this run does not fit its type.
    #[error(transparent)]
    Config(ConfigError),
    /// No permit is free, and the engine refuses starts without one ([`WhenFull::Refuse`](crate::WhenFull::Refuse)).
    #[error("{}; start it later, or raise the limit", runs(*.limit, .workflow.as_deref(), .held_by))]
    Full {
        /// The limit.
        limit: usize,
        /// The workflow with the limit; `None` for the engine's limit.
        workflow: Option<Arc<str>>,
        /// The runs that hold the permits: the first five.
        held_by: Arc<[RunId]>,
    },
    /// The workflow has no start event of this name that a step takes.
    #[error("{}", unknown_event("start event", event, fitting))]
    UnknownEvent {
        /// The name.
        event: Arc<str>,
        /// The names of the workflow's start events, sorted.
        fitting: Vec<Arc<str>>,
    },
    /// The start event is too large.
    #[error(transparent)]
    TooLarge(EventTooLarge),
    /// The start event has no JSON that could be read back, and the engine's store serialises; or it came as JSON that
    /// does not fit its type.
    #[error("{}", unfit_text(event, path, problem))]
    Unfit {
        /// The event's wire name.
        event: Arc<str>,
        /// Where in the event's JSON, as in `lines[3].price`; empty for the whole.
        path: String,
        /// The problem at that place.
        #[source]
        problem: UnfitValue,
    },
    /// The labels of the start are too large: [`RunOptions::metadata`](crate::RunOptions::metadata).
    #[error(
        "the run's metadata has {bytes} bytes of JSON, and may have {limit}: put large values into the start event or a context"
    )]
    TooMuchMetadata {
        /// The bytes of all labels as JSON.
        bytes: usize,
        /// The most bytes.
        limit: usize,
    },
    /// The recorded table that a run is to be queued with is none.
    #[error("the recorded table cannot be read: {problem}")]
    UnreadableTable {
        /// The problem, in the words of `serde_json`.
        problem: String,
    },
    /// The engine is shut down.
    #[error("the engine is shut down")]
    ShutDown,
    /// The store did not take the beginning of the run, or a child run's journal could not be read.
    #[error("the run was not started, because of its store: {}", chain(.0))]
    Store(#[source] StoreError),
    /// There is no tokio runtime to run on.
    #[error("no tokio runtime: call this from within one")]
    NoRuntime,
    /// A part of the origin is too long.
    #[error(
        "the author or the id of the origin has {bytes} bytes, and may have {limit}: shorten it, or send a hash of it"
    )]
    OriginTooLong {
        /// The bytes of the part.
        bytes: usize,
        /// The most: 256.
        limit: usize,
    },
}

/// Why a run ended without its output.
///
/// Its text has the whole chain of causes, each once: print it with `{}`. `source` returns the causes too, so whatever
/// prints an error and its sources repeats them, unless it uses [`chain`](crate::errors::chain). Clones share their
/// sources.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The one-line form could not build its engine.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The run was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An execution failed, and no step catches its failure.
    #[error("step `{step}` failed{} ({execution}, {class}): {}", FailedIn(*.attempts, .item.as_deref()), chain(.source))]
    StepFailed {
        /// The step.
        step: Arc<str>,
        /// The execution.
        execution: ExecutionId,
        /// How many attempts were made.
        attempts: u32,
        /// The class of the last failure.
        class: ErrorClass,
        /// The item of the innermost branch that the execution was in; `None` outside of fan-outs.
        item: Option<Box<BranchItem>>,
        /// The last error.
        source: SharedError,
    },
    /// Branches of a fan-out with `wait_all` failed.
    #[error("{} branches of a fan-out failed:{}", .failures.len(), list(.failures))]
    BranchesFailed {
        /// Every failure, in the order of the branches.
        failures: Vec<BranchFailure>,
    },
    /// A precondition failed.
    #[error("precondition `{precondition}` of step `{step}` failed: {}", chain(.source))]
    PreconditionFailed {
        /// The step it guards.
        step: Arc<str>,
        /// The precondition.
        precondition: Arc<str>,
        /// Its error.
        source: SharedError,
    },
    /// The run stalled: no execution was in flight or scheduled, and no possible arrival would have made a step run.
    #[error("{0}")]
    Stalled(Box<StallReport>),
    /// The run was cancelled.
    #[error("the run was cancelled: {reason}")]
    Cancelled {
        /// The reason, as the caller gave it.
        reason: Arc<str>,
    },
    /// The run's active time reached its limit. Its executions were dropped; its explanation lists them.
    #[error(
        "the run was active for {after:?}, which is as long as it may: see `{}`",
        if *.of_engine { "EngineBuilder::run_timeout" } else { "RunOptions::timeout" }
    )]
    TimedOut {
        /// The limit.
        after: Duration,
        /// Whether the limit is that of the engine, [`run_timeout`](crate::EngineBuilder::run_timeout).
        of_engine: bool,
    },
    /// The run's log reached its limit.
    #[error(
        "the run's log holds {limit} events, which is the most it may, and {events} of them are `{busiest}`: a loop may have no way out, or raise `max_events_per_run`"
    )]
    LogFull {
        /// The limit.
        limit: u64,
        /// The event that most of the log is made of.
        busiest: Arc<str>,
        /// How often it is in the log.
        events: u64,
    },
    /// The run's executions reached their limit, and another one was due.
    #[error("{}", runaway::text(*.limit, .looping, *.rounds, .busiest, *.executions))]
    TooManyExecutions {
        /// The limit.
        limit: u64,
        /// The steps of the runaway loop: each triggers the next, and the last triggers the first. Empty if no loop
        /// leads to the step that ran most often; then a fan-out, or messages from outside, caused the executions.
        looping: Vec<Arc<str>>,
        /// How many rounds the loop made.
        rounds: u64,
        /// The step that ran most often.
        busiest: Arc<str>,
        /// How often it ran.
        executions: u64,
    },
    /// The store did not confirm a write of the run, or could not read the run. The journal stays as it is.
    #[error("the run stopped, because of its store: {}", chain(.source))]
    Store {
        /// The store's error.
        source: StoreError,
    },
    /// Another engine or process writes the run's journal. This run stopped without effect.
    #[error("run `{run}` is written by another engine, or was removed: it stopped here")]
    Conflict {
        /// The run.
        run: RunId,
    },
    /// The workflow has changed since the run's journal was written, and does not fit it. The journal stays as it is.
    #[error("run `{run}` cannot be resumed with the workflow as it is now: {difference}")]
    Incompatible {
        /// The run.
        run: RunId,
        /// The differences.
        difference: Incompatibility,
    },
    /// The run ended earlier, and its journal has no more than this.
    #[error("the run ended {status}{}{error}", if .error.is_empty() { "" } else { ": " })]
    Past {
        /// The final status.
        status: RunStatus,
        /// The reason, if it is known.
        error: Arc<str>,
    },
    /// The records end before the run does: [`outcome_of`](crate::outcome_of) returns it.
    #[error(
        "the records do not end with the end of the run: it is open, or they are not the last of its journal"
    )]
    NotEnded,
    /// The engine does not drive the run any more, and has not ended it. With a store the run can be resumed.
    ///
    /// [`Engine::shut_down`](crate::Engine::shut_down) detached the run for another process, or its task is gone: the
    /// runtime was shut down, or the task panicked outside of any step.
    #[error("this engine no longer drives the run; if it has a store, the run can be resumed")]
    Detached,
    /// The run's stop event is not in the workflow's output type.
    #[error("the run ended with `{event}`, which is not an output of workflow `{workflow}`")]
    UnexpectedStop {
        /// The stop event.
        event: Arc<str>,
        /// The workflow.
        workflow: &'static str,
    },
    /// The run completed, and its stop event does not fit its type: [`outcome_of`](crate::outcome_of) returns it.
    #[error("the run ended with `{event}`, which does not fit the present type of `{event}`: {problem}")]
    Unreadable {
        /// The stop event.
        event: Arc<str>,
        /// The text of the problem.
        problem: String,
    },
    /// The run completed, and cloning its stop event panicked. The report has the event.
    #[error("the run ended with `{event}`, which cannot be taken out of the log: it panicked: {message}")]
    OutputPanicked {
        /// The stop event.
        event: Arc<str>,
        /// The panic.
        message: String,
    },
}

/// The limit of a start, as that of a run which waits for a permit.
fn runs(limit: usize, workflow: Option<&str>, held_by: &Arc<[RunId]>) -> WaitsFor {
    WaitsFor::Runs { workflow: workflow.map(Arc::from), limit, held_by: Arc::clone(held_by) }
}

fn list(failures: &[BranchFailure]) -> String {
    failures.iter().fold(String::new(), |text, failure| text + "\n- " + &WithFacts(failure).to_string())
}

/// Why a run refused a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The run has ended.
    #[error("run `{run}` has ended: {status}")]
    Ended {
        /// The run.
        run: RunId,
        /// The final status.
        status: RunStatus,
    },
    /// No step of the workflow takes the event.
    #[error("no step of the workflow takes `{event}`")]
    NotTaken {
        /// The event's wire name.
        event: Arc<str>,
    },
    /// The workflow has no external event of this name that a step takes, or that ends a run.
    #[error("{}", unknown_event("external event", event, fitting))]
    UnknownEvent {
        /// The name.
        event: Arc<str>,
        /// The names of the workflow's external events, sorted.
        fitting: Vec<Arc<str>>,
    },
    /// The engine has no store, and the run cannot be dropped now and continued later. See [`Pause::Now`](crate::Pause::Now).
    #[error("run `{run}` has no store: what runs could not continue later")]
    NoStore {
        /// The run.
        run: RunId,
    },
    /// The event or the reply is too large. The run took nothing.
    #[error(transparent)]
    TooLarge(EventTooLarge),
    /// The event or the reply has no JSON that could be read back, and the engine's store serialises; or the event came
    /// as JSON that does not fit its type. The run took nothing.
    #[error("{}", unfit_text(event, path, problem))]
    Unfit {
        /// The event's wire name; of a reply, that of its request and `.reply`.
        event: Arc<str>,
        /// Where in the event's JSON, as in `lines[3].price`; empty for the whole.
        path: String,
        /// The problem at that place.
        #[source]
        problem: UnfitValue,
    },
    /// The engine's store refuses the event or the reply, for example for its size. The run took nothing, and
    /// continues.
    #[error("the store of run `{run}` refuses `{event}`: {}", chain(.source))]
    Refused {
        /// The run.
        run: RunId,
        /// The event's wire name; of a reply, that of its request and `.reply`.
        event: Arc<str>,
        /// The store's error.
        source: StoreError,
    },
    /// No request is open at this sequence number: there was none, or its branch was dropped.
    #[error("no request is open at {request}: there never was one, or its branch is gone")]
    NotOpen {
        /// The sequence number.
        request: Seq,
    },
    /// The request at this sequence number was answered before.
    #[error("the request at {request} was answered already")]
    Answered {
        /// The sequence number.
        request: Seq,
    },
    /// The request at this sequence number has expired.
    #[error("the request at {request} has expired")]
    Expired {
        /// The sequence number.
        request: Seq,
        /// The time at which the expiry entered the log. If no process drove the run when the request fell due, this is
        /// when one did again.
        at: SystemTime,
    },
    /// The message is no reply to the request at this sequence number.
    #[error("that is no reply to the `{asked}` at {request}: {}{problem}", at(.path))]
    UnfitReply {
        /// The sequence number.
        request: Seq,
        /// The request's wire name.
        asked: String,
        /// The place in the reply; empty or `.` for the whole.
        path: String,
        /// The problem at that place.
        problem: String,
    },
    /// The request at this sequence number is of another type.
    #[error("the request at {request} is a `{asked}`, and the reply is one to a `{answered}`")]
    WrongRequest {
        /// The sequence number.
        request: Seq,
        /// The request's wire name.
        asked: String,
        /// The wire name of the request that the reply is for.
        answered: &'static str,
    },
    /// The engine had [unloaded](crate::EngineBuilder::unload_waiting_after) the waiting run, and cannot read its
    /// journal now. The run took nothing and still waits. The call can be repeated.
    #[error("run `{run}` waits in its store, and cannot be read now: {}", chain(.source))]
    NotLoaded {
        /// The run.
        run: RunId,
        /// The store's error.
        source: StoreError,
    },
    /// A part of the origin is too long.
    #[error(
        "the author or the id of the origin has {bytes} bytes, and may have {limit}: shorten it, or send a hash of it"
    )]
    OriginTooLong {
        /// The bytes of the part.
        bytes: usize,
        /// The most: 256.
        limit: usize,
    },
}

impl From<Inadmissible> for StartError {
    fn from(inadmissible: Inadmissible) -> Self {
        match inadmissible {
            Inadmissible::TooLarge(error) => Self::TooLarge(error),
            Inadmissible::Unfit(UnfitEvent { event, path, problem }) => Self::Unfit { event, path, problem },
        }
    }
}

impl From<Inadmissible> for SendError {
    fn from(inadmissible: Inadmissible) -> Self {
        match inadmissible {
            Inadmissible::TooLarge(error) => Self::TooLarge(error),
            Inadmissible::Unfit(UnfitEvent { event, path, problem }) => Self::Unfit { event, path, problem },
        }
    }
}
