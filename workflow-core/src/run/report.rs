//! What a run leaves for people: outcome, quality, executions per step, trace, violations and surplus (S34).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::RunStatus;
use super::timeline::Timeline;
use super::timers::PendingTimer;
use super::waiting::{WaitingExecution, WaitsFor};
use crate::children::{ChildRun, ParentRun};
use crate::error::ErrorClass;
use crate::event::AnyEvent;
use crate::id::{ExecutionId, RunId, ScopeId, Seq, ThreadId, TimerId};
use crate::input::Gathered;
use crate::retry::{FailedAttempt, NextAttempt, NotRetried, tried};

/// How many executions with attempts that failed are printed.
const TRIED: usize = 20;

/// Everything a run did.
///
/// It prints as a table for people, and serialises for machines.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunReport {
    /// The run.
    pub run: RunId,
    /// The thread it belonged to.
    pub thread: ThreadId,
    /// The workflow.
    pub workflow: Arc<str>,
    /// How it ended.
    pub status: RunStatus,
    /// Whether anything went wrong on the way.
    pub quality: Quality,
    /// A row per step, in declaration order.
    pub steps: Vec<StepReport>,
    /// Every execution that has begun, in the order in which they did.
    pub trace: Vec<ExecutionTrace>,
    /// The executions that are due and have not begun, in the order in which they became due; none of a run that
    /// has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingExecution>,
    /// Every event of the log.
    pub log: Vec<LoggedEvent>,
    /// The timers that are pending, in the order in which they will fire; none of a run that has ended.
    pub timers: Vec<PendingTimer>,
    /// Every branch of every fan-out, in the order in which their items entered the log.
    pub branches: Vec<BranchReport>,
    /// What was refused.
    pub violations: Vec<Violation>,
    /// The labels it was started with.
    pub metadata: BTreeMap<String, String>,
    /// Which run it is a child of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// Its child runs, in the order in which they started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildReport>,
}

/// A child run, in the report of its parent.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ChildReport {
    /// The child.
    #[serde(flatten)]
    pub child: ChildRun,
    /// How it ended, or how it stood when the report was made.
    pub status: RunStatus,
    /// What it did. Of a child that was waited for and has ended; the others belong to nobody's report but their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Arc<RunReport>>,
}

/// How well a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// Nothing failed for good: an execution that succeeded after a retry is as good as any.
    Clean,
    /// Something failed and was handled.
    Degraded,
    /// The run did not complete.
    Failed,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepReport {
    /// The step.
    pub step: Arc<str>,
    /// How often it was executed, in all scopes; what waits for its turn is not among it.
    pub executions: u64,
    /// How many events came after a fixed list of it was full.
    pub surplus: u64,
}

/// One execution of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExecutionTrace {
    /// Which.
    pub execution: ExecutionId,
    /// The step.
    pub step: Arc<str>,
    /// Its scope.
    pub scope: ScopeId,
    /// The event that triggered it.
    pub trigger: Seq,
    /// The events it was bound to one by one, and how many each list held.
    pub inputs: Vec<BoundInput>,
    /// The events it left in the log.
    pub emitted: Vec<Seq>,
    /// When it started, from when the first event entered the log.
    pub started: Duration,
    /// How long it took, by the engine's clock, with every attempt and the time between them.
    pub took: Duration,
    /// The attempts that failed and were followed by another, or were to be, in order; what the last attempt came
    /// to is the outcome.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<FailedAttempt>,
    /// Of an execution that waits for another attempt, or ended while it did: when that attempt is, or was, due, from
    /// when the first event entered the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Duration>,
    /// What came of it.
    pub outcome: ExecutionOutcome,
    /// The event that its failure is, if a step catches it.
    pub failure: Option<Seq>,
    /// The executions that this event triggered or was handed to by itself, in the order in which they started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caught_by: Vec<ExecutionId>,
    /// The child runs that it started, in their order; [`RunReport::children`] has what became of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<RunId>,
}

/// What one parameter was bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundInput {
    /// An injectable, or an optional input without an event.
    Nothing,
    /// The event at this position.
    One(Seq),
    /// A list of so many events.
    List(u32),
}

/// What came of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecutionOutcome {
    /// It committed.
    Succeeded,
    /// It failed and left nothing in the log.
    Failed {
        /// What kind of failure.
        class: ErrorClass,
        /// The error's text.
        error: String,
        /// Why it was not attempted again.
        not_retried: NotRetried,
    },
    /// It returned after the run had ended; its events were refused.
    Refused,
    /// It was dropped: the run ended, or its branch was dropped.
    Dropped,
    /// It is still running, or waits for its next attempt.
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
    /// Its position.
    pub seq: Seq,
    /// Its scope.
    pub scope: ScopeId,
    /// Its wire name.
    pub event: Arc<str>,
    /// The event itself, shared with the run. It is left out where a report is serialised: reports are kept and
    /// handed on, and values may be large or confidential.
    #[serde(skip)]
    pub value: AnyEvent,
    /// The execution that emitted it, or set the timer for it; none for what came from outside and for gathers.
    pub execution: Option<ExecutionId>,
    /// The timer that it came from.
    pub timer: Option<TimerId>,
    /// The request of which it says that it expired, by its position.
    pub expired: Option<Seq>,
    /// The request that it is the reply to, by its position.
    pub reply_to: Option<Seq>,
    /// When it entered the log, by the engine's clock.
    pub at: SystemTime,
}

