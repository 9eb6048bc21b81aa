//! The result of a visit as events carry it: read out of the event of the log when something first asks.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Serialize, Serializer};
use workflow_core::AnyEvent;

use super::NodeOutcome;
use crate::state::{NodeResult, part_of};

/// The result of a visit, which clones share.
///
/// It is made when something first reads it, so an observer that ignores results pays for none.
#[derive(Clone)]
pub struct SharedOutcome(Arc<Read>);

struct Read {
    /// The event that has it, until it is read.
    event: Option<AnyEvent>,
    outcome: OnceLock<NodeOutcome>,
}

impl SharedOutcome {
    /// The result that an event of the log is.
    pub(crate) fn of(event: &AnyEvent) -> Self {
        Self(Arc::new(Read { event: Some(event.clone()), outcome: OnceLock::new() }))
    }
}

impl From<NodeOutcome> for SharedOutcome {
    fn from(outcome: NodeOutcome) -> Self {
        Self(Arc::new(Read { event: None, outcome: outcome.into() }))
    }
}

impl Deref for SharedOutcome {
    type Target = NodeOutcome;

    fn deref(&self) -> &NodeOutcome {
        self.0.outcome.get_or_init(|| {
            let result = self.0.event.as_ref().and_then(|event| part_of::<NodeResult>(event).ok());
            NodeOutcome::of(result.unwrap_or_default())
        })
    }
}

impl fmt::Debug for SharedOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for SharedOutcome {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

/// As [`NodeOutcome`].
impl Serialize for SharedOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}
