//! The error of a step: its class and its source.

use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::SharedError;
use super::cause::Cause;
use super::chain::chain;
use crate::text::bounded;

/// The class of an error, which retry policies use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorClass {
    /// Likely to succeed later: a timeout, a lost connection.
    Transient,
    /// An error of a tool that the step called.
    Tool,
    /// An unusable answer of a model.
    Model,
    /// The input does not fit a model's context.
    ContextLimit,
    /// Certain to fail again. The default of an error without a class.
    #[default]
    Permanent,
    /// Refused on purpose: by a person, a policy or a guard.
    Rejected,
    /// Processes ended under the attempts of the execution. Never retried. See
    /// [`max_interrupted_attempts`](crate::EngineBuilder::max_interrupted_attempts).
    Interrupted,
    /// Whether the effect of an `at_most_once` step happened is unknown. Never retried: a catching step can ask a person.
    InDoubt,
}

impl ErrorClass {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Tool => "tool",
            Self::Model => "model",
            Self::ContextLimit => "context_limit",
            Self::Permanent => "permanent",
            Self::Rejected => "rejected",
            Self::Interrupted => "interrupted",
            Self::InDoubt => "in_doubt",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The prefix of a compaction's error text.
pub(super) const COMPACTING: &str = "while compacting: ";

/// The error of an execution: a class and the error itself.
///
/// Everything that converts into a `Box<dyn Error + Send + Sync>` converts with `?`: any [`std::error::Error`], such a
/// box, an `anyhow::Error`, a report of `eyre`, and text. It is then [`ErrorClass::Permanent`], unless the engine has a
/// [classifier](crate::EngineBuilder::classify) for its type. Because of that conversion, this type cannot implement
/// `Error` itself. Clones share the source.
///
/// `Display` prints the error and its sources as [`chain`](crate::errors::chain) does. So do the errors and reports of
/// runs, and their journals store this text.
///
/// ```
/// use workflow_core::{ErrorClass, StepError};
///
/// fn parse(text: &str) -> Result<u32, StepError> {
///     if text.is_empty() {
///         return Err("there is no number")?;
///     }
///     Ok(text.parse::<u32>()?)
/// }
/// assert_eq!(parse("x").unwrap_err().class(), ErrorClass::Permanent);
/// assert_eq!(parse("").unwrap_err().to_string(), "there is no number");
/// assert_eq!(StepError::transient("the index is locked").to_string(), "the index is locked");
/// ```
#[derive(Clone)]
pub struct StepError {
    /// `None` if it was converted by `?`.
    class: Option<ErrorClass>,
    source: Cause,
    /// Whether the compaction failed, before the step was called again.
    in_compaction: bool,
    /// Whether the key at the step's limit could not be made, so that the step was not called.
    in_limit_key: bool,
    /// The least delay before the next attempt, in milliseconds.
    retry_after: u32,
}

/// The longest delay that an error can ask for, in milliseconds: 24 hours.
const LONGEST_RETRY_AFTER: u32 = 24 * 60 * 60 * 1_000;

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident $class:ident),+ $(,)?) => {
        $(
            $(#[$doc])*
            pub fn $name(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
                Self::new(ErrorClass::$class, error)
            }
        )+
    };
}

impl StepError {
    /// An error of this class. A text is an error too.
    pub fn new(class: ErrorClass, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { class: Some(class), ..Self::of(Cause::new(error.into())) }
    }

    /// An error out of a report that owns it: an `anyhow::Error`, a report of `eyre`, an `Arc<dyn Error + Send + Sync>`.
    ///
    /// It is unclassified, as after `?`. A report that converts by `?` may hide the type of its outermost error. Here
    /// that stays known, so [`source_as`](Self::source_as) and [classifiers](crate::EngineBuilder::classify) find it.
    ///
    /// ```
    /// use std::{fmt, num::ParseIntError};
    /// use workflow_core::StepError;
    ///
    /// fn parse(text: &str) -> anyhow::Result<u32> {
    ///     Ok(text.parse()?)
    /// }
    /// let error = parse("x").map_err(StepError::from_report).unwrap_err();
    /// assert!(error.source_as::<ParseIntError>().is_some() && !error.is_classified());
    /// assert!(error.source_as::<fmt::Error>().is_none());
    /// ```
    pub fn from_report<R>(report: R) -> Self
    where
        R: Deref<Target = dyn Error + Send + Sync> + Send + Sync + 'static,
    {
        Self::of(Cause::new(report))
    }

