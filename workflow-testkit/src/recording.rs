//! All observations of a run, in order, and the displayed items of its child runs. An observer would be asynchronous;
//! this recording is synchronous, so it misses nothing and is the same each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::report::ChildRun;
use workflow_core::{DisplayItem, RunId};

/// The observations. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recording {
    observed: Arc<Mutex<Vec<Observed>>>,
}

impl Recording {
    /// Records one run.
    pub(crate) fn observer(&self, run: RunId) -> impl Observer + use<> {
        Recorded { recording: self.clone(), run, ways: Mutex::default() }
    }

    /// The number of observations so far.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The first `count` observations.
    pub(crate) fn first(&self, count: usize) -> Vec<Observed> {
        self.lock().iter().take(count).cloned().collect()
    }

    /// No code leaves the state half-changed.
    fn lock(&self) -> MutexGuard<'_, Vec<Observed>> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records the observations of one run, and the displayed items of runs below it.
struct Recorded {
    recording: Recording,
    run: RunId,
    ways: Mutex<HashMap<RunId, Way>>,
}

/// The path to a run below the recorded one: the child, then its child, and so on.
type Way = Arc<[ChildRun]>;

impl Recorded {
    /// The path to the run; `None` if it is not below the recorded one.
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

    fn is_synchronous(&self) -> bool {
        true
    }
}
