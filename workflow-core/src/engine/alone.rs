//! The one-line form: a run in memory without an engine of the caller's.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;

use super::Engine;
use crate::event::{AnyEvent, StartEvent};
use crate::outcome::RunError;
use crate::run::{Start, UnhostedWorkflow, output_of};
use crate::workflow::Workflow;

/// Runs a workflow in one line. Every [`Workflow`] has it; the [`prelude`](crate::prelude) brings it into scope.
pub trait WorkflowExt: Workflow {
    /// Runs the workflow in memory and returns its output.
    ///
    /// The run lives in the returned future. It needs no engine, no configuration beyond defaults, and no task of its
    /// own. Dropping the future cancels the run. A start event that no step takes does not compile.
    ///
    /// # Errors
    /// [`RunError`] with the reason, if the run did not complete.
    fn run<S: StartEvent>(self, start: S) -> Running<Self> {
        const { crate::spec::check::all(Self::TABLE) };
        const { crate::spec::check::taken_from_outside::<S>(Self::TABLE) };
        Running::new(self, start)
    }
}

impl<W: Workflow> WorkflowExt for W {}

/// A run in memory: a future that returns the workflow's output.
///
/// [`WorkflowExt::run`] returns it. It does nothing before it is polled; dropping it cancels the run.
///
/// # Panics
/// If it is polled after its end, as the future of an `async` function does.
#[must_use = "a run begins when this is awaited"]
pub struct Running<W> {
    ended: BoxFuture<'static, Result<AnyEvent, RunError>>,
    workflow: PhantomData<fn() -> W>,
}

impl<W: Workflow> Running<W> {
    fn new<S: StartEvent>(workflow: W, start: S) -> Self {
        let ended = Engine::run_alone(UnhostedWorkflow::alone(workflow), Start::of::<W, S>(start));
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
