//! The feed behind a stream: what the display has, what waits to be shown, and the outcome exactly once.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::StreamExt as _;
use workflow_core::{DisplayItem, DisplayStream};

/// The items of a stream whose handle makes them of a display. `S` is an item of the stream.
pub(crate) struct Feed<S> {
    display: Option<DisplayStream>,
    ready: VecDeque<S>,
    /// Whether the outcome was shown.
    is_done: bool,
    /// The outcome of a run that completed before this stream began.
    ending: Option<BoxFuture<'static, Option<S>>>,
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
        Self { display: Some(display), ready: VecDeque::new(), is_done: false, ending: None }
    }

    /// Adds an item to the stream.
    pub(crate) fn add(&mut self, item: S) {
        self.ready.push_back(item);
    }

    /// Adds the outcome to the stream.
    pub(crate) fn done(&mut self, item: S) {
        self.is_done = true;
        self.add(item);
    }

    /// Takes the end of a completed run. Its outcome has come before, unless the display is that of an earlier process:
    /// then the journal has the outcome.
    pub(crate) fn completed(&mut self, outcome: impl Future<Output = Option<S>> + Send + 'static) {
        if !self.is_done {
            self.ending = Some(outcome.boxed());
        }
    }

    /// The next part; `None` at the end of the stream.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Fed<S>>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(Fed::Ready(item)));
            }
            if let Some(ending) = &mut self.ending {
                let outcome = ready!(ending.poll_unpin(cx));
                self.ending = None;
                self.ready.extend(outcome);
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
