//! "Either of": the patterns that one slot of a signature can match, a single event type or an enum of
//! several (S3).

use super::Slot;
use crate::error::StepError;
use crate::event::{AnyEvent, ControlEvent, EventType, FromEvent};

/// The pattern of one input slot: an event type, or an [`EventSet`] enum of several.
///
/// Every [`ControlEvent`] implements it, and so does `#[derive(EventSet)]`. No one implements it by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a step can wait for",
    label = "neither an event that drives steps nor a set of such events",
    note = "name a type that derives `Event` (and is not display only) or `EventSet`, itself and not a reference to it: `List<E>`, not `List<&E>`"
)]
pub trait Pattern: Send + Sync + Sized + 'static {
    /// The event types that match, in declaration order.
    const EVENTS: &'static [EventType];

    /// The type of a list's elements: `&E` for an event, the enum itself for a set.
    type Item<'a>;

    /// Borrows the event in a parameter's slot.
    ///
    /// # Errors
    /// If the slot has no matching event.
    #[doc(hidden)]
    fn lend(slot: Slot<'_>) -> Result<&Self, StepError>;

    /// The element for a logged event; `None` if it does not match.
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

/// An enum whose variants each have one event: "either of", as input and as output.
///
/// A variant has the event itself, which must then be `Clone`, or an `Arc` of it, which costs no copy.
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
