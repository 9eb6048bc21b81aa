//! Rewinding a run when its store refuses a batch for its content. The run returns to the state that its journal leads to,
//! and applies every pending batch again but the refused one. A refused emission fails its execution, and a refused send is
//! an error of its caller.
//!
//! Everything in flight follows from records that the store has (S38). So do the pending batches: none depends on another.
//! Executions and questions therefore continue. An execution that was dropped because of the refused batch begins again, as
//! it does in a run that resumes.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use rustc_hash::{FxHashMap, FxHashSet};

use super::RunStatus;
use super::command::why_not_open;
use super::commit::Done;
use super::drive::Run;
use super::journal::ReadBack;
use super::pending::{PendingBatch, PendingWhat};
use super::resume::unlimited;
use super::state::{Batch, Begins, Replay, Replayed, RunState};
use crate::display::Display;
use crate::error::{SendError, StepError};
use crate::id::{ExecutionId, TimerId};
use crate::scheduler::CandidateId;
use crate::store::{Position, Record, RecordedEvent, StoreError};

impl Run {
    /// The store has refused a batch of so many records for its content. An execution or a caller fails, or else the run.
    pub(super) fn refused(&mut self, records: usize, why: StoreError) {
        let Some(journal) = self.journal.as_deref_mut() else { return };
        let end = journal.written().after(records);
        let first = self.pending.front();
        // Without its start event there is no run.
        let can_fail_alone = journal.written() > Position(0)
            && first.is_some_and(|first| first.end == end && first.what.can_fail_alone());
        if can_fail_alone {
            journal.read_back(&self.shared.id, why);
        } else {
            self.give_up(why);
        }
    }

    /// Whether no rewind is under way. While its journal is read back, the run does nothing else.
    #[inline]
    pub(super) fn is_rewound(&mut self, cx: &mut Context<'_>) -> bool {
        self.journal.is_none() || self.reads_no_more(cx)
    }

    fn reads_no_more(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(journal) = self.journal.as_deref_mut().filter(|journal| journal.is_reading()) else {
            return true;
        };
        let live = &self.state;
        match journal.poll_read_back(&self.shared.id, cx, |record| with_value(record, live)) {
            Poll::Pending => return false,
            Poll::Ready(Ok(back)) => self.rewind(back),
            Poll::Ready(Err(why)) => self.give_up(why),
        }
        true
    }

    /// The run stops here: nothing more is written.
    fn give_up(&mut self, why: StoreError) {
        if let Some(journal) = self.journal.as_deref_mut() {
            journal.refuse(why);
        }
        self.unkept();
    }

    fn rewind(&mut self, ReadBack { records, refused }: ReadBack) {
        let replayed = self.replayed(&records).filter(|replayed| self.agrees(&replayed.state));
        let (Some(Replayed { mut state, retries, derived }), Some(journal)) =
            (replayed, self.journal.as_deref_mut())
        else {
            return self.give_up(refused);
        };
        let mut unwritten = Unwritten::of(journal.written(), journal.rewind());
        // The event that woke the run was refused, or enters again.
        if self.shared.status() == RunStatus::Running {
            journal.note_going_on();
        }
        let pending = std::mem::take(&mut self.pending);
        let answered = Answered::by(pending.iter().map(|batch| &batch.what));
        state.inherit(&self.state, unwritten.from.after(derived.len()));
        let waits = |(execution, _): &(ExecutionId, SystemTime)| {
            let is_over = self.executor.has(*execution) || answered.has(*execution);
            !is_over && state.trace.next_attempt(*execution).is_some()
        };
        let retries: Vec<_> = retries.into_iter().filter(waits).collect();
        state.effects.begun_before(retries.iter().map(|(execution, _)| *execution));
        self.leave_begun(&mut state, &answered);
        *self.state = state;
        self.admission.rewind();
        self.check_replay(unlimited(&self.host.table, &records));
        if let Some(check) = &mut self.telemetry.check {
            check.resume(&records);
        }
        drop(records);
        for seq in derived {
            self.derived(seq);
        }
        // These waits were dropped because of batches that the store does not have.
        for (execution, due) in retries {
            self.shared.cancellations.revoke(execution);
            self.wait_for_retry(execution, due.duration_since(self.clock.wall()).unwrap_or_default());
        }
        self.enter_all_again(pending, &mut unwritten, &refused);
        for execution in answered.retried.into_iter().filter(|id| !self.executor.has(*id)) {
            // The wait for its next attempt is over.
            self.state.defer(Begins::Attempt(execution));
        }
    }

