//! `Expired<R>`: a request that expired without a reply (S32).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{EventInput, Slot, StepInput};
use crate::error::StepError;
use crate::event::{ExpiredRequest, Request};
use crate::spec::InputSpec;

/// A request `R` that expired without a reply. Dereferences to the request.
///
/// Triggers a step when the request expires, as [`Reply<R>`](crate::Reply) does when a reply arrives. Only
/// requests returned as [`Expiring<R>`](crate::Expiring) can expire.
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
    /// The request without a reply.
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
