//! The run's task: performs what the scheduler asks for and feeds facts back, in slices that yield to other
//! tasks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use rustc_hash::FxHashMap;
use tokio::sync::{mpsc, oneshot};

use super::budget::Budget;
use super::changed;
use super::clock::RunClock;
use super::fence::Fence;
use super::handle::Command;
use super::host::Host;
use super::in_flight::{Arrived, Dropped, Execution, InFlight};
use super::journal::Journal;
use super::log::Log;
use super::meter::Meter;
use super::past::View;
use super::places::{Gate, Place, Places};
use super::release::{Paused, Registration};
use super::shared::RunShared;
use super::spans::Spans;
use super::timers::Timers;
use super::trace::Trace;
use super::waiting::HeldBack;
use super::{Finished, RunStatus, finish};
use crate::error::{Incompatibility, RunError, SendError, StepError};
use crate::event::AnyEvent;
use crate::explain::Explanation;
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::observe::Observed;
use crate::output::Emitted;
use crate::scheduler::{Action, CandidateId, Fact, Scheduler, SchedulerLimits};
use crate::store::{EventStore, Record};
use crate::table::{EventIndex, StepIndex};

/// How many actions, facts and commands one poll handles before it yields to other tasks.
const SLICE: usize = 256;

/// How much the scheduler works in one poll at most, whether actions come of it or not.
const WORK: usize = 4 * SLICE;

/// One run.
pub(crate) struct Run {
    pub(super) shared: Arc<RunShared>,
    pub(super) host: Arc<Host>,
    pub(super) scheduler: Scheduler,
    pub(super) log: Log,
    pub(super) trace: Trace,
    pub(super) in_flight: FuturesUnordered<InFlight>,
    /// How to drop what is in flight, by execution.
    pub(super) droppable: FxHashMap<ExecutionId, Arc<Dropped>>,
    /// How many of those in flight were told that they are dropped and are still there.
    pub(super) dropping: usize,
    /// What ended while it was being started, oldest first.
    pub(super) arrived: VecDeque<Arrived>,
    /// The memory of an execution that ended at once, for the next one.
    pub(super) spare: Option<Execution>,
    /// What the execution that is being committed wants to leave in the log.
    pub(super) committing: Option<(ExecutionId, Emitted)>,
    /// What came from outside or from timers and the scheduler has not answered yet, oldest first.
    pub(super) receiving: VecDeque<Received>,
    /// What the run's store is told; none without a store.
    pub(super) journal: Option<Journal>,
    /// What executions failed with, until the run or a gather needs it.
    pub(super) failures: FxHashMap<ExecutionId, StepError>,
    pub(super) precondition_failures: FxHashMap<CandidateId, (StepIndex, StepError)>,
    /// By scope, so that those of a dropped branch are found.
    pub(super) asked: BTreeMap<(ScopeId, CandidateId), Asked>,
    pub(super) timers: Timers,
    pub(super) budget: Budget,
    pub(super) cancel_reason: Arc<str>,
    pub(super) limits: SchedulerLimits,
    pub(super) spans: Spans,
    pub(super) meter: Meter,
    pub(super) clock: RunClock,
    pub(super) mailbox: mpsc::Receiver<Command>,
    /// A mailbox that was closed to let go of the run, as long as somebody may still be sending there. Meanwhile it is
    /// not let go of.
    pub(super) closing: Option<mpsc::Receiver<Command>>,
    /// How long it waits until it is let go of, while it waits.
    pub(super) patience: Option<BoxFuture<'static, ()>>,
    /// Whether it was let go of, and has not ended.
    pub(super) is_released: bool,
    /// Whether it has stopped without an end, and its journal is left as it is.
    pub(super) is_left: bool,
    /// Actions that wait until the run has its place among the engine's running ones, and next attempts that are due,
    /// oldest first.
    pub(super) held: VecDeque<Action>,
    slot_wait: Option<BoxFuture<'static, Place>>,
    slots: Option<Places>,
    slot: Option<Place>,
    /// None without leases.
    pub(super) fence: Option<Fence>,
}

