//! A run as one task, from its start to its end.
//!
//! The task polls the driver in [slices](super::slice), and yields to other tasks between them. While the run
//! waits, it is unloaded (with a journal) or suspended (without).
//!
//! ```text
//!            ┌──────────── idle timeout: unloaded, the task ends, the journal has the run
//! drive_to_end ──┼─ suspendable: Suspended ── news ──▶ drive_to_end
//!            └─ ended, or detached ──▶ end: children, journal, report, handles
//! ```

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::admission::Admission;
use super::alarms::Alarms;
use super::clock::RunClock;
use super::commit::Committer;
use super::driver::Driver;
use super::executor::Executor;
use super::host::Host;
use super::journal::Journal;
use super::meter::Meter;
use super::permits::{Permit, PermitRequest};
use super::shared::RunShared;
use super::slice::{Progress, Slice};
use super::state::{Batch, Stop};
use super::state_box::StateBox;
use super::suspended::Suspended;
use super::telemetry::Telemetry;
use super::unload::{Paused, Registration};
use super::{Received, finish};
use crate::scheduler::SchedulerLimits;
use crate::table::EventIndex;

/// The most slices of one poll on a runtime with several threads. There, each yield wakes another thread,
/// which finds nothing to do. On any other runtime a poll has one slice.
const SLICES: usize = 4;

/// A poll that has taken this long begins no further slice.
const LONG_POLL: Duration = Duration::from_micros(100);

/// A run: its driver, and who holds it.
pub(crate) struct Run {
    pub(super) driver: Driver,
    pub(super) phase: Phase,
}

/// What holds the run now. Decides what dropping [`Run`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// This task drives it. Dropping it before the end abandons the run.
    Driven,
    /// The journal has it until it is loaded again.
    Unloaded,
    /// It stopped without an end: another process resumes it from its journal.
    Detached,
    /// A [`Suspended`] has its parts.
    Suspended,
}

/// The limits of one run.
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
    /// A new run. Boxed, because several futures move it, each of which would need room for it.
    pub(crate) fn new(
        shared: Arc<RunShared>,
        host: Arc<Host>,
        limits: RunLimits,
        slots: Option<(PermitRequest, Option<Permit>)>,
        journal: Option<Journal>,
    ) -> Box<Self> {
        let mut state = StateBox::new(&host.table, limits.scheduler);
        let (meter, clock) = (Meter::new(&host.table.name), RunClock::start(shared.common.clock.clone()));
        state.skip(journal.as_ref().map_or(0, Journal::queued_records));
        let admission = Admission::new(slots, shared.common.lease.as_ref(), limits.concurrent_executions);
        let telemetry = Telemetry::new(&shared, meter);
        let mut committer = Committer::new(shared, state, telemetry, clock);
        committer.keep_journal(journal);
        committer.check_replay(&host, &[]);
        Self::of(host, admission, committer)
    }

    /// A run of these parts, with nothing in flight.
    pub(super) fn of(host: Arc<Host>, admission: Admission, committer: Committer) -> Box<Self> {
        let (executor, alarms) = (Executor::default(), Alarms::of(committer.shared.timeout));
        let driver = Driver { host, executor, admission, alarms, committer, cancel_reason: None };
        Box::new(Self { driver, phase: Phase::Driven })
    }

    /// Drives the run from its start event to its end. Dropping the future drops every execution and ends the
    /// run as abandoned. `registered` is dropped before anyone learns of the end.
    pub(crate) fn drive<R: Registration>(
        mut self: Box<Self>,
        start: Received,
        index: EventIndex,
        registered: R,
    ) -> impl Future<Output = ()> + Send + use<R> {
        // Outside of the async block, so that the task needs no room for it.
        let Received { event, done } = start;
        if self.driver.committer.journal.is_none() {
            self.driver.committer.shared.begin();
        }
        self.driver.commit_in_turn(Batch::Received { event, index }, done);
        self.drive_to_end(registered, true)
    }

    /// Drives a new or an earlier run to its end. Every suspended run keeps this future, so it must stay
    /// small: it is the only one of its task.
    pub(super) async fn drive_to_end<R: Registration>(mut self: Box<Self>, registered: R, is_new: bool) {
        if is_new {
            self.driver.committer.telemetry.meter.began();
            self.driver.count_time();
        }
        let mut suspended = None;
        // If this future is dropped, the registration is dropped before the run, suspended or not.
        let registered = registered;
        loop {
            match std::future::poll_fn(|cx| self.poll_run(cx)).await {
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
            // The lock keeps others from loading or looking up the run while it is unloaded.
            let Some(held) = Box::pin(self.acquire_lock(registered.hold())).await else { break };
            if self.closes() {
                let shared = Arc::clone(&self.driver.committer.shared);
                registered.release(self.unload(), shared);
                drop(held);
                return;
            }
        }
        self.end().await;
        drop(registered);
    }

    /// Polls the run once. Reports how many executions wait for their turn.
    pub(super) fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<Paused> {
        let polled = self.poll_slices(cx);
        let Driver { committer: Committer { state, telemetry, .. }, admission, .. } = &mut self.driver;
        telemetry.meter.queue(state.scheduler.executions().waiting() + admission.deferred().len());
        polled
    }

    /// Polls slices until the run ends, waits, or has to yield.
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
        // A run may always have more to do, so it yields and wakes itself.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Detaches the run, if that was requested and the store has its whole journal. Returns whether it did.
    fn try_detach(&mut self) -> bool {
        let committer = &mut self.driver.committer;
        if !committer.is_detaching()
            || !committer.journal.as_deref().is_some_and(Journal::is_open_and_written)
        {
            return false;
        }
        committer.journal = None;
        let _ = committer.state.apply(Batch::Stopped(Stop::JournalFailed), committer.clock.now);
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
        // Callers that still wait learn how the run ended, or have it loaded again.
        shared.signals.mailbox.discard();
        if self.phase == Phase::Unloaded {
            return;
        }
        super::child_records::detach_children(shared);
        // A caller may look as soon as it learns of the end, so spans and metrics are complete before.
        telemetry.close(finish::finished(shared), clock.now);
        finish::announce(shared);
    }
}
