//! The terms of a fan-out: what applies to all of its branches (S49, S50).

use std::num::NonZeroU32;

use crate::output::FanOutPolicy;

/// What applies to all branches of a fan-out.
///
/// ```
/// use workflow_core::scheduler::FanOutTerms;
/// use workflow_core::FanOutPolicy;
///
/// let terms = FanOutTerms::default();
/// assert_eq!((terms.concurrency, terms.until, terms.policy), (None, None, FanOutPolicy::FailAll));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FanOutTerms {
    /// The most branches open at a time; `None` for no bound.
    pub concurrency: Option<NonZeroU32>,
    /// Whether `concurrency` counts only busy branches: those with more left than replies and timers to wait for.
    /// Fan-outs in journals of earlier releases count every open branch.
    pub only_busy: bool,
    /// How many branches settle without a failure until the others are dropped; `None` for all.
    pub until: Option<NonZeroU32>,
    /// The meaning of a failed branch for the others.
    pub policy: FanOutPolicy,
}

/// How far a fan-out with [`FanOutTerms::until`] has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tally {
    /// How many branches have to settle without a failure.
    wanted: usize,
    /// How many have.
    succeeded: usize,
    /// How many others still can: they are not settled, and nothing in them has failed.
    left: usize,
}

impl Tally {
    pub(super) fn of(terms: &FanOutTerms, items: u32) -> Option<Self> {
        Some(Self { wanted: terms.until?.get() as usize, succeeded: 0, left: items as usize })
    }

    /// The same with other counts, after a redrive.
    pub(super) fn recounted(self, succeeded: usize, left: usize) -> Self {
        Self { succeeded, left, ..self }
    }

    /// A branch in which nothing failed is settled.
    pub(super) fn succeed(&mut self) {
        self.left -= 1;
        self.succeeded += 1;
    }

    /// A first failure happened in a branch.
    pub(super) fn fail(&mut self) {
        self.left -= 1;
    }

    /// Whether enough branches have settled without a failure.
    pub(super) fn is_reached(self) -> bool {
        self.succeeded >= self.wanted
    }

    /// Whether enough branches can still settle without a failure.
    pub(super) fn is_possible(self) -> bool {
        self.succeeded + self.left >= self.wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(until: u32, items: u32) -> Option<Tally> {
        Tally::of(&FanOutTerms { until: NonZeroU32::new(until), ..FanOutTerms::default() }, items)
    }

    // S50
    #[test]
    fn failures_are_borne_as_long_as_enough_branches_are_left() {
        let mut tally = tally(2, 4).expect("it has a number");
        tally.fail();
        tally.fail();
        assert!(tally.is_possible() && !tally.is_reached());
        tally.succeed();
        assert!(tally.is_possible() && !tally.is_reached());
        let mut other = tally;
        tally.succeed();
        assert!(tally.is_reached());
        other.fail();
        assert!(!other.is_possible() && !other.is_reached());
    }

    #[test]
    fn more_than_there_are_is_never_possible() {
        assert!(tally(3, 2).is_some_and(|tally| !tally.is_possible() && !tally.is_reached()));
        assert!(tally(0, 2).is_none());
    }
}
