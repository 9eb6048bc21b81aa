//! Errors: one type per boundary. Building a table or an engine, starting a run, sending into one, and how
//! a run ended; a step's own error is [`StepError`].

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::config::ConfigError;
use crate::explain::StallReport;
use crate::id::{EngineId, ExecutionId, RunId, Seq};
use crate::input::BranchFailure;
use crate::run::RunStatus;
use crate::store::StoreError;

mod cause;
mod incompatible;
mod recorded;
mod runaway;
mod size;
mod step;
mod table;
mod unfit;

pub use incompatible::Incompatibility;
pub use recorded::RecordedRunError;
pub use size::EventTooLarge;
pub use step::{ErrorClass, StepError, TimedOut};
pub use table::{TableError, TableProblem};
pub use unfit::{UnfitEvent, UnfitValue};

pub(crate) use cause::with_causes;

use cause::Cause;

/// Why an engine cannot be built: every problem, not just the first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BuildError {
    /// What is wrong.
    pub problems: Vec<BuildProblem>,
}

/// One thing that is wrong with an engine.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildProblem {
    /// A workflow's table has problems.
    #[error(transparent)]
    Table(TableError),
    /// A configuration is missing or does not fit its type.
    #[error("workflow `{workflow}` needs a configuration: {source}; give it with `.config::<…>(…)`")]
    Config {
        /// The workflow that needs it.
        workflow: String,
        /// What is wrong with it.
        source: ConfigError,
    },
    /// A layer of a configuration cannot be read.
    #[error("a configuration layer cannot be used: {0}")]
    ConfigLayer(ConfigError),
    /// Two workflows have one name.
    #[error("two workflows are named `{workflow}`: give one another name with `#[workflow(name = \"…\")]`")]
    DuplicateWorkflow {
        /// The name.
        workflow: String,
    },
    /// There is a limit for the runs of a workflow that the engine does not host.
    #[error(
        "`max_concurrent_runs_of` is set for workflow `{workflow}`, which the engine does not host: add it with `.workflow(…)`"
    )]
    LimitOfUnknown {
        /// The workflow.
        workflow: &'static str,
    },
    /// The engine is to take a lease, and has no store to take it from.
    #[error("a lease is set, and there is no store to take it from: give one with `.store(…)`")]
    LeaseWithoutStore,
    /// The engine's lease is too short to be renewed in time.
    #[error(
        "a lease of {lease:?} is too short to be renewed in time: it has to last for {shortest:?} at least"
    )]
    LeaseTooShort {
        /// How long it would last.
        lease: Duration,
        /// The bound.
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

/// Why a run that a store has does not go on here, or is not to be had. It is left as it is.
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
    /// The run is of another workflow than the one it was asked for as.
    #[error("run `{run}` is of workflow `{workflow}`, not of `{asked}`")]
    WrongWorkflow {
        /// The run.
        run: RunId,
        /// Its workflow.
        workflow: Arc<str>,
        /// The workflow that was asked for.
        asked: &'static str,
    },
    /// The workflow is not what it was when the run's journal was written.
    #[error("run `{run}` cannot go on with the workflow as it is now: {difference}")]
    Incompatible {
        /// The run.
        run: RunId,
        /// What is different.
        difference: Incompatibility,
    },
    /// The run goes on in another engine, which holds its lease.
    #[error("run `{run}` goes on in engine `{engine}`, which holds its lease")]
    Elsewhere {
        /// The run.
        run: RunId,
        /// Who drives it.
        engine: EngineId,
    },
    /// Whenever the run was looked at, somebody had written to it since the look before. With
    /// [leases](crate::EngineBuilder::lease) alone: it can be tried again.
    #[error("run `{run}` is being written to by somebody else: try it again")]
    Contended {
        /// The run.
        run: RunId,
    },
    /// The run's configuration cannot be made of what the engine has now.
    #[error(transparent)]
    Config(ConfigError),
    /// The engine was shut down.
    #[error("the engine was shut down: it resumes no runs")]
    ShutDown,
    /// There is no tokio runtime here to run it on.
    #[error("a run goes on as a tokio task: call this within a tokio runtime")]
    NoRuntime,
    /// The store cannot be read.
    #[error("the run cannot be read: {0}")]
    Store(#[source] StoreError),
}

/// Why a run was not started. Nothing of it is left behind.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The engine does not host the workflow.
    #[error(
        "the engine does not host workflow `{workflow}`: add it with `.workflow(…)`; what the one-line `.run(…)` runs has no engine to add it to"
    )]
    UnknownWorkflow {
        /// The workflow.
        workflow: &'static str,
    },
    /// A run of this id is running, or the engine's store has its journal: for a child run, one that is another parent's
    /// or nobody's, or that was begun by the other of [`Children::run`](crate::Children::run) and
    /// [`Children::start`](crate::Children::start).
    #[error("run `{run}` exists already: choose another id, or leave it out")]
    DuplicateRun {
        /// The id.
        run: RunId,
    },
    /// The child run that an earlier process has begun for the execution is of another workflow than the one that the
    /// execution asks for now, as it runs again: the step does something else than before.
    #[error(
        "child run `{run}` was begun as one of workflow `{workflow}`, and is asked for as one of `{asked}` now: give another id to the child, or let the step begin what it began before"
    )]
    WrongWorkflow {
        /// The child.
        run: RunId,
        /// Its workflow.
        workflow: Arc<str>,
        /// The workflow that was asked for.
        asked: &'static str,
    },
    /// A child run would be nested deeper than the engine allows.
    #[error(
        "the child run would be {depth} deep, and children nest {limit} deep at most: end the recursion, or raise `max_child_depth`"
    )]
    TooDeep {
        /// How many runs would be above it.
        depth: u32,
        /// The bound.
        limit: u32,
    },
    /// The execution that was to start a child run has ended, or its run has.
    #[error("the execution in run `{run}` that was to start the child has ended")]
    ParentEnded {
        /// The run of the execution.
        run: RunId,
    },
    /// The child run goes on in another engine, which holds its lease: it was begun before its parent's process
    /// was gone, and somebody has [attached](crate::Engine::attach) to it. No step is told: the parent stops and is left
    /// as its journal has it, to be gone on with when the child has ended or is nobody's.
    #[error("child run `{run}` goes on in engine `{engine}`, which holds its lease")]
    Elsewhere {
        /// The child.
        run: RunId,
        /// Who drives it.
        engine: EngineId,
    },
    /// The configuration of this run does not fit its type.
    #[error(transparent)]
    Config(ConfigError),
    /// There is no place for another run now, and the engine refuses what it has no place for
    /// ([`WhenFull::Refuse`](crate::WhenFull::Refuse)).
    #[error(
        "{} already, which is the most: start it later",
        .workflow.map_or_else(|| format!("{limit} runs run"), |workflow| format!("{limit} runs of workflow `{workflow}` run"))
    )]
    Full {
        /// How many may run at a time.
        limit: usize,
        /// The workflow whose limit it is; none for the engine's.
        workflow: Option<&'static str>,
    },
    /// The start event is too large.
    #[error(transparent)]
    TooLarge(EventTooLarge),
    /// The start event has no JSON that could be read back, and the engine's store keeps events as such.
    #[error("{}", unfit::text(event, path, problem))]
    Unfit {
        /// The event's wire name.
        event: &'static str,
        /// Where in the event's JSON, as in `lines[3].price`; empty for the whole.
        path: String,
        /// What is wrong there.
        #[source]
        problem: UnfitValue,
    },
    /// The engine is shut down.
    #[error("the engine is shut down")]
    ShutDown,
    /// The store did not take the beginning of the run, or did not say what it has of a child run.
    #[error("the store kept the run from starting: {0}")]
    Store(#[source] StoreError),
    /// There is no tokio runtime to run on.
    #[error("no tokio runtime: call this from within one")]
    NoRuntime,
}

