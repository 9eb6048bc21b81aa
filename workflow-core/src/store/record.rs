//! The records of a journal: the facts of a run, in their order.
//!
//! A record has what a resume cannot derive. A journal reads like this, for a run whose step `prepare` succeeded once:
//!
//! ```text
//! 0 RunStarted          format, workflow, its table, thread, options
//! 1 EventLogged         #1 Begin, caused by the outside
//! 2 ExecutionSucceeded  x1 of `prepare`, triggered by #1
//! 3 EventLogged         #2 Item, caused by x1
//! 4 RunWaiting          for an event from outside
//! 5 RunResumed          another process took the run up (fences the first one off)
//! …
//! n RunEnded            completed, or another end, which a later RunRedriven removes
//! ```
//!
//! Names of records and fields are part of the format: stored journals have them for ever. New kinds of record and
//! optional fields may be added.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{ErrorClass, Excess};
use crate::id::{
    ChildRun, ExecutionId, Origin, ParentRun, Redriver, RunId, RunStatus, ScopeId, Seq, ThreadId, TimerId,
    TraceParent,
};
use crate::output::FanOutPolicy;
use crate::retry::NotRetried;
use crate::scheduler::Cause;
use crate::table::RecordedTable;

use super::WaitingFor;

mod event;

pub use event::RecordedEvent;

/// The journal format that this crate writes, and the latest that it reads. The number grows when earlier releases
/// would misread a journal.
pub const JOURNAL_FORMAT: u32 = 1;

