//! A run that is driven on from where its journal ends, or is looked back at once it has ended.

use std::sync::Arc;

use super::clock::RunClock;
use super::drive::Run;
use super::journal::Journal;
use super::release::Registration;
use super::{Finished, RunStatus, changed};
use crate::error::{Incompatibility, RunError};
use crate::store::{EventStore, Record};

impl Run {
    /// Drives a run to its end that stands where its journal ends.
    pub(crate) async fn drive_resumed<R: Registration>(mut self: Box<Self>, registered: R) {
        self.meter.runs();
        Box::pin(self.claim()).await;
        if self.scheduler.waits() {
            self.wait();
        }
        self.drive_on(registered).await;
    }

    /// Ends before it has begun, or gone on.
    fn fail(self: Box<Self>, error: RunError) {
        let _ = self.shared.finished.set(Box::new(Finished {
            status: RunStatus::Failed,
            outcome: Err(error),
            kept: None,
        }));
    }

    /// Drives a run on from where its journal ends; one that has ended is looked back at.
    pub(crate) async fn drive_from<R: Registration>(
        mut self: Box<Self>,
        store: Option<Arc<dyn EventStore>>,
        records: &[Record],
        registered: R,
    ) {
        let id = self.shared.id.clone();
        let incompatible = |difference| RunError::Incompatible { run: id.clone(), difference };
        if matches!(records.last(), Some(Record::RunEnded { .. })) {
            let looked_back = self.look_back(records);
            drop(registered);
            if let Err(difference) = looked_back {
                self.fail(incompatible(difference));
            }
            return;
        }
        let journal = store.and_then(|store| Journal::resume(store, records, &self.host.table));
        self.journal = journal.map(|journal| Box::new(journal.owned_by(self.shared.owner())));
        match self.resume(records) {
            Ok(()) => self.drive_resumed(registered).await,
            Err(difference) => {
                drop(registered);
                self.fail(incompatible(difference));
            }
        }
    }

    /// Comes to stand where the run's journal ends, which is what the records tell of.
    pub(crate) fn resume(&mut self, records: &[Record]) -> Result<(), Incompatibility> {
        changed::check(&self.host.table, records)?;
        if let Some(Record::RunStarted { at, .. }) = records.first() {
            self.clock = RunClock::resume(self.shared.common.clock.clone(), *at);
        }
        self.replay(records)
    }

    /// A run that has ended, as its journal tells of it.
    pub(crate) fn look_back(&mut self, records: &[Record]) -> Result<(), Incompatibility> {
        self.resume(records)?;
        self.stop();
        if let Some(Record::RunEnded { status, error, step, .. }) = records.last() {
            self.finish_as(*status, error.as_deref(), step.as_deref());
        }
        Ok(())
    }
}
