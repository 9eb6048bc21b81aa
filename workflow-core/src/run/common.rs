//! The part that all runs of an engine share: each has one pointer to it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use super::{ReplayFailures, RunSettings};
use crate::clock::EngineClock;
use crate::context::{ContextStore, MemoryContexts};
use crate::event::EventCheck;
use crate::id::RunId;
use crate::lease::Lease;
use crate::observe::{Observation, Observed, Observers};
use crate::run::HostsRuns;

pub(crate) struct Common {
    pub(crate) observers: Observers,
    pub(crate) clock: EngineClock,
    /// The engine's, which handles of runs that have ended do not keep open.
    pub(crate) contexts: Weak<dyn ContextStore>,
    /// The lease of the engine, if that takes one.
    pub(crate) lease: Option<Arc<Lease>>,
    /// Whether runs have journals.
    pub(crate) is_kept: bool,
    pub(crate) settings: RunSettings,
    /// Whether all runs are left to another engine.
    pub(crate) hands_over: AtomicBool,
    /// The findings of the replay checks of runs; none where nothing is checked.
    pub(crate) replay_check: Option<Arc<ReplayFailures>>,
    /// Starts children of runs, and loads those again that it has unloaded.
    pub(crate) engine: Option<Weak<dyn HostsRuns>>,
}

impl Common {
    /// That of runs without an engine, which nobody observes and which have no contexts.
    pub(crate) fn without_engine(clock: EngineClock) -> Self {
        Self {
            observers: Observers::start(Vec::new()),
            clock,
            contexts: Weak::<MemoryContexts>::new(),
            lease: None,
            is_kept: false,
            settings: RunSettings {
                display_capacity: 1,
                mailbox_capacity: 1,
                ..RunSettings::default().kept(false, false)
            },
            hands_over: AtomicBool::new(false),
            replay_check: None,
            engine: None,
        }
    }

    /// Tells the observers of a run.
    /// The engine that drives the run, if there is one and it is still there.
    pub(crate) fn engine(&self) -> Option<Arc<dyn HostsRuns>> {
        self.engine.as_ref()?.upgrade()
    }

    pub(super) fn observed(&self, run: &RunId, workflow: &Arc<str>, what: Observed) {
        let (run, workflow) = (run.clone(), Arc::clone(workflow));
        self.observers.tell(&Observation { run, workflow, at: self.clock.shown(), what });
    }

    /// The rules that an event obeys when it enters a run.
    pub(crate) fn event_check(&self) -> EventCheck {
        self.settings.events
    }
}