    /// The state that the records lead to; none if they lead nowhere.
    fn replayed(&self, records: &[Record]) -> Option<Replayed> {
        let state = RunState::new(&self.host.table, unlimited(&self.host.table, records));
        let mut replay = Replay::new(Arc::clone(&self.host), state, self.clock.began_at);
        replay.recall(records);
        replay.know_failures_of(&self.state);
        replay.take(records).ok()?;
        Some(replay.finish())
    }

    /// Whether the executions that are in flight are the same in a state of fewer batches.
    fn agrees(&self, earlier: &RunState) -> bool {
        let is_same = |execution: ExecutionId| {
            let (was, is) = (earlier.start_of(execution), self.state.start_of(execution));
            was.zip(is).is_some_and(|(was, is)| {
                (was.step, was.scope, was.trigger) == (is.step, is.scope, is.trigger)
            })
        };
        self.executor.executions().all(is_same)
    }

    /// Removes effects that have begun and are in flight, or that have their answer. An execution that was begun and then
    /// dropped begins again.
    fn leave_begun(&self, state: &mut RunState, answered: &Answered) {
        let unbegun = self.unbegun();
        let mut goes_on: FxHashSet<ExecutionId> = self.executor.executions().collect();
        goes_on.extend(self.executor.returned_executions());
        goes_on.extend(self.admission.deferred().filter_map(Begins::execution));
        state.change_effects(|state, begins| match &begins {
            Begins::Execution(_) | Begins::Attempt(_) => {
                let execution = begins.execution()?;
                if goes_on.contains(&execution) || answered.has(execution) {
                    return None;
                }
                if unbegun.contains(&execution) {
                    return state.start_of(execution).map(Begins::Execution);
                }
                self.shared.cancellations.revoke(execution);
                Some(Begins::Attempt(execution))
            }
            Begins::Question(candidate) => {
                let is_asked = self.executor.asks(*candidate) || answered.questions.contains(candidate);
                (!is_asked).then_some(begins)
            }
            Begins::Wait => Some(begins),
        });
    }

    /// Applies the pending batches again, in order, but the first, which is refused. Its execution fails behind the others:
    /// their events stay in the log, also where the failure ends the run.
    fn enter_all_again(
        &mut self,
        pending: impl IntoIterator<Item = PendingBatch>,
        unwritten: &mut Unwritten,
        refused: &StoreError,
    ) {
        let mut pending = pending.into_iter();
        let first = pending.next();
        let mut from = first.as_ref().map_or(unwritten.from, |first| first.end);
        for PendingBatch { end, what } in pending {
            match what {
                // It follows by itself again, if it does.
                PendingWhat::Derived(_) => {}
                PendingWhat::Asked(asked) => self.handle_command(asked.ask_again()),
                PendingWhat::Entered { batch, done, shown, .. } => {
                    let records = unwritten.between(from, end);
                    let set: Vec<TimerId> = records.iter().filter_map(Record::timer_set).collect();
                    if let Some(batch) = unwritten.renumbered(batch.recordable(records)) {
                        let before = self.state.scheduler.board().awaited.last_timer();
                        self.enter_again(batch, done, shown);
                        unwritten.note_timers(
                            &set,
                            before,
                            self.state.scheduler.board().awaited.last_timer(),
                        );
                    }
                }
            }
            from = end;
        }
        if let Some(PendingBatch { what: PendingWhat::Entered { batch, done, shown, .. }, .. }) = first {
            self.advance(&mut usize::MAX.clone());
            self.dismiss(batch, done, shown.as_deref(), refused);
        }
    }

    /// Reports the refusal of a batch to its execution or its caller.
    fn dismiss(&mut self, batch: Batch, done: Option<Done>, shown: Option<&Display>, why: &StoreError) {
        match batch {
            Batch::Succeeded { execution, .. } => {
                if let Some(shown) = shown {
                    shown.retract();
                }
                // It may have been dropped meanwhile.
                let step = self.state.step_of(execution);
                if let Some(step) = step.filter(|_| self.state.scheduler.is_running(execution)) {
                    self.attempt_failed(execution, step, StepError::permanent(why.clone()));
                }
            }
            Batch::Received { event, .. } | Batch::Replied { event, .. } => {
                let (run, event) = (self.shared.id.clone(), event.name());
                if let Some(done) = done {
                    let _ = done.send(Err(SendError::Refused { run, event, source: why.clone() }));
                }
            }
            // No other batch can fail alone.
            _ => {}
        }
    }

