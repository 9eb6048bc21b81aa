//! `FanOut<E>`: opens one branch per item (S44), with its policy (S49) and its bound (S50).

use std::fmt;
use std::num::NonZeroU32;

use super::{Emitted, EmittedItem, One, OutputSpec, StepOutput};
use crate::error::StepError;
use crate::event::{AnyEvent, ControlEvent};

/// What the failure of a branch means for its fan-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FanOutPolicy {
    /// The first failure drops the other branches and is a failure in the scope of the step that fanned
    /// out. The default.
    #[default]
    FailAll,
    /// Failures are handed to the gather; the run's quality is degraded.
    ContinueOthers,
    /// All branches run to their end; any failure then fails the fan-out with every error in it.
    WaitAll,
}

/// A step's output that opens one branch per item; the items may be none at all.
///
/// A branch is a scope of its own: what steps emit in it is seen in it and below, never by its siblings, so
/// a step that needs the item *and* what was made of it gets the right pair. When every branch has settled,
/// [`Gather<E>`](crate::Gather) fires once.
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
    /// A branch per item, in this order.
    pub fn new(items: Vec<E>) -> Self {
        Self { items, concurrency: None, policy: FanOutPolicy::default() }
    }

    /// Opens at most `most` branches at a time, the rest in order. 0 is taken as 1. Without it every
    /// branch opens at once.
    ///
    /// A branch that opens later sees what the scopes above it hold by then.
    pub fn concurrency(self, most: u32) -> Self {
        Self { concurrency: Some(NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN)), ..self }
    }

    /// The first failure drops the other branches and fails the fan-out. The default.
    pub fn fail_all(self) -> Self {
        Self { policy: FanOutPolicy::FailAll, ..self }
    }

    /// Failures are handed to the gather.
    pub fn continue_others(self) -> Self {
        Self { policy: FanOutPolicy::ContinueOthers, ..self }
    }

    /// All branches run to their end; any failure then fails the fan-out.
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

/// A fan-out in a batch, its items erased.
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
