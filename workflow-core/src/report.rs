//! The report of a run: outcome, quality, executions per step, trace, violations and surplus.
//!
//! ```
//! use workflow_core::prelude::*;
//! use workflow_core::report::{BoundInput, ExecutionOutcome, Quality};
//! # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! # #[event(start)]
//! # struct Order { lines: Vec<u64> }
//! # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! # struct Line(u64);
//! # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! # struct Price(u64);
//! # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! # #[event(stop)]
//! # struct Total(u64);
//! struct Shop;
//!
//! #[workflow]
//! impl Shop {
//!     #[step]
//!     async fn split(&self, order: &Order) -> FanOut<Line> {
//!         order.lines.iter().copied().map(Line).collect::<FanOut<_>>().continue_others()
//!     }
//!
//!     #[step]
//!     async fn price(&self, line: &Line) -> Result<Price, StepError> {
//!         if line.0 == 0 { Err(StepError::rejected("it is not for sale")) } else { Ok(Price(line.0)) }
//!     }
//!
//!     #[step]
//!     async fn add_up(&self, prices: &Gather<Price>) -> Total { Total(prices.ok().map(|price| price.0).sum()) }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::builder().workflow(Shop).build()?;
//! let run = engine.start::<Shop>(Order { lines: vec![70, 0] }).await?;
//! let report = run.report().await?;
//! assert_eq!(report.quality, Quality::Degraded); // the run completed, and a branch failed
//!
//! // A row per step, per execution, per branch and per event:
//! assert_eq!((&*report.steps[1].step, report.steps[1].executions), ("price", 2));
//! let split = &report.trace[0];
//! assert_eq!((&*split.step, split.execution.to_string()), ("split", "x1".into()));
//! assert_eq!(split.inputs, [BoundInput::One(split.trigger)]);
//! assert!(matches!(split.outcome, ExecutionOutcome::Succeeded));
//! assert_eq!(report.branches.iter().filter(|branch| branch.failed).count(), 1);
//! assert_eq!(&*report.log[0].event, "Order");
//!
//! // For people:
//! println!("{report}");
//! println!("{}", report.timeline());
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::error::{BranchItem, ErrorClass};
use crate::event::{AnyEvent, Gathered};
use crate::id::{ExecutionId, Origin, RunId, RunStatus, ScopeId, Seq, ThreadId};
use crate::retry::{NextAttempt, tried};

mod deadline;
mod ending;
mod nested;
mod paused;
mod request;
mod running;
mod timeline;
mod timers;
mod waiting;

pub use crate::id::{ChildRun, ParentRun, Redriver, TimerId};
pub use crate::retry::{FailedAttempt, NotRetried};
pub use deadline::DeadlineReport;
pub use ending::{CleanUpReport, CleanUpResult, CleanUpStep, Ending, FailedExecution};
use nested::Level;
pub use paused::PauseReport;
pub use request::{OpenRequest, RequestId};
pub use running::RunningAttempt;
pub use timeline::Timeline;
pub use timers::PendingTimer;
pub(crate) use waiting::HOLDERS;
pub use waiting::{LimitHolder, WaitingExecution, WaitsFor};

/// The most executions with failed attempts that a printed report has.
const TRIED: usize = 20;

/// The report of a run: everything that it did.
///
/// It prints as a table for people, and serialises for machines.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunReport {
    /// The id of the run.
    pub run: RunId,
    /// The thread to which the run belonged.
    pub thread: ThreadId,
    /// The name of the workflow.
    pub workflow: Arc<str>,
    /// How the run ended, or its status when the report was made.
    pub status: RunStatus,
    /// Whether something failed.
    pub quality: Quality,
    /// A row per step, in declaration order.
    pub steps: Vec<StepReport>,
    /// Every execution that has begun, in the order in which they were scheduled.
    pub trace: Vec<ExecutionTrace>,
    /// The executions that are scheduled and have not begun, in the order of their ids. Empty once the run
    /// has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingExecution>,
    /// Every event of the log.
    pub log: Vec<LoggedEvent>,
    /// The pending timers, in the order in which they will fire. Empty once the run has ended.
    pub timers: Vec<PendingTimer>,
    /// Every branch of every fan-out, in the order in which their items entered the log.
    pub branches: Vec<BranchReport>,
    /// The commits that the run refused.
    pub violations: Vec<Violation>,
    /// The clean-up; `None` if no clean-up step was to run, or the run has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clean_up: Option<CleanUpReport>,
    /// The labels from the options of the run.
    pub metadata: BTreeMap<String, String>,
    /// The parent of the run, if it is a child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// The child runs, in the order in which they started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildReport>,
    /// How often the run continued after it had ended, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redrives: Vec<RedriveReport>,
    /// The origin of the cancel that ended the run, if the caller gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<Origin>,
    /// The reason of the cancel that ended the run; `None` unless the run was cancelled and has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<Arc<str>>,
    /// The pause of the run; `None` if it is not paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseReport>,
    /// The deadline of the run, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DeadlineReport>,
}