/// One record of a run's journal.
///
/// The records of a successful execution are one [`ExecutionSucceeded`](Self::ExecutionSucceeded), followed by the
/// events that it emitted, in their order. More kinds of record may be added.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// The run began: the first record of every journal.
    RunStarted {
        /// The format of the following records; [`JOURNAL_FORMAT`] where this crate writes them.
        format: u32,
        /// The workflow.
        workflow: Arc<str>,
        /// The workflow's table, which the following records refer to.
        table: RecordedTable,
        /// The thread of the run.
        thread: ThreadId,
        /// The labels of the start.
        metadata: BTreeMap<String, String>,
        /// The parent, of a child run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<ParentRun>,
        /// Whether an execution of the parent waits for the run.
        #[serde(default)]
        awaited: bool,
        /// Whether the thread was created for this run only.
        private_thread: bool,
        /// How long the run may be active; `None` without a bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<Duration>,
        /// When the run ends at the latest; `None` without a deadline.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<SystemTime>,
        /// The layers of configuration of the start, by the names of their types.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        configs: BTreeMap<String, Value>,
        /// The place of the run in a distributed trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace_parent: Option<TraceParent>,
        /// Whether a client without an engine began the run ([`Write::queued`](super::Write::queued)): nothing has run
        /// before the first [`RunResumed`](Self::RunResumed).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        queued: bool,
        /// When.
        at: SystemTime,
    },
    /// An event entered the log.
    EventLogged {
        /// Its position in the log.
        seq: Seq,
        /// Its scope.
        scope: ScopeId,
        /// Its cause: an execution, a timer or the outside.
        cause: Cause,
        /// The event.
        event: RecordedEvent,
        /// The origin of an event from outside, if the caller gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// When.
        at: SystemTime,
    },
    /// An execution set a timer, beside the events that it emitted. When the timer is due, its event enters the log.
    /// The cause is the timer, or the expiry of the request that the timer closes.
    TimerSet {
        /// The timer.
        timer: TimerId,
        /// The execution that set it.
        execution: ExecutionId,
        /// The scope of its event.
        scope: ScopeId,
        /// The request that the timer closes, if it closes one.
        request: Option<Seq>,
        /// When it is due.
        due: SystemTime,
        /// The event that enters the log then; for the expiry of a request, the request.
        event: RecordedEvent,
        /// When it was set, by the clock of `due`.
        at: SystemTime,
    },
    /// All branches of a fan-out are settled, and the event for its gather entered the log. The gather's contents are
    /// the events that the branches left in the log.
    FanOutGathered {
        /// Its position in the log.
        seq: Seq,
        /// The scope that opened the branches.
        scope: ScopeId,
        /// The fan-out: the step that opened it and the event type of its items.
        fan_out: Arc<str>,
        /// Its branches, in fan-out order.
        branches: Vec<ScopeId>,
        /// When.
        at: SystemTime,
    },
    /// A precondition answered. A failed precondition has no such record; it ends the run.
    PreconditionAnswered {
        /// The step it guards.
        step: Arc<str>,
        /// The scope in which it was evaluated.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
        /// The answer.
        answer: bool,
        /// The error of a precondition that failed, of a clean-up step. Such an error changes no outcome.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// When.
        at: SystemTime,
    },
    /// An execution succeeded; the events that it emitted follow.
    ExecutionSucceeded {
        /// The execution.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Its scope.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
        /// The fan-outs that it opened, in the order of its outputs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fan_outs: Vec<OpenedFanOut>,
        /// When.
        at: SystemTime,
    },
    /// An attempt failed, and another follows after a delay. The delay is chosen once and never again. The attempt left
    /// nothing in the log.
    RetryScheduled {
        /// The execution.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Its scope.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
        /// The number of the failed attempt, from 1.
        attempt: u32,
        /// The class of the failure.
        class: ErrorClass,
        /// The error's text.
        error: String,
        /// The delay from `at` to the next attempt.
        retry_in: Duration,
        /// Whether the next attempt begins with the step's compaction.
        compacts: bool,
        /// When.
        at: SystemTime,
    },
    /// A caller ended the delays before next attempts: those that were not due begin now.
    DelaysEnded {
        /// When.
        at: SystemTime,
    },
    /// An execution failed for good, and left nothing in the log. If a step catches the failure, its event follows,
    /// caused by the [`Failure`](crate::scheduler::Cause::Failure).
    ExecutionFailed {
        /// The execution.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Its scope.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
        /// The class of the failure.
        class: ErrorClass,
        /// The error's text.
        error: String,
        /// The reason for not retrying.
        not_retried: NotRetried,
        /// When.
        at: SystemTime,
    },
    /// An attempt begins: of an execution under which at least two processes ended, or of an `at_most_once` step that
    /// failed before. Written before it begins. Other attempts begin without a record.
    AttemptBegan {
        /// The execution.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Its scope.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
        /// When.
        at: SystemTime,
    },
    /// An execution started a child run, which has a journal of its own.
    ChildStarted {
        /// The child, and the execution that started it.
        child: ChildRun,
        /// The scope of the execution that started it.
        scope: ScopeId,
        /// The event that triggered that execution.
        trigger: Seq,
        /// When.
        at: SystemTime,
    },
    /// Children of the run have ended, and not been left to another process. Beside what the run does next, or at once if
    /// it waits: the end of a child has caused neither. A run that completes has the awaited children that are open with
    /// its stop event, as cancelled. In journals of earlier releases no child has an end.
    ChildrenEnded {
        /// The children, in the order in which they ended.
        children: Vec<EndedChild>,
        /// When the run learned of it.
        at: SystemTime,
    },
    /// Another engine or process resumed the run. This is the first record that it writes, so of two engines that
    /// resume a run only one succeeds, and the previous owner can write no more.
    RunResumed {
        /// The format of the following records.
        format: u32,
        /// The workflow's table for the following records, if it differs from the one before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<RecordedTable>,
        /// Whether executions have the idempotency keys that the tables before gave them, where the inputs of a step have
        /// changed. Earlier releases gave them other ones, by this table alone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stable_keys: bool,
        /// The layers of configuration of a queued run with those of its sources, by the names of their types. They replace the
        /// layers of the start.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        configs: BTreeMap<String, Value>,
        /// When.
        at: SystemTime,
    },
    /// The run's engine stops driving the run on purpose, and leaves it to another process. Executions that run are
    /// dropped, but not interrupted. A run that waits is left without this record.
    RunDetached {
        /// The executions whose attempts were under way.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped: Vec<ExecutionId>,
        /// When.
        at: SystemTime,
    },
    /// The run is paused: nothing begins from here on. Executions under way continue, or are dropped.
    RunPaused {
        /// Whether the run is paused with its parent, which waits for it. Such a pause ends with the parent's.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_parent: bool,
        /// The executions whose attempts were under way, and continue. No other attempt has begun and not ended.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        running: Vec<ExecutionId>,
        /// The executions whose attempts were under way, and are dropped. They begin again after the pause.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped: Vec<ExecutionId>,
        /// The origin of the pause, if the caller gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// When.
        at: SystemTime,
    },
    /// The pause has ended. The run continues, unless it is paused with its parent as well.
    RunUnpaused {
        /// Whether the pause with the parent has ended, or the run's own.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_parent: bool,
        /// The origin of the unpause, if the caller gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// When.
        at: SystemTime,
    },
    /// The run waits, or nothing runs in it while it is paused. It is for viewers of the store. A resume takes from it only
    /// since when the active time of a paused run stands still.
    RunWaiting {
        /// The events, replies or timers that it waits for.
        #[serde(serialize_with = "super::waiting::Recorded::serialize")]
        waits_for: WaitingFor,
        /// When it began to wait.
        at: SystemTime,
    },
    /// The run's engine lost its lease and has taken it again, and no other engine had claimed the run. Written at once,
    /// and before the run begins anything more. Also of a child that its engine does not drive any more and leaves to the
    /// engine that has its parent, and once of a resumed run that begins nothing because its [inbox](super::Inbox) is away.
    RunKept {
        /// When.
        at: SystemTime,
    },
    /// The run ends without having completed, and its clean-up begins: executions in flight were dropped. The run's
    /// children end before its first clean-up step begins. The records of the clean-up steps follow, and then [`RunEnded`](Self::RunEnded).
    CleanUpStarted {
        /// The status that the run will end with.
        status: RunStatus,
        /// The reason, of a run that was cancelled or whose precondition failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The step whose precondition failed, if that ended the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<Arc<str>>,
        /// The limit that ended the run, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<ReachedLimit>,
        /// The events or items that an execution returned at once beyond that limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        excess: Option<Box<Excess>>,
        /// The deadline that passed, if that ended the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<SystemTime>,
        /// The limit of active time that the run had reached, if that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Duration>,
        /// The clean-up steps whose required inputs the log has, in the order in which they run.
        steps: Vec<Arc<str>>,
        /// The number of the first clean-up execution; those before it are not part of the clean-up.
        first: ExecutionId,
        /// The origin of the cancel, if the caller gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// When.
        at: SystemTime,
    },
    /// The run ended: the last record of a complete journal, unless the run was redriven. Executions in flight were
    /// dropped without a record.
    RunEnded {
        /// The run's final status.
        status: RunStatus,
        /// The reason, of a run that was cancelled or failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The step whose precondition failed, if that ended the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<Arc<str>>,
        /// The deadline that passed, if that ended the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<SystemTime>,
        /// The origin of the cancel, if the caller gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// When.
        at: SystemTime,
    },
    /// The run continues although it had ended: [`RunEnded`](Self::RunEnded) is before this record. What was open at the
    /// end is open again, and the executions whose failures ended the run begin anew.
    RunRedriven {
        /// Who redrove it.
        by: Redriver,
        /// The steps whose executions are made again although they are in doubt
        /// ([`Redrive::again`](crate::Redrive::again)).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        again: Vec<Arc<str>>,
        /// The deadline from here on; `None` if that of before stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<SystemTime>,
        /// When.
        at: SystemTime,
    },
    /// Clean-up steps of a run that has ended run again, those that are unfinished
    /// ([`Redrive::clean_up`](crate::Redrive::clean_up)). The run then ends as it had. This is the only other record that
    /// follows [`RunEnded`](Self::RunEnded).
    CleanUpRedriven {
        /// Who did it.
        by: Redriver,
        /// The steps, in their order.
        steps: Vec<Arc<str>>,
        /// The steps whose executions are made again although they are in doubt
        /// ([`Redrive::again`](crate::Redrive::again)).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        again: Vec<Arc<str>>,
        /// When.
        at: SystemTime,
    },
}

