//! `Passive<&E>` and `Passive<List<E>>`: inputs that a step reads when another input triggers it (S58).

use std::ops::Deref;

use super::{List, Pattern, Slot, StepInput};
use crate::error::StepError;
use crate::spec::InputSpec;

/// An input that the step reads when another one triggers it.
///
/// A passive input never triggers its step, and the step never waits for it. `Passive<&E>` dereferences to
/// `Option<&E>`: the latest event of the type at the trigger, or `None` while there is none. `Passive<List<E>>`
/// dereferences to the [`List`] of all events of the type until the trigger, which may be empty. The step needs
/// another event input. It may emit the events that it reads. A passive input cannot take
/// [`StepFailed`](crate::StepFailed).
///
/// Passive inputs are no part of [`RunInfo::idempotency_key`](crate::RunInfo::idempotency_key), and they can be added
/// to and removed from a step of runs that are open.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Order { pieces: u64 }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(external)]
/// # struct Price { cents: u64 }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Bill { cents: u64 }
/// struct Desk;
///
/// #[workflow]
/// impl Desk {
///     // A later `Price` does not make another bill.
///     #[step]
///     async fn bill(&self, order: &Order, price: Passive<&Price>) -> Bill {
///         Bill { cents: order.pieces * price.map_or(100, |price| price.cents) }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), RunError> {
/// assert_eq!(Desk.run(Order { pieces: 2 }).await?, Bill { cents: 200 });
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Passive<T>(Option<T>);

impl<'a, P> Deref for Passive<&'a P> {
    type Target = Option<&'a P>;

    #[expect(clippy::ref_option_ref, reason = "`Deref` returns a reference to its target")]
    fn deref(&self) -> &Option<&'a P> {
        &self.0
    }
}

impl<P> Deref for Passive<List<P>> {
    type Target = List<P>;

    fn deref(&self) -> &List<P> {
        self.0.as_ref().expect("a passive list is there, if only an empty one")
    }
}

impl<P: Pattern> StepInput for Passive<&P> {
    const SPEC: InputSpec = InputSpec::one(P::EVENTS).passive();
    type Item<'a> = Passive<&'a P>;

    fn fill(slot: Slot<'_>) -> Result<Passive<&P>, StepError> {
        if slot.is_empty() { Ok(Passive(None)) } else { P::lend(slot).map(|event| Passive(Some(event))) }
    }
}

impl<P: Pattern> StepInput for Passive<List<P>> {
    const SPEC: InputSpec = InputSpec::list(P::EVENTS).passive();
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        let list = if slot.is_empty() { List::none() } else { List::fill(slot)? };
        Ok(Self(Some(list)))
    }
}