    /// The same error with this class.
    pub(crate) fn of_class(&self, class: ErrorClass) -> Self {
        Self { class: Some(class), ..self.clone() }
    }

    /// The same error, as that of a step's compaction.
    pub(crate) fn of_compaction(self) -> Self {
        Self { in_compaction: true, ..self }
    }

    /// Lets the next attempt begin no sooner than after this delay, for example the one that a service names in
    /// `Retry-After`. At most 24 hours; whole milliseconds, rounded up.
    ///
    /// The step's [retry policy](crate::RetryPolicy) still decides whether there is a next attempt, and the longer of
    /// both delays counts, also against the policy's budget. The class stays as it is: an error without one is permanent,
    /// and is not retried at all.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// use workflow_core::RunOptions;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Ask;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer { attempts: u32 }
    /// # struct Asker;
    ///
    /// #[workflow]
    /// impl Asker {
    ///     #[step]
    ///     async fn ask(&self, ask: &Ask, info: &RunInfo) -> Result<Answer, StepError> {
    ///         if info.attempt() == 1 {
    ///             return Err(StepError::tool("429 Too Many Requests").retry_after(Duration::from_millis(20)));
    ///         }
    ///         Ok(Answer { attempts: info.attempt() })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Asker).build()?;
    /// let run = engine.start::<Asker>(Ask).await?;
    /// assert_eq!(run.outcome().await?, Answer { attempts: 2 });
    /// assert_eq!(run.report().await?.trace[0].attempts[0].retry_in, Duration::from_millis(20));
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry_after(self, delay: Duration) -> Self {
        let millis = delay.as_nanos().div_ceil(1_000_000);
        let retry_after =
            u32::try_from(millis).map_or(LONGEST_RETRY_AFTER, |millis| millis.min(LONGEST_RETRY_AFTER));
        Self { retry_after, ..self }
    }

    /// The least delay before the next attempt; zero unless the error asks for one.
    pub(crate) fn least_delay(&self) -> Duration {
        Duration::from_millis(self.retry_after.into())
    }

    fn of(source: Cause) -> Self {
        Self { class: None, source, in_compaction: false, in_limit_key: false, retry_after: 0 }
    }

    /// Whether the step's compaction (`#[step(compact = …)]`) failed, before the step was called again.
    ///
    /// The text of such an error begins with `while compacting:`. The error itself is the compaction's.
    ///
    /// ```
    /// use workflow_core::StepError;
    ///
    /// assert!(!StepError::context_limit("too long").is_of_compaction());
    /// ```
    pub fn is_of_compaction(&self) -> bool {
        self.in_compaction
    }

    /// The same error, as that of the key at the step's limit.
    pub(crate) fn of_limit_key(self) -> Self {
        Self { in_limit_key: true, ..self }
    }

    /// Whether the attempt failed before its step was called.
    pub(crate) fn is_before_step(&self) -> bool {
        self.in_compaction || self.in_limit_key
    }

    constructors! {
        /// Likely to succeed later.
        transient Transient,
        /// An error of a tool.
        tool Tool,
        /// An unusable answer of a model.
        model Model,
        /// The input does not fit a model's context.
        context_limit ContextLimit,
        /// Certain to fail again.
        permanent Permanent,
        /// Refused on purpose.
        rejected Rejected,
    }

    /// The class; [`ErrorClass::Permanent`] by default.
    pub fn class(&self) -> ErrorClass {
        self.class.unwrap_or_default()
    }

    /// Whether the error has a class of its own. An error that was converted by `?` gets one only from a
    /// [classifier](crate::EngineBuilder::classify).
    ///
    /// ```
    /// use workflow_core::StepError;
    ///
    /// assert!(StepError::tool("no answer").is_classified());
    /// assert!(!StepError::from(std::fmt::Error).is_classified());
    /// ```
    pub fn is_classified(&self) -> bool {
        self.class.is_some()
    }

    /// The error itself.
    pub fn source(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.source.error()
    }

