//! Explains why branches of a fan-out were dropped (S50).

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::Cited;
use super::source::Source;
use super::text::items_of;
use crate::event::{Gathered, GatheredBranch};

/// The branches of a fan-out that were dropped, since enough others had settled
/// ([`FanOut::until`](crate::FanOut::until)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DroppedBranches {
    /// The step that opened the fan-out.
    pub step: Arc<str>,
    /// The event that completed the fan-out.
    pub gather: Cited,
    /// The number of branches that had settled without a failure.
    pub settled: u64,
    /// The items of the dropped branches. A branch that had failed is not among them.
    pub branches: Vec<Cited>,
}

impl Source<'_> {
    /// The fan-outs that dropped branches. O(events + branches that were dropped).
    pub(super) fn dropped(&self) -> Vec<DroppedBranches> {
        let gathers = self.report.log.iter().filter_map(|logged| {
            let gathered = logged.value.payload_ref::<Gathered>()?;
            let dropped = gathered.branches.iter().filter(|branch| branch.is_dropped());
            let branches: Vec<Cited> = dropped.filter_map(|branch| self.item_of(branch.scope)).collect();
            let gather = self.cite(logged.seq);
            let settled = |branch: &&GatheredBranch| branch.failure.is_none() && !branch.is_dropped();
            (!branches.is_empty()).then(|| DroppedBranches {
                step: gather.producer.as_ref().map_or_else(|| "?".into(), Arc::clone),
                settled: gathered.branches.iter().filter(settled).count() as u64,
                gather,
                branches,
            })
        });
        gathers.collect()
    }
}

impl fmt::Display for DroppedBranches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, settled, branches, .. } = self;
        let of = if branches.len() == 1 { "branch" } else { "branches" };
        write!(f, "`{step}` dropped the {of} of {}: ", items_of(branches))?;
        let enough = if *settled == 1 { "branch is" } else { "branches are" };
        write!(f, "{settled} {enough} enough (`FanOut::until`), and settled before")
    }
}
