//! What keeps a run from beginning anything while it may be another engine's (S40). A run whose engine has lost its lease
//! goes on with what it has begun and begins nothing; once the lease is taken again it writes that it is still here,
//! which the store refuses if somebody has claimed it, and begins nothing before that is written.

use std::sync::Arc;
use std::task::Context;
use std::time::SystemTime;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::admission::Admit;
use super::journal::Journal;
use crate::engine::Lease;
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

    /// What was queued is in no journal.
    pub(super) fn rewind(&mut self) {
        self.asking = None;
    }

    /// Whether the run may begin anything now: an execution or a precondition must not be begun by two. The run is woken
    /// when that may have changed. O(1).
    pub(super) fn admit(&mut self, journal: &mut Journal, at: SystemTime, cx: &mut Context<'_>) -> Admit {
        if let Some((term, _)) = self.asking.take_if(|(_, end)| journal.written() >= *end) {
            self.term = Some(term);
        }
        // What the store answers to the record wakes the run as well.
        if self.asking.is_some() || self.has_lapsed(cx) {
            return Admit::Later;
        }
        match self.lease.term() {
            Some(term) if Some(term) == self.term => Admit::Now,
            Some(term) => {
                journal.queue([Record::RunKept { at }]);
                self.asking = Some((term, journal.end()));
                Admit::Queued
            }
            // It ran out since it was looked at.
            None => {
                cx.waker().wake_by_ref();
                Admit::Later
            }
        }
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
