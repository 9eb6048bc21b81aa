//! Results of attempts: a success enters the log as a batch; a failure leads to another attempt or fails the
//! execution.

use std::time::Duration;

use super::attempts::{Attempts, failed_attempt, until_next};
use super::commit::Committer;
use super::driver::Driver;
use super::in_flight::StepResult;
use super::returned::{PendingDisplay, returned};
use super::state::{Batch, EffectKind, Returned};
use crate::error::StepError;
use crate::id::ExecutionId;
use crate::scheduler::ExecutionStart;
use crate::table::StepIndex;

impl Driver {
    /// Handles a result. Returns the execution that may begin directly, if nothing else follows.
    pub(super) fn executed(&mut self, execution: ExecutionId, result: StepResult) -> Option<ExecutionStart> {
        let Committer { shared, state, clock, .. } = &self.committer;
        // An execution that was dropped while its result waited has no effect.
        let running = state.scheduler.executions().get(execution).filter(|it| it.is_running());
        let step = running?.step;
        let check = shared.common.event_check();
        match result.and_then(|emitted| returned(state, step, emitted, check, clock)) {
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
        shown: PendingDisplay,
    ) -> Option<ExecutionStart> {
        if self.committer.state.end().is_some() {
            self.committer.record_late_events(execution, returned.all_events());
            return None;
        }
        if !returned.timers().is_empty() {
            self.alarms.sets_timers();
        }
        let next = self.commit(Batch::Succeeded { execution, returned }, None);
        if let Some(shown) = shown {
            self.committer.note_shown(execution, shown);
        }
        next
    }

    /// Handles a failed attempt: schedules another one (S35), or fails the execution.
    pub(super) fn attempt_failed(&mut self, execution: ExecutionId, step: StepIndex, error: StepError) {
        let Committer { shared, state, clock, .. } = &self.committer;
        let attempts = Attempts { run: &shared.id, state, now: clock.now };
        let decided = attempts.decide(&self.host.retry_policy(step.get()), execution, error.class());
        match decided {
            Ok(retry_in) => {
                let failed = failed_attempt(&error, retry_in, self.host.compacts(step.get()));
                let Committer { shared, state, telemetry, .. } = &mut self.committer;
                telemetry.retries(shared, state, execution, (&error, &failed));
                self.record_children();
                let _ = self.commit(Batch::Retried { execution, failed }, None);
                self.attempt_after(retry_in, execution);
            }
            Err(not_retried) => {
                self.record_children();
                let Committer { shared, state, telemetry, clock, .. } = &mut self.committer;
                let took = state.trace.elapsed(execution, clock.now);
                telemetry.failed(shared, state, execution, (&error, not_retried, took));
                self.commit_in_turn(Batch::Failed { execution, error, not_retried }, None);
            }
        }
    }

    /// Begins the next attempt of an execution after this time. Dropping the execution drops the wait.
    pub(super) fn attempt_after(&mut self, retry_in: Duration, execution: ExecutionId) {
        match until_next(&self.committer.shared, execution, retry_in) {
            Some(due) => self.executor.wait_for_retry(execution, due),
            None => self.committer.state.queue_effect(EffectKind::Attempt(execution)),
        }
    }
}
