//! The records of a journal: what a run did, one after the other.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::children::{ChildRun, ParentRun};
use crate::error::ErrorClass;
use crate::id::{ExecutionId, ScopeId, Seq, ThreadId, TimerId};
use crate::output::FanOutPolicy;
use crate::retry::NotRetried;
use crate::run::RunStatus;
use crate::scheduler::Cause;
use crate::table::RecordedTable;

use super::WaitingFor;

mod event;

pub use event::RecordedEvent;

/// The format of the journals that this crate writes, and the latest that it reads. One that an earlier release cannot
/// read right has a higher number.
pub const JOURNAL_FORMAT: u32 = 1;

/// One record of a run's journal.
///
/// A batch of a step's execution is its [`ExecutionSucceeded`](Self::ExecutionSucceeded) and the events that
/// it emitted, in their order. More kinds of record will be added.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// The run began: the first record of every journal.
    RunStarted {
        /// The format of what follows: [`JOURNAL_FORMAT`] where this crate writes it.
        format: u32,
        /// The workflow.
        workflow: Arc<str>,
        /// Its table, by which what follows was written.
        table: RecordedTable,
        /// The thread that the run belongs to.
        thread: ThreadId,
        /// The labels that it was started with.
        metadata: BTreeMap<String, String>,
        /// The run that it is a child of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<ParentRun>,
        /// Whether an execution of that run waits for it.
        #[serde(default)]
        awaited: bool,
        /// Whether the thread was made for this run alone.
        private_thread: bool,
        /// How long the run may be active.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<Duration>,
        /// The layers of configuration that it was started with, by the names of their types.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        configs: BTreeMap<String, Value>,
        /// When.
        at: SystemTime,
    },
    /// An event entered the log.
    EventLogged {
        /// Its position in the log.
        seq: Seq,
        /// Its scope.
        scope: ScopeId,
        /// What caused it.
        cause: Cause,
        /// The event.
        event: RecordedEvent,
        /// When.
        at: SystemTime,
    },
    /// An execution set a timer, with what it emitted: the event is logged when it is due, caused by the timer, or
    /// by the expiry of the request that the timer closes.
    TimerSet {
        /// Which.
        timer: TimerId,
        /// Who has set it.
        execution: ExecutionId,
        /// The scope that its event will be of.
        scope: ScopeId,
        /// For one that closes a request: the request.
        request: Option<Seq>,
        /// When it is due.
        due: SystemTime,
        /// What enters the log then; for the expiry of a request, the request.
        event: RecordedEvent,
        /// When it was set, by the clock that says when it is due.
        at: SystemTime,
    },
    /// All branches of a fan-out are settled: the event that a gather takes entered the log. What it
    /// holds is what the branches left in the log.
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
    /// A precondition answered. One that failed has ended the run.
    PreconditionAnswered {
        /// The step it guards.
        step: Arc<str>,
        /// Where it was asked.
        scope: ScopeId,
        /// The event that triggered the question.
        trigger: Seq,
        /// What it said.
        answer: bool,
        /// When.
        at: SystemTime,
    },
    /// An execution committed; what it emitted follows.
    ExecutionSucceeded {
        /// Which.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Its scope.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
        /// The fan-outs among what it emitted, in their order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fan_outs: Vec<OpenedFanOut>,
        /// When.
        at: SystemTime,
    },
    /// An attempt failed, and another is to begin so long after it: drawn once, and never again. It left nothing
    /// in the log.
    RetryScheduled {
        /// Whose.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Its scope.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
        /// Which attempt failed, from 1.
        attempt: u32,
        /// What kind of failure.
        class: ErrorClass,
        /// The error's text.
        error: String,
        /// How long after `at` the next attempt is to begin.
        retry_in: Duration,
        /// Whether it begins with the step's compaction.
        compacts: bool,
        /// When.
        at: SystemTime,
    },
    /// An execution failed for good; what it would have emitted is not in the log. If a step catches it, the event
    /// that says so follows, caused by the [`Failure`](crate::scheduler::Cause::Failure).
    ExecutionFailed {
        /// Which.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Its scope.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
        /// What kind of failure.
        class: ErrorClass,
        /// The error's text.
        error: String,
        /// Why it is not attempted again.
        not_retried: NotRetried,
        /// When.
        at: SystemTime,
    },
    /// An execution started a child run, which has a journal of its own.
    ChildStarted {
        /// The child, and who started it.
        child: ChildRun,
        /// The scope of the execution that started it.
        scope: ScopeId,
        /// The event that triggered that execution.
        trigger: Seq,
        /// When.
        at: SystemTime,
    },
    /// The run goes on after whoever drove it was gone. It is written before anything else is done, so that of two who
    /// go on with a run only one does, and who drove it before cannot write any more.
    RunResumed {
        /// The format of what follows.
        format: u32,
        /// The workflow's table, by which what follows was written, if it is another than before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<RecordedTable>,
        /// When.
        at: SystemTime,
    },
    /// The run waits. Nothing follows from it: it is for whoever looks at the store.
    RunWaiting {
        /// For what.
        waits_for: WaitingFor,
        /// When it began to wait.
        at: SystemTime,
    },
    /// The run's engine had lost its lease and has taken it again, and nobody had claimed the run meanwhile. It is
    /// written before anything more is begun.
    RunKept {
        /// When.
        at: SystemTime,
    },
    /// The run ended: the last record of every journal that is complete. What still ran is dropped without a
    /// record.
    RunEnded {
        /// How.
        status: RunStatus,
        /// Why, of one that was cancelled or failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The step whose precondition failed, if it ended by that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<Arc<str>>,
        /// When.
        at: SystemTime,
    },
}

