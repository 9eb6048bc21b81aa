//! The futures that a run waits for: executions, asynchronous preconditions and sleeps.
//!
//! Each future has a [`DropSignal`] signal, and becomes ready either with its result or as [`Completion::Dropped`].
//! So the run drops a future by a flag, without searching for it. A panic of user code is caught here and
//! becomes an error (S27).

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use futures_util::task::AtomicWaker;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinError, JoinHandle, coop};
use tokio_util::task::TaskTracker;
use tracing::Span;

use super::RunShared;
use super::host::Host;
use super::timeout::{Timeout, TimerWakes};
use super::weight::Added;
use crate::clock::EngineClock;
use crate::error::StepError;
use crate::id::ExecutionId;
use crate::input::StepCall;
use crate::limit::LimitPermit;
use crate::output::Emitted;
use crate::panics::discard;
use crate::scheduler::CandidateId;
use crate::workflow::StepFuture;

pub(crate) use crate::panics::panic_of;

/// The result of one attempt.
pub(super) type StepResult = Result<Emitted, StepError>;

/// The result of waiting for a limit: the permit, or the error of the limit's key.
pub(super) type LimitResult = Result<LimitPermit, StepError>;

/// One future that a run waits for.
pub(super) enum InFlight {
    /// An attempt, polled in the run's own task.
    Execution(ExecutionId, PolledAttempt),
    /// An attempt in a task of its own.
    Spawned(ExecutionId, AbortOnDrop),
    /// An asynchronous precondition.
    Check(CandidateId, Guarded<BoxFuture<'static, Result<bool, StepError>>>),
    /// A sleep by the engine's clock.
    Wait(Due, BoxFuture<'static, ()>),
    /// The wait of an attempt for a permit of its step's limit.
    Limit(ExecutionId, Guarded<BoxFuture<'static, LimitResult>>),
}

/// A future in flight with its drop signal.
struct DroppableFuture {
    future: InFlight,
    dropped: Arc<DropSignal>,
}

/// All futures in flight. The memory exists only while there are any.
#[derive(Default)]
pub(super) struct FuturesInFlight(Option<FuturesUnordered<DroppableFuture>>);

impl FuturesInFlight {
    /// Polls the future from the next poll on.
    pub(super) fn push(&mut self, future: InFlight, dropped: Arc<DropSignal>) {
        self.0.get_or_insert_default().push(DroppableFuture { future, dropped });
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Completion>> {
        self.0.as_mut().map_or(Poll::Ready(None), |flights| flights.poll_next_unpin(cx))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(FuturesUnordered::is_empty)
    }

    /// Drops every future, except tasks if those are to stay, which are aborted.
    pub(super) fn clear(&mut self, but_tasks: bool) {
        let flights = self.0.take();
        if but_tasks {
            self.0 = flights.and_then(aborted);
        }
    }

    /// Frees the memory, if nothing is in flight.
    pub(super) fn shrink(&mut self) {
        self.0.take_if(|flights| flights.is_empty());
    }
}

/// The tasks among these futures, aborted; the rest is dropped.
#[cold]
fn aborted(flights: FuturesUnordered<DroppableFuture>) -> Option<FuturesUnordered<DroppableFuture>> {
    let tasks = flights.into_iter().filter(|flight| matches!(flight.future, InFlight::Spawned(..)));
    let tasks: FuturesUnordered<_> = tasks.collect();
    for flight in &tasks {
        flight.dropped.set();
        if let InFlight::Spawned(_, task) = &flight.future {
            task.0.abort();
        }
    }
    (!tasks.is_empty()).then_some(tasks)
}

/// The purpose of a sleep.
#[derive(Debug, Clone, Copy)]
pub(super) enum Due {
    /// The delay before the next attempt of an execution.
    Retry(ExecutionId),
    /// The turn of an execution under which processes ended.
    Turn(ExecutionId),
    /// The earliest timer of the run, which is due at this time.
    Timer(SystemTime),
    /// The end of the run's active time.
    Timeout,
    /// The end of the time of a clean-up step.
    CleanUp,
}

/// A future that has completed.
#[derive(Debug)]
pub(super) enum Completion {
    /// An attempt returned, failed or panicked.
    Execution(ExecutionId, StepResult),
    /// A future that was requested to drop is gone.
    Dropped { begins_again: bool },
    /// A precondition answered.
    Precondition(CandidateId, Result<bool, StepError>),
    /// A sleep ended.
    Due(Due),
    /// An attempt has a permit of its step's limit.
    Limit(ExecutionId, LimitResult),
}

impl Due {
    /// The completion if the engine's clock panics, as a clock without timers does. A retry fails its
    /// execution. A timer, a timeout and the time for clean-up belong to the run, so the panic ends the run's task.
    fn on_clock_panic(self, panic: Box<dyn Any + Send>) -> Completion {
        match self {
            Self::Retry(id) | Self::Turn(id) => Completion::Execution(id, Err(panicked(panic))),
            // Only the message is passed on: code above here would not drop a payload safely.
            Self::Timer(_) | Self::Timeout | Self::CleanUp => {
                resume_unwind(Box::new(panic_of(panic).to_string()))
            }
        }
    }
}

impl Future for DroppableFuture {
    type Output = Completion;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Completion> {
        if self.dropped.is_set(cx) {
            let begins_again = self.dropped.begins_again();
            return self.future.poll_drop(cx).map(|()| Completion::Dropped { begins_again });
        }
        ready!(poll_budget(cx));
        let arrived = ready!(self.future.poll(cx));
        self.dropped.note_completed();
        Poll::Ready(arrived)
    }
}

impl InFlight {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Completion> {
        match self {
            Self::Execution(id, step) => {
                Poll::Ready(Completion::Execution(*id, ready!(step.poll_weighed(cx))))
            }
            Self::Spawned(id, task) => Poll::Ready(Completion::Execution(*id, ready!(task.poll(cx)))),
            Self::Check(id, check) => Poll::Ready(Completion::Precondition(*id, ready!(check.poll(cx)))),
            Self::Limit(id, turn) => Poll::Ready(Completion::Limit(*id, ready!(turn.poll(cx)))),
            Self::Wait(due, sleep) => match catch_unwind(AssertUnwindSafe(|| sleep.as_mut().poll(cx))) {
                Ok(slept) => slept.map(|()| Completion::Due(*due)),
                Err(panic) => Poll::Ready(due.on_clock_panic(panic)),
            },
        }
    }
}

impl InFlight {
    /// Completes once nothing of a dropped future runs any more: an aborted task may still be in a poll. The caller drops the rest.
    #[cold]
    fn poll_drop(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Spawned(_, task) = self {
            task.0.abort();
            discard(ready!(task.poll(cx)));
        }
        Poll::Ready(())
    }
}

/// Yields to other tasks once the task's budget is used up, however many futures are woken together.
fn poll_budget(cx: &mut Context<'_>) -> Poll<()> {
    if coop::has_budget_remaining() {
        return coop::poll_proceed(cx).map(|turn| turn.made_progress());
    }
    // Wakes now rather than when tokio would, so that a loop over all futures sees that it has to stop.
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// A flag that drops a future in flight, and the signs of an attempt.
#[derive(Debug, Default)]
pub(crate) struct DropSignal {
    /// Whether the drop was requested.
    requested: AtomicBool,
    /// Whether the future completed before it saw the request.
    completed: AtomicBool,
    /// Whether the same work begins again after a pause, and not before this future is gone.
    begins_again: AtomicBool,
    waker: AtomicWaker,
    signs: Signs,
}

/// When the attempt of an execution began, in nanoseconds of its run's clock, and when it last gave a sign, as a moment
/// of the engine's clock: 0 where no attempt is in flight.
#[derive(Debug, Default)]
struct Signs {
    began: AtomicU64,
    last: AtomicU64,
}

/// How far an attempt in flight has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastSign {
    /// When it began, by the clock of its run.
    pub(super) began: Duration,
    /// When its latest poll ended, as a moment of the engine's clock; the begin before its first one.
    pub(super) last: u64,
}

impl DropSignal {
    fn attempt_begins(&self, since: Duration, polled: u64) {
        let since = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        self.signs.began.store(since, Ordering::Relaxed);
        self.was_polled(polled);
    }

    fn was_polled(&self, at: u64) {
        self.signs.last.store(at, Ordering::Relaxed);
    }

    /// The last sign of the attempt in flight; `None` if there is none.
    pub(super) fn last_sign(&self) -> Option<LastSign> {
        let Signs { began, last } = &self.signs;
        let (began, last) =
            (Duration::from_nanos(began.load(Ordering::Relaxed)), last.load(Ordering::Relaxed));
        (last != 0).then_some(LastSign { began, last })
    }

    /// Requests the drop. Returns `false` if the future has already completed.
    pub(crate) fn set(&self) -> bool {
        self.requested.store(true, Ordering::Release);
        self.waker.wake();
        !self.completed.load(Ordering::Acquire)
    }

    /// Notes that the work begins again which a pause drops here.
    pub(super) fn note_again(&self) {
        self.begins_again.store(true, Ordering::Relaxed);
    }

    /// Whether it begins again after a pause.
    #[inline]
    pub(super) fn begins_again(&self) -> bool {
        self.begins_again.load(Ordering::Relaxed)
    }

    /// Notes that the future has completed, so that a later request comes too late.
    fn note_completed(&self) {
        self.completed.store(true, Ordering::Release);
    }

    /// Whether the drop was requested.
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Whether the drop was requested. Registers the waker for a later request.
    #[inline]
    pub(crate) fn is_set(&self, cx: &mut Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.requested.load(Ordering::Acquire)
    }
}

/// A user's future, isolated from panics: a panic in a poll is a failure (S27), a panic in a drop is
/// discarded.
pub(super) struct Guarded<F>(Option<F>);

impl<T, F: Future<Output = Result<T, StepError>> + Unpin> Guarded<F> {
    pub(super) fn new(future: F) -> Self {
        Self(Some(future))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, StepError>> {
        // Empty after a panic: never ready again.
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(future).poll(cx)));
        polled.unwrap_or_else(|panic| {
            // A future that panicked is never polled again.
            self.discard();
            Poll::Ready(Err(panicked(panic)))
        })
    }
}

impl<F> Guarded<F> {
    /// Drops the future. A panic in that drop is discarded.
    #[inline]
    fn discard(&mut self) {
        if let Some(future) = self.0.take() {
            discard(future);
        }
    }
}

impl<F> Drop for Guarded<F> {
    #[inline]
    fn drop(&mut self) {
        self.discard();
    }
}

/// An attempt that was created: the step's future, guarded, in its span.
pub(super) struct AttemptFuture {
    future: Guarded<StepFuture>,
    span: Span,
    /// The timer of its timeout, if it has one.
    timer: Option<Arc<TimerWakes>>,
}

/// What the polls of an attempt need to know of it.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) host: &'a Arc<Host>,
    pub(super) step: usize,
    pub(super) clock: &'a EngineClock,
    /// When it began, by the clock of its run.
    pub(super) since: Duration,
    /// When its first poll ended, or will begin.
    pub(super) polled: Instant,
}

/// An attempt that is polled more than once. The time of each poll counts towards the step's weight.
pub(super) struct PolledAttempt {
    begun: AttemptFuture,
    host: Arc<Host>,
    step: usize,
    added: Added,
    signal: Arc<DropSignal>,
    clock: EngineClock,
}

impl AttemptFuture {
    /// Creates the first attempt of an execution.
    #[inline]
    pub(super) fn first(host: &Arc<Host>, run: &RunShared, call: StepCall, span: Span) -> Self {
        let step = call.step_index();
        // The hot path: no middleware and no timeout, so the step's own future is all there is.
        if host.middleware.is_empty() && host.table.steps[step].policy.timeout.is_none() {
            return Self { future: Guarded::new(host.step(step, call)), span, timer: None };
        }
        Self::new(host, run, call, span, false)
    }

    /// Creates an attempt. `compacts`: the step's compaction hook runs first.
    pub(super) fn new(host: &Arc<Host>, run: &RunShared, call: StepCall, span: Span, compacts: bool) -> Self {
        let step = call.step_index();
        let timeout = host.table.steps[step].policy.timeout;
        let timeout = timeout.map(|after| Timeout::new(after, &run.common.clock));
        let timer = timeout.as_ref().map(Timeout::timer);
        let begun = || Arc::clone(host);
        let future: StepFuture = match (timeout, compacts) {
            (None, false) if host.middleware.is_empty() => host.step(step, call),
            (None, false) => Box::pin(begun().surrounded(step, call)),
            (timeout, true) => Box::pin(begun().compacted(step, call, timeout)),
            (Some(timeout), false) => Box::pin(timeout.around(begun().surrounded(step, call))),
        };
        Self { future: Guarded::new(future), span, timer }
    }

    /// The attempt with what it took from its step's limit. The permit is released when the attempt ends, or is
    /// dropped; an attempt without its key fails.
    pub(super) fn with(mut self, taken: LimitResult) -> Self {
        let Some(step) = self.future.0.take() else { return self };
        let attempt: StepFuture = match taken {
            Ok(permit) => Box::pin(async move {
                // Dropped after the step's future.
                let _permit = permit;
                step.await
            }),
            Err(error) => {
                discard(step);
                Box::pin(std::future::ready(Err(error.of_limit_key())))
            }
        };
        Self { future: Guarded::new(attempt), ..self }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<StepResult> {
        let _entered = self.span.enter();
        self.future.poll(cx)
    }

    /// The attempt in the form that is polled more than once.
    pub(super) fn weighed(self, of: Attempt<'_>, added: Added, signal: &Arc<DropSignal>) -> PolledAttempt {
        let Attempt { host, step, clock, since, polled } = of;
        signal.attempt_begins(since, clock.moment(polled));
        let (host, signal, clock) = (Arc::clone(host), Arc::clone(signal), clock.clone());
        PolledAttempt { begun: self, host, step, added, signal, clock }
    }
}

impl PolledAttempt {
    /// Polls the attempt, and counts the time of the poll towards the step's weight. The poll is a sign of the attempt.
    fn poll_weighed(&mut self, cx: &mut Context<'_>) -> Poll<StepResult> {
        let began = Instant::now();
        let is_sign = !self.begun.timer.as_ref().is_some_and(|timer| timer.take());
        let polled = self.begun.poll(cx);
        let weight = self.host.weight(self.step);
        let ended = Instant::now();
        weight.note(ended.saturating_duration_since(began), &mut self.added);
        if is_sign {
            self.signal.was_polled(self.clock.moment(ended));
        }
        if polled.is_ready() {
            weight.note_end(self.added);
        }
        polled
    }

    /// Moves the attempt to a task of its own, for which the engine's end waits: an aborted task that is being polled still
    /// has what the step holds. Returns the attempt if there is no runtime.
    pub(super) fn spawn(self, tasks: &TaskTracker) -> Result<AbortOnDrop, AttemptFuture> {
        let Ok(runtime) = Handle::try_current() else { return Err(self.begun) };
        let mut step = self;
        let attempt = std::future::poll_fn(move |cx| step.poll_weighed(cx));
        Ok(AbortOnDrop(runtime.spawn(tasks.track_future(attempt))))
    }
}

/// Whether the runtime has other threads that could poll a spawned task.
pub(super) fn has_threads() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread)
}

/// A spawned attempt, whose task is aborted on drop.
pub(super) struct AbortOnDrop(JoinHandle<StepResult>);

impl AbortOnDrop {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<StepResult> {
        Poll::Ready(ready!(Pin::new(&mut self.0).poll(cx)).unwrap_or_else(|error| Err(join_error(error))))
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The error of a task that ended without a result: its panic, or its abort.
fn join_error(error: JoinError) -> StepError {
    match error.try_into_panic() {
        Ok(panic) => panicked(panic),
        Err(error) => error.into(),
    }
}

/// A panic as the error of an execution.
pub(super) fn panicked(panic: Box<dyn Any + Send>) -> StepError {
    StepError::permanent(panic_of(panic))
}
