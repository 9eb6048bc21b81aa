//! A run as one task, from its start to its end.
//!
//! The task polls the driver in slices, and yields to other tasks between them. While the run
//! waits, it is unloaded (with a journal) or suspended (without).
//!
//! ```text
//!            ┌──────────── idle timeout: unloaded, the task ends, the journal has the run
//! drive_to_end ──┼─ suspendable: Suspended ── news ──▶ drive_to_end
//!            └─ ended, or detached ──▶ end: children, journal, report, handles
//! ```
//!
//! A slice is a bounded part of a poll; a poll has up to four. Order within a slice, so that no source starves another
//! and earlier facts take effect first:
//!
//! ```text
//! once   the store's answer, a rewind, news of requests for viewers, the parent's pause, a child's store failure, the parent's cancel,
//!        a cancel, one command, one poll of the executor
//! loop   advance the state ─▶ begin one effect, else take one input:
//!        cancel, due timer, completion, command, then the journal; a paused run notes that nothing runs
//! ```

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use tokio::task::coop;

use super::admission::Admission;
use super::alarms::Alarms;
use super::clock::RunClock;
use super::commit::Committer;
use super::driver::Driver;
use super::executor::Executor;
use super::host::Host;
use super::in_flight::Due;
use super::journal::Journal;
use super::meter::Meter;
use super::permits::{Permit, PermitRequest};
use super::shared::RunShared;
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
    /// This task drives it still, and has journaled that it stops.
    Detaching,
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
        let (executor, alarms) = (Executor::default(), Alarms::default());
        let driver = Driver { host, executor, admission, alarms, committer, at_end: None };
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
        let Received { event, origin, done } = start;
        let Committer { shared, telemetry, journal, .. } = &mut self.driver.committer;
        if journal.is_none() {
            shared.begin();
            telemetry.open(shared, true);
        }
        self.driver.commit_in_turn(Batch::Received { event, index, origin }, done);
        self.drive_to_end(registered, true)
    }

    /// Drives a new or an earlier run to its end. Every suspended run keeps this future, so it must stay
    /// small: it is the only one of its task.
    pub(super) async fn drive_to_end<R: Registration>(mut self: Box<Self>, registered: R, is_new: bool) {
        if is_new {
            self.driver.count_time();
        }
        let mut suspended = None;
        // If this future is dropped, the registration is dropped before the run, suspended or not.
        let registered = registered;
        loop {
            match std::future::poll_fn(|cx| self.poll_run(cx)).await {
                Paused::Ended if self.is_to_clean_up() => {
                    self.begin_clean_up();
                    continue;
                }
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
            // If the run has ended meanwhile, the next poll says so.
            let Some(held) = Box::pin(self.acquire_lock(registered.hold())).await else { continue };
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
        telemetry.meter.queue(state.scheduler.executions().waiting() + admission.deferred_count());
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
                Progress::Quiet => match self.try_detach() {
                    Detach::Done => return Poll::Ready(Paused::Ended),
                    // The next slice sees the store's answer.
                    Detach::Queued => {}
                    Detach::NotNow => {
                        self.note_rest();
                        return self.poll_idle(cx);
                    }
                },
            }
            if !self.driver.executor.has_threads() || began.elapsed() >= LONG_POLL {
                break;
            }
        }
        // A run may always have more to do, so it yields and wakes itself.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Detaches the run, if that was requested and the store has its whole journal.
    ///
    /// A run that waits has nothing to drop, and its journal is complete. Any other journals first that it is detached on
    /// purpose, so that nothing counts as interrupted (S35).
    fn try_detach(&mut self) -> Detach {
        let committer = &mut self.driver.committer;
        if !committer.is_detaching()
            || !committer.journal.as_deref().is_some_and(Journal::is_open_and_written)
        {
            return Detach::NotNow;
        }
        // `RunWaiting` is last in the journal of a run that waits, or rests in its pause.
        let rests = committer.state.scheduler.waits() || committer.state.rests_in_pause();
        if self.phase != Phase::Detaching && !rests {
            self.phase = Phase::Detaching;
            self.driver.record_children_and_ends();
            let dropped = self.driver.under_way();
            self.driver.committer.queue_detached(dropped);
            return Detach::Queued;
        }
        committer.journal = None;
        committer.forget_unwritten_cancel();
        let _ = committer.state.apply(Batch::Stopped(Stop::JournalFailed), committer.clock.now);
        self.driver.advance(&mut usize::MAX.clone());
        self.phase = Phase::Detached;
        Detach::Done
    }
}

