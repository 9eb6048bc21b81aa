//! Injected parameters: contexts, configuration, display and run information (S6).

use std::fmt::Write as _;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use smallvec::SmallVec;

use super::call::{Asked, CallContext, Frame, SlotValue};
use super::{Slot, StepInput};
use crate::cancel::Cancellation;
use crate::config::{Config, ConfigType};
use crate::context::{RunContext, ThreadContext};
use crate::display::Display;
use crate::error::StepError;
use crate::id::{ExecutionId, ParentRun, RunId, ScopeId, Seq, ThreadId, TraceParent};
use crate::report::Ending;
use crate::spec::InputSpec;

/// The identity of an execution: run, workflow, step, execution and attempt.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Charge { cents: u64 }
/// # struct Payments;
/// # impl Payments {
/// async fn charge(&self, charge: &Charge, info: &RunInfo) {
///     // A payment service takes the key, so that a repeated attempt does not charge twice.
///     let _key = info.idempotency_key();
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RunInfo {
    run: RunId,
    thread: ThreadId,
    workflow: Arc<str>,
    step: Arc<str>,
    execution: ExecutionId,
    attempt: u32,
    scope: ScopeId,
    binding: String,
    parent: Option<ParentRun>,
    trace_parent: Option<TraceParent>,
    may_have_begun: bool,
    ending: Option<Arc<Ending>>,
}

impl RunInfo {
    pub(crate) fn of(frame: &Frame) -> Self {
        frame.note(Asked::NUMBERS);
        let context = &frame.context;
        Self {
            run: context.run.id().clone(),
            thread: context.run.thread().clone(),
            workflow: Arc::clone(context.run.workflow()),
            step: Arc::clone(context.run.step_name(context.step)),
            execution: context.execution,
            attempt: context.attempt,
            scope: context.scope,
            binding: binding(frame.key(), || bound(frame), context.run.redrives_before_end()),
            parent: context.run.parent().cloned(),
            trace_parent: context.run.trace_parent(),
            may_have_begun: frame.may_have_begun(),
            ending: context.run.ending().cloned(),
        }
    }

    /// The id of the run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The thread of the run. Without one at its start, the run has a thread of its own.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// The place of the run in a distributed trace, for the services that the step calls: their header `traceparent`.
    ///
    /// The same for every execution of the run, also after a restart. `None` unless the start, or that of a parent, has
    /// [one](crate::RunOptions::trace_parent). A step in a `tracing` span that a layer exports can send the context of that
    /// span instead.
    pub fn trace_parent(&self) -> Option<&TraceParent> {
        self.trace_parent.as_ref()
    }

    /// The name of the workflow.
    pub fn workflow(&self) -> &str {
        &self.workflow
    }

    /// The name of the step.
    pub fn step(&self) -> &str {
        &self.step
    }

    /// Whether this attempt may have begun before, and its effects may have happened.
    ///
    /// The engine makes the attempt because the journal has no end of it: another process may have begun the attempt and
    /// ended under it. No record says that an attempt begins, so the answer may be `true` for an attempt that only
    /// waited, for a permit for example. It is `false` only where no earlier process can have begun it: where the
    /// attempt waited for the `concurrency` of its step or for the delay of a retry, and where the engine of that
    /// process was [shut down](crate::Engine::shut_down) and had not begun it. A later attempt after a failure is a new
    /// one.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Charge { cents: u64 }
    /// # struct Payments;
    /// # impl Payments {
    /// # async fn find(&self, key: &str) -> Option<u64> { None }
    /// # async fn pay(&self, key: &str, cents: u64) -> u64 { cents }
    /// async fn charge(&self, charge: &Charge, info: &RunInfo) -> u64 {
    ///     let key = info.idempotency_key();
    ///     // Asks the service first, if it may have the payment already.
    ///     let paid = if info.may_have_begun() { self.find(&key).await } else { None };
    ///     match paid {
    ///         Some(cents) => cents,
    ///         None => self.pay(&key, charge.cents).await,
    ///     }
    /// }
    /// # }
    /// ```
    pub fn may_have_begun(&self) -> bool {
        self.may_have_begun
    }

    /// The id of the execution.
    pub fn execution(&self) -> ExecutionId {
        self.execution
    }

    /// The number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The scope in which the execution was evaluated.
    pub fn scope(&self) -> ScopeId {
        self.scope
    }

    /// The parent run, and the execution that started this run. `None`: this run is no child.
    pub fn parent(&self) -> Option<&ParentRun> {
        self.parent.as_ref()
    }

