//! `Reply<R>`: the reply to a request, together with the request.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use super::{EventInput, Slot, StepInput};
use crate::error::StepError;
use crate::event::{Answered, AnyEvent, Request};
use crate::spec::InputSpec;

/// The reply to a request `R`, with the request. Dereferences to the reply.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize)]
/// # struct Approval { granted: bool }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(request, reply = Approval)]
/// # struct ApproveRefund { cents: u64 }
/// fn refunded(approval: &Reply<ApproveRefund>) -> u64 {
///     if approval.granted { approval.request().cents } else { 0 }
/// }
/// ```
pub struct Reply<R> {
    /// An `Answered<R>`. The field does not name that type, so that a type that is no request is one mistake, in the
    /// signature of the step.
    answered: AnyEvent,
    request: PhantomData<fn() -> R>,
}

impl<R: Request> Reply<R> {
    /// The request.
    pub fn request(&self) -> &R {
        &self.answered().request
    }

    /// The reply.
    pub fn value(&self) -> &R::Reply {
        &self.answered().reply
    }

    fn answered(&self) -> &Answered<R> {
        self.answered.payload_ref().expect("`bound` has checked the type")
    }

    fn bound(slot: &Slot<'_>) -> Result<Self, StepError> {
        let answered = slot.event()?;
        answered.payload_ref::<Answered<R>>().ok_or_else(|| slot.mismatch())?;
        Ok(Self { answered: answered.clone(), request: PhantomData })
    }
}

impl<R: Request> Deref for Reply<R> {
    type Target = R::Reply;

    fn deref(&self) -> &R::Reply {
        self.value()
    }
}

impl<R> Clone for Reply<R> {
    fn clone(&self) -> Self {
        Self { answered: self.answered.clone(), request: PhantomData }
    }
}

impl<R: Request> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reply({})", R::NAME)
    }
}

impl<R: Request> StepInput for Reply<R> {
    const SPEC: InputSpec = InputSpec::reply::<R>();
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Self::bound(&slot)
    }
}

impl<R: Request> StepInput for &Reply<R> {
    const SPEC: InputSpec = InputSpec::reply::<R>();
    type Item<'a> = &'a Reply<R>;

    fn fill(slot: Slot<'_>) -> Result<&Reply<R>, StepError> {
        let bound = Reply::bound(&slot)?;
        Ok(slot.keep(bound))
    }
}

impl<R: Request> EventInput for Reply<R> {}
impl<R: Request> EventInput for &Reply<R> {}
