//! The error of an event that is too large.

use std::sync::Arc;

/// An event's JSON exceeds the engine's [`max_event_bytes`](crate::EngineBuilder::max_event_bytes).
///
/// An execution that emits such an event fails with this error, which is permanent. For events from outside the same
/// error is in [`SendError::TooLarge`](crate::SendError::TooLarge) and
/// [`StartError::TooLarge`](crate::StartError::TooLarge).
///
/// ```
/// use workflow_core::{RunError, prelude::*};
/// use workflow_core::errors::EventTooLarge;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Begin { pages: usize }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Text(String);
///
/// struct Reader;
///
/// #[workflow]
/// impl Reader {
///     #[step]
///     async fn read(&self, begin: &Begin) -> Text { Text("page ".repeat(begin.pages)) }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Reader).max_event_bytes(1_000).build()?;
/// let run = engine.start::<Reader>(Begin { pages: 1_000 }).await?;
/// let Err(RunError::StepFailed { source, .. }) = run.outcome().await else { panic!() };
/// let too_large: &EventTooLarge = source.downcast_ref().unwrap();
/// assert_eq!((&*too_large.event, too_large.limit), ("Text", 1_000));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{event}` is larger than {limit} bytes of JSON, which is the most that an event may have: pass on where it can be found, or raise `max_event_bytes`"
)]
#[non_exhaustive]
pub struct EventTooLarge {
    /// The event's wire name.
    pub event: Arc<str>,
    /// How many bytes were counted before the counting stopped: the event has at least so many.
    pub bytes: usize,
    /// The limit.
    pub limit: usize,
}
