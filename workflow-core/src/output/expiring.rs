//! `Expiring<R>`: a request that closes by itself when its time has run out (S32).

use std::fmt;
use std::sync::Arc;

use super::timer::{SetTimer, When};
use super::{Emitted, EmittedItem, One, OutputSpec, StepOutput};
use crate::error::StepError;
use crate::event::{AnyEvent, Request};
use crate::input::ExpiredRequest;

/// A step's output that asks for a time only: made by [`expires_in`](crate::Request::expires_in) and
/// [`expires_at`](crate::Request::expires_at) of a request.
///
/// The request enters the log like any other. If its time runs out before somebody replies, it is closed, and
/// an event says so in the scope that asked: [`Expired<R>`](crate::Expired) is the parameter that takes it. A
/// reply that comes after that is refused with [`SendError::Expired`](crate::SendError::Expired). Of a reply and
/// the expiry that race for a request, exactly one is taken.
///
/// Where no step takes `Expired<R>`, the request just closes; the run may then stall, and says why.
///
/// ```
/// use std::time::Duration;
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct RefundAsked { cents: u64 }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(request, reply = bool)]
/// # struct ApproveRefund { cents: u64 }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Decided { granted: bool }
/// # struct Refunds;
/// #[workflow]
/// impl Refunds {
///     #[step]
///     async fn ask(&self, refund: &RefundAsked) -> Expiring<ApproveRefund> {
///         ApproveRefund { cents: refund.cents }.expires_in(Duration::from_millis(5))
///     }
///
///     #[step]
///     async fn answered(&self, approval: &Reply<ApproveRefund>) -> Decided {
///         Decided { granted: **approval }
///     }
///
///     #[step]
///     async fn unanswered(&self, asked: &Expired<ApproveRefund>) -> Decided {
///         Decided { granted: asked.request().cents < 1_000 }
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), RunError> {
/// assert_eq!(Refunds.run(RefundAsked { cents: 500 }).await?, Decided { granted: true });
/// # Ok(())
/// # }
/// ```
#[must_use = "a request is made by returning it from a step"]
pub struct Expiring<R> {
    when: When,
    request: R,
}

impl<R: Request> Expiring<R> {
    pub(crate) fn new(when: When, request: R) -> Self {
        Self { when, request }
    }
}

impl<R> fmt::Debug for Expiring<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expiring({:?})", self.when)
    }
}

impl<R: Request> StepOutput for Expiring<R> {
    const SPEC: OutputSpec =
        OutputSpec::Expiring { request: R::TYPE, reply: R::REPLY_TYPE, expired: R::EXPIRED_TYPE };
    type Events = One<R>;

    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
        let request = Arc::new(self.request);
        let expired = AnyEvent::from_erased(Arc::new(ExpiredRequest::new(Arc::clone(&request))));
        let timer = SetTimer { when: self.when, event: expired };
        let request = AnyEvent::from_erased(request);
        emitted.put(EmittedItem::Expiring(Box::new((request, timer))));
        Ok(())
    }
}
