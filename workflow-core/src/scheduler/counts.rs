//! Counts by key that few runs ask for: the first question counts everything, and updates keep the counts
//! from then on.

use std::fmt;
use std::hash::Hash;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// Counts by key; empty until the first question.
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

    pub(super) fn add(&mut self, key: K) {
        if let Some(counts) = self.0.get_mut() {
            *counts.entry(key).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, key: K) {
        let Some(counts) = self.0.get_mut() else { return };
        if let Some(count) = counts.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&key);
            }
        }
    }

    /// Forgets the counts after many items were removed together. The next question counts again.
    pub(super) fn forget(&mut self) {
        self.0.take();
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
        counts.forget();
        assert!(counts.has(3, [3].into_iter()) && !counts.has(1, [].into_iter()));
    }
}
