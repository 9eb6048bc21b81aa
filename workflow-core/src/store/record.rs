//! The records of a journal: what a run did, one after the other.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::ser::{Error as _, SerializeStruct};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::children::{ChildRun, ParentRun};
use crate::error::ErrorClass;
use crate::event::{AnyEvent, Decode};
use crate::id::{ExecutionId, ScopeId, Seq, ThreadId, TimerId};
use crate::output::FanOutPolicy;
use crate::retry::NotRetried;
use crate::run::RunStatus;
use crate::scheduler::Cause;

/// One record of a run's journal.
///
/// A batch of a step's execution is its [`ExecutionSucceeded`](Self::ExecutionSucceeded) and the events that
/// it emitted, in their order (S23). More kinds of record will be added.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// The run began: the first record of every journal.
    RunStarted {
        /// The workflow.
        workflow: Arc<str>,
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
        /// When it was set.
        at: SystemTime,
    },
    /// All branches of a fan-out are settled: the event that a gather takes entered the log (S48). What it
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
    /// An attempt failed, and another is to begin so long after it: drawn once, and never again (S36). It left nothing
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
    /// that says so follows, caused by the [`Failure`](crate::scheduler::Cause::Failure) (S29).
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
    /// go on with a run only one does (S40), and who drove it before cannot write any more.
    RunResumed {
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
            | Self::RunResumed { at }
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
    /// How many branches are open at a time, at most (S50).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<NonZeroU32>,
    /// What the failure of a branch means (S49).
    pub policy: FanOutPolicy,
}

/// An event as a journal has it: the value itself, or the JSON that was read back. Clones share it.
///
/// ```
/// use workflow_core::{AnyEvent, RecordedEvent, prelude::*};
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// struct Scored(u32);
///
/// let written = RecordedEvent::new(AnyEvent::new(Scored(7)));
/// let bytes = serde_json::to_vec(&written).unwrap();
/// let read: RecordedEvent = serde_json::from_slice(&bytes).unwrap();
/// assert_eq!((read.name(), read.to_json().unwrap()), ("Scored", serde_json::json!(7)));
/// ```
#[derive(Clone)]
pub struct RecordedEvent(Payload);

#[derive(Clone)]
enum Payload {
    Value(AnyEvent),
    Read(Arc<Read>),
}

#[derive(Serialize, Deserialize)]
struct Read {
    #[serde(rename = "type")]
    name: Box<str>,
    data: Box<RawValue>,
}

impl RecordedEvent {
    /// Records a value; it is serialised when somebody asks for it.
    pub fn new(event: AnyEvent) -> Self {
        Self(Payload::Value(event))
    }

    /// The wire name of its type (S1).
    pub fn name(&self) -> &str {
        match &self.0 {
            Payload::Value(event) => event.name(),
            Payload::Read(read) => &read.name,
        }
    }

    /// The value itself; none if it was read back.
    pub fn value(&self) -> Option<&AnyEvent> {
        match &self.0 {
            Payload::Value(event) => Some(event),
            Payload::Read(_) => None,
        }
    }

    /// The value, read back if it has to be; a reply or an expired request with the request.
    pub(crate) fn decoded(
        &self,
        decode: Option<Decode>,
        request: Option<&AnyEvent>,
    ) -> Result<AnyEvent, serde_json::Error> {
        match (&self.0, decode) {
            (Payload::Value(event), _) => Ok(event.clone()),
            (Payload::Read(read), Some(decode)) => decode(&read.data, request),
            (Payload::Read(read), None) => {
                Err(serde::de::Error::custom(format_args!("nothing reads events `{}`", read.name)))
            }
        }
    }

    /// The value as JSON.
    ///
    /// # Errors
    /// What the type's own `Serialize` reports.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        match &self.0 {
            Payload::Value(event) => event.to_json(),
            Payload::Read(read) => serde_json::from_str(read.data.get()),
        }
    }
}

impl Serialize for RecordedEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Payload::Read(read) => read.serialize(serializer),
            Payload::Value(event) => {
                let data = event.to_json().map_err(|error| {
                    S::Error::custom(format_args!("event `{}` cannot be serialised: {error}", event.name()))
                })?;
                let mut record = serializer.serialize_struct("RecordedEvent", 2)?;
                record.serialize_field("type", event.name())?;
                record.serialize_field("data", &data)?;
                record.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for RecordedEvent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Payload::Read(Arc::new(Read::deserialize(deserializer)?))))
    }
}

impl fmt::Debug for RecordedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordedEvent({})", self.name())
    }
}
