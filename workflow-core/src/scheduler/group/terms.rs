//! The terms of a fan-out: what applies to all of its branches (S49, S50, S74).

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
/// assert_eq!(terms.tolerated, 0);
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
    /// How many branches may fail before the policy decides. Without meaning for a policy under which nothing fails.
    pub tolerated: u32,
    /// The meaning of a failed branch for the others.
    pub policy: FanOutPolicy,
}

/// How far a fan-out with [`FanOutTerms::until`] or [`FanOutTerms::tolerated`] has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tally {
    /// How many branches have to settle without a failure; `usize::MAX` where no number is enough.
    wanted: usize,
    /// How many have.
    succeeded: usize,
    /// How many others still can: they are not settled, and nothing in them has failed.
    left: usize,
    /// How many have failed, settled or not.
    failed: usize,
    /// How many of these the policy leaves alone.
    tolerated: usize,
}

impl Tally {
    pub(super) fn of(terms: &FanOutTerms, items: u32) -> Option<Self> {
        if terms.until.is_none() && terms.tolerated == 0 {
            return None;
        }
        let wanted = terms.until.map_or(usize::MAX, |enough| enough.get() as usize);
        let (left, tolerated) = (items as usize, terms.tolerated as usize);
        Some(Self { wanted, succeeded: 0, left, failed: 0, tolerated })
    }

    /// The same with other counts, after a redrive.
    pub(super) fn recounted(self, succeeded: usize, left: usize, failed: usize) -> Self {
        Self { succeeded, left, failed, ..self }
    }

    /// A branch in which nothing failed is settled.
    pub(super) fn succeed(&mut self) {
        self.left -= 1;
        self.succeeded += 1;
    }

    /// A first failure happened in a branch.
    pub(super) fn fail(&mut self) {
        self.left -= 1;
        self.failed += 1;
    }

    /// Whether enough branches have settled without a failure.
    pub(super) fn is_reached(self) -> bool {
        self.succeeded >= self.wanted
    }

    /// Whether the failures are only gathered: enough branches can still settle without one, or no more have failed than
    /// may.
    pub(super) fn bears_failures(self) -> bool {
        self.succeeded + self.left >= self.wanted || self.failed <= self.tolerated
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
        assert!(tally.bears_failures() && !tally.is_reached());
        tally.succeed();
        assert!(tally.bears_failures() && !tally.is_reached());
        let mut other = tally;
        tally.succeed();
        assert!(tally.is_reached());
        other.fail();
        assert!(!other.bears_failures() && !other.is_reached());
    }

    #[test]
    fn more_than_there_are_is_never_possible() {
        let mut wanted = tally(3, 2).expect("it has a number");
        wanted.fail();
        assert!(!wanted.bears_failures() && !wanted.is_reached());
        assert!(tally(0, 2).is_none());
    }

    // S74
    #[test]
    fn so_many_failures_are_borne_as_are_tolerated_and_more_while_enough_branches_are_left() {
        let terms = FanOutTerms { tolerated: 1, ..FanOutTerms::default() };
        let mut tally = Tally::of(&terms, 5).expect("it has a number");
        tally.succeed();
        tally.fail();
        assert!(tally.bears_failures() && !tally.is_reached());
        tally.fail();
        assert!(!tally.bears_failures() && !tally.is_reached());
        let mut tally =
            Tally::of(&FanOutTerms { until: NonZeroU32::new(3), ..terms }, 5).expect("it has two");
        tally.fail();
        tally.fail();
        assert!(tally.bears_failures(), "three can still settle");
        tally.fail();
        assert!(!tally.bears_failures());
        let mut tally =
            Tally::of(&FanOutTerms { until: NonZeroU32::new(5), ..terms }, 5).expect("it has two");
        tally.fail();
        assert!(tally.bears_failures(), "one is tolerated");
        tally.fail();
        assert!(!tally.bears_failures());
    }
}