/// How far a run has detached.
enum Detach {
    /// It does not, or the store does not have everything yet.
    NotNow,
    /// `RunDetached` is on its way to the store.
    Queued,
    /// It has stopped.
    Done,
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
        telemetry.close(shared, finish::finished(shared), clock.now);
        finish::announce(shared);
    }
}

/// The most actions, batches and commands that one slice handles.
const SLICE: usize = 256;

/// The most work units by which one slice advances the state.
pub(super) const WORK: usize = 2 * SLICE;

/// The reason why a slice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The slice reached its bound: there may be more to do.
    More,
    /// The run has ended, and the store has every batch or has failed. [`Run::end`]
    /// then closes the journal.
    Ended,
    /// The run is being rewound, or has ended and the store does not have every batch.
    Blocked,
    /// There is nothing to do before something arrives or the store answers.
    Quiet,
}

/// One slice of a run.
pub(super) struct Slice<'a> {
    driver: &'a mut Driver,
    /// How much more the slice handles.
    left: usize,
}

impl<'a> Slice<'a> {
    pub(super) fn of(driver: &'a mut Driver) -> Self {
        Self { driver, left: SLICE }
    }

    /// Runs the slice.
    pub(super) fn poll(mut self, cx: &mut Context<'_>) -> Progress {
        self.driver.committer.clock.tick();
        self.driver.committer.shared.signals.register(cx.waker());
        self.driver.poll_store_answer(cx);
        if self.driver.poll_rewind(cx).is_pending() {
            return Progress::Blocked;
        }
        self.driver.tell_requests();
        self.driver.poll_children(cx);
        self.driver.follow_parent();
        self.read_child_store_failure();
        self.read_parent_cancel(cx);
        self.driver.leave_limits();
        self.driver.leave_absent_inbox();
        // One command and one poll of the executor come before anything begins, so that executions that
        // complete at once starve neither.
        if self.accepts_input() {
            self.read_cancel_note();
            if !self.driver.committer.is_detaching() {
                self.poll_mailbox(cx);
                self.poll_executor(cx);
            }
        }
        let mut work = WORK;
        while self.left > 0 {
            self.left -= 1;
            if self.driver.poll_rewind(cx).is_pending() {
                return Progress::Blocked;
            }
            if !self.driver.advance(&mut work) {
                // The work units are used up. The next slice continues, and nothing begins before.
                break;
            }
            if self.driver.begin_next(&mut self.left, cx) {
                continue;
            }
            if self.has_ended() {
                self.driver.leave_limits();
                if self.driver.committer.is_written_out() {
                    self.driver.tell_requests();
                    return Progress::Ended;
                }
            }
            // With no effect to begin, the run takes its next input, and then looks at the journal.
            if !self.take_next_input(cx) && !self.driver.poll_journal(cx) && !self.driver.rest_in_pause() {
                self.driver.tell_requests();
                return if self.has_ended() { Progress::Blocked } else { Progress::Quiet };
            }
        }
        self.driver.poll_journal(cx);
        Progress::More
    }

    /// Whether the state has ended, and no clean-up step runs.
    fn has_ended(&self) -> bool {
        self.driver.committer.state.begins_nothing()
    }

    /// Handles one cancel, due timer, completion or command, in this order. Returns whether there was one. A
    /// run that is about to detach handles only a cancel and drops other commands: their senders learn that
    /// the run has ended.
    fn take_next_input(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.accepts_input() {
            return false;
        }
        if self.read_cancel_note() {
            return true;
        }
        if !self.driver.committer.is_detaching() {
            return self.take_timer() || self.take_completed(cx) || self.poll_mailbox(cx);
        }
        // Taken regardless of the task's budget: there may be no later poll.
        let Some(command) = self.driver.committer.shared.signals.mailbox.take() else { return false };
        if command.is_cancel() {
            self.driver.handle_command(command);
        }
        true
    }

    /// Whether the run takes input: it has not ended, its state has everything that follows from earlier
    /// input, and the store is not too far behind.
    fn accepts_input(&self) -> bool {
        let Committer { state, journal, .. } = &self.driver.committer;
        !state.begins_nothing()
            && state.scheduler.is_settled()
            && !journal.as_deref().is_some_and(Journal::is_full)
    }

    /// Cancels the run if there is an unread cancel signal. Returns whether there was.
    fn read_cancel_note(&mut self) -> bool {
        self.driver
            .committer
            .shared
            .signals
            .read_cancel()
            .is_some_and(|reason| self.driver.cancel(reason, None))
    }

