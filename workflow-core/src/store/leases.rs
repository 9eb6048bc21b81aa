//! Leases in memory, for stores that one process uses at a time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::id::EngineId;

/// The leases of engines, in memory.
///
/// For an [`EventStore`](crate::store::EventStore) that only one process uses at a time. The next process begins without
/// leases, so it can claim every run of the previous one at once. There is one entry for each engine whose lease has
/// not run out; each call forgets the others. O(engines) per call.
///
/// ```
/// use std::time::{Duration, Instant};
/// use workflow_core::store::{EngineId, Leases};
///
/// let (leases, now) = (Leases::default(), Instant::now());
/// let [one, other] = [EngineId::new("one"), EngineId::new("other")];
/// let minute = Duration::from_mins(1);
/// assert_eq!(leases.renew_at(&one, minute, now), [one.clone()]);
/// assert_eq!(leases.renew_at(&other, minute, now + minute / 2), [one, other.clone()]);
/// assert_eq!(leases.renew_at(&other, minute, now + minute), [other]);
/// ```
#[derive(Debug, Default)]
pub struct Leases {
    /// Locked for one operation at a time.
    granted: Mutex<BTreeMap<EngineId, Granted>>,
}

#[derive(Debug)]
struct Granted {
    since: Instant,
    duration: Duration,
}

impl Granted {
    fn has_run_out(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= self.duration
    }
}

impl Leases {
    /// Implements [`EventStore::lease`](crate::store::EventStore::lease) by the machine's monotonic clock. On a tokio runtime
    /// with paused time, that time counts.
    pub fn renew(&self, engine: &EngineId, duration: Duration) -> Vec<EngineId> {
        self.renew_at(engine, duration, tokio::time::Instant::now().into_std())
    }

    /// The same for a store with a clock of its own. `now` may be earlier than in a previous call; leases that ran out
    /// by then are forgotten already.
    pub fn renew_at(&self, engine: &EngineId, duration: Duration, now: Instant) -> Vec<EngineId> {
        // Every operation leaves the map whole, so a poisoned lock is usable.
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        granted.insert(engine.clone(), Granted { since: now, duration });
        granted.retain(|_, lease| !lease.has_run_out(now));
        granted.keys().cloned().collect()
    }
}