    /// The error itself, if it is an `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.source.error().downcast_ref()
    }

    /// The first `E` among the error and its sources. O(sources).
    ///
    /// ```
    /// use std::io;
    /// use workflow_core::StepError;
    ///
    /// #[derive(Debug, thiserror::Error)]
    /// #[error("cannot read the page")]
    /// struct NoPage { source: io::Error }
    ///
    /// let error = StepError::from(NoPage { source: io::Error::other("the disk is gone") });
    /// assert_eq!(error.to_string(), "cannot read the page: the disk is gone");
    /// assert!(error.source_as::<io::Error>().is_some());
    /// ```
    pub fn source_as<E: Error + 'static>(&self) -> Option<&E> {
        self.source.find()
    }

    pub(super) fn cause(&self) -> Cause {
        self.source.clone()
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::of(Cause::new(error.into()))
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = chain(self.source.error());
        f.write_str(&if self.in_compaction { bounded(COMPACTING.to_owned() + &text) } else { text })
    }
}

impl fmt::Debug for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepError")
            .field("class", &self.class())
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// An attempt exceeded its step's timeout: the source of a transient [`StepError`].
///
/// ```
/// use std::time::Duration;
/// use workflow_core::prelude::*;
/// use workflow_core::RetryPolicy;
/// use workflow_core::errors::TimedOut;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Ask;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Answer;
/// # struct Asker;
///
/// #[workflow]
/// impl Asker {
///     #[step(timeout = "20ms", retry = RetryPolicy::none())]
///     async fn ask(&self, ask: &Ask) -> Answer {
///         std::future::pending().await
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let Err(RunError::StepFailed { source, .. }) = Asker.run(Ask).await else { panic!("it never answers") };
/// assert_eq!(source.downcast_ref::<TimedOut>().unwrap().after, Duration::from_millis(20));
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it took longer than {after:?}, the `timeout` of its step")]
#[non_exhaustive]
pub struct TimedOut {
    /// The timeout.
    pub after: Duration,
}

/// Processes ended under the attempts of an execution: the source of an error of class
/// [`Interrupted`](ErrorClass::Interrupted).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the process ended under {attempts} of its attempts (`max_interrupted_attempts`)")]
#[non_exhaustive]
pub struct Interrupted {
    /// How many attempts were interrupted.
    pub attempts: u32,
}

impl Interrupted {
    pub(crate) fn after(attempts: u32) -> StepError {
        StepError::new(ErrorClass::Interrupted, Self { attempts })
    }
}

/// An attempt of a step with `at_most_once` may have had its effect, and is not made again: the source of an error of
/// class [`InDoubt`](ErrorClass::InDoubt).
///
/// ```
/// use workflow_core::errors::InDoubt;
/// use workflow_core::prelude::*;
/// use workflow_core::{ErrorClass, StepFailed};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Pay { cents: u64 }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # enum Paid { Yes, AskedForHelp }
/// # struct Desk;
///
/// #[workflow]
/// impl Desk {
///     #[step(at_most_once, timeout = "20ms")]
///     async fn pay(&self, pay: &Pay) -> Paid {
///         std::future::pending().await // the bank does not answer
///     }
///
///     #[step(catches = [pay])]
///     async fn ask(&self, failed: &StepFailed) -> Paid {
///         assert_eq!(failed.class, ErrorClass::InDoubt);
///         assert!(failed.source_as::<InDoubt>().is_some());
///         Paid::AskedForHelp
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// assert_eq!(Desk.run(Pay { cents: 7 }).await.unwrap(), Paid::AskedForHelp);
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InDoubt {
    /// An earlier process may have begun the attempt.
    #[error("an earlier process may have begun its attempt (`at_most_once`)")]
    Begun,
    /// The attempt ended without an answer of the step that the run could take: it timed out or panicked, or the run
    /// refused its events.
    #[error("its attempt may have had an effect (`at_most_once`)")]
    Unanswered {
        /// Why there is no answer.
        source: SharedError,
    },
}

impl InDoubt {
    /// The error of an attempt that is not made.
    pub(crate) fn begun() -> StepError {
        StepError::new(ErrorClass::InDoubt, Self::Begun)
    }

    /// The error of an attempt that ended with this one, which the step did not return.
    pub(crate) fn after(error: &StepError) -> StepError {
        StepError::new(ErrorClass::InDoubt, Self::Unanswered { source: SharedError::of(error) })
    }
}

impl TimedOut {
    pub(crate) fn after(after: Duration) -> StepError {
        StepError::transient(Self { after })
    }
}
