//! Observation: everything that can be seen of a run, as one enum, and who may see it. An observer is
//! served by a thread of its own through a bounded queue, so that neither a panic nor slowness of it ever
//! reaches a run.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::children::ChildRun;
use crate::display::DisplayItem;
use crate::error::ErrorClass;
use crate::event::AnyEvent;
use crate::id::{ExecutionId, RunId, ScopeId, Seq};
use crate::retry::NotRetried;
use crate::run::RunStatus;
use crate::scheduler::Cause;

mod queue;
pub(crate) mod trace_spans;

pub use trace_spans::TracingObserver;

pub(crate) use queue::Observers;

/// Something that was seen of a run.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The run.
    pub run: RunId,
    /// The workflow.
    pub workflow: Arc<str>,
    /// When, by the engine's clock. Order is the order of observations, not this.
    pub at: SystemTime,
    /// What.
    pub what: Observed,
}

/// Everything observable. More will be added.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Observed {
    /// The run began; its start event follows.
    RunStarted,
    /// The run goes on from where its journal ended. Executions without an end there begin again.
    RunResumed,
    /// The run has waited for long, and nothing of it is kept in memory any more:
    /// [`EngineBuilder::release_waiting_after`](crate::EngineBuilder::release_waiting_after).
    RunReleased,
    /// The run was loaded again, for a timer or for somebody who wants something of it.
    RunLoaded,
    /// An event entered the log.
    EventLogged {
        /// Its position.
        seq: Seq,
        /// Its scope.
        scope: ScopeId,
        /// The event.
        event: AnyEvent,
        /// What caused it.
        cause: Cause,
    },
    /// A precondition was asked and answered.
    PreconditionAnswered {
        /// The step it guards.
        step: Arc<str>,
        /// The precondition.
        precondition: Arc<str>,
        /// The event that triggered the step.
        trigger: Seq,
        /// What it said; none if it failed.
        answer: Option<bool>,
    },
    /// An execution started.
    ExecutionStarted {
        /// Which.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Its scope.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
    },
    /// An attempt failed and is to be followed by another; what it showed is taken back. The other has come
    /// with [`AttemptStarted`](Self::AttemptStarted), and never does if the execution is dropped before. A failure
    /// without another attempt is [`ExecutionFailed`](Self::ExecutionFailed) alone.
    AttemptFailed {
        /// Whose.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Which attempt, from 1.
        attempt: u32,
        /// What kind of failure.
        class: ErrorClass,
        /// The error's text.
        error: String,
        /// How long after this the next attempt is to begin.
        retry_in: Duration,
        /// Whether it begins with the step's compaction.
        compacts: bool,
    },
    /// An execution is attempted again. Its first attempt is [`ExecutionStarted`](Self::ExecutionStarted) alone.
    AttemptStarted {
        /// Which.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Which attempt, from 2.
        attempt: u32,
    },
    /// An execution ended by itself: its events follow.
    ExecutionSucceeded {
        /// Which.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// How long it took.
        took: Duration,
    },
    /// An execution failed for good.
    ExecutionFailed {
        /// Which.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// What kind of failure.
        class: ErrorClass,
        /// The error's text.
        error: String,
        /// Why it is not attempted again.
        not_retried: NotRetried,
        /// How long it took.
        took: Duration,
    },
    /// An execution was dropped: the run ended, or its branch was dropped.
    ExecutionDropped {
        /// Which.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
    },
    /// What an execution wanted to commit was refused, because the run had ended.
    CommitRefused {
        /// Which.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// The wire names of what it wanted to leave in the log.
        events: Vec<&'static str>,
    },
    /// An execution started a child run, whose own observations follow under its own id.
    ChildStarted {
        /// The child, and who started it.
        child: ChildRun,
    },
    /// A child run ended. Of one that goes on after its parent, the parent's observers hear under its own id only.
    ChildEnded {
        /// The child, and who started it.
        child: ChildRun,
        /// How.
        status: RunStatus,
    },
    /// Something was displayed, or retracted. What children show is displayed by them.
    Displayed(DisplayItem),
    /// Nothing can happen before something arrives from outside or a timer fires.
    RunWaiting,
    /// The run ended.
    RunEnded {
        /// How.
        status: RunStatus,
    },
    /// The observer was too slow: this many observations, of this run or others, were left out before this
    /// point.
    Missed {
        /// How many.
        count: u64,
    },
}

/// Sees what runs do.
///
/// # Contract
/// - **Order**: an observer sees the observations of one run in the order in which they happened; those of
///   several runs interleave.
/// - **Threads**: each observer is called from one thread of its own, never from a run's task. It may block. Only who
///   asks to be [told at once](Self::is_told_at_once) is called by the runs themselves.
/// - **Loss**: 4,096 observations wait for a slow observer; beyond that they are left out, and it is told
///   how many with [`Observed::Missed`].
/// - **Panics** are caught; the observer is called again with the next observation.
///
/// ```
/// use std::sync::mpsc;
/// use workflow_core::{Engine, Observation, Observer};
///
/// struct Names(mpsc::Sender<String>);
///
/// impl Observer for Names {
///     fn observe(&self, observation: &Observation) {
///         let _ = self.0.send(format!("{:?}", observation.what));
///     }
/// }
///
/// let (sender, _seen) = mpsc::channel();
/// let engine = Engine::builder().observer(Names(sender)).build()?;
/// # Ok::<(), workflow_core::BuildError>(())
/// ```
pub trait Observer: Send + Sync + 'static {
    /// Is told of one observation.
    fn observe(&self, observation: &Observation);

    /// Whether runs and executions get `tracing` spans; only [`TracingObserver`] says so.
    #[doc(hidden)]
    fn wants_spans(&self) -> bool {
        false
    }

    /// Whether it is called where things happen, before the run goes on, instead of from a thread of its own. `false`
    /// by default; asked once, when the engine is built.
    ///
    /// Such an observer misses nothing, and has seen everything of a run when its outcome is there: for tests, and for
    /// what must not be behind. It is called by several runs at the same time, each run waits for it, and so does
    /// whatever else runs on that thread: it has to be quick and must not block.
    fn is_told_at_once(&self) -> bool {
        false
    }
}

impl fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
