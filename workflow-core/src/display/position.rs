//! Places in the display of a run (S63), for viewers that come back.

use serde::{Deserialize, Serialize};

/// The place of an item in the display of a run, to [continue](crate::AnyRun::display_after) behind it.
///
/// A client that has lost its connection sends the position of its last item, and misses nothing that the run still has.
/// Positions are ordered, and belong to one run.
///
/// ```
/// use futures::StreamExt;
/// use workflow_core::{DisplayPosition, prelude::*};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Count;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(display)]
/// # struct Tick(u32);
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Counted;
/// struct Counts;
///
/// #[workflow]
/// impl Counts {
///     #[step]
///     async fn count(&self, _count: &Count, display: &Display) -> Counted {
///         (1..=3).for_each(|tick| display.show(Tick(tick)));
///         Counted
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Counts).build()?;
/// let run = engine.start::<Counts>(Count).await?;
///
/// let mut first = run.display();
/// first.next().await;
/// let seen = first.position().expect("an item was read");
/// assert_eq!(seen, DisplayPosition { epoch: 0, index: 0 });
/// drop(first);
///
/// let rest: Vec<_> = run.display_after(seen).filter_map(async |item| Some(item.event::<Tick>()?.0)).collect().await;
/// assert_eq!(rest, [2, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DisplayPosition {
    /// The number of the buffer that had the item: 0 in the engine that began the run, and greater after each restart,
    /// and after each reload of a run that had no handles and viewers.
    pub epoch: u64,
    /// The number of the item in its epoch, from 0 on, without gaps.
    pub index: u64,
}
