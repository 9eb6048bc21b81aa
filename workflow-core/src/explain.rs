//! Explanations: why each step of a run ran or did not run. They are a function of the table, the log and the
//! scheduler's decisions, so they can be made at any time, also from a journal. They exist as types, as text,
//! and as JSON through serde.
//!
//! ```text
//!  table ────────┐
//!  log, trace ───┼─▶ facts, indexed by step, event, scope and moment
//!  decisions ────┘      │
//!                       ├─ past      each decision ─▶ WhyRan or WhyNot
//!                       ├─ missing   each step that never ran ─▶ MissingProducer: inputs, producers, why not
//!                       └─ stall     the part that a stalled run's owner needs, causes in order
//! ```
//!
//! The module owns the reasons and their words. It decides nothing: a rule of the scheduler appears here only
//! as a recorded verdict.
//!
//! Example: a run stalls since `ship` never got `Reserved`. The explanation of `ship` has the missing
//! `Reserved`, with its producer `reserve`, which ran once and emitted only `SoldOut`.
//!
//! ```
//! use workflow_core::prelude::*;
//! use workflow_core::explain::{Reason, WhyNotProduced};
//! # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! # #[event(start)]
//! # struct Order { pieces: u64 }
//! # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! # struct Reserved;
//! # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! # struct SoldOut;
//! # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! # #[event(stop)]
//! # struct Shipped;
//!
//! #[derive(Debug, EventSet)]
//! enum Stock { Reserved(Reserved), SoldOut(SoldOut) }
//!
//! struct Warehouse { pieces: u64 }
//!
//! #[workflow]
//! impl Warehouse {
//!     #[step]
//!     async fn reserve(&self, order: &Order) -> Stock {
//!         if order.pieces <= self.pieces { Stock::Reserved(Reserved) } else { Stock::SoldOut(SoldOut) }
//!     }
//!
//!     #[step]
//!     async fn ship(&self, order: &Order, reserved: &Reserved) -> Shipped { Shipped }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::builder().workflow(Warehouse { pieces: 3 }).build()?;
//! let run = engine.start::<Warehouse>(Order { pieces: 5 }).await?;
//! assert!(matches!(run.outcome().await, Err(RunError::Stalled(_))));
//!
//! let explanation = run.explain().await?;
//! println!("{explanation}");
//!
//! let [reserve, ship] = &explanation.steps[..] else { panic!("two steps") };
//! assert_eq!(&*reserve.ran[0].trigger.event, "Order");
//! // The order alone did not make `ship` run.
//! assert!(matches!(&ship.did_not_run[0].reason, Reason::Missing(inputs) if inputs[0].have == 0));
//! // Now it lacks `Reserved`, which `reserve` could have emitted.
//! let missing = &ship.missing[0];
//! assert_eq!(missing.input.events, ["Reserved".into()]);
//! assert!(matches!(
//!     &missing.producers[..],
//!     [WhyNotProduced::EmittedNone { step, executions: 1, only, .. }] if &**step == "reserve" && &*only[0] == "SoldOut"
//! ));
//! // No step takes the event of the cause.
//! assert_eq!(&*explanation.unconsumed[0].last.event, "SoldOut");
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::id::{ExecutionId, RunId, RunStatus, ScopeId, Seq};
use crate::report::{
    DeadlineReport, ExecutionOutcome, PauseReport, PendingTimer, RedriveReport, RunningAttempt, WaitsFor,
};
use crate::retry::FailedAttempt;
use crate::spec::InputKind;

mod clean_up;
mod dropped;
mod failures;
mod missing;
mod not_produced;
mod past;
mod runaway;
mod source;
mod stall;
mod text;

pub(crate) use runaway::Runaway;

pub use clean_up::WhyNoCleanUp;
pub use dropped::DroppedBranches;
pub use stall::{IdleStep, PreconditionRefusals, Rejected, StallReport};

