//! Parameters that take one event: `&E` and `Arc<E>`. The derives implement `E` by value, since a blanket
//! implementation here would cover every type.

use std::sync::Arc;

use super::{EventInput, Slot, StepInput};
use crate::error::StepError;
use crate::event::{ControlEvent, FromEvent, Gives, Log};
use crate::input::Pattern;
use crate::spec::InputSpec;

#[diagnostic::do_not_recommend]
impl<P: Pattern> StepInput for &P {
    const SPEC: InputSpec = InputSpec::one(P::EVENTS);
    type Item<'a> = &'a P;

    fn fill(slot: Slot<'_>) -> Result<&P, StepError> {
        P::lend(slot)
    }
}

#[diagnostic::do_not_recommend]
impl<P: Pattern> EventInput for &P {}

impl<E: ControlEvent> StepInput for Arc<E> {
    const SPEC: InputSpec = InputSpec::one(const { &[E::TYPE] });
    type Item<'a> = Arc<E>;

    fn fill(slot: Slot<'_>) -> Result<Arc<E>, StepError> {
        slot.event()?.downcast().ok_or_else(|| slot.mismatch())
    }
}

impl<E: ControlEvent> EventInput for Arc<E> {}

/// The declaration of a parameter taken by value.
#[doc(hidden)]
pub const fn one_input<P>() -> InputSpec
where
    Log: Gives<P>,
{
    InputSpec::one(<Log as Gives<P>>::EVENTS)
}

/// Lends an event set, for the derives.
#[doc(hidden)]
pub fn borrow_set<P: FromEvent + Send + 'static>(slot: Slot<'_>) -> Result<&P, StepError> {
    let set = P::from_event(slot.event()?).ok_or_else(|| slot.mismatch())?;
    Ok(slot.keep(set))
}