/// How a run ended without its output.
///
/// Clones share their sources.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The one-line form could not build its engine.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The run was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An execution failed and nothing takes its failure.
    #[error("step `{step}` failed{} ({execution}, {class}): {source}", after(*.attempts))]
    StepFailed {
        /// The step.
        step: Arc<str>,
        /// The execution.
        execution: ExecutionId,
        /// How many attempts were made.
        attempts: u32,
        /// What kind of failure the last one was.
        class: ErrorClass,
        /// What it failed with.
        source: SharedError,
    },
    /// Branches of a fan-out that waits for all failed.
    #[error("{} branches of a fan-out failed:{}", .failures.len(), list(.failures))]
    BranchesFailed {
        /// Every failure, in the order of the branches.
        failures: Vec<BranchFailure>,
    },
    /// A precondition failed.
    #[error("precondition `{precondition}` of step `{step}` failed: {source}")]
    PreconditionFailed {
        /// The step it guards.
        step: Arc<str>,
        /// The precondition.
        precondition: Arc<str>,
        /// What it failed with.
        source: SharedError,
    },
    /// Nothing ran, nothing was scheduled, and nothing that could have arrived would have made a step run.
    #[error("{0}")]
    Stalled(Box<StallReport>),
    /// It was cancelled.
    #[error("the run was cancelled: {reason}")]
    Cancelled {
        /// Why, in the words of who cancelled it.
        reason: Arc<str>,
    },
    /// It was active for as long as it may; its executions were dropped.
    #[error("the run was active for {after:?}, which is as long as it may: see `RunOptions::timeout`")]
    TimedOut {
        /// How long it may.
        after: Duration,
    },
    /// The log holds as many events as it may.
    #[error(
        "the run's log holds {limit} events, which is the most it may: a loop may have no way out, or raise `max_events_per_run`"
    )]
    LogFull {
        /// The bound.
        limit: u64,
    },
    /// Another execution was due, and the run had had as many as it may.
    #[error("{}", runaway::text(*.limit, .looping, *.rounds, .busiest, *.executions))]
    TooManyExecutions {
        /// The bound.
        limit: u64,
        /// The steps of the loop that ran away, each triggering the next and the last the first. Empty if no loop led
        /// to the step that ran most often: then something fans out that far, or sends that much.
        looping: Vec<Arc<str>>,
        /// How often the loop went round.
        rounds: u64,
        /// The step that ran most often.
        busiest: Arc<str>,
        /// How often that was.
        executions: u64,
    },
    /// The store did not take what the run wrote, or did not say so, or what it has of the run cannot be read: the journal
    /// is as it is.
    #[error("the store kept the run from going on: {source}")]
    Store {
        /// What the store reported.
        source: StoreError,
    },
    /// Somebody else writes the run's journal: this run stopped without effect.
    #[error("run `{run}` is written by somebody else, or was removed: it stopped here")]
    Conflict {
        /// The run.
        run: RunId,
    },
    /// The workflow is not what it was when the run's journal was written: the run was left as it is.
    #[error("run `{run}` cannot go on with the workflow as it is now: {difference}")]
    Incompatible {
        /// The run.
        run: RunId,
        /// What is different.
        difference: Incompatibility,
    },
    /// It ended earlier, and its journal says no more than this.
    #[error("the run ended {status}{}{error}", if .error.is_empty() { "" } else { ": " })]
    Past {
        /// How it ended.
        status: RunStatus,
        /// Why, if that is known.
        error: Arc<str>,
    },
    /// The task that drove the run is gone: its runtime was shut down, or it panicked outside of any step.
    #[error("the task that drove the run ended before the run did")]
    Abandoned,
    /// The log ended the run with an event that the workflow's output type does not hold.
    #[error("the run ended with `{event}`, which is not an output of workflow `{workflow}`")]
    UnexpectedStop {
        /// The stop event.
        event: &'static str,
        /// The workflow.
        workflow: &'static str,
    },
    /// The run completed, and its stop event panicked when it was cloned: the report has the event.
    #[error("the run ended with `{event}`, which cannot be taken out of the log: it panicked: {message}")]
    OutputPanicked {
        /// The stop event.
        event: &'static str,
        /// What it panicked with.
        message: String,
    },
}

