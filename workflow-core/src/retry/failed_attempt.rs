//! The failed attempts of an execution, as reports and explanations show them.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::error::ErrorClass;
use crate::text::{enumerated, times};

/// How many delays are printed. The others are counted.
const DELAYS: usize = 5;

/// A failed attempt that another follows, or was to follow.
///
/// ```
/// use std::time::Duration;
/// use workflow_core::prelude::*;
/// use workflow_core::{ErrorClass, Retries, RetryPolicy};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet { name: String }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeting(String);
/// # struct Greeter;
///
/// #[workflow]
/// impl Greeter {
///     #[step]
///     async fn greet(&self, greet: &Greet, info: &RunInfo) -> Result<Greeting, StepError> {
///         if info.attempt() == 1 {
///             return Err(StepError::tool("the line is busy"));
///         }
///         Ok(Greeting(format!("Hello, {}!", greet.name)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Greeter).build()?;
/// let run = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?;
/// let report = run.report().await?;
/// let failed = &report.trace[0].attempts[0];
/// assert_eq!((failed.class, &*failed.error), (ErrorClass::Tool, "the line is busy"));
/// assert_eq!(failed.retry_in, Duration::ZERO);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// The class of the failure.
    pub class: ErrorClass,
    /// The error's text.
    pub error: String,
    /// The delay between it and the next attempt. Zero before a redrive.
    pub retry_in: Duration,
    /// Whether the next attempt begins with the step's compaction: the input was too large, or an earlier compaction
    /// failed.
    pub compacts: bool,
    /// Whether the run ended after it, so that the next attempt begins with a [redrive](crate::Engine::redrive).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redriven: bool,
}

impl FailedAttempt {
    /// The next attempt, with `to` before the verb.
    fn to_come(&self, to: &str) -> String {
        if self.redriven {
            format!("{to} begin anew with a redrive")
        } else {
            format!("{to} be retried {}", after(&[self.retry_in]))
        }
    }

    /// The failure for which the run ended, if the execution begins anew with a redrive.
    pub(crate) fn before_redrive(class: ErrorClass, error: String) -> Self {
        Self { class, error, retry_in: Duration::ZERO, compacts: false, redriven: true }
    }
}

impl fmt::Display for FailedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed ({}): {}; {}", self.class, self.error, self.to_come("to"))
    }
}

/// Whether the attempt after the last failed one has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextAttempt {
    Began,
    /// The execution waits for it.
    Due,
    /// The execution ended before it began.
    NeverCame,
}

/// The attempts in a few words: "failed twice (transient: busy), retried after 10s and 30s".
pub(crate) fn tried(attempts: &[FailedAttempt], next: NextAttempt) -> String {
    let mut errors: Vec<String> = Vec::new();
    for FailedAttempt { class, error, .. } in attempts {
        let text = format!("{class}: {error}");
        if errors.last() != Some(&text) {
            errors.push(text);
        }
    }
    let more = errors.len().saturating_sub(DELAYS);
    errors.drain(..more);
    let failed = format!("failed {} ({})", times(attempts.len() as u64), errors.join("; "));
    failed + &retries(attempts, next)
}

/// The attempts that followed, and the one that was to follow.
fn retries(attempts: &[FailedAttempt], next: NextAttempt) -> String {
    let (to_come, made) = match (next, attempts.split_last()) {
        (NextAttempt::Due, Some((last, made))) => (Some(last.to_come("to")), made),
        (NextAttempt::NeverCame, Some((last, made))) => (Some(last.to_come("was to")), made),
        _ => (None, attempts),
    };
    let delays: Vec<Duration> =
        made.iter().filter(|attempt| !attempt.redriven).map(|attempt| attempt.retry_in).collect();
    let retried = (!delays.is_empty()).then(|| format!("retried {}", after(&delays)));
    let anew = (delays.len() < made.len()).then(|| "begun anew with a redrive".to_owned());
    [retried, anew, to_come].into_iter().flatten().fold(String::new(), |text, part| text + ", " + &part)
}

/// The delays before them.
fn after(delays: &[Duration]) -> String {
    if delays.iter().all(Duration::is_zero) {
        return "at once".into();
    }
    let mut texts: Vec<String> = delays.iter().take(DELAYS).map(|delay| format!("{delay:?}")).collect();
    match delays.len().saturating_sub(DELAYS) {
        0 => {}
        more => texts.push(format!("{more} more")),
    }
    format!("after {}", enumerated(&texts, "and"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(error: &str, seconds: u64) -> FailedAttempt {
        let retry_in = Duration::from_secs(seconds);
        let class = ErrorClass::Transient;
        FailedAttempt { class, error: error.into(), retry_in, compacts: false, redriven: false }
    }

    #[test]
    fn equal_errors_are_named_once() {
        let text = tried(&[failed("busy", 10), failed("busy", 30)], NextAttempt::Began);
        assert_eq!(text, "failed twice (transient: busy), retried after 10s and 30s");
        let text = tried(&[failed("busy", 0), failed("torn", 0), failed("busy", 0)], NextAttempt::Began);
        assert_eq!(
            text,
            "failed 3 times (transient: busy; transient: torn; transient: busy), retried at once"
        );
    }

    #[test]
    fn a_retry_counts_once_it_starts() {
        let (once, twice) = ([failed("busy", 10)], [failed("busy", 10), failed("busy", 0)]);
        assert_eq!(tried(&once, NextAttempt::Due), "failed once (transient: busy), to be retried after 10s");
        assert_eq!(
            tried(&twice, NextAttempt::NeverCame),
            "failed twice (transient: busy), retried after 10s, was to be retried at once"
        );
        assert_eq!(once[0].to_string(), "failed (transient): busy; to be retried after 10s");
    }

    #[test]
    fn an_attempt_that_begins_with_a_redrive_is_no_retry() {
        let ended = || FailedAttempt::before_redrive(ErrorClass::Transient, "busy".into());
        assert_eq!(
            tried(&[failed("busy", 10), ended()], NextAttempt::Began),
            "failed twice (transient: busy), retried after 10s, begun anew with a redrive"
        );
        assert_eq!(
            tried(&[ended(), failed("busy", 10)], NextAttempt::Due),
            "failed twice (transient: busy), begun anew with a redrive, to be retried after 10s"
        );
        assert_eq!(ended().to_string(), "failed (transient): busy; to begin anew with a redrive");
    }

    #[test]
    fn many_attempts_are_folded() {
        let attempts: Vec<FailedAttempt> = (0..40).map(|i| failed(&i.to_string(), i)).collect();
        assert_eq!(
            tried(&attempts, NextAttempt::Began),
            "failed 40 times (transient: 35; transient: 36; transient: 37; transient: 38; transient: 39), \
             retried after 0ns, 1s, 2s, 3s, 4s and 35 more"
        );
    }
}
