//! What becomes of an attempt that failed (S35): whether the same execution is attempted again, when, and what the journal
//! says of it. This part decides by what the run's state has of the execution; others record it and wait.

use std::time::Duration;

use futures::future::BoxFuture;

use super::RunShared;
use super::state::RunState;
use crate::error::{ErrorClass, StepError};
use crate::id::{ExecutionId, RunId};
use crate::retry::{FailedAttempt, NotRetried, RetryPolicy};

/// The attempts of a run's executions, at a time from the beginning of the run.
pub(super) struct Attempts<'a> {
    pub(super) run: &'a RunId,
    pub(super) state: &'a RunState,
    pub(super) now: Duration,
}

impl Attempts<'_> {
    /// Whether the attempt that an execution is at, which failed, is followed by another, and after which time.
    pub(super) fn decide(
        &self,
        policy: &RetryPolicy,
        execution: ExecutionId,
        class: ErrorClass,
    ) -> Result<Duration, NotRetried> {
        let trace = &self.state.trace;
        // The attempt that failed was only waited for: no policy has anything to say of a clock.
        if trace.next_attempt(execution).is_some() {
            return Err(NotRetried::Clock);
        }
        let earlier = trace.attempts(execution).iter().filter(|attempt| attempt.class == class);
        let failed = u32::try_from(earlier.count()).unwrap_or(u32::MAX).saturating_add(1);
        let elapsed = trace.elapsed(execution, self.now);
        let seed = seed(self.run.as_str(), execution, trace.attempt(execution));
        let retry_in = policy.decide(class, failed, elapsed, seed)?;
        // Nothing begins in a run that has ended (S28).
        if self.state.end().is_some() { Err(NotRetried::RunEnding) } else { Ok(retry_in) }
    }
}

/// An attempt with this error that is followed by another. That begins with the step's compaction, if it has one and the
/// error says that the input was too large.
pub(super) fn failed_attempt(error: &StepError, retry_in: Duration, has_compaction: bool) -> FailedAttempt {
    let class = error.class();
    let too_large = class == ErrorClass::ContextLimit || error.is_of_compaction();
    FailedAttempt { class, error: error.to_string(), retry_in, compacts: too_large && has_compaction }
}

/// Ready when the next attempt of an execution may begin (S36): after that time by the engine's clock, and once the children
/// have ended that the failed attempt waited for, as two attempts never work at the same time. None if it may at once.
pub(super) fn until_next(
    run: &RunShared,
    execution: ExecutionId,
    retry_in: Duration,
) -> Option<BoxFuture<'static, ()>> {
    let ending = run.children.get().map_or_else(Vec::new, |family| family.awaited_by(execution));
    if retry_in.is_zero() && ending.is_empty() {
        return None;
    }
    let sleep = run.common.clock.sleep(retry_in);
    Some(Box::pin(async move {
        sleep.await;
        for child in ending {
            child.ended().await;
        }
    }))
}

/// What jitter is drawn from: another for each attempt, and the same whenever the same program makes the run again
/// under its id.
fn seed(run: &str, execution: ExecutionId, attempt: u32) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (run, execution.0, attempt).hash(&mut hasher);
    hasher.finish()
}
