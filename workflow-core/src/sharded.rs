//! A map that many threads use at the same time: parts of it, each with a lock.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, TryLockError};

use rustc_hash::FxBuildHasher;

use crate::panics::locked;

/// More than most machines have threads that are in one map at the same moment.
const SHARDS: usize = 32;

/// A map in parts. The holder of a part asks for no other part, does not await, and runs no foreign code.
pub(crate) struct Sharded<K, V, S = RandomState>(Box<[Mutex<HashMap<K, V, S>>; SHARDS]>);

impl<K: Hash + Eq, V, S: BuildHasher> Sharded<K, V, S> {
    /// The part in which the key is, if it is in the map.
    pub(crate) fn shard(&self, key: &K) -> MutexGuard<'_, HashMap<K, V, S>> {
        locked(self.shard_of(key))
    }

    /// The same, unless somebody has it at this moment.
    pub(crate) fn try_shard(&self, key: &K) -> Option<MutexGuard<'_, HashMap<K, V, S>>> {
        match self.shard_of(key).try_lock() {
            Ok(shard) => Some(shard),
            Err(TryLockError::Poisoned(shard)) => Some(shard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// All parts, one after the other.
    pub(crate) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, HashMap<K, V, S>>> {
        self.0.iter().map(locked)
    }

    pub(crate) fn len(&self) -> usize {
        self.shards().map(|shard| shard.len()).sum()
    }

    /// Not by the hash of the map itself: the keys of a part would have that in common, and lie badly in it.
    fn shard_of(&self, key: &K) -> &Mutex<HashMap<K, V, S>> {
        &self.0[usize::try_from(FxBuildHasher.hash_one(key) % SHARDS as u64).unwrap_or_default()]
    }
}

impl<K, V, S: Default> Default for Sharded<K, V, S> {
    fn default() -> Self {
        Self(Box::new(std::array::from_fn(|_| Mutex::default())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_they_were_put_and_lie_in_many_parts() {
        let map = Sharded::<u64, u64>::default();
        for key in 0..1_000 {
            map.shard(&key).insert(key, key + 1);
        }
        assert!((0..1_000).all(|key| map.shard(&key).get(&key) == Some(&(key + 1))));
        assert_eq!(map.len(), 1_000);
        assert!(map.shards().all(|shard| shard.len() < 100));
    }

    #[test]
    fn a_part_that_somebody_has_is_not_waited_for() {
        let map = Sharded::<u64, u64>::default();
        let shard = map.shard(&1);
        assert!(map.try_shard(&1).is_none());
        drop(shard);
        assert!(map.try_shard(&1).is_some());
    }
}
