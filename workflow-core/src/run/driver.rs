//! The driver of a run: the only part that sees all others.
//!
//! The driver performs the effects of the state, and turns completions and commands into batches.
//!
//! ```text
//!  handles ─ mailbox ─┐                          ┌─▶ journal ─ store
//!  timers ─ alarms ───┼─▶ batch ─▶ RunState ─────┤
//!  steps ── executor ─┘  (Committer)  │          └─▶ telemetry, senders  (once the store has it)
//!              ▲                   effects
//!              └──── admission ◀──────┘           (once the store has what they follow from)
//! ```
//!
//! It keeps no facts of its own except the cancel reason. It is polled in slices by [`drive`](super::drive), and its
//! methods live in the files of their subjects: [`commands`](super::commands), [`execute`](super::execute), [`alarms`](super::alarms),
//! [`children`](super::children), [`pause`](super::pause) and [`rewind`](super::rewind).

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use super::admission::{Admission, Admit, TurnStage};
use super::alarms::Alarms;
use super::clean_up::AtEnd;
use super::commit::{CommitReply, Committer};
use super::drive::WORK;
use super::execute::AttemptKind;
use super::executor::Executor;
use super::host::Host;
use super::in_flight::{Completion, Due};
use super::journal::{Answer, Journal};
use super::shared::RunShared;
use super::state::{Batch, EffectKind, RunState, Stop};
use super::view::{InFlightNow, View};
use super::waiting::Deferred;
use crate::id::{ExecutionId, Origin, RunStatus, Seq};
use crate::outcome::SendError;
use crate::report::OpenRequest;
use crate::scheduler::{Cause, ExecutionStart};
use crate::store::StoreError;
use crate::text::bounded_shared;

/// The parts of a live run.
pub(super) struct Driver {
    pub(super) host: Arc<Host>,
    pub(super) executor: Executor,
    pub(super) admission: Admission,
    pub(super) alarms: Alarms,
    pub(super) committer: Committer,
    /// `None` until a cancel request ends the run, or the run cleans up.
    pub(super) at_end: Option<Box<AtEnd>>,
}

impl Driver {
    /// Applies a batch after completing the consequences of earlier ones. Returns the execution that may
    /// begin directly, if nothing else follows.
    pub(super) fn commit(&mut self, batch: Batch, done: Option<CommitReply>) -> Option<ExecutionStart> {
        self.advance(&mut usize::MAX.clone());
        self.committer.telemetry.compare(&self.committer.state);
        // Before the run is noted as running: the end of a child leaves a waiting run as it is.
        let seals = self.committer.journal.is_some() && self.record_children_before(&batch);
        let is_activity = !matches!(batch, Batch::Stopped(_) | Batch::Cancelled(_) | Batch::ChildrenEnded(_));
        if is_activity && self.committer.note_running() {
            self.count_time();
        }
        let next = self.committer.commit(batch, done);
        if seals {
            self.unseal_or_complete();
        }
        next
    }

    /// Applies a batch, and queues the execution that could begin directly.
    pub(super) fn commit_in_turn(&mut self, batch: Batch, done: Option<CommitReply>) {
        let next = self.commit(batch, done);
        self.committer.follow(next);
    }

    /// Completes the consequences of the batches so far, in at most `work` units: journals entries that
    /// follow by themselves, and drops executions and preconditions. Returns whether all of it is complete.
    #[inline]
    pub(super) fn advance(&mut self, work: &mut usize) -> bool {
        self.committer.state.scheduler.is_settled() || self.advance_on(work)
    }

    /// The rest of [`advance`](Self::advance), when the state has something to complete.
    #[inline(never)]
    fn advance_on(&mut self, work: &mut usize) -> bool {
        let is_complete = self.committer.advance(work);
        if let Some(dropped) = self.committer.state.take_dropped() {
            self.drop_children_of(&dropped);
            self.drop_executions(dropped);
            let scheduler = &self.committer.state.scheduler;
            self.executor.drop_questions(|candidate| scheduler.asked(candidate).is_some());
        }
        is_complete
    }