/// A [redrive](crate::Engine::redrive): the run continued although it had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RedriveReport {
    /// How the run had ended.
    pub status: RunStatus,
    /// Who redrove it.
    pub by: Redriver,
    /// When, measured from the first event in the log.
    pub at: Duration,
    /// Whether only clean-up steps ran again ([`Redrive::clean_up`](crate::Redrive::clean_up)).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clean_up: bool,
}

impl fmt::Display for RedriveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, by, at, clean_up } = self;
        let at = Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
        let status = HadEnded(*status);
        let what = if *clean_up { "its clean-up" } else { "it" };
        write!(f, "the run had {status}, and {by} redrove {what} {at:?} after its beginning")
    }
}

/// An end as the rest of a sentence: the run had ….
struct HadEnded(RunStatus);

impl fmt::Display for HadEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            RunStatus::Cancelled => f.write_str("been cancelled"),
            other => other.fmt(f),
        }
    }
}

/// A child run, in the report of its parent.
///
/// In print and in JSON a report has the reports of children up to 32 levels below it, so that neither a stack nor a reader of
/// JSON has to be deep. A child further below has `"report_left_out": true` instead.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct ChildReport {
    /// The identity of the child.
    #[serde(flatten)]
    pub child: ChildRun,
    /// How the child ended, or its status when the report was made: [running](RunStatus::Running) where another process has
    /// the child, or its parent had ended before. An awaited child that was open when its parent completed was cancelled.
    pub status: RunStatus,
    /// The child's own report, if the parent awaited the child and the child has ended in this process. Other children
    /// have reports of their own.
    #[serde(flatten, serialize_with = "nested::serialize")]
    pub report: Option<Arc<RunReport>>,
}

/// Whether a run went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// No execution failed for good. Retries do not count against it.
    Clean,
    /// An execution or a child failed, and the run handled the failure.
    Degraded,
    /// The run did not complete.
    Failed,
}

/// One step in the report of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepReport {
    /// The name of the step.
    pub step: Arc<str>,
    /// How many executions of the step have begun, in all scopes.
    pub executions: u64,
    /// How many events arrived after a fixed list of the step was full.
    pub surplus: u64,
}

/// One execution in the report of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExecutionTrace {
    /// The id of the execution.
    pub execution: ExecutionId,
    /// The name of its step.
    pub step: Arc<str>,
    /// The scope in which it ran.
    pub scope: ScopeId,
    /// The event that triggered the execution.
    pub trigger: Seq,
    /// The bound event of each input, and the length of each list.
    pub inputs: Vec<BoundInput>,
    /// The events that it emitted into the log.
    pub emitted: Vec<Seq>,
    /// When it started, measured from the first event in the log.
    pub started: Duration,
    /// How long it took by the engine's clock, with every attempt and the delays between them.
    pub took: Duration,
    /// The failed attempts that another attempt followed, or was to follow, in order. The last attempt is the
    /// outcome. Also those before a [redrive](crate::Engine::redrive), which made the attempt after them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<FailedAttempt>,
    /// When the next attempt is due, measured from the first event in the log.
    ///
    /// Also set if the execution ended while it waited for that attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Duration>,
    /// The attempt that is under way; `None` if there is none in this process, as in a report from a journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningAttempt>,
    /// The outcome of the execution.
    pub outcome: ExecutionOutcome,
    /// The [`StepFailed`](crate::StepFailed) event of this execution, if a step catches it.
    pub failure: Option<Seq>,
    /// The executions that took that event as trigger or single input.
    ///
    /// In the order in which they were scheduled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caught_by: Vec<ExecutionId>,
    /// The child runs that it started, in order. [`RunReport::children`] has their outcomes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<RunId>,
}

