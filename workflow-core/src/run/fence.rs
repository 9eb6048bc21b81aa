//! What keeps a run from beginning anything while it may be another engine's (S40). A run whose engine has lost its lease
//! goes on with what it has begun and begins nothing; once the lease is taken again it writes that it is still here,
//! which the store refuses if somebody has claimed it, and begins nothing before that is written.

use std::sync::Arc;
use std::task::Context;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::drive::Run;
use crate::engine::Lease;
use crate::scheduler::{Action, Wanted};
use crate::store::{Position, Record};

/// Where a run stands with its engine's lease.
pub(super) struct Fence {
    lease: Arc<Lease>,
    /// The term of the lease for which the run is known to be this engine's; none if there was no lease.
    term: Option<u64>,
    /// The term for which it is to be known, and where its journal ends with the record that says so.
    asking: Option<(u64, Position)>,
    /// Until the lease is renewed.
    wait: Option<BoxFuture<'static, ()>>,
}

impl Fence {
    /// Made before the run writes that it begins, or goes on.
    pub(super) fn new(lease: &Arc<Lease>) -> Self {
        Self { term: lease.term(), lease: Arc::clone(lease), asking: None, wait: None }
    }

    /// The term for which the run is known to be this engine's.
    pub(super) fn term(&self) -> Option<u64> {
        self.term
    }

    /// That of a run that writes nothing before it goes on.
    pub(super) fn is_of(&mut self, term: Option<u64>) {
        self.term = term;
    }

    /// Whether the engine has lost its lease; the run is woken when it is renewed.
    fn has_lapsed(&mut self, cx: &mut Context<'_>) -> bool {
        while self.lease.term().is_none() {
            // Looked at once more when it is listened for: a renewal in between is not missed.
            let wait = self.wait.get_or_insert_with(|| self.lease.renewed());
            if self.lease.term().is_none() && wait.poll_unpin(cx).is_pending() {
                return true;
            }
            self.wait = None;
        }
        self.wait = None;
        false
    }
}

impl Run {
    /// Whether the action begins something that must not be done by two: an execution or a precondition.
    pub(super) fn begins(wanted: &Wanted) -> bool {
        matches!(wanted, Wanted::Start(_) | Wanted::Act(Action::AskPrecondition { .. }))
    }

    /// Whether the run must not begin anything now. It is woken when that may have changed. O(1).
    pub(super) fn is_fenced(&mut self, cx: &mut Context<'_>) -> bool {
        let (Some(fence), Some(journal)) = (&mut self.fence, &mut self.journal) else { return false };
        if let Some((term, _)) = fence.asking.take_if(|(_, end)| journal.is_written_to(*end)) {
            fence.term = Some(term);
        }
        // What the store answers to the record wakes the run as well.
        if fence.asking.is_some() || fence.has_lapsed(cx) {
            return true;
        }
        let term = fence.lease.term();
        if let Some(term) = term.filter(|_| term != fence.term) {
            let at = self.clock.wall();
            fence.asking = Some((term, journal.record_to(Record::RunKept { at })));
        } else if term.is_none() {
            // It ran out since it was looked at.
            cx.waker().wake_by_ref();
        }
        term.is_none() || fence.asking.is_some()
    }
}
