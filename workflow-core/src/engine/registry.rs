//! The runs of an engine: those in tasks, those that were unloaded, and ended ones that it keeps (`ended_runs`).
//!
//! The registry decides where a message to a run goes. The entry of a run changes like this:
//!
//! ```text
//!           enter              unload             reload
//! (no run) ──────▶ Driven ──────────▶ Unloaded ──────────▶ Driven
//!   │ ▲               │ forget_driven     │ ▲ forget_unloaded
//!   │ └───────────────┴───────────────────┘ │
//!   └───────────────────────────────────────┘ enter_waiting: another process left it waiting
//! ```
//!
//! Invariant: one id has at most one entry, so an engine drives a run at most once. A run that the engine keeps is among
//! the ended ones before its entry goes, and no run enters under its id. A task that loads a run, looks it
//! up in the store or unloads it holds the run's lock. Reading the entry alone needs no lock.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use super::ended_runs::EndedRuns;
use super::locks::RunLocks;
use crate::id::RunId;
use crate::patience::StorePatience;
use crate::run::{RunLockGuard, RunShared, UnloadedRun};
use crate::store::{Position, StoreError};

/// The table of an engine's runs, with a lock per run.
pub(super) struct RunRegistry {
    /// Hashed with a key of this process, because ids may come from strangers.
    runs: DashMap<RunId, State, foldhash::quality::RandomState>,
    /// The number of entries, because the map would visit every shard to count them.
    count: AtomicUsize,
    /// How many entries were removed so far.
    departures: AtomicUsize,
    /// The ended runs that the engine keeps, if it keeps any.
    ended: Option<Box<EndedRuns>>,
    locks: Arc<RunLocks>,
    patience: StorePatience,
}

/// The state of a run's entry.
#[derive(Debug)]
enum State {
    /// A task drives the run. The `Weak` is empty for an id that is only reserved.
    Driven(Weak<RunShared>),
    /// The run waits in its store.
    Unloaded(UnloadedRun),
}

/// A copy of a run's entry. It does not keep the map locked.
pub(super) enum Lookup {
    Driven(Weak<RunShared>),
    Unloaded(Unloaded),
}

/// An unloaded run.
pub(super) struct Unloaded {
    /// The number of records in its journal at that time.
    pub(super) end: Position,
    /// The term of the engine's lease in which the run was this engine's; `None` without leases.
    pub(super) term: Option<u64>,
    /// The part of the run that its handles share; empty if no handle is left.
    pub(super) run: Weak<RunShared>,
    /// Whether this engine has not driven the run so far.
    pub(super) is_new: bool,
}

impl RunRegistry {
    pub(super) fn new(patience: StorePatience) -> Self {
        let (runs, count, departures) = (DashMap::default(), AtomicUsize::default(), AtomicUsize::default());
        Self { runs, count, departures, ended: None, locks: Arc::default(), patience }
    }

    /// The same, with room for ended runs.
    pub(super) fn keeping(self, ended: Option<EndedRuns>) -> Self {
        Self { ended: ended.map(Box::new), ..self }
    }

    /// The ended runs, if the engine keeps any.
    pub(super) fn ended(&self) -> Option<&EndedRuns> {
        self.ended.as_deref()
    }

    /// An ended run that the engine keeps.
    pub(super) fn find_ended(&self, run: &RunId) -> Option<Arc<RunShared>> {
        self.ended()?.get(run)
    }

    pub(super) fn ids(&self) -> Vec<RunId> {
        self.runs.iter().map(|run| run.key().clone()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub(super) fn has(&self, run: &RunId) -> bool {
        self.runs.contains_key(run)
    }

    /// The run's entry; `None` if the engine has no such run. O(1).
    pub(super) fn find(&self, run: &RunId) -> Option<Lookup> {
        Some(match &*self.runs.get(run)? {
            State::Driven(run) => Lookup::Driven(Weak::clone(run)),
            State::Unloaded(UnloadedRun { end, term, run, is_new, .. }) => {
                let (term, run) = (term.map(NonZeroU64::get), Weak::clone(run));
                Lookup::Unloaded(Unloaded { end: *end, term, run, is_new: *is_new })
            }
        })
    }

    /// The run, if a task of this engine drives it.
    pub(super) fn driven(&self, run: &RunId) -> Option<Arc<RunShared>> {
        if let Lookup::Driven(run) = self.find(run)? { run.upgrade() } else { None }
    }

    /// The run, if this engine has unloaded it.
    pub(super) fn unloaded(&self, run: &RunId) -> Option<Unloaded> {
        if let Lookup::Unloaded(unloaded) = self.find(run)? { Some(unloaded) } else { None }
    }

    pub(super) fn is_unloaded(&self, run: &RunId) -> bool {
        self.runs.get(run).is_some_and(|state| matches!(*state, State::Unloaded(_)))
    }

    /// Waits for a run's lock, until the engine gives up waiting for its store: the holder may wait for the store.
    pub(super) async fn lock(&self, run: &RunId) -> Result<RunLockGuard, StoreError> {
        self.patience.wait(self.locked(run)).await
    }

    /// Waits for a run's lock. Only its holder loads the run, looks it up in the store, or unloads it.
    pub(super) fn locked(&self, run: &RunId) -> impl Future<Output = RunLockGuard> + Send + use<> {
        self.locks.hold(run)
    }

    /// Adds a driven run. Returns `false` if the id has an entry, or the engine keeps an ended run of this id.
    pub(super) fn enter(&self, id: &RunId, run: Weak<RunShared>) -> bool {
        match self.runs.entry(id.clone()) {
            Entry::Occupied(_) => false,
            // Asked while the entry is locked: a run that ends is among the ended ones before it loses its entry.
            Entry::Vacant(_) if self.ended().is_some_and(|ended| ended.has(id)) => false,
            Entry::Vacant(vacant) => {
                // Counted before another thread can forget the entry.
                self.count.fetch_add(1, Ordering::SeqCst);
                vacant.insert(State::Driven(run));
                true
            }
        }
    }

    /// Adds a run that waits and that this engine has not driven so far. Returns `false` if the id has an entry.
    pub(super) fn enter_waiting(&self, id: &RunId, run: UnloadedRun) -> bool {
        match self.runs.entry(id.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                self.count.fetch_add(1, Ordering::SeqCst);
                vacant.insert(State::Unloaded(run));
                true
            }
        }
    }

    /// The runs that wait and that this engine has not driven so far.
    pub(super) fn new_waiting(&self) -> Vec<RunId> {
        let is_new = |state: &State| matches!(state, State::Unloaded(unloaded) if unloaded.is_new);
        self.runs.iter().filter(|run| is_new(run.value())).map(|run| run.key().clone()).collect()
    }

    /// Whether the run waits, and this engine has not driven it so far.
    pub(super) fn is_new_waiting(&self, run: &RunId) -> bool {
        self.unloaded(run).is_some_and(|unloaded| unloaded.is_new)
    }

    /// How many entries were removed so far: where the number stands still, no run has ended here.
    pub(super) fn departures(&self) -> usize {
        self.departures.load(Ordering::SeqCst)
    }

    /// Reserves the id until the result is dropped, so that no run of this id begins or resumes; `None` if there is an
    /// entry.
    pub(super) fn reserve(&self, run: &RunId) -> Option<Reserved<'_>> {
        self.enter(run, Weak::new()).then(|| Reserved { registry: self, run: run.clone() })
    }

