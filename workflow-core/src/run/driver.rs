//! The driver of a run: the one place that sees all of its parts. It begins what the state says, and takes in what completes
//! and what arrives.
//!
//! ```text
//!  handles ─ mailbox ─┐                          ┌─▶ journal ─ store
//!  timers ─ alarms ───┼─▶ batch ─▶ RunState ─────┤
//!  steps ── executor ─┘  (Committer)  │          └─▶ telemetry, senders  (once the store has it)
//!              ▲                   effects
//!              └──── admission ◀──────┘           (once the store has what they follow from)
//! ```

use std::sync::Arc;
use std::task::{Context, Poll};

use super::admission::{Admission, Admit};
use super::alarms::Alarms;
use super::begin::AttemptKind;
use super::commit::{Committer, Done};
use super::executor::Executor;
use super::host::Host;
use super::in_flight::{Arrived, Due};
use super::journal::{Answer, Journal};
use super::slice::WORK;
use super::state::{Batch, Begins, Stop};
use super::view::View;
use super::waiting::Deferred;
use crate::id::{ExecutionId, RunStatus};
use crate::scheduler::ExecutionStart;
use crate::store::StoreError;

/// The parts of a run that is driven.
pub(super) struct Driver {
    pub(super) host: Arc<Host>,
    pub(super) executor: Executor,
    pub(super) admission: Admission,
    pub(super) alarms: Alarms,
    pub(super) committer: Committer,
    /// None as long as nobody has given one.
    pub(super) cancel_reason: Option<Arc<str>>,
}

impl Driver {
    /// Takes a batch in: the execution that follows next, if that is all that follows. What follows from the batches before
    /// is complete then.
    pub(super) fn commit(&mut self, batch: Batch, done: Option<Done>) -> Option<ExecutionStart> {
        self.advance(&mut usize::MAX.clone());
        self.committer.telemetry.compare(&self.committer.state);
        if !matches!(batch, Batch::Stopped(_)) && self.committer.note_running() {
            self.count_time();
        }
        self.committer.commit(batch, done)
    }

    /// The same; the execution that follows next begins in its turn.
    pub(super) fn commit_in_turn(&mut self, batch: Batch, done: Option<Done>) {
        let next = self.commit(batch, done);
        self.committer.follow(next);
    }

    /// Completes what follows from the batches so far, within so many units of work: entries that follow by themselves are
    /// journaled, and executions and questions are dropped. Says whether it is complete.
    #[inline]
    pub(super) fn advance(&mut self, work: &mut usize) -> bool {
        self.committer.state.scheduler.is_settled() || self.advance_on(work)
    }

    #[inline(never)]
    fn advance_on(&mut self, work: &mut usize) -> bool {
        let is_complete = self.committer.advance(work);
        if let Some(dropped) = self.committer.state.take_dropped() {
            self.drop_executions(dropped);
            let scheduler = &self.committer.state.scheduler;
            self.executor.drop_questions(|candidate| scheduler.asked(candidate).is_some());
        }
        is_complete
    }

    /// Drops executions that the state does not have as running any more.
    pub(super) fn drop_executions(&mut self, executions: Vec<ExecutionId>) {
        let unbegun = self.admission.unbegun(&self.committer.state);
        let Committer { shared, state, telemetry, .. } = &mut self.committer;
        for execution in executions {
            if self.executor.drop_execution(execution) {
                shared.cancellations.tell(execution);
            }
            if !unbegun.contains(&execution) {
                telemetry.dropped(shared, state, execution);
            }
        }
    }

    /// Begins what is due next, if anything is and may.
    pub(super) fn begin_next(&mut self, left: &mut usize, cx: &mut Context<'_>) -> bool {
        if self.committer.state.end().is_some() {
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
            self.committer.state.effects.put_back(begins);
            return false;
        }
    }

