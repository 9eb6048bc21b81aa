//! Decisions about failed attempts: another attempt after a delay, or the reason for none. A decision is data. The run
//! waits for the delay and begins the attempt.
//!
//! There is no clock and no runtime here: the same policy, failure and seed always give the same delay (S36).

use std::time::Duration;

use crate::error::ErrorClass;

mod failed_attempt;
mod not_retried;
mod retries;
mod rules;

pub use failed_attempt::FailedAttempt;
pub use not_retried::NotRetried;
pub use retries::Retries;

pub(crate) use failed_attempt::{NextAttempt, tried};
pub(crate) use rules::Rules;

/// A policy for retries: by the class of a failure, how many and after which delays.
///
/// An engine has one for all steps ([`EngineBuilder::retry`](crate::EngineBuilder::retry)), and a step may have one of
/// its own: `#[step(retry = RetryPolicy::none())]`. All attempts are one execution: they get the same events, and a
/// failed attempt leaves nothing in the log.
///
/// ```
/// use std::time::Duration;
/// use workflow_core::{ErrorClass, Retries, RetryPolicy};
///
/// let policy = RetryPolicy::standard()
///     .on(ErrorClass::Transient, Retries::exponential(5, Duration::from_millis(200)).jitter(0.5))
///     .budget(Duration::from_mins(2));
/// let delay = policy.retry_in(ErrorClass::Transient, 2, Duration::from_secs(1), 7);
/// assert!((200..=400).contains(&delay.unwrap().as_millis()));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a policy does nothing until an engine or a step has it"]
pub struct RetryPolicy {
    transient: Retries,
    tool: Retries,
    model: Retries,
    /// `None` if it depends on whether the step has a compaction.
    context_limit: Option<Retries>,
    permanent: Retries,
    rejected: Retries,
    budget: Option<Duration>,
}

impl RetryPolicy {
    /// The default of every engine:
    ///
    /// | class | retries |
    /// |---|---|
    /// | `transient` | 3, after 10 s, 30 s and 90 s |
    /// | `tool` | 2, at once |
    /// | `model` | 1, after 10 s |
    /// | `context_limit` | 1, at once, of a step with a compaction, `#[step(compact = shorten)]`; else none |
    /// | `permanent`, `rejected` | none |
    ///
    /// An input that exceeds a model's context exceeds it again, unless a compaction makes it smaller.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::{ErrorClass, RetryPolicy};
    ///
    /// let delay = |failed| RetryPolicy::standard().retry_in(ErrorClass::Transient, failed, Duration::ZERO, 0);
    /// let seconds = [1, 2, 3, 4].map(|failed| delay(failed).map(|delay| delay.as_secs()));
    /// assert_eq!(seconds, [Some(10), Some(30), Some(90), None]);
    /// ```
    pub const fn standard() -> Self {
        const TRANSIENT: &[Duration] =
            &[Duration::from_secs(10), Duration::from_secs(30), Duration::from_secs(90)];
        Self {
            transient: Retries::preset(TRANSIENT),
            tool: Retries::fixed(2, Duration::ZERO),
            model: Retries::fixed(1, Duration::from_secs(10)),
            context_limit: None,
            permanent: Retries::none(),
            rejected: Retries::none(),
            budget: None,
        }
    }

    /// No retries, also for steps with a compaction. To call the compaction, add `.on(ErrorClass::ContextLimit,
    /// Retries::fixed(1, Duration::ZERO))`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::{ErrorClass, RetryPolicy};
    ///
    /// assert_eq!(RetryPolicy::none().retry_in(ErrorClass::Transient, 1, Duration::ZERO, 0), None);
    /// ```
    pub const fn none() -> Self {
        Self {
            transient: Retries::none(),
            tool: Retries::none(),
            model: Retries::none(),
            context_limit: Some(Retries::none()),
            permanent: Retries::none(),
            rejected: Retries::none(),
            budget: None,
        }
    }

    /// Sets the retries of one class. Other classes stay unchanged. No retry follows
    /// [`Interrupted`](ErrorClass::Interrupted) and [`InDoubt`](ErrorClass::InDoubt), whatever is set for them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::{ErrorClass, Retries, RetryPolicy};
    ///
    /// let policy = RetryPolicy::none().on(ErrorClass::Model, Retries::fixed(1, Duration::from_secs(5)));
    /// let delay = |class| policy.retry_in(class, 1, Duration::ZERO, 0);
    /// assert_eq!(delay(ErrorClass::Model), Some(Duration::from_secs(5)));
    /// assert_eq!(delay(ErrorClass::Tool), None);
    /// ```
    pub fn on(mut self, class: ErrorClass, retries: Retries) -> Self {
        *match class {
            ErrorClass::Transient => &mut self.transient,
            ErrorClass::Tool => &mut self.tool,
            ErrorClass::Model => &mut self.model,
            ErrorClass::ContextLimit => self.context_limit.insert(Retries::none()),
            ErrorClass::Permanent => &mut self.permanent,
            ErrorClass::Rejected => &mut self.rejected,
            ErrorClass::Interrupted | ErrorClass::InDoubt => return self,
        } = retries;
        self
    }

