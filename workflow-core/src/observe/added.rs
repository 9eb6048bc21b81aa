//! Observers that join a running engine, each until its guard is dropped.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::queue::Audience;
use super::{Observation, Observer};
use crate::panics::locked;

/// The observers that have joined an engine.
#[derive(Debug, Default)]
pub(crate) struct Added {
    /// Whether one of them looks at observations. Read without the lock, since most engines have none.
    looks: AtomicBool,
    /// Whether one of them wants spans.
    spans: AtomicBool,
    /// In the order in which they joined. Replaced as a whole, so that none is called under the lock.
    audiences: Mutex<Arc<[Arc<Audience>]>>,
}

impl Added {
    /// Adds an observer until the guard is dropped.
    pub(crate) fn add(self: &Arc<Self>, observer: Arc<dyn Observer>) -> ObserverGuard {
        let audience = Arc::new(Audience::of([observer]));
        self.change(|all| all.push(Arc::clone(&audience)));
        ObserverGuard { added: Arc::downgrade(self), audience }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.looks.load(Ordering::Acquire)
    }

    pub(super) fn wants_spans(&self) -> bool {
        self.spans.load(Ordering::Acquire)
    }

    pub(super) fn tell(&self, observation: &Observation) {
        for audience in &*self.all() {
            audience.tell(observation);
        }
    }

    /// All of them now.
    pub(super) fn all(&self) -> Arc<[Arc<Audience>]> {
        Arc::clone(&locked(&self.audiences))
    }

    /// Changes the list. Foreign code, as the drop of an observer is, runs after the lock.
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Audience>>)) {
        let mut audiences = locked(&self.audiences);
        let mut all = audiences.to_vec();
        change(&mut all);
        self.looks.store(all.iter().any(|one| !one.is_empty()), Ordering::Release);
        self.spans.store(all.iter().any(|one| one.wants_spans()), Ordering::Release);
        let before = std::mem::replace(&mut *audiences, all.into());
        drop(audiences);
        drop(before);
    }
}

/// Keeps an observer that [joined](crate::Engine::observe) an engine. The observer leaves when the guard is dropped.
///
/// It is called for no observation from then on, except for those that its queue had before, and for one that a run is
/// just making.
#[must_use = "the observer leaves when the guard is dropped"]
pub struct ObserverGuard {
    added: Weak<Added>,
    audience: Arc<Audience>,
}

impl Drop for ObserverGuard {
    fn drop(&mut self) {
        if let Some(added) = self.added.upgrade() {
            added.change(|all| all.retain(|one| !Arc::ptr_eq(one, &self.audience)));
        }
    }
}

impl fmt::Debug for ObserverGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObserverGuard").finish_non_exhaustive()
    }
}
