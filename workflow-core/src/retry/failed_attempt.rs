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
    /// The delay between it and the next attempt. Zero if the next attempt began with a
    /// [redrive](crate::Engine::redrive).
    pub retry_in: Duration,
    /// Whether the next attempt begins with the step's compaction: the input was too large, or an earlier compaction
    /// failed.
    pub compacts: bool,
}

impl FailedAttempt {
    /// The failure for which the run ended, if the execution begins anew with a redrive.
    pub(crate) fn before_redrive(class: ErrorClass, error: String) -> Self {
        Self { class, error, retry_in: Duration::ZERO, compacts: false }
    }
}

impl fmt::Display for FailedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed ({}): {}; to be retried {}", self.class, self.error, after(&[self.retry_in]))
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
    let delays: Vec<Duration> = attempts.iter().map(|attempt| attempt.retry_in).collect();
    let failed = format!("failed {} ({})", times(attempts.len() as u64), errors.join("; "));
    failed + &retries(&delays, next)
}

/// The attempts that followed, and the one that was to follow.
fn retries(delays: &[Duration], next: NextAttempt) -> String {
    let (last, before) = delays.split_last().map_or((None, delays), |(last, before)| (Some(*last), before));
    let (made, to_come) = match (next, last) {
        (NextAttempt::Due, Some(last)) => (before, format!(", to be retried {}", after(&[last]))),
        (NextAttempt::NeverCame, Some(last)) => (before, format!(", was to be retried {}", after(&[last]))),
        _ => (delays, String::new()),
    };
    if made.is_empty() { to_come } else { format!(", retried {}{to_come}", after(made)) }
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
        FailedAttempt { class: ErrorClass::Transient, error: error.into(), retry_in, compacts: false }
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
    fn many_attempts_are_folded() {
        let attempts: Vec<FailedAttempt> = (0..40).map(|i| failed(&i.to_string(), i)).collect();
        assert_eq!(
            tried(&attempts, NextAttempt::Began),
            "failed 40 times (transient: 35; transient: 36; transient: 37; transient: 38; transient: 39), \
             retried after 0ns, 1s, 2s, 3s, 4s and 35 more"
        );
    }
}
