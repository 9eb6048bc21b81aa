//! What a run waits for: executions and asynchronous preconditions, each with its panics caught (S27), and times.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Instant, SystemTime};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use futures_util::task::AtomicWaker;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinError, JoinHandle, coop};
use tracing::Span;

use super::RunShared;
use super::host::Host;
use super::timeout::Timeout;
use crate::error::StepError;
use crate::id::ExecutionId;
use crate::input::StepCall;
use crate::output::Emitted;
use crate::panics::discard;
use crate::scheduler::CandidateId;
use crate::workflow::StepFuture;

pub(crate) use crate::panics::panic_of;

/// How an execution came to its end.
pub(super) type StepResult = Result<Emitted, StepError>;

/// One thing a run waits for.
pub(super) enum InFlight {
    Execution(ExecutionId, GuardedStep),
    Spawned(ExecutionId, AbortOnDrop),
    Check(CandidateId, Guarded<BoxFuture<'static, Result<bool, StepError>>>),
    Wait(Due, BoxFuture<'static, ()>),
}

/// The same, until it is dropped.
struct Droppable {
    what: InFlight,
    dropped: Arc<Dropped>,
}

/// All that a run waits for, in memory that is there as long as it waits for something.
#[derive(Default)]
pub(super) struct Flights(Option<FuturesUnordered<Droppable>>);

impl Flights {
    pub(super) fn push(&mut self, what: InFlight, dropped: Arc<Dropped>) {
        self.0.get_or_insert_default().push(Droppable { what, dropped });
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arrived>> {
        self.0.as_mut().map_or(Poll::Ready(None), |flights| flights.poll_next_unpin(cx))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(FuturesUnordered::is_empty)
    }

    /// Drops what is there.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// Gives the memory back, if there is nothing.
    pub(super) fn shrink(&mut self) {
        self.0.take_if(|flights| flights.is_empty());
    }
}

/// What a run waits for a time for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Due {
    /// The next attempt of an execution.
    Retry(ExecutionId),
    /// The timer that is due next, at this time.
    Timer(SystemTime),
    /// The end of the time that the run may be active.
    Timeout,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Arrived {
    Execution(ExecutionId, StepResult),
    Dropped,
    Check(CandidateId, Result<bool, StepError>),
    Due(Due),
}

impl Due {
    /// What comes of it if the engine's clock panics, as one does that finds no timers: the attempt fails, and of what
    /// is nobody's failure but the run's, the run ends.
    fn never(self, panic: Box<dyn Any + Send>) -> Arrived {
        match self {
            Self::Retry(id) => Arrived::Execution(id, Err(panicked(panic))),
            // Its message alone: nobody drops a payload with care from here on.
            Self::Timer(_) | Self::Timeout => resume_unwind(Box::new(panic_of(panic).to_string())),
        }
    }
}

impl Future for Droppable {
    type Output = Arrived;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Arrived> {
        if self.dropped.is_told(cx) {
            return Poll::Ready(Arrived::Dropped);
        }
        ready!(take_turn(cx));
        let arrived = ready!(self.what.poll(cx));
        self.dropped.pass();
        Poll::Ready(arrived)
    }
}

impl InFlight {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Arrived> {
        match self {
            Self::Execution(id, step) => Poll::Ready(Arrived::Execution(*id, ready!(step.poll_weighed(cx)))),
            Self::Spawned(id, task) => Poll::Ready(Arrived::Execution(*id, ready!(task.poll(cx)))),
            Self::Check(id, check) => Poll::Ready(Arrived::Check(*id, ready!(check.poll(cx)))),
            Self::Wait(due, sleep) => match catch_unwind(AssertUnwindSafe(|| sleep.as_mut().poll(cx))) {
                Ok(slept) => slept.map(|()| Arrived::Due(*due)),
                Err(panic) => Poll::Ready(due.never(panic)),
            },
        }
    }
}

/// However many are woken together, the run leaves turns to other tasks, as far as the budget of its own goes.
fn take_turn(cx: &mut Context<'_>) -> Poll<()> {
    if coop::has_budget_remaining() {
        return coop::poll_proceed(cx).map(|turn| turn.made_progress());
    }
    // At once, and not when tokio would: whoever polls all of them sees by it that it is time to stop.
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Tells an execution that it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    told: AtomicBool,
    /// Whether it has come to its end before it was told.
    passed: AtomicBool,
    waker: AtomicWaker,
}

impl Dropped {
    /// Tells it; `false` if it has come to its end already.
    pub(crate) fn tell(&self) -> bool {
        self.told.store(true, Ordering::Release);
        self.waker.wake();
        !self.passed.load(Ordering::Acquire)
    }

    fn pass(&self) {
        self.passed.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_told(&self, cx: &mut Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.told.load(Ordering::Acquire)
    }
}

/// A future of the user's, whose panics go no further: one in a poll is a failure (S27), one in a drop is
/// nobody's.
pub(super) struct Guarded<F>(Option<F>);

impl<T, F: Future<Output = Result<T, StepError>> + Unpin> Guarded<F> {
    pub(super) fn new(future: F) -> Self {
        Self(Some(future))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, StepError>> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(future).poll(cx)));
        polled.unwrap_or_else(|panic| {
            // What panicked is not polled again.
            self.discard();
            Poll::Ready(Err(panicked(panic)))
        })
    }
}

impl<F> Guarded<F> {
    fn discard(&mut self) {
        if let Some(future) = self.0.take() {
            discard(future);
        }
    }
}

impl<F> Drop for Guarded<F> {
    fn drop(&mut self) {
        self.discard();
    }
}

/// A step's future, guarded, in its span.
pub(super) struct Begun {
    future: Guarded<StepFuture>,
    span: Span,
}

/// The same that is polled more than once: how long its polls take is noted.
pub(super) struct GuardedStep {
    begun: Begun,
    host: Arc<Host>,
    step: usize,
}

impl Begun {
    /// Begins the first attempt of an execution.
    #[inline]
    pub(super) fn first(host: &Arc<Host>, run: &RunShared, call: StepCall, span: Span) -> Self {
        let step = call.step_index();
        if host.middleware.is_empty() && host.table.steps[step].policy.timeout.is_none() {
            return Self { future: Guarded::new(host.step(step, call)), span };
        }
        Self::new(host, run, call, span, false)
    }

    /// Begins an attempt, with the step's compaction if it has to.
    pub(super) fn new(host: &Arc<Host>, run: &RunShared, call: StepCall, span: Span, compacts: bool) -> Self {
        let step = call.step_index();
        let timeout = host.table.steps[step].policy.timeout;
        let timeout = timeout.map(|after| Timeout::new(after, &run.common.clock));
        let begun = || Arc::clone(host);
        let future: StepFuture = match (timeout, compacts) {
            (None, false) if host.middleware.is_empty() => host.step(step, call),
            (None, false) => Box::pin(begun().surrounded(step, call)),
            (timeout, true) => Box::pin(begun().compacted(step, call, timeout)),
            (Some(timeout), false) => Box::pin(timeout.around(begun().surrounded(step, call))),
        };
        Self { future: Guarded::new(future), span }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<StepResult> {
        let _entered = self.span.enter();
        self.future.poll(cx)
    }

    /// It is polled again.
    pub(super) fn weighed(self, host: &Arc<Host>, step: usize) -> GuardedStep {
        GuardedStep { begun: self, host: Arc::clone(host), step }
    }
}

impl GuardedStep {
    fn poll_weighed(&mut self, cx: &mut Context<'_>) -> Poll<StepResult> {
        let began = Instant::now();
        let polled = self.begun.poll(cx);
        self.host.weight(self.step).note(began.elapsed());
        polled
    }

    /// Moves the execution to a task of its own, if there is a runtime.
    pub(super) fn spawn(self) -> Result<AbortOnDrop, Begun> {
        let Ok(runtime) = Handle::try_current() else { return Err(self.begun) };
        let mut step = self;
        Ok(AbortOnDrop(runtime.spawn(std::future::poll_fn(move |cx| step.poll_weighed(cx)))))
    }
}

/// Whether another thread may poll what is moved to a task of its own.
pub(super) fn has_threads() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread)
}

/// A task that is aborted when nobody waits for it any more.
pub(super) struct AbortOnDrop(JoinHandle<StepResult>);

impl AbortOnDrop {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<StepResult> {
        Poll::Ready(ready!(Pin::new(&mut self.0).poll(cx)).unwrap_or_else(|error| Err(lost(error))))
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why a task of an execution did not end with what came of the execution.
fn lost(error: JoinError) -> StepError {
    match error.try_into_panic() {
        Ok(panic) => panicked(panic),
        Err(error) => error.into(),
    }
}

/// A panic as the error of the execution in which it was.
pub(super) fn panicked(panic: Box<dyn Any + Send>) -> StepError {
    StepError::permanent(panic_of(panic))
}
