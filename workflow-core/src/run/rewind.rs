//! Rewinding a run after its store refused a batch for its content.
//!
//! The run goes back to the state that its journal leads to, and applies every pending batch again except the
//! refused one. A refused emission fails its execution; a refused send is an error of its sender. Other runs
//! never notice.
//!
//! ```text
//! position    7            9         10        11
//! pending     │ A          │ B       │ C       │         A: an execution's batch, which the store refused
//!             │ (refused)  │         │ derived │         C: a gather that followed by itself
//! written ────┘
//!
//! 1  read the journal back, 0..7, and replay it       -> the state at 7
//! 2  take over what no journal has                    -> start times, limits, effects that are in flight
//! 3  apply B again                                    -> the next sequence numbers, new timer numbers
//! 4  C follows again by itself, or does not
//! 5  fail A's execution                               -> behind B, also if that ends the run
//! ```
//!
//! # Invariants
//! - Executions and preconditions in flight follow from records that the store has (S38), so they continue.
//!   If the replay gives one of these executions another step, scope or trigger ([`Continuing::agrees`]), the
//!   run stops instead.
//! - Pending batches are independent, with one exception: a pending timer may have fired. Its firing gets the
//!   timer's new number, or is discarded if no batch sets the timer again ([`Unwritten`]).
//! - An execution that was dropped because of the refused batch begins again, as it does after a resume.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use rustc_hash::{FxHashMap, FxHashSet};

use super::admission::{Admission, TurnStage};
use super::before_attempt::ErrorOf;
use super::commit::{CommitReply, Committer};
use super::driver::{Driver, why_not_open};
use super::earlier_tables::EarlierTables;
use super::executor::Executor;
use super::host::Host;
use super::journal::ReadBack;
use super::pending::{PendingBatch, PendingKind};
use super::state::{Batch, EffectKind, Replay, Replayed, RunState};
use crate::display::Display;
use crate::error::StepError;
use crate::id::{ExecutionId, RunStatus, TimerId};
use crate::outcome::SendError;
use crate::scheduler::{CandidateId, SchedulerLimits};
use crate::store::{Position, Record, RecordedEvent, StoreError};

impl Driver {
    /// Handles the refusal of one batch of `records` records. If the batch belongs to an execution or a
    /// sender, that one fails after a rewind. Otherwise the run stops.
    pub(super) fn on_refused(&mut self, records: usize, why: StoreError) {
        let Committer { journal, pending, shared, .. } = &mut self.committer;
        let Some(journal) = journal.as_deref_mut() else { return };
        // The refused batch must be the front of `pending`. Records without a batch, such as `RunKept`, are
        // not.
        let end = journal.written().after(records);
        let first = pending.front();
        // Without its start event there is no run to rewind.
        let can_fail_alone = journal.written() > Position(0)
            && first.is_some_and(|first| first.end == end && first.what.can_fail_alone());
        if can_fail_alone {
            journal.read_back(&shared.id, why);
        } else {
            self.stop_after_journal_failure(Some(why));
        }
    }

    /// Drives a rewind. Pending while the journal is read back; ready once the rewind is complete, or if
    /// there is none.
    #[expect(clippy::inline_always, reason = "each slice asks several times, and few runs ever rewind")]
    #[inline(always)]
    pub(super) fn poll_rewind(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.committer.journal.is_none() { Poll::Ready(()) } else { self.poll_read_back(cx) }
    }

