//! The runs of an engine that have not ended: those that it drives, and those that it has let go of.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::holds::Holds;
use super::{Engine, Idle, Inner};
use crate::children::HostsRuns;
use crate::error::RunError;
use crate::id::RunId;
use crate::run::{Held, Registration, Released, RunShared};
use crate::store::Position;

/// Where the runs of an engine are.
#[derive(Default)]
pub(super) struct Known {
    /// Hashed with a key of this process, as ids may be those of strangers.
    runs: DashMap<RunId, Place, foldhash::quality::RandomState>,
    /// How many there are, for which the map would look everywhere.
    count: AtomicUsize,
    holds: Arc<Holds>,
}

/// Where a run is.
#[derive(Debug)]
enum Place {
    /// In a task; none of an id that is only kept free.
    Driven(Weak<RunShared>),
    /// In its store.
    Released(Released),
}

/// The same, as of one moment.
pub(super) enum Found {
    Driven(Weak<RunShared>),
    Released(Absent),
}

/// A run that was let go of.
pub(super) struct Absent {
    /// How many records its journal had.
    pub(super) end: Position,
    /// The term of the engine's lease for which it was the engine's.
    pub(super) term: Option<u64>,
    /// The run as its handles know it.
    pub(super) run: Weak<RunShared>,
}

impl Known {
    pub(super) fn ids(&self) -> Vec<RunId> {
        self.runs.iter().map(|run| run.key().clone()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub(super) fn has(&self, run: &RunId) -> bool {
        self.runs.contains_key(run)
    }

    pub(super) fn find(&self, run: &RunId) -> Option<Found> {
        Some(match &*self.runs.get(run)? {
            Place::Driven(run) => Found::Driven(Weak::clone(run)),
            Place::Released(Released { end, term, run, .. }) => {
                Found::Released(Absent { end: *end, term: term.map(NonZeroU64::get), run: Weak::clone(run) })
            }
        })
    }

    pub(super) fn is_released(&self, run: &RunId) -> bool {
        self.runs.get(run).is_some_and(|place| matches!(*place, Place::Released(_)))
    }

    /// Whoever has it, and nobody else, loads the run, looks for it in the store or lets go of it. No run waits for another.
    pub(super) fn hold(&self, run: &RunId) -> impl Future<Output = Held> + Send + use<> {
        self.holds.hold(run)
    }

    /// Nobody has a handle on the run any more: if it was let go of, so is what was kept for them.
    pub(super) fn handles_gone(&self, run: &RunId) {
        // If somebody looks at it at this moment, what is kept is kept a little longer.
        if let Some(mut place) = self.runs.try_get_mut(run).try_unwrap()
            && let Place::Released(released) = &mut *place
            && released.run.strong_count() == 0
        {
            released.run = Weak::new();
        }
    }

    /// Forgets a run, if it is as it is thought to be; answers how it was, to be dropped when nothing is locked.
    fn forget(&self, run: &RunId, is_so: impl FnOnce(&Place) -> bool) -> Option<Place> {
        let gone = self.runs.remove_if(run, |_, place| is_so(place));
        if gone.is_some() {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
        gone.map(|(_, place)| place)
    }

    /// Forgets a run, if it was let go of and not loaded again; answers what was kept of it.
    pub(super) fn forget_released(&self, run: &RunId) -> Option<Released> {
        match self.forget(run, |place| matches!(place, Place::Released(_)))? {
            Place::Released(released) => Some(released),
            Place::Driven(_) => None,
        }
    }
}

/// The entry of a run that is driven.
pub(super) struct Registered {
    engine: Arc<Inner>,
    id: RunId,
}

impl Registered {
    /// None if there is a run of this id.
    pub(super) fn new(engine: &Arc<Inner>, id: &RunId, run: Weak<RunShared>) -> Option<Self> {
        match engine.known.runs.entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                // Before anybody can forget it.
                engine.known.count.fetch_add(1, Ordering::SeqCst);
                vacant.insert(Place::Driven(run));
                Some(Self { engine: Arc::clone(engine), id: id.clone() })
            }
        }
    }

    /// That of a run that was let go of and is driven again; none if it was given up meanwhile.
    pub(super) fn again(engine: &Arc<Inner>, id: &RunId, run: Weak<RunShared>) -> Option<Self> {
        let before = match engine.known.runs.entry(id.clone()) {
            Entry::Occupied(place) if matches!(place.get(), Place::Driven(_)) => return None,
            Entry::Occupied(mut place) => place.insert(Place::Driven(run)),
            Entry::Vacant(_) => return None,
        };
        if let Place::Released(Released { due: Some(due), .. }) = before {
            engine.idle.forget(due, id);
        }
        Some(Self { engine: Arc::clone(engine), id: id.clone() })
    }
}

impl Registration for Registered {
    fn hold(&self) -> BoxFuture<'static, Held> {
        self.engine.known.hold(&self.id).boxed()
    }

    fn release(self, released: Released, run: Arc<RunShared>) {
        let due = released.due;
        run.mailbox.leave_to(Arc::clone(&self.engine) as Arc<dyn HostsRuns>);
        self.engine.known.runs.insert(self.id.clone(), Place::Released(released));
        self.engine.idle.note_runtime();
        if let Some(due) = due {
            Idle::remind(&self.engine, due, &self.id);
        }
        // Whoever leaves one later finds that the run was let go of.
        if run.cancel_note.left().is_some() {
            Arc::clone(&self.engine).note_left(run);
        }
        // Either it is found among those that were let go of, or it finds here that all runs are left.
        if self.engine.common.hands_over.load(Ordering::SeqCst) {
            Engine { inner: Arc::clone(&self.engine) }.lose(&self.id, RunError::Abandoned);
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        drop(self.engine.known.forget(&self.id, |place| matches!(place, Place::Driven(_))));
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("runs", &self.len()).finish_non_exhaustive()
    }
}