impl Record {
    /// The format that the record sets for the records after it.
    pub(crate) fn format(&self) -> Option<u32> {
        match self {
            Self::RunStarted { format, .. } | Self::RunResumed { format, .. } => Some(*format),
            _ => None,
        }
    }

    /// The timer that the record sets.
    pub(crate) fn timer_set(&self) -> Option<TimerId> {
        if let Self::TimerSet { timer, .. } = self { Some(*timer) } else { None }
    }

    /// The table that the record sets for the records after it.
    pub(crate) fn table(&self) -> Option<&RecordedTable> {
        match self {
            Self::RunStarted { table, .. } => Some(table),
            Self::RunResumed { table, .. } => table.as_ref(),
            _ => None,
        }
    }

    /// The same, and whether steps keep the idempotency keys that earlier tables gave them. A first table has none before.
    pub(crate) fn table_with_keys(&self) -> Option<(RecordedTable, bool)> {
        match self {
            Self::RunResumed { table, stable_keys, .. } => Some((table.clone()?, *stable_keys)),
            _ => Some((self.table()?.clone(), true)),
        }
    }

    /// An estimate of the record's bytes in a store of bytes: the bytes of its event, if known, and of other long
    /// fields.
    pub(crate) fn stored_bytes(&self) -> usize {
        /// The most bytes of the other fields, mostly names.
        const REST: usize = 512;
        /// The bytes of one scope in a list.
        const SCOPE: usize = 11;
        /// The bytes of an ended child without its id.
        const CHILD: usize = 40;
        let long = match self {
            Self::EventLogged { event, .. } | Self::TimerSet { event, .. } => event.json_bytes(),
            Self::FanOutGathered { branches, .. } => branches.len().saturating_mul(SCOPE),
            Self::RetryScheduled { error, .. } | Self::ExecutionFailed { error, .. } => error.len(),
            Self::ChildrenEnded { children, .. } => {
                children.iter().map(|child| child.run.as_str().len() + CHILD).sum()
            }
            _ => 0,
        };
        long.saturating_add(REST)
    }