    #[inline(never)]
    fn poll_read_back(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Committer { journal, state, shared, .. } = &mut self.committer;
        let Some(journal) = journal.as_deref_mut().filter(|journal| journal.is_reading()) else {
            return Poll::Ready(());
        };
        match journal.poll_read_back(&shared.id, cx, |record| with_value(record, state)) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(back)) => self.rewind(back),
            Poll::Ready(Err(why)) => self.stop_after_journal_failure(Some(why)),
        }
        Poll::Ready(())
    }

    /// Goes back to the state of the records, takes over what is in flight, and applies the pending batches
    /// again.
    ///
    /// Everything that can fail comes first: until the journal is rewound, the run can still stop as it is. Then
    /// the new state gets what only the live one has, and replaces it. Only then do futures, alarms and batches see
    /// the new state.
    fn rewind(&mut self, ReadBack { records, refused }: ReadBack) {
        let Self { host, executor, admission, committer, .. } = &mut *self;
        let continuing = Continuing { executor, admission, live: &committer.state };
        let replayed = replayed(host, committer.clock.began_at, &committer.state, &records);
        let replayed = replayed.filter(|replayed| continuing.agrees(&replayed.state));
        let (Some(Replayed { mut state, retries, derived }), Some(journal)) =
            (replayed, committer.journal.as_deref_mut())
        else {
            return self.stop_after_journal_failure(Some(refused));
        };
        // From here on the journal ends where the store has it.
        let unwritten = Unwritten::of(journal.written(), journal.rewind());
        // The event that woke the run was refused, or enters again.
        if committer.shared.status() == RunStatus::Running {
            journal.note_running_again();
        }
        let pending = std::mem::take(&mut committer.pending);
        let answered = PendingAnswers::by(pending.iter().map(|batch| &batch.what));
        // The entries that follow from the journal are queued below, so effects wait for the end behind them.
        state.inherit(&committer.state, unwritten.from.after(derived.len()));
        // A retry is waited for again unless its wait still runs, or its result is pending.
        let deferred: FxHashSet<_> = admission.deferred().filter_map(EffectKind::execution).collect();
        let waits = |(execution, _): &(ExecutionId, SystemTime)| {
            let is_over =
                executor.has(*execution) || answered.has(*execution) || deferred.contains(execution);
            !is_over && state.trace.next_attempt(*execution).is_some()
        };
        let retries: Vec<_> = retries.into_iter().filter(waits).collect();
        state.effects.remove_attempts_of(retries.iter().map(|(execution, _)| *execution));
        // In flight or answered: not begun a second time.
        let queued = continuing.dropped_while_queued(&state);
        let again = continuing.remove_begun(&mut state, &answered);
        for execution in &again {
            state.lives.lose(*execution);
        }
        *committer.state = state;
        // A `RunKept` in the queue is gone with the queue, and is queued again when something is to begin.
        admission.rewind();
        committer.check_replay(host, &records);
        drop(records);
        // Queued before any batch: they follow from records that the store has.
        for seq in derived {
            committer.derived(seq);
        }
        executor.wait_for_dropped();
        let begin_again: Vec<_> = again.iter().chain(&queued).copied().collect();
        if !begin_again.is_empty() {
            // They find the children that they had, and ask as attempts of their own.
            committer.shared.signals.note_detached_children();
            committer.shared.child_registry().begin_again(&begin_again);
        }
        // These waits and executions were dropped because of batches that the store does not have.
        for execution in again.into_iter().chain(retries.iter().map(|(execution, _)| *execution)) {
            committer.shared.cancellations.revoke(execution);
        }
        for (execution, due) in retries {
            let left = due.duration_since(self.committer.clock.wall()).unwrap_or_default();
            self.attempt_after(left, execution);
        }
        // All parts are in place by now, since each batch may end the run or drop what continued.
        Rewind { driver: self, unwritten, refused: None }.enter_all_again(pending, &refused);
        let queued = self.queued_executions();
        let waited = |id: &ExecutionId| !self.executor.has(*id) && !queued.contains(id);
        for execution in answered.retried.into_iter().filter(waited).collect::<Vec<_>>() {
            // The execution has waited for its next attempt already.
            self.committer.state.queue_effect(EffectKind::Attempt(execution));
        }
        // They kept their turns, and their records have been queued again if the store lacked them.
        let turns = self.admission.turns_before_begin().filter(|(_, stage)| *stage == TurnStage::Has);
        for (execution, _) in turns {
            self.committer.state.queue_effect(EffectKind::Attempt(execution));
        }
        if self.committer.state.end().is_none() {
            // The refused batch may have completed the run.
            self.seal_children(false);
        }
        // Nothing may be left to write.
        self.withheld_until_here();
        if self.committer.state.is_paused() {
            self.hold_back();
        }
    }
}

