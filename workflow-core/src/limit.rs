//! Named limits (S70): how many attempts may run at a time, and how many may begin per time, over all runs of an engine
//! and for each key apart.
//!
//! [`Limit`] is the setting. A [`Limiter`] is a limit at work: it hands out a [`LimitPermit`] for each attempt, at once
//! or as a [`PermitWait`] in the queue of its key. The module knows neither steps nor what a permit is for.
//!
//! ```text
//!             key "ada"   held: r1/x2       queue: r3/x1, r1/x9    (first come, first served)
//! limit ──┬── key "bob"   held: -           queue: -
//!         └── ...         a bucket of tokens each, if the limit has a rate
//! ```
//!
//! # Invariants
//! - A permit goes to the oldest entry of a key's queue, and to nobody past it.
//! - While an entry of a key waits, the key has no free permit, or its bucket has no token: every change of either
//!   hands out the permits that became free ([`key_permits::KeyPermits::grant`]).
//! - A key that nothing uses and whose bucket is full has no memory of its own for long.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::Serialize;

mod bucket;
mod key_permits;
mod limiter;
mod permit_wait;

pub(crate) use key_permits::Requester;
pub(crate) use limiter::{Arrival, LimitPermit, Limiter};
pub(crate) use permit_wait::PermitWait;

/// How many attempts of steps may run at a time, how many may begin per time, or both.
///
/// [`EngineBuilder::limit`](crate::EngineBuilder::limit) gives a limit its name, and `#[step(limit = "name")]` uses it.
/// It holds over all runs of one engine, for each key apart. Engines of other processes have limits of their own.
///
/// ```
/// use std::time::Duration;
/// use workflow_core::Limit;
///
/// let bank = Limit::concurrent(4).rate(10, Duration::from_secs(1));
/// assert_eq!(bank.to_string(), "4 attempts at a time, and 10 per 1s");
/// let mail = Limit::at_rate(100, Duration::from_secs(60));
/// assert_eq!(mail.to_string(), "100 attempts per 60s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limit {
    concurrent: Option<NonZeroU32>,
    rate: Option<Rate>,
}

/// So many attempts per time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Rate {
    count: NonZeroU32,
    per: Duration,
}

impl Limit {
    /// At most this many attempts at a time. 0 counts as 1.
    ///
    /// ```
    /// use workflow_core::Limit;
    ///
    /// assert_eq!(Limit::concurrent(1).to_string(), "1 attempt at a time");
    /// ```
    #[must_use]
    pub const fn concurrent(most: u32) -> Self {
        let most = if most == 0 { 1 } else { most };
        Self { concurrent: NonZeroU32::new(most), rate: None }
    }

    /// At most this many attempts begin per time, however many run at a time. See [`rate`](Self::rate).
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Limit;
    ///
    /// assert_eq!(Limit::at_rate(5, Duration::from_secs(1)).to_string(), "5 attempts per 1s");
    /// ```
    #[must_use]
    pub const fn at_rate(count: u32, per: Duration) -> Self {
        Self { concurrent: None, rate: None }.rate(count, per)
    }

    /// Limits how many attempts begin per time as well.
    ///
    /// The rate is a token bucket on the engine's [clock](crate::EngineBuilder::clock). It holds `count` tokens, is full
    /// when the engine starts, and gets a token each `per / count`. So `count` attempts may begin at once after a quiet
    /// time, and in the long run `count` begin per `per`. A `count` of 0 counts as 1; a `per` of 0 limits nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Limit;
    ///
    /// let both = Limit::concurrent(4).rate(10, Duration::from_secs(1));
    /// assert_ne!(both, Limit::concurrent(4));
    /// ```
    #[must_use]
    pub const fn rate(self, count: u32, per: Duration) -> Self {
        if per.is_zero() {
            return Self { rate: None, ..self };
        }
        let count = match NonZeroU32::new(count) {
            Some(count) => count,
            None => NonZeroU32::MIN,
        };
        Self { rate: Some(Rate { count, per }), ..self }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempts = |count: NonZeroU32| match count.get() {
            1 => "1 attempt".to_owned(),
            count => format!("{count} attempts"),
        };
        match (self.concurrent, self.rate) {
            (Some(most), Some(Rate { count, per })) => {
                write!(f, "{} at a time, and {count} per {per:?}", attempts(most))
            }
            (Some(most), None) => write!(f, "{} at a time", attempts(most)),
            (None, Some(Rate { count, per })) => write!(f, "{} per {per:?}", attempts(count)),
            (None, None) => f.write_str("any number of attempts"),
        }
    }
}

#[cfg(test)]
mod tests;
