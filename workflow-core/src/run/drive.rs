//! The run's task: performs what the scheduler asks for and feeds facts back, in slices that yield to other
//! tasks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;
use tokio::task::coop;

use super::budget::Budget;
use super::clock::RunClock;
use super::fence::Fence;
use super::host::Host;
use super::in_flight::{Arrived, Dropped, Flights, has_threads};
use super::journal::Journal;
use super::log::Log;
use super::meter::Meter;
use super::parked::Parked;
use super::past::View;
use super::places::{Place, Places};
use super::release::{Paused, Registration};
use super::seat::Seat;
use super::shared::RunShared;
use super::spans::Spans;
use super::timers::Timers;
use super::trace::Trace;
use super::waiting::HeldBack;
use super::{RunStatus, finish};
use crate::error::{SendError, StepError};
use crate::event::AnyEvent;
use crate::explain::Explanation;
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::observe::Observed;
use crate::output::Emitted;
use crate::scheduler::{CandidateId, Fact, Scheduler, SchedulerLimits, Wanted};
use crate::table::{EventIndex, StepIndex};

/// How many actions, facts and commands one slice handles.
const SLICE: usize = 256;

/// How much the scheduler works in one slice at most, whether actions come of it or not.
const WORK: usize = 2 * SLICE;

/// How many slices one poll has at most before it yields to other tasks, on a runtime with several threads: to yield wakes
/// another one of them there, which finds nothing to do. On any other it has one.
const SLICES: usize = 4;

/// After this time it begins no further one.
const LONG_POLL: Duration = Duration::from_micros(100);

/// One run.
pub(crate) struct Run {
    pub(super) shared: Arc<RunShared>,
    pub(super) host: Arc<Host>,
    pub(super) scheduler: Scheduler,
    pub(super) log: Log,
    pub(super) trace: Trace,
    pub(super) in_flight: Flights,
    /// Whether the runtime has several threads; asked once in each poll, if it matters.
    pub(super) threads: Option<bool>,
    /// How to drop what is in flight, by execution.
    pub(super) droppable: FxHashMap<ExecutionId, Arc<Dropped>>,
    /// How many of those in flight were told that they are dropped and are still there.
    pub(super) dropping: usize,
    /// What ended while it was being started, oldest first.
    pub(super) arrived: VecDeque<Arrived>,
    /// What the execution that is being committed wants to leave in the log.
    pub(super) committing: Option<(ExecutionId, Emitted)>,
    /// What the run begins with, until it has.
    pub(super) first: Option<(AnyEvent, EventIndex)>,
    /// What came from outside or from timers and the scheduler has not answered yet, oldest first.
    pub(super) receiving: VecDeque<Received>,
    /// What the run's store is told; none without a store.
    pub(super) journal: Option<Box<Journal>>,
    /// What executions failed with, until the run or a gather needs it.
    pub(super) failures: FxHashMap<ExecutionId, StepError>,
    pub(super) precondition_failures: FxHashMap<CandidateId, (StepIndex, StepError)>,
    /// By scope, so that those of a dropped branch are found.
    pub(super) asked: BTreeMap<(ScopeId, CandidateId), Asked>,
    pub(super) timers: Timers,
    pub(super) budget: Budget,
    /// None as long as nobody has given one.
    pub(super) cancel_reason: Option<Arc<str>>,
    pub(super) limits: SchedulerLimits,
    pub(super) spans: Spans,
    pub(super) meter: Meter,
    pub(super) clock: RunClock,
    /// How long it waits until it is let go of, while it waits.
    pub(super) patience: Option<BoxFuture<'static, ()>>,
    /// Whether it was let go of, and has not ended.
    pub(super) is_released: bool,
    /// Whether it has stopped without an end, and its journal is left as it is.
    pub(super) is_left: bool,
    /// Whether all that it was has been taken to where it waits.
    pub(super) is_parked: bool,
    /// Actions that wait until the run has its place among the engine's running ones, and next attempts that are due,
    /// oldest first.
    pub(super) held: VecDeque<Wanted>,
    /// Its place among the engine's running ones; none if nothing bounds these.
    pub(super) seat: Option<Box<Seat>>,
    /// None without leases.
    pub(super) fence: Option<Box<Fence>>,
}