/// As derived, but compiled here: every program that runs a workflow shows its error somewhere, and what is derived
/// would be compiled there again with everything that an error can hold.
impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => f.debug_tuple("Build").field(error).finish(),
            Self::Start(error) => f.debug_tuple("Start").field(error).finish(),
            Self::StepFailed { step, execution, attempts, class, source } => f
                .debug_struct("StepFailed")
                .field("step", step)
                .field("execution", execution)
                .field("attempts", attempts)
                .field("class", class)
                .field("source", source)
                .finish(),
            Self::BranchesFailed { failures } => {
                f.debug_struct("BranchesFailed").field("failures", failures).finish()
            }
            Self::PreconditionFailed { step, precondition, source } => f
                .debug_struct("PreconditionFailed")
                .field("step", step)
                .field("precondition", precondition)
                .field("source", source)
                .finish(),
            Self::Stalled(report) => f.debug_tuple("Stalled").field(report).finish(),
            Self::Cancelled { reason } => f.debug_struct("Cancelled").field("reason", reason).finish(),
            Self::TimedOut { after } => f.debug_struct("TimedOut").field("after", after).finish(),
            Self::LogFull { limit } => f.debug_struct("LogFull").field("limit", limit).finish(),
            Self::TooManyExecutions { limit, looping, rounds, busiest, executions } => f
                .debug_struct("TooManyExecutions")
                .field("limit", limit)
                .field("looping", looping)
                .field("rounds", rounds)
                .field("busiest", busiest)
                .field("executions", executions)
                .finish(),
            Self::Store { source } => f.debug_struct("Store").field("source", source).finish(),
            Self::Conflict { run } => f.debug_struct("Conflict").field("run", run).finish(),
            Self::Incompatible { run, difference } => {
                f.debug_struct("Incompatible").field("run", run).field("difference", difference).finish()
            }
            Self::Past { status, error } => {
                f.debug_struct("Past").field("status", status).field("error", error).finish()
            }
            Self::Abandoned => f.write_str("Abandoned"),
            Self::UnexpectedStop { event, workflow } => {
                f.debug_struct("UnexpectedStop").field("event", event).field("workflow", workflow).finish()
            }
            Self::OutputPanicked { event, message } => {
                f.debug_struct("OutputPanicked").field("event", event).field("message", message).finish()
            }
        }
    }
}