    /// The time of the record, by the clock of the run's engine.
    pub(crate) fn at(&self) -> SystemTime {
        match self {
            Self::RunStarted { at, .. }
            | Self::EventLogged { at, .. }
            | Self::TimerSet { at, .. }
            | Self::FanOutGathered { at, .. }
            | Self::PreconditionAnswered { at, .. }
            | Self::ExecutionSucceeded { at, .. }
            | Self::RetryScheduled { at, .. }
            | Self::ExecutionFailed { at, .. }
            | Self::AttemptBegan { at, .. }
            | Self::ChildStarted { at, .. }
            | Self::ChildrenEnded { at, .. }
            | Self::RunDetached { at, .. }
            | Self::RunResumed { at, .. }
            | Self::RunPaused { at, .. }
            | Self::RunUnpaused { at, .. }
            | Self::RunWaiting { at, .. }
            | Self::RunKept { at }
            | Self::DelaysEnded { at }
            | Self::CleanUpStarted { at, .. }
            | Self::RunEnded { at, .. }
            | Self::RunRedriven { at, .. }
            | Self::CleanUpRedriven { at, .. } => *at,
        }
    }
}

/// A child that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EndedChild {
    /// The child.
    pub run: RunId,
    /// Its final status.
    pub status: RunStatus,
}

/// A limit of the engine that ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReachedLimit {
    /// The most events of a run: this many.
    Events(u64),
    /// The most executions of a run: this many.
    Executions(u64),
}

impl fmt::Display for ReachedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, of) = match self {
            Self::Events(count) => (count, "event"),
            Self::Executions(count) => (count, "execution"),
        };
        write!(f, "{count} {of}{}", if *count == 1 { "" } else { "s" })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the serialiser calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A fan-out that an execution opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenedFanOut {
    /// Its name: the step and the event type of its items.
    pub fan_out: Arc<str>,
    /// The number of its items: as many of the following events, each in a scope of its own.
    pub items: u32,
    /// How many branches may be open at a time; `None` without a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<NonZeroU32>,
    /// Whether `concurrency` leaves out branches that only wait for replies and timers. Absent where the workflow has
    /// neither requests nor timers, and in journals of releases that counted every open branch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_busy: bool,
    /// How many branches settle without a failure until the others are dropped; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<NonZeroU32>,
    /// How many branches may fail before the policy decides. Absent where none may, and with a policy under which
    /// nothing fails.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tolerated: u32,
    /// The effect of a branch's failure.
    pub policy: FanOutPolicy,
}