    /// Drops the futures of executions that the state has dropped, and reports those that had begun.
    pub(super) fn drop_executions(&mut self, executions: Vec<ExecutionId>) {
        let unbegun = self.admission.unbegun(&self.committer.state);
        let Committer { shared, state, telemetry, .. } = &mut self.committer;
        for execution in executions {
            drop_future((&mut self.admission, &mut self.executor), shared, state, execution);
            if !unbegun.contains(&execution) {
                telemetry.dropped(shared, state, execution);
            }
        }
    }

    /// Drops the future of an execution that is about to fail.
    pub(super) fn drop_future(&mut self, execution: ExecutionId) {
        let Committer { shared, state, .. } = &self.committer;
        drop_future((&mut self.admission, &mut self.executor), shared, state, execution);
    }

    /// Begins the next effect, if there is one and admission lets it begin. Returns whether one began.
    ///
    /// Deferred executions come first, oldest first, then the effects in order. An execution beyond the run's
    /// bound is deferred, and the next effect has its turn. An effect that may not begin for any other reason
    /// is put back, and stops all others behind it.
    pub(super) fn begin_next(&mut self, left: &mut usize, cx: &mut Context<'_>) -> bool {
        if self.committer.state.begins_nothing() || self.committer.state.is_paused() {
            return false;
        }
        while let Some(begins) = self.admission.next_deferred(self.executor.executing()) {
            if !self.committer.state.is_wanted(&begins) {
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
            let state = &mut self.committer.state;
            if !state.has_effects() {
                return false;
            }
            let written = self.committer.journal.as_deref().map(Journal::written);
            let Some(begins) = state.next_effect(written) else { return false };
            if matches!(begins, EffectKind::Wait) {
                self.wait();
                return true;
            }
            // Only executions count towards the run's bound. A precondition may pass deferred executions.
            let has_room = |execution| self.admission.has_room_for(execution, self.executor.executing());
            if begins.execution().is_some_and(|execution| !has_room(execution)) {
                self.admission.defer(begins);
                continue;
            }
            if self.may_begin(cx) {
                self.begin(begins, left, cx);
                return true;
            }
            self.committer.state.effects.put_back(begins);
            return false;
        }
    }

    /// Begins an admitted effect.
    pub(super) fn begin(&mut self, begins: EffectKind, left: &mut usize, cx: &mut Context<'_>) {
        self.bound_clean_up();
        match begins {
            EffectKind::Execution(start) if !self.host.has_limit(start.step) => {
                self.run_chain(start, AttemptKind::First, left, cx);
            }
            EffectKind::Execution(_) => self.begin_limited(begins, left, cx),
            EffectKind::Attempt(execution) => {
                if let Some(start) = self.committer.state.start_of(execution) {
                    self.begin_again(start, left, cx);
                }
            }
            EffectKind::Precondition(candidate) => {
                let before = self.committer.state.effects.len();
                self.ask(candidate);
                // An immediate answer takes effect where the question stood in the queue.
                if self.committer.journal.is_none() && self.advance(&mut WORK.clone()) {
                    self.committer.state.effects.rotate_front(before);
                }
            }
            EffectKind::Wait => {}
        }
    }

    /// Whether the run may begin anything now: it has its permit, and it belongs to this engine.
    pub(super) fn may_begin(&mut self, cx: &mut Context<'_>) -> bool {
        let begins_nothing = self.committer.begins_nothing() || self.committer.state.is_paused();
        if begins_nothing || self.ends_children() || self.is_overdue() {
            return false;
        }
        if self.executor.holds() && self.waits_for_dropped() {
            return false;
        }
        if self.admission.is_admitted() {
            return true;
        }
        let Committer { journal, clock, .. } = &mut self.committer;
        let admit = self.admission.admit(journal.as_deref_mut(), clock.stamp(), cx);
        match admit {
            Admit::Now | Admit::WaitsForLease => {}
            Admit::TookPermit => self.count_time(),
            Admit::WaitsForPermit => self.stop_counting_time(),
            // `RunKept` is in the journal and is no batch.
            Admit::RecordQueued => self.committer.state.skip(1),
        }
        matches!(admit, Admit::Now | Admit::TookPermit)
    }

    /// Whether attempts that were dropped before a rewind may still run: an execution that begins may be one of theirs.
    #[cold]
    fn waits_for_dropped(&mut self) -> bool {
        let waits = self.executor.waits_for_dropped();
        if let Some(registry) = self.committer.shared.children.get().filter(|_| !waits) {
            registry.attempts_gone();
        }
        waits
    }

    /// The run waits: gives up its permit, stops its active time, and records it. The store has everything
    /// before.
    fn wait(&mut self) {
        self.tell_requests();
        let Committer { telemetry, state, .. } = &mut self.committer;
        telemetry.compare(state);
        self.admission.give_up_permit();
        telemetry.meter.waits();
        self.stop_counting_time();
        self.committer.record_waiting();
        self.give_back();
    }

    /// Handles a completion of a future in flight.
    pub(super) fn complete(&mut self, completion: Completion, left: &mut usize, cx: &mut Context<'_>) {
        match completion {
            Completion::Execution(execution, result) => {
                self.executor.forget(execution);
                self.admission.give_up_turn(execution);
                if let Some(next) = self.executed(execution, result) {
                    self.begin_directly(next, left, cx);
                }
            }
            Completion::Precondition(candidate, answer) => {
                if let Some(step) = self.executor.answered(candidate) {
                    self.answer(candidate, step, answer);
                }
            }
            Completion::Dropped { begins_again } => self.executor.is_gone(begins_again),
            Completion::Limit(execution, taken) => self.limit_admits(execution, taken, left, cx),
            Completion::Due(Due::Retry(execution)) => {
                self.executor.forget(execution);
                self.committer.state.queue_effect(EffectKind::Attempt(execution));
            }
            Completion::Due(Due::Turn(execution)) => self.has_turn(execution),
            Completion::Due(Due::Timer(at)) => self.alarms.rings(at),
            Completion::Due(Due::CleanUp) => self.clean_up_time_is_over(),
            Completion::Due(Due::Timeout) => {
                if self.alarms.time_is_over() {
                    let _ = self.commit(Batch::Stopped(Stop::TimedOut), None);
                }
            }
        }
    }

    /// Cancels the run, unless it has ended. Returns whether it did.
    pub(super) fn cancel(&mut self, reason: Arc<str>, origin: Option<Arc<Origin>>) -> bool {
        if self.committer.state.end().is_some() {
            return false;
        }
        let _ = self.commit(origin.map_or(Batch::Stopped(Stop::Cancelled), Batch::Cancelled), None);
        self.at_end.get_or_insert_default().cancel_reason = Some(bounded_shared(reason));
        true
    }

    /// Records new children, starts the next write, and handles the store's answer if it is there. Returns
    /// whether it was.
    pub(super) fn poll_journal(&mut self, cx: &mut Context<'_>) -> bool {
        self.record_children();
        self.committer.write();
        self.poll_store_answer(cx)
    }

    /// Handles the store's answer to the write under way. Returns whether there was one.
    pub(super) fn poll_store_answer(&mut self, cx: &mut Context<'_>) -> bool {
        match self.committer.poll_answer(cx) {
            None => return false,
            Some(Answer::Written | Answer::Repeats) => {
                self.tell_children_of_drops();
                self.tell_requests();
            }
            Some(Answer::Refused { records, why }) => self.on_refused(records, why),
            Some(Answer::Failed) => self.stop_after_journal_failure(None),
        }
        true
    }

    /// Ready once the store has everything, or takes nothing more.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.committer.write();
            if self.committer.is_written_out() {
                return Poll::Ready(());
            }
            if !self.poll_store_answer(cx) {
                return Poll::Pending;
            }
        }
    }

    /// Stops the run because its journal failed. `why` is set if the journal does not have the error yet.
    /// Nothing more is written.
    pub(super) fn stop_after_journal_failure(&mut self, why: Option<StoreError>) {
        if let (Some(why), Some(journal)) = (why, self.committer.journal.as_deref_mut()) {
            journal.set_failure(why);
        }
        // The run and its journal differ from here on.
        self.committer.telemetry.check = None;
        // Completed first, so that retracting evaluates nothing.
        self.advance(&mut usize::MAX.clone());
        self.committer.retract();
    }

    /// Whether nothing is under way: no execution, and no precondition. An execution that waits for children that rest
    /// too, as `child_rests` says, is not.
    pub(super) fn rests(&self, child_rests: fn(&RunShared) -> bool) -> bool {
        let children = self.committer.shared.children.get();
        let rests = |execution| {
            !self.is_attempted(execution)
                || children.is_some_and(|children| children.rests(execution, child_rests))
        };
        !self.executor.has_completed() && !self.executor.is_asking() && self.executor.executions().all(rests)
    }

    /// The executions whose attempts have begun and not ended, in order.
    pub(super) fn under_way(&self) -> Vec<ExecutionId> {
        let state = &self.committer.state;
        let attempted = self.executor.executions().filter(|id| self.is_attempted(*id));
        let under_way = attempted.chain(self.executor.returned_executions()).chain(state.lives.lost());
        let mut under_way: Vec<_> = under_way.filter(|id| state.scheduler.is_running(*id)).collect();
        under_way.sort_unstable();
        under_way.dedup();
        under_way
    }

    /// Whether an attempt of an execution in flight has begun, and neither a retry nor a turn is waited for.
    pub(super) fn is_attempted(&self, execution: ExecutionId) -> bool {
        let waits_for_retry = self.committer.state.trace.next_attempt(execution).is_some();
        !waits_for_retry && self.admission.turn_of(execution).is_none_or(|turn| turn == TurnStage::Begun)
    }

    /// The run as reports and explanations see it now.
    pub(super) fn view(&self) -> View<'_> {
        let Committer { shared, state, clock, .. } = &self.committer;
        View {
            run: shared,
            status: state
                .end()
                .filter(|_| state.scheduler.is_over())
                .map_or(shared.status(), RunStatus::from),
            state,
            deferred: Some(Deferred::new(&self.committer, &self.admission)),
            began_at: clock.began_at,
            in_flight: InFlightNow::of(&self.executor, shared, clock),
        }
    }
}

