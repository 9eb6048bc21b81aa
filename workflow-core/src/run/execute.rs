//! Executions: from the start of an attempt to the commit of its result.
//!
//! A success enters the log as one batch. A failure leads to another attempt, or fails the execution. The hot path is a
//! chain of steps that return at once: if a result leads to exactly one execution, and nothing else waits for its turn,
//! that execution begins without a queue in between.
//!
//! ```text
//! run_chain: start ─▶ poll once ─▶ ready ─▶ executed (commit) ─▶ the next start ─▶ ...
//!                        │
//!                        └─▶ pending: the executor keeps it, and completes it later
//! ```

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use tracing::Span;

use super::admission::TurnStage;
use super::before_attempt::{BeforeAttempt, ErrorOf, before_attempt, in_doubt_unless_returned};
use super::clock::RunClock;
use super::commit::Committer;
use super::driver::Driver;
use super::in_flight::{Attempt, AttemptFuture, StepResult};
use super::retry_decision::{RetryDecision, failed_attempt, until_next};
use super::returned::{PendingDisplay, returned};
use super::state::{Batch, EffectKind, Returned};
use super::weight::Added;
use crate::error::StepError;
use crate::id::ExecutionId;
use crate::input::{CallContext, StepCall};
use crate::retry::NotRetried;
use crate::scheduler::ExecutionStart;
use crate::table::StepIndex;

/// The share of a slice that one direct step takes: a result, its batch and a start.
const HOP: usize = 3;

/// Which attempt of an execution begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptKind {
    /// The first one.
    First,
    /// The first one, right after the execution was scheduled. The trace already has its start time.
    FirstWhenScheduled,
    /// A later one, or the one that an earlier process may have begun.
    Again,
}

impl Driver {
    /// Begins an execution that follows directly, or queues it if something else comes first.
    pub(super) fn begin_directly(&mut self, start: ExecutionStart, left: &mut usize, cx: &mut Context<'_>) {
        if self.may_begin_directly(&start) {
            self.run_chain(start, AttemptKind::FirstWhenScheduled, left, cx);
        } else {
            self.committer.state.queue_effect(EffectKind::Execution(start));
        }
    }

    /// Whether an execution may skip the effect queue: no journal, no other effect, a permit, no limit of its step, and
    /// no unread cancel.
    fn may_begin_directly(&self, start: &ExecutionStart) -> bool {
        let Committer { shared, state, journal, .. } = &self.committer;
        journal.is_none()
            && !state.has_effects()
            && self.admission.admits_directly(self.executor.executing())
            && !self.host.has_limit(start.step)
            && !shared.signals.cancel_is_unread()
    }

    /// Begins an attempt and the chain of executions that follow directly. Subtracts their cost from `left`,
    /// and stops when that is used up.
    pub(super) fn run_chain(
        &mut self,
        start: ExecutionStart,
        mut kind: AttemptKind,
        left: &mut usize,
        cx: &mut Context<'_>,
    ) {
        let mut next = Some(start);
        while let Some(start) = next.take() {
            let execution = start.execution;
            let Some(result) = self.start(&start, kind, cx) else { return };
            // The slice is used up, or earlier work comes first: the result waits for its turn.
            if *left < HOP || !self.may_commit_directly() {
                return self.executor.returned(execution, result);
            }
            *left -= HOP;
            kind = AttemptKind::FirstWhenScheduled;
            next = self.executed(execution, result);
            if let Some(start) = next.take_if(|start| !self.may_begin_directly(start)) {
                self.committer.state.queue_effect(EffectKind::Execution(start));
            }
        }
    }

    /// Whether a result may be committed at once. Earlier effects, completions, drops, timers, the deadline and cancels
    /// come first.
    fn may_commit_directly(&self) -> bool {
        !self.committer.state.has_effects()
            && !self.executor.has_completed()
            && !self.executor.is_dropping()
            && self.committer.journal.is_none()
            && !self.waits_for_time()
            && !self.committer.shared.signals.cancel_is_unread()
    }

