//! Attempting again: what the policy decides is recorded and told here, and the run waits for it. The scheduler sees
//! one execution that is still running.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::drive::Run;
use super::in_flight::{Due, InFlight};
use crate::error::{ErrorClass, StepError};
use crate::id::{ExecutionId, RunId};
use crate::observe::Observed;
use crate::retry::{FailedAttempt, NotRetried};
use crate::scheduler::Wanted;
use crate::table::StepIndex;

impl Run {
    /// A failed attempt is followed by another (S35), or the execution fails.
    pub(super) fn attempt_failed(&mut self, execution: ExecutionId, step: StepIndex, error: StepError) {
        match self.decide(execution, step, error.class()) {
            Ok(retry_in) => self.retry(execution, step, &error, retry_in),
            Err(not_retried) => self.failed(execution, step, error, not_retried),
        }
    }

    fn retry(&mut self, execution: ExecutionId, step: StepIndex, error: &StepError, retry_in: Duration) {
        let attempt = self.trace.attempt(execution);
        let too_large = error.class() == ErrorClass::ContextLimit || error.is_of_compaction();
        let compacts = too_large && self.host.compacts(step.get());
        let failed = FailedAttempt { class: error.class(), error: error.to_string(), retry_in, compacts };
        self.spans.retry(execution, error, retry_in);
        let name = &self.host.table.step(step).name;
        self.meter.retried(name, failed.class);
        self.shared.tell(|| Observed::AttemptFailed {
            execution,
            step: Arc::clone(name),
            attempt,
            class: failed.class,
            error: failed.error.clone(),
            retry_in,
            compacts,
        });
        self.record_retry(execution, attempt, &failed);
        self.trace.failed_attempt(execution, self.clock.now, failed);
        self.wait_for_retry(execution, retry_in);
    }

    fn decide(
        &self,
        execution: ExecutionId,
        step: StepIndex,
        class: ErrorClass,
    ) -> Result<Duration, NotRetried> {
        // The attempt that failed was only waited for: no policy has anything to say of a clock.
        if self.trace.next_attempt(execution).is_some() {
            return Err(NotRetried::Clock);
        }
        let earlier = self.trace.attempts(execution).iter().filter(|attempt| attempt.class == class);
        let failed = u32::try_from(earlier.count()).unwrap_or(u32::MAX).saturating_add(1);
        let elapsed = self.trace.elapsed(execution, self.clock.now);
        let seed = seed(&self.shared.id, execution, self.trace.attempt(execution));
        let retry_in = self.host.retry_policy(step.get()).decide(class, failed, elapsed, seed)?;
        // Nothing begins in a run that has ended, or whose stop event is being written (S28).
        if self.scheduler.refuses() { Err(NotRetried::RunEnding) } else { Ok(retry_in) }
    }

    /// S36: by the engine's clock, and until the children have ended that the failed attempt waited for: two attempts
    /// never work at the same time. The wait is dropped as the attempt would be.
    pub(super) fn wait_for_retry(&mut self, execution: ExecutionId, retry_in: Duration) {
        let ending = self.shared.children.get().map_or_else(Vec::new, |family| family.awaited_by(execution));
        if retry_in.is_zero() && ending.is_empty() {
            return self.attempt_again(execution);
        }
        let sleep = self.shared.common.clock.sleep(retry_in);
        let due = Box::pin(async move {
            sleep.await;
            for child in ending {
                child.ended().await;
            }
        });
        let dropped = self.droppable(execution);
        self.in_flight.push(InFlight::Wait(Due::Retry(execution), due, dropped));
    }

    /// The time has come for the next attempt.
    pub(super) fn retry_due(&mut self, execution: ExecutionId) {
        self.droppable.remove(&execution);
        // What was dropped while this waited its turn is not attempted again.
        if self.scheduler.is_running(execution) {
            self.attempt_again(execution);
        }
    }

    /// With what the execution is bound to: the log still has all of it (S20, S37).
    pub(super) fn attempt_again(&mut self, execution: ExecutionId) {
        if let Some(start) = self.trace.begun_as(execution) {
            self.held.push_back(Wanted::Start(start));
        }
    }
}

/// What jitter is drawn from: another for each attempt, and the same whenever the same program makes the run again
/// under its id.
fn seed(run: &RunId, execution: ExecutionId, attempt: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    (run.as_str(), execution.0, attempt).hash(&mut hasher);
    hasher.finish()
}
