//! `StepFailed`: the failure of a step as an event that other steps take (S29). It owns the event; what enters a
//! log when is the scheduler's business.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{ErrorClass, StepError, after};
use crate::event::{ControlEvent, Event, FromEvent, NotStop, Roles};
use crate::id::ExecutionId;
use crate::input::{EventInput, InputSpec, Slot, StepInput, input_of};

/// A step failed for good, its retries used up, and the run goes on: the library emits it, steps take it (S29).
///
/// Take it like any event of your own: `&StepFailed`, `Option<&StepFailed>`, `List<StepFailed>`, as a member of an
/// [`EventSet`](crate::EventSet). A failure of a step that such a step catches does not fail the run: it enters the
/// log in the scope of the execution that failed, and the run's quality is
/// [`Degraded`](crate::Quality::Degraded) from there on. In a branch of a fan-out it stays in that branch, which
/// then has not failed.
///
/// # Whose failures a step takes
/// - `#[step(catches = [retrieve, rerank])]`: those of these steps.
/// - Without `catches`: those of every step that does not itself take `StepFailed`. So steps that take failures
///   do not catch each other for ever; the failure of one fails the run, unless another names it in `catches`.
///
/// No step returns it: that does not compile. Return an error, and the library emits it.
///
/// ```
/// use workflow_core::{Quality, StepFailed, prelude::*};
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
    /// What kind of failure it was.
    pub class: ErrorClass,
    /// The error's text.
    pub error: Arc<str>,
    /// How many attempts were made (S35): 1 if it was not tried again.
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
    const SPEC: InputSpec = input_of::<Self>();
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Self::from_event(slot.event()?).ok_or_else(|| slot.mismatch())
    }
}

impl EventInput for StepFailed {}
