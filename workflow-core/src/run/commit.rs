//! The committer: the only way into a live run's log, and from there to the store and to its observers.
//!
//! `commit` applies a batch and queues its records. `advance` does so for entries that follow without a
//! batch, such as gathers. The committer knows nothing of futures in flight, permits or alarms.
//!
//! ```text
//!            ┌─▶ RunState ─▶ log
//! batch ─────┤
//!            └─▶ records ─▶ Journal ─▶ store ── written ─▶ pending batches up to there:
//!                                                          answer the sender, tell observers and viewers
//! ```
//!
//! # Invariants
//! - `pending` has every journaled batch that the store does not have, oldest first, and between them the
//!   questions about the state that wait for the store.
//! - A sender gets `Ok`, and observers see an event, only once the store has the batch (S38). Without a
//!   journal that is at once.
//! - If the store fails, `retract` takes the pending batches out of the log again: the run ends before them.
//!
//! # Example
//! A client sends `Begin` to a run with a store, and `write` takes it:
//!
//! ```text
//! commit(Received Begin, done)    log: 1 Begin   pending: Begin   effect: write, waits for the store
//! write                           one `append` is under way
//! poll_answer -> Written          pending: -     done <- Ok       observers: EventLogged Begin
//!                                                                 effect: write may begin
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::RunShared;
use super::check::ReplayCheck;
use super::clean_up::incomplete;
use super::clock::RunClock;
use super::host::Host;
use super::journal::{Answer, Journal, RunEnd};
use super::pending::{Logged, PendingBatch, PendingKind};
use super::records::{BatchFacts, logged, origin_of_end};
use super::state::{Applied, Batch, EffectKind, RunState, Stop};
use super::state_box::StateBox;
use super::telemetry::Telemetry;
use super::view::quality;
use crate::event::AnyEvent;
use crate::id::{ExecutionId, RunStatus, Seq};
use crate::observe::Observed;
use crate::outcome::{RunError, SendError};
use crate::scheduler::{CleanUp, End, ExecutionStart, LoggedBatch};
use crate::store::{JOURNAL_FORMAT, Position, Record, StoreError, WaitingFor};
use crate::table::EventIndex;

/// The channel that answers the sender of a batch.
pub(super) type CommitReply = oneshot::Sender<Result<(), SendError>>;

/// The state of a run, with everything that must learn of each batch.
pub(super) struct Committer {
    /// The part that handles and executions share: status, observers, display.
    pub(super) shared: Arc<RunShared>,
    /// Changed by batches and by `advance` only.
    pub(super) state: StateBox,
    /// The way to the store. `None` without a store, and once the run is detached.
    pub(super) journal: Option<Box<Journal>>,
    /// Batches and questions that wait for the store, oldest first.
    pub(super) pending: VecDeque<PendingBatch>,
    /// Reports to observers, viewers and metrics, and has the replay check.
    pub(super) telemetry: Telemetry,
    /// The time of the run, which the driver moves on once per turn and completion.
    pub(super) clock: RunClock,
}

impl Committer {
    /// A committer without a journal.
    pub(super) fn new(
        shared: Arc<RunShared>,
        state: StateBox,
        telemetry: Telemetry,
        clock: RunClock,
    ) -> Self {
        Self { shared, state, journal: None, pending: VecDeque::new(), telemetry, clock }
    }

    /// Sends batches to this journal from here on. Its writes name the run's engine as owner.
    pub(super) fn keep_journal(&mut self, journal: Option<Journal>) {
        self.journal = journal.map(|journal| Box::new(journal.owned_by(self.shared.owner())));
    }

    /// Notes where the stop event is, of a journal that lacks only the end of its run.
    pub(super) fn note_stop(&mut self, records: &[Record]) {
        if let (Some(journal), Some(End::Completed(stop))) = (&mut self.journal, self.state.end()) {
            let is_stop = |record: &Record| matches!(record, Record::EventLogged { seq, .. } if seq == stop);
            if let Some(before) = records.iter().rposition(is_stop) {
                journal.note_stop(Position::default().after(before));
            }
        }
    }

    /// Starts the replay check if the engine has it on. `records` are those that the journal already has.
    pub(super) fn check_replay(&mut self, host: &Arc<Host>, records: &[Record]) {
        let Some(failures) = self.shared.common.replay_check.as_ref() else { return };
        let mut check = ReplayCheck::new(host, self.clock.began_at, failures);
        if !records.is_empty() {
            check.resume(records);
        }
        self.telemetry.check = Some(check);
    }

