//! Everything that is observed of a run, in order, and what its child runs show. It is told where things happen, so that
//! it misses nothing and is the same each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use workflow_core::{ChildRun, DisplayItem, Observation, Observed, Observer, RunId};

/// What was observed. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recording {
    observed: Arc<Mutex<Vec<Observed>>>,
}

impl Recording {
    /// Records one run.
    pub(crate) fn observer(&self, run: RunId) -> impl Observer + use<> {
        Recorded { recording: self.clone(), run, ways: Mutex::default() }
    }

    /// How much was observed so far.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The first so many of what was observed.
    pub(crate) fn first(&self, count: usize) -> Vec<Observed> {
        self.lock().iter().take(count).cloned().collect()
    }

    /// Nothing in here is ever left half-changed.
    fn lock(&self) -> MutexGuard<'_, Vec<Observed>> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts into a recording what is observed of one run, and what is shown by runs below it.
struct Recorded {
    recording: Recording,
    run: RunId,
    ways: Mutex<HashMap<RunId, Way>>,
}

/// How a run below the recorded one was come to: the child, then the child of it, and so on.
type Way = Arc<[ChildRun]>;

impl Recorded {
    /// The way to the run; none if it is not below the recorded one.
    fn way_to(&self, run: &RunId) -> Option<Way> {
        if *run == self.run {
            return Some(Way::default());
        }
        self.ways.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }

    fn note_child(&self, way: &[ChildRun], child: &ChildRun) {
        let way = way.iter().chain([child]).cloned().collect();
        self.ways.lock().unwrap_or_else(PoisonError::into_inner).insert(child.run.clone(), way);
    }
}

impl Observer for Recorded {
    fn observe(&self, Observation { run, what, .. }: &Observation) {
        let Some(way) = self.way_to(run) else { return };
        if let Observed::ChildStarted { child } = what {
            self.note_child(&way, child);
        }
        let what = match what {
            what if way.is_empty() => what.clone(),
            Observed::Displayed(item) => {
                Observed::Displayed(DisplayItem::Child { path: way, item: item.clone().into() })
            }
            _ => return,
        };
        self.recording.lock().push(what);
    }

    fn is_told_at_once(&self) -> bool {
        true
    }
}
