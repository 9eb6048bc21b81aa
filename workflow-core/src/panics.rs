//! Panics of users' code. The library catches them, turns them into text, and contains those of drops. The
//! callers decide what a panic means for a run.
//!
//! A drop that panics during another panic aborts the process. So every value of a user's type that the
//! library drops goes through [`discard`], [`release`] or [`Contained`].

use std::any::Any;
use std::fmt;
use std::mem::needs_drop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::FutureExt as _;

use crate::text::bounded;

/// The most payloads to drop one after the other, where each drop panics with the next payload.
const DROPS: usize = 8;

/// A caught panic, as an error.
#[derive(Debug, thiserror::Error)]
#[error("it panicked: {message}")]
pub(crate) struct Panicked {
    pub(crate) message: String,
}

/// Calls users' code and catches a panic.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(panic_of)
}

/// Polls a future of users' code and catches a panic.
pub(crate) async fn caught_in<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(panic_of)
}

/// Locks a value whose state is consistent between any two calls, so that a panic during a lock does no harm.
pub(crate) fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

pin_project_lite::pin_project! {
    /// The task of a run. A panic ends the run and does not reach whoever polls the task.
    pub(crate) struct Driven<F> {
        #[pin]
        run: F,
    }
}

impl<F: Future<Output = ()>> Driven<F> {
    pub(crate) fn new(run: F) -> Self {
        Self { run }
    }
}

impl<F: Future<Output = ()>> Future for Driven<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        caught(|| self.project().run.poll(cx)).unwrap_or(Poll::Ready(()))
    }
}

/// Turns a panic into an error with its message, if it has one.
pub(crate) fn panic_of(panic: Box<dyn Any + Send>) -> Panicked {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(|text| &**text));
    let message = bounded(text.unwrap_or("no message"));
    discard(panic);
    Panicked { message }
}

/// Drops a value of a user's type and contains a panic of its drop, also one of the payload of that panic.
///
/// A value with two parts that both panic when dropped aborts the process. That is a rule of Rust, which no
/// wrapper can change.
#[inline]
pub(crate) fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        discard_panic(panic);
    }
}

/// Drops the value of the last reference. Of several concurrent calls, one drops it.
#[inline]
pub(crate) fn release<T>(shared: Arc<T>) {
    if let Some(value) = Arc::into_inner(shared)
        && needs_drop::<T>()
    {
        discard(value);
    }
}

/// Has no type parameter, so that it is compiled with this crate.
#[cold]
fn discard_panic(panic: Box<dyn Any + Send>) {
    let mut dropped = Err(panic);
    for _ in 0..DROPS {
        let Err(panic) = dropped else { return };
        dropped = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    }
    // A payload may panic with the next one without end, so the last one is leaked.
    std::mem::forget(dropped);
}

/// A value of a user's type whose drop is contained.
pub(crate) struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T> Deref for Contained<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_ref().expect("the value is there until it is dropped")
    }
}

impl<T> Drop for Contained<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            discard(value);
        }
    }
}

impl<T: Clone> Clone for Contained<T> {
    #[inline]
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: fmt::Debug> fmt::Debug for Contained<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Panics with another bomb when dropped, this number of times.
    struct Bomb(usize, Arc<AtomicUsize>);

    impl Drop for Bomb {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
            if let Some(left) = self.0.checked_sub(1) {
                panic_any(Self(left, Arc::clone(&self.1)));
            }
        }
    }

    fn drops(bombs: usize) -> usize {
        let dropped = Arc::<AtomicUsize>::default();
        discard(Bomb(bombs, Arc::clone(&dropped)));
        dropped.load(Ordering::SeqCst)
    }

    #[test]
    fn a_value_whose_drop_panics_is_dropped_once() {
        assert_eq!((drops(0), drops(1)), (1, 2));
    }

    #[test]
    fn payloads_that_panic_for_ever_are_leaked_in_the_end() {
        assert_eq!(drops(usize::MAX), DROPS + 1);
    }

    #[test]
    fn a_panic_with_a_payload_that_panics_is_an_error_without_a_message() {
        let payload = || panic_any(Bomb(3, Arc::default()));
        let panicked = caught::<()>(payload).unwrap_err();
        assert_eq!(panicked.to_string(), "it panicked: no message");
    }

    #[test]
    fn a_contained_value_is_dropped_quietly() {
        let dropped = Arc::<AtomicUsize>::default();
        drop(Contained::new(Bomb(1, Arc::clone(&dropped))));
        assert_eq!(dropped.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn the_last_reference_drops_a_shared_value() {
        let dropped = Arc::<AtomicUsize>::default();
        let shared = Arc::new(Bomb(1, Arc::clone(&dropped)));
        release(Arc::clone(&shared));
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        release(shared);
        assert_eq!(dropped.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn several_contained_values_are_dropped_though_each_panics_and_while_a_thread_panics() {
        let dropped = Arc::<AtomicUsize>::default();
        let bombs = || Vec::from([(); 3].map(|()| Contained::new(Bomb(1, Arc::clone(&dropped)))));
        drop(bombs());
        let panicking = caught(|| {
            let _bombs = bombs();
            panic!("while they are there");
        });
        assert!(panicking.is_err());
        assert_eq!(dropped.load(Ordering::SeqCst), 12);
    }
}
