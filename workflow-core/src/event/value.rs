//! Values taken out of a log, and the members of an event set (S3).

use std::sync::Arc;

use super::{AnyEvent, ControlEvent, EventType};

/// Makes an owned value from a logged event, for inputs by value and for outputs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken out of the log by value",
    label = "needs `Clone`",
    note = "the log keeps every event: derive `Clone`, or take `&{Self}` or `Arc<{Self}>`, which cost no copy"
)]
pub trait FromEvent: Sized {
    /// The event types that the value can hold; empty if unknown.
    #[doc(hidden)]
    const MEMBERS: &'static [EventType] = &[];

    /// The value, cloned or shared; `None` for an event of another type.
    fn from_event(event: &AnyEvent) -> Option<Self>;
}

/// The log gives `E` by value, as a parameter of type `E` needs. The log implements the trait, so that the
/// compiler's message is about the event and not about the parameter.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{E}` cannot be taken out of the log by value",
    label = "`{E}` is not `Clone`",
    note = "the log keeps every event: derive `Clone`, or take `&{E}` or `Arc<{E}>`, which cost no copy"
)]
pub trait Gives<E> {
    /// The event types that the value can be made of.
    const EVENTS: &'static [EventType];

    /// The value, cloned or shared; `None` for an event of another type.
    fn value(event: &AnyEvent) -> Option<E>;
}

/// The log of a run, at type level.
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

/// A variant's content in an [`EventSet`](crate::EventSet): an event that is `Clone`, or an `Arc` of any event.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a member of an event set",
    label = "not an event that is `Clone`, nor an `Arc` of an event",
    note = "derive `Event` and `Clone` on it, or hold `Arc<{Self}>`"
)]
pub trait SetMember: Sized {
    /// The event type of the member.
    type Event: ControlEvent;

    /// The member from a logged event of its type; `None` for another type.
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
