//! Resuming a run from its journal, and looking back at a run that has ended.
//!
//! ```text
//! records ─▶ compatible table? ─▶ Replay ─▶ state, retries, derived entries
//!                                             │
//!              RunResumed and derived entries, written before anything begins (S40)
//!                                             │
//!                                          drive_to_end
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use super::clock::RunClock;
use super::drive::Run;
use super::driver::Driver;
use super::earlier_tables::EarlierTables;
use super::journal::Journal;
use super::state::{Contradiction, RecordedChild, Replay, Replayed, RunState};
use super::unload::Registration;
use super::{Finished, compatibility};
use crate::id::{RunStatus, Seq};
use crate::outcome::{Incompatibility, RunError};
use crate::scheduler::SchedulerLimits;
use crate::store::{EventStore, Record};

impl Run {
    /// Drives a resumed run to its end: journals `RunResumed` and the derived entries first.
    pub(crate) async fn drive_resumed<R: Registration>(
        mut self: Box<Self>,
        Derived(derived): Derived,
        registered: R,
    ) {
        Box::pin(self.claim(derived)).await;
        Box::pin(self.look_for_children()).await;
        if self.driver.committer.state.scheduler.cleans_up() {
            self.clean_up();
        }
        self.driver.count_time();
        self.drive_to_end(registered, false).await;
    }

    /// Ends a run that could not be resumed.
    fn fail(self: Box<Self>, error: RunError) {
        let finished = Finished { status: RunStatus::Failed, outcome: Err(error), kept: None };
        let _ = self.driver.committer.shared.finished.set(Box::new(finished));
    }

    /// Resumes a run from these records and drives it to its end. A run that has ended is only looked back
    /// at.
    pub(crate) async fn drive_from<R: Registration>(
        mut self: Box<Self>,
        store: Option<Arc<dyn EventStore>>,
        records: &[Record],
        registered: R,
    ) {
        let Driver { host, committer, .. } = &mut self.driver;
        let id = committer.shared.id.clone();
        let incompatible = |difference| RunError::Incompatible { run: id.clone(), difference };
        if matches!(records.last(), Some(Record::RunEnded { .. })) {
            committer.shared.begin_display(records);
            let looked_back = self.finish_from_journal(records);
            drop(registered);
            if let Err(difference) = looked_back {
                self.fail(incompatible(difference));
            }
            return;
        }
        committer.keep_journal(store.and_then(|store| Journal::resume(store, records, &host.table)));
        match self.resume(records) {
            Ok(derived) => self.drive_resumed(derived, registered).await,
            Err(difference) => {
                drop(registered);
                self.fail(incompatible(difference));
            }
        }
    }

    /// Replays the records into the state. Returns the entries that follow from the journal and that the
    /// journal lacks.
    ///
    /// # Errors
    /// If the workflow's table is incompatible with the journal, or a record contradicts those before it.
    pub(crate) fn resume(&mut self, records: &[Record]) -> Result<Derived, Incompatibility> {
        let Driver { host, committer, .. } = &mut self.driver;
        let earlier = EarlierTables::of(&host.table, records);
        compatibility::check(&host.table, records, &earlier)?;
        if let Some(Record::RunStarted { at, .. }) = records.first() {
            committer.clock = RunClock::resume(committer.shared.common.clock.clone(), *at);
        }
        committer.shared.begin_display(records);
        let limits = committer.state.limits();
        // Limits bound what begins from here on, and do not change what the journal means.
        let state = RunState::new(&host.table, SchedulerLimits::NONE);
        let mut replay = Replay::new(Arc::clone(host), state, committer.clock.began_at);
        replay.recall(records, &earlier);
        replay
            .take(records)
            .map_err(|Contradiction { position, what }| Incompatibility::Journal { position, what })?;
        let Replayed { state, retries, derived } = replay.finish();
        *committer.state = state;
        committer.state.know_begun(&earlier);
        // One that has ended keeps the limit at which it did.
        if committer.state.end().is_none() {
            committer.state.limit(limits);
        }
        committer.note_stop(records);
        committer.check_replay(host, records);
        // The new clock still stands at the run's beginning.
        committer.clock.catch_up();
        // A run that is loaded again under its handles knows those before, in the order of its journal.
        let known = committer.shared.children.get().map_or(0, |registry| registry.recorded());
        for RecordedChild { child, at, end } in committer.state.children().iter().skip(known) {
            committer.shared.child_registry().recall(child.clone(), *at, *end);
        }
        if let Some(reason) = super::clean_up::recorded_reason(records) {
            self.driver.committer.shared.signals.keep_cancel();
            self.driver.at_end.get_or_insert_default().cancel_reason = Some(reason);
        }
        self.note_ending();
        self.driver.resume_pause();
        let Driver { committer, .. } = &mut self.driver;
        if committer.state.begins_nothing() {
            return Ok(Derived(derived));
        }
        committer.state.effects.remove_attempts_of(retries.iter().map(|(execution, _)| *execution));
        for (execution, due) in retries {
            let left = due.duration_since(self.driver.committer.clock.wall()).unwrap_or_default();
            self.driver.attempt_after(left, execution);
        }
        Ok(Derived(derived))
    }

    /// Writes `RunResumed` and the derived entries, before anything begins (S40).
    pub(super) async fn claim(&mut self, derived: impl IntoIterator<Item = Seq>) {
        if self.driver.committer.journal.is_some() {
            self.driver.committer.queue_resumed(derived);
            std::future::poll_fn(|cx| self.driver.poll_flush(cx)).await;
        }
        if self.driver.committer.journal_error().is_none() {
            self.driver.committer.announce_taken_up();
        }
    }

    /// Looks for the children without an end: re-attaches those that were resumed before, and journals the ends that the store
    /// has. A process ended between the two, or another engine drove the child.
    pub(super) async fn look_for_children(&mut self) {
        let shared = &self.driver.committer.shared;
        let open = shared.children.get().map(|registry| registry.open_elsewhere()).unwrap_or_default();
        if open.is_empty() || self.driver.committer.journal_error().is_some() {
            return;
        }
        let Some(engine) = shared.common.engine() else { return };
        let ended = engine.look_for_children(Arc::clone(shared), open).await;
        self.driver.committer.shared.child_registry().ended_elsewhere(ended);
        self.driver.record_children_and_ends();
    }

    /// Finishes an ended run from its journal, without driving it.
    pub(crate) fn finish_from_journal(&mut self, records: &[Record]) -> Result<(), Incompatibility> {
        let _ = self.resume(records)?;
        self.stop(self.driver.committer.clock.end_of(records.last()));
        if let Some(Record::RunEnded { status, error, step, .. }) = records.last() {
            self.finish_as(*status, error.as_deref(), step.as_deref());
        }
        Ok(())
    }
}

/// Entries that follow from a journal and that the journal lacks.
#[derive(Debug)]
#[must_use = "they are to be journaled"]
pub(crate) struct Derived(pub(super) VecDeque<Seq>);
