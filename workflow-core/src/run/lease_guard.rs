//! Fencing by the engine's lease (S40): a run begins nothing while another engine may own it.
//!
//! ```text
//! term 1          lapsed                        term 2
//! begins ───────▶ executions in flight ───────▶ RunKept queued ─▶ written ─▶ begins again
//!                 continue, nothing begins           └─▶ conflict: another engine has claimed the run
//! ```
//!
//! When the engine has its lease again, the run writes `RunKept`. The store refuses that record if another
//! engine has claimed the run meanwhile.
//!
//! Invariant: the run begins something only in a term in which the store has accepted a write of this run. So
//! of two engines that think that they own the run, one gets a conflict before it begins anything.
//!
//! A run that begins nothing would never learn that it is lost, and would keep its children from the engine that has it
//! now. So the engine has each run write `RunKept` once it has its lease again ([`keep`](LeaseGuard::keep)).
//!
//! Example: the lease lapses at 10:00 while `fetch` runs. `fetch` returns, and its batch goes to the store as
//! usual. The next step waits. At 10:02 the engine has its lease again, in term 2. The run queues `RunKept`,
//! and the step begins once the store has it.

use std::sync::Arc;
use std::task::Context;
use std::time::SystemTime;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::admission::Admit;
use super::any_run::Command;
use super::journal::Journal;
use super::shared::RunShared;
use crate::lease::Lease;
use crate::store::{Position, Record};

/// The state of a run towards its engine's lease.
pub(super) struct LeaseGuard {
    /// The lease of the engine, which all its runs share.
    lease: Arc<Lease>,
    /// The term in which the run is known to belong to this engine; `None` if there was no lease.
    term: Option<u64>,
    /// The term that a queued `RunKept` confirms, and the end of the journal with that record.
    confirming: Option<(u64, Position)>,
    /// The wait for a renewal of the lease, while the lease has lapsed.
    wait: Option<BoxFuture<'static, ()>>,
}

impl LeaseGuard {
    /// Created before the run writes that it starts or resumes: that write confirms the current term.
    pub(super) fn new(lease: &Arc<Lease>) -> Self {
        Self { term: lease.term(), lease: Arc::clone(lease), confirming: None, wait: None }
    }

    /// The term in which the run is known to belong to this engine.
    pub(super) fn term(&mut self, journal: &Journal) -> Option<u64> {
        self.note_written(journal);
        self.term
    }

    /// Sets the term of a run that writes nothing before it resumes.
    pub(super) fn set_term(&mut self, term: Option<u64>) {
        self.term = term;
    }

    /// Forgets the queued `RunKept`, because a rewind removed it.
    pub(super) fn rewind(&mut self) {
        self.confirming = None;
    }

    /// Whether the run may begin anything now. Two engines must not begin the same execution or precondition.
    /// The waker wakes the run when the answer may have changed. O(1).
    pub(super) fn admit(&mut self, journal: &mut Journal, at: SystemTime, cx: &mut Context<'_>) -> Admit {
        self.note_written(journal);
        // The store's answer to the record wakes the run as well.
        if self.confirming.is_some() || self.has_lapsed(cx) {
            return Admit::WaitsForLease;
        }
        // Read once more: the lease may lapse at any moment, and the answer must be about one term.
        match self.lease.term() {
            Some(term) if Some(term) == self.term => Admit::Now,
            Some(term) => {
                self.confirm(term, journal, at);
                Admit::RecordQueued
            }
            // The lease lapsed since the last look.
            None => {
                cx.waker().wake_by_ref();
                Admit::WaitsForLease
            }
        }
    }

    /// Queues `RunKept`, if the engine has its lease and the store has no write of the run in this term. Returns whether
    /// it did. O(1).
    pub(super) fn keep(&mut self, journal: &mut Journal, at: SystemTime) -> bool {
        self.note_written(journal);
        let Some(term) = self.lease.term() else { return false };
        let is_confirming = self.confirming.is_some_and(|(confirming, _)| confirming == term);
        if self.term == Some(term) || is_confirming || journal.has_ended() || journal.failure().is_some() {
            return false;
        }
        self.confirm(term, journal, at);
        true
    }

    /// Queues the `RunKept` that confirms this term.
    fn confirm(&mut self, term: u64, journal: &mut Journal, at: SystemTime) {
        journal.queue([Record::RunKept { at }]);
        self.confirming = Some((term, journal.end()));
    }

    /// Notes the term that a `RunKept` confirms which the store has.
    fn note_written(&mut self, journal: &Journal) {
        if let Some((term, _)) = self.confirming.take_if(|(_, end)| journal.written() >= *end) {
            self.term = Some(term);
        }
    }

    /// Whether the lease has lapsed. The waker wakes the run when it is renewed.
    fn has_lapsed(&mut self, cx: &mut Context<'_>) -> bool {
        while self.lease.term().is_none() {
            // The term is checked again after the wait is created, so a renewal in between is not missed.
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

impl RunShared {
    /// Asks the run to write that its engine keeps it. Completes once the run has room for the question. The answer comes
    /// once the store has the record, and is dropped if the run ends before. `None` if no task drives the run.
    pub(crate) async fn ask_to_keep(&self) -> Option<oneshot::Receiver<()>> {
        let (done, answer) = oneshot::channel();
        self.signals.send(Command::Keep { done }).await.ok().map(|()| answer)
    }
}