/// Why each step of a run ran or did not run.
///
/// `Display` prints it for people; serde serialises it for programs.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The id of the run.
    pub run: RunId,
    /// The workflow.
    pub workflow: Arc<str>,
    /// The status of the run.
    pub status: RunStatus,
    /// The unfinished clean-up steps, as in [`CleanUpReport::incomplete`](crate::report::CleanUpReport::incomplete).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incomplete_clean_up: Vec<Arc<str>>,
    /// The pause of the run; `None` if it is not paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseReport>,
    /// The deadline of the run, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DeadlineReport>,
    /// One row per step, in declaration order.
    pub steps: Vec<StepExplanation>,
    /// The stop events, with the reasons why the log has none of them. Empty for a completed run.
    pub missing_stops: Vec<MissingProducer>,
    /// Events in the log, and replies to open requests, that no step takes. One row per type.
    pub unconsumed: Vec<Unconsumed>,
    /// The failed steps, in declaration order. Failures of clean-up steps change no outcome, and are not among them.
    pub failed: Vec<FailedStep>,
    /// The fan-outs that dropped branches, since enough others had settled. In the order of their gathers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedBranches>,
    /// The pending timers, in the order in which they fire.
    pub timers: Vec<PendingTimer>,
    /// The types that can still arrive from outside, or could when the run stalled. One row per type.
    pub can_arrive: Vec<Arrival>,
    /// How often the run continued after it had ended, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redrives: Vec<RedriveReport>,
}

/// A step that failed at least once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedStep {
    /// The name of the step.
    pub step: Arc<str>,
    /// The number of its executions.
    pub executions: u64,
    /// The number of its failed executions.
    pub failures: u64,
    /// The error of its last failure.
    pub error: Arc<str>,
    /// The items of the branches in which it failed.
    pub branches: Vec<Cited>,
}

/// A type that can arrive from outside: an external event that a step takes or that ends the run, or the reply to an open
/// request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Arrival {
    /// [`InputKind::Reply`] for the reply to a request, else [`InputKind::One`].
    pub kind: InputKind,
    /// The wire name of the event; for a reply, of the request.
    pub event: Arc<str>,
}

/// An event that no step takes, or a request whose reply no step takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Unconsumed {
    /// [`InputKind::Reply`] for a request whose reply no step takes.
    pub kind: InputKind,
    /// The last event of the type.
    pub last: Cited,
}

/// Why one step ran or did not run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StepExplanation {
    /// The name of the step.
    pub step: Arc<str>,
    /// One row per execution that has begun.
    pub ran: Vec<WhyRan>,
    /// One row per trigger without an execution, or with one that has not begun.
    pub did_not_run: Vec<WhyNot>,
    /// The inputs that are missing now, if the step never ran. With only optional inputs, any one of them
    /// would do.
    pub missing: Vec<MissingProducer>,
    /// The wire names of the events that it reads as passive inputs. They never make it run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Arc<str>>,
    /// Of a clean-up step that did not run, the reason; `None` for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clean_up: Option<WhyNoCleanUp>,
}

/// An event as explanations refer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cited {
    /// The sequence number of the event.
    pub seq: Seq,
    /// The wire name. A completed fan-out and a failure have the names of a report's log.
    pub event: Arc<str>,
    /// For a completed fan-out: the item type, by which people know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gathered: Option<Arc<str>>,
    /// The step that emitted the event or opened the fan-out. `None` for an event from outside and for a
    /// failure.
    pub producer: Option<Arc<str>>,
}

/// Why a step ran: its trigger and its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WhyRan {
    /// The id of the execution.
    pub execution: ExecutionId,
    /// The scope in which the step was evaluated.
    pub scope: ScopeId,
    /// The event that triggered it.
    pub trigger: Cited,
    /// Of an execution with a failed attempt, the item of its branch. `None` in the root, and for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<Cited>,
    /// The events of each parameter.
    pub inputs: Vec<CitedInput>,
    /// The failed attempts after which the engine scheduled another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<FailedAttempt>,
    /// The time of the next attempt, since the run began. Set while the execution waits for it, and if the
    /// run ended meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Duration>,
    /// The attempt that is under way; `None` if there is none in this process, as in an explanation from a journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningAttempt>,
    /// The outcome of the execution.
    pub outcome: ExecutionOutcome,
}

