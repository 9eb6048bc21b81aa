//! The part that all runs of an engine share; each run has one pointer to it.

use std::sync::{Arc, Weak};

use tokio_util::task::TaskTracker;

use super::{Lingering, ReplayFailures, RunSettings, Turns, WindDown};
use crate::clock::EngineClock;
use crate::context::{ContextStore, MemoryContexts};
use crate::event::EventCheck;
use crate::id::RunId;
use crate::lease::Lease;
use crate::observe::{Observation, Observed, Observers};
use crate::run::HostsRuns;

/// The clock, observers, settings and links to the engine that all its runs share.
pub(crate) struct EngineParts {
    pub(crate) observers: Observers,
    pub(crate) clock: EngineClock,
    /// The engine's context store. Weak, so that handles of ended runs do not keep it open.
    pub(crate) contexts: Weak<dyn ContextStore>,
    /// The engine's lease, if it takes one.
    pub(crate) lease: Option<Arc<Lease>>,
    /// Whether runs have journals.
    pub(crate) is_durable: bool,
    pub(crate) settings: RunSettings,
    /// How far the engine has shut down its runs.
    pub(crate) wind_down: WindDown,
    /// The turns of executions under which processes ended.
    pub(crate) turns: Arc<Turns>,
    /// The tasks for which the engine's end waits, those of attempts among them.
    pub(crate) tasks: TaskTracker,
    /// The aborted steps of ended runs.
    pub(crate) lingering: Arc<Lingering>,
    /// The findings of replay checks; `None` unless the engine checks its runs.
    pub(crate) replay_check: Option<Arc<ReplayFailures>>,
    /// The engine, which starts children of runs and loads unloaded runs again.
    pub(crate) engine: Option<Weak<dyn HostsRuns>>,
}

impl EngineParts {
    /// The common part of runs without an engine: no observers and no contexts.
    pub(crate) fn without_engine(clock: EngineClock) -> Self {
        Self {
            observers: Observers::start(Vec::new()),
            clock,
            contexts: Weak::<MemoryContexts>::new(),
            lease: None,
            is_durable: false,
            settings: RunSettings {
                display_capacity: 1,
                mailbox_capacity: 1,
                ..RunSettings::default().kept(false, false)
            },
            wind_down: WindDown::default(),
            turns: Arc::default(),
            tasks: TaskTracker::new(),
            lingering: Arc::default(),
            replay_check: None,
            engine: None,
        }
    }

    /// The engine that drives the run, if there is one and it is still there.
    pub(crate) fn engine(&self) -> Option<Arc<dyn HostsRuns>> {
        self.engine.as_ref()?.upgrade()
    }

    /// Sends an observation of a run to the observers.
    pub(super) fn observed(&self, run: &RunId, workflow: &Arc<str>, what: Observed) {
        let (run, workflow) = (run.clone(), Arc::clone(workflow));
        self.observers.tell(&Observation { run, workflow, at: self.clock.shown(), what });
    }

    /// The checks that an event must pass to enter a run.
    pub(crate) fn event_check(&self) -> EventCheck {
        self.settings.events
    }
}