    /// Begins an attempt (S37). Returns its result if it completed in its first poll.
    fn start(
        &mut self,
        start: &ExecutionStart,
        kind: AttemptKind,
        cx: &mut Context<'_>,
    ) -> Option<StepResult> {
        let ExecutionStart { execution, step, .. } = *start;
        let mut begun = if kind == AttemptKind::Again {
            self.attempt_again(start)
        } else {
            let Committer { shared, state, telemetry, clock, .. } = &mut self.committer;
            let span = telemetry.began(shared, state, start);
            if kind == AttemptKind::First {
                state.trace.begin(execution, clock.now);
            }
            // Apart, since a call that is changed is copied once more.
            if self.committer.state.lives.has_keys() {
                self.first_with_key(start, span)
            } else {
                AttemptFuture::first(&self.host, &self.committer.shared, self.step_call(start, 1), span)
            }
        };
        if self.admission.is_rare()
            && let Some(permit) = self.admission.limited_mut().take_permit(execution)
        {
            begun = begun.with(permit);
        }
        let row = step.get();
        if self.host.weight(row).is_watched(|| self.executor.has_threads()) {
            return self.start_watched(execution, begun, row, cx);
        }
        // Polled at once. A pending future stays in this task.
        let since = self.committer.clock.now;
        let polled = begun.poll(cx);
        let took = self.committer.clock.tick();
        self.host.weight(row).note_rough(took, || self.executor.has_threads());
        match polled {
            Poll::Ready(result) => Some(result),
            Poll::Pending => {
                self.poll_later(execution, begun, (row, since), Added::default());
                None
            }
        }
    }

    /// Polls a pending attempt from here on. It began at `since`.
    fn poll_later(
        &mut self,
        execution: ExecutionId,
        begun: AttemptFuture,
        (step, since): (usize, Duration),
        added: Added,
    ) {
        let Committer { shared, clock: RunClock { read: polled, .. }, .. } = &self.committer;
        let (clock, polled) = (&shared.common.clock, *polled);
        let of = Attempt { host: &self.host, step, clock, since, polled };
        self.executor.keep(execution, begun, of, added);
    }

    /// Begins an attempt of a step that computes for long, may do so, or is not known yet: in a task of its own so that
    /// other threads help, or here with a look at the time (S72).
    #[inline(never)]
    fn start_watched(
        &mut self,
        execution: ExecutionId,
        mut begun: AttemptFuture,
        row: usize,
        cx: &mut Context<'_>,
    ) -> Option<StepResult> {
        if self.host.weight(row).takes_task(|| self.executor.has_threads()) {
            let common = &self.committer.shared.common;
            let since = self.committer.clock.now;
            let of =
                Attempt { host: &self.host, step: row, clock: &common.clock, since, polled: Instant::now() };
            begun = match self.executor.spawn(execution, begun, of, &common.tasks) {
                Ok(()) => return None,
                Err(begun) => begun,
            };
        }
        let since = self.committer.clock.now;
        let (before, mut added) = (Instant::now(), Added::default());
        let polled = begun.poll(cx);
        let weight = self.host.weight(row);
        weight.note(before.elapsed(), &mut added);
        self.committer.clock.tick();
        match polled {
            Poll::Ready(result) => {
                weight.note_end(added);
                Some(result)
            }
            Poll::Pending => {
                self.poll_later(execution, begun, (row, since), added);
                None
            }
        }
    }

    /// Begins another attempt, or the one that an earlier process may have begun, unless it is not to be made.
    pub(super) fn begin_again(&mut self, start: ExecutionStart, left: &mut usize, cx: &mut Context<'_>) {
        let execution = start.execution;
        let Committer { shared, state, .. } = &self.committer;
        let earlier = state.lives.of(execution);
        let at_most_once = self.host.table.step(start.step).policy.at_most_once;
        let is_retry = self.committer.journal.is_some() && state.trace.attempt(execution) > 1;
        match before_attempt(earlier, at_most_once, is_retry, shared.common.settings.interrupted_attempts) {
            BeforeAttempt::Begins => {
                if !self.take_limit_again(execution, start.step) {
                    return;
                }
                if self.admission.note_turn(execution, TurnStage::Begun) {
                    // It was there for its turn.
                    self.executor.forget(execution);
                }
                self.run_chain(start, AttemptKind::Again, left, cx);
            }
            BeforeAttempt::TakesTurn => {
                if self.take_step_permit(EffectKind::Attempt(execution)).is_none() {
                    return;
                }
                let shared = &self.committer.shared;
                let (turn, wait) = shared.common.turns.wait(&shared.id, execution);
                self.admission.take_turn(execution, turn);
                self.executor.wait_for_turn(execution, wait);
            }
            BeforeAttempt::IsJournaled => {
                if self.take_limit_again(execution, start.step) {
                    self.admission.note_journaled(execution);
                    self.journal_begin(execution);
                }
            }
            BeforeAttempt::Fails(error) => self.execution_failed(execution, error, NotRetried::Class),
        }
    }

