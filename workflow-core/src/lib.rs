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
//! - [`Children`]: workflows that run workflows. [`RuntimeWorkflow`]: workflows that a program builds at run time.
//! - [`StepError`], [`RetryPolicy`]: failures, and which of them are followed by another attempt.
//! - [`observe`]: observers of runs, and `tracing` spans.
//! - [`report`], [`explain`], [`draw`]: what a run did, why each step ran or did not, and its drawing.
//! - [`store`]: for authors of stores. [`signature`]: for authors of parameter kinds and return types.
//! - [`errors`]: details of errors, to match on.
//! - [`table`] and [`scheduler`]: the machinery, usable by itself.

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
mod limit;
mod config;
mod context;

// What runs are made of, and what can be asked about them, as data.
mod event;
mod retry;
pub mod report;
mod display;

// What a step declares, and the table that follows from it.
mod spec;
mod output;
mod input;
mod failure;
pub mod table;
pub mod draw;
mod workflow;
mod runtime_workflow;
#[doc(hidden)]
pub mod type_probe;
#[doc(hidden)]
pub mod warn;

// The rules of a run, without time, locks and input or output.
pub mod scheduler;
pub mod explain;

// Runs, and the engine that hosts them.
pub mod store;
mod outcome;
pub mod observe;
pub mod middleware;
mod patience;
mod lease;
mod run;
mod engine;

pub use blocking::blocking;
pub use cancel::{Cancellation, CancellationSource};
pub use clock::{Clock, SystemClock};
pub use config::{Config, ConfigLayers, ConfigOrigin, ConfigRequest, ConfigSource};
pub use context::{RunContext, ThreadContext};
pub use display::{Display, DisplayItem, DisplayPosition, DisplayStream, RequestEnd};
#[cfg(feature = "replay-check")]
pub use engine::without_replay_check;
pub use engine::{
    Engine, EngineBuilder, HostedConfig, HostedEvent, HostedWorkflow, Redriven, Resumed, RunPermit,
    RunResult, RunResults, Running, Starting, WhenFull, WorkflowExt,
};
pub use error::{ErrorClass, StepError, UnfitJson};
pub use event::{
    AnyEvent, ControlEvent, DisplayEvent, Event, Expiring, ExternalEvent, Request, StartEvent, StopEvent,
};
pub use failure::StepFailed;
pub use id::{ExecutionId, Origin, Pause, RunId, RunStatus, ScopeId, Seq, ThreadId, TraceParent};
pub use input::{
    Branch, Emitter, EventSet, Expired, FixedList, Gather, InputValue, JsonBranch, List, Passive, Reply,
    RunInfo, StepInput,
};
pub use limit::Limit;
pub use outcome::{BuildError, RedriveError, ResumeError, RunError, SendError, StartError};
pub use output::{FanOut, FanOutPolicy, JsonOutput, OutputForm, StepOutput, Timer, TypedOutput};
pub use retry::{Retries, RetryPolicy};
pub use run::{AnyRun, CancelGuard, Children, RecordedRun, Redrive, RunHandle, RunOptions, outcome_of};
pub use runtime_workflow::{RuntimeWorkflow, Steps};
pub use workflow::{Workflow, assert_taken};
pub use workflow_macros::{Event, EventSet, precondition, step, workflow};

/// Details of errors, for code that matches on them, and the errors of single parts, such as [`ConfigError`](errors::ConfigError).
///
/// Errors of runs and engines are at the root: [`RunError`], [`StartError`], [`SendError`], [`ResumeError`],
/// [`RedriveError`], [`BuildError`] and [`StepError`]. The error of a store is [`StoreError`](store::StoreError).
pub mod errors {
    pub use crate::blocking::BlockingError;
    pub use crate::cancel::Cancelled;
    pub use crate::config::ConfigError;
    pub use crate::context::ContextError;
    pub use crate::error::{
        BranchFailure, BranchItem, EventTooLarge, Excess, InDoubt, Interrupted, SharedError, TimedOut,
        UnfitEvent, UnfitValue, chain,
    };
    pub use crate::failure::FailedBranch;
    pub use crate::id::InvalidTraceParent;
    pub use crate::input::EmitError;
    pub use crate::outcome::{BuildProblem, Incompatibility, RecordedRunError};
    pub use crate::output::{FanOutError, TimerError};
}

