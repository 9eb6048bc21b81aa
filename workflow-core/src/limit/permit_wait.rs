//! The wait of one arrival for its permit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use futures_util::future::BoxFuture;

use super::limiter::{Arrival, LimitPermit};

/// Ready with the permit, in order of arrival. Its drop leaves the queue.
///
/// The first in the queue waits for the next token by the engine's clock; the others wait for those before them.
#[must_use = "the wait ends when it is dropped"]
pub(crate) struct PermitWait {
    /// `None` once the permit was handed out.
    arrival: Option<Arrival>,
    /// The sleep until the next token, and its time.
    sleep: Option<(SystemTime, BoxFuture<'static, ()>)>,
}

impl PermitWait {
    pub(super) fn of(arrival: Arrival) -> Self {
        Self { arrival: Some(arrival), sleep: None }
    }

    /// The place in the order, for reports; `None` once the permit was handed out.
    pub(crate) fn arrival(&self) -> Option<&Arrival> {
        self.arrival.as_ref()
    }
}

impl Future for PermitWait {
    type Output = LimitPermit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LimitPermit> {
        let Self { arrival, sleep } = &mut *self;
        let Some(waiting) = arrival.as_ref() else { return Poll::Pending };
        match waiting.poll(cx.waker()) {
            Ok(()) => return self.taken(),
            Err(None) => *sleep = None,
            Err(Some(at)) => {
                if sleep.as_ref().is_none_or(|(until, _)| *until != at) {
                    *sleep = Some((at, waiting.limiter.clock().sleep_until(at)));
                }
                let Some((_, sleeping)) = sleep else { return Poll::Pending };
                if sleeping.as_mut().poll(cx).is_ready() {
                    // The token is there, unless a clock was early.
                    *sleep = None;
                    cx.waker().wake_by_ref();
                }
            }
        }
        Poll::Pending
    }
}

impl PermitWait {
    fn taken(mut self: Pin<&mut Self>) -> Poll<LimitPermit> {
        self.sleep = None;
        self.arrival.take().map_or(Poll::Pending, |arrival| Poll::Ready(arrival.permit()))
    }
}

impl Drop for PermitWait {
    fn drop(&mut self) {
        if let Some(arrival) = self.arrival.take() {
            arrival.leave();
        }
    }
}

impl fmt::Debug for PermitWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitWait").field("arrival", &self.arrival).finish_non_exhaustive()
    }
}
