//! `StepFailed`: the failure of a step as an event for other steps (S29). This file owns the event; the scheduler
//! decides when it enters the log.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{ErrorClass, StepError, after};
use crate::event::{ControlEvent, Event, FromEvent, NotStop, Roles};
use crate::id::ExecutionId;
use crate::input::{EventInput, Slot, StepInput, one_input};
use crate::spec::InputSpec;

/// A step failed for good, its retries used up, and another step takes the failure.
///
/// The library emits it. Take it like any other event: `&StepFailed`, `Option<&StepFailed>`, `List<StepFailed>`, or as
/// a member of an [`EventSet`](crate::EventSet). A caught failure does not fail the run: it enters the log in the scope
/// of the failed execution, and the run's quality is [`Degraded`](crate::report::Quality::Degraded) from there on. In a branch
/// of a fan-out it stays in that branch, which then has not failed.
///
/// # Caught steps
/// - `#[step(catches = [retrieve, rerank])]` catches the failures of these steps.
/// - Without `catches`, a step catches the failures of every step that does not itself take `StepFailed`. So steps that
///   take failures do not catch each other for ever; the failure of such a step fails the run, unless another step
///   names it in `catches`.
///
/// A step cannot return it: that does not compile. Return an error, and the library emits the event.
///
/// ```
/// use workflow_core::{StepFailed, prelude::*};
/// use workflow_core::report::Quality;
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(start)]
/// struct Question(String);
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// struct Retrieved(Vec<String>);
///
/// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// #[event(stop)]
/// struct Answer(String);
///
/// struct Research;
///
/// #[workflow]
/// impl Research {
///     #[step]
///     async fn retrieve(&self, question: &Question) -> Result<Retrieved, StepError> {
///         Err(StepError::tool("the index is locked"))
///     }
///
///     #[step(catches = [retrieve])]
///     async fn from_memory(&self, failed: &StepFailed) -> Retrieved {
///         Retrieved(vec![format!("nothing new, because {}", failed.error)])
///     }
///
///     #[step]
///     async fn answer(&self, retrieved: &Retrieved) -> Answer {
///         Answer(retrieved.0.join("; "))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Research).build()?;
/// let run = engine.start::<Research>(Question("why?".into())).await?;
/// assert_eq!(run.outcome().await?, Answer("nothing new, because the index is locked".into()));
/// assert_eq!(run.report().await?.quality, Quality::Degraded);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepFailed {
    /// The step that failed.
    pub step: Arc<str>,
    /// Its execution.
    pub execution: ExecutionId,
    /// The class of the failure.
    pub class: ErrorClass,
    /// The error's text.
    pub error: Arc<str>,
    /// How many attempts were made: 1 without a retry.
    pub attempts: u32,
}

impl StepFailed {
    pub(crate) fn new(step: Arc<str>, execution: ExecutionId, attempts: u32, error: &StepError) -> Self {
        Self { step, execution, class: error.class(), error: error.to_string().into(), attempts }
    }
}

impl fmt::Display for StepFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, execution, class, error, attempts } = self;
        write!(f, "step `{step}` failed{} ({execution}, {class}): {error}", after(*attempts))
    }
}

impl Event for StepFailed {
    const NAME: &'static str = "StepFailed";
    const ROLES: Roles = Roles::NONE.failure();
    type Stop = NotStop;
}

impl ControlEvent for StepFailed {}

impl StepInput for StepFailed {
    const SPEC: InputSpec = one_input::<Self>();
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Self::from_event(slot.event()?).ok_or_else(|| slot.mismatch())
    }
}

impl EventInput for StepFailed {}
