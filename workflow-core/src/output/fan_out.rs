//! `FanOut<E>`: opens one branch per item (S44), with its policy (S49) and its bound (S50).

use std::fmt;
use std::num::NonZeroU32;

use super::{Emitted, EmittedItem, One, StepOutput};
use crate::error::StepError;
use crate::event::{AnyEvent, ControlEvent};
use crate::spec::OutputSpec;

/// The meaning of a failed branch for its fan-out.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Order { lines: Vec<u64> }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Line(u64);
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Price(u64);
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Total(u64);
/// struct Shop { patient: bool }
///
/// #[workflow]
/// impl Shop {
///     #[step]
///     async fn split(&self, order: &Order) -> FanOut<Line> {
///         let lines: FanOut<Line> = order.lines.iter().copied().map(Line).collect();
///         if self.patient { lines.wait_all() } else { lines.fail_all() }
///     }
///
///     #[step]
///     async fn price(&self, line: &Line) -> Result<Price, StepError> {
///         Err(StepError::rejected(format!("line {} is not for sale", line.0)))
///     }
///
///     #[step]
///     async fn add_up(&self, prices: &Gather<Price>) -> Total { Total(prices.ok().map(|price| price.0).sum()) }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let order = Order { lines: vec![1, 2] };
/// let first = Shop { patient: false }.run(order.clone()).await.unwrap_err();
/// assert!(matches!(first, RunError::StepFailed { .. }));
///
/// let all = Shop { patient: true }.run(order).await.unwrap_err();
/// assert!(matches!(all, RunError::BranchesFailed { failures } if failures.len() == 2));
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FanOutPolicy {
    /// The first failure drops the other branches and fails the scope of the step that returned the [`FanOut`]:
    /// the run, or the branch in which that step ran. The default.
    #[default]
    FailAll,
    /// The gather gets the failures, and the quality of the run is degraded.
    ContinueOthers,
    /// All branches run to their end. Then any failure fails the scope of the step that returned the
    /// [`FanOut`], with all errors: [`RunError::BranchesFailed`](crate::RunError::BranchesFailed).
    WaitAll,
}

/// A step's output that opens one branch per item. Zero items are allowed.
///
/// A branch is a scope of its own. Steps in the branch and below see its events, and steps in sibling
/// branches do not. So a step that takes the item and an event derived from it gets a matching pair. When
/// every branch has settled, [`Gather<E>`](crate::Gather) triggers once.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Order { lines: Vec<Line> }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Line { sku: String }
/// # struct Shop;
/// # impl Shop {
/// async fn split(&self, order: &Order) -> FanOut<Line> {
///     order.lines.iter().cloned().collect::<FanOut<_>>().concurrency(16).continue_others()
/// }
/// # }
/// ```
pub struct FanOut<E> {
    items: Vec<E>,
    concurrency: Option<NonZeroU32>,
    policy: FanOutPolicy,
}

impl<E> FanOut<E> {
    /// Creates a fan-out with a branch per item, in this order.
    pub fn new(items: Vec<E>) -> Self {
        Self { items, concurrency: None, policy: FanOutPolicy::default() }
    }

    /// Limits the open branches. The others open in order as branches settle. 0 means 1. Default: no limit.
    ///
    /// A branch that opens later sees the events that the outer scopes have by then.
    pub fn concurrency(self, most: u32) -> Self {
        Self { concurrency: Some(NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN)), ..self }
    }

    /// The first failure drops the other branches and fails the scope of the step that returned the `FanOut`:
    /// the run, or the branch in which that step ran. The default.
    pub fn fail_all(self) -> Self {
        Self { policy: FanOutPolicy::FailAll, ..self }
    }

    /// The gather gets the failures.
    pub fn continue_others(self) -> Self {
        Self { policy: FanOutPolicy::ContinueOthers, ..self }
    }

    /// All branches run to their end. Then any failure fails the scope of the step that returned the `FanOut`,
    /// with all errors.
    pub fn wait_all(self) -> Self {
        Self { policy: FanOutPolicy::WaitAll, ..self }
    }
}

impl<E> FromIterator<E> for FanOut<E> {
    fn from_iter<I: IntoIterator<Item = E>>(items: I) -> Self {
        Self::new(items.into_iter().collect())
    }
}

impl<E> fmt::Debug for FanOut<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FanOut({} items, {:?})", self.items.len(), self.policy)
    }
}

/// A fan-out in a batch, with erased items.
#[derive(Debug)]
pub(crate) struct OpenedFanOut {
    pub(crate) items: Vec<AnyEvent>,
    pub(crate) concurrency: Option<NonZeroU32>,
    pub(crate) policy: FanOutPolicy,
    pub(crate) item_type: crate::event::EventType,
}

impl<E: ControlEvent> StepOutput for FanOut<E> {
    const SPEC: OutputSpec = OutputSpec::FanOut(E::TYPE);
    type Events = One<E>;

    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
        let Self { items, concurrency, policy } = self;
        let items = items.into_iter().map(AnyEvent::new).collect();
        let opened = OpenedFanOut { items, concurrency, policy, item_type: E::TYPE };
        emitted.put(EmittedItem::FanOut(Box::new(opened)));
        Ok(())
    }
}
