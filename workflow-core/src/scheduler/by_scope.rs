//! Numbers by scope, for work that is dropped with its branch. Few runs drop branches: the first drop puts
//! everything in order, and updates keep the order from then on.
//!
//! Invariant: once in order, each number that the owner's collection has for a branch is in here under its scope.
//! The owner calls `add` and `remove` with each change. The root is left out, since it is never dropped.
//!
//! Example: 10,000 branches wait for replies, and a race of three models ends. The first such race costs one
//! pass over the open requests; each later one costs O(log requests) per dropped scope and request.

use std::collections::BTreeSet;
use std::fmt;

use crate::id::ScopeId;

/// Numbers by scope; `None` until the first drop. In a box, since few runs have any.
#[derive(Default)]
#[expect(clippy::box_collection, reason = "a run without drops has 8 bytes of this instead of 32")]
pub(super) struct ByScope(Option<Box<BTreeSet<(ScopeId, u64)>>>);

impl ByScope {
    /// Adds a number, if something was dropped before.
    #[inline]
    pub(super) fn add(&mut self, scope: ScopeId, number: u64) {
        if let Some(numbers) = &mut self.0
            && scope != ScopeId::ROOT
        {
            numbers.insert((scope, number));
        }
    }

    /// Removes a number. One that is not here is ignored.
    #[inline]
    pub(super) fn remove(&mut self, scope: ScopeId, number: u64) {
        if let Some(numbers) = &mut self.0 {
            numbers.remove(&(scope, number));
        }
    }

    /// Takes the numbers of these scopes, in order of the scopes. O(all) for the first call, then O(log all) for each
    /// scope and number.
    pub(super) fn take(&mut self, scopes: &[ScopeId], all: impl Iterator<Item = (ScopeId, u64)>) -> Vec<u64> {
        let in_branches = all.filter(|(scope, _)| *scope != ScopeId::ROOT);
        let numbers = self.0.get_or_insert_with(|| Box::new(in_branches.collect()));
        let of_scope = |scope: &ScopeId| numbers.range((*scope, 0)..=(*scope, u64::MAX)).copied();
        let taken: Vec<(ScopeId, u64)> = scopes.iter().flat_map(of_scope).collect();
        for number in &taken {
            numbers.remove(number);
        }
        taken.into_iter().map(|(_, number)| number).collect()
    }
}

impl fmt::Debug for ByScope {
    /// Shows nothing of them: the owner shows its collection itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByScope")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_drop_puts_all_in_order_and_updates_keep_the_order() {
        let mut numbers = ByScope::default();
        numbers.add(ScopeId(1), 7);
        let all = [(0, 1), (1, 2), (2, 3), (1, 4)].map(|(scope, number)| (ScopeId(scope), number));
        assert_eq!(numbers.take(&[ScopeId(1)], all.into_iter()), [2, 4]);
        numbers.add(ScopeId(2), 5);
        numbers.add(ScopeId(3), 6);
        numbers.remove(ScopeId(2), 3);
        assert_eq!(numbers.take(&[ScopeId(1), ScopeId(3), ScopeId(2)], std::iter::empty()), [6, 5]);
        assert!(numbers.take(&[ScopeId(0), ScopeId(2)], std::iter::empty()).is_empty());
    }
}
