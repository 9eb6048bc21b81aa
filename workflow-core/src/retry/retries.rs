//! The number of retries and their delays.
//!
//! No backoff crate is used. `backon` and `backoff` count the attempts, draw their own jitter, and serve a loop that
//! sleeps in between. Here a delay is a function of policy, failures and seed. It needs no clock, is computed for every
//! failure, and its result is journaled.

use std::borrow::Cow;
use std::time::Duration;

use super::NotRetried;

/// The longest delay: a century. A later time may be out of a clock's range.
const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// The most retries of one class.
const MOST: u32 = 10_000;

/// The number of retries for one class of failures, and their delays.
///
/// At most 10,000, because a run stores the reason of each failure. A delay begins at the end of the failed attempt.
/// [`jitter`](Self::jitter) only shortens it, so no delay is longer than written here.
///
/// ```
/// use std::time::Duration;
/// use workflow_core::Retries;
///
/// let second = Duration::from_secs(1);
/// let often = Retries::exponential(8, second).factor(3.0).cap(20 * second);
/// let delays = [1, 2, 3, 4, 8, 9].map(|failed| often.delay(failed, 0).map(|delay| delay.as_secs()));
/// assert_eq!(delays, [Some(1), Some(3), Some(9), Some(20), Some(20), None]);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "retries do nothing until a policy has them"]
pub struct Retries {
    times: u32,
    delays: Delays,
    cap: Duration,
    /// Between 0 and 1.
    jitter: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Delays {
    Fixed(Duration),
    Listed(Cow<'static, [Duration]>),
    /// The factor is at least 1.
    Exponential {
        first: Duration,
        factor: f64,
    },
}

impl Retries {
    /// No retry.
    ///
    /// ```
    /// assert_eq!(workflow_core::Retries::none().delay(1, 0), None);
    /// ```
    pub const fn none() -> Self {
        Self::new(0, Delays::Fixed(Duration::ZERO))
    }

    /// So many retries, each after the same delay, which may be zero.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Retries;
    ///
    /// let twice = Retries::fixed(2, Duration::from_secs(5));
    /// assert_eq!([1, 2, 3].map(|failed| twice.delay(failed, 0).is_some()), [true, true, false]);
    /// ```
    pub const fn fixed(times: u32, delay: Duration) -> Self {
        Self::new(times, Delays::Fixed(delay))
    }

    /// One retry for each of these delays, in this order.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Retries;
    ///
    /// let listed = Retries::listed([1, 60].map(Duration::from_secs));
    /// assert_eq!(listed.delay(2, 0), Some(Duration::from_mins(1)));
    /// assert_eq!(listed.delay(3, 0), None);
    /// ```
    pub fn listed(delays: impl IntoIterator<Item = Duration>) -> Self {
        let delays: Vec<Duration> = delays.into_iter().collect();
        let times = u32::try_from(delays.len()).unwrap_or(u32::MAX);
        Self::new(times, Delays::Listed(Cow::Owned(delays)))
    }

    /// So many retries with growing delays. The first delay is `first`, and each later one twice the previous, or times
    /// another [`factor`](Self::factor).
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Retries;
    ///
    /// let growing = Retries::exponential(3, Duration::from_millis(100));
    /// let delays = [1, 2, 3].map(|failed| growing.delay(failed, 0).unwrap().as_millis());
    /// assert_eq!(delays, [100, 200, 400]);
    /// ```
    pub const fn exponential(times: u32, first: Duration) -> Self {
        Self::new(times, Delays::Exponential { first, factor: 2.0 })
    }

    const fn new(times: u32, delays: Delays) -> Self {
        let times = if times < MOST { times } else { MOST };
        Self { times, delays, cap: LONGEST, jitter: 0.0 }
    }

    /// [`listed`](Self::listed) at compile time.
    pub(super) const fn preset(delays: &'static [Duration]) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a preset is written down, delay by delay")]
        let times = delays.len() as u32;
        Self::new(times, Delays::Listed(Cow::Borrowed(delays)))
    }

    /// Sets the factor of [`exponential`](Self::exponential) delays. Other delays stay unchanged. Less than 1 counts as
    /// 1.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Retries;
    ///
    /// let growing = Retries::exponential(3, Duration::from_secs(2)).factor(1.5);
    /// assert_eq!(growing.delay(3, 0), Some(Duration::from_millis(4_500)));
    /// ```
    pub fn factor(mut self, by: f64) -> Self {
        if let Delays::Exponential { factor, .. } = &mut self.delays {
            // NaN also counts as 1.
            *factor = by.max(1.0);
        }
        self
    }

    /// Sets the longest delay. Default: a century.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Retries;
    ///
    /// let minute = Duration::from_mins(1);
    /// assert_eq!(Retries::exponential(100, minute).cap(5 * minute).delay(90, 0), Some(5 * minute));
    /// ```
    pub fn cap(mut self, most: Duration) -> Self {
        self.cap = most.min(LONGEST);
        self
    }

    /// Shortens each delay at random, by at most this part of it. Default: 0.
    ///
    /// With 0.5 a delay lasts between half of its time and all of it, so that simultaneous failures do not retry
    /// simultaneously. Less than 0, and NaN, count as 0, and more than 1 as 1.
    ///
    /// One build of a program draws the same delay for the same attempt of the same run. Another build may draw
    /// another: the run makes the seed with the standard library's hasher, which may change between releases of Rust.
    /// The chosen delay is journaled with the failed attempt.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Retries;
    ///
    /// let spread = Retries::fixed(1, Duration::from_secs(10)).jitter(0.2);
    /// let delay = spread.delay(1, 42).unwrap();
    /// assert!(Duration::from_secs(8) <= delay && delay <= Duration::from_secs(10));
    /// assert_eq!(spread.delay(1, 42), Some(delay));
    /// ```
    pub fn jitter(mut self, part: f64) -> Self {
        self.jitter = if part.is_nan() { 0.0 } else { part.clamp(0.0, 1.0) };
        self
    }

    /// The delay after so many failures, from 1; `None` once all retries are used up. A function of its arguments
    /// alone.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::Retries;
    ///
    /// assert_eq!(Retries::fixed(1, Duration::ZERO).delay(1, 0), Some(Duration::ZERO));
    /// assert_eq!(Retries::fixed(1, Duration::ZERO).delay(2, 0), None);
    /// ```
    pub fn delay(&self, failed: u32, seed: u64) -> Option<Duration> {
        let before = failed.checked_sub(1).filter(|before| *before < self.times)?;
        let written = match &self.delays {
            Delays::Fixed(delay) => *delay,
            Delays::Listed(delays) => *delays.get(usize::try_from(before).ok()?)?,
            Delays::Exponential { first, factor } => grown(*first, *factor, before),
        };
        Some(shortened(written.min(self.cap), self.jitter, seed))
    }

    /// How many retries there are, and how long their delays are together, without jitter.
    pub(super) fn longest(&self) -> (u32, Duration) {
        let whole = Self { jitter: 0.0, ..self.clone() };
        let delays = (1..=self.times).filter_map(|failed| whole.delay(failed, 0));
        (self.times, delays.fold(Duration::ZERO, Duration::saturating_add))
    }

    /// The reason for no further retry.
    pub(super) const fn over(&self) -> NotRetried {
        match self.times {
            0 => NotRetried::Class,
            retries => NotRetried::UsedUp { retries },
        }
    }
}

fn grown(first: Duration, factor: f64, times: u32) -> Duration {
    if first.is_zero() {
        return first;
    }
    let times = i32::try_from(times).unwrap_or(i32::MAX);
    Duration::try_from_secs_f64(first.as_secs_f64() * factor.powi(times)).unwrap_or(LONGEST)
}

fn shortened(delay: Duration, jitter: f64, seed: u64) -> Duration {
    if jitter == 0.0 {
        return delay;
    }
    delay.mul_f64(1.0 - jitter * fastrand::Rng::with_seed(seed).f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn delays_that_grow_beyond_measure_end_at_a_century() {
        let growing = Retries::exponential(u32::MAX, SECOND);
        assert_eq!(growing.delay(1_000, 0), Some(LONGEST));
        assert_eq!(growing.delay(MOST, 0), Some(LONGEST));
        assert_eq!(growing.delay(MOST + 1, 0), None);
        assert_eq!(growing.factor(f64::INFINITY).delay(2, 0), Some(LONGEST));
        assert_eq!(Retries::fixed(1, Duration::MAX).cap(Duration::MAX).delay(1, 0), Some(LONGEST));
    }

    #[test]
    fn a_zero_delay_does_not_grow() {
        let at_once = Retries::exponential(9, Duration::ZERO).factor(f64::INFINITY);
        assert_eq!(at_once.delay(9, 0), Some(Duration::ZERO));
    }

    #[test]
    fn a_factor_below_one_or_nan_leaves_the_delay_unchanged() {
        for factor in [0.5, -3.0, f64::NAN] {
            let growing = Retries::exponential(3, SECOND).factor(factor);
            assert_eq!(growing.delay(3, 0), Some(SECOND));
        }
    }

    #[test]
    fn jitter_beyond_its_bounds_is_taken_as_its_bound() {
        for part in [-1.0, f64::NAN] {
            assert_eq!(Retries::fixed(1, SECOND).jitter(part).delay(1, 3), Some(SECOND));
        }
        let whole = |part| Retries::fixed(1, SECOND).jitter(part).delay(1, 3);
        assert_eq!(whole(7.0), whole(1.0));
    }
}
