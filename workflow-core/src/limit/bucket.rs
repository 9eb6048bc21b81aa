//! A token bucket in whole numbers, so that no rate drifts.
//!
//! The level counts nanoseconds times the rate's count: a token is worth `per` nanoseconds, and each nanosecond adds
//! `count`. A full bucket holds `count` tokens.

use std::time::{Duration, SystemTime};

use super::Rate;

/// The tokens of one key.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: Rate,
    /// At most that of a full bucket.
    level: u128,
    /// The time of the level.
    at: SystemTime,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn full(rate: Rate, now: SystemTime) -> Self {
        Self { rate, level: Self::most(rate), at: now }
    }

    fn most(rate: Rate) -> u128 {
        u128::from(rate.count.get()) * rate.per.as_nanos()
    }

    /// Brings the level up to date. A clock that was set back adds nothing, and counts from there.
    fn fill(&mut self, now: SystemTime) {
        let passed = now.duration_since(self.at).unwrap_or_default();
        let gained = passed.as_nanos().saturating_mul(u128::from(self.rate.count.get()));
        self.level = self.level.saturating_add(gained).min(Self::most(self.rate));
        self.at = now;
    }

    /// Takes a token, if there is one.
    ///
    /// # Errors
    /// The time at which there is one, if nobody takes it before; `None` if that is beyond the clock's range.
    pub(super) fn take(&mut self, now: SystemTime) -> Result<(), Option<SystemTime>> {
        self.fill(now);
        let token = self.rate.per.as_nanos();
        if self.level >= token {
            self.level -= token;
            return Ok(());
        }
        let nanos = (token - self.level).div_ceil(u128::from(self.rate.count.get()));
        let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        let wait = u64::try_from(seconds).ok().zip(u32::try_from(rest).ok());
        let wait = wait.map(|(seconds, rest)| Duration::new(seconds, rest));
        Err(wait.and_then(|wait| now.checked_add(wait)))
    }

    /// Puts a token back that was not used.
    pub(super) fn put_back(&mut self) {
        let token = self.rate.per.as_nanos();
        self.level = self.level.saturating_add(token).min(Self::most(self.rate));
    }

    /// Whether nothing was taken that has not come back.
    pub(super) fn is_full(&mut self, now: SystemTime) -> bool {
        self.fill(now);
        self.level == Self::most(self.rate)
    }
}
