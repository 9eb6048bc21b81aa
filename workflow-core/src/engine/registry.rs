//! The runs of an engine that have not ended: those that it drives, and those that it has unloaded.

use std::collections::hash_map::Entry;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use super::ending::Patience;
use super::locks::RunLocks;
use crate::id::RunId;
use crate::run::{Held, Released, RunShared};
use crate::sharded::Sharded;
use crate::store::{Position, StoreError};

/// Where the runs of an engine are, with a lock for each.
pub(super) struct RunRegistry {
    /// Hashed with a key of this process, as ids may be those of strangers.
    runs: Sharded<RunId, State, foldhash::quality::RandomState>,
    /// The number of entries: the map would visit every shard for it.
    count: AtomicUsize,
    locks: Arc<RunLocks>,
    patience: Patience,
}

/// Where a run is.
#[derive(Debug)]
enum State {
    /// In a task; none of an id that is only reserved.
    Driven(Weak<RunShared>),
    /// In its store.
    Unloaded(Released),
}

/// A copy of a run's entry, taken without keeping the map locked.
pub(super) enum Lookup {
    Driven(Weak<RunShared>),
    Unloaded(Unloaded),
}

/// A run that was unloaded.
pub(super) struct Unloaded {
    /// How many records its journal had.
    pub(super) end: Position,
    /// The term of the engine's lease for which it was the engine's.
    pub(super) term: Option<u64>,
    /// The run as its handles know it.
    pub(super) run: Weak<RunShared>,
}

impl RunRegistry {
    pub(super) fn new(patience: Patience) -> Self {
        Self { runs: Sharded::default(), count: AtomicUsize::default(), locks: Arc::default(), patience }
    }

    pub(super) fn ids(&self) -> Vec<RunId> {
        self.runs.shards().flat_map(|runs| runs.keys().cloned().collect::<Vec<_>>()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub(super) fn has(&self, run: &RunId) -> bool {
        self.runs.shard(run).contains_key(run)
    }

    pub(super) fn find(&self, run: &RunId) -> Option<Lookup> {
        Some(match self.runs.shard(run).get(run)? {
            State::Driven(run) => Lookup::Driven(Weak::clone(run)),
            State::Unloaded(Released { end, term, run, .. }) => {
                let (term, run) = (term.map(NonZeroU64::get), Weak::clone(run));
                Lookup::Unloaded(Unloaded { end: *end, term, run })
            }
        })
    }

    /// A run that is driven here.
    pub(super) fn driven(&self, run: &RunId) -> Option<Arc<RunShared>> {
        if let Lookup::Driven(run) = self.find(run)? { run.upgrade() } else { None }
    }

    /// A run that was unloaded here.
    pub(super) fn unloaded(&self, run: &RunId) -> Option<Unloaded> {
        if let Lookup::Unloaded(unloaded) = self.find(run)? { Some(unloaded) } else { None }
    }

    pub(super) fn is_unloaded(&self, run: &RunId) -> bool {
        self.runs.shard(run).get(run).is_some_and(|state| matches!(state, State::Unloaded(_)))
    }

    /// Waits for a run's lock, for as long as the engine waits for its store: the holder may do so.
    pub(super) async fn lock(&self, run: &RunId) -> Result<Held, StoreError> {
        self.patience.wait(self.locked(run)).await
    }

    /// Waits for a run's lock. Only its holder loads the run, looks for it in the store or unloads it.
    pub(super) fn locked(&self, run: &RunId) -> impl Future<Output = Held> + Send + use<> {
        self.locks.hold(run)
    }

    /// Enters a run that is driven; whether there was none of its id.
    pub(super) fn enter(&self, id: &RunId, run: Weak<RunShared>) -> bool {
        match self.runs.shard(id).entry(id.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                // Before anybody can forget it.
                self.count.fetch_add(1, Ordering::SeqCst);
                vacant.insert(State::Driven(run));
                true
            }
        }
    }

    /// Takes the id for as long as the result lives, so that nobody begins or resumes a run of it; none if there is a run.
    pub(super) fn reserve(&self, run: &RunId) -> Option<Reserved<'_>> {
        self.enter(run, Weak::new()).then(|| Reserved { registry: self, run: run.clone() })
    }

    /// A run that was unloaded is driven again: answers what was kept of it; none if it was given up meanwhile.
    pub(super) fn reload(&self, id: &RunId, run: Weak<RunShared>) -> Option<Released> {
        let mut runs = self.runs.shard(id);
        let state = runs.get_mut(id)?;
        if matches!(state, State::Driven(_)) {
            return None;
        }
        match std::mem::replace(state, State::Driven(run)) {
            State::Unloaded(unloaded) => Some(unloaded),
            State::Driven(_) => None,
        }
    }

    /// A run that was driven is unloaded.
    pub(super) fn unload(&self, id: RunId, unloaded: Released) {
        let driven = self.runs.shard(&id).insert(id, State::Unloaded(unloaded));
        drop(driven);
    }

