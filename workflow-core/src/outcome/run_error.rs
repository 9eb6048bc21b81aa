//! How a run ends without an output.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{BuildError, Incompatibility, StartError, runaway};
use crate::error::{BranchFailure, BranchItem, ErrorClass, Excess, FailedIn, SharedError, WithFacts, chain};
use crate::explain::StallReport;
use crate::id::{ExecutionId, RunId, RunStatus};
use crate::store::StoreError;
use crate::text::utc;

/// Why a run ended without its output.
///
/// Its text has the whole chain of causes, each once. So [`source`](std::error::Error::source) returns none of them, and
/// whatever prints an error with its sources prints each once too, as `{:#}` of `anyhow` does. [`cause`](Self::cause) returns
/// the error behind it. Clones share their causes.
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
        r#source: SharedError,
    },
    /// Branches of a fan-out failed: with `wait_all`, or more than it tolerates.
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
        r#source: SharedError,
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
    /// The run's deadline passed. Its executions were dropped; its explanation lists them. The status is
    /// [`TimedOut`](crate::RunStatus::TimedOut).
    #[error("the run's deadline, {}, has passed: see `RunOptions::deadline`", utc(*.deadline))]
    DeadlinePassed {
        /// The deadline.
        deadline: SystemTime,
    },
    /// The run's log reached its limit, or an execution returned more events than it has room for.
    #[error("{}", runaway::of_log(*.limit, .busiest, *.events, .excess.as_deref()))]
    LogFull {
        /// The limit.
        limit: u64,
        /// The event that most of the log is made of.
        busiest: Arc<str>,
        /// How often it is in the log.
        events: u64,
        /// The events of one execution for which there was no room; `None` where a single event was the last.
        excess: Option<Box<Excess>>,
    },
    /// The run's executions reached their limit and another one was due, or an execution returned fan-outs with more
    /// items than the run may still have executions.
    #[error("{}", runaway::text(*.limit, .looping, *.rounds, .busiest, *.executions, .excess.as_deref()))]
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
        /// The items for which executions were missing; `None` where another execution was due.
        excess: Option<Box<Excess>>,
    },
    /// The store did not confirm a write of the run, or could not read the run. The journal stays as it is.
    /// [`Engine::resume_open_runs`](crate::Engine::resume_open_runs) or [`Engine::attach`](crate::Engine::attach) continues
    /// the run once the store works.
    #[error(
        "the engine cannot drive the run because of its store; once the store works, `Engine::resume_open_runs` or \
         `Engine::attach` continues it: {}",
        chain(.source)
    )]
    Store {
        /// The store's error.
        r#source: StoreError,
    },
    /// Another engine or process writes the run's journal, or has removed it. This engine detached the run without effect.
    /// [`RunSummary::owner`](crate::store::RunSummary::owner) is the engine that has it, if that takes leases.
    #[error(
        "this engine detached run `{run}`, because another engine drives it or it was removed: find its owner in \
         `RunSummary::owner`"
    )]
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
    #[error(
        "this engine no longer drives the run: if it has a store, `Engine::resume_open_runs` or `Engine::attach` resumes \
         it, after a shutdown in the next process"
    )]
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

impl RunError {
    /// The error of the step, the precondition or the store, whose text is part of this one's.
    ///
    /// ```
    /// use std::io;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Read;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Page(String);
    /// # struct Reader;
    /// #[workflow]
    /// impl Reader {
    ///     #[step]
    ///     async fn read(&self, _: &Read) -> Result<Page, io::Error> { Err(io::Error::other("the disk is gone")) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let error = Reader.run(Read).await.unwrap_err();
    /// assert_eq!(error.to_string(), "step `read` failed (x1, permanent): the disk is gone");
    /// assert_eq!(error.cause().unwrap().to_string(), "the disk is gone");
    /// # }
    /// ```
    pub fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::StepFailed { source, .. } | Self::PreconditionFailed { source, .. } => Some(source),
            Self::Store { source } => Some(source),
            Self::Start(error) => error.cause(),
            _ => None,
        }
    }
}

fn list(failures: &[BranchFailure]) -> String {
    failures.iter().fold(String::new(), |text, failure| text + "\n- " + &WithFacts(failure).to_string())
}
