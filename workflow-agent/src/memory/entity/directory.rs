//! The directory of a thread's entities: which names there are, in which slots, and which one a new name replaces. It
//! is one value, so each merge decides atomically. It knows no facts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workflow_core::RunId;

/// The most entities of a thread.
const MOST_ENTITIES: usize = 1000;

/// The number of runs whose repetition is noticed.
const MOST_RUNS: usize = 64;

/// All names of a thread in lower case, with their slots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Directory {
    entries: BTreeMap<String, Entry>,
    /// The number of entities that there ever were.
    entered: u64,
    /// The number of merged runs, which numbers their mentions.
    merged: u64,
    /// The runs merged last and their numbers, the latest at the end.
    runs: Vec<(RunId, u64)>,
}

/// The place of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) slot: u16,
    /// Distinguishes the entities that a slot has in turn, and grows.
    pub(super) id: u64,
    /// The number of the run that mentioned it last.
    pub(super) mention: u64,
}

impl Directory {
    /// Enters the names that a run mentions. Removes those whose last mention is the oldest beyond the bound.
    pub(super) fn enter<'a>(&mut self, run: &RunId, names: impl Iterator<Item = &'a String>) {
        let mention = self.note(run);
        for name in names {
            if let Some(entry) = self.entries.get_mut(name) {
                entry.mention = entry.mention.max(mention);
            } else if let Some(slot) = self.slot_for(name, mention) {
                self.entered = self.entered.saturating_add(1);
                self.entries.insert(name.clone(), Entry { slot, id: self.entered, mention });
            }
        }
    }

    fn note(&mut self, run: &RunId) -> u64 {
        if let Some((_, number)) = self.runs.iter().find(|(known, _)| known == run) {
            return *number;
        }
        self.merged = self.merged.saturating_add(1);
        self.runs.push((run.clone(), self.merged));
        self.runs.drain(..self.runs.len().saturating_sub(MOST_RUNS));
        self.merged
    }

    /// A slot for a new name: a free one, or that of the entity that it replaces. `None` if all others are newer, which
    /// happens to the repetition of an old merge.
    fn slot_for(&mut self, name: &str, mention: u64) -> Option<u16> {
        if self.entries.len() < MOST_ENTITIES {
            return self.free_slot();
        }
        let age = |name: &str, mention: u64| (mention, name.to_owned());
        let oldest = self.entries.iter().map(|(name, entry)| age(name, entry.mention)).min()?;
        if oldest > age(name, mention) {
            return None;
        }
        self.entries.remove(&oldest.1).map(|entry| entry.slot)
    }

    fn free_slot(&self) -> Option<u16> {
        let mut taken = [false; MOST_ENTITIES];
        for entry in self.entries.values() {
            if let Some(slot) = taken.get_mut(usize::from(entry.slot)) {
                *slot = true;
            }
        }
        taken.iter().position(|taken| !taken).and_then(|slot| u16::try_from(slot).ok())
    }

    /// The number of a merged run.
    pub(super) fn number(&self, run: &RunId) -> u64 {
        self.runs.iter().find(|(known, _)| known == run).map_or(self.merged, |(_, number)| *number)
    }

    pub(super) fn entry(&self, name: &str) -> Option<Entry> {
        self.entries.get(name).copied()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn enter(directory: &mut Directory, run: &str, names: impl IntoIterator<Item = usize>) {
        let names: Vec<String> = names.into_iter().map(|name| format!("{name:05}")).collect();
        directory.enter(&run.into(), names.iter());
    }

    /// A45
    #[test]
    fn a_new_entity_replaces_the_one_that_was_mentioned_longest_ago() {
        let mut directory = Directory::default();
        for name in 0..1000 {
            enter(&mut directory, &format!("r{name}"), [name]);
        }
        enter(&mut directory, "again", [0]);
        enter(&mut directory, "new", [5000]);
        assert_eq!(directory.entries.len(), 1000);
        assert!(directory.entry("00001").is_none());
        assert!(directory.entry("00000").is_some() && directory.entry("05000").is_some());
        let slots: BTreeSet<_> = directory.entries.values().map(|entry| entry.slot).collect();
        assert_eq!(slots, (0..1000).collect());
        // A run of long ago brings nothing back.
        let before = directory.clone();
        directory.runs.push(("r1".into(), 2));
        enter(&mut directory, "r1", [1]);
        assert_eq!(directory.entries, before.entries);
    }

    proptest! {
        /// A44
        #[test]
        fn a_repeated_run_changes_nothing(merges in prop::collection::vec((0_usize..8, 0_usize..30), 1..40)) {
            let mut directory = Directory::default();
            for (run, name) in &merges {
                enter(&mut directory, &format!("r{run}"), [*name]);
            }
            let before = directory.clone();
            for (run, name) in merges {
                enter(&mut directory, &format!("r{run}"), [name]);
                prop_assert_eq!(&directory, &before);
            }
        }

        /// A45
        #[test]
        fn a_damaged_directory_is_no_panic(slots in prop::collection::vec((any::<u16>(), any::<u64>(), any::<u64>()), 0..30)) {
            let entries = slots.into_iter().enumerate();
            let entries = entries.map(|(name, (slot, id, mention))| (format!("x{name}"), Entry { slot, id, mention }));
            let mut directory = Directory { entries: entries.collect(), entered: u64::MAX, merged: u64::MAX, runs: vec![] };
            enter(&mut directory, "r", 0..40);
            prop_assert!(directory.entry("00039").is_some());
        }
    }
}