/// The reason why a request takes no reply. O(events since the request), on this error path only.
pub(super) fn why_not_open(state: &RunState, request: Seq, began_at: SystemTime) -> SendError {
    for record in state.log.since(request) {
        match record.cause {
            Cause::Reply(seq) if seq == request => return SendError::Answered { request },
            Cause::Expired(seq) if seq == request => {
                return SendError::Expired { request, at: began_at + record.at };
            }
            _ => {}
        }
    }
    SendError::NotOpen { request }
}

/// The open requests of a run that began at this time.
pub(super) fn open_requests(state: &RunState, began_at: SystemTime) -> Vec<OpenRequest> {
    let timers = state.timers.pending(&state.scheduler);
    let expiries: HashMap<Seq, SystemTime> =
        timers.filter_map(|(due, timer)| Some((timer.request?, due))).collect();
    let open = state.scheduler.open_requests().filter_map(|(seq, _)| {
        let record = state.log.get(seq)?;
        Some(OpenRequest {
            seq,
            event: record.event.clone(),
            asked_at: began_at + record.at,
            expires_at: expiries.get(&seq).copied(),
        })
    });
    open.collect()
}

/// Drops the future of an execution, with all that it waits for.
fn drop_future(
    (admission, executor): (&mut Admission, &mut Executor),
    shared: &RunShared,
    state: &RunState,
    execution: ExecutionId,
) {
    admission.give_up_turn(execution);
    if executor.drop_execution(execution) {
        shared.cancellations.tell(execution);
    }
    executor.drop_wait(admission.forget_limited(execution, state));
}
