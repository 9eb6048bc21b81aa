//! The tasks of an engine, counted, so that its end can wait for them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::sync::Notify;

/// Counts tasks.
#[derive(Debug, Default)]
pub(super) struct Tasks(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    tasks: AtomicUsize,
    none_left: Notify,
}

/// Counts as one task until it is dropped.
#[derive(Debug)]
pub(super) struct TaskToken(Arc<Count>);

impl Tasks {
    pub(super) fn token(&self) -> TaskToken {
        self.0.tasks.fetch_add(1, Ordering::SeqCst);
        TaskToken(Arc::clone(&self.0))
    }

    /// Waits until there is none, at some moment.
    pub(super) async fn none_left(&self) {
        // Made before they are counted: from here on it is woken.
        let woken = self.0.none_left.notified();
        if self.0.tasks.load(Ordering::SeqCst) > 0 {
            woken.await;
        }
    }
}

impl Drop for TaskToken {
    fn drop(&mut self) {
        if self.0.tasks.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.none_left.notify_waiters();
        }
    }
}

pin_project_lite::pin_project! {
    /// A task that is counted. It has dropped all that it held before it is counted out.
    #[derive(Debug)]
    pub(super) struct Counted<F> {
        #[pin]
        task: F,
        _token: TaskToken,
    }
}

impl<F> Counted<F> {
    pub(super) fn new(task: F, token: TaskToken) -> Self {
        Self { task, _token: token }
    }
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.project().task.poll(context)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn the_last_task_wakes_who_waits_for_it() {
        let tasks = Tasks::default();
        assert!(tasks.none_left().now_or_never().is_some());
        let tokens = [tasks.token(), tasks.token()];
        let mut waits = pin!(tasks.none_left());
        assert!(waits.as_mut().now_or_never().is_none());
        let [one, other] = tokens;
        drop(one);
        assert!(waits.as_mut().now_or_never().is_none());
        drop(other);
        assert!(waits.now_or_never().is_some());
    }

    #[test]
    fn a_task_is_counted_until_it_is_dropped() {
        let tasks = Tasks::default();
        let mut task = Box::pin(Counted::new(async { 1 }, tasks.token()));
        assert_eq!(task.as_mut().now_or_never(), Some(1));
        assert!(tasks.none_left().now_or_never().is_none());
        drop(task);
        assert!(tasks.none_left().now_or_never().is_some());
    }
}