    /// Whether a command waits in the mailbox.
    fn has_commands(&self) -> bool {
        self.driver.committer.shared.signals.mailbox.has_commands()
    }

    /// Handles one command, or a timer that fell due before it. Returns whether there was one.
    fn poll_mailbox(&mut self, cx: &mut Context<'_>) -> bool {
        // S32: a timer that fell due before a message was sent comes before the message. Only a clock that is read
        // after the sending shows which timers did. Without a pending timer a message costs no reading.
        if self.driver.waits_for_time() && self.has_commands() {
            self.driver.committer.clock.tick();
            if self.take_timer() {
                return true;
            }
        }
        // A task without budget is woken when it has some again.
        let Poll::Ready(turn) = coop::poll_proceed(cx) else { return false };
        let Some(command) = self.driver.next_command() else { return false };
        turn.made_progress();
        self.driver.handle_command(command);
        true
    }

    /// Handles one completion. Returns whether there was one.
    fn take_completed(&mut self, cx: &mut Context<'_>) -> bool {
        // Dropped futures go first: they must not outlive their branches.
        if self.driver.executor.is_dropping() {
            self.poll_executor(cx);
        }
        if !self.driver.executor.has_completed() {
            self.poll_executor(cx);
        }
        let Some(completion) = self.driver.executor.next_completed() else { return false };
        // The detach may have come during this poll and may have caused this completion, which then must not
        // enter the log.
        if self.driver.committer.is_detaching() {
            self.driver.executor.put_back(completion);
            return false;
        }
        self.driver.complete(completion, &mut self.left, cx);
        true
    }

    /// Polls the futures in flight once, and queues a completion.
    fn poll_executor(&mut self, cx: &mut Context<'_>) {
        if let Some(completion) = self.driver.executor.poll(cx) {
            self.driver.committer.clock.tick();
            self.driver.executor.complete(completion);
        }
    }

    /// Fires a due timer, or ends the run at its deadline. Otherwise sets the alarm for the earlier of both. Returns whether
    /// one was due.
    fn take_timer(&mut self) -> bool {
        let Committer { shared, state, clock, .. } = &mut self.driver.committer;
        let state = &mut **state;
        // Nothing enters the log while the run cleans up.
        if state.end().is_some() {
            return false;
        }
        let timer = state.timers.next(&state.scheduler);
        // S73: timers that are due then come first.
        let is_first = |deadline: &SystemTime| timer.is_none_or(|(due, _)| due > *deadline);
        let deadline = shared.deadline().filter(is_first);
        let Some(due) = deadline.or(timer.map(|(due, _)| due)) else { return false };
        // S67: messages that the inbox took before come before.
        if self.driver.admission.holds_timer(due) {
            return false;
        }
        if !self.driver.alarms.has_come(due, clock.wall()) {
            let sleep = || self.driver.executor.wait(Due::Timer(due), shared.common.clock.sleep_until(due));
            let earlier = self.driver.alarms.set(due, sleep);
            self.driver.executor.drop_wait(earlier);
            return false;
        }
        if let Some(deadline) = deadline {
            let _ = self.driver.commit(Batch::Stopped(Stop::DeadlinePassed(deadline)), None);
        } else if let Some((_, timer)) = timer
            && let Some(event) = state.timers.event(due, timer)
        {
            self.driver.commit_in_turn(Batch::Fired { timer, event }, None);
            self.driver.tell_requests();
        }
        true
    }

    /// Cancels a child whose parent does not want it any more.
    fn read_parent_cancel(&mut self, cx: &mut Context<'_>) {
        let Some(link) = self.driver.committer.shared.parent_link() else { return };
        // A parent signals the detach before the cancel.
        let is_open = self.driver.committer.state.end().is_none();
        if is_open && link.drop_signal.is_set(cx) && !self.driver.committer.is_detaching() {
            let reason = link.cancel_reason();
            self.driver.cancel(reason, None);
        }
    }

    /// After a failure of a child's store, stops the run as if its own store had failed. Waits for the answer
    /// of the write under way.
    fn read_child_store_failure(&mut self) {
        let Committer { journal, shared, state, .. } = &mut self.driver.committer;
        let (Some(journal), Some(why)) = (journal, shared.signals.child_store_failure()) else { return };
        if !state.begins_nothing() && journal.fail_if_idle(why) {
            self.driver.stop_after_journal_failure(None);
        }
    }
}
