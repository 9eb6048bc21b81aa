//! `StepFailed`: the failure of a step as an event for other steps (S29). This file owns the event; the scheduler
//! decides when it enters the log.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{ErrorClass, FailedIn, SharedError, StepError};
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
    /// The text of the error and of its sources.
    pub error: Arc<str>,
    /// How many attempts were made: 1 without a retry.
    pub attempts: u32,
    /// The failures of the branches, if a fan-out that the execution opened failed as a whole. Empty where the step itself
    /// failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<FailedBranch>,
    #[serde(skip)]
    source: Typed,
}

/// The failure of a branch, in the [`StepFailed`] of a fan-out.
///
/// ```
/// use workflow_core::StepFailed;
///
/// /// The places of the items that failed.
/// fn places(failed: &StepFailed) -> Vec<u32> {
///     failed.branches.iter().map(|failed| failed.branch).collect()
/// }
/// # drop(places);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailedBranch {
    /// The place of the branch in the fan-out, from 0.
    pub branch: u32,
    /// The step that failed, in the branch or in one below it.
    pub step: Arc<str>,
    /// The class of its failure.
    pub class: ErrorClass,
    /// The text of the error and of its sources.
    pub error: Arc<str>,
    /// How many attempts were made: 1 without a retry.
    pub attempts: u32,
}

/// The error itself, while the process has it. No two failures differ by that.
#[derive(Debug, Clone, Default)]
struct Typed(Option<SharedError>);

impl PartialEq for Typed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Typed {}

impl StepFailed {
    pub(crate) fn new(step: Arc<str>, execution: ExecutionId, attempts: u32, error: &StepError) -> Self {
        let source = Typed(Some(SharedError::of(error)));
        let (class, error) = (error.class(), error.to_string().into());
        Self { step, execution, class, error, attempts, branches: Vec::new(), source }
    }

    /// The same for a fan-out, with the failures of its branches.
    pub(crate) fn in_branches(self, branches: Vec<FailedBranch>) -> Self {
        Self { branches, ..self }
    }

    /// The first `E` among the error and its sources. O(sources).
    ///
    /// `None` if there is none, and always once the run was resumed from its journal or unloaded: a journal has only
    /// the error's text and class. So use it to add detail, and decide by [`class`](Self::class).
    ///
    /// Two failures that differ only in this are equal.
    ///
    /// ```
    /// use std::io;
    /// use workflow_core::{StepFailed, prelude::*};
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Read;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Text(String);
    /// # struct Reader;
    ///
    /// #[workflow]
    /// impl Reader {
    ///     #[step]
    ///     async fn read(&self, _read: &Read) -> Result<Text, anyhow::Error> {
    ///         Err(anyhow::Error::new(io::Error::other("the disk is gone")).context("cannot read the page"))
    ///     }
    ///
    ///     #[step]
    ///     async fn explain(&self, failed: &StepFailed) -> Text {
    ///         let kind = failed.source_as::<io::Error>().map(io::Error::kind);
    ///         Text(format!("{}: {kind:?}", failed.error))
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), RunError> {
    /// let Text(text) = Reader.run(Read).await?;
    /// assert_eq!(text, "cannot read the page: the disk is gone: Some(Other)");
    /// # Ok(())
    /// # }
    /// ```
    pub fn source_as<E: Error + 'static>(&self) -> Option<&E> {
        self.source.0.as_ref()?.source_as()
    }
}

impl fmt::Display for StepFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, execution, class, error, attempts, .. } = self;
        let failed = FailedIn(*attempts, None);
        write!(f, "step `{step}` failed{failed} ({execution}, {class}): {error}")
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
