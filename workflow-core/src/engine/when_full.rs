//! Starts without a free permit: they wait or are refused.

/// Whether a start without a free permit, of the engine or of the workflow, waits or is refused.
///
/// The setting applies to starts only. A run that waited and receives a message waits for its permit again, under either
/// setting.
///
/// ```
/// use workflow_core::{StartError, WhenFull, prelude::*};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Begin;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Done;
///
/// struct Slow;
///
/// #[workflow]
/// impl Slow {
///     #[step]
///     async fn never(&self, _begin: &Begin) -> Done { std::future::pending().await }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Slow);
/// let engine = engine.max_concurrent_runs_of::<Slow>(1).when_full(WhenFull::Refuse).build()?;
/// let _first = engine.start::<Slow>(Begin).await?;
/// let refused = engine.start::<Slow>(Begin).await.unwrap_err();
/// assert!(matches!(refused, StartError::Full { limit: 1, workflow: Some(of), .. } if &*of == "Slow"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WhenFull {
    /// The start waits for a permit, after earlier starts.
    #[default]
    Queue,
    /// The start is refused with [`StartError::Full`](crate::StartError::Full).
    Refuse,
}