    /// Applies a batch and queues its records. Returns the execution that may begin directly, if nothing else
    /// follows. With a journal that execution becomes an effect instead.
    ///
    /// `done` gets `Ok` once the store has the batch, and [`SendError::Refused`] if the store refuses its
    /// content. If the state refuses the batch or the store fails, `commit` drops `done`: the sender then
    /// waits for the end of the run.
    ///
    /// The order: facts for the records are noted before the batch is applied, since the state may drop them with
    /// it. Records are queued before the batch becomes pending, so that the end of the journal is known. The caller has
    /// completed what follows from earlier batches, so their derived records come first.
    #[inline]
    pub(super) fn commit(&mut self, batch: Batch, done: Option<CommitReply>) -> Option<ExecutionStart> {
        let noted = self.noted(&batch);
        // Applied again if the store refuses an earlier batch. Only with a journal.
        let replayable = self.journal.is_some().then(|| batch.clone());
        let by = batch.succeeded_execution();
        let applied = self.state.apply(batch, self.clock.now);
        if let Some(noted) = noted {
            self.journal(*noted, &applied);
        }
        match applied {
            Applied::Logged(entered) => self.on_logged(by, &entered, replayable, done),
            Applied::WithoutEvent => {
                self.note_pending(replayable, done);
                None
            }
            // Without an answer the sender waits for the end of the run, which the store may not have yet.
            Applied::Refused => None,
        }
    }

    /// The facts for a batch's records that only the state before the batch has. Boxed: a run without journal
    /// and replay check needs no room for them.
    #[inline]
    fn noted(&self, batch: &Batch) -> Option<Box<BatchFacts>> {
        let is_noted = self.journal.is_some() || self.telemetry.check.is_some();
        is_noted.then(|| Box::new(BatchFacts::of(batch, &self.state, &self.clock)))
    }

    /// Queues the records of an applied batch. The end of the run goes with the batch that completes it.
    #[inline(never)]
    fn journal(&mut self, noted: BatchFacts, applied: &Applied) {
        let noted_at = noted.at();
        // The awaited children that are open end with the run, in the same write as its stop event.
        let cancelled =
            if let Applied::Logged(_) = applied { self.state.cancel_children() } else { Vec::new() };
        let records = noted.records(applied, cancelled, &self.state);
        self.telemetry.journaled(&records);
        if matches!(records.first(), Some(Record::ChildrenEnded { .. })) {
            self.note_listed();
        }
        if let Some(journal) = &mut self.journal {
            // The records of such a batch end with `RunEnded`, in one write with the stop event: no store has
            // the one alone.
            if let Some(End::Completed(stop)) = self.state.end()
                && !journal.has_ended()
            {
                let quality = quality(RunStatus::Completed, &self.state, &self.shared);
                let is_stop =
                    |record: &Record| matches!(record, Record::EventLogged { seq, .. } if seq == stop);
                let (status, at, stop) = (RunStatus::Completed, noted_at, records.iter().position(is_stop));
                let incomplete = Vec::new();
                journal.queue_end(records, RunEnd { status, at, quality, stop, incomplete });
            } else if matches!(records.first(), Some(Record::CleanUpStarted { .. })) {
                journal.queue_clean_up(records);
            } else if !records.is_empty() {
                journal.queue(records);
            }
        }
    }

    /// Reports a batch that is in the log, or keeps it pending until the store has it.
    #[inline]
    fn on_logged(
        &mut self,
        by: Option<ExecutionId>,
        entered: &LoggedBatch,
        replayable: Option<Batch>,
        done: Option<CommitReply>,
    ) -> Option<ExecutionStart> {
        let Some(batch) = replayable else {
            // No journal: the batch is in the log for good now.
            self.announce(by, entered.events().iter().map(|entry| (entry.seq, entry.event)));
            notify(done);
            return entered.next();
        };
        let first = entered.events().first().map_or(Seq(0), |entry| entry.seq);
        let logged = Some(Logged { by, first, count: entered.events().len() as u64 });
        let what = PendingKind::Batch { batch, logged, done, shown: None };
        self.pending.push_back(PendingBatch { end: self.state.position(), what });
        self.follow(entered.next());
        None
    }

    /// Queues an execution to begin once the store has the batch that it follows from.
    pub(super) fn follow(&mut self, next: Option<ExecutionStart>) {
        if let Some(start) = next {
            self.state.queue_effect(EffectKind::Execution(start));
        }
    }

