//! The rows of a table by name. Names of a faulty table may repeat: the first row counts.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::{DependencyTable, EventIndex, StepIndex};

/// The indices of events and steps by name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    events: HashMap<Arc<str>, EventIndex>,
    steps: HashMap<Arc<str>, StepIndex>,
}

impl Names {
    /// Names a table of so many events and steps.
    pub(super) fn with_room(events: usize, steps: usize) -> Self {
        Self { events: HashMap::with_capacity(events), steps: HashMap::with_capacity(steps) }
    }

    /// Adds an event. Returns the first one of this name, which may be this one.
    pub(super) fn add_event(&mut self, name: &Arc<str>, event: EventIndex) -> EventIndex {
        *self.events.entry(Arc::clone(name)).or_insert(event)
    }

    /// Adds a step. Returns the first one of this name, which may be this one.
    pub(super) fn add_step(&mut self, name: &Arc<str>, step: StepIndex) -> StepIndex {
        *self.steps.entry(Arc::clone(name)).or_insert(step)
    }

    pub(super) fn event(&self, name: &str) -> Option<EventIndex> {
        self.events.get(name).copied()
    }

    pub(super) fn step(&self, name: &str) -> Option<StepIndex> {
        self.steps.get(name).copied()
    }
}

impl DependencyTable {
    /// Adds the names of the internal events, which stand behind those that were declared.
    pub(super) fn name_internal_events(&mut self, declared: usize) {
        for (index, row) in self.events.iter().enumerate().skip(declared) {
            self.names.add_event(&row.name, EventIndex::at(index));
        }
    }
}