/// The state that the records lead to; `None` if they contradict the table.
fn replayed(host: &Arc<Host>, began_at: SystemTime, live: &RunState, records: &[Record]) -> Option<Replayed> {
    let state = RunState::new(&host.table, SchedulerLimits::NONE);
    let mut replay = Replay::new(Arc::clone(host), state, began_at);
    replay.recall(records, &EarlierTables::of(&host.table, records));
    replay.use_errors_of(live);
    replay.take(records).ok()?;
    Some(replay.finish())
}

/// The parts of the live run that continue through a rewind.
struct Continuing<'a> {
    /// Has the futures in flight, and the results that wait for their turn.
    executor: &'a Executor,
    /// Has the executions that were deferred, and knows which have not begun.
    admission: &'a Admission,
    /// The state before the rewind.
    live: &'a RunState,
}

impl Continuing<'_> {
    /// Whether each execution in flight, or deferred, has the same step, scope and trigger in the earlier state. Questions in flight
    /// need no check: the batches that the store has come first in both states, so the scheduler numbers their
    /// candidates alike.
    fn agrees(&self, earlier: &RunState) -> bool {
        let is_same = |execution: ExecutionId| {
            let (was, is) = (earlier.start_of(execution), self.live.start_of(execution));
            was.zip(is).is_some_and(|(was, is)| {
                (was.step, was.scope, was.trigger) == (is.step, is.scope, is.trigger)
            })
        };
        let deferred = self.admission.deferred().filter(|begins| self.live.is_wanted(begins));
        let deferred = deferred.filter_map(EffectKind::execution);
        self.executor.executions().chain(deferred).all(is_same)
    }

    /// The executions that a batch dropped before they began, and that the earlier state has again. They may have children of
    /// earlier lives.
    fn dropped_while_queued(&self, earlier: &RunState) -> Vec<ExecutionId> {
        let effects = self.live.effects.iter().map(|effect| &effect.begins);
        let queued = effects.chain(self.admission.deferred()).filter_map(EffectKind::execution);
        let runs = |state: &RunState, execution| state.scheduler.is_running(execution);
        queued.filter(|id| runs(earlier, *id) && !runs(self.live, *id)).collect()
    }

    /// Removes effects that are in flight or have their answer. Returns the executions that had begun and
    /// were dropped since: they begin again.
    fn remove_begun(&self, state: &mut RunState, answered: &PendingAnswers) -> Vec<ExecutionId> {
        // By the live state: the replay cannot know which effects had begun.
        let unbegun = self.admission.unbegun(self.live);
        // Attempts of earlier lives that this life has not begun again.
        let queued: FxHashSet<_> =
            self.live.effects.iter().filter_map(|effect| effect.begins.execution()).collect();
        let mut continuing: FxHashSet<ExecutionId> = self.executor.executions().collect();
        continuing.extend(self.executor.returned_executions());
        // A deferred execution stays deferred: admission keeps it through the rewind.
        continuing.extend(self.admission.deferred().filter_map(EffectKind::execution));
        let mut again = Vec::new();
        state.change_effects(|state, begins| match &begins {
            EffectKind::Execution(_) | EffectKind::Attempt(_) => {
                let execution = begins.execution()?;
                // Its result will come, or is pending.
                if continuing.contains(&execution) || answered.has(execution) {
                    return None;
                }
                // It waited for its turn, so its first attempt is still to come.
                if unbegun.contains(&execution) {
                    return state.start_of(execution).map(EffectKind::Execution);
                }
                if queued.contains(&execution) {
                    return Some(begins);
                }
                again.push(execution);
                Some(EffectKind::Attempt(execution))
            }
            EffectKind::Precondition(candidate) => {
                let is_asked = self.executor.asks(*candidate) || answered.questions.contains(candidate);
                (!is_asked).then_some(begins)
            }
            EffectKind::Wait => Some(begins),
        });
        again
    }
}

/// The pending batches on their way into the log of a rewound run.
struct Rewind<'a> {
    driver: &'a mut Driver,
    unwritten: Unwritten,
    /// The execution whose batch the store refused, if an execution made it.
    refused: Option<ExecutionId>,
}

