//! The one way into a run's log while it is driven: a batch enters the state and its records the journal. Its sender is
//! notified once the store has it (S38).

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::RunStatus;
use super::drive::Run;
use super::in_flight::StepResult;
use super::journal::{Answer, Journal};
use super::pending::{Logged, PendingBatch, PendingWhat};
use super::records::{Noted, logged};
use super::returned::Shown;
use super::state::{Applied, Batch, Begins, Returned, Stop};
use crate::error::{RunError, SendError, StepError};
use crate::event::AnyEvent;
use crate::id::{ExecutionId, Seq};
use crate::retry::{FailedAttempt, NotRetried};
use crate::scheduler::{End, Entered, ExecutionStart};
use crate::store::{JOURNAL_FORMAT, Position, Record, StoreError, WaitingFor};
use crate::table::{EventIndex, StepIndex};

use smallvec::SmallVec;

/// Notifies the sender of a batch.
pub(super) type Done = oneshot::Sender<Result<(), SendError>>;

impl Run {
    /// Takes a batch in: the execution that follows next, if that is all that follows. Who sent the batch is notified once
    /// the store has it, and hears how the run ended if it is refused.
    pub(super) fn commit(&mut self, batch: Batch, done: Option<Done>) -> Option<ExecutionStart> {
        self.advance(&mut usize::MAX.clone());
        self.telemetry.compare(&self.state);
        let noted = self.noted(&batch);
        let again = self.journal.is_some().then(|| batch.clone());
        let by = batch.left_by();
        if !matches!(batch, Batch::Stopped(_)) {
            self.wake();
        }
        let applied = self.state.apply(batch, self.clock.now);
        if let Some(noted) = noted {
            self.journal(*noted, &applied);
        }
        match applied {
            Applied::Entered(entered) => self.entered(by, &entered, again, done),
            Applied::Noted => {
                self.note_pending(again);
                None
            }
            // Without an answer the sender waits for the end of the run, which may not be written yet.
            Applied::Refused => None,
        }
    }

    /// What the journal, or what checks it, is to have of a batch that is about to be applied. Boxed: runs without both
    /// have no room for it.
    #[inline]
    fn noted(&self, batch: &Batch) -> Option<Box<Noted>> {
        let is_noted = self.journal.is_some() || self.telemetry.check.is_some();
        is_noted.then(|| Box::new(Noted::of(batch, &self.state, &self.clock)))
    }

    /// The records of a batch enter the journal.
    #[inline(never)]
    fn journal(&mut self, noted: Noted, applied: &Applied) {
        let records = noted.records(applied, &self.state);
        if let Some(check) = &mut self.telemetry.check {
            check.take(&records);
        }
        if let Some(journal) = &mut self.journal {
            if matches!(self.state.end(), Some(End::Completed(_))) && !journal.has_ended() {
                journal.queue_end(records, RunStatus::Completed);
            } else if !records.is_empty() {
                journal.queue(records);
            }
        }
    }

    /// A batch is in the state.
    fn entered(
        &mut self,
        by: Option<ExecutionId>,
        entered: &Entered,
        again: Option<Batch>,
        done: Option<Done>,
    ) -> Option<ExecutionStart> {
        let Some(batch) = again else {
            self.announce(by, entered.events().iter().map(|entry| (entry.seq, entry.event)));
            if let Some(done) = done {
                let _ = done.send(Ok(()));
            }
            return entered.next();
        };
        let first = entered.events().first().map_or(Seq(0), |entry| entry.seq);
        let logged = Some(Logged { by, first, count: entered.events().len() as u64 });
        let what = PendingWhat::Entered { batch, logged, done, shown: None };
        self.pending.push_back(PendingBatch { end: self.state.position(), what });
        self.follow(entered.next());
        None
    }

    /// An execution follows, once the store has what it follows from.
    pub(super) fn follow(&mut self, next: Option<ExecutionStart>) {
        if let Some(start) = next {
            self.state.defer(Begins::Execution(start));
        }
    }