    /// Why the run ends, for a clean-up step; `None` for any other step.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Trip;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Booked;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Paid;
    /// struct Agency { told: Mutex<Vec<String>> }
    ///
    /// #[workflow]
    /// impl Agency {
    ///     #[step]
    ///     async fn book(&self, _trip: &Trip) -> Booked { Booked }
    ///
    ///     #[step]
    ///     async fn pay(&self, _booked: &Booked) -> Result<Paid, StepError> { Err(StepError::rejected("no money")) }
    ///
    ///     #[step(on_end)]
    ///     async fn unbook(&self, _booked: &Booked, info: &RunInfo) {
    ///         let ending = info.ending().expect("a clean-up step runs at an end");
    ///         self.told.lock().unwrap().push(ending.failed()[0].error.clone());
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use workflow_core::RunError;
    /// # #[derive(Clone)]
    /// # struct Shared(Arc<Agency>);
    /// let engine = Engine::builder().workflow(Agency { told: Mutex::default() }).build()?;
    /// let run = engine.start::<Agency>(Trip).await?;
    /// assert!(matches!(run.outcome().await, Err(RunError::StepFailed { .. })));
    /// assert_eq!(run.report().await?.executions("unbook"), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_deref()
    }

    /// A text that identifies this execution in calls to other services.
    ///
    /// The text is the same for every attempt, also after a restart, a redrive, and a change of the workflow that adds
    /// inputs to the step. Every other execution has a different one. The parts are the run, the scope, the step and the
    /// sequence numbers of the bound events; of a clean-up step also the number of redrives before the end, since it runs
    /// at each end. With `#[step(key = method)]` the method's text stands in the place of the sequence numbers, and
    /// executions for which it returns the same text share a key.
    pub fn idempotency_key(&self) -> String {
        key_text(&self.run, self.scope, &self.step, &self.binding)
    }
}

/// The event or the list that an input bound, by its place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Nothing,
    One(Seq),
    List(usize),
}

impl Bound {
    /// The place of a slot's event or list; `None` of an injected parameter.
    pub(crate) fn of(slot: &SlotValue) -> Option<Self> {
        match slot {
            SlotValue::Injected => None,
            SlotValue::Empty => Some(Self::Nothing),
            SlotValue::One(seq, _) => Some(Self::One(*seq)),
            SlotValue::List(prefix) => Some(Self::List(prefix.len())),
        }
    }
}

/// What identifies the execution: passive inputs and the engine's parameters are no part of it (S58).
pub(crate) fn bound(frame: &Frame) -> SmallVec<[Bound; 2]> {
    let CallContext { run, step, .. } = &frame.context;
    let slots = frame.slots.iter().enumerate();
    let slots = slots.filter(|(place, _)| !run.is_passive(*step, *place));
    slots.filter_map(|(_, slot)| Bound::of(slot)).collect()
}

/// The last part of a key: the text that was set for the execution, or the places of its events.
pub(crate) fn binding(
    set: Option<&str>,
    bound: impl FnOnce() -> SmallVec<[Bound; 2]>,
    redrives: usize,
) -> String {
    let mut text = set.map_or_else(|| binding_text(&bound()), str::to_owned);
    if redrives > 0 {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "/{redrives}");
    }
    text
}

pub(crate) fn binding_text(bound: &[Bound]) -> String {
    bound.iter().fold(String::new(), |mut text, bound| {
        let dot = if text.is_empty() { "" } else { "." };
        // Writing to a `String` cannot fail.
        let _ = match bound {
            Bound::Nothing => write!(text, "{dot}-"),
            Bound::One(seq) => write!(text, "{dot}{}", seq.0),
            Bound::List(length) => write!(text, "{dot}{length}e"),
        };
        text
    })
}

pub(crate) fn key_text(run: &RunId, scope: ScopeId, step: &str, binding: &str) -> String {
    format!("{run}/{}/{step}/{binding}", scope.0)
}

macro_rules! injectable {
    ($type:ty, $spec:expr, $slot:ident => $value:expr $(, $generic:ident: $($bound:tt)+)?) => {
        impl $(<$generic: $($bound)+>)? StepInput for $type {
            const SPEC: InputSpec = $spec;
            type Item<'a> = Self;

            fn fill($slot: Slot<'_>) -> Result<Self, StepError> {
                Ok($value)
            }
        }

        impl $(<$generic: $($bound)+>)? StepInput for &$type {
            const SPEC: InputSpec = $spec;
            type Item<'a> = &'a $type;

            fn fill($slot: Slot<'_>) -> Result<&$type, StepError> {
                let value = $value;
                Ok($slot.keep(value))
            }
        }
    };
}

injectable!(RunInfo, InputSpec::provided("RunInfo"), slot => slot.run_info());
injectable!(RunContext, InputSpec::provided("RunContext").using_context(), slot => slot.run_context());
injectable!(ThreadContext, InputSpec::provided("ThreadContext").using_context(), slot => slot.thread_context());
injectable!(Cancellation, InputSpec::provided("Cancellation"), slot => slot.cancellation());
injectable!(Display, InputSpec::provided("Display"), slot => slot.display());
injectable!(
    Config<C>,
    InputSpec::config(ConfigType::of::<C>()),
    slot => slot.config::<C>()?,
    C: DeserializeOwned + Send + Sync + 'static
);
