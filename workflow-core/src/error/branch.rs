//! The failure of one branch of a fan-out (S49).

use std::fmt;
use std::sync::Arc;

use super::{FailedIn, StepError};
use crate::id::{ExecutionId, Seq};

/// The failure of a branch.
///
/// `Display` prints the step and the error's whole chain. The error of a run in which branches fail
/// ([`RunError::BranchesFailed`](crate::RunError::BranchesFailed)) prints the item, attempts, execution and class too.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Scan;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Page(u32);
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Text;
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Failures(Vec<String>);
/// # struct Scanner;
/// #[workflow]
/// impl Scanner {
///     #[step]
///     async fn scan(&self, _scan: &Scan) -> FanOut<Page> {
///         FanOut::new(vec![Page(1), Page(2)]).continue_others()
///     }
///
///     #[step]
///     async fn read(&self, page: &Page) -> Result<Text, StepError> {
///         if page.0 == 2 { Err(StepError::rejected("the page is blank")) } else { Ok(Text) }
///     }
///
///     #[step]
///     async fn collect(&self, texts: &Gather<Text>) -> Failures {
///         let failures = texts.failed().filter_map(|branch| branch.failure());
///         Failures(failures.filter_map(|failure| Some(format!("{}: {failure}", failure.item()?))).collect())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), RunError> {
/// let Failures(failures) = Scanner.run(Scan).await?;
/// assert_eq!(
///     failures,
///     ["#3 `Page` of `scan`: step `read` failed: the page is blank"],
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct BranchFailure {
    pub(crate) step: Arc<str>,
    pub(crate) execution: ExecutionId,
    pub(crate) attempts: u32,
    pub(crate) item: Option<BranchItem>,
    pub(crate) error: StepError,
}

/// The item that opened a branch of a fan-out, as errors name it.
///
/// The event itself is at this position in the [report](crate::report::RunReport::log)'s log.
///
/// ```
/// use workflow_core::RunError;
///
/// fn number(error: &RunError) -> Option<u64> {
///     let RunError::StepFailed { item: Some(item), .. } = error else { return None };
///     Some(item.seq.0)
/// }
/// # assert_eq!(number(&RunError::Detached), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BranchItem {
    /// The position of the item.
    pub seq: Seq,
    /// The item's wire name.
    pub event: Arc<str>,
    /// The step that opened the fan-out.
    pub step: Arc<str>,
}

impl fmt::Display for BranchItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}` of `{}`", self.seq, self.event, self.step)
    }
}

impl BranchFailure {
    /// The name of the step that failed.
    pub fn step(&self) -> &str {
        &self.step
    }

    /// The execution that failed.
    pub fn execution(&self) -> ExecutionId {
        self.execution
    }

    /// How many attempts were made: 1 without a retry.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The item of the innermost branch that the execution was in.
    pub fn item(&self) -> Option<&BranchItem> {
        self.item.as_ref()
    }

    /// The error of the step.
    pub fn error(&self) -> &StepError {
        &self.error
    }
}

impl fmt::Display for BranchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step `{}` failed: {}", self.step, self.error)
    }
}

/// A failure with all its facts.
pub(crate) struct WithFacts<'a>(pub(crate) &'a BranchFailure);

impl fmt::Display for WithFacts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BranchFailure { step, execution, attempts, item, error } = self.0;
        let failed = FailedIn(*attempts, item.as_ref());
        write!(f, "step `{step}` failed{failed} ({execution}, {}): {error}", error.class())
    }
}
