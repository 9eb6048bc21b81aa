//! Observation: one enum of everything observable in a run, and its observers. A bounded queue and a thread serve each
//! observer, so that neither its panic nor its slowness reaches a run.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::display::DisplayItem;
use crate::error::ErrorClass;
use crate::event::AnyEvent;
use crate::id::{ChildRun, ExecutionId, RunId, RunStatus, ScopeId, Seq};
use crate::retry::NotRetried;
use crate::scheduler::Cause;

mod added;
mod queue;
pub(crate) mod trace_spans;

pub use added::ObserverGuard;
pub use trace_spans::TracingObserver;

pub(crate) use queue::Observers;

/// Something that happened in a run.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The run.
    pub run: RunId,
    /// The name of the workflow.
    pub workflow: Arc<str>,
    /// The time, by the engine's clock. The order of observations is their order, and not the times'.
    pub at: SystemTime,
    /// The observation.
    pub what: Observed,
}

/// Everything observable. More variants will be added.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Observed {
    /// The run began. Its start event follows.
    RunStarted,
    /// The run was resumed where its journal ended. Interrupted executions begin again. Of a run that waits, observers learn
    /// of it once something reaches the run and it is loaded.
    RunResumed,
    /// The engine unloaded the run, which had waited for a while:
    /// [`EngineBuilder::unload_waiting_after`](crate::EngineBuilder::unload_waiting_after).
    RunUnloaded,
    /// The engine loaded the run again, for a timer or a caller.
    RunReloaded,
    /// An event entered the log.
    EventLogged {
        /// Its sequence number.
        seq: Seq,
        /// Its scope.
        scope: ScopeId,
        /// The event.
        event: AnyEvent,
        /// Its cause.
        cause: Cause,
    },
    /// A precondition answered.
    PreconditionAnswered {
        /// The step it guards.
        step: Arc<str>,
        /// The precondition.
        precondition: Arc<str>,
        /// The event that triggered the step.
        trigger: Seq,
        /// The answer; `None` if it failed.
        answer: Option<bool>,
    },
    /// An execution started.
    ExecutionStarted {
        /// The execution.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Its scope.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
    },
    /// An attempt failed, and another is to follow. The attempt's displayed items are retracted.
    ///
    /// [`AttemptStarted`](Self::AttemptStarted) reports the other attempt, which never starts if the execution is
    /// dropped before. A failure without another attempt is [`ExecutionFailed`](Self::ExecutionFailed) alone.
    AttemptFailed {
        /// The execution.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// The attempt, from 1.
        attempt: u32,
        /// The class of the failure.
        class: ErrorClass,
        /// The error's text.
        error: String,
        /// The delay from this to the next attempt.
        retry_in: Duration,
        /// Whether the next attempt begins with the step's compaction.
        compacts: bool,
    },
    /// An execution is attempted again. Its first attempt is [`ExecutionStarted`](Self::ExecutionStarted) alone.
    AttemptStarted {
        /// The execution.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// The attempt, from 2.
        attempt: u32,
    },
    /// An execution succeeded. Its events follow.
    ExecutionSucceeded {
        /// The execution.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// Its duration.
        took: Duration,
    },
    /// An execution failed for good.
    ExecutionFailed {
        /// The execution.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// The class of the failure.
        class: ErrorClass,
        /// The error's text.
        error: String,
        /// The reason for not retrying.
        not_retried: NotRetried,
        /// Its duration.
        took: Duration,
    },
    /// An execution was dropped: the run ended, or its branch was dropped.
    ExecutionDropped {
        /// The execution.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
    },
    /// The events of an execution were refused, because the run had ended.
    CommitRefused {
        /// The execution.
        execution: ExecutionId,
        /// The step.
        step: Arc<str>,
        /// The wire names of the refused events.
        events: Vec<Arc<str>>,
    },
    /// An execution started a child run, whose own observations follow under its own id.
    ChildStarted {
        /// The child, and the execution that started it.
        child: ChildRun,
    },
    /// A child run ended. If it ends after its parent, only its own observation reports that.
    ChildEnded {
        /// The child, and the execution that started it.
        child: ChildRun,
        /// The child's final status.
        status: RunStatus,
    },
    /// An item was displayed or retracted. Children display their own items.
    Displayed(DisplayItem),
    /// The run waits for the outside or for a timer.
    RunWaiting,
    /// The run is paused, and nothing runs in it.
    RunPaused,
    /// The run is not paused any more.
    RunUnpaused,
    /// The run ends without having completed, and its clean-up begins. Also for a run that was resumed in its clean-up.
    CleanUpStarted {
        /// The status that the run will end with.
        status: RunStatus,
    },
    /// The run ended.
    RunEnded {
        /// The run's final status.
        status: RunStatus,
    },
    /// The observer was too slow: so many observations, of this run or of others, are missing before this one.
    Missed {
        /// How many.
        count: u64,
    },
}

/// Observes runs.
///
/// # Contract
/// - **Order**: an observer sees the observations of one run in their order; those of several runs interleave.
/// - **Threads**: the engine calls each observer on an OS thread of the observer's own, never in a run's task, so it may
///   block. Only a [synchronous observer](Self::is_synchronous) is called by the runs themselves.
/// - **Loss**: 4,096 observations wait for a slow observer. Further ones are dropped, and [`Observed::Missed`] has
///   their number.
/// - **Panics** are caught. The observer is called again for the next observation.
///
/// ```
/// use std::sync::mpsc;
/// use workflow_core::Engine;
/// use workflow_core::observe::{Observation, Observer};
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
    /// Handles one observation.
    fn observe(&self, observation: &Observation);

    /// Whether runs and executions get `tracing` spans. Only [`TracingObserver`] returns `true`.
    #[doc(hidden)]
    fn wants_spans(&self) -> bool {
        false
    }

    /// Whether runs call the observer directly, instead of its thread. Default: `false`.
    ///
    /// The engine asks once, when it is built. A direct observer misses nothing, and has seen everything of a run
    /// before the run's outcome is available: for tests, and for uses without delay. Several runs call it at the same
    /// time. Each run waits for it, and so do other tasks on that thread: it has to be quick and must not block.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use std::sync::Arc;
    /// use workflow_core::prelude::*;
    /// use workflow_core::observe::{Observation, Observed, Observer};
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
    ///
    /// struct Executions(Arc<AtomicU64>);
    ///
    /// impl Observer for Executions {
    ///     fn observe(&self, observation: &Observation) {
    ///         if matches!(observation.what, Observed::ExecutionStarted { .. }) {
    ///             self.0.fetch_add(1, Ordering::Relaxed);
    ///         }
    ///     }
    ///
    ///     fn is_synchronous(&self) -> bool { true }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let count = Arc::new(AtomicU64::new(0));
    /// let engine = Engine::builder().workflow(Greeter).observer(Executions(Arc::clone(&count))).build()?;
    /// engine.start::<Greeter>(Greet { name: "Ada".into() }).await?.outcome().await?;
    /// assert_eq!(count.load(Ordering::Relaxed), 1); // at once, without waiting for the observer
    /// # Ok(())
    /// # }
    /// ```
    fn is_synchronous(&self) -> bool {
        false
    }
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn observe(&self, observation: &Observation) {
        (**self).observe(observation);
    }

    fn wants_spans(&self) -> bool {
        (**self).wants_spans()
    }

    fn is_synchronous(&self) -> bool {
        (**self).is_synchronous()
    }
}

impl fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
