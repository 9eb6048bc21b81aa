//! Parameters that take one event: `&E` and `Arc<E>`. `E` by value is emitted by the derives, because only
//! they can say it without claiming every type there is.

use std::sync::Arc;

use super::{EventInput, InputSpec, Slot, StepInput};
use crate::error::StepError;
use crate::event::{ControlEvent, FromEvent, Pattern};

#[diagnostic::do_not_recommend]
impl<P: Pattern> StepInput for &P {
    const SPEC: InputSpec = InputSpec::one::<P>();
    type Held = P::Held;
    type Item<'a> = &'a P;

    fn bind(slot: Slot<'_>) -> Result<P::Held, StepError> {
        P::hold(slot)
    }

    fn item(held: &mut P::Held) -> &P {
        P::held(held)
    }
}

#[diagnostic::do_not_recommend]
impl<P: Pattern> EventInput for &P {}

impl<E: ControlEvent> StepInput for Arc<E> {
    const SPEC: InputSpec = InputSpec::one::<E>();
    type Held = Option<Arc<E>>;
    type Item<'a> = Arc<E>;

    fn bind(slot: Slot<'_>) -> Result<Self::Held, StepError> {
        let event = slot.event()?.downcast();
        if event.is_none() { Err(slot.mismatch()) } else { Ok(event) }
    }

    fn item(held: &mut Self::Held) -> Arc<E> {
        taken(held)
    }
}

impl<E: ControlEvent> EventInput for Arc<E> {}

/// What a parameter taken by value declares.
#[doc(hidden)]
pub const fn input_of<P: Pattern>() -> InputSpec {
    InputSpec::one::<P>()
}

/// How the derives take hold of an event set.
#[doc(hidden)]
pub fn held_set<P: FromEvent>(slot: Slot<'_>) -> Result<P, StepError> {
    P::from_event(slot.event()?).ok_or_else(|| slot.mismatch())
}

/// Hands out a by-value parameter, which every execution asks for exactly once.
#[doc(hidden)]
pub fn taken<T>(held: &mut Option<T>) -> T {
    held.take().expect("a parameter is bound once and taken once")
}