    /// Applies a pending batch again, unless its execution was dropped or its request is not open any more.
    fn enter_again(&mut self, batch: Batch, done: Option<Done>, shown: Option<Box<Display>>) {
        self.advance(&mut usize::MAX.clone());
        let mut returned = None;
        match &batch {
            Batch::Succeeded { execution, .. } if !self.state.scheduler.is_running(*execution) => return,
            Batch::Succeeded { execution, returned } if self.state.end().is_some() => {
                let timed = returned.timers().iter().map(|timer| &timer.event);
                return self.refuse(*execution, returned.events().iter().chain(timed));
            }
            Batch::Succeeded { execution, .. } => returned = Some(*execution),
            Batch::Replied { request, .. }
                if self.state.end().is_none()
                    && !self.state.scheduler.open_requests().any(|(seq, _)| seq == *request) =>
            {
                let why = why_not_open(&self.state, *request);
                drop(done.map(|done| done.send(Err(why))));
                return;
            }
            _ => {}
        }
        let next = self.commit(batch, done);
        self.follow(next);
        if let (Some(execution), Some(shown)) = (returned, shown) {
            self.note_shown(execution, shown);
        }
    }
}

impl PendingWhat {
    /// Whether its execution or its caller fails if the store refuses it, and not the run.
    fn can_fail_alone(&self) -> bool {
        match self {
            Self::Entered { batch: Batch::Succeeded { .. }, .. } => true,
            Self::Entered { batch: Batch::Received { .. } | Batch::Replied { .. }, done, .. } => {
                done.is_some()
            }
            _ => false,
        }
    }
}

/// The records behind what the store has.
struct Unwritten {
    from: Position,
    records: Vec<Record>,
    /// The timers that these set: what number each has now, none if nobody sets it any more.
    timers: FxHashMap<TimerId, Option<TimerId>>,
}

impl Unwritten {
    fn of(from: Position, records: Vec<Record>) -> Self {
        let timers = records.iter().filter_map(Record::timer_set).map(|timer| (timer, None)).collect();
        Self { from, records, timers }
    }

    /// A batch that set these timers has entered again, if there are as many new ones.
    fn note_timers(&mut self, set: &[TimerId], before: TimerId, now: TimerId) {
        if now.0 - before.0 == set.len() as u64 {
            let numbered = set.iter().zip(before.0 + 1..).map(|(old, new)| (*old, Some(TimerId(new))));
            self.timers.extend(numbered);
        }
    }

    /// The batch with the number that its timer has now; none if there is no such timer any more.
    fn renumbered(&self, batch: Batch) -> Option<Batch> {
        let Batch::Fired { timer, event } = batch else { return Some(batch) };
        let timer = self.timers.get(&timer).copied().unwrap_or(Some(timer))?;
        Some(Batch::Fired { timer, event })
    }

    fn between(&self, from: Position, to: Position) -> &[Record] {
        let place = |at: Position| usize::try_from(at.0.saturating_sub(self.from.0)).unwrap_or(usize::MAX);
        self.records.get(place(from)..place(to)).unwrap_or_default()
    }
}

/// Executions and questions whose answers are pending: the store does not have them.
#[derive(Default)]
struct Answered {
    executions: FxHashSet<ExecutionId>,
    questions: FxHashSet<CandidateId>,
    /// Executions of which an attempt failed, and another follows.
    retried: FxHashSet<ExecutionId>,
}

impl Answered {
    fn by<'a>(pending: impl Iterator<Item = &'a PendingWhat>) -> Self {
        let mut answered = Self::default();
        for what in pending {
            let PendingWhat::Entered { batch, .. } = what else { continue };
            match batch {
                Batch::Succeeded { execution, .. } | Batch::Failed { execution, .. } => {
                    answered.retried.remove(execution);
                    answered.executions.insert(*execution);
                }
                Batch::Retried { execution, .. } => {
                    answered.retried.insert(*execution);
                }
                Batch::Answered { candidate, .. } => {
                    answered.questions.insert(*candidate);
                }
                _ => {}
            }
        }
        answered
    }

    fn has(&self, execution: ExecutionId) -> bool {
        self.executions.contains(&execution) || self.retried.contains(&execution)
    }
}

/// The record with the value of its event that the run has, so that no JSON is decoded.
fn with_value(record: Record, live: &RunState) -> Record {
    match record {
        Record::EventLogged { seq, scope, cause, event, at } => {
            let value = live.log.get(seq).map(|known| RecordedEvent::of_value(known.event.clone()));
            Record::EventLogged { seq, scope, cause, event: value.unwrap_or(event), at }
        }
        Record::TimerSet { timer, execution, scope, request, due, event, at } => {
            let value = live.timers.event(due, timer).map(RecordedEvent::of_value);
            let event = value.unwrap_or(event);
            Record::TimerSet { timer, execution, scope, request, due, event, at }
        }
        record => record,
    }
}