    fn begin(&mut self, begins: Begins, left: &mut usize, cx: &mut Context<'_>) {
        match begins {
            Begins::Execution(start) => self.run_on(start, AttemptKind::First, left, cx),
            Begins::Attempt(execution) => {
                if let Some(start) = self.committer.state.start_of(execution) {
                    self.run_on(start, AttemptKind::Again, left, cx);
                }
            }
            Begins::Question(candidate) => {
                let before = self.committer.state.effects.len();
                self.ask(candidate);
                // What an answer that is there at once leads to begins where the question stood.
                if self.committer.journal.is_none() && self.advance(&mut WORK.clone()) {
                    self.committer.state.effects.prefer_behind(before);
                }
            }
            Begins::Wait => {}
        }
    }

    /// Whether the run may begin anything now: it has its permit, and is this engine's.
    fn may_begin(&mut self, cx: &mut Context<'_>) -> bool {
        if self.committer.is_detaching() {
            return false;
        }
        if self.admission.is_admitted() {
            return true;
        }
        let Committer { journal, clock, .. } = &mut self.committer;
        let admit = self.admission.admit(journal.as_deref_mut(), clock.stamp(), cx);
        match admit {
            Admit::Now | Admit::Later => {}
            Admit::Took => self.count_time(),
            Admit::Waits => self.stop_counting_time(),
            Admit::Queued => self.committer.state.skip(1),
        }
        matches!(admit, Admit::Now | Admit::Took)
    }

    /// The run waits, and the store has all that it waits for.
    fn wait(&mut self) {
        let Committer { telemetry, state, .. } = &mut self.committer;
        telemetry.compare(state);
        self.admission.give_up_permit();
        telemetry.meter.waits();
        self.stop_counting_time();
        self.committer.rest();
        self.give_back();
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
                self.committer.state.queue_effect(Begins::Attempt(execution));
            }
            Arrived::Due(Due::Timer(at)) => self.alarms.rings(at),
            Arrived::Due(Due::Timeout) => {
                if self.alarms.time_is_over() {
                    let _ = self.commit(Batch::Stopped(Stop::TimedOut), None);
                }
            }
        }
    }

    /// Ends the run, if it has not ended; says whether it did.
    pub(super) fn cancel(&mut self, reason: Arc<str>) -> bool {
        if self.committer.state.end().is_some() {
            return false;
        }
        let _ = self.commit(Batch::Stopped(Stop::Cancelled), None);
        self.cancel_reason = Some(reason);
        true
    }

    /// Records new children, begins the next write, and handles the store's answer if it is there; says whether it was.
    pub(super) fn poll_journal(&mut self, cx: &mut Context<'_>) -> bool {
        self.record_children();
        self.committer.write();
        self.poll_store_answer(cx)
    }

    /// Handles the store's answer to the write that is under way; says whether there was one.
    pub(super) fn poll_store_answer(&mut self, cx: &mut Context<'_>) -> bool {
        match self.committer.poll_answer(cx) {
            None => return false,
            Some(Answer::Written | Answer::Repeats) => {}
            Some(Answer::Refused { records, why }) => self.on_refused(records, why),
            Some(Answer::Failed) => self.stop_unkept(None),
        }
        true
    }

    /// Ready once the store has everything, or takes nothing any more.
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

    /// The store has refused the journal, for this reason if the journal does not know one: the run stops here, and nothing
    /// more is written.
    pub(super) fn stop_unkept(&mut self, why: Option<StoreError>) {
        if let (Some(why), Some(journal)) = (why, self.committer.journal.as_deref_mut()) {
            journal.set_failure(why);
        }
        // From here on the run and its journal differ.
        self.committer.telemetry.check = None;
        // Nothing is evaluated by what is taken back.
        self.advance(&mut usize::MAX.clone());
        self.committer.retract();
    }

    pub(super) fn view(&self) -> View<'_> {
        let Committer { shared, state, clock, .. } = &self.committer;
        View {
            run: shared,
            status: state.end().map_or(shared.status(), RunStatus::from),
            state,
            deferred: Some(Deferred::new(state, &self.admission)),
            began_at: clock.began_at,
        }
    }
}