/// An error that clones share.
#[derive(Clone)]
pub struct SharedError {
    error: Cause,
    /// Whether it is of a step's compaction.
    in_compaction: bool,
}

impl SharedError {
    pub(crate) fn of(error: &StepError) -> Self {
        Self { error: error.cause(), in_compaction: error.is_of_compaction() }
    }

    /// The error, if it is an `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.error.error().downcast_ref()
    }
}

impl fmt::Debug for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.in_compaction {
            f.write_str(step::COMPACTING)?;
        }
        fmt::Display::fmt(&self.error, f)
    }
}

impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// How many attempts a failure took, if it was more than one.
pub(crate) fn after(attempts: u32) -> String {
    if attempts > 1 { format!(" after {attempts} attempts") } else { String::new() }
}

fn list(failures: &[BranchFailure]) -> String {
    failures.iter().fold(String::new(), |text, failure| text + "\n- " + &failure.to_string())
}

pub(crate) fn at(path: &str) -> String {
    if path.is_empty() || path == "." { String::new() } else { format!("at `{path}`, ") }
}

/// Why something was not taken by a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The run has ended.
    #[error("run `{run}` has ended: {status}")]
    Ended {
        /// The run.
        run: RunId,
        /// How it ended.
        status: RunStatus,
    },
    /// The workflow's table does not hold the event.
    #[error("no step of the workflow takes `{event}`")]
    NotTaken {
        /// The event's wire name.
        event: &'static str,
    },
    /// The event or the reply is too large: nothing of it was taken.
    #[error(transparent)]
    TooLarge(EventTooLarge),
    /// The event or the reply has no JSON that could be read back, and the engine's store keeps events as such: nothing of
    /// it was taken.
    #[error("{}", unfit::text(event, path, problem))]
    Unfit {
        /// The event's wire name; of a reply, that of its request and `.reply`.
        event: &'static str,
        /// Where in the event's JSON, as in `lines[3].price`; empty for the whole.
        path: String,
        /// What is wrong there.
        #[source]
        problem: UnfitValue,
    },
    /// The engine's store refuses the event or the reply, such as one that is larger than the store takes at once. Nothing
    /// of it was taken, and the run goes on.
    #[error("the store of run `{run}` refuses `{event}`: {source}")]
    Refused {
        /// The run.
        run: RunId,
        /// The event's wire name; of a reply, that of its request and `.reply`.
        event: &'static str,
        /// What the store reports.
        source: StoreError,
    },
    /// There is no open request at this position: there never was one, or it was dropped with its branch.
    #[error("no request is open at {request}: there never was one, or its branch is gone")]
    NotOpen {
        /// The position.
        request: Seq,
    },
    /// The request at this position was answered before.
    #[error("the request at {request} was answered already")]
    Answered {
        /// The position.
        request: Seq,
    },
    /// The time of the request at this position ran out before.
    #[error("the request at {request} has expired")]
    Expired {
        /// The position.
        request: Seq,
    },
    /// What was sent is no reply to the request at this position.
    #[error("that is no reply to the `{asked}` at {request}: {}{problem}", at(.path))]
    UnfitReply {
        /// The position.
        request: Seq,
        /// The request's wire name.
        asked: String,
        /// Where in the reply; empty or `.` for the whole of it.
        path: String,
        /// What is wrong there.
        problem: String,
    },
    /// The request at this position is of another type.
    #[error("the request at {request} is a `{asked}`, and the reply is one to a `{answered}`")]
    WrongRequest {
        /// The position.
        request: Seq,
        /// The request's wire name.
        asked: String,
        /// The wire name of what the reply answers.
        answered: &'static str,
    },
    /// The run was [let go of](crate::EngineBuilder::release_waiting_after) while it waited, and its journal cannot be
    /// read now. Nothing was taken; the run still waits, and it can be tried again.
    #[error("run `{run}` waits in its store, and cannot be read now: {problem}")]
    NotLoaded {
        /// The run.
        run: RunId,
        /// What the store says.
        problem: String,
    },
}

/// What went wrong between the library's own parts: a bug of the library or of a hand-written `StepInput`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Internal {
    #[error("parameter {slot} was bound to something its type does not take")]
    SlotMismatch { slot: usize },
    #[error(
        "`Config<{type_name}>` is not among the parameters of any step: declare it, or use a field of the workflow"
    )]
    UndeclaredConfig { type_name: &'static str },
    #[error("the step returned `{event}`, which its table does not declare")]
    UndeclaredOutput { event: &'static str },
    #[error("a precondition runs no children: a step does")]
    ChildrenOfPrecondition,
}