impl Rewind<'_> {
    /// Applies the pending batches again, in order, except the first, which the store refused. Its execution
    /// fails after the others, so their events stay in the log even if that failure ends the run.
    fn enter_all_again(mut self, pending: impl IntoIterator<Item = PendingBatch>, refused: &StoreError) {
        let mut pending = pending.into_iter();
        let first = pending.next();
        if let Some(PendingBatch { what: PendingKind::Batch { batch, .. }, .. }) = &first {
            self.refused = batch.succeeded_execution();
        }
        // The records between two ends belong to the second entry. The first entry is the refused batch.
        let mut from = first.as_ref().map_or(self.unwritten.from, |first| first.end);
        for PendingBatch { end, what } in pending {
            match what {
                // An entry follows by itself again, if it still does. The question behind the end of delays ends them
                // again, with the waits that the rewind has set.
                PendingKind::Derived(_) | PendingKind::Batch { batch: Batch::DelaysEnded, .. } => {}
                PendingKind::Question(asked) => {
                    if let Some(command) = asked(false) {
                        self.driver.handle_command(command);
                    }
                }
                PendingKind::Batch { batch, done, shown, .. } => {
                    let records = self.unwritten.between(from, end);
                    let set: Vec<TimerId> = records.iter().filter_map(Record::timer_set).collect();
                    if let Some(batch) = self.unwritten.renumbered(batch.recordable(records)) {
                        let before = self.last_timer();
                        self.enter_again(batch, done, shown);
                        let now = self.last_timer();
                        self.unwritten.note_timers(&set, before, now);
                    }
                }
            }
            from = end;
        }
        if let Some(PendingBatch { what: PendingKind::Batch { batch, done, shown, .. }, .. }) = first {
            // The failure enters behind everything that follows from the other batches.
            self.driver.advance(&mut usize::MAX.clone());
            self.dismiss(batch, done, shown.as_deref(), refused);
        }
    }

    /// The highest timer number so far, to see which numbers a batch gets.
    fn last_timer(&self) -> TimerId {
        self.driver.committer.state.scheduler.board().awaited.last_timer()
    }

    /// Reports the refusal of a batch to its execution or its sender.
    fn dismiss(
        &mut self,
        batch: Batch,
        done: Option<CommitReply>,
        shown: Option<&Display>,
        why: &StoreError,
    ) {
        let Committer { state, shared, .. } = &self.driver.committer;
        match batch {
            Batch::Succeeded { execution, .. } => {
                // Observers get one retraction for the items of an attempt that has failed after all (S25).
                if let Some(shown) = shown {
                    shown.retract();
                }
                // The execution may have been dropped meanwhile.
                let step = state.step_of(execution);
                if let Some(step) = step.filter(|_| state.scheduler.is_running(execution)) {
                    let error = StepError::permanent(why.clone());
                    self.driver.attempt_failed(execution, step, error, ErrorOf::Run);
                }
            }
            Batch::Received { event, .. } | Batch::Replied { event, .. } => {
                // Nothing follows from the event: it is in neither log nor journal.
                let (run, event) = (shared.id.clone(), event.name().into());
                if let Some(done) = done {
                    let _ = done.send(Err(SendError::Refused { run, event, source: why.clone() }));
                }
            }
            // No other batch can fail alone.
            _ => {}
        }
    }

    /// Applies a pending batch again, unless its execution was dropped or its request is closed. The state may differ
    /// from the one in which the batch was accepted first, since the refused batch is absent.
    fn enter_again(&mut self, mut batch: Batch, done: Option<CommitReply>, shown: Option<Box<Display>>) {
        self.driver.advance(&mut usize::MAX.clone());
        if let Batch::Paused(start) = &mut batch {
            **start = self.driver.pause_again(std::mem::take(&mut **start), self.refused);
        }
        let state = &self.driver.committer.state;
        match &batch {
            // An earlier batch dropped the execution, now that the refused one is absent.
            Batch::Succeeded { execution, .. } if !state.scheduler.is_running(*execution) => return,
            Batch::Succeeded { execution, returned } if state.begins_nothing() => {
                return self.driver.committer.record_late_events(*execution, returned.all_events());
            }
            Batch::Replied { request, .. }
                if state.end().is_none()
                    && !state.scheduler.open_requests().any(|(seq, _)| seq == *request) =>
            {
                let why = why_not_open(state, *request, self.driver.committer.clock.began_at);
                drop(done.map(|done| done.send(Err(why))));
                return;
            }
            _ => {}
        }
        // `commit` would refuse the other batches itself; those above need an answer for their senders or for
        // the report.
        let returned = batch.succeeded_execution();
        self.driver.commit_in_turn(batch, done);
        if let (Some(execution), Some(shown)) = (returned, shown) {
            self.driver.committer.note_shown(execution, shown);
        }
    }
}

