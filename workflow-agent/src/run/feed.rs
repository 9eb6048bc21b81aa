//! The feed behind a stream: the items of the display, those that wait to be shown, and the outcome once the run has ended.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::StreamExt as _;
use workflow_core::{DisplayItem, DisplayStream};

/// The items of a stream whose handle makes them of a display. `S` is an item of the stream.
pub(crate) struct Feed<S> {
    display: Option<DisplayStream>,
    ready: VecDeque<S>,
    /// The last item, once the run has ended. The lock is never taken: it makes the future one that threads can share, and
    /// with it the handle.
    ending: Option<Mutex<BoxFuture<'static, S>>>,
}

/// The next part of a feed.
pub(crate) enum Fed<S> {
    /// An item of the stream.
    Ready(S),
    /// An item of the display, for the handle.
    Displayed(DisplayItem),
}

impl<S> Feed<S> {
    pub(crate) fn new(display: DisplayStream) -> Self {
        Self { display: Some(display), ready: VecDeque::new(), ending: None }
    }

    /// Adds an item to the stream.
    pub(crate) fn add(&mut self, item: S) {
        self.ready.push_back(item);
    }

    /// Takes the end of the run: the future waits for it, and makes the last item. A viewer who has that item finds the run
    /// ended wherever it looks. The display of an earlier process may have no outcome, and the journal has it.
    pub(crate) fn end(&mut self, last: impl Future<Output = S> + Send + 'static) {
        self.ending = Some(Mutex::new(last.boxed()));
    }

    /// The next part; `None` at the end of the stream.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Fed<S>>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(Fed::Ready(item)));
            }
            if let Some(ending) = &mut self.ending {
                let ending = ending.get_mut().unwrap_or_else(PoisonError::into_inner);
                let last = ready!(ending.poll_unpin(cx));
                self.ending = None;
                self.ready.push_back(last);
                continue;
            }
            let Some(display) = &mut self.display else { return Poll::Ready(None) };
            match ready!(display.poll_next_unpin(cx)) {
                Some(item) => return Poll::Ready(Some(Fed::Displayed(item))),
                None => self.display = None,
            }
        }
    }
}