/// A precondition that is being asked.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) step: StepIndex,
    pub(super) trigger: Seq,
    /// How to drop it.
    pub(super) dropped: Arc<Dropped>,
}

/// Something from outside or from a timer, and who wants to know that it was taken.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) event: AnyEvent,
    pub(crate) done: Option<oneshot::Sender<Result<(), SendError>>>,
}

impl Run {
    /// Boxed: it is handed on from one future to the next, each of which would have room for it.
    pub(crate) fn new(
        shared: Arc<RunShared>,
        host: Arc<Host>,
        limits: SchedulerLimits,
        slots: Option<(Places, Option<Place>)>,
        journal: Option<Journal>,
    ) -> Box<Self> {
        let scheduler = Scheduler::with_limits(Arc::clone(&host.table), limits);
        let (meter, clock) = (Meter::new(&host.table.name), RunClock::start(shared.common.clock.clone()));
        let mut run = Self::of(shared, host, limits, scheduler, meter, clock);
        let shared = &run.shared;
        run.spans = Spans::of(shared);
        run.fence = shared.common.lease.as_ref().map(|lease| Box::new(Fence::new(lease)));
        run.journal = journal.map(|journal| Box::new(journal.owned_by(shared.owner())));
        run.budget = Budget::of(shared.timeout);
        run.seat = slots.map(|(places, place)| Seat::new(places, place));
        run
    }

