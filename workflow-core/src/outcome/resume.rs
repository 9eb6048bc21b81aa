//! How resuming a run fails.

use std::sync::Arc;

use super::Incompatibility;
use crate::config::ConfigError;
use crate::error::chain;
use crate::id::{EngineId, RunId};
use crate::store::StoreError;

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
    #[error(
        "engine `{engine}` drives run `{run}` and holds its lease: put a message for it into the `Inbox`, or attach once \
         that engine has shut down"
    )]
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
        "run `{run}` was resumed {resumed} times and recorded nothing since: it probably ends its process, so find the \
         step with `RecordedRun::explain`, fix it, and resume the run with `Engine::attach`"
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
    Store(StoreError),
}