/// The events of one parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CitedInput {
    /// No event: an injected parameter, or an optional input without an event.
    Nothing,
    /// One event.
    One(Cited),
    /// A list of this length.
    List(u32),
}

/// Why a trigger led to no execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WhyNot {
    /// The event that triggered the evaluation.
    pub trigger: Cited,
    /// The scope in which the step was evaluated.
    pub scope: ScopeId,
    /// The reason why no execution of this trigger has begun.
    pub reason: Reason,
}

/// Why a trigger led to no execution, or to one that has not begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Required inputs were missing at that time.
    Missing(Vec<MissingInput>),
    /// No bound event belongs to this branch: the evaluation in an outer scope covers the combination.
    Covered,
    /// The step was executed with this combination of events before.
    Duplicate,
    /// The step had taken the latest gather, and takes each gather once per scope.
    GatherTaken {
        /// The execution that took it.
        by: ExecutionId,
    },
    /// The step had reached its `max_executions`.
    LimitReached {
        /// The `max_executions` of the step.
        limit: u32,
    },
    /// The run had reached its limit of executions,
    /// [`max_executions_per_run`](crate::EngineBuilder::max_executions_per_run), and ended here.
    RunLimitReached {
        /// The most executions of the run.
        limit: u64,
    },
    /// The run had ended before its workflow had the step.
    RunEnded,
    /// The precondition said no.
    Refused {
        /// The name of the precondition.
        precondition: Arc<str>,
    },
    /// The precondition failed.
    PreconditionFailed {
        /// The name of the precondition.
        precondition: Arc<str>,
    },
    /// The precondition has not answered yet.
    Asking {
        /// The name of the precondition.
        precondition: Arc<str>,
    },
    /// The precondition is asked once the run is unpaused.
    Deferred {
        /// The name of the precondition.
        precondition: Arc<str>,
    },
    /// The execution exists and waits to start.
    Waiting {
        /// The id of the execution.
        execution: ExecutionId,
        /// The limit that it waits for.
        waits_for: WaitsFor,
    },
    /// The execution was dropped with its run or branch before it started.
    NeverStarted {
        /// The id of the execution.
        execution: ExecutionId,
    },
}

/// An input that lacks events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MissingInput {
    /// The wire names of the events that would do. For a reply its request, for a gather the collected event.
    pub events: Vec<Arc<str>>,
    /// How the input takes them.
    pub kind: InputKind,
    /// The number of events it has.
    pub have: u32,
    /// The number of events it needs.
    pub need: u32,
    /// Inputs that would do instead: a step with only optional inputs needs any one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<MissingInput>,
}

/// A missing input, with its possible producers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MissingProducer {
    /// The missing input, with its counts.
    #[serde(flatten)]
    pub input: MissingInput,
    /// The possible producers, each with the reason why it did not supply the input.
    pub producers: Vec<WhyNotProduced>,
}