/// One branch of a fan-out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BranchReport {
    /// Its scope.
    pub scope: ScopeId,
    /// The scope it was opened in.
    pub parent: ScopeId,
    /// The step that fanned out.
    pub step: Arc<str>,
    /// The execution that fanned out.
    pub opener: ExecutionId,
    /// Its item.
    pub item: Seq,
    /// How many executions ran in it, not counting branches below.
    pub executions: u64,
    /// Whether one of them failed, and no step caught it.
    pub failed: bool,
}

/// Something a run refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Violation {
    /// An execution wanted to commit after the end.
    CommitAfterEnd {
        /// Which.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// The wire names of the events.
        events: Vec<String>,
    },
}

impl ExecutionTrace {
    /// Whether there is more to say of its attempts than what its outcome is.
    fn tells_of_attempts(&self) -> bool {
        let is_news =
            matches!(self.outcome, ExecutionOutcome::Failed { not_retried, .. } if not_retried.is_news());
        is_news || !self.attempts.is_empty()
    }
}

impl ExecutionOutcome {
    /// What became of the next attempt of an execution that has come so far, if one is or was due.
    pub(crate) fn next(&self, next_attempt: Option<Duration>) -> NextAttempt {
        match (next_attempt, self) {
            (None, _) => NextAttempt::Began,
            (Some(_), Self::Running) => NextAttempt::Due,
            (Some(_), _) => NextAttempt::NeverCame,
        }
    }

    /// The rest of a line about the execution: nothing if it went well.
    pub(crate) fn told(&self, next_attempt: Option<Duration>) -> String {
        match self {
            Self::Succeeded => String::new(),
            Self::Failed { class, error, not_retried } if not_retried.is_news() => {
                format!(": failed ({class}): {}; {not_retried}", error.trim_end())
            }
            Self::Failed { class, error, .. } => format!(": failed ({class}): {error}"),
            Self::Refused => ": ended after the run had".into(),
            Self::Dropped => ": dropped".into(),
            Self::Running => match next_attempt {
                None => ": still running".into(),
                Some(due) => {
                    format!(": waits for its next attempt, which is due {due:?} after the run began")
                }
            },
        }
    }
}

impl LoggedEvent {
    /// Whether it says that a fan-out is gathered.
    pub fn is_gathered(&self) -> bool {
        self.value.event_type().type_id() == Gathered::TYPE.type_id()
    }
}

impl Drop for RunReport {
    /// Runs may nest deeply: each report is dropped here, and not in the drop of the one that it is in.
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
    /// How often the step was executed, in all scopes; 0 for a step the workflow does not have.
    pub fn executions(&self, step: &str) -> u64 {
        self.steps.iter().find(|row| &*row.step == step).map_or(0, |row| row.executions)
    }

    /// What the run did over time, an execution a line, for people.
    pub fn timeline(&self) -> Timeline<'_> {
        Timeline::of(self)
    }

    /// Failures that were caught: a line per step that failed.
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

    /// What waits for its turn: a line per step and what it waits for.
    fn fmt_waiting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<(&str, &WaitsFor, usize)> = Vec::new();
        for WaitingExecution { step, waits_for, .. } in &self.waiting {
            match rows.iter_mut().find(|(of, why, _)| **of == **step && *why == waits_for) {
                Some((.., count)) => *count += 1,
                None => rows.push((step, waits_for, 1)),
            }
        }
        rows.into_iter().try_for_each(|(step, waits_for, count)| {
            let executions = if count == 1 { "execution" } else { "executions" };
            writeln!(f, "{count} {executions} of {step} {}", waits_for.told(count))
        })
    }

    /// The executions that were attempted more than once, or might have been; of many the first.
    fn fmt_retries(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = self.trace.iter().filter(|trace| trace.tells_of_attempts());
        for trace in told.by_ref().take(TRIED) {
            write!(f, "{} {}", trace.execution, trace.step)?;
            if !trace.attempts.is_empty() {
                write!(f, " {}", tried(&trace.attempts, trace.outcome.next(trace.next_attempt)))?;
            }
            writeln!(f, "{}", trace.outcome.told(trace.next_attempt))?;
        }
        match told.count() {
            0 => Ok(()),
            more => writeln!(f, "… and {more} more executions with attempts that failed"),
        }
    }

    /// Branches are folded: a line per step that fanned out.
    fn fmt_branches(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.steps {
            let branches = self.branches.iter().filter(|branch| branch.step == row.step);
            let (count, failed) = branches.fold((0_u64, 0_u64), |(count, failed), branch| {
                (count + 1, failed + u64::from(branch.failed))
            });
            if count > 0 {
                write!(f, "{} opened {count} {}", row.step, if count == 1 { "branch" } else { "branches" })?;
                writeln!(
                    f,
                    "{}",
                    if failed == 0 { String::new() } else { format!(", of which {failed} failed") }
                )?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, workflow, status, quality, .. } = self;
        writeln!(f, "run {run} of {workflow}: {status}, {quality}")?;
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
        self.fmt_caught(f)?;
        self.fmt_branches(f)?;
        self.fmt_retries(f)?;
        self.fmt_waiting(f)?;
        for Violation::CommitAfterEnd { execution, step, events } in &self.violations {
            writeln!(f, "refused after the end: {execution} of {step} wanted to emit {}", events.join(", "))?;
        }
        self.children.iter().try_for_each(|child| child.fmt(f))
    }
}

/// Who started it, and below that its report, further in.
impl fmt::Display for ChildReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChildRun { run, workflow, step, execution, awaited, .. } = &self.child;
        let verb = if *awaited { "ran" } else { "started" };
        write!(f, "{execution} of {step} {verb} ")?;
        let Some(report) = &self.report else {
            return writeln!(f, "run {run} of {workflow}: {}", self.status);
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
