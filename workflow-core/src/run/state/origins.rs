//! The origins of what came from outside: of events by their sequence numbers, and of the cancel; and the ids that the
//! journal has (S62).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::id::{Origin, Seq};

/// The origins in one journal.
#[derive(Debug, Default)]
pub(in crate::run) struct Origins {
    of_events: BTreeMap<Seq, Arc<Origin>>,
    of_cancel: Option<Arc<Origin>>,
    /// Hashed with random keys, since callers choose the ids.
    ids: HashSet<Arc<str>>,
}

impl Origins {
    /// The event has this origin.
    pub(super) fn note_event(&mut self, seq: Seq, origin: Arc<Origin>) {
        self.ids.extend(origin.id.clone());
        self.of_events.insert(seq, origin);
    }

    /// The cancel that ended the run has this origin.
    pub(super) fn note_cancel(&mut self, origin: Arc<Origin>) {
        self.ids.extend(origin.id.clone());
        self.of_cancel = Some(origin);
    }

    /// A pause or an unpause has this origin.
    pub(super) fn note_act(&mut self, origin: &Origin) {
        self.ids.extend(origin.id.clone());
    }

    /// No journal has the pause or the unpause.
    pub(super) fn forget_act(&mut self, origin: &Origin) {
        if let Some(id) = &origin.id {
            self.ids.remove(id);
        }
    }

    /// No journal has the cancel.
    pub(super) fn forget_cancel(&mut self) {
        if let Some(id) = self.of_cancel.take().and_then(|origin| origin.id.clone()) {
            self.ids.remove(&id);
        }
    }

    /// The run continues after its end. The id of the cancel stays in the journal.
    pub(super) fn redrive(&mut self) {
        self.of_cancel = None;
    }

    /// Removes the origins of events from this sequence number on, which are in no journal.
    pub(super) fn retract(&mut self, from: Seq) {
        for origin in self.of_events.split_off(&from).into_values() {
            if let Some(id) = &origin.id {
                self.ids.remove(id);
            }
        }
    }

    pub(in crate::run) fn of_event(&self, seq: Seq) -> Option<&Arc<Origin>> {
        self.of_events.get(&seq)
    }

    pub(in crate::run) fn of_cancel(&self) -> Option<&Arc<Origin>> {
        self.of_cancel.as_ref()
    }

    /// Whether the journal has an act with this id.
    pub(in crate::run) fn has(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// A line for each origin, in a fixed order.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let events = self.of_events.iter().map(|(seq, origin)| format!("of {seq}: {origin:?}"));
        events.chain(self.of_cancel.iter().map(|origin| format!("of the cancel: {origin:?}")))
    }
}
