//! The log entry of a settled fan-out (S48).

use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use super::{AnyEvent, Erased, EventKind, EventType, Roles};
use crate::error::BranchFailure;
use crate::id::ScopeId;
use crate::panics::release;

/// The result of one branch.
#[derive(Debug, Clone)]
pub(crate) struct GatheredBranch {
    pub(crate) scope: ScopeId,
    pub(crate) item: AnyEvent,
    pub(crate) events: SmallVec<[AnyEvent; 1]>,
    /// Boxed, since few branches fail and there may be very many.
    pub(crate) failure: Option<Box<BranchFailure>>,
    /// Whether it was dropped before it settled, since enough others had (S50). It may have failed before.
    pub(crate) dropped: bool,
}

impl GatheredBranch {
    /// Whether it was dropped, and had not failed by then.
    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped && self.failure.is_none()
    }
}

/// The log entry that completes a fan-out.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) branches: Vec<GatheredBranch>,
}

impl Gathered {
    pub(crate) const TYPE: EventType = EventType {
        name: "gathered",
        roles: Roles::NONE,
        version: 1,
        upgrade: None,
        type_id: std::any::TypeId::of::<Gathered>(),
        type_name: std::any::type_name::<Gathered>,
        decode: |_, _| Err(serde_json::Error::custom("what was gathered is made of the log")),
        json: super::JsonForm::NONE,
    };
}

impl Erased for Gathered {
    fn kind(&self) -> EventKind<'_> {
        EventKind::Rust(&Self::TYPE)
    }

    fn release(self: Arc<Self>) {
        release(self);
    }
}

impl Serialize for Gathered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.branches.iter().map(|branch| &branch.item))
    }
}
