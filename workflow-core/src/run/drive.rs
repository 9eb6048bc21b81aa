//! The driver of a run: the one place that sees all of its parts. It is a task that owns the run's state, begins what the
//! state says, takes in what completes and what arrives, and works in slices that yield to other tasks.
//!
//! ```text
//!  handles ─ mailbox ─┐                          ┌─▶ journal ─ store
//!  timers ─ alarms ───┼─▶ batch ─▶ RunState ─────┤
//!  steps ── executor ─┘   (commit)    │          └─▶ telemetry, senders  (once the store has it)
//!              ▲                   effects
//!              └──── admission ◀──────┘           (once the store has what they follow from)
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::coop;

use super::admission::{Admission, Admit};
use super::alarms::Alarms;
use super::begin::Which;
use super::check::ReplayCheck;
use super::clock::RunClock;
use super::executor::Executor;
use super::held_state::HeldState;
use super::host::Host;
use super::in_flight::{Arrived, Due};
use super::journal::Journal;
use super::meter::Meter;
use super::pending::PendingBatch;
use super::places::{Place, Places};
use super::release::{Paused, Registration};
use super::resume::unlimited;
use super::seat::Admitted;
use super::shared::RunShared;
use super::state::{Batch, Begins, Stop};
use super::suspended::Suspended;
use super::telemetry::Telemetry;
use super::view::View;
use super::waiting::Deferred;
use super::{Received, RunStatus, finish};
use crate::observe::Observed;
use crate::scheduler::SchedulerLimits;
use crate::table::EventIndex;

/// How many actions, batches and commands one slice handles.
const SLICE: usize = 256;

/// How much the state is advanced in one slice at most.
const WORK: usize = 2 * SLICE;

/// How many slices one poll has at most before it yields to other tasks, on a runtime with several threads: to yield wakes
/// another one of them there, which finds nothing to do. On any other it has one.
const SLICES: usize = 4;

/// After this time a poll begins no further slice.
const LONG_POLL: Duration = Duration::from_micros(100);

