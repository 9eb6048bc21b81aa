//! The log entry of a settled fan-out (S48).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    pub(crate) end: BranchEnd,
}

/// How a branch ended: the number of branches of the fan-out that settled before it (S59), and whether it was dropped
/// before it settled, since enough others had (S50). In one number, since there may be very many branches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BranchEnd(u32);

impl BranchEnd {
    /// Above every number of branches that memory can hold.
    const DROPPED: u32 = 1 << 31;

    #[inline]
    pub(crate) fn settled(before: u32) -> Self {
        Self(before)
    }

    pub(crate) fn dropped(before: u32) -> Self {
        Self(before | Self::DROPPED)
    }

    /// The same end, with another number of branches before it.
    pub(crate) fn renumbered(self, before: u32) -> Self {
        Self(before | self.0 & Self::DROPPED)
    }

    pub(crate) fn before(self) -> u32 {
        self.0 & !Self::DROPPED
    }

    #[inline]
    pub(crate) fn is_dropped(self) -> bool {
        self.0 & Self::DROPPED != 0
    }
}

impl GatheredBranch {
    /// Whether it was dropped, and had not failed by then.
    pub(crate) fn is_dropped(&self) -> bool {
        self.end.is_dropped() && self.failure.is_none()
    }
}

/// The log entry that completes a fan-out.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) branches: Vec<GatheredBranch>,
    /// Whether a step asked for the order in which the branches settled.
    order_read: AtomicBool,
}

impl Gathered {
    pub(crate) fn new(branches: Vec<GatheredBranch>) -> Self {
        Self { branches, order_read: AtomicBool::new(false) }
    }

    /// The number of branches that settled before this one.
    pub(crate) fn settled(&self, branch: &GatheredBranch) -> u32 {
        self.order_read.store(true, Ordering::Relaxed);
        branch.end.before()
    }

    pub(crate) fn is_order_read(&self) -> bool {
        self.order_read.load(Ordering::Relaxed)
    }

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
