//! One key of a limit: who holds its permits, who waits, and its tokens.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::SystemTime;

use super::Limit;
use super::bucket::Bucket;
use crate::id::{ExecutionId, RunId};

/// A holder of a permit, or a waiter for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) run: RunId,
    pub(crate) execution: ExecutionId,
}

/// The permits of one key.
#[derive(Debug)]
pub(super) struct KeyPermits {
    limit: Limit,
    /// By number of arrival.
    held: BTreeMap<u64, Requester>,
    /// Those that wait, by number of arrival, with the wakers of their latest polls.
    queue: BTreeMap<u64, (Requester, Option<Waker>)>,
    /// The tokens; `None` if the limit has no rate.
    bucket: Option<Bucket>,
}

/// The wakers of those that have a permit now. They are woken without a lock.
pub(super) type Woken = Vec<Waker>;

impl KeyPermits {
    pub(super) fn new(limit: Limit, now: SystemTime) -> Self {
        let bucket = limit.rate.map(|rate| Bucket::full(rate, now));
        Self { limit, held: BTreeMap::new(), queue: BTreeMap::new(), bucket }
    }

    /// Queues an arrival. An earlier one stands before a later one, whenever it enters.
    pub(super) fn enter(&mut self, arrival: u64, holder: Requester) {
        self.queue.insert(arrival, (holder, None));
    }

    /// Hands permits to the oldest entries, as many as are free. Returns the time of the next token, if only that is
    /// missing.
    ///
    /// The entry that becomes the first is woken, because the first waits for the next token.
    pub(super) fn grant(&mut self, now: SystemTime, woken: &mut Woken) -> Option<SystemTime> {
        let before = self.held.len();
        let next = loop {
            let first = self.queue.first_entry()?;
            let most = self.limit.concurrent.map(|most| most.get() as usize);
            if most.is_some_and(|most| self.held.len() >= most) {
                break None;
            }
            if let Some(Err(next)) = self.bucket.as_mut().map(|bucket| bucket.take(now)) {
                break next;
            }
            let (arrival, (holder, waker)) = first.remove_entry();
            self.held.insert(arrival, holder);
            woken.extend(waker);
        };
        if self.held.len() > before {
            self.wake_first(woken);
        }
        next
    }

    /// Whether the arrival has its permit.
    pub(super) fn has(&self, arrival: u64) -> bool {
        self.held.contains_key(&arrival)
    }

    /// Whether the arrival is the oldest that waits.
    pub(super) fn is_first(&self, arrival: u64) -> bool {
        self.queue.first_key_value().is_some_and(|(first, _)| *first == arrival)
    }

    /// Notes who is to be woken when the arrival gets its permit, or becomes the first.
    pub(super) fn note_waker(&mut self, arrival: u64, waker: &Waker) {
        if let Some((_, noted)) = self.queue.get_mut(&arrival) {
            match noted {
                Some(noted) => noted.clone_from(waker),
                None => *noted = Some(waker.clone()),
            }
        }
    }

    /// Takes back a permit, with its token if the permit was not used.
    pub(super) fn release(&mut self, arrival: u64, is_used: bool) {
        let was_held = self.held.remove(&arrival).is_some();
        if let Some(bucket) = self.bucket.as_mut().filter(|_| was_held && !is_used) {
            bucket.put_back();
        }
    }

    /// Removes one that waits.
    pub(super) fn leave(&mut self, arrival: u64) {
        self.queue.remove(&arrival);
    }

    /// Wakes the first that waits, so that it looks what it waits for.
    pub(super) fn wake_first(&mut self, woken: &mut Woken) {
        let first = self.queue.first_entry().and_then(|first| first.into_mut().1.take());
        woken.extend(first);
    }

    /// Whether nothing would be lost if they were made anew.
    pub(super) fn is_idle(&mut self, now: SystemTime) -> bool {
        self.held.is_empty()
            && self.queue.is_empty()
            && self.bucket.as_mut().is_none_or(|bucket| bucket.is_full(now))
    }

    /// Those that hold a permit, the first arrived first.
    pub(super) fn holders(&self) -> impl Iterator<Item = &Requester> {
        self.held.values()
    }

    /// How many wait before the arrival. O(those).
    pub(super) fn before(&self, arrival: u64) -> usize {
        self.queue.range(..arrival).count()
    }
}
