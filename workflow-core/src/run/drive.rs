//! One run as a task, from its beginning to its end: it polls its driver in slices that yield to other tasks, and is
//! unloaded or suspended while it waits.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::admission::Admission;
use super::alarms::Alarms;
use super::clock::RunClock;
use super::commit::Committer;
use super::driver::Driver;
use super::executor::Executor;
use super::held_state::HeldState;
use super::host::Host;
use super::journal::Journal;
use super::meter::Meter;
use super::places::{Place, Places};
use super::release::{Paused, Registration};
use super::shared::RunShared;
use super::slice::{Progress, Slice};
use super::state::{Batch, Stop};
use super::suspended::Suspended;
use super::telemetry::Telemetry;
use super::{Received, finish};
use crate::scheduler::SchedulerLimits;
use crate::table::EventIndex;

/// How many slices one poll has at most before it yields to other tasks, on a runtime with several threads: to yield wakes
/// another one of them there, which finds nothing to do. On any other it has one.
const SLICES: usize = 4;

/// After this time a poll begins no further slice.
const LONG_POLL: Duration = Duration::from_micros(100);

/// One run.
pub(crate) struct Run {
    pub(super) driver: Driver,
    pub(super) phase: Phase,
}

/// Who has the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// This task drives it.
    Driven,
    /// Its journal has it until it is loaded again.
    Unloaded,
    /// It stopped without an end: its journal is left to another process.
    Detached,
    /// A compact form in memory has it.
    Suspended,
}

/// What bounds a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunLimits {
    pub(crate) scheduler: SchedulerLimits,
    /// The most executions at a time; the surplus waits in order.
    pub(crate) concurrent_executions: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { scheduler: SchedulerLimits::default(), concurrent_executions: 1_024 }
    }
}

impl Run {
    /// Boxed: it is handed on from one future to the next, each of which would have room for it.
    pub(crate) fn new(
        shared: Arc<RunShared>,
        host: Arc<Host>,
        limits: RunLimits,
        slots: Option<(Places, Option<Place>)>,
        journal: Option<Journal>,
    ) -> Box<Self> {
        let mut state = HeldState::new(&host.table, limits.scheduler);
        let (meter, clock) = (Meter::new(&host.table.name), RunClock::start(shared.common.clock.clone()));
        state.skip(journal.as_ref().map_or(0, Journal::queued_records));
        let admission = Admission::new(slots, shared.common.lease.as_ref(), limits.concurrent_executions);
        let telemetry = Telemetry::new(&shared, meter);
        let mut committer = Committer::new(shared, state, telemetry, clock);
        committer.keep_journal(journal);
        committer.check_replay(&host, &[]);
        Self::of(host, admission, committer)
    }

    /// One with these parts, which has nothing in flight.
    pub(super) fn of(host: Arc<Host>, admission: Admission, committer: Committer) -> Box<Self> {
        let (executor, alarms) = (Executor::default(), Alarms::of(committer.shared.timeout));
        let driver = Driver { host, executor, admission, alarms, committer, cancel_reason: None };
        Box::new(Self { driver, phase: Phase::Driven })
    }

    /// Drives the run from its start event to its end. Dropping the future drops every execution and ends
    /// the run as abandoned. What is registered is dropped before anybody is told of the end.
    pub(crate) fn drive<R: Registration>(
        mut self: Box<Self>,
        start: Received,
        index: EventIndex,
        registered: R,
    ) -> impl Future<Output = ()> + Send + use<R> {
        // Here, so that the task has no room for it.
        let Received { event, done } = start;
        if self.driver.committer.journal.is_none() {
            self.driver.committer.shared.begin();
        }
        self.driver.commit_in_turn(Batch::Received { event, index }, done);
        self.drive_on(registered, true)
    }

    /// Drives a run to its end, one that is new or has begun before. Each suspended run keeps this future: it is the only one of
    /// its task, so that it stays small.
    pub(super) async fn drive_on<R: Registration>(mut self: Box<Self>, registered: R, is_new: bool) {
        if is_new {
            self.driver.committer.telemetry.meter.began();
            self.driver.count_time();
        }
        let mut suspended = None;
        // Where the future is dropped, this is dropped before the run is, suspended or not.
        let registered = registered;
        loop {
            match std::future::poll_fn(|cx| self.poll_on(cx)).await {
                Paused::Ended => break,
                Paused::Idle => {}
                Paused::Suspendable => {
                    let compact = suspended.insert(self.suspend());
                    std::future::poll_fn(|cx| compact.poll_news(cx)).await;
                    let Some(run) = suspended.take().and_then(Suspended::restore) else { return };
                    self = run;
                    continue;
                }
            }
            let Some(held) = Box::pin(self.take_hold(registered.hold())).await else { break };
            if self.closes() {
                let shared = Arc::clone(&self.driver.committer.shared);
                registered.release(self.released(), shared);
                drop(held);
                return;
            }
        }
        self.end().await;
        drop(registered);
    }

    pub(super) fn poll_on(&mut self, cx: &mut Context<'_>) -> Poll<Paused> {
        let polled = self.poll_slices(cx);
        let Driver { committer: Committer { state, telemetry, .. }, admission, .. } = &mut self.driver;
        telemetry.meter.queue(state.scheduler.executions().waiting() + admission.deferred().len());
        polled
    }

    /// Handles what there is to handle, until the run ends or others have their turn.
    fn poll_slices(&mut self, cx: &mut Context<'_>) -> Poll<Paused> {
        self.driver.executor.begin_poll();
        let began = Instant::now();
        for _ in 0..SLICES {
            match Slice::of(&mut self.driver).poll(cx) {
                Progress::More => {}
                Progress::Blocked => return Poll::Pending,
                Progress::Ended => return Poll::Ready(Paused::Ended),
                Progress::Quiet if self.try_detach() => return Poll::Ready(Paused::Ended),
                Progress::Quiet => return self.poll_idle(cx),
            }
            if !self.driver.executor.has_threads() || began.elapsed() >= LONG_POLL {
                break;
            }
        }
        // What there is to do may never end.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Detaches the run if that was asked for and the store has its whole journal; says whether it did.
    fn try_detach(&mut self) -> bool {
        let committer = &mut self.driver.committer;
        if !committer.is_detaching()
            || !committer.journal.as_deref().is_some_and(Journal::is_open_and_written)
        {
            return false;
        }
        committer.journal = None;
        let _ = committer.state.apply(Batch::Stopped(Stop::Unkept), committer.clock.now);
        self.driver.advance(&mut usize::MAX.clone());
        self.phase = Phase::Detached;
        true
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.phase == Phase::Suspended {
            return;
        }
        let Committer { shared, telemetry, clock, .. } = &mut self.driver.committer;
        // Whoever still asks is told how the run ended, or has it loaded again.
        shared.signals.mailbox.discard();
        if self.phase == Phase::Unloaded {
            return;
        }
        super::child_records::disown(shared);
        // Whoever is told of the end may look at once: spans and metrics are complete before that.
        telemetry.close(finish::finished(shared), clock.now);
        finish::announce(shared);
    }
}
