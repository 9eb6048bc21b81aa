//! A request that closes by itself when its time has run out (S32).

use std::fmt;

use super::{Request, When};

/// A step's output: a request that expires without a reply.
///
/// Made by [`expires_in`](crate::Request::expires_in) and [`expires_at`](crate::Request::expires_at) of a
/// request.
///
/// The request enters the log like any other. If it expires before a reply arrives, the run closes it and
/// logs an event in its scope. [`Expired<R>`](crate::Expired) is the parameter that takes this event. A later
/// reply fails with [`SendError::Expired`](crate::SendError::Expired). If a reply and the expiry race, the
/// run accepts exactly one of them.
///
/// If no step takes `Expired<R>`, the request closes without further effect. The run may then stall, and its
/// report says why.
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
    pub(crate) when: When,
    pub(crate) request: R,
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