/// The binding of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundInput {
    /// No event: an injectable, or an optional input without one.
    Nothing,
    /// The event with this sequence number.
    One(Seq),
    /// A list of this many events.
    List(u32),
}

/// The outcome of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecutionOutcome {
    /// The execution succeeded, and its events are in the log.
    Succeeded,
    /// The execution failed, and none of its events is in the log.
    Failed {
        /// The class of the failure.
        class: ErrorClass,
        /// The text of the error.
        error: String,
        /// The reason why no other attempt followed.
        not_retried: NotRetried,
    },
    /// The execution returned events after the run had ended, and the run refused them. No journal has that: a report of
    /// another process, or of records, has the execution as dropped.
    Refused,
    /// The run dropped the execution, because the run ended or dropped its branch.
    Dropped,
    /// The execution is running, or waits for its next attempt.
    Running,
}

/// One event of a run's log.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet { name: String }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeting(String);
/// # struct Greeter;
/// # #[workflow]
/// # impl Greeter {
/// #     #[step]
/// #     async fn greet(&self, greet: &Greet) -> Greeting {
/// #         Greeting(format!("Hello, {}!", greet.name))
/// #     }
/// # }
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Greeter).build()?;
/// let run = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?;
/// let report = run.report().await?;
/// let greeting = &report.log[1];
/// assert_eq!((&*greeting.event, greeting.execution.is_some()), ("Greeting", true));
/// assert_eq!(greeting.value.downcast_ref(), Some(&Greeting("Hello, Ada!".into())));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LoggedEvent {
    /// The sequence number of the event.
    pub seq: Seq,
    /// The scope to which the event belongs.
    pub scope: ScopeId,
    /// The wire name of the event.
    pub event: Arc<str>,
    /// The event itself, shared with the run. A serialised report leaves it out, because values may be large
    /// or confidential.
    #[serde(skip)]
    pub value: AnyEvent,
    /// The execution that emitted the event or set its timer. `None` for an event from outside and for a
    /// gather.
    pub execution: Option<ExecutionId>,
    /// The timer that fired the event.
    pub timer: Option<TimerId>,
    /// The sequence number of the request whose expiry this event is.
    pub expired: Option<Seq>,
    /// The sequence number of the request to which this event replies.
    pub reply_to: Option<Seq>,
    /// The origin of an event from outside, if the caller gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// When the event entered the log, by the engine's clock.
    #[serde(serialize_with = "crate::json::rfc3339::serialize")]
    pub at: SystemTime,
}

/// One branch of a fan-out in the report of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BranchReport {
    /// The scope of the branch.
    pub scope: ScopeId,
    /// The scope in which the fan-out was opened.
    pub parent: ScopeId,
    /// The step that opened the fan-out.
    pub step: Arc<str>,
    /// The execution that opened the fan-out.
    pub opener: ExecutionId,
    /// The sequence number of the branch's item.
    pub item: Seq,
    /// How many executions ran in the branch, without branches below it.
    pub executions: u64,
    /// Whether an execution in the branch failed before the end of the run, and no step caught the failure.
    pub failed: bool,
    /// Whether the branch was dropped, since enough others of its fan-out had settled
    /// ([`FanOut::until`](crate::FanOut::until)). False for a branch that had failed by then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

/// A commit that a run refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Violation {
    /// An execution returned events after the run had ended.
    CommitAfterEnd {
        /// The id of the execution.
        execution: ExecutionId,
        /// The name of its step.
        step: Arc<str>,
        /// The wire names of the events.
        events: Vec<String>,
    },
}

impl ExecutionTrace {
    /// Whether an attempt of it failed, even if a later one did not.
    pub(crate) fn has_failed_attempts(&self) -> bool {
        matches!(self.outcome, ExecutionOutcome::Failed { .. }) || !self.attempts.is_empty()
    }
}

impl ExecutionOutcome {
    /// Whether the next attempt began, is due or never came, of an execution with this outcome.
    pub(crate) fn next(&self, next_attempt: Option<Duration>) -> NextAttempt {
        match (next_attempt, self) {
            (None, _) => NextAttempt::Began,
            (Some(_), Self::Running) => NextAttempt::Due,
            (Some(_), _) => NextAttempt::NeverCame,
        }
    }

