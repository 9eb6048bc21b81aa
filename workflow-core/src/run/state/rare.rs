//! What few runs have in their state: children, origins, and the deadline that ended them. Allocated with the first of it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::RunState;
use super::children::RecordedChildren;
use super::origins::Origins;
use crate::id::{Origin, Seq};

/// The rarely used state of a run.
#[derive(Debug, Default)]
pub(super) struct RareState {
    pub(super) children: RecordedChildren,
    pub(super) origins: Origins,
    /// The deadline that ended the run, until it is redriven.
    pub(super) passed_deadline: Option<SystemTime>,
    /// The limit of active time that ended the run, of one that cleans up; until it is redriven.
    pub(super) timed_out_after: Option<Duration>,
}

impl RunState {
    /// The origins in the journal, if there are any.
    pub(in crate::run) fn origins(&self) -> Option<&Origins> {
        self.rare.as_ref().map(|rare| &rare.origins)
    }

    /// The origin of an event from outside.
    pub(in crate::run) fn origin_of(&self, seq: Seq) -> Option<&Arc<Origin>> {
        self.origins()?.of_event(seq)
    }

    /// Whether the journal has the act of this origin already.
    pub(in crate::run) fn knows(&self, origin: &Origin) -> bool {
        let id = origin.id.as_ref();
        id.is_some_and(|id| self.origins().is_some_and(|origins| origins.has(id)))
    }

    /// The deadline that ended the run, if one did.
    pub(in crate::run) fn passed_deadline(&self) -> Option<SystemTime> {
        self.rare.as_ref()?.passed_deadline
    }

    /// The limit of active time that ended the run, if it cleaned up after that.
    pub(in crate::run) fn timed_out_after(&self) -> Option<Duration> {
        self.rare.as_ref()?.timed_out_after
    }

    /// The store did not take the record of a pause or an unpause with this origin.
    pub(in crate::run) fn forget_act(&mut self, origin: &Origin) {
        if let Some(rare) = &mut self.rare {
            rare.origins.forget_act(origin);
        }
    }

    /// The store did not take the record with the origin of the cancel, or with the deadline that passed.
    pub(in crate::run) fn forget_cancel(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.origins.forget_cancel();
            (rare.passed_deadline, rare.timed_out_after) = (None, None);
        }
    }

    pub(super) fn rare_mut(&mut self) -> &mut RareState {
        self.rare.get_or_insert_default()
    }
}