impl PendingKind {
    /// Whether its execution or its sender fails if the store refuses it, instead of the run.
    fn can_fail_alone(&self) -> bool {
        match self {
            Self::Batch { batch: Batch::Succeeded { .. }, .. } => true,
            Self::Batch { batch: Batch::Received { .. } | Batch::Replied { .. }, done, .. } => done.is_some(),
            _ => false,
        }
    }
}

/// The records behind those that the store has, and the timers that they set.
struct Unwritten {
    /// The end of the journal in the store.
    from: Position,
    /// The records that were queued behind it, in order.
    records: Vec<Record>,
    /// The new number of each timer; `None` while no batch has set it again.
    timers: FxHashMap<TimerId, Option<TimerId>>,
}

impl Unwritten {
    fn of(from: Position, records: Vec<Record>) -> Self {
        let timers = records.iter().filter_map(Record::timer_set).map(|timer| (timer, None)).collect();
        Self { from, records, timers }
    }

    /// Notes the new numbers of the timers that a batch set, if applying it again set as many.
    fn note_timers(&mut self, set: &[TimerId], before: TimerId, now: TimerId) {
        if now.0 - before.0 == set.len() as u64 {
            let numbered = set.iter().zip(before.0 + 1..).map(|(old, new)| (*old, Some(TimerId(new))));
            self.timers.extend(numbered);
        }
    }

    /// The batch with the new number of its timer; `None` if that timer was not set again.
    fn renumbered(&self, batch: Batch) -> Option<Batch> {
        let Batch::Fired { timer, event } = batch else { return Some(batch) };
        // A timer that the store has keeps its number.
        let timer = self.timers.get(&timer).copied().unwrap_or(Some(timer))?;
        Some(Batch::Fired { timer, event })
    }

    /// The unwritten records from one position to another.
    fn between(&self, from: Position, to: Position) -> &[Record] {
        let place = |at: Position| usize::try_from(at.0.saturating_sub(self.from.0)).unwrap_or(usize::MAX);
        self.records.get(place(from)..place(to)).unwrap_or_default()
    }
}

/// Executions and preconditions whose results are in pending batches.
#[derive(Default)]
struct PendingAnswers {
    /// They succeeded, or failed for good.
    executions: FxHashSet<ExecutionId>,
    /// They have their answers.
    questions: FxHashSet<CandidateId>,
    /// Executions that have another attempt: one failed, or one was about to begin.
    retried: FxHashSet<ExecutionId>,
}

