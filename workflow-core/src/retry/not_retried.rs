//! The reasons why a failure is final. Journal and observers get them, as they get the delay of a retry.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The reason why no attempt follows a failed one.
///
/// It is part of every failure of an execution: in its trace and its explanation, in observations and in the journal.
///
/// ```
/// use std::time::Duration;
/// use workflow_core::prelude::*;
/// use workflow_core::{Retries, RetryPolicy};
/// use workflow_core::report::{ExecutionOutcome, NotRetried};
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
///     async fn greet(&self, greet: &Greet) -> Result<Greeting, StepError> {
///         Err(StepError::tool("the line is busy"))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Greeter).build()?;
/// let run = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?;
/// let report = run.report().await?;
/// let ExecutionOutcome::Failed { not_retried, .. } = report.trace[0].outcome else { panic!("it failed") };
/// assert_eq!(not_retried, NotRetried::UsedUp { retries: 2 });
/// assert_eq!(not_retried.to_string(), "its 2 retries are used up (`retry`)");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotRetried {
    /// The policy retries no failures of this class.
    Class,
    /// All retries of the policy for this class were made.
    UsedUp {
        /// The number of these retries.
        retries: u32,
    },
    /// The next attempt would begin later than the policy allows for any class.
    Budget {
        /// The latest beginning of an attempt, from the beginning of the first one.
        budget: Duration,
    },
    /// The execution failed after the end of the run, or while its stop event was on the way into the log. A failure of any
    /// class has no consequence then, and is in no journal. Observers learn of it; a report has the execution as dropped.
    RunEnding,
    /// The time of a clean-up step was over, and its execution was dropped.
    CleanUpTime,
    /// The engine's clock panicked during the delay, for example without timers. The attempt never began.
    Clock,
}

impl NotRetried {
    /// Whether the reason adds to the class of the failure.
    pub(crate) fn is_news(self) -> bool {
        self != Self::Class
    }
}

impl fmt::Display for NotRetried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class => f.write_str("failures of its class are not retried"),
            Self::UsedUp { retries: 1 } => f.write_str("its 1 retry is used up (`retry`)"),
            Self::UsedUp { retries } => write!(f, "its {retries} retries are used up (`retry`)"),
            Self::Budget { budget } => {
                write!(f, "its retry budget of {budget:?} is used up (`RetryPolicy::budget`)")
            }
            Self::RunEnding => f.write_str("it is not retried, because the run was ending"),
            Self::CleanUpTime => f.write_str("its time for clean-up is over (`cleanup_within`)"),
            Self::Clock => f.write_str("the engine's clock panicked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_reads_in_a_few_words() {
        let budget = Duration::from_mins(2);
        let all = [
            NotRetried::Class,
            NotRetried::UsedUp { retries: 1 },
            NotRetried::UsedUp { retries: 3 },
            NotRetried::Budget { budget },
            NotRetried::RunEnding,
            NotRetried::CleanUpTime,
            NotRetried::Clock,
        ];
        assert_eq!(
            all.map(|why| why.to_string()),
            [
                "failures of its class are not retried",
                "its 1 retry is used up (`retry`)",
                "its 3 retries are used up (`retry`)",
                "its retry budget of 120s is used up (`RetryPolicy::budget`)",
                "it is not retried, because the run was ending",
                "its time for clean-up is over (`cleanup_within`)",
                "the engine's clock panicked",
            ]
        );
    }
}