/// Parameter kinds and return types of your own: the types with which you implement [`StepInput`] and [`StepOutput`].
///
/// [`StepInput`] has an example of a parameter. A return type of your own usually wraps one of the library's:
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_core::StepOutput;
/// use workflow_core::signature::{Emitted, OutputSpec};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Measure;
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Celsius(i64);
///
/// /// The event, unless its value is out of range: then the execution fails.
/// struct Plausible(Celsius);
///
/// impl StepOutput for Plausible {
///     const SPEC: OutputSpec = <Celsius as StepOutput>::SPEC;
///     type Events = <Celsius as StepOutput>::Events;
///
///     fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
///         match self.0.0 {
///             -273..=1_000 => self.0.emit(emitted),
///             value => Err(StepError::rejected(format!("{value} degrees are out of range"))),
///         }
///     }
/// }
///
/// struct Thermometer { reads: i64 }
///
/// #[workflow]
/// impl Thermometer {
///     #[step]
///     async fn measure(&self, _measure: &Measure) -> Plausible { Plausible(Celsius(self.reads)) }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), RunError> {
/// assert_eq!(Thermometer { reads: 21 }.run(Measure).await?, Celsius(21));
/// assert!(Thermometer { reads: -300 }.run(Measure).await.is_err());
/// # Ok(())
/// # }
/// ```
pub mod signature {
    pub use crate::config::ConfigType;
    pub use crate::event::{EventType, FromEvent, Roles, SetMember, Upgrade};
    pub use crate::input::{
        CallWatch, EventInput, GatherItem, Injectables, ListIter, Pattern, Slot, Slots, StepCall,
    };
    pub use crate::output::Emitted;
    pub use crate::spec::{InputSpec, OutputSpec};
}

/// The names that nearly every file with a workflow needs.
pub mod prelude {
    pub use serde::{Deserialize, Serialize};

    // For its methods only, so that your own `Request` does not clash with it.
    pub use crate::Request as _;
    pub use crate::{
        Cancellation, Children, Config, Display, Emitter, Engine, Event, EventSet, Expired, Expiring, FanOut,
        FixedList, Gather, List, Passive, Reply, RunContext, RunError, RunInfo, StepError, ThreadContext,
        Timer, Workflow, WorkflowExt, precondition, step, workflow,
    };
}

/// The names for generated code. Not for use by hand; all of it may change.
#[doc(hidden)]
pub mod __private;

/// The README, the guide and the examples of the macros, compiled and run with the other examples.
#[cfg(doctest)]
mod guide {
    macro_rules! pages {
        ($($name:ident $path:literal),+ $(,)?) => {
            $(#[doc = include_str!(concat!("../../", $path))] struct $name;)+
        };
    }

    pages! {
        Readme "README.md",
        Steps "docs/guide/steps.md",
        Joins "docs/guide/joins.md",
        HowOften "docs/guide/how-often.md",
        Running "docs/guide/running.md",
        RunTime "docs/guide/run-time.md",
        Display "docs/guide/display.md",
        Children "docs/guide/children.md",
        ContextAndConfig "docs/guide/context-and-config.md",
        Durability "docs/guide/durability.md",
        Errors "docs/guide/errors.md",
        Stalls "docs/guide/stalls.md",
        Limits "docs/guide/limits.md",
        Peers "docs/guide/peers.md",
        MacroEvent "workflow-macros/docs/event.md",
        MacroEventSet "workflow-macros/docs/event_set.md",
        MacroWorkflow "workflow-macros/docs/workflow.md",
        MacroStep "workflow-macros/docs/step.md",
        MacroPrecondition "workflow-macros/docs/precondition.md",
    }
}
