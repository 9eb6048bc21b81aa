//! "Either of": what one slot of a signature can match, be it a single event type or an enum of several (S3).

use std::sync::Arc;

use super::{AnyEvent, ControlEvent, EventType};
use crate::error::StepError;
use crate::input::Slot;

/// What one input slot matches: an event type, or an [`EventSet`] enum of several.
///
/// Implemented for every [`ControlEvent`] and by `#[derive(EventSet)]`; there is nothing to implement by
/// hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a step can wait for",
    label = "neither an event that drives steps nor a set of such events",
    note = "name a type that derives `Event` (and is not display only) or `EventSet`, itself and not a reference to it: `List<E>`, not `List<&E>`"
)]
pub trait Pattern: Send + Sync + Sized + 'static {
    /// The event types that match, in the order in which they were declared.
    const EVENTS: &'static [EventType];

    /// How a list lends its elements: `&E` for an event, the enum itself for a set.
    type Item<'a>;

    /// Borrows the event in a parameter's slot.
    ///
    /// # Errors
    /// If the slot holds no event that matches.
    #[doc(hidden)]
    fn lend(slot: Slot<'_>) -> Result<&Self, StepError>;

    /// Looks at a logged event; `None` if it does not match.
    fn item(event: &AnyEvent) -> Option<Self::Item<'_>>;
}

#[diagnostic::do_not_recommend]
impl<E: ControlEvent> Pattern for E {
    const EVENTS: &'static [EventType] = &[E::TYPE];
    type Item<'a> = &'a E;

    fn lend(slot: Slot<'_>) -> Result<&E, StepError> {
        slot.payload_ref().ok_or_else(|| slot.mismatch())
    }

    fn item(event: &AnyEvent) -> Option<&E> {
        event.downcast_ref()
    }
}

/// An enum whose variants each hold one event: "either of", as an input and as an output (S3).
///
/// A variant holds the event itself, which must then be `Clone`, or an `Arc` of it, which costs no copy.
///
/// ```
/// use std::sync::Arc;
/// use workflow_core::prelude::*;
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// struct Enough { passages: u32 }
///
/// #[derive(Debug, Serialize, Deserialize, Event)]
/// struct Short { missing: u32 }
///
/// #[derive(Debug, EventSet)]
/// enum Graded {
///     Enough(Enough),
///     Short(Arc<Short>),
/// }
/// ```
pub trait EventSet: Pattern + FromEvent {}

/// Makes an owned value out of a logged event: what `E` and enum inputs, and a run's output, need.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken out of the log by value",
    label = "needs `Clone`",
    note = "the log keeps every event: derive `Clone`, or take `&{Self}` or `Arc<{Self}>`, which cost no copy"
)]
pub trait FromEvent: Sized {
    /// The event types that it can be made of; empty if that is not known.
    #[doc(hidden)]
    const MEMBERS: &'static [EventType] = &[];

    /// The value, cloned or shared; `None` if the event is of another type.
    fn from_event(event: &AnyEvent) -> Option<Self>;
}

/// What the log gives by value: what the parameter `E` needs. It is asked of the log, so that the compiler
/// speaks of this and not of the parameter.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{E}` cannot be taken out of the log by value",
    label = "`{E}` is not `Clone`",
    note = "the log keeps every event: derive `Clone`, or take `&{E}` or `Arc<{E}>`, which cost no copy"
)]
pub trait Gives<E> {
    /// The event types that it is made of.
    const EVENTS: &'static [EventType];

    /// The value, cloned or shared; `None` if the event is of another type.
    fn value(event: &AnyEvent) -> Option<E>;
}

/// The log of a run, on the level of types.
#[doc(hidden)]
#[derive(Debug)]
pub struct Log;

#[diagnostic::do_not_recommend]
impl<E: FromEvent> Gives<E> for Log {
    const EVENTS: &'static [EventType] = E::MEMBERS;

    fn value(event: &AnyEvent) -> Option<E> {
        E::from_event(event)
    }
}

#[diagnostic::do_not_recommend]
impl<E: ControlEvent + Clone> FromEvent for E {
    const MEMBERS: &'static [EventType] = &[E::TYPE];

    fn from_event(event: &AnyEvent) -> Option<Self> {
        event.downcast_ref::<E>().cloned()
    }
}

/// What a variant of an [`EventSet`] may hold: an event that is `Clone`, or an `Arc` of any event.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a member of an event set",
    label = "not an event that is `Clone`, nor an `Arc` of an event",
    note = "derive `Event` and `Clone` on it, or hold `Arc<{Self}>`"
)]
pub trait SetMember: Sized {
    /// The event type of the member.
    type Event: ControlEvent;

    /// Takes the member out of a logged event of its type.
    fn take(event: &AnyEvent) -> Option<Self>;

    /// The member as an event for the log.
    fn into_event(self) -> AnyEvent;
}

#[diagnostic::do_not_recommend]
impl<E: ControlEvent + Clone> SetMember for E {
    type Event = E;

    fn take(event: &AnyEvent) -> Option<Self> {
        event.downcast_ref::<E>().cloned()
    }

    fn into_event(self) -> AnyEvent {
        AnyEvent::new(self)
    }
}

impl<E: ControlEvent> SetMember for Arc<E> {
    type Event = E;

    fn take(event: &AnyEvent) -> Option<Self> {
        event.downcast()
    }

    fn into_event(self) -> AnyEvent {
        AnyEvent::from_erased(self)
    }
}
