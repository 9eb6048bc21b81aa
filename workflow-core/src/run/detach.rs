//! Detaching runs for another process.
//!
//! An engine that shuts down first winds down: its runs begin nothing more, take messages, and commit what they execute.
//! Once none executes anything, or the time is over, all of them detach: a run then takes in nothing more, its journal
//! gets everything that there is, and its task stops without an end.
//!
//! ```text
//! Runs ── begin ──▶ WindsDown ── detach ──▶ Detaches      for all runs of the engine, never back
//!                    │
//!                    └ each run: rests, once nothing that it executes is under way
//! ```
//!
//! All runs of an engine detach together. Otherwise a step could receive the refusal of a detached run, or the detach of
//! its child, and fail.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::RunShared;
use super::drive::Run;
use crate::id::ExecutionId;

const WINDS_DOWN: u8 = 1;
const DETACHES: u8 = 2;

/// How far an engine has shut down, for all its runs.
#[derive(Debug, Default)]
pub(crate) struct WindDown {
    /// Only grows.
    phase: AtomicU8,
    /// Notified when a run rests, is unloaded or has ended, while the engine shuts down.
    progressed: Notify,
}

impl WindDown {
    /// No run begins anything from here on.
    pub(crate) fn begin(&self) {
        self.phase.fetch_max(WINDS_DOWN, Ordering::SeqCst);
    }

    /// Every run detaches from here on.
    pub(crate) fn detach(&self) {
        self.phase.fetch_max(DETACHES, Ordering::SeqCst);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.phase.load(Ordering::SeqCst) >= WINDS_DOWN
    }

    pub(crate) fn detaches(&self) -> bool {
        self.phase.load(Ordering::SeqCst) >= DETACHES
    }

    /// A run rests, is unloaded or has ended.
    pub(crate) fn progresses(&self) {
        if self.has_begun() {
            self.progressed.notify_waiters();
        }
    }

    /// Completes with the next progress after this call.
    pub(crate) fn progressed(&self) -> Notified<'_> {
        self.progressed.notified()
    }
}

impl RunShared {
    /// Signals the run to detach. The signal is never withdrawn.
    pub(crate) fn signal_detach(&self) {
        self.signals.detach();
    }

    /// Whether the run is to detach.
    pub(crate) fn is_to_detach(&self) -> bool {
        // The flag is that of all runs of the engine, so no run sees another one detach before it must detach
        // itself.
        self.signals.is_to_detach() || self.common.wind_down.detaches()
    }

    /// Whether the run begins nothing more, because it is to detach now or soon.
    pub(crate) fn begins_nothing(&self) -> bool {
        self.signals.is_to_detach() || self.common.wind_down.has_begun()
    }

    /// Whether nothing that the run executes is under way, once the engine winds down. Before the store has the
    /// beginning of the run, nothing can be.
    pub(crate) fn rests(&self) -> bool {
        self.signals.rests() || !self.has_begun() || self.status().is_ended()
    }

    /// An execution asks for a child while nothing more begins. It is not under way meanwhile, and never gets an answer:
    /// it is dropped with the run, unless it gives up the question.
    pub(super) async fn hold_up(&self, execution: ExecutionId) {
        let _until_dropped = HeldUp::new(self, execution);
        std::future::pending::<()>().await;
    }
}

/// A question for a child that gets no answer.
struct HeldUp<'a> {
    run: &'a RunShared,
    execution: ExecutionId,
}

impl<'a> HeldUp<'a> {
    fn new(run: &'a RunShared, execution: ExecutionId) -> Self {
        run.child_registry().holds_up(execution, true);
        run.signals.wake();
        Self { run, execution }
    }
}

impl Drop for HeldUp<'_> {
    fn drop(&mut self) {
        self.run.child_registry().holds_up(self.execution, false);
        self.run.signals.wake();
    }
}

impl Run {
    /// Notes whether the run rests, if the engine winds down. Called when the run has nothing to do.
    pub(super) fn note_rest(&mut self) {
        let shared = &self.driver.committer.shared;
        if !self.driver.committer.begins_nothing() {
            return;
        }
        let rests = self.driver.rests(RunShared::rests);
        if shared.signals.set_rests(rests) == rests {
            return;
        }
        // A parent whose execution waits for this run may rest now.
        super::child_records::wake_parent(shared);
        shared.common.wind_down.progresses();
    }
}
