//! Why a run was not redriven.

use std::time::SystemTime;

use crate::error::chain;
use crate::id::{ParentRun, RunId, RunStatus};
use crate::outcome::{RecordedRunError, ResumeError, StartError};
use crate::store::{ReachedLimit, StoreError};
use crate::text::{enumerated, utc};

/// Why a run was not redriven. Its journal is as it was.
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_core::RedriveError;
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
/// use workflow_core::store::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Greeter).store(MemoryStore::default()).build()?;
/// let run = engine.start::<Greeter>(Greet).await?;
/// run.outcome().await?;
/// let error = engine.redrive::<Greeter>(run.id().clone()).await.unwrap_err();
/// assert!(matches!(error, RedriveError::Completed { .. }));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedriveError {
    /// The run has not ended.
    #[error("run `{run}` is {status}: only a run that has ended can be redriven")]
    NotEnded {
        /// The run.
        run: RunId,
        /// Its status.
        status: RunStatus,
    },
    /// A step with `spawn` was aborted when the run ended in this engine, and still blocks its thread. Redrive the run once the
    /// step has returned.
    #[error(
        "a step of run `{run}` was aborted and still blocks its thread: redrive the run once that step has returned"
    )]
    StepStillRuns {
        /// The run.
        run: RunId,
    },
    /// The run completed.
    #[error("run `{run}` completed: nothing is left to redrive")]
    Completed {
        /// The run.
        run: RunId,
    },
    /// The run is a child of another run, and continues only with that: redrive the parent, whose execution then starts
    /// a new child. Its unfinished clean-up steps stay so: do their work by hand.
    #[error(
        "run `{run}` is a child of run `{}`, and is not redriven: redrive the parent, whose execution then starts a new \
         child, and do unfinished clean-up of this one by hand",
        parent.run
    )]
    Child {
        /// The run.
        run: RunId,
        /// The parent, and its execution that started the child.
        parent: ParentRun,
    },
    /// The clean-up of the run has begun, and its log still shows as done the work that this undid.
    /// [`Redrive::clean_up`](crate::Redrive::clean_up) repeats unfinished clean-up steps, and
    /// [`Redrive::despite_clean_up`](crate::Redrive::despite_clean_up) continues from that log all the same.
    #[error(
        "run `{run}` has begun its clean-up, with {}, and its log still shows as done the work that these steps undid: \
         repeat unfinished ones with `Redrive::clean_up`, start another run, or continue from that log with \
         `Redrive::despite_clean_up`",
        named(steps)
    )]
    CleanedUp {
        /// The run.
        run: RunId,
        /// The clean-up steps that were to run, in their order.
        steps: Vec<String>,
    },
    /// No clean-up step of the run is unfinished, so none is to run again
    /// ([`Redrive::clean_up`](crate::Redrive::clean_up)).
    #[error("the clean-up of run `{run}` is complete, or there was none: nothing of it is left to redrive")]
    NothingToCleanUp {
        /// The run.
        run: RunId,
    },
    /// The run was [queued](crate::store::Write::queued), and its start does not fit now either.
    #[error("the start of run `{run}` does not fit: {source}")]
    Start {
        /// The run.
        run: RunId,
        /// The reason.
        r#source: StartError,
    },
    /// The run ended at a limit and was cleaned up. The events beyond the limit are in no journal, so the
    /// run cannot continue: start another one.
    #[error("run `{run}` ended at its limit of {limit} and was cleaned up: start another run")]
    AtLimit {
        /// The run.
        run: RunId,
        /// The limit.
        limit: ReachedLimit,
    },
    /// The deadline of the run has passed, or the one that the caller gave: the run would end at once. Give a later one with
    /// [`Redrive::deadline`](crate::Redrive::deadline).
    #[error(
        "the deadline of run `{run}`, {}, has passed: give a later one (`Redrive::deadline`)",
        utc(*.deadline)
    )]
    DeadlinePassed {
        /// The run.
        run: RunId,
        /// The deadline.
        deadline: SystemTime,
    },
    /// The workflow has no step of the name that is to be made again.
    #[error("`{workflow}` has no step `{step}` to make again; it has {}", named(steps))]
    UnknownStep {
        /// The workflow.
        workflow: String,
        /// The name.
        step: String,
        /// The steps that it has.
        steps: Vec<String>,
    },
    /// The run is unknown, its workflow has changed incompatibly, or it cannot be resumed here for another reason.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The records of the run contradict each other.
    #[error(transparent)]
    Recorded(#[from] RecordedRunError),
    /// The store did not take the record of the redrive. After [`StoreError::Unavailable`] it may have it: then the run
    /// is open again, and [`Engine::resume_open_runs`](crate::Engine::resume_open_runs) continues it.
    #[error("the redrive cannot be stored: {}", chain(.0))]
    Store(StoreError),
}

/// The names as code, in a list.
fn named(steps: &[String]) -> String {
    let steps: Vec<String> = steps.iter().map(|step| format!("`{step}`")).collect();
    enumerated(&steps, "and")
}