impl PendingAnswers {
    /// Collects the results in the pending batches, in order: a later batch replaces an earlier one.
    fn by<'a>(pending: impl Iterator<Item = &'a PendingKind>) -> Self {
        let mut answered = Self::default();
        for what in pending {
            let PendingKind::Batch { batch, .. } = what else { continue };
            match batch {
                Batch::Succeeded { execution, .. } | Batch::Failed { execution, .. } => {
                    answered.retried.remove(execution);
                    answered.executions.insert(*execution);
                }
                Batch::Retried { execution, .. } | Batch::AttemptBegan { execution } => {
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

    /// Whether a pending batch has the result of the execution's current attempt.
    fn has(&self, execution: ExecutionId) -> bool {
        self.executions.contains(&execution) || self.retried.contains(&execution)
    }
}

/// The record with its event's value from the live run, so that no JSON is decoded. Positions up to `written` are the
/// same in the log of the live run. A timer that has fired since is no longer among the live timers, and its event is
/// decoded.
fn with_value(record: Record, live: &RunState) -> Record {
    match record {
        Record::EventLogged { seq, scope, cause, event, origin, at } => {
            let value = live.log.get(seq).map(|known| RecordedEvent::of_value(known.event.clone()));
            Record::EventLogged { seq, scope, cause, event: value.unwrap_or(event), origin, at }
        }
        Record::TimerSet { timer, execution, scope, request, due, event, at } => {
            let value = live.timers.event(due, timer).map(RecordedEvent::of_value);
            let event = value.unwrap_or(event);
            Record::TimerSet { timer, execution, scope, request, due, event, at }
        }
        record => record,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::AnyEvent;
    use crate::run::bare_run::{BareRun, Begin, Draft, WRITE};
    use crate::run::pending::Logged;
    use crate::run::state::Stop;

    fn set(timer: u64) -> Record {
        let event = RecordedEvent::of_value(AnyEvent::new(Begin));
        let (due, at) = (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
        let (timer, scope) = (TimerId(timer), crate::id::ScopeId::ROOT);
        Record::TimerSet { timer, execution: WRITE, scope, request: None, due, event, at }
    }

    fn fired(timer: u64) -> Batch {
        Batch::Fired { timer: TimerId(timer), event: AnyEvent::new(Begin) }
    }

    fn fires(unwritten: &Unwritten, timer: u64) -> Option<u64> {
        match unwritten.renumbered(fired(timer))? {
            Batch::Fired { timer, .. } => Some(timer.0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn timers_that_are_set_again_fire_by_their_new_numbers() {
        let mut unwritten = Unwritten::of(Position(7), vec![set(3), set(4), set(5)]);
        assert_eq!(fires(&unwritten, 2), Some(2), "the store has it");
        assert_eq!(fires(&unwritten, 3), None, "nobody has set it again");
        unwritten.note_timers(&[TimerId(4), TimerId(5)], TimerId(2), TimerId(4));
        assert_eq!([3, 4, 5].map(|timer| fires(&unwritten, timer)), [None, Some(3), Some(4)]);
        unwritten.note_timers(&[TimerId(3)], TimerId(4), TimerId(4));
        assert_eq!(fires(&unwritten, 3), None, "its batch was refused");
    }

    #[test]
    fn each_batch_has_its_own_records_behind_those_that_the_store_has() {
        let unwritten = Unwritten::of(Position(7), vec![set(3), set(4), set(5)]);
        let timers = |from, to| -> Vec<u64> {
            let records = unwritten.between(Position(from), Position(to));
            records.iter().filter_map(Record::timer_set).map(|timer| timer.0).collect()
        };
        assert_eq!((timers(7, 8), timers(8, 10)), (vec![3], vec![4, 5]));
        assert!(timers(8, 8).is_empty() && timers(9, 11).is_empty());
    }

    fn entered(batch: Batch, done: Option<CommitReply>) -> PendingKind {
        PendingKind::Batch { batch, logged: None, done, shown: None }
    }

    #[test]
    fn pending_batches_tell_which_executions_and_preconditions_have_results() {
        let run = BareRun::new();
        let retried = |execution| {
            let class = crate::error::ErrorClass::Tool;
            BareRun::retried(ExecutionId(execution), class, std::time::Duration::ZERO)
        };
        let answer = (CandidateId(9), run.step("send"), Ok(true));
        let (candidate, step, answer) = answer;
        let pending = [
            entered(run.returned(WRITE, Draft), None),
            entered(retried(2), None),
            entered(retried(3), None),
            entered(run.returned(ExecutionId(3), Draft), None),
            entered(Batch::Answered { candidate, step, answer }, None),
            PendingKind::Derived(Logged { by: None, first: crate::id::Seq(1), count: 1 }),
        ];
        let answered = PendingAnswers::by(pending.iter());
        assert!([1, 2, 3].into_iter().all(|execution| answered.has(ExecutionId(execution))));
        assert!(!answered.has(ExecutionId(4)));
        assert_eq!(answered.retried.into_iter().collect::<Vec<_>>(), [ExecutionId(2)]);
        assert_eq!(answered.questions.into_iter().collect::<Vec<_>>(), [CandidateId(9)]);
    }

    #[test]
    fn only_a_batch_of_an_execution_or_a_sender_can_fail_alone() {
        let run = BareRun::new();
        let (done, _hears) = tokio::sync::oneshot::channel();
        assert!(entered(run.returned(WRITE, Draft), None).can_fail_alone());
        assert!(entered(run.received(), Some(done)).can_fail_alone());
        assert!(!entered(run.received(), None).can_fail_alone());
        assert!(!entered(Batch::Stopped(Stop::Cancelled), None).can_fail_alone());
    }
}