    /// One with this state, of which nothing else is known.
    pub(super) fn of(
        shared: Arc<RunShared>,
        host: Arc<Host>,
        limits: SchedulerLimits,
        scheduler: Scheduler,
        meter: Meter,
        clock: RunClock,
    ) -> Box<Self> {
        Box::new(Self {
            shared,
            host,
            scheduler,
            log: Log::default(),
            trace: Trace::default(),
            in_flight: Flights::default(),
            threads: None,
            droppable: FxHashMap::default(),
            dropping: 0,
            arrived: VecDeque::new(),
            committing: None,
            first: None,
            receiving: VecDeque::new(),
            journal: None,
            failures: FxHashMap::default(),
            precondition_failures: FxHashMap::default(),
            asked: BTreeMap::new(),
            timers: Timers::default(),
            budget: Budget::default(),
            cancel_reason: None,
            limits,
            spans: Spans::default(),
            meter,
            clock,
            patience: None,
            is_released: false,
            is_left: false,
            is_parked: false,
            held: VecDeque::new(),
            seat: None,
            fence: None,
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
        if self.journal.is_some() {
            self.receive(start, Fact::EventReceived { event: index });
        } else {
            debug_assert!(start.done.is_none(), "without a store nobody waits for it to be written");
            self.first = Some((start.event, index));
        }
        async move {
            if self.journal.is_none() {
                self.shared.begin();
            }
            self.meter.began();
            self.count_time();
            self.drive_on(registered).await;
        }
    }

    /// Drives a run to its end that has begun.
    pub(super) async fn drive_on<R: Registration>(mut self: Box<Self>, registered: R) {
        let mut parked = None;
        // Where the future is dropped, this is dropped before the run is, parked or not.
        let registered = registered;
        loop {
            match self.paused().await {
                Paused::Ended => break,
                Paused::Idle => {}
                Paused::AtRest => {
                    let rests = parked.insert(self.park());
                    std::future::poll_fn(|cx| rests.poll_news(cx)).await;
                    let Some(whole) = parked.take().and_then(Parked::whole) else { return };
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
        self.leave_children();
        self.stop();
        // Most runs have neither, and none has them for long: the task has no room for these.
        if self.has_children() {
            Box::pin(self.end_children()).await;
        }
        if self.journal.is_some() {
            Box::pin(self.close_journal()).await;
        }
        self.finish();
        // A run that goes on elsewhere, or may, needs its contexts.
        if self.shared.contexts.are_used() && self.journal_error().is_none() && !self.is_left {
            Box::pin(self.shared.clear_contexts()).await;
        }
        self.leave_place();
        drop(registered);
    }

    /// Polls the run until it ends, or has nothing to do for long.
    async fn paused(&mut self) -> Paused {
        std::future::poll_fn(|cx| self.poll_on(cx)).await
    }

    pub(super) fn poll_on(&mut self, cx: &mut Context<'_>) -> Poll<Paused> {
        let polled = self.poll_slices(cx);
        self.meter.queue(self.scheduler.waiting() + self.held.len());
        polled
    }

    /// Handles what there is to handle, until the run ends or others have their turn.
    fn poll_slices(&mut self, cx: &mut Context<'_>) -> Poll<Paused> {
        self.threads = None;
        let began = Instant::now();
        for _ in 0..SLICES {
            if let Some(polled) = self.poll_slice(cx) {
                return polled;
            }
            if !self.has_threads() || began.elapsed() >= LONG_POLL {
                break;
            }
        }
        // What there is to do may never end.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether the runtime has several threads.
    pub(super) fn has_threads(&mut self) -> bool {
        *self.threads.get_or_insert_with(has_threads)
    }

    /// Nothing, if there is more to do.
    fn poll_slice(&mut self, cx: &mut Context<'_>) -> Option<Poll<Paused>> {
        self.clock.tick();
        self.shared.bell.register(cx.waker());
        self.poll_writing(cx);
        self.read_let_down();
        self.poll_unwanted(cx);
        // What waits has its turn in every slice, however much ends while it is being started.
        if !self.journal_is_full() {
            self.read_cancel_note();
        }
        let (mut work, mut left) = (WORK, SLICE);
        self.take_first(&mut left, cx);
        if self.takes_news() && self.scheduler.end().is_none() {
            self.poll_mailbox(cx);
            if let Some(arrived) = self.poll_in_flight(cx) {
                self.arrived.push_back(arrived);
            }
        }
        while left > 0 {
            left -= 1;
            if let Some(wanted) = self.take_held(cx).or_else(|| self.scheduler.next_within(&mut work)) {
                self.perform_or_hold(wanted, &mut left, cx);
            } else if self.scheduler.end().is_some() {
                return Some(Poll::Ready(Paused::Ended));
            } else if work == 0 {
                break;
            } else if !self.take_news(&mut left, cx) && !self.poll_journal(cx) && !self.leaves() {
                return Some(self.poll_idle(cx));
            }
        }
        self.poll_journal(cx);
        None
    }

    /// What needs a place among the engine's running runs is held back until the run has one, and what begins something
    /// as long as the run may be another engine's; everything else goes on.
    pub(super) fn perform_or_hold(&mut self, wanted: Wanted, most: &mut usize, cx: &mut Context<'_>) {
        let is_fenced = Self::begins(&wanted) && (self.is_leaving() || self.is_fenced(cx));
        if is_fenced || self.wants_place(&wanted) && (!self.held.is_empty() || !self.has_place(cx)) {
            self.held.push_back(wanted);
            return;
        }
        match wanted {
            Wanted::Start(start) => self.start_on(start, most, cx),
            Wanted::Act(action) => self.perform(action, cx),
        }
    }

    /// What was held back, and the next attempts of executions. Nothing begins in a run that has ended or is about to.
    fn take_held(&mut self, cx: &mut Context<'_>) -> Option<Wanted> {
        let front = self.held.front()?;
        let (wants_place, begins) = (self.wants_place(front), Self::begins(front));
        if self.scheduler.refuses()
            || (begins && (self.is_leaving() || self.is_fenced(cx)))
            || (wants_place && !self.has_place(cx))
        {
            return None;
        }
        self.held.pop_front()
    }

    /// What happened meanwhile; with a journal that falls behind it waits. Of a run that is about to be left, nothing but
    /// that it is cancelled.
    fn take_news(&mut self, most: &mut usize, cx: &mut Context<'_>) -> bool {
        !self.journal_is_full()
            && (self.read_cancel_note()
                || self.take_cancel()
                || self.takes_news()
                    && (self.take_timer() || self.take_arrived(most, cx) || self.poll_mailbox(cx)))
    }

    fn takes_news(&self) -> bool {
        !self.journal_is_full() && !self.is_leaving()
    }

    fn read_cancel_note(&mut self) -> bool {
        self.shared.cancel_note.read().is_some_and(|reason| self.cancel(reason))
    }

    fn take_arrived(&mut self, most: &mut usize, cx: &mut Context<'_>) -> bool {
        // What was dropped goes first: its futures must not outlive their branches.
        let first = if self.dropping > 0 { self.poll_in_flight(cx) } else { None };
        let arrived = first.or_else(|| self.arrived.pop_front()).or_else(|| self.poll_in_flight(cx));
        let Some(arrived) = arrived else { return false };
        // It may be what became of a run that was left meanwhile.
        if self.is_leaving() {
            self.arrived.push_front(arrived);
            return false;
        }
        if let Some(start) = self.arrive(arrived) {
            self.perform_or_hold(Wanted::Start(start), most, cx);
        }
        true
    }

    fn poll_in_flight(&mut self, cx: &mut Context<'_>) -> Option<Arrived> {
        let Poll::Ready(arrived) = self.in_flight.poll_next(cx) else { return None };
        if arrived.is_some() {
            self.clock.tick();
        }
        arrived
    }

    fn poll_mailbox(&mut self, cx: &mut Context<'_>) -> bool {
        // Once the task has no turns left, it is woken to have more.
        let Poll::Ready(turn) = coop::poll_proceed(cx) else { return false };
        let Some(command) = self.shared.mailbox.take() else { return false };
        turn.made_progress();
        self.obey(command);
        true
    }

    pub(super) fn wait(&mut self) {
        self.leave_place();
        self.meter.waits();
        self.stop_counting_time();
        self.record_wait();
        self.shared.standing.set(RunStatus::Waiting);
        self.shared.tell(|| Observed::RunWaiting);
        self.give_back();
    }

    /// Something arrived for a waiting run.
    pub(super) fn wake(&mut self) {
        if self.shared.status() == RunStatus::Waiting {
            self.meter.runs();
            self.shared.standing.set(RunStatus::Running);
            self.note_going_on();
            self.count_time();
        }
    }
}

impl Run {
    pub(super) fn view(&self) -> View<'_> {
        View {
            run: &self.shared,
            status: self.scheduler.end().map_or(self.shared.status(), RunStatus::from),
            scheduler: &self.scheduler,
            log: &self.log,
            trace: &self.trace,
            timers: Some(&self.timers),
            held: Some(HeldBack {
                actions: &self.held,
                gate: self.seat.as_ref().and_then(|seat| seat.gate()),
            }),
            began_at: self.clock.began_at,
        }
    }

    pub(super) fn explain(&self) -> Explanation {
        self.view().explain()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.is_parked {
            return;
        }
        // Whoever still asks is told how the run ended, or has it loaded again.
        self.shared.mailbox.discard();
        if self.is_released {
            return;
        }
        super::children::disown(&self.shared);
        // Whoever is told of the end may look at once: spans and metrics are complete before that.
        let finished = finish::finished(&self.shared);
        self.spans.close(finished);
        self.meter.ended(finished.status, self.clock.now);
        finish::announce(&self.shared);
    }
}