    /// An execution under which processes ended has its turn: its attempt begins once the store knows.
    pub(super) fn has_turn(&mut self, execution: ExecutionId) {
        // It may have been dropped since, and has no turn then.
        if !self.admission.note_turn(execution, TurnStage::Has) {
            return;
        }
        // One that waits for a limit lets others take their turns, and takes another one once it has the permit.
        let step = self.committer.state.step_of(execution);
        if step.is_some_and(|step| self.take_limit_again(execution, step)) {
            self.journal_begin(execution);
        }
    }

    /// Journals that an attempt begins, and begins it once the store knows.
    fn journal_begin(&mut self, execution: ExecutionId) {
        let _ = self.commit(Batch::AttemptBegan { execution }, None);
        self.committer.state.queue_effect(EffectKind::Attempt(execution));
    }

    /// Creates another attempt, with the step's compaction if the failed one asked for it.
    #[inline(never)]
    fn attempt_again(&mut self, start: &ExecutionStart) -> AttemptFuture {
        let execution = start.execution;
        let Committer { shared, state, telemetry, .. } = &mut self.committer;
        let attempt = state.trace.attempt(execution);
        let span = telemetry.began_again(shared, state, start, attempt);
        state.trace.attempted_again(execution);
        let compacts = state.trace.attempts(execution).last().is_some_and(|failed| failed.compacts);
        let mut call = self.step_call(start, attempt);
        self.keep_key(&call, start);
        if self.committer.state.lives.of(execution).may_have_begun {
            call = call.of_begun();
        }
        AttemptFuture::new(&self.host, &self.committer.shared, call, span, compacts)
    }

    /// The call of a step with the events that the execution is bound to.
    #[inline]
    fn step_call(&self, start: &ExecutionStart, attempt: u32) -> StepCall {
        let ExecutionStart { execution, step, scope, .. } = *start;
        let slots = self.committer.state.log.slots_of(self.host.table.step(step), start);
        let run = Arc::clone(&self.committer.shared);
        StepCall::new(slots, CallContext { run, step: step.get(), execution, attempt, scope })
    }

    /// The first attempt in a run whose steps had other inputs in an earlier table.
    #[cold]
    #[inline(never)]
    fn first_with_key(&self, start: &ExecutionStart, span: Span) -> AttemptFuture {
        let call = self.step_call(start, 1);
        self.keep_key(&call, start);
        AttemptFuture::new(&self.host, &self.committer.shared, call, span, false)
    }

    /// Gives the call the idempotency key of an execution whose step had other inputs in an earlier table of the run.
    fn keep_key(&self, call: &StepCall, start: &ExecutionStart) {
        if let Some(positions) = self.committer.state.key_positions(start) {
            call.set_positions(positions);
        }
    }
}

impl Driver {
    /// Handles a result. Returns the execution that may begin directly, if nothing else follows.
    pub(super) fn executed(&mut self, execution: ExecutionId, result: StepResult) -> Option<ExecutionStart> {
        let Committer { shared, state, clock, .. } = &self.committer;
        // An execution that was dropped while its result waited has no effect.
        let running = state.scheduler.executions().get(execution).filter(|it| it.is_running());
        let step = running?.step;
        let check = shared.common.event_check();
        let returned = match result {
            Ok(emitted) => {
                returned(state, step, emitted, check, clock).map_err(|error| (error, ErrorOf::Run))
            }
            Err(error) => Err((error, ErrorOf::Attempt)),
        };
        match returned {
            Ok((returned, shown)) => {
                self.release_step_permit(execution, step);
                self.commit_returned(execution, returned, shown)
            }
            Err((error, of)) => {
                let error = self.host.rules().classified(error);
                self.attempt_failed(execution, step, error, of);
                None
            }
        }
    }

