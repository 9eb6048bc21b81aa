//! `Expired<R>`: the request whose time ran out before somebody replied (S32).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{EventInput, InputSpec, Slot, StepInput};
use crate::error::StepError;
use crate::event::{AnyEvent, Erased, EventType, Request, request_of};
use crate::panics::release;

/// The log entry that says that a request has expired.
#[derive(Debug)]
pub(crate) struct ExpiredRequest<R> {
    request: Arc<R>,
}

impl<R: Request> ExpiredRequest<R> {
    pub(crate) fn new(request: Arc<R>) -> Self {
        Self { request }
    }

    pub(crate) fn decode(_: &RawValue, request: Option<&AnyEvent>) -> Result<AnyEvent, serde_json::Error> {
        Ok(AnyEvent::from_erased(Arc::new(Self::new(request_of(request)?))))
    }
}

impl<R: Request> Erased for ExpiredRequest<R> {
    fn event_type(&self) -> &'static EventType {
        &R::EXPIRED_TYPE
    }

    fn release(self: Arc<Self>) {
        release(self);
    }
}

/// The request: whoever reads it back needs nothing else.
impl<R: Request> Serialize for ExpiredRequest<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.request.serialize(serializer)
    }
}

/// A request `R` whose time ran out before somebody replied (S32). It dereferences to the request.
///
/// A step that takes it is triggered when the request expires, as one that takes [`Reply<R>`](crate::Reply) is
/// when somebody replies. Only a request that some step returns as [`Expiring<R>`](crate::Expiring) ever does.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(request, reply = bool)]
/// # struct ApproveRefund { cents: u64 }
/// fn left_undecided(asked: &Expired<ApproveRefund>) -> u64 {
///     asked.cents
/// }
/// ```
pub struct Expired<R> {
    expired: Arc<ExpiredRequest<R>>,
}

impl<R: Request> Expired<R> {
    /// The request that nobody replied to in time.
    pub fn request(&self) -> &R {
        &self.expired.request
    }

    fn bound(slot: &Slot<'_>) -> Result<Self, StepError> {
        let expired = slot.event()?.payload_arc().ok_or_else(|| slot.mismatch())?;
        Ok(Self { expired })
    }
}

impl<R: Request> Deref for Expired<R> {
    type Target = R;

    fn deref(&self) -> &R {
        self.request()
    }
}

impl<R> Clone for Expired<R> {
    fn clone(&self) -> Self {
        Self { expired: Arc::clone(&self.expired) }
    }
}

impl<R: Request> fmt::Debug for Expired<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expired({})", R::NAME)
    }
}

impl<R: Request> StepInput for Expired<R> {
    const SPEC: InputSpec = InputSpec::expired::<R>();
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Self::bound(&slot)
    }
}

impl<R: Request> StepInput for &Expired<R> {
    const SPEC: InputSpec = InputSpec::expired::<R>();
    type Item<'a> = &'a Expired<R>;

    fn fill(slot: Slot<'_>) -> Result<&Expired<R>, StepError> {
        let bound = Expired::bound(&slot)?;
        Ok(slot.keep(bound))
    }
}

impl<R: Request> EventInput for Expired<R> {}
impl<R: Request> EventInput for &Expired<R> {}