    /// Marks an unloaded run as driven. Returns the content of the entry, or `None` if the run was given up meanwhile.
    pub(super) fn reload(&self, id: &RunId, run: Weak<RunShared>) -> Option<UnloadedRun> {
        let Entry::Occupied(mut entry) = self.runs.entry(id.clone()) else { return None };
        if matches!(entry.get(), State::Driven(_)) {
            return None;
        }
        match entry.insert(State::Driven(run)) {
            State::Unloaded(unloaded) => Some(unloaded),
            State::Driven(_) => None,
        }
    }

    /// Marks a driven run as unloaded.
    pub(super) fn unload(&self, id: RunId, unloaded: UnloadedRun) {
        self.runs.insert(id, State::Unloaded(unloaded));
    }

    /// The last handle of the run is gone: an unloaded run drops what it stored for handles.
    pub(super) fn handles_gone(&self, run: &RunId) {
        // If another thread holds the entry at this moment, the memory is freed later.
        if let Some(mut state) = self.runs.try_get_mut(run).try_unwrap()
            && let State::Unloaded(unloaded) = &mut *state
            && unloaded.run.strong_count() == 0
        {
            unloaded.run = Weak::new();
        }
    }

    /// Forgets a run if its entry passes the check. Returns the entry, which the caller drops when nothing is locked.
    fn forget(&self, run: &RunId, is_so: impl FnOnce(&State) -> bool) -> Option<State> {
        let gone = self.runs.remove_if(run, |_, state| is_so(state));
        if gone.is_some() {
            self.count.fetch_sub(1, Ordering::SeqCst);
            self.departures.fetch_add(1, Ordering::SeqCst);
        }
        gone.map(|(_, state)| state)
    }

    /// Forgets a driven run. An unloaded one stays.
    pub(super) fn forget_driven(&self, run: &RunId) {
        drop(self.forget(run, |state| matches!(state, State::Driven(_))));
    }

    /// Forgets an unloaded run. Returns the content of the entry, or `None` if the run was loaded again.
    pub(super) fn forget_unloaded(&self, run: &RunId) -> Option<UnloadedRun> {
        match self.forget(run, |state| matches!(state, State::Unloaded(_)))? {
            State::Unloaded(unloaded) => Some(unloaded),
            State::Driven(_) => None,
        }
    }
}

/// A reserved id: no run has it, and none gets it until this is dropped.
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

    use futures::FutureExt as _;

    use super::super::ending::Ending;
    use super::*;

    fn registry() -> RunRegistry {
        RunRegistry::new(Ending::default().patience())
    }

    fn unloaded(due: Option<SystemTime>) -> UnloadedRun {
        let (term, run) = (NonZeroU64::new(2), Weak::new());
        UnloadedRun { end: Position(7), term, due, run, is_new: false, _level: None }
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
        assert!(registry.has(&"a".into()), "the run outlives the task that drove it");
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
    fn a_wait_for_a_lock_ends_with_the_engine() {
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

    // S87
    #[test]
    fn a_run_that_waits_enters_once_and_is_new_until_it_is_loaded() {
        let registry = registry();
        let waiting = || UnloadedRun::taken_up(Position(3), None, &"Greeter".into());
        let before = registry.departures();
        assert!(registry.enter_waiting(&"a".into(), waiting()));
        assert!(!registry.enter_waiting(&"a".into(), waiting()));
        assert!(!registry.enter(&"a".into(), Weak::new()));
        assert_eq!((registry.len(), registry.new_waiting()), (1, vec!["a".into()]));
        assert!(registry.is_new_waiting(&"a".into()) && !registry.is_new_waiting(&"b".into()));
        assert!(registry.reload(&"a".into(), Weak::new()).is_some_and(|unloaded| unloaded.is_new));
        registry.unload("a".into(), unloaded(None));
        assert_eq!((registry.new_waiting(), registry.departures()), (vec![], before));
        registry.forget_unloaded(&"a".into());
        assert_eq!((registry.len(), registry.departures()), (0, before + 1));
    }
}
