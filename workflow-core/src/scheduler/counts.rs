//! Counts by key that few runs ask for: the first question counts everything, and updates keep the counts
//! from then on.
//!
//! Invariant: once counted, each key has the number of its items in the owner's collection, and a key without
//! items is absent. The owner calls `add` and `remove` with each change.
//!
//! Example: a run sends 10,000 requests and never waits, so no question comes and nothing is counted. When it
//! waits, the first question counts them in one pass, and the next replies cost O(1) each.

use std::fmt;
use std::hash::Hash;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// Counts by key; empty until the first question.
/// A cell that is set once: questions have only `&self`, and two of them may come without a change between.
pub(super) struct Counts<K>(OnceLock<Box<FxHashMap<K, u32>>>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<K: Eq + Hash + Copy> Counts<K> {
    /// Whether something has this key. O(all) for the first question, then O(1).
    pub(super) fn has(&self, key: K, all: impl Iterator<Item = K>) -> bool {
        let counts = self.0.get_or_init(|| {
            let mut counts = FxHashMap::default();
            all.for_each(|key| *counts.entry(key).or_default() += 1);
            Box::new(counts)
        });
        counts.contains_key(&key)
    }

    /// Counts another item, if a question has come before.
    pub(super) fn add(&mut self, key: K) {
        if let Some(counts) = self.0.get_mut() {
            *counts.entry(key).or_default() += 1;
        }
    }

    /// Uncounts an item. A key that was never counted is ignored.
    pub(super) fn remove(&mut self, key: K) {
        let Some(counts) = self.0.get_mut() else { return };
        if let Some(count) = counts.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&key);
            }
        }
    }
}

impl<K> fmt::Debug for Counts<K> {
    /// Shows no counts: the owner shows the counted items themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_question_counts_and_updates_keep_the_counts() {
        let mut counts = Counts::default();
        counts.add(1);
        assert!(counts.has(2, [2, 2].into_iter()) && !counts.has(1, [1].into_iter()));
        counts.add(1);
        counts.remove(2);
        assert!(counts.has(1, [].into_iter()) && counts.has(2, [].into_iter()));
        counts.remove(2);
        assert!(!counts.has(2, [2].into_iter()));
    }
}