/// A precondition that is being asked.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) step: StepIndex,
    pub(super) trigger: Seq,
    /// How to drop it; none while it may answer at once.
    pub(super) dropped: Option<Arc<Dropped>>,
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
        mailbox: mpsc::Receiver<Command>,
        slots: Option<(Places, Option<Place>)>,
        journal: Option<Journal>,
    ) -> Box<Self> {
        let (slots, slot) = slots.unzip();
        let journal = journal.map(|journal| journal.owned_by(shared.owner()));
        Box::new(Self {
            fence: shared.lease.as_ref().map(Fence::new),
            scheduler: Scheduler::with_limits(Arc::clone(&host.table), limits),
            spans: Spans::of(&shared),
            meter: Meter::new(&host.table.name),
            clock: RunClock::start(shared.clock.clone()),
            budget: Budget::of(shared.timeout),
            shared,
            host,
            log: Log::default(),
            trace: Trace::default(),
            in_flight: FuturesUnordered::new(),
            droppable: FxHashMap::default(),
            dropping: 0,
            arrived: VecDeque::new(),
            spare: None,
            committing: None,
            receiving: VecDeque::new(),
            journal,
            failures: FxHashMap::default(),
            precondition_failures: FxHashMap::default(),
            asked: BTreeMap::new(),
            timers: Timers::default(),
            cancel_reason: "cancelled".into(),
            limits,
            mailbox,
            closing: None,
            patience: None,
            is_released: false,
            is_left: false,
            held: VecDeque::new(),
            slot_wait: None,
            slots,
            slot: slot.flatten(),
        })
    }

    /// Drives the run from its start event to its end. Dropping the future drops every execution and ends
    /// the run as abandoned. What is registered is dropped before anybody is told of the end.
    pub(crate) async fn drive<R: Registration>(
        mut self: Box<Self>,
        start: Received,
        index: EventIndex,
        registered: R,
    ) {
        if self.journal.is_none() {
            self.shared.begin();
        }
        self.meter.began();
        self.count_time();
        self.receiving.push_back(start);
        self.scheduler.apply(Fact::EventReceived { event: index });
        self.drive_on(registered).await;
    }

    /// Drives a run to its end that stands where its journal ends.
    pub(crate) async fn drive_resumed<R: Registration>(mut self: Box<Self>, registered: R) {
        self.meter.runs();
        self.claim().await;
        if self.scheduler.waits() {
            self.wait();
        }
        self.drive_on(registered).await;
    }

    /// Drives a run to its end that has begun.
    pub(super) async fn drive_on<R: Registration>(mut self: Box<Self>, registered: R) {
        while self.paused().await == Paused::Idle {
            let Some(held) = self.take_hold(&registered).await else { break };
            if self.closes() {
                let shared = Arc::clone(&self.shared);
                registered.release(self.released(), shared);
                drop(held);
                return;
            }
        }
        self.slot_wait = None;
        self.leave_children();
        self.stop();
        self.end_children().await;
        self.close_journal().await;
        self.finish();
        // A run that goes on elsewhere, or may, needs its contexts.
        if self.journal_error().is_none() && !self.is_left {
            self.shared.clear_contexts().await;
        }
        self.slot = None;
        drop(registered);
    }

    /// Polls the run until it ends, or has nothing to do for long.
    async fn paused(&mut self) -> Paused {
        std::future::poll_fn(|cx| self.poll_on(cx)).await
    }

    pub(super) fn poll_on(&mut self, cx: &mut Context<'_>) -> Poll<Paused> {
        let polled = self.poll_slice(cx);
        self.meter.queue(self.scheduler.waiting() + self.held.len());
        polled
    }

    /// Ends before it has begun, or gone on.
    fn fail(self: Box<Self>, error: RunError) {
        let _ =
            self.shared.finished.set(Finished { status: RunStatus::Failed, outcome: Err(error), kept: None });
    }

    /// Drives a run on from where its journal ends; one that has ended is looked back at.
    pub(crate) async fn drive_from<R: Registration>(
        mut self: Box<Self>,
        store: Option<Arc<dyn EventStore>>,
        records: &[Record],
        registered: R,
    ) {
        let id = self.shared.id.clone();
        let incompatible = |difference| RunError::Incompatible { run: id.clone(), difference };
        if matches!(records.last(), Some(Record::RunEnded { .. })) {
            let looked_back = self.look_back(records);
            drop(registered);
            if let Err(difference) = looked_back {
                self.fail(incompatible(difference));
            }
            return;
        }
        let journal = store.and_then(|store| Journal::resume(store, records, &self.host.table));
        self.journal = journal.map(|journal| journal.owned_by(self.shared.owner()));
        match self.resume(records) {
            Ok(()) => self.drive_resumed(registered).await,
            Err(difference) => {
                drop(registered);
                self.fail(incompatible(difference));
            }
        }
    }

    /// Comes to stand where the run's journal ends, which is what the records tell of.
    pub(crate) fn resume(&mut self, records: &[Record]) -> Result<(), Incompatibility> {
        changed::check(&self.host.table, records)?;
        if let Some(Record::RunStarted { at, .. }) = records.first() {
            self.clock = RunClock::resume(self.shared.clock.clone(), *at);
        }
        self.replay(records)
    }

    /// A run that has ended, as its journal tells of it.
    pub(crate) fn look_back(&mut self, records: &[Record]) -> Result<(), Incompatibility> {
        self.resume(records)?;
        self.stop();
        if let Some(Record::RunEnded { status, error, step, .. }) = records.last() {
            self.finish_as(*status, error.as_deref(), step.as_deref());
        }
        Ok(())
    }

    /// Handles what there is to handle, until the run ends.
    fn poll_slice(&mut self, cx: &mut Context<'_>) -> Poll<Paused> {
        self.clock.tick();
        self.shared.cancel_note.wakes(cx);
        self.shared.leave_note.wakes(cx);
        self.poll_writing(cx);
        self.poll_let_down(cx);
        self.poll_unwanted(cx);
        // What waits has its turn in every slice, however much ends while it is being started.
        if !self.journal_is_full() {
            self.read_cancel_note();
        }
        if self.takes_news() {
            self.poll_mailbox(cx);
            if let Some(arrived) = self.poll_in_flight(cx) {
                self.arrived.push_back(arrived);
            }
        }
        let mut work = WORK;
        for _ in 0..SLICE {
            if let Some(action) = self.take_held(cx).or_else(|| self.scheduler.next_within(&mut work)) {
                self.perform_or_hold(action, cx);
            } else if self.scheduler.end().is_some() {
                return Poll::Ready(Paused::Ended);
            } else if work == 0 {
                break;
            } else if !self.take_news(cx) && !self.poll_journal(cx) && !self.leaves() {
                return self.poll_idle(cx);
            }
        }
        // What there is to do may never end.
        self.poll_journal(cx);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// What needs a place among the engine's running runs is held back until the run has one, and what begins something
    /// as long as the run may be another engine's; everything else goes on.
    fn perform_or_hold(&mut self, action: Action, cx: &mut Context<'_>) {
        let is_fenced = Self::begins(&action) && (self.is_leaving() || self.is_fenced(cx));
        if is_fenced || self.wants_slot(&action) && (!self.held.is_empty() || !self.has_slot(cx)) {
            self.held.push_back(action);
        } else {
            self.perform(action, cx);
        }
    }

    /// What was held back, and the next attempts of executions. Nothing begins in a run that has ended or is about to.
    fn take_held(&mut self, cx: &mut Context<'_>) -> Option<Action> {
        let front = self.held.front()?;
        let (wants_slot, begins) = (self.wants_slot(front), Self::begins(front));
        if self.scheduler.refuses()
            || (begins && (self.is_leaving() || self.is_fenced(cx)))
            || (wants_slot && !self.has_slot(cx))
        {
            return None;
        }
        self.held.pop_front()
    }

    /// What happened meanwhile; with a journal that falls behind it waits. Of a run that is about to be left, nothing but
    /// that it is cancelled.
    fn take_news(&mut self, cx: &mut Context<'_>) -> bool {
        !self.journal_is_full()
            && (self.read_cancel_note()
                || self.poll_cancel(cx)
                || self.takes_news() && (self.take_timer() || self.take_arrived(cx) || self.poll_mailbox(cx)))
    }

    fn takes_news(&self) -> bool {
        !self.journal_is_full() && !self.is_leaving()
    }

    fn read_cancel_note(&mut self) -> bool {
        self.shared.cancel_note.read().is_some_and(|reason| self.cancel(reason))
    }

    fn take_arrived(&mut self, cx: &mut Context<'_>) -> bool {
        // What was dropped goes first: its futures must not outlive their branches.
        let first = if self.dropping > 0 { self.poll_in_flight(cx) } else { None };
        let arrived = first.or_else(|| self.arrived.pop_front()).or_else(|| self.poll_in_flight(cx));
        let Some(arrived) = arrived else { return false };
        // It may be what became of a run that was left meanwhile.
        if self.is_leaving() {
            self.arrived.push_front(arrived);
            return false;
        }
        self.arrive(arrived);
        true
    }

    fn poll_in_flight(&mut self, cx: &mut Context<'_>) -> Option<Arrived> {
        let Poll::Ready(arrived) = self.in_flight.poll_next_unpin(cx) else { return None };
        if arrived.is_some() {
            self.clock.tick();
        }
        arrived
    }

    fn poll_mailbox(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(closing) = &mut self.closing {
            match closing.poll_recv(cx) {
                Poll::Ready(Some(command)) => {
                    self.obey(command);
                    return true;
                }
                Poll::Ready(None) => self.closing = None,
                Poll::Pending => {}
            }
        }
        let Poll::Ready(Some(command)) = self.mailbox.poll_recv(cx) else { return false };
        self.obey(command);
        true
    }

    /// Whoever still asks is told how the run ended.
    pub(super) fn close_mailbox(&mut self) {
        self.closing = None;
        self.mailbox.close();
        while self.mailbox.try_recv().is_ok() {}
    }

    /// A waiting run gives its place among the engine's running ones to another.
    pub(super) fn wait(&mut self) {
        self.slot = None;
        self.slot_wait = None;
        self.meter.waits();
        self.stop_counting_time();
        self.record_wait();
        self.shared.status.send_replace(RunStatus::Waiting);
        self.shared.tell(|| Observed::RunWaiting);
    }

    /// Steps and preconditions run only while the run has its place; what enters the log needs none.
    fn wants_slot(&self, action: &Action) -> bool {
        Self::begins(action) && self.slot.is_none() && self.slots.is_some()
    }

    /// Takes a place, if there is one now; else the run is woken when it is its turn.
    fn has_slot(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(slots) = self.slots.as_ref().filter(|_| self.slot.is_none()) else { return true };
        let wait = self.slot_wait.get_or_insert_with(|| Box::pin(slots.clone().take()));
        let Poll::Ready(slot) = wait.as_mut().poll(cx) else {
            // Others have the time meanwhile.
            self.stop_counting_time();
            return false;
        };
        self.slot_wait = None;
        self.slot = Some(slot);
        self.count_time();
        true
    }

    /// Something arrived for a waiting run.
    pub(super) fn wake(&mut self) {
        if self.shared.status() == RunStatus::Waiting {
            self.meter.runs();
            self.shared.status.send_replace(RunStatus::Running);
            self.note_going_on();
            self.count_time();
        }
    }
}

impl Run {
    pub(super) fn view(&self) -> View<'_> {
        View {
            id: &self.shared.id,
            thread: &self.shared.thread,
            metadata: &self.shared.metadata,
            parent: self.shared.parent(),
            children: self.shared.children.get(),
            status: self.scheduler.end().map_or(self.shared.status(), RunStatus::from),
            scheduler: &self.scheduler,
            log: &self.log,
            trace: &self.trace,
            timers: Some(&self.timers),
            held: Some(HeldBack { actions: &self.held, gate: self.gate() }),
            began_at: self.clock.began_at,
        }
    }

    /// Where the run waits for a place, if it does.
    fn gate(&self) -> Option<&Gate> {
        self.slots.as_ref().filter(|_| self.slot_wait.is_some())?.gate()
    }

    pub(super) fn explain(&self) -> Explanation {
        self.view().explain()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
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