    /// Sets the latest time of a retry, from the beginning of the first attempt, for all classes.
    ///
    /// A delay that would end later is not begun. Running attempts are not interrupted: use `#[step(timeout = "30s")]`
    /// for that.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::{ErrorClass, RetryPolicy};
    ///
    /// let policy = RetryPolicy::standard().budget(Duration::from_secs(60));
    /// let delay = |after| policy.retry_in(ErrorClass::Transient, 2, Duration::from_secs(after), 0);
    /// assert_eq!(delay(30), Some(Duration::from_secs(30)));
    /// assert_eq!(delay(31), None);
    /// ```
    pub const fn budget(mut self, most: Duration) -> Self {
        self.budget = Some(most);
        self
    }

    /// The delay before the next attempt after a failure; `None` for no attempt. A function of its arguments alone.
    ///
    /// `failed` counts the execution's failures of this class, including the last one, so each class has its own
    /// retries. `elapsed` is the time since the first attempt began, and `seed` determines the jitter. The result is
    /// for a step without a compaction.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::{ErrorClass, RetryPolicy};
    ///
    /// let delay = |failed| RetryPolicy::standard().retry_in(ErrorClass::Tool, failed, Duration::ZERO, 0);
    /// assert_eq!([1, 2, 3].map(delay), [Some(Duration::ZERO), Some(Duration::ZERO), None]);
    /// ```
    pub fn retry_in(&self, class: ErrorClass, failed: u32, elapsed: Duration, seed: u64) -> Option<Duration> {
        self.decide(class, failed, elapsed, seed).ok()
    }

    /// The delay before the next attempt, or the reason for none.
    ///
    /// Journal and observers get either. A run that is ending overrules the policy, with [`NotRetried::RunEnding`].
    ///
    /// # Errors
    /// The reason: the class, used-up retries, or the budget.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::{ErrorClass, RetryPolicy};
    /// use workflow_core::report::NotRetried;
    ///
    /// let budget = Duration::from_mins(1);
    /// let policy = RetryPolicy::standard().budget(budget);
    /// let decide = |class, failed, after| policy.decide(class, failed, Duration::from_secs(after), 0);
    /// assert_eq!(decide(ErrorClass::Transient, 2, 30), Ok(Duration::from_secs(30)));
    /// assert_eq!(decide(ErrorClass::Transient, 2, 31), Err(NotRetried::Budget { budget }));
    /// assert_eq!(decide(ErrorClass::Tool, 3, 0), Err(NotRetried::UsedUp { retries: 2 }));
    /// assert_eq!(decide(ErrorClass::Permanent, 1, 0), Err(NotRetried::Class));
    /// ```
    pub fn decide(
        &self,
        class: ErrorClass,
        failed: u32,
        elapsed: Duration,
        seed: u64,
    ) -> Result<Duration, NotRetried> {
        self.decide_after(class, failed, elapsed, seed, Duration::ZERO)
    }

    /// The decision for an error that asks for a delay of at least `least` (S54).
    pub(crate) fn decide_after(
        &self,
        class: ErrorClass,
        failed: u32,
        elapsed: Duration,
        seed: u64,
        least: Duration,
    ) -> Result<Duration, NotRetried> {
        let retries = self.of(class);
        let Some(delay) = retries.delay(failed, seed) else { return Err(retries.over()) };
        let delay = delay.max(least);
        match self.budget {
            Some(budget) if elapsed.saturating_add(delay) > budget => Err(NotRetried::Budget { budget }),
            _ => Ok(delay),
        }
    }

    /// How long an execution takes at the most that uses up the retries of every class, if an attempt takes this long.
    pub(crate) fn longest(&self, attempt: Duration) -> Duration {
        let Self { transient, tool, model, context_limit, permanent, rejected, budget } = self;
        let classes = [transient, tool, model, permanent, rejected].into_iter().chain(context_limit);
        let (retries, delays) = classes.map(Retries::longest).fold((0_u32, Duration::ZERO), |all, class| {
            (all.0.saturating_add(class.0), all.1.saturating_add(class.1))
        });
        let all = attempt.saturating_mul(retries.saturating_add(1)).saturating_add(delays);
        // The last attempt begins within the budget.
        budget.map_or(all, |budget| all.min(budget.saturating_add(attempt)))
    }

    /// Adds one immediate retry for `context_limit`, unless the policy sets its own: for a step with a compaction.
    pub(crate) fn compacting(mut self) -> Self {
        self.context_limit.get_or_insert(Retries::fixed(1, Duration::ZERO));
        self
    }

    fn of(&self, class: ErrorClass) -> &Retries {
        const NEVER: &Retries = &Retries::none();
        match class {
            ErrorClass::Transient => &self.transient,
            ErrorClass::Tool => &self.tool,
            ErrorClass::Model => &self.model,
            ErrorClass::ContextLimit => self.context_limit.as_ref().unwrap_or(NEVER),
            ErrorClass::Permanent => &self.permanent,
            ErrorClass::Rejected => &self.rejected,
            ErrorClass::Interrupted | ErrorClass::InDoubt => NEVER,
        }
    }
}

impl Default for RetryPolicy {
    /// [`standard`](Self::standard).
    fn default() -> Self {
        Self::standard()
    }
}