    fn commit_returned(
        &mut self,
        execution: ExecutionId,
        returned: Returned,
        shown: PendingDisplay,
    ) -> Option<ExecutionStart> {
        if self.committer.state.begins_nothing() {
            self.committer.record_late_events(execution, returned.all_events());
            return None;
        }
        if !returned.timers().is_empty() {
            self.alarms.sets_timers();
        }
        let next = self.commit(Batch::Succeeded { execution, returned }, None);
        self.drop_unasked_children(execution);
        if let Some(shown) = shown {
            self.committer.note_shown(execution, shown);
        }
        next
    }

    /// Handles a failed attempt: schedules another one (S35), or fails the execution.
    pub(super) fn attempt_failed(
        &mut self,
        execution: ExecutionId,
        step: StepIndex,
        mut error: StepError,
        of: ErrorOf,
    ) {
        // An attempt that waited for its retry when the clock failed has not begun.
        let has_begun = self.committer.state.trace.next_attempt(execution).is_none();
        if self.host.table.step(step).policy.at_most_once && has_begun {
            error = in_doubt_unless_returned(error, of);
        }
        let Committer { shared, state, clock, .. } = &self.committer;
        let decision = RetryDecision { run: &shared.id, state, now: clock.now };
        let decided = decision.decide(&self.host.retry_policy(step.get()), execution, &error);
        match decided {
            Ok(retry_in) => {
                let mut failed = failed_attempt(&error, retry_in, self.host.compacts(step.get()));
                // The step was not called, so a compaction that it needs is still to be done.
                failed.compacts |= error.is_before_step() && self.owes_compaction(execution);
                let Committer { shared, state, telemetry, .. } = &mut self.committer;
                telemetry.retries(shared, state, execution, (&error, &failed));
                let _ = self.commit(Batch::Retried { execution, failed }, None);
                self.drop_unasked_children(execution);
                self.attempt_after(retry_in, execution);
            }
            Err(not_retried) => {
                self.execution_failed(execution, error, not_retried);
            }
        }
    }

    /// Fails an execution for good.
    pub(super) fn execution_failed(
        &mut self,
        execution: ExecutionId,
        error: StepError,
        not_retried: NotRetried,
    ) {
        if self.admission.is_rare()
            && let Some(step) = self.committer.state.step_of(execution)
        {
            self.release_step_permit(execution, step);
        }
        let Committer { shared, state, telemetry, clock, .. } = &mut self.committer;
        let took = state.trace.elapsed(execution, clock.now);
        telemetry.failed(shared, state, execution, (&error, not_retried, took));
        self.commit_in_turn(Batch::Failed { execution, error, not_retried }, None);
        self.drop_unasked_children(execution);
    }

    /// Ends the delays before next attempts. Returns how many there were. The journal has that they ended, so a later
    /// process does not wait for them either.
    pub(super) fn end_delays(&mut self) -> usize {
        let Committer { state, clock, .. } = &self.committer;
        let delayed = if state.begins_nothing() { Vec::new() } else { state.trace.delayed(clock.now) };
        if delayed.is_empty() {
            return 0;
        }
        let _ = self.commit(Batch::DelaysEnded, None);
        let queued = self.queued_executions();
        for execution in &delayed {
            self.executor.drop_execution(*execution);
            // The clock of delays may have been set: one that is queued begins by itself.
            if !queued.contains(execution) {
                self.attempt_after(Duration::ZERO, *execution);
            }
        }
        delayed.len()
    }

    /// Whether the attempt before the current one asked for a compaction.
    fn owes_compaction(&self, execution: ExecutionId) -> bool {
        self.committer.state.trace.attempts(execution).last().is_some_and(|failed| failed.compacts)
    }

    /// The executions whose attempts are queued: as effects, or deferred.
    pub(super) fn queued_executions(&self) -> FxHashSet<ExecutionId> {
        let effects = self.committer.state.effects.iter().map(|effect| &effect.begins);
        effects.chain(self.admission.deferred()).filter_map(EffectKind::execution).collect()
    }

    /// Begins the next attempt of an execution after this time. Dropping the execution drops the wait.
    pub(super) fn attempt_after(&mut self, retry_in: Duration, execution: ExecutionId) {
        match until_next(&self.committer.shared, execution, retry_in) {
            Some(due) => self.executor.wait_for_retry(execution, due),
            None => self.committer.state.queue_effect(EffectKind::Attempt(execution)),
        }
    }
}