    /// Tells observers and viewers of events that are in the log for good.
    #[inline]
    fn announce(&mut self, by: Option<ExecutionId>, events: impl Iterator<Item = (Seq, EventIndex)>) {
        if let Some(execution) = by {
            self.telemetry.succeeded(&self.shared, &self.state, execution);
        }
        for (seq, event) in events {
            self.telemetry.logged(&self.shared, &self.state, seq, event);
        }
    }

    /// Tells observers and viewers of a pending batch that the store now has.
    fn announce_logged(&mut self, logged: &Logged) {
        let events: SmallVec<[_; 4]> = self.state.log.indexes(logged.first, logged.count).collect();
        self.announce(logged.by, events.into_iter());
    }

    /// Completes the consequences of the batches so far, in at most `work` units, and journals the entries
    /// that followed by themselves. Returns whether all of it is complete. Dropped executions stay in the
    /// state for the driver.
    pub(super) fn advance(&mut self, work: &mut usize) -> bool {
        let is_complete = self.state.advance(work);
        while let Some(seq) = self.state.take_derived() {
            self.derived(seq);
        }
        is_complete
    }

    /// Journals an entry that followed by itself, as a batch of its own. Its position is known from the log, and its
    /// place in the journal is behind the batch that it follows from.
    pub(super) fn derived(&mut self, seq: Seq) {
        let Some(record) = self.state.log.get(seq) else { return };
        let (event, at) = (record.index, self.clock.began_at + record.at);
        if self.telemetry.check.is_some() {
            self.telemetry.journaled(logged(seq, &self.state, at).as_slice());
        }
        let Some(journal) = &mut self.journal else {
            return self.announce(None, std::iter::once((seq, event)));
        };
        journal.queue(logged(seq, &self.state, at));
        let what = PendingKind::Derived(Logged { by: None, first: seq, count: 1 });
        self.pending.push_back(PendingBatch { end: journal.end(), what });
    }

