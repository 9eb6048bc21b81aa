//! Everything that is observed of a run, in order. It is told where things happen, so that it misses nothing and is the
//! same each time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use workflow_core::{Observation, Observed, Observer, RunId};

/// What was observed. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recording {
    observed: Arc<Mutex<Vec<Observed>>>,
}

impl Recording {
    /// Records one run.
    pub(crate) fn observer(&self, run: RunId) -> impl Observer + use<> {
        Recorded { recording: self.clone(), run }
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

/// Puts into a recording what is observed of one run.
struct Recorded {
    recording: Recording,
    run: RunId,
}

impl Observer for Recorded {
    fn observe(&self, observation: &Observation) {
        if observation.run == self.run {
            self.recording.lock().push(observation.what.clone());
        }
    }

    fn is_told_at_once(&self) -> bool {
        true
    }
}
