//! The one-line form: a workflow, a start event, an output, without an engine of one's own.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;

use super::Workflow;
use crate::engine::{Engine, Start};
use crate::error::RunError;
use crate::event::{AnyEvent, StartEvent};
use crate::run::{Unhosted, output_of};

/// A run in memory: a future that ends with the workflow's output.
///
/// [`Workflow::run`] returns it. It does nothing before it is polled; dropping it cancels the run.
///
/// # Panics
/// If it is polled after it was over, as the future of an `async` function does.
#[must_use = "a run begins when this is awaited"]
pub struct Running<W> {
    ended: BoxFuture<'static, Result<AnyEvent, RunError>>,
    workflow: PhantomData<fn() -> W>,
}

impl<W: Workflow> Running<W> {
    pub(super) fn new<S: StartEvent>(workflow: W, start: S) -> Self {
        let ended = Engine::run_alone(Unhosted::new(workflow), Start::of::<W, S>(start));
        Self { ended, workflow: PhantomData }
    }
}

impl<W: Workflow> Future for Running<W> {
    type Output = Result<W::Output, RunError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = ready!(self.ended.as_mut().poll(cx));
        Poll::Ready(ended.and_then(|ended| output_of::<W>(&ended)))
    }
}

impl<W> fmt::Debug for Running<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}
