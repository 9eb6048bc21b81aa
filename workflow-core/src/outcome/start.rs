//! How starting a run fails.

use std::error::Error;
use std::sync::Arc;
use std::time::SystemTime;

use super::send::unknown_event;
use crate::config::ConfigError;
use crate::error::{EventTooLarge, UnfitEvent, UnfitValue, chain, unfit_text};
use crate::event::Inadmissible;
use crate::id::{EngineId, RunId};
use crate::report::WaitsFor;
use crate::store::StoreError;
use crate::text::{enumerated, quoted, utc};

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
    /// A run of this id is running, or the engine's store has its journal, or the engine [keeps
    /// it](crate::EngineBuilder::keep_ended) after its end. For a child run, the journal is of another
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
        problem: UnfitValue,
    },
    /// The run may not be active at all: [`RunOptions::timeout`](crate::RunOptions::timeout) is 0.
    #[error(
        "the run's timeout is 0, so it would end before it began: give `RunOptions::timeout` a time, or leave it out"
    )]
    NoTime,
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
    /// The engine was shut down.
    #[error("the engine was shut down, and starts no runs: start the run in the next process")]
    ShutDown,
    /// The store did not take the beginning of the run, or a child run's journal could not be read.
    #[error("the run was not started, because of its store: {}", chain(.0))]
    Store(StoreError),
    /// There is no tokio runtime to run on.
    #[error("no tokio runtime: call this from within one")]
    NoRuntime,
    /// The deadline of the run has passed: before the start, or while the start waited for a permit.
    #[error("the deadline of the run, {}, has passed: see `RunOptions::deadline`", utc(*.deadline))]
    DeadlinePassed {
        /// The deadline.
        deadline: SystemTime,
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

impl StartError {
    /// The error whose text is part of this one's.
    pub(super) fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Config(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Inadmissible> for StartError {
    fn from(inadmissible: Inadmissible) -> Self {
        match inadmissible {
            Inadmissible::TooLarge(error) => Self::TooLarge(error),
            Inadmissible::Unfit(UnfitEvent { event, path, problem }) => Self::Unfit { event, path, problem },
        }
    }
}

/// The limit of a start, as that of a run which waits for a permit.
fn runs(limit: usize, workflow: Option<&str>, held_by: &Arc<[RunId]>) -> WaitsFor {
    WaitsFor::Runs { workflow: workflow.map(Arc::from), limit, held_by: Arc::clone(held_by) }
}