    /// The end of a line about the execution: empty if it succeeded.
    pub(crate) fn summary(&self, next_attempt: Option<Duration>, running: Option<RunningAttempt>) -> String {
        match self {
            Self::Succeeded => String::new(),
            Self::Failed { class, error, not_retried } if not_retried.is_news() => {
                format!(": failed ({class}): {}; {not_retried}", error.trim_end())
            }
            Self::Failed { class, error, .. } => format!(": failed ({class}): {error}"),
            Self::Refused => ": ended after the run had".into(),
            Self::Dropped => ": dropped".into(),
            Self::Running => match next_attempt {
                None => running.map_or_else(|| ": still running".into(), |running| format!(": {running}")),
                Some(due) => {
                    format!(": waits for its next attempt, which is due {due:?} after the run began")
                }
            },
        }
    }
}

impl LoggedEvent {
    /// Whether the event is the gather of a fan-out.
    pub fn is_gathered(&self) -> bool {
        self.value.event_type().is_some_and(|known| known.type_id() == Gathered::TYPE.type_id())
    }

    /// Whether a step asked in which order the branches of this gather settled
    /// ([`Branch::settled`](crate::Branch::settled)). Tools that try orders need to know. False again once the run was
    /// loaded from its journal.
    pub fn is_order_read(&self) -> bool {
        self.value.payload_ref::<Gathered>().is_some_and(Gathered::is_order_read)
    }
}

impl Drop for RunReport {
    /// Drops nested reports in a loop: runs may nest so deeply that a recursive drop would overflow the
    /// stack.
    fn drop(&mut self) {
        let mut below = std::mem::take(&mut self.children);
        while let Some(child) = below.pop() {
            if let Some(mut report) = child.report.and_then(Arc::into_inner) {
                below.append(&mut report.children);
            }
        }
    }
}

impl RunReport {
    /// How many executions of the step have begun, in all scopes.
    ///
    /// 0 for a step that the workflow does not have.
    pub fn executions(&self, step: &str) -> u64 {
        self.steps.iter().find(|row| &*row.step == step).map_or(0, |row| row.executions)
    }

