//! What a step may emit, in constants.

use crate::event::EventType;

/// The declaration of a return type's outputs, as constant data.
#[derive(Debug, Clone, Copy)]
pub enum OutputSpec {
    /// No event.
    Nothing,
    /// Exactly one event.
    Event(EventType),
    /// The outputs of the inner type, or nothing.
    Optional(&'static OutputSpec),
    /// The outputs of the inner type, any number of times.
    Many(&'static OutputSpec),
    /// The outputs of all inner types.
    All(&'static [OutputSpec]),
    /// Exactly one event of these types.
    OneOf(&'static [EventType]),
    /// A branch per item.
    FanOut(EventType),
    /// Exactly one event, when a timer fires.
    Timed(EventType),
    /// Exactly one request, and the event that reports its expiry.
    Expiring {
        /// The request.
        request: EventType,
        /// The reply to the request.
        reply: EventType,
        /// The event that enters the log when the request expires.
        expired: EventType,
    },
}