impl Record {
    /// The format that it says its journal has from here on.
    pub(crate) fn format(&self) -> Option<u32> {
        match self {
            Self::RunStarted { format, .. } | Self::RunResumed { format, .. } => Some(*format),
            _ => None,
        }
    }

    /// The timer that it says was set.
    pub(crate) fn timer_set(&self) -> Option<TimerId> {
        if let Self::TimerSet { timer, .. } = self { Some(*timer) } else { None }
    }

    /// The table that it says its journal is written by from here on.
    pub(crate) fn table(&self) -> Option<&RecordedTable> {
        match self {
            Self::RunStarted { table, .. } => Some(table),
            Self::RunResumed { table, .. } => table.as_ref(),
            _ => None,
        }
    }

    /// About how many bytes it has in a store that keeps bytes: those of its event, where these are known, and of what
    /// else may be long.
    pub(crate) fn stored_bytes(&self) -> usize {
        /// What a record has beside these, at most: mostly names.
        const REST: usize = 512;
        /// A scope in a list.
        const SCOPE: usize = 11;
        let long = match self {
            Self::EventLogged { event, .. } | Self::TimerSet { event, .. } => event.json_bytes(),
            Self::FanOutGathered { branches, .. } => branches.len().saturating_mul(SCOPE),
            Self::RetryScheduled { error, .. } | Self::ExecutionFailed { error, .. } => error.len(),
            _ => 0,
        };
        long.saturating_add(REST)
    }

    /// When it was recorded, by the clock of the run's engine.
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
            | Self::ChildStarted { at, .. }
            | Self::RunResumed { at, .. }
            | Self::RunWaiting { at, .. }
            | Self::RunKept { at }
            | Self::RunEnded { at, .. } => *at,
        }
    }
}

/// A fan-out that an execution opened with what it emitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenedFanOut {
    /// Which: the step and the event type of its items.
    pub fan_out: Arc<str>,
    /// How many items it has: as many of the events that follow, one after the other, each of a scope of its own.
    pub items: u32,
    /// How many branches are open at a time, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<NonZeroU32>,
    /// What the failure of a branch means.
    pub policy: FanOutPolicy,
}
