//! Which events a list is bound to: for each of some scopes how many of its first. It is kept for as long as the run is
//! there, once per execution, so it is small.

use std::fmt;

use crate::id::ScopeId;

/// For each of some scopes how many of its events, counted from its first.
///
/// ```
/// use workflow_core::ScopeId;
/// use workflow_core::scheduler::Prefixes;
///
/// let prefixes: Prefixes = [(ScopeId(3), 2), (ScopeId::ROOT, 5)].into_iter().collect();
/// assert_eq!(prefixes.iter().map(|(_, count)| count).sum::<u32>(), 7);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Prefixes(Kept);

/// Most lists are of one scope. A vector is behind a pointer, so that it takes no more room than that.
#[derive(Clone, PartialEq, Eq, Hash)]
#[expect(clippy::box_collection, reason = "a vector takes three times the room of a pointer to it")]
enum Kept {
    One(ScopeId, u32),
    Others(Box<Vec<(ScopeId, u32)>>),
}

impl Prefixes {
    /// Scopes and counts, innermost first.
    pub fn iter(&self) -> impl Iterator<Item = (ScopeId, u32)> + '_ {
        let (one, others) = match &self.0 {
            Kept::One(scope, count) => (Some((*scope, *count)), &[][..]),
            Kept::Others(others) => (None, &others[..]),
        };
        one.into_iter().chain(others.iter().copied())
    }

    /// Whether there is no scope.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Kept::Others(others) if others.is_empty())
    }
}

impl FromIterator<(ScopeId, u32)> for Prefixes {
    fn from_iter<I: IntoIterator<Item = (ScopeId, u32)>>(prefixes: I) -> Self {
        let mut prefixes = prefixes.into_iter();
        match (prefixes.next(), prefixes.next()) {
            (Some((scope, count)), None) => Self(Kept::One(scope, count)),
            (first, second) => {
                let first = first.into_iter().chain(second);
                Self(Kept::Others(Box::new(first.chain(prefixes).collect())))
            }
        }
    }
}

impl fmt::Debug for Prefixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
