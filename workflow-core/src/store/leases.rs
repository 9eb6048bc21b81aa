//! Leases that are kept in memory, for stores that one process uses at a time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::id::EngineId;

/// The leases of engines, in memory: for an [`EventStore`](crate::EventStore) that only one process uses at a time. The
/// next process begins with none, so that every run of the one before it is an orphan at once.
///
/// It holds an entry for each engine whose lease has not run out, and forgets the others with the next call. O(engines)
/// per call.
///
/// ```
/// use std::time::{Duration, Instant};
/// use workflow_core::{EngineId, Leases};
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
    /// Held for one operation at a time.
    held: Mutex<BTreeMap<EngineId, Held>>,
}

#[derive(Debug)]
struct Held {
    since: Instant,
    duration: Duration,
}

impl Held {
    fn has_run_out(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= self.duration
    }
}

impl Leases {
    /// What [`EventStore::lease`](crate::EventStore::lease) does, by the monotonic clock of the machine; on a tokio
    /// runtime whose time is paused, by that.
    pub fn renew(&self, engine: &EngineId, duration: Duration) -> Vec<EngineId> {
        self.renew_at(engine, duration, tokio::time::Instant::now().into_std())
    }

    /// The same for a store with a clock of its own. A time before that of an earlier call does no harm: what has run
    /// out by then is forgotten already.
    pub fn renew_at(&self, engine: &EngineId, duration: Duration, now: Instant) -> Vec<EngineId> {
        // Every operation leaves it whole.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(engine.clone(), Held { since: now, duration });
        held.retain(|_, lease| !lease.has_run_out(now));
        held.keys().cloned().collect()
    }
}
