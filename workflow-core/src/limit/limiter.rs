//! A limit at work: its keys, and the permits that it hands out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::SystemTime;

use super::key_permits::{KeyPermits, Requester, Woken};
use super::{Limit, PermitWait};
use crate::clock::EngineClock;
use crate::panics::locked;

/// The keys without use that may stay, before the first look for them.
const FEW: usize = 64;

/// A named limit of an engine, at work.
#[derive(Debug)]
pub(crate) struct Limiter {
    name: Arc<str>,
    limit: Limit,
    clock: EngineClock,
    /// Never locked while a waker or a clock is called.
    keys: Mutex<Keys>,
}

#[derive(Debug)]
struct Keys {
    by_key: HashMap<Arc<str>, KeyPermits>,
    /// The number of the next arrival.
    next: u64,
    /// The number of keys at which idle ones are looked for again: at least twice those that were left.
    look_at: usize,
}

/// A place in the order of arrival at one key. It keeps no permit and blocks nobody.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(super) limiter: Arc<Limiter>,
    pub(super) key: Arc<str>,
    pub(super) number: u64,
    pub(super) holder: Requester,
}

/// A permit of a limit for one attempt. Its drop releases it.
#[derive(Debug)]
pub(crate) struct LimitPermit {
    /// Boxed, so that completions of a run stay small.
    arrival: Box<Arrival>,
    is_used: bool,
}

/// The reason why an arrival waits.
#[derive(Debug)]
pub(crate) struct WaitState {
    /// The first that hold a permit of its key.
    pub(crate) held_by: Vec<Requester>,
    /// How many arrivals of its key wait before it.
    pub(crate) before: usize,
}

impl Limiter {
    pub(crate) fn new(name: Arc<str>, limit: Limit, clock: EngineClock) -> Arc<Self> {
        let keys = Keys { by_key: HashMap::new(), next: 0, look_at: FEW };
        Arc::new(Self { name, limit, clock, keys: Mutex::new(keys) })
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn limit(&self) -> Limit {
        self.limit
    }

    /// Gives an attempt its place in the order of arrival. All attempts without a key share one, which is empty.
    pub(crate) fn arrive(self: &Arc<Self>, key: &str, holder: Requester) -> Arrival {
        let mut keys = locked(&self.keys);
        let number = keys.next;
        keys.next += 1;
        let known = keys.by_key.get_key_value(key).map(|(key, _)| Arc::clone(key));
        drop(keys);
        Arrival { limiter: Arc::clone(self), key: known.unwrap_or_else(|| key.into()), number, holder }
    }

    /// Works on the permits of a key, and drops them if nothing uses the key afterwards.
    fn with<T>(&self, key: &Arc<str>, work: impl FnOnce(&mut KeyPermits, SystemTime, &mut Woken) -> T) -> T {
        // Permits are released in drops, where a clock must not panic.
        let (now, mut woken) = (self.clock.shown(), Woken::new());
        let mut keys = locked(&self.keys);
        keys.make_room(now);
        let permits = keys.by_key.entry(Arc::clone(key)).or_insert_with(|| KeyPermits::new(self.limit, now));
        let result = work(permits, now, &mut woken);
        if permits.is_idle(now) {
            keys.by_key.remove(key);
        }
        drop(keys);
        woken.into_iter().for_each(Waker::wake);
        result
    }

    /// How many keys have memory of their own.
    #[cfg(test)]
    pub(super) fn key_count(&self) -> usize {
        locked(&self.keys).by_key.len()
    }

    pub(super) fn clock(&self) -> &EngineClock {
        &self.clock
    }
}

impl Keys {
    /// Drops the idle keys from time to time: each look is paid for by as many new keys as it looks at.
    fn make_room(&mut self, now: SystemTime) {
        if self.by_key.len() >= self.look_at {
            self.by_key.retain(|_, permits| !permits.is_idle(now));
            self.look_at = FEW.max(2 * self.by_key.len());
            if self.by_key.capacity() > 4 * self.look_at {
                self.by_key.shrink_to(self.look_at);
            }
        }
    }
}

impl Arrival {
    /// The limit, and the key at it.
    pub(crate) fn limiter(&self) -> &Arc<Limiter> {
        &self.limiter
    }

    pub(crate) fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// Takes a permit, or a place in the queue.
    ///
    /// # Errors
    /// The turn to wait for, if no permit is free.
    pub(crate) fn take(self) -> Result<LimitPermit, PermitWait> {
        let (number, holder) = (self.number, self.holder.clone());
        let is_held = self.limiter.with(&self.key, |permits, now, woken| {
            permits.enter(number, holder);
            permits.grant(now, woken);
            permits.has(number)
        });
        if is_held { Ok(self.permit()) } else { Err(PermitWait::of(self)) }
    }

    /// Whether the queue has handed over the permit. If not, the waker is woken when it has.
    ///
    /// # Errors
    /// The time of the next token, if this is the first in the queue and only a token is missing.
    pub(super) fn poll(&self, waker: &Waker) -> Result<(), Option<SystemTime>> {
        self.limiter.with(&self.key, |permits, now, woken| {
            let next = permits.grant(now, woken);
            if permits.has(self.number) {
                return Ok(());
            }
            permits.note_waker(self.number, waker);
            Err(next.filter(|_| permits.is_first(self.number)))
        })
    }

    /// The permit, which the queue has handed over.
    pub(super) fn permit(self) -> LimitPermit {
        LimitPermit { arrival: Box::new(self), is_used: true }
    }

    /// Leaves the queue, or returns the permit that it was handed.
    pub(crate) fn leave(&self) {
        self.limiter.with(&self.key, |permits, now, woken| {
            permits.leave(self.number);
            permits.release(self.number, false);
            permits.grant(now, woken);
            permits.wake_first(woken);
        });
    }

    /// The reason why the arrival waits now.
    pub(crate) fn wait_state(&self, most: usize) -> WaitState {
        let keys = locked(&self.limiter.keys);
        let permits = keys.by_key.get(&self.key);
        let held_by = permits.map(|permits| permits.holders().take(most).cloned().collect());
        WaitState {
            held_by: held_by.unwrap_or_default(),
            before: permits.map_or(0, |permits| permits.before(self.number)),
        }
    }
}

impl LimitPermit {
    /// Whether this arrival was handed the permit.
    pub(crate) fn is_of(&self, arrival: &Arrival) -> bool {
        self.arrival.number == arrival.number && Arc::ptr_eq(&self.arrival.limiter, &arrival.limiter)
    }

    /// Returns a permit that was not used, with its token. The arrival keeps its place.
    pub(crate) fn give_back(mut self) -> Arrival {
        self.is_used = false;
        Arrival::clone(&self.arrival)
    }
}

impl Drop for LimitPermit {
    fn drop(&mut self) {
        let Arrival { limiter, key, number, .. } = &*self.arrival;
        limiter.with(key, |permits, now, woken| {
            permits.release(*number, self.is_used);
            permits.grant(now, woken);
            permits.wake_first(woken);
        });
    }
}
