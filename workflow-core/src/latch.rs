//! A flag that is raised once, for good, and that tasks can wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A flag that stays up once it is raised. Clones are the same flag.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latch(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    raised: AtomicBool,
    waiting: Notify,
}

impl Latch {
    /// Raises the flag, and wakes all who wait for it. Their wakers are foreign code: the caller holds no lock.
    pub(crate) fn raise(&self) {
        if !self.0.raised.swap(true, Ordering::SeqCst) {
            self.0.waiting.notify_waiters();
        }
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::SeqCst)
    }

    /// Waits until the flag is up. Dropping the future gives up the wait.
    pub(crate) async fn raised(&self) {
        // Made before the flag is read: from here on it is woken.
        let woken = self.0.waiting.notified();
        if !self.is_raised() {
            woken.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn all_who_wait_are_woken_and_later_ones_do_not_wait() {
        let latch = Latch::default();
        let other = latch.clone();
        let (mut one, two) = (pin!(latch.raised()), pin!(other.raised()));
        assert!(one.as_mut().now_or_never().is_none());
        other.raise();
        other.raise();
        assert!(one.now_or_never().is_some() && two.now_or_never().is_some());
        assert!(latch.is_raised() && latch.raised().now_or_never().is_some());
    }

    #[test]
    fn a_flag_that_is_raised_between_two_polls_is_seen() {
        let latch = Latch::default();
        let waits = latch.raised();
        latch.raise();
        assert!(waits.now_or_never().is_some());
    }
}
