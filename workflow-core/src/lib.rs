//! Embeddable, typed, event-driven workflows.
//!
//! You write plain async functions; their signatures say which events they need and which they emit.
//! `#[workflow]` turns the signatures into a static dependency table, and a reactive scheduler evaluates it
//! on every event and runs whatever is ready, in parallel.
//!
//! ```
//! use workflow_core::prelude::*;
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! #[event(start)]
//! struct Question { text: String }
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! struct Facts { lines: Vec<String> }
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! #[event(stop)]
//! struct Answer { text: String }
//!
//! struct Librarian { shelf: Vec<String> }        // what steps depend on: fields
//!
//! #[workflow]
//! impl Librarian {
//!     /// Looks the question up.
//!     #[step]
//!     async fn look_up(&self, question: &Question) -> Facts {
//!         let mut lines = self.shelf.clone();
//!         lines.retain(|line| line.contains(&question.text));
//!         Facts { lines }
//!     }
//!
//!     /// Needs the facts and the question they answer: both are borrowed from the log.
//!     #[step]
//!     async fn answer(&self, question: &Question, facts: &Facts) -> Answer {
//!         Answer { text: format!("{}: {} lines", question.text, facts.lines.len()) }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), RunError> {
//! let librarian = Librarian { shelf: vec!["a log is append-only".into(), "a table is static".into()] };
//! let answer = librarian.run(Question { text: "log".into() }).await?;
//! assert_eq!(answer.text, "log: 1 lines");
//! # Ok(())
//! # }
//! ```
//!
//! # The model
//! A **run** is an append-only **log** of typed events and a static table. An **event** is an immutable value that
//! derives [`Event`]. Each event in the log is evaluated for every **step** that takes its type. The step is **ready**
//! when its required inputs are there. It is **bound** to the triggering event and to the latest event of each other
//! type. If its **precondition** answers yes, it is **executed**. Its outputs enter the log as one batch when it
//! returns `Ok`; a failed execution leaves nothing there. The first **stop** event ends the run. A run in which nothing
//! can happen any more ends at once, and its error names the steps that did not run and the events they miss.
//!
//! Everything else follows from log and table. Joins have no buffers that could be lost, and every execution can be
//! explained.
//!
//! # Where to read on
//! - [`StepInput`]: every kind of parameter. [`StepOutput`]: every kind of return type.
//! - [`workflow`], [`step`], [`precondition`]: what the attributes accept.
//! - [`List`], [`FixedList`], [`FanOut`] and [`Gather`]: joining several events.
//! - [`Engine`] and [`RunHandle`]: many runs, external events, display, cancellation, reports.
//! - [`Children`]: workflows that run workflows.
//! - [`StepError`], [`RetryPolicy`]: failures, and which of them are followed by another attempt.
//! - [`Observer`], [`TracingObserver`]: seeing what runs do.
//! - [`DependencyTable`] and [`scheduler`]: the machinery, usable by itself.

// From the lowest layer to the highest: a module imports from those above it in this list, never from those below.

// What is beneath events and runs.
mod text;
mod paged;
mod append_log;
mod panics;
mod clock;
mod id;
mod error;
mod json;
mod cancel;
mod blocking;
mod config;
mod context;

// What runs are made of, and what can be asked about them, as data.
mod event;
mod retry;
mod report;
mod display;

// What a step declares, and the table that follows from it.
mod spec;
mod output;
mod input;
mod failure;
mod table;
mod draw;
mod workflow;
#[doc(hidden)]
pub mod kind;
#[doc(hidden)]
pub mod warn;

// The rules of a run, without time, locks and input or output.
pub mod scheduler;
mod explain;

// Runs, and the engine that hosts them.
mod store;
mod outcome;
mod observe;
mod middleware;
mod patience;
mod lease;
mod run;
mod engine;