    /// Nobody has a handle on the run any more: if it was unloaded, the registry keeps nothing for them.
    pub(super) fn handles_gone(&self, run: &RunId) {
        // If somebody looks at it at this moment, what is kept is kept a little longer.
        if let Some(mut runs) = self.runs.try_shard(run)
            && let Some(State::Unloaded(unloaded)) = runs.get_mut(run)
            && unloaded.run.strong_count() == 0
        {
            unloaded.run = Weak::new();
        }
    }

    /// Forgets a run, if it is as it is thought to be; answers how it was, to be dropped when nothing is locked.
    fn forget(&self, run: &RunId, is_so: impl FnOnce(&State) -> bool) -> Option<State> {
        let mut runs = self.runs.shard(run);
        let gone = if is_so(runs.get(run)?) { runs.remove(run) } else { None };
        drop(runs);
        if gone.is_some() {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
        gone
    }

    /// Forgets a run that was driven, unless it was unloaded.
    pub(super) fn forget_driven(&self, run: &RunId) {
        drop(self.forget(run, |state| matches!(state, State::Driven(_))));
    }

    /// Forgets a run, if it was unloaded and not loaded again; answers what was kept of it.
    pub(super) fn forget_unloaded(&self, run: &RunId) -> Option<Released> {
        match self.forget(run, |state| matches!(state, State::Unloaded(_)))? {
            State::Unloaded(unloaded) => Some(unloaded),
            State::Driven(_) => None,
        }
    }
}

/// An id that no run has, and none gets until this is dropped.
pub(super) struct Reserved<'a> {
    registry: &'a RunRegistry,
    run: RunId,
}

impl Reserved<'_> {
    pub(super) fn run(&self) -> &RunId {
        &self.run
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.registry.forget_driven(&self.run);
    }
}

impl fmt::Debug for RunRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRegistry").field("runs", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::SystemTime;

    use futures_util::FutureExt as _;

    use super::super::ending::Ending;
    use super::*;

    fn registry() -> RunRegistry {
        RunRegistry::new(Ending::default().patience())
    }

    fn unloaded(due: Option<SystemTime>) -> Released {
        Released { end: Position(7), term: NonZeroU64::new(2), due, run: Weak::new(), _level: None }
    }

    #[test]
    fn an_id_belongs_to_one_run() {
        let registry = registry();
        assert!(registry.enter(&"a".into(), Weak::new()));
        assert!(!registry.enter(&"a".into(), Weak::new()));
        assert!(registry.reserve(&"a".into()).is_none());
        assert_eq!((registry.len(), registry.ids()), (1, vec!["a".into()]));
        registry.forget_driven(&"a".into());
        assert_eq!((registry.len(), registry.has(&"a".into())), (0, false));
    }

    #[test]
    fn a_reserved_id_is_free_again_once_the_reservation_is_dropped() {
        let registry = registry();
        let reserved = registry.reserve(&"a".into()).expect("it is free");
        assert!(!registry.enter(reserved.run(), Weak::new()));
        assert!(registry.driven(&"a".into()).is_none());
        drop(reserved);
        assert!(registry.enter(&"a".into(), Weak::new()));
    }

    #[test]
    fn an_unloaded_run_is_found_where_its_journal_ended() {
        let registry = registry();
        registry.enter(&"a".into(), Weak::new());
        assert!(!registry.is_unloaded(&"a".into()));
        registry.unload("a".into(), unloaded(None));
        let found = registry.unloaded(&"a".into()).expect("it is unloaded");
        assert_eq!((found.end, found.term, registry.is_unloaded(&"a".into())), (Position(7), Some(2), true));
        assert_eq!(registry.len(), 1);
        registry.forget_driven(&"a".into());
        assert!(registry.has(&"a".into()), "what drove it is gone, and it is not");
        assert!(registry.forget_unloaded(&"a".into()).is_some());
        assert_eq!(registry.len(), 0);
    }

    #[test]
    fn a_run_is_loaded_once() {
        let registry = registry();
        let due = Some(SystemTime::UNIX_EPOCH);
        assert!(registry.reload(&"a".into(), Weak::new()).is_none());
        registry.enter(&"a".into(), Weak::new());
        registry.unload("a".into(), unloaded(due));
        assert_eq!(registry.reload(&"a".into(), Weak::new()).map(|unloaded| unloaded.due), Some(due));
        assert!(registry.reload(&"a".into(), Weak::new()).is_none());
        assert!(registry.forget_unloaded(&"a".into()).is_none());
        assert_eq!(registry.len(), 1);
    }

    #[test]
    fn who_waits_for_a_lock_gives_up_with_the_engine() {
        let ending = Ending::default();
        let registry = RunRegistry::new(ending.patience());
        let held = registry.lock(&"a".into()).now_or_never().unwrap();
        let run = "a".into();
        let mut waits = pin!(registry.lock(&run));
        assert!(waits.as_mut().now_or_never().is_none());
        ending.give_up();
        assert!(matches!(waits.now_or_never(), Some(Err(StoreError::ShutDown))));
        drop(held);
    }
}