/// A possible producer of an event, and why it did not produce it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WhyNotProduced {
    /// A step that never ran.
    DidNotRun {
        /// The name of the step.
        step: Arc<str>,
    },
    /// A step that was ready, but whose precondition said no every time.
    Refused {
        /// The name of the step.
        step: Arc<str>,
        /// The name of the precondition.
        precondition: Arc<str>,
    },
    /// A step that is still running.
    Running {
        /// The name of the step.
        step: Arc<str>,
        /// The time of its next attempt since the run began, if it only waits for that.
        next_attempt: Option<Duration>,
        /// Its attempt that has been running for longest; `None` if none runs in this process, as in an explanation from a
        /// journal.
        #[serde(skip_serializing_if = "Option::is_none")]
        running: Option<RunningAttempt>,
    },
    /// A step that waits to start and does not run meanwhile.
    Waiting {
        /// The name of the step.
        step: Arc<str>,
        /// The limit that the first of its waiting executions waits for.
        waits_for: WaitsFor,
    },
    /// A step that ran and emitted none of the events.
    EmittedNone {
        /// The name of the step.
        step: Arc<str>,
        /// The number of its executions.
        executions: u64,
        /// The executions allowed per scope, if the step reached that limit.
        limit: Option<u32>,
        /// The types of the events that it emitted.
        only: Vec<Arc<str>>,
    },
    /// A step that ran and opened a fan-out without items.
    OpenedNone {
        /// The name of the step.
        step: Arc<str>,
        /// The number of its executions.
        executions: u64,
    },
    /// A step that ran and emitted too few of the events.
    EmittedSome {
        /// The name of the step.
        step: Arc<str>,
        /// The number of its executions.
        executions: u64,
        /// The number of these events that it emitted.
        events: u64,
    },
    /// A step that emitted the event in branches that this scope does not see. A gather joins them.
    EmittedInBranches {
        /// The name of the step.
        step: Arc<str>,
        /// The number of these events that it emitted in other branches.
        events: u64,
        /// The number of these events that it emitted where this scope sees them.
        seen: u64,
    },
    /// The event came after the branch that had the other inputs had ended. A gather joins both.
    ArrivedLate {
        /// The event that came.
        event: Cited,
        /// The item of the branch.
        branch: Cited,
        /// The events of the branch that the step takes, which a gather would have to collect.
        gather: Vec<Arc<str>>,
    },
    /// The event is in the log but was not evaluated: the run has not reached it, or ended before.
    NotEvaluated {
        /// The event that came.
        event: Cited,
    },
    /// A step that failed at least once, and emitted none or too few of the events.
    Failed {
        /// The name of the step.
        step: Arc<str>,
        /// The number of its executions.
        executions: u64,
        /// The number of its failed executions.
        failures: u64,
        /// The error of its last failure.
        error: Arc<str>,
        /// The number of these events that it emitted all the same.
        events: u64,
        /// The types of the events that it emitted.
        only: Vec<Arc<str>>,
    },
    /// Steps whose failure would have been taken, none of which failed.
    NotFailed {
        /// The names of the steps.
        steps: Vec<Arc<str>>,
    },
    /// A step that failed too few times, or in a branch, whose failures other scopes do not see.
    FailedSome {
        /// The name of the step.
        step: Arc<str>,
        /// The number of its failures in branches that this scope does not see.
        elsewhere: u64,
        /// The number of its failures that this scope sees.
        seen: u64,
    },
    /// An event from outside.
    NotSent {
        /// The type of the event.
        event: Arc<str>,
        /// The number of times it was sent.
        sent: u64,
    },
    /// A start event of which none opened this run: the run began with another one.
    NotBegunWith {
        /// The type of the event.
        event: Arc<str>,
        /// The type of the event that the run began with.
        began_with: Arc<str>,
    },
    /// A reply to a request that is open.
    NotReplied {
        /// The type of the request.
        request: Arc<str>,
    },
    /// A reply to a request that expired first.
    Expired {
        /// The type of the request.
        request: Arc<str>,
    },
    /// A step that set a timer for the event, which has not fired.
    TimerPending {
        /// The name of the step.
        step: Arc<str>,
        /// The time at which it fires, since the first event entered the log.
        after: Duration,
    },
    /// A fan-out that is open, so that nothing is gathered yet.
    NotGathered {
        /// The name of the step that opened the fan-out.
        step: Arc<str>,
        /// The number of branches.
        branches: u64,
        /// The number of branches in which something failed.
        failed: u64,
        /// The number of branches that wait for others to settle: the fan-out has a
        /// [`concurrency`](crate::FanOut::concurrency).
        unopened: u64,
        /// If some wait, the items of the first five branches that are open.
        open: Vec<Cited>,
    },
    /// Nothing: no step emits the event.
    NoProducer {
        /// The type of the event.
        event: Arc<str>,
    },
}
