//! Prefixes: the events that a list is bound to, as a number of first events per scope. Each execution with a
//! list stores one until the run ends, so it is small.
//!
//! ```text
//!  FixedList or List of the root         One(root, 5)                       no allocation
//!  the same in a branch of branch 3      Others[(7, 1), (3, 2), (root, 5)]  one per scope that has events
//! ```
//!
//! Invariant: in the bindings of the scheduler no scope is named twice, and no number is 0. The log of a
//! scope only grows at its end, so a number of first events stays the same list for ever (S16).

use std::fmt;

use crate::id::ScopeId;

/// A number of first events for each of some scopes: the content of a list.
///
/// ```
/// use workflow_core::ScopeId;
/// use workflow_core::scheduler::Prefixes;
///
/// let prefixes: Prefixes = [(ScopeId(3), 2), (ScopeId::ROOT, 5)].into_iter().collect();
/// assert_eq!(prefixes.iter().map(|(_, count)| count).sum::<u32>(), 7);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Prefixes(Repr);

/// Most lists have one scope. The vector stands behind a pointer, so that the type is no larger than that
/// case.
#[derive(Clone, PartialEq, Eq, Hash)]
#[expect(clippy::box_collection, reason = "a vector takes three times the room of a pointer")]
enum Repr {
    /// The events of one scope.
    One(ScopeId, u32),
    /// The events of several scopes, or of none.
    Others(Box<Vec<(ScopeId, u32)>>),
}

impl Prefixes {
    /// The first `count` events of one scope. `count` must be above 0.
    #[inline]
    pub(super) fn one(scope: ScopeId, count: u32) -> Self {
        Self(Repr::One(scope, count))
    }

    /// The scopes with their numbers of events. For a `List` the innermost scope is first, for a `FixedList` the scope
    /// of the first event.
    pub fn iter(&self) -> impl Iterator<Item = (ScopeId, u32)> + '_ {
        let (one, others) = match &self.0 {
            Repr::One(scope, count) => (Some((*scope, *count)), &[][..]),
            Repr::Others(others) => (None, &others[..]),
        };
        one.into_iter().chain(others.iter().copied())
    }

    /// Whether no scope has events.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Repr::Others(others) if others.is_empty())
    }
}

impl FromIterator<(ScopeId, u32)> for Prefixes {
    fn from_iter<I: IntoIterator<Item = (ScopeId, u32)>>(prefixes: I) -> Self {
        let mut prefixes = prefixes.into_iter();
        match (prefixes.next(), prefixes.next()) {
            (Some((scope, count)), None) => Self::one(scope, count),
            (first, second) => {
                let first = first.into_iter().chain(second);
                Self(Repr::Others(Box::new(first.chain(prefixes).collect())))
            }
        }
    }
}

impl fmt::Debug for Prefixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