    /// Records events that an execution returned after the run had ended (S28). No log has them. An execution that
    /// returned none is dropped with the others, as its journal has it.
    pub(super) fn record_late_events<'a>(
        &mut self,
        execution: ExecutionId,
        events: impl Iterator<Item = &'a AnyEvent>,
    ) {
        let Some(step) = self.state.step_of(execution) else { return };
        let events: Vec<Arc<str>> = events.map(|event| event.name().into()).collect();
        if events.is_empty() {
            return;
        }
        self.state.note_late(execution);
        self.state.trace.refused((execution, step), self.clock.now, &events);
        self.telemetry.refused(&self.shared, &self.state, execution, events);
    }

    /// Records that the run waits, for listings, handles and observers. Nothing waits for this record to be
    /// written.
    pub(super) fn record_waiting(&mut self) {
        if let Some(journal) = &mut self.journal {
            // The state counts the record by `skip`, so that later batches have the right positions.
            let (waits_for, at) = (waits_for(&self.state), self.clock.stamp());
            let record = Record::RunWaiting { waits_for: waits_for.clone(), at };
            journal.queue_wait(record, waits_for, self.state.table().recorded());
            self.state.skip(1);
        }
        self.shared.status.set(RunStatus::Waiting);
        self.shared.tell(|| Observed::RunWaiting);
    }

    /// Records that nothing runs in the paused run, for listings, handles and observers.
    pub(super) fn record_rest(&mut self) {
        if let Some(journal) = &mut self.journal {
            let (waits_for, at) = (waits_for(&self.state), self.clock.stamp());
            journal.queue_rest(Record::RunWaiting { waits_for, at });
            self.state.skip(1);
        }
        self.state.note_rest(self.clock.now);
        self.shared.status.set(RunStatus::Paused);
        self.shared.tell(|| Observed::RunPaused);
    }

    /// Lets the next write list a run that waits, or rests in its pause, as one, also where it was loaded again and has not
    /// written since.
    pub(super) fn note_listed(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        match self.shared.status() {
            RunStatus::Waiting => journal.list_waiting(waits_for(&self.state), self.state.table().recorded()),
            RunStatus::Paused => journal.list_paused(),
            _ => (),
        }
    }

    /// Sets a waiting or paused run to running. Returns whether it was one.
    #[inline]
    pub(super) fn note_running(&mut self) -> bool {
        let waited = matches!(self.shared.status(), RunStatus::Waiting | RunStatus::Paused);
        if waited {
            self.telemetry.meter.runs();
            self.shared.status.set(RunStatus::Running);
            if let Some(journal) = &mut self.journal {
                journal.note_running_again();
            }
        }
        waited
    }

    /// Starts a write of queued batches, unless one is under way.
    pub(super) fn write(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.write(&self.shared.id);
        }
    }

    /// The store's answer to the write that is under way, if it is there. Answers the senders of the batches
    /// that the store now has.
    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Option<Answer> {
        let Poll::Ready(answer) = self.journal.as_deref_mut()?.poll_written(cx) else { return None };
        // Any other answer leaves the batches pending: a rewind or the end of the run takes them.
        if let Some(Answer::Written) = answer {
            self.persisted();
        }
        answer
    }

    /// Announces a run whose journal was here before this engine, unless it was announced before. One that was queued
    /// begins only now.
    pub(super) fn announce_taken_up(&mut self) {
        let is_queued = self.journal.as_deref().is_some_and(Journal::is_queued);
        if self.shared.announce_taken_up(is_queued) {
            self.telemetry.open(&self.shared, is_queued);
        }
    }

    /// Reports the pending batches that the store now has.
    fn persisted(&mut self) {
        let Some(journal) = self.journal.as_deref() else { return };
        let written = journal.written();
        // Announced here and not at the start: until the store has the first write, another process may own
        // the run.
        if journal.resumes() {
            self.announce_taken_up();
        } else if !self.shared.has_begun() {
            self.shared.begin();
            self.telemetry.open(&self.shared, true);
        }
        while let Some(PendingBatch { what, .. }) = self.pending.pop_front_if(|batch| batch.end <= written) {
            let (logged, done) = match what {
                PendingKind::Question(asked) => {
                    asked(true);
                    continue;
                }
                PendingKind::Batch { batch, logged, done, .. } => {
                    if matches!(batch, Batch::Unpaused { .. }) && !self.state.is_paused() {
                        self.shared.tell(|| Observed::RunUnpaused);
                    }
                    if matches!(&batch, Batch::CleanUpStarted(start) if start.status == RunStatus::Cancelled)
                    {
                        self.shared.signals.keep_cancel();
                    }
                    (logged, done)
                }
                PendingKind::Derived(logged) => (Some(logged), None),
            };
            if let Some(logged) = logged {
                self.announce_logged(&logged);
            }
            notify(done);
        }
    }

    /// Takes the pending batches out of the log, because the store did not take them, and stops the run.
    ///
    /// The caller has completed what follows from the batches and has failed the journal, so nothing is queued behind.
    /// Senders of the batches learn of the failure from the end of the run: their `done` is dropped. Questions are
    /// dropped too, and their senders ask the ended run.
    pub(super) fn retract(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let mut refused = Vec::new();
        let mut from = None;
        // `CleanUpStarted` has the origin of a cancel, and without clean-up `RunEnded`, which comes last.
        let mut cancel_is_written = self.state.scheduler.clean_up().is_some_and(CleanUp::has_begun);
        for PendingBatch { what, .. } in pending {
            if matches!(&what, PendingKind::Batch { batch: Batch::CleanUpStarted(_), .. }) {
                cancel_is_written = false;
            }
            if let PendingKind::Batch { batch, .. } = &what
                && let Some(origin) = batch.origin_of_pause()
            {
                self.state.forget_act(origin);
            }
            if let PendingKind::Batch { batch: Batch::ChildrenEnded(ended), .. } = &what
                && let Some(registry) = self.shared.children.get()
            {
                registry.forget_ends(ended);
            }
            let Some(logged) = what.logged() else { continue };
            // Pending batches are in order, so the first event is the earliest.
            from = from.or((logged.count > 0).then_some(logged.first));
            if let Some(execution) = logged.by {
                let events = logged.seqs();
                let events =
                    events.filter_map(|seq| self.state.log.get(seq)).map(|record| record.event.clone());
                refused.push((execution, events.collect::<Vec<AnyEvent>>()));
            }
        }
        if !cancel_is_written {
            self.state.forget_cancel();
        }
        // The events were copied above, since the log drops them here.
        self.state.retract(from, refused.iter().map(|(execution, _)| *execution));
        for (execution, events) in &refused {
            self.record_late_events(*execution, events.iter());
        }
        // Refused if a pending batch had ended the run; the driver reports the failed journal instead of that
        // end.
        let _ = self.state.apply(Batch::Stopped(Stop::JournalFailed), self.clock.now);
    }

    /// The run leaves its journal as it is, without the cancel unless that has its clean-up.
    pub(super) fn forget_unwritten_cancel(&mut self) {
        if !self.state.scheduler.clean_up().is_some_and(CleanUp::has_begun) {
            self.state.forget_cancel();
        }
    }

    /// Queues `RunResumed`, which fences off an earlier process before anything begins (S40), and the entries
    /// that the journal lacks.
    pub(super) fn queue_resumed(&mut self, derived: impl IntoIterator<Item = Seq>) {
        let Some(journal) = &mut self.journal else { return };
        // `RunResumed` comes first, so that a conflict shows before any other record of this process.
        let (table, configs, at) = (journal.take_table(), journal.take_layers(), self.clock.stamp());
        // Of tables that give the same keys either way, the journal says nothing.
        let stable_keys = table.is_some() && self.state.lives.has_keys();
        let resumed = Record::RunResumed { format: JOURNAL_FORMAT, table, stable_keys, configs, at };
        self.telemetry.journaled(std::slice::from_ref(&resumed));
        journal.queue([resumed]);
        for seq in derived {
            self.derived(seq);
        }
        // Effects wait for the end with all of these records.
        if let Some(journal) = self.journal.as_deref() {
            self.state.restart(journal.end(), self.clock.now);
        }
    }

    /// Queues `RunKept`: nothing of the run begins, because its inbox is away.
    pub(super) fn queue_kept(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        journal.queue([Record::RunKept { at: self.clock.stamp() }]);
        self.state.skip(1);
    }

    /// Queues `RunDetached`: the run is left to another process, and drops these executions.
    pub(super) fn queue_detached(&mut self, dropped: Vec<ExecutionId>) {
        let Some(journal) = &mut self.journal else { return };
        self.state.lives.detach(&dropped);
        let detached = Record::RunDetached { dropped, at: self.clock.stamp() };
        self.telemetry.journaled(std::slice::from_ref(&detached));
        journal.queue([detached]);
        self.state.skip(1);
    }

    /// Queues the record of how the run ended. Step and error are those of a failed precondition, or the
    /// reason of a cancel.
    pub(super) fn queue_end(&mut self, (step, error): (Option<Arc<str>>, Option<String>)) {
        let status = self.state.end().map(RunStatus::from);
        if let (Some(status), Some(journal)) = (status, &mut self.journal) {
            let (at, quality) = (self.clock.stamp(), quality(status, &self.state, &self.shared));
            let end = RunEnd { status, at, quality, stop: None, incomplete: incomplete(&self.state) };
            let origin = origin_of_end(&self.state);
            let deadline = self.state.passed_deadline();
            journal.queue_end([Record::RunEnded { status, error, step, deadline, origin, at }], end);
            self.state.skip(1);
        }
    }

    /// Whether no more can be written: the store has everything, or the journal has failed.
    pub(super) fn is_written_out(&self) -> bool {
        self.journal.as_deref().is_none_or(|journal| journal.is_written() || journal.failure().is_some())
    }

    /// The error that kept the run from being written, if the journal failed.
    pub(super) fn journal_error(&self) -> Option<RunError> {
        let error = self.journal.as_ref()?.failure()?.clone();
        Some(match error {
            StoreError::Conflict { .. } => RunError::Conflict { run: self.shared.id.clone() },
            source => RunError::Store { source },
        })
    }

    /// Whether the run begins nothing more, because it is to be detached now or soon.
    pub(super) fn begins_nothing(&self) -> bool {
        self.journal.is_some() && self.shared.begins_nothing()
    }

    /// Whether the run is to be detached. A run without a journal is not: nothing could resume it.
    pub(super) fn is_detaching(&self) -> bool {
        self.journal.is_some() && self.shared.is_to_detach()
    }
}

/// Tells the sender of a batch, if one still listens, that the batch is in the log for good.
pub(super) fn notify(done: Option<CommitReply>) {
    if let Some(done) = done {
        let _ = done.send(Ok(()));
    }
}

/// The events, replies and timers that a run waits for, for listings of the store.
fn waits_for(state: &RunState) -> WaitingFor {
    let (table, scheduler) = (state.table(), &state.scheduler);
    let name = |event| Arc::clone(&table.event(event).name);
    let requests = scheduler.open_requests().take(WaitingFor::MOST_NAMED);
    WaitingFor {
        requests: requests.map(|(_, request)| name(request)).collect(),
        open_requests: scheduler.open_requests().len() as u64,
        events: scheduler.awaited_events().into_iter().map(name).collect(),
        until: state.timers.pending(scheduler).map(|(due, _)| due).next(),
    }
}

#[cfg(test)]
mod tests;