    /// Tells observers and viewers what is in the log for good.
    fn announce(&mut self, by: Option<ExecutionId>, events: impl Iterator<Item = (Seq, EventIndex)>) {
        if let Some(execution) = by {
            self.telemetry.succeeded(&self.shared, &self.state, execution);
        }
        for (seq, event) in events {
            self.telemetry.logged(&self.shared, &self.state, seq, event);
        }
    }

    fn announce_logged(&mut self, logged: &Logged) {
        let events: SmallVec<[_; 4]> = self.state.log.indexes(logged.first, logged.count).collect();
        self.announce(logged.by, events.into_iter());
    }

    /// Completes what follows from the batches so far, within so many units of work, and sees to what came of it: entries
    /// that followed by themselves, and what was dropped. Says whether it is complete.
    #[inline]
    pub(super) fn advance(&mut self, work: &mut usize) -> bool {
        self.state.scheduler.is_settled() || self.advance_on(work)
    }

    #[inline(never)]
    fn advance_on(&mut self, work: &mut usize) -> bool {
        let is_complete = self.state.advance(work);
        while let Some(seq) = self.state.take_derived() {
            self.derived(seq);
        }
        if let Some(dropped) = self.state.take_dropped() {
            let unbegun = self.unbegun();
            for execution in dropped {
                self.drop_execution(execution, &unbegun);
            }
            let scheduler = &self.state.scheduler;
            self.executor.drop_questions(|candidate| scheduler.asked(candidate).is_some());
        }
        is_complete
    }

    /// An entry followed by itself: it is a batch of its own.
    pub(super) fn derived(&mut self, seq: Seq) {
        let Some(record) = self.state.log.get(seq) else { return };
        let (event, at) = (record.index, self.clock.began_at + record.at);
        if let Some(check) = &mut self.telemetry.check {
            check.take(logged(seq, &self.state, at).as_slice());
        }
        let Some(journal) = &mut self.journal else {
            return self.announce(None, std::iter::once((seq, event)));
        };
        journal.queue(logged(seq, &self.state, at));
        let what = PendingWhat::Derived(Logged { by: None, first: seq, count: 1 });
        self.pending.push_back(PendingBatch { end: journal.end(), what });
    }

    /// An execution has returned, or failed: the execution that follows next, if that is all that follows.
    pub(super) fn executed(&mut self, execution: ExecutionId, result: StepResult) -> Option<ExecutionStart> {
        // What was dropped while its result waited has nothing to say any more.
        let running = self.state.scheduler.executions().get(execution).filter(|it| it.is_running());
        let step = running?.step;
        match result.and_then(|emitted| self.returned(step, emitted)) {
            Ok((returned, shown)) => self.commit_returned(execution, returned, shown),
            Err(error) => {
                let error = self.host.rules().classified(error);
                self.attempt_failed(execution, step, error);
                None
            }
        }
    }

    fn commit_returned(
        &mut self,
        execution: ExecutionId,
        returned: Returned,
        shown: Shown,
    ) -> Option<ExecutionStart> {
        if self.state.end().is_some() {
            let timers = returned.timers().iter().map(|timer| &timer.event);
            self.refuse(execution, returned.events().iter().chain(timers));
            return None;
        }
        if !returned.timers().is_empty() {
            self.alarms.sets_timers();
        }
        let next = self.commit(Batch::Succeeded { execution, returned }, None);
        if let Some(shown) = shown {
            self.note_shown(execution, shown);
        }
        next
    }