    /// The run over time, for people: a line per execution.
    pub fn timeline(&self) -> Timeline<'_> {
        Timeline::of(self)
    }

    /// Prints the caught failures: a line per step that failed.
    fn fmt_caught(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.steps {
            let of_step = self.trace.iter().filter(|trace| trace.step == row.step && trace.failure.is_some());
            let caught: Vec<&ExecutionTrace> = of_step.collect();
            if caught.is_empty() {
                continue;
            }
            let failures = if caught.len() == 1 { "failure" } else { "failures" };
            write!(f, "{} {failures} of {} caught", caught.len(), row.step)?;
            let by: BTreeSet<ExecutionId> =
                caught.iter().flat_map(|trace| trace.caught_by.iter().copied()).collect();
            let steps = self.trace.iter().filter(|trace| by.contains(&trace.execution));
            let steps: BTreeSet<&str> = steps.map(|trace| &*trace.step).collect();
            if !steps.is_empty() {
                write!(f, " by {}", steps.into_iter().collect::<Vec<_>>().join(", "))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    /// Prints the waiting executions: a line per step and limit.
    fn fmt_waiting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<(&str, &WaitsFor, usize)> = Vec::new();
        for WaitingExecution { step, waits_for, .. } in &self.waiting {
            match rows.iter_mut().find(|(of, why, _)| **of == **step && why.is_alike(waits_for)) {
                Some((.., count)) => *count += 1,
                None => rows.push((step, waits_for, 1)),
            }
        }
        rows.into_iter().try_for_each(|(step, waits_for, count)| {
            let executions = if count == 1 { "execution" } else { "executions" };
            writeln!(f, "{count} {executions} of {step} {}", waits_for.summary(count))
        })
    }

    /// The item of a branch.
    fn item_of(&self, scope: ScopeId) -> Option<BranchItem> {
        let branch = self.branches.get((scope.0 as usize).checked_sub(1)?)?;
        let at = usize::try_from(branch.item.0).ok()?.checked_sub(1)?;
        let event = Arc::clone(&self.log.get(at)?.event);
        Some(BranchItem { seq: branch.item, event, step: Arc::clone(&branch.step) })
    }

    /// Prints the executions with failed attempts, up to a bound.
    fn fmt_failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = self.trace.iter().filter(|trace| trace.has_failed_attempts());
        for trace in told.by_ref().take(TRIED) {
            write!(f, "{} {}", trace.execution, trace.step)?;
            if let Some(item) = self.item_of(trace.scope) {
                write!(f, " in the branch of {item}")?;
            }
            if !trace.attempts.is_empty() {
                write!(f, " {}", tried(&trace.attempts, trace.outcome.next(trace.next_attempt)))?;
            }
            writeln!(f, "{}", trace.outcome.summary(trace.next_attempt, trace.running))?;
        }
        match told.count() {
            0 => Ok(()),
            more => writeln!(f, "… and {more} more executions with attempts that failed"),
        }
    }

    /// Prints the branches: a line per step that fanned out.
    fn fmt_branches(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.steps {
            let branches = self.branches.iter().filter(|branch| branch.step == row.step);
            let (count, failed, dropped) =
                branches.fold((0_u64, 0_u64, 0_u64), |(count, failed, dropped), branch| {
                    (count + 1, failed + u64::from(branch.failed), dropped + u64::from(branch.dropped))
                });
            if count > 0 {
                write!(f, "{} opened {count} {}", row.step, if count == 1 { "branch" } else { "branches" })?;
                let was = if dropped == 1 { "was" } else { "were" };
                match (failed, dropped) {
                    (0, 0) => writeln!(f)?,
                    (_, 0) => writeln!(f, ", of which {failed} failed")?,
                    (0, _) => writeln!(f, ", of which {dropped} {was} dropped")?,
                    _ => writeln!(f, ", of which {failed} failed and {dropped} {was} dropped")?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, workflow, status, quality, .. } = self;
        write!(f, "run {run} of {workflow}: {status}")?;
        // "failed, failed" would say it twice.
        match quality {
            Quality::Failed if *status == RunStatus::Failed => writeln!(f)?,
            _ => writeln!(f, ", {quality}")?,
        }
        let width = self.steps.iter().map(|row| row.step.len()).max().unwrap_or(0).max(4);
        writeln!(f, "{:width$}  {:>10}  {:>12}", "step", "executions", "time")?;
        for row in &self.steps {
            let took = self.trace.iter().filter(|trace| trace.step == row.step).map(|trace| trace.took);
            let took = format!(
                "{:.3} ms",
                took.fold(Duration::ZERO, Duration::saturating_add).as_secs_f64() * 1_000.0
            );
            write!(f, "{:width$}  {:>10}  {took:>12}", row.step, row.executions)?;
            if row.surplus > 0 {
                write!(f, "  ({} surplus events)", row.surplus)?;
            }
            writeln!(f)?;
        }
        self.paused.iter().try_for_each(|paused| writeln!(f, "{paused}"))?;
        self.redrives.iter().try_for_each(|redrive| writeln!(f, "{redrive}"))?;
        self.deadline.iter().try_for_each(|deadline| writeln!(f, "{deadline}"))?;
        self.fmt_caught(f)?;
        self.fmt_branches(f)?;
        self.fmt_failures(f)?;
        self.clean_up.iter().try_for_each(|clean_up| writeln!(f, "{clean_up}"))?;
        self.fmt_waiting(f)?;
        for Violation::CommitAfterEnd { execution, step, events } in &self.violations {
            writeln!(f, "refused after the end: {execution} of {step} wanted to emit {}", events.join(", "))?;
        }
        self.children.iter().try_for_each(|child| child.fmt(f))
    }
}

/// Prints the execution that started the child, and indented below that the child's report.
impl fmt::Display for ChildReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChildRun { run, workflow, step, execution, awaited, .. } = &self.child;
        let verb = if *awaited { "ran" } else { "started" };
        write!(f, "{execution} of {step} {verb} ")?;
        let Some(report) = &self.report else {
            return writeln!(f, "run {run} of {workflow}: {}", self.status);
        };
        let Some(_level) = Level::enter() else {
            return writeln!(f, "run {run} of {workflow}: {} (its report is left out here)", self.status);
        };
        writeln!(f, "a child:")?;
        report.to_string().lines().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "clean",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
        })
    }
}
