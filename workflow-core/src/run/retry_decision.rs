//! Failed attempts (S35): whether another one follows, and when. This module decides by the run's state; the
//! driver records the decision and waits.

use std::time::Duration;

use futures_util::future::BoxFuture;

use super::RunShared;
use super::state::RunState;
use crate::error::{ErrorClass, StepError};
use crate::id::{ExecutionId, RunId};
use crate::retry::{FailedAttempt, NotRetried, RetryPolicy};

/// What a decision about the next attempt depends on: the run, its state, and the time since the beginning of the run.
pub(super) struct RetryDecision<'a> {
    pub(super) run: &'a RunId,
    pub(super) state: &'a RunState,
    pub(super) now: Duration,
}

impl RetryDecision<'_> {
    /// Decides whether the failed current attempt of an execution is followed by another, and after which
    /// delay, at the least the one that the error asks for (S54).
    pub(super) fn decide(
        &self,
        policy: &RetryPolicy,
        execution: ExecutionId,
        error: &StepError,
    ) -> Result<Duration, NotRetried> {
        let (trace, class) = (&self.state.trace, error.class());
        // The wait for this attempt failed, because the engine's clock panicked. Retry policies do not apply
        // to that.
        if trace.next_attempt(execution).is_some() {
            return Err(NotRetried::Clock);
        }
        // Each class has its own count of retries.
        let earlier = trace.counted_attempts(execution).iter().filter(|attempt| attempt.class == class);
        let failed = u32::try_from(earlier.count()).unwrap_or(u32::MAX).saturating_add(1);
        let elapsed = trace.elapsed(execution, self.now);
        let seed = seed(self.run.as_str(), execution, trace.attempt(execution));
        let retry_in = policy.decide_after(class, failed, elapsed, seed, error.least_delay())?;
        // Nothing begins in a run that has ended (S28).
        if self.state.begins_nothing() { Err(NotRetried::RunEnding) } else { Ok(retry_in) }
    }
}

/// The record of a failed attempt that is followed by another. The next one begins with the step's
/// compaction, if the step has one and the input was too large.
pub(super) fn failed_attempt(error: &StepError, retry_in: Duration, has_compaction: bool) -> FailedAttempt {
    let class = error.class();
    let too_large = class == ErrorClass::ContextLimit || error.is_of_compaction();
    let compacts = too_large && has_compaction;
    FailedAttempt { class, error: error.to_string(), retry_in, compacts, redriven: false }
}

/// Ready when the next attempt may begin (S36): after the delay by the engine's clock, and once the children
/// that the failed attempt waited for have ended. Two attempts never work at the same time. `None` if it may
/// begin at once.
pub(super) fn until_next(
    run: &RunShared,
    execution: ExecutionId,
    retry_in: Duration,
) -> Option<BoxFuture<'static, ()>> {
    let ending = run.children.get().map_or_else(Vec::new, |children| children.awaited_by(execution));
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

/// The seed of the jitter: different for each attempt, and the same when the same program runs the same run
/// id again.
fn seed(run: &str, execution: ExecutionId, attempt: u32) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (run, execution.0, attempt).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::retry::Retries;
    use crate::run::bare_run::{BareRun, WRITE};
    use crate::run::state::{Batch, Stop};

    const SECOND: Duration = Duration::from_secs(1);

    /// The decision about the current attempt of `write`, which fails after so many seconds.
    fn decided(run: &BareRun, seconds: u64, class: ErrorClass) -> Result<Duration, NotRetried> {
        let transient = Retries::exponential(2, SECOND);
        let policy = RetryPolicy::none()
            .on(ErrorClass::Transient, transient)
            .on(ErrorClass::Tool, Retries::fixed(1, Duration::ZERO))
            .budget(60 * SECOND);
        let attempts =
            RetryDecision { run: &run.shared.id, state: &run.state, now: Duration::from_secs(seconds) };
        attempts.decide(&policy, WRITE, &StepError::new(class, "busy"))
    }

    /// Another attempt of `write` begins.
    fn attempt(run: &mut BareRun) {
        run.state.trace.attempted_again(WRITE);
    }

    // S35
    #[test]
    fn each_class_of_failure_has_its_own_retries_and_all_have_one_budget() {
        let mut run = BareRun::begun();
        run.state.trace.begin(WRITE, Duration::ZERO);
        assert_eq!(decided(&run, 1, ErrorClass::Permanent), Err(NotRetried::Class));
        for (failed, delay) in [(1, 1), (2, 2)] {
            assert_eq!(decided(&run, failed, ErrorClass::Transient), Ok(delay * SECOND));
            run.apply(failed, BareRun::retried(WRITE, ErrorClass::Transient, SECOND));
            attempt(&mut run);
        }
        assert_eq!(decided(&run, 3, ErrorClass::Transient), Err(NotRetried::UsedUp { retries: 2 }));
        assert_eq!(decided(&run, 3, ErrorClass::Tool), Ok(Duration::ZERO));
        let budget = 60 * SECOND;
        assert_eq!(decided(&run, 61, ErrorClass::Tool), Err(NotRetried::Budget { budget }));
    }

    #[test]
    fn an_attempt_that_fails_before_it_begins_is_the_clocks_failure() {
        let mut run = BareRun::begun();
        run.apply(1, BareRun::retried(WRITE, ErrorClass::Transient, SECOND));
        assert_eq!(decided(&run, 1, ErrorClass::Transient), Err(NotRetried::Clock));
        attempt(&mut run);
        assert!(decided(&run, 1, ErrorClass::Transient).is_ok());
    }

    // S28
    #[test]
    fn an_ended_run_attempts_nothing_again() {
        let mut run = BareRun::begun();
        run.apply(1, Batch::Stopped(Stop::Cancelled));
        assert_eq!(decided(&run, 1, ErrorClass::Transient), Err(NotRetried::RunEnding));
        assert_eq!(decided(&run, 1, ErrorClass::Permanent), Err(NotRetried::Class), "the policy comes first");
    }

    #[test]
    fn the_next_attempt_compacts_where_the_input_was_too_large_and_the_step_can() {
        let too_large = StepError::new(ErrorClass::ContextLimit, "too long");
        assert!(failed_attempt(&too_large, SECOND, true).compacts);
        assert!(!failed_attempt(&too_large, SECOND, false).compacts);
        let failed = failed_attempt(&StepError::tool("busy"), SECOND, true);
        assert_eq!((failed.class, &*failed.error, failed.retry_in), (ErrorClass::Tool, "busy", SECOND));
        assert!(!failed.compacts);
    }

    // S36
    #[test]
    fn only_an_attempt_that_is_to_begin_later_is_waited_for() {
        let run = BareRun::new();
        assert!(until_next(&run.shared, WRITE, Duration::ZERO).is_none());
        // The clock stands still.
        let due = until_next(&run.shared, WRITE, SECOND).expect("it is to begin later");
        assert_eq!(due.now_or_never(), None);
    }

    #[test]
    fn jitter_differs_from_run_to_run_and_attempt_to_attempt_and_is_otherwise_the_same() {
        let first = seed("r", WRITE, 1);
        assert_eq!(first, seed("r", WRITE, 1));
        assert!(
            [seed("s", WRITE, 1), seed("r", ExecutionId(2), 1), seed("r", WRITE, 2)]
                .iter()
                .all(|other| *other != first)
        );
    }
}
