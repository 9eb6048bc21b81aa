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
//! A **run** is an append-only **log** of typed events plus a static table. An **event** is an immutable
//! value that derives [`Event`]. When one enters the log, each **step** that takes its type is evaluated: it
//! is **ready** when its required inputs are there, it is **bound** to the triggering event and to the latest
//! of the other types, its **precondition** is asked, and it is **executed**. What it returns enters the log
//! as one batch when it returns `Ok`, and nothing of it does when it fails. The first **stop** event ends the
//! run. A run in which nothing can happen any more ends at once, and says which step waited for what.
//!
//! Everything else follows from log and table: joins keep no buffers that could be lost, and every
//! execution can be explained.
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

mod append_log;
mod blocking;
mod cancel;
#[doc(hidden)]
pub mod check;
mod children;
mod clock;
mod config;
mod context;
mod display;
mod draw;
mod engine;
mod error;
mod event;
mod explain;
mod failure;
mod id;
mod input;
mod json;
#[doc(hidden)]
pub mod kind;
mod middleware;
mod observe;
mod output;
mod paged;
mod panics;
mod retry;
mod run;
pub mod scheduler;
mod store;
mod table;
#[doc(hidden)]
pub mod warn;
mod workflow;

pub use blocking::{BlockingError, blocking};
pub use cancel::{Cancellation, CancellationSource, Cancelled};
pub use children::{ChildRun, Children, ParentRun};
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
pub use engine::{Engine, EngineBuilder, Resumed, Starting, WhenFull};
pub use error::{
    BuildError, BuildProblem, ErrorClass, EventTooLarge, Incompatibility, RecordedRunError, ResumeError,
    RunError, SendError, SharedError, StartError, StepError, TableError, TableProblem, TimedOut, UnfitEvent,
    UnfitValue,
};
pub use event::{
    AnyEvent, ControlEvent, DisplayEvent, Event, EventSet, EventType, ExternalEvent, FromEvent, Pattern,
    Request, Roles, SetMember, StartEvent, StopEvent, Upgrade,
};
pub use explain::{
    Arrival, Cited, CitedInput, Explanation, FailedStep, IdleStep, MissingInput, Reason, Refusals,
    StallReport, StepExplanation, TurnedDown, Unmet, Untaken, WhyNot, WhyNotProduced, WhyRan,
};
pub use failure::StepFailed;
pub use id::{EngineId, ExecutionId, RunId, ScopeId, Seq, ThreadId, TimerId};
pub use input::{
    Branch, BranchFailure, EmitError, Emitter, EventInput, Expired, FixedList, Gather, InputKind, InputSpec,
    List, ListIter, Reply, RunInfo, Slot, Slots, StepCall, StepInput,
};
pub use json::MAX_JSON_DEPTH;
pub use middleware::{Middleware, Next};
pub use observe::{Observation, Observed, Observer, TracingObserver};
pub use output::{Emitted, Expiring, FanOut, FanOutPolicy, OutputSpec, StepOutput, Timer, TimerError};
pub use retry::{FailedAttempt, NotRetried, Retries, RetryPolicy};
pub use run::{
    BoundInput, BranchReport, CancelGuard, ChildReport, ExecutionOutcome, ExecutionTrace, LoggedEvent,
    OpenRequest, PendingTimer, Quality, RecordedRun, RequestId, RunHandle, RunOptions, RunReport, RunStatus,
    StepReport, Timeline, Violation, WaitingExecution, WaitsFor,
};
pub use store::{
    Batch, EventStore, JOURNAL_FORMAT, Leases, MemoryStore, OpenedFanOut, Position, Record, RecordedEvent,
    Retention, RunQuery, RunSummary, StoreError, StoreFuture, StoredRun, WaitingFor,
};
pub use table::{
    DependencyTable, EventDef, EventIndex, EventRow, EventShape, FanOutIndex, Forecast, InputDef, InputRow,
    InputShape, OutputDef, OutputRow, OutputShape, PreconditionDef, PreconditionShape, PreconditionSpec,
    RecordedTable, StepDef, StepIndex, StepPolicy, StepRow, StepShape, StepSpec, TableBuilder,
    TableDifference, TableShape, TableSpec, TopicIndex,
};
pub use workflow::{Running, Workflow};
pub use workflow_macros::{Event, EventSet, precondition, step, workflow};

/// What nearly every file that defines a workflow needs.
pub mod prelude {
    pub use serde::{Deserialize, Serialize};

    // For its methods alone, so that a `Request` of your own is not in its way.
    pub use crate::Request as _;
    pub use crate::{
        Cancellation, Children, Config, Display, Emitter, Engine, Event, EventSet, Expired, Expiring, FanOut,
        FixedList, Gather, List, Reply, RunContext, RunError, RunInfo, StepError, ThreadContext, Timer,
        Workflow, precondition, step, workflow,
    };
}

/// What generated code names. Nothing here is meant to be used by hand, and all of it may change.
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
