//! What a step may emit, in constants.

use crate::event::EventType;

/// What a return type may emit, as constant data.
#[derive(Debug, Clone, Copy)]
pub enum OutputSpec {
    /// No event.
    Nothing,
    /// Exactly one event.
    Event(EventType),
    /// What the inner type emits, or nothing.
    Optional(&'static OutputSpec),
    /// What the inner type emits, any number of times.
    Many(&'static OutputSpec),
    /// Everything the inner types emit.
    All(&'static [OutputSpec]),
    /// Exactly one event of these types.
    OneOf(&'static [EventType]),
    /// A branch per item.
    FanOut(EventType),
    /// Exactly one event, when its time has come.
    Timed(EventType),
    /// Exactly one request, and what says that it has expired.
    Expiring {
        /// The request.
        request: EventType,
        /// The reply to it.
        reply: EventType,
        /// What enters the log when it expires.
        expired: EventType,
    },
}
