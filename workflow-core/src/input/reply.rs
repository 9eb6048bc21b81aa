//! `Reply<R>`: what the outside answered, together with the request it answers.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{EventInput, InputSpec, Slot, StepInput};
use crate::error::StepError;
use crate::event::{AnyEvent, Erased, EventType, Request, request_of};
use crate::panics::{Contained, release};

/// The log entry that carries a reply.
#[derive(Debug)]
pub(crate) struct Answered<R: Request> {
    /// Each by itself: the drop of one may panic while that of the other does.
    request: Contained<Arc<R>>,
    reply: Contained<R::Reply>,
}

impl<R: Request> Answered<R> {
    pub(crate) fn new(request: Arc<R>, reply: Contained<R::Reply>) -> Self {
        Self { request: Contained::new(request), reply }
    }

    pub(crate) fn decode(data: &RawValue, request: Option<&AnyEvent>) -> Result<AnyEvent, serde_json::Error> {
        let (request, reply) = (request_of(request)?, serde_json::from_str(data.get())?);
        Ok(AnyEvent::from_erased(Arc::new(Self::new(request, Contained::new(reply)))))
    }
}

impl<R: Request> Erased for Answered<R> {
    fn event_type(&self) -> &'static EventType {
        &R::REPLY_TYPE
    }

    fn release(self: Arc<Self>) {
        release(self);
    }
}

impl<R: Request> Serialize for Answered<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.reply.serialize(serializer)
    }
}

/// The reply to a request `R`, together with that very request (S5). It dereferences to the reply.
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
    /// An `Answered<R>`. Its type is not named here, so that a type that is no request is one mistake, in the
    /// signature of the step.
    answered: AnyEvent,
    request: PhantomData<fn() -> R>,
}

impl<R: Request> Reply<R> {
    /// The request that was answered.
    pub fn request(&self) -> &R {
        &self.answered().request
    }

    /// The answer.
    pub fn value(&self) -> &R::Reply {
        &self.answered().reply
    }

    fn answered(&self) -> &Answered<R> {
        self.answered.payload_ref().expect("only what has been answered is bound")
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
