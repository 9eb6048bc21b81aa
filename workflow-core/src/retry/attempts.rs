//! The attempts of an execution that failed and were followed by another, as people are told of them.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::error::ErrorClass;
use crate::explain::{enumerated, times};

/// How many delays are printed; the rest is counted.
const DELAYS: usize = 5;

/// An attempt that failed and is followed by another.
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
    /// What kind of failure.
    pub class: ErrorClass,
    /// The error's text.
    pub error: String,
    /// How long after it the next attempt was to begin.
    pub retry_in: Duration,
    /// Whether the next attempt begins with the step's compaction: what the step works with was too large, and has not
    /// been made smaller since.
    pub compacts: bool,
}

impl fmt::Display for FailedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed ({}): {}; {}", self.class, self.error, after(&[self.retry_in]))
    }
}

/// The attempts in a few words: "failed twice (transient: busy), retried after 10s and 30s".
pub(crate) fn retried(attempts: &[FailedAttempt]) -> String {
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
    format!("failed {} ({}), {}", times(attempts.len() as u64), errors.join("; "), after(&delays))
}

/// When it is tried again.
fn after(delays: &[Duration]) -> String {
    if delays.iter().all(Duration::is_zero) {
        return "retried at once".into();
    }
    let mut texts: Vec<String> = delays.iter().take(DELAYS).map(|delay| format!("{delay:?}")).collect();
    match delays.len().saturating_sub(DELAYS) {
        0 => {}
        more => texts.push(format!("{more} more")),
    }
    format!("retried after {}", enumerated(&texts, "and"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(error: &str, seconds: u64) -> FailedAttempt {
        let retry_in = Duration::from_secs(seconds);
        FailedAttempt { class: ErrorClass::Transient, error: error.into(), retry_in, compacts: false }
    }

    #[test]
    fn errors_that_are_the_same_are_told_once() {
        let text = retried(&[failed("busy", 10), failed("busy", 30)]);
        assert_eq!(text, "failed twice (transient: busy), retried after 10s and 30s");
        let text = retried(&[failed("busy", 0), failed("torn", 0), failed("busy", 0)]);
        assert_eq!(
            text,
            "failed 3 times (transient: busy; transient: torn; transient: busy), retried at once"
        );
    }

    #[test]
    fn many_attempts_are_folded() {
        let attempts: Vec<FailedAttempt> = (0..40).map(|i| failed(&i.to_string(), i)).collect();
        assert_eq!(
            retried(&attempts),
            "failed 40 times (transient: 35; transient: 36; transient: 37; transient: 38; transient: 39), \
             retried after 0ns, 1s, 2s, 3s, 4s and 35 more"
        );
    }
}