pub use blocking::{BlockingError, blocking};
pub use cancel::{Cancellation, CancellationSource, Cancelled};
pub use clock::{Clock, SystemClock};
pub use config::{Config, ConfigError, ConfigLayers, ConfigOrigin, ConfigType};
pub use context::{
    ContextChange, ContextData, ContextError, ContextScope, ContextStore, ContextValue, MemoryContexts,
    RunContext, ThreadContext,
};
pub use display::{Chunk, Display, DisplayItem, DisplayStream, StreamedText, TextPiece, Thought};
pub use draw::{BranchBox, Edge, EdgeKind, Graph, Node, NodeKind, NodeRun};
#[cfg(feature = "replay-check")]
pub use engine::without_replay_check;
pub use engine::{Engine, EngineBuilder, Resumed, Running, Starting, WhenFull, WorkflowExt};
pub use error::{
    BranchFailure, ErrorClass, EventTooLarge, SharedError, StepError, TimedOut, UnfitEvent, UnfitValue,
};
pub use event::{
    AnyEvent, ControlEvent, DisplayEvent, Event, EventType, Expiring, ExternalEvent, FromEvent, Request,
    Roles, SetMember, StartEvent, StopEvent, Upgrade,
};
pub use explain::{
    Arrival, Cited, CitedInput, Explanation, FailedStep, IdleStep, MissingInput, MissingProducer,
    PreconditionRefusals, Reason, Rejected, StallReport, StepExplanation, Unconsumed, WhyNot, WhyNotProduced,
    WhyRan,
};
pub use failure::StepFailed;
pub use id::{ChildRun, EngineId, ExecutionId, ParentRun, RunId, RunStatus, ScopeId, Seq, ThreadId, TimerId};
pub use input::{
    Branch, EmitError, Emitter, EventInput, EventSet, Expired, FixedList, Gather, List, ListIter, Pattern,
    Reply, RunInfo, Slot, Slots, StepCall, StepInput,
};
pub use json::MAX_JSON_DEPTH;
pub use middleware::{Middleware, Next};
pub use observe::{Observation, Observed, Observer, TracingObserver};
pub use outcome::{
    BuildError, BuildProblem, Incompatibility, RecordedRunError, ResumeError, RunError, SendError, StartError,
};
pub use output::{Emitted, FanOut, FanOutPolicy, StepOutput, Timer, TimerError};
pub use report::{
    BoundInput, BranchReport, ChildReport, ExecutionOutcome, ExecutionTrace, LoggedEvent, OpenRequest,
    PendingTimer, Quality, RequestId, RunReport, StepReport, Timeline, Violation, WaitingExecution, WaitsFor,
};
pub use retry::{FailedAttempt, NotRetried, Retries, RetryPolicy};
pub use run::{CancelGuard, Children, RecordedRun, RunHandle, RunOptions};
pub use spec::{
    InputKind, InputSpec, OutputSpec, PreconditionSpec, StepPolicy, StepSpec, TableError, TableProblem,
    TableSpec,
};
pub use store::{
    EventStore, JOURNAL_FORMAT, Leases, MemoryStore, OpenedFanOut, Position, Record, RecordedEvent,
    Retention, RunQuery, RunSummary, StoreError, StoreFuture, StoredRun, WaitingFor, Write,
};
pub use table::{
    DependencyTable, EventDef, EventIndex, EventRow, EventShape, FanOutIndex, Forecast, InputDef, InputRow,
    InputShape, OutputDef, OutputRow, OutputShape, PreconditionDef, PreconditionShape, RecordedTable,
    StepDef, StepIndex, StepRow, StepShape, TableBuilder, TableDifference, TableShape, TopicIndex,
};
pub use workflow::Workflow;
pub use workflow_macros::{Event, EventSet, precondition, step, workflow};

/// The names that nearly every file with a workflow needs.
pub mod prelude {
    pub use serde::{Deserialize, Serialize};

    // For its methods only, so that your own `Request` does not clash with it.
    pub use crate::Request as _;
    pub use crate::{
        Cancellation, Children, Config, Display, Emitter, Engine, Event, EventSet, Expired, Expiring, FanOut,
        FixedList, Gather, List, Reply, RunContext, RunError, RunInfo, StepError, ThreadContext, Timer,
        Workflow, WorkflowExt, precondition, step, workflow,
    };
}

/// The names for generated code. Not for use by hand; all of it may change.
#[doc(hidden)]
pub mod __private;

/// The README and the guide, compiled and run with the other examples.
#[cfg(doctest)]
mod guide {
    macro_rules! pages {
        ($($name:ident $path:literal),+ $(,)?) => {
            $(#[doc = include_str!(concat!("../../", $path))] struct $name;)+
        };
    }

    pages! {
        Readme "README.md",
        Joins "docs/guide/joins.md",
        Running "docs/guide/running.md",
        Children "docs/guide/children.md",
        ContextAndConfig "docs/guide/context-and-config.md",
        Durability "docs/guide/durability.md",
        Errors "docs/guide/errors.md",
        Stalls "docs/guide/stalls.md",
    }
}