    /// S28. An execution that returned nothing had nothing to be refused.
    pub(super) fn refuse<'a>(&mut self, execution: ExecutionId, events: impl Iterator<Item = &'a AnyEvent>) {
        let Some(step) = self.state.step_of(execution) else { return };
        let events: Vec<&'static str> = events.map(AnyEvent::name).collect();
        self.state.trace.refused((execution, step), self.clock.now, &events);
        if events.is_empty() {
            self.telemetry.succeeded(&self.shared, &self.state, execution);
        } else {
            self.telemetry.refused(&self.shared, &self.state, execution, events);
        }
    }

    /// A failed attempt is followed by another (S35), or the execution fails.
    pub(super) fn attempt_failed(&mut self, execution: ExecutionId, step: StepIndex, error: StepError) {
        match self.decide_retry(execution, step, error.class()) {
            Ok(retry_in) => {
                let too_large =
                    error.class() == crate::error::ErrorClass::ContextLimit || error.is_of_compaction();
                let compacts = too_large && self.host.compacts(step.get());
                let failed =
                    FailedAttempt { class: error.class(), error: error.to_string(), retry_in, compacts };
                self.telemetry.retries(&self.shared, &self.state, execution, (&error, &failed));
                self.record_children();
                let _ = self.commit(Batch::Retried { execution, failed }, None);
                self.wait_for_retry(execution, retry_in);
            }
            Err(not_retried) => self.failed(execution, error, not_retried),
        }
    }

    fn failed(&mut self, execution: ExecutionId, error: StepError, not_retried: NotRetried) {
        self.record_children();
        let took = self.state.trace.elapsed(execution, self.clock.now);
        self.telemetry.failed(&self.shared, &self.state, execution, (&error, not_retried, took));
        let next = self.commit(Batch::Failed { execution, error, not_retried }, None);
        self.follow(next);
    }

    /// Records that the run waits, for listings of the store. Nothing waits for this record.
    pub(super) fn record_wait(&mut self) {
        if self.journal.is_none() {
            return;
        }
        let (waits_for, at) = (self.waits_for(), self.clock.stamp());
        let Some(journal) = &mut self.journal else { return };
        journal.queue_wait(Record::RunWaiting { waits_for: waits_for.clone(), at }, waits_for);
        self.state.skip(1);
    }

    fn waits_for(&self) -> WaitingFor {
        let (table, scheduler) = (self.state.table(), &self.state.scheduler);
        let name = |event| Arc::clone(&table.event(event).name);
        let requests = scheduler.open_requests().take(WaitingFor::MOST_NAMED);
        WaitingFor {
            requests: requests.map(|(_, request)| name(request)).collect(),
            open_requests: scheduler.open_requests().len() as u64,
            events: scheduler.awaited_events().into_iter().map(name).collect(),
            until: self.state.timers.pending(scheduler).map(|(due, _)| due).next(),
        }
    }

    /// Something is to enter the journal of a run that may wait.
    fn wake(&mut self) {
        if self.shared.status() == RunStatus::Waiting {
            self.telemetry.meter.runs();
            self.shared.status.set(RunStatus::Running);
            if let Some(journal) = &mut self.journal {
                journal.note_going_on();
            }
            self.count_time();
        }
    }

    /// Goes on with the journal, once nothing else is left to do or there was enough of it; whether something came of
    /// it.
    pub(super) fn poll_journal(&mut self, cx: &mut Context<'_>) -> bool {
        self.record_children();
        let Some(journal) = &mut self.journal else { return false };
        journal.write(&self.shared.id);
        self.poll_writing(cx)
    }

    /// Takes in what the store has answered.
    pub(super) fn poll_writing(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(journal) = &mut self.journal else { return false };
        let Poll::Ready(Some(answer)) = journal.poll_written(cx) else { return false };
        match answer {
            Answer::Written => self.persisted(),
            Answer::Repeats => {}
            Answer::Refused { records, why } => self.refused(records, why),
            Answer::Failed => self.unkept(),
        }
        true
    }

    /// The store has more of the journal than before.
    fn persisted(&mut self) {
        let Some(written) = self.journal.as_deref().map(Journal::written) else { return };
        if self.journal.as_deref().is_some_and(Journal::resumes) {
            self.shared.goes_on();
        } else if !self.shared.has_begun() {
            self.shared.begin();
        }
        while self.pending.front().is_some_and(|batch| batch.end <= written) {
            let Some(PendingBatch { what, .. }) = self.pending.pop_front() else { return };
            let done = match what {
                PendingWhat::Asked(asked) => {
                    asked.answer();
                    continue;
                }
                PendingWhat::Entered { logged: None, .. } => continue,
                PendingWhat::Entered { logged: Some(logged), done, .. } => {
                    self.announce_logged(&logged);
                    done
                }
                PendingWhat::Derived(logged) => {
                    self.announce_logged(&logged);
                    None
                }
            };
            if let Some(done) = done {
                let _ = done.send(Ok(()));
            }
        }
    }

    /// The store did not take what it was given: the run stops here. What it did not take is in no log.
    pub(super) fn unkept(&mut self) {
        // From here on the run and its journal differ.
        self.telemetry.check = None;
        // Nothing is evaluated by what is taken back.
        self.advance(&mut usize::MAX.clone());
        let pending = std::mem::take(&mut self.pending);
        let mut refused = Vec::new();
        let mut from = None;
        for PendingBatch { what, .. } in pending {
            let Some(logged) = what.logged() else { continue };
            from = from.or((logged.count > 0).then_some(logged.first));
            if let Some(execution) = logged.by {
                let events = logged.seqs();
                let events =
                    events.filter_map(|seq| self.state.log.get(seq)).map(|record| record.event.clone());
                refused.push((execution, events.collect::<Vec<AnyEvent>>()));
            }
        }
        self.state.retract(from, refused.iter().map(|(execution, _)| *execution));
        for (execution, events) in &refused {
            self.refuse(*execution, events.iter());
        }
        let _ = self.state.apply(Batch::Stopped(Stop::Unkept), self.clock.now);
    }

    /// Writes that the run goes on here, before anything else is done (S40), and what its journal lacks.
    pub(super) async fn claim(&mut self, derived: impl IntoIterator<Item = Seq>) {
        let at = self.clock.stamp();
        if let Some(journal) = &mut self.journal {
            let table = journal.take_table();
            let resumed = Record::RunResumed { format: JOURNAL_FORMAT, table, at };
            if let Some(check) = &mut self.telemetry.check {
                check.take(std::slice::from_ref(&resumed));
            }
            journal.queue([resumed]);
            for seq in derived {
                self.derived(seq);
            }
            let end = self.journal.as_deref().map_or(Position(0), Journal::end);
            self.state.restart(end, self.clock.now);
            std::future::poll_fn(|cx| self.poll_written_out(cx)).await;
        }
        if self.journal_error().is_none() {
            self.shared.goes_on();
        }
    }

    /// Writes what is left, and how the run ended.
    pub(super) async fn close_journal(&mut self) {
        self.record_children();
        std::future::poll_fn(|cx| self.poll_written_out(cx)).await;
        let (at, (step, error)) = (self.clock.stamp(), self.why_ended());
        let status = self.state.end().map(RunStatus::from);
        if let (Some(status), Some(journal)) = (status, &mut self.journal) {
            journal.queue_end([Record::RunEnded { status, error, step, at }], status);
            self.state.skip(1);
        }
        std::future::poll_fn(|cx| self.poll_written_out(cx)).await;
    }

    fn poll_written_out(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(journal) = &mut self.journal else { return Poll::Ready(()) };
            journal.write(&self.shared.id);
            if journal.is_written() || journal.failure().is_some() {
                return Poll::Ready(());
            }
            if !self.poll_writing(cx) {
                return Poll::Pending;
            }
        }
    }

    /// Whether nothing more of a run that has ended is to be written before it stops.
    pub(super) fn journal_is_done(&self) -> bool {
        self.journal.as_deref().is_none_or(|journal| journal.is_written() || journal.failure().is_some())
    }

    /// What kept the run from being written, if anything did.
    pub(super) fn journal_error(&self) -> Option<RunError> {
        let error = self.journal.as_ref()?.failure()?.clone();
        Some(match error {
            StoreError::Conflict { .. } => RunError::Conflict { run: self.shared.id.clone() },
            source => RunError::Store { source },
        })
    }
}
