//! What all runs of an engine share: each has one pointer to it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::ReplayFailures;
use crate::children::HostsRuns;
use crate::clock::EngineClock;
use crate::context::ContextStore;
use crate::engine::Lease;
use crate::event::EventCheck;
use crate::observe::Observers;

pub(crate) struct Common {
    pub(crate) observers: Observers,
    pub(crate) clock: EngineClock,
    /// The engine's, which handles of runs that have ended do not keep open.
    pub(crate) contexts: Weak<dyn ContextStore>,
    /// The lease of the engine, if that takes one.
    pub(crate) lease: Option<Arc<Lease>>,
    /// Whether runs have journals.
    pub(crate) is_kept: bool,
    /// How long a run waits before it is let go of; none if it never is.
    pub(crate) release_after: Option<Duration>,
    /// Whether all runs are left to another engine.
    pub(crate) hands_over: AtomicBool,
    /// What the replay checks of runs have found; none where nothing is checked.
    pub(crate) replay_check: Option<Arc<ReplayFailures>>,
    /// The most bytes of JSON that an event may have.
    pub(crate) max_event_bytes: Option<usize>,
    /// Whether the store of journals keeps events as JSON.
    pub(crate) serialises: bool,
    /// How many displayed items a run keeps.
    pub(crate) display_capacity: usize,
    /// How many commands wait for a run.
    pub(crate) mailbox_capacity: usize,
    /// Who starts children of runs, and loads those again that it has let go of.
    pub(crate) engine: Weak<dyn HostsRuns>,
}

impl Common {
    /// What an event has to be so that it may enter a run.
    pub(crate) fn event_check(&self) -> EventCheck {
        EventCheck { most_bytes: self.max_event_bytes, serialises: self.serialises }
    }
}
