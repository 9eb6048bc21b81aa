//! Panics of users' code: where the library calls it, they are caught, put into words, and dropped without harm.
//! What a panic means for a run is not decided here.

use std::any::Any;
use std::fmt;
use std::mem::needs_drop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::FutureExt as _;

/// How many payloads are dropped one after the other, each the panic of the drop before it.
const DROPS: usize = 8;

/// A panic, as an error.
#[derive(Debug, thiserror::Error)]
#[error("it panicked: {message}")]
pub(crate) struct Panicked {
    pub(crate) message: String,
}

/// Calls users' code. A panic in it is an error with the message of the panic.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(panic_of)
}

/// The same for a future of users' code.
pub(crate) async fn caught_in<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(panic_of)
}

/// Locks a value that is whole between any two calls, whatever panicked while it was locked.
pub(crate) fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

pin_project_lite::pin_project! {
    /// The task of a run. By a panic in it the run ends; what it panicked with concerns nobody who polls the task.
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

/// A panic as an error, with its message if it has one.
pub(crate) fn panic_of(panic: Box<dyn Any + Send>) -> Panicked {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
    discard(panic);
    Panicked { message: message.unwrap_or_else(|| "no message".into()) }
}

/// Drops a value of users' code. A panic in its drop goes no further, and neither does one in the drop of what it
/// panicked with.
///
/// A value with two parts that both panic when they are dropped aborts the process: that is Rust's own rule, and nothing
/// that stands around the value can change it.
#[inline]
pub(crate) fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        discard_panic(panic);
    }
}

/// Drops a shared value, if nobody else has it. Of several who drop it at the same time, one does.
#[inline]
pub(crate) fn release<T>(shared: Arc<T>) {
    if let Some(value) = Arc::into_inner(shared)
        && needs_drop::<T>()
    {
        discard(value);
    }
}

/// Without a type parameter, so that it is compiled here once.
#[cold]
fn discard_panic(panic: Box<dyn Any + Send>) {
    let mut dropped = Err(panic);
    for _ in 0..DROPS {
        let Err(panic) = dropped else { return };
        dropped = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    }
    // Payloads whose drops panic with the next one may never end: the last is leaked.
    std::mem::forget(dropped);
}

/// A value of users' code that the library holds: a panic in its drop goes no further.
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

    /// Panics with another of its kind when it is dropped, so many times.
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
    fn a_shared_value_is_dropped_by_the_last_who_has_it() {
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
