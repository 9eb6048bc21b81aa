//! Parameters that take one event: `&E` and `Arc<E>`. `E` by value is emitted by the derives, because only
//! they can say it without claiming every type there is.

use std::sync::Arc;

use super::{EventInput, InputSpec, Slot, StepInput};
use crate::error::StepError;
use crate::event::{ControlEvent, FromEvent, Gives, Log, Pattern};

#[diagnostic::do_not_recommend]
impl<P: Pattern> StepInput for &P {
    const SPEC: InputSpec = InputSpec::one::<P>();
    type Item<'a> = &'a P;

    fn fill(slot: Slot<'_>) -> Result<&P, StepError> {
        P::lend(slot)
    }
}

#[diagnostic::do_not_recommend]
impl<P: Pattern> EventInput for &P {}

impl<E: ControlEvent> StepInput for Arc<E> {
    const SPEC: InputSpec = InputSpec::one::<E>();
    type Item<'a> = Arc<E>;

    fn fill(slot: Slot<'_>) -> Result<Arc<E>, StepError> {
        slot.event()?.downcast().ok_or_else(|| slot.mismatch())
    }
}

impl<E: ControlEvent> EventInput for Arc<E> {}

/// What a parameter taken by value declares.
#[doc(hidden)]
pub const fn input_of<P>() -> InputSpec
where
    Log: Gives<P>,
{
    InputSpec::one_of(<Log as Gives<P>>::EVENTS)
}

/// How the derives lend an event set.
#[doc(hidden)]
pub fn lent_set<P: FromEvent + Send + 'static>(slot: Slot<'_>) -> Result<&P, StepError> {
    let set = P::from_event(slot.event()?).ok_or_else(|| slot.mismatch())?;
    Ok(slot.keep(set))
}