/// One run.
pub(crate) struct Run {
    pub(super) shared: Arc<RunShared>,
    pub(super) host: Arc<Host>,
    pub(super) state: HeldState,
    pub(super) executor: Executor,
    pub(super) admission: Admission,
    /// None without a store.
    pub(super) journal: Option<Box<Journal>>,
    /// What is in the state and the store does not have, oldest first.
    pub(super) pending: VecDeque<PendingBatch>,
    pub(super) telemetry: Telemetry,
    pub(super) clock: RunClock,
    pub(super) alarms: Alarms,
    pub(super) phase: Phase,
    /// None as long as nobody has given one.
    pub(super) cancel_reason: Option<Arc<str>>,
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
        let mut run = Self::of(shared, host, state, admission, telemetry, clock);
        run.journal = journal.map(|journal| Box::new(journal.owned_by(run.shared.owner())));
        run.alarms = Alarms::of(run.shared.timeout);
        run.check_replay(unlimited(&run.host.table, &[]));
        run
    }

    /// From here on the run's journal is checked, where the engine says so.
    pub(super) fn check_replay(&mut self, limits: SchedulerLimits) {
        let failures = self.shared.common.replay_check.as_ref();
        let check = failures.map(|all| ReplayCheck::new(&self.host, limits, self.clock.began_at, all));
        self.telemetry.check = check;
    }

    /// One with these parts, of which nothing else is known.
    pub(super) fn of(
        shared: Arc<RunShared>,
        host: Arc<Host>,
        state: HeldState,
        admission: Admission,
        telemetry: Telemetry,
        clock: RunClock,
    ) -> Box<Self> {
        Box::new(Self {
            shared,
            host,
            state,
            executor: Executor::default(),
            admission,
            journal: None,
            pending: VecDeque::new(),
            telemetry,
            clock,
            alarms: Alarms::default(),
            phase: Phase::Driven,
            cancel_reason: None,
        })
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
        if self.journal.is_none() {
            self.shared.begin();
        }
        let next = self.commit(Batch::Received { event, index }, done);
        self.follow(next);
        async move {
            self.telemetry.meter.began();
            self.count_time();
            self.drive_on(registered).await;
        }
    }

    /// Drives a run to its end that has begun.
    pub(super) async fn drive_on<R: Registration>(mut self: Box<Self>, registered: R) {
        let mut suspended = None;
        // Where the future is dropped, this is dropped before the run is, suspended or not.
        let registered = registered;
        loop {
            match std::future::poll_fn(|cx| self.poll_on(cx)).await {
                Paused::Ended => break,
                Paused::Idle => {}
                Paused::AtRest => {
                    let rests = suspended.insert(self.suspend());
                    std::future::poll_fn(|cx| rests.poll_news(cx)).await;
                    let Some(whole) = suspended.take().and_then(Suspended::restore) else { return };
                    self = whole;
                    continue;
                }
            }
            let Some(held) = Box::pin(self.take_hold(registered.hold())).await else { break };
            if self.closes() {
                let shared = Arc::clone(&self.shared);
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
        let waiting = self.state.scheduler.executions().waiting() + self.admission.deferred().len();
        self.telemetry.queue(waiting);
        polled
    }

    /// Handles what there is to handle, until the run ends or others have their turn.
    fn poll_slices(&mut self, cx: &mut Context<'_>) -> Poll<Paused> {
        self.executor.begin_poll();
        let began = Instant::now();
        for _ in 0..SLICES {
            if let Some(polled) = self.poll_slice(cx) {
                return polled;
            }
            if !self.executor.has_threads() || began.elapsed() >= LONG_POLL {
                break;
            }
        }
        // What there is to do may never end.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Nothing, if there is more to do.
    fn poll_slice(&mut self, cx: &mut Context<'_>) -> Option<Poll<Paused>> {
        self.clock.tick();
        self.shared.bell.register(cx.waker());
        self.poll_writing(cx);
        if !self.is_rewound(cx) {
            return Some(Poll::Pending);
        }
        self.read_child_store_failure();
        self.poll_unwanted(cx);
        // Commands have their turn in every slice, however much completes while it is being begun.
        let (mut work, mut left) = (WORK, SLICE);
        if self.takes_news() {
            self.read_cancel_note();
            if !self.is_leaving() {
                self.poll_mailbox(cx);
                self.poll_executor(cx);
            }
        }
        while left > 0 {
            left -= 1;
            if !self.is_rewound(cx) {
                return Some(Poll::Pending);
            }
            if !self.advance(&mut work) {
                break;
            }
            if self.begin_next(&mut left, cx) {
                continue;
            }
            if self.state.end().is_some() && self.journal_is_done() {
                return Some(Poll::Ready(Paused::Ended));
            }
            if !self.take_news(&mut left, cx) && !self.poll_journal(cx) && !self.leaves() {
                if self.state.end().is_some() {
                    return Some(Poll::Pending);
                }
                return Some(self.poll_idle(cx));
            }
        }
        self.poll_journal(cx);
        None
    }

    /// Begins what is due next, if anything is and may.
    fn begin_next(&mut self, left: &mut usize, cx: &mut Context<'_>) -> bool {
        if self.state.end().is_some() {
            return false;
        }
        while let Some(begins) = self.admission.next_deferred(self.executor.executing()) {
            if !self.state.is_wanted(&begins) {
                continue;
            }
            if self.may_begin(cx) {
                self.begin(begins, left, cx);
                return true;
            }
            self.admission.put_back(begins);
            return false;
        }
        loop {
            if !self.state.has_effects() {
                return false;
            }
            let written = self.journal.as_deref().map(Journal::written);
            let Some(begins) = self.state.next_effect(written) else { return false };
            if matches!(begins, Begins::Wait) {
                self.wait();
                return true;
            }
            let is_attempt = begins.execution().is_some();
            if is_attempt && !self.admission.has_room(self.executor.executing()) {
                self.admission.defer(begins);
                continue;
            }
            if self.may_begin(cx) {
                self.begin(begins, left, cx);
                return true;
            }
            self.state.effects.put_back(begins);
            return false;
        }
    }

    fn begin(&mut self, begins: Begins, left: &mut usize, cx: &mut Context<'_>) {
        match begins {
            Begins::Execution(start) => self.run_on(start, Which::First, left, cx),
            Begins::Attempt(execution) => {
                if let Some(start) = self.state.start_of(execution) {
                    self.run_on(start, Which::Again, left, cx);
                }
            }
            Begins::Question(candidate) => {
                let before = self.state.effects.len();
                self.ask(candidate);
                // What an answer that is there at once leads to begins where the question stood.
                if self.journal.is_none() && self.advance(&mut WORK.clone()) {
                    self.state.effects.prefer_behind(before);
                }
            }
            Begins::Wait => {}
        }
    }

    /// Whether the run may begin anything now: it has its permit, and is this engine's.
    fn may_begin(&mut self, cx: &mut Context<'_>) -> bool {
        if self.is_leaving() {
            return false;
        }
        if self.admission.is_admitted() {
            return true;
        }
        let mut admitted = Admitted::Had;
        let admit = self.admission.admit(self.journal.as_deref_mut(), self.clock.stamp(), cx, &mut admitted);
        match admitted {
            Admitted::Had => {}
            Admitted::Took => self.count_time(),
            Admitted::Waits => self.stop_counting_time(),
        }
        if admit == Admit::Queued {
            self.state.skip(1);
        }
        admit == Admit::Now
    }

    /// Takes in what happened meanwhile; behind a store that has fallen far behind it waits. Of a run that is about to be
    /// detached, nothing but that it is cancelled.
    fn take_news(&mut self, left: &mut usize, cx: &mut Context<'_>) -> bool {
        self.takes_news()
            && (self.read_cancel_note()
                || self.take_cancel()
                || !self.is_leaving()
                    && (self.take_timer() || self.take_completed(left, cx) || self.poll_mailbox(cx)))
    }

    /// Whether the run takes anything in: its state has all that follows from what it took before.
    fn takes_news(&self) -> bool {
        self.state.end().is_none()
            && self.state.scheduler.is_settled()
            && !self.journal.as_deref().is_some_and(Journal::is_full)
    }

    fn read_cancel_note(&mut self) -> bool {
        self.shared.cancel_note.read().is_some_and(|reason| self.cancel(reason))
    }

    fn take_completed(&mut self, left: &mut usize, cx: &mut Context<'_>) -> bool {
        // What was dropped goes first: its futures must not outlive their branches.
        if self.executor.is_dropping() {
            self.poll_executor(cx);
        }
        if !self.executor.has_completed() {
            self.poll_executor(cx);
        }
        let Some(completion) = self.executor.next_completed() else { return false };
        // It may be what became of a run that was detached meanwhile.
        if self.is_leaving() {
            self.executor.put_back(completion);
            return false;
        }
        self.complete(completion, left, cx);
        true
    }

    fn poll_executor(&mut self, cx: &mut Context<'_>) {
        if let Some(completion) = self.executor.poll(cx) {
            self.clock.tick();
            self.executor.complete(completion);
        }
    }

    /// Takes in what completed.
    pub(super) fn complete(&mut self, completion: Arrived, left: &mut usize, cx: &mut Context<'_>) {
        match completion {
            Arrived::Execution(execution, result) => {
                self.executor.forget(execution);
                if let Some(next) = self.executed(execution, result) {
                    self.begin_directly(next, left, cx);
                }
            }
            Arrived::Check(candidate, answer) => {
                if let Some(step) = self.executor.answered(candidate) {
                    self.answer(candidate, step, answer);
                }
            }
            Arrived::Dropped => self.executor.is_gone(),
            Arrived::Due(Due::Retry(execution)) => {
                self.executor.forget(execution);
                self.state.defer(Begins::Attempt(execution));
            }
            Arrived::Due(Due::Timer(at)) => self.alarms.rings(at),
            Arrived::Due(Due::Timeout) => self.time_ran_out(),
        }
    }

    fn poll_mailbox(&mut self, cx: &mut Context<'_>) -> bool {
        // Once the task has no turns left, it is woken to have more.
        let Poll::Ready(turn) = coop::poll_proceed(cx) else { return false };
        let Some(command) = self.shared.mailbox.take() else { return false };
        turn.made_progress();
        self.handle_command(command);
        true
    }

    /// The run waits, and the store has all that it waits for.
    fn wait(&mut self) {
        self.telemetry.compare(&self.state);
        self.admission.leave();
        self.telemetry.meter.waits();
        self.stop_counting_time();
        self.record_wait();
        self.shared.standing.set(RunStatus::Waiting);
        self.shared.tell(|| Observed::RunWaiting);
        self.give_back();
    }

    pub(super) fn view(&self) -> View<'_> {
        let deferred = Deferred::new(&self.state, &self.admission);
        View {
            run: &self.shared,
            status: self.state.end().map_or(self.shared.status(), RunStatus::from),
            state: &self.state,
            deferred: Some(deferred),
            began_at: self.clock.began_at,
        }
    }

    /// Ends the run, if it has not ended; says whether it did.
    pub(super) fn cancel(&mut self, reason: Arc<str>) -> bool {
        if self.state.end().is_some() {
            return false;
        }
        let _ = self.commit(Batch::Stopped(Stop::Cancelled), None);
        self.cancel_reason = Some(reason);
        true
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.phase == Phase::Suspended {
            return;
        }
        // Whoever still asks is told how the run ended, or has it loaded again.
        self.shared.mailbox.discard();
        if self.phase == Phase::Unloaded {
            return;
        }
        super::children::disown(&self.shared);
        // Whoever is told of the end may look at once: spans and metrics are complete before that.
        let finished = finish::finished(&self.shared);
        self.telemetry.close(finished, self.clock.now);
        finish::announce(&self.shared);
    }
}
