//! Taking up runs that wait, after a restart or from an engine that is gone (S87): by the store's list alone, without their
//! journals.
//!
//! ```text
//! listed as waiting ─ table of the present workflow, due later, no child ─▶ entered as unloaded ─▶ due, message or caller: resumed
//!         │
//!         └ any other: resumed at once
//! ```
//!
//! From there on the run is like one that this engine has unloaded, with one difference: its first loading is a resume, which
//! writes `RunResumed` before anything begins (S40). So a run that nothing reaches writes nothing. With leases the run has to
//! be this engine's own, and the engine writes `RunKept` to a run of another owner.
//!
//! A child is loaded with the others, and before it the run above, which lists the child for its report and its end.

use std::sync::Arc;
use std::time::SystemTime;

use super::Inner;
use super::load::Loaded;
use super::reminders::remind;
use crate::id::RunStatus;
use crate::outcome::{ResumeError, RunError};
use crate::run::{Host, UnloadedRun};
use crate::store::{Position, Record, StoreError, StoredRun, Write};

/// Whose journal a waiting run is.
enum Taken {
    /// This engine's, and it ends here.
    Own(Position),
    /// Another engine's, which has written to it.
    Moved(Position),
    /// Unknown: the run may have ended here since it was listed.
    Unknown,
}

/// A store that has not answered for the time from one renewal of the lease to the next.
#[derive(Debug, thiserror::Error)]
#[error("it has not answered whether it has the record that takes the run up")]
struct Late;

impl Inner {
    /// Enters a listed run as unloaded, without its journal, if it waits for something that comes later. `None` if it has to
    /// be loaded. `departures` is that of the registry before the run was listed; without it only a write takes the run.
    pub(super) async fn enter_waiting(
        self: &Arc<Self>,
        run: &StoredRun,
        departures: Option<usize>,
    ) -> Result<Option<Loaded>, ResumeError> {
        let Some((host, due)) = self.waits_for_later(run) else { return Ok(None) };
        // Its loading needs a runtime. An engine that ends refuses the run as it is loaded.
        let Some(_task) = self.ending.enter().filter(|_| self.reminders.runtime().is_some()) else {
            return Ok(None);
        };
        let _run_lock = self.runs.lock(&run.id).await.map_err(ResumeError::Store)?;
        if self.runs.has(&run.id) {
            return Ok(None);
        }
        let end = match self.take_waiting(run, departures).await.map_err(ResumeError::Store)? {
            Taken::Own(end) => end,
            Taken::Moved(found) => return Ok(Some(Loaded::Moved(found))),
            Taken::Unknown => return Ok(None),
        };
        if !self.runs.enter_waiting(&run.id, UnloadedRun::taken_up(end, due, &host.table.name)) {
            return Ok(None);
        }
        if let Some(due) = due {
            remind(self, due, &run.id);
        }
        // Either `shut_down` finds the entry, or the flag is seen here.
        if self.common.wind_down.detaches() {
            self.give_up_unloaded(&run.id, RunError::Detached);
        }
        Ok(Some(Loaded::Waiting))
    }

    /// The host of a run that waits, and when its first timer or its deadline is due. `None` if the run does not wait, is due,
    /// is a child, or may not fit the present table of its workflow.
    fn waits_for_later(
        &self,
        StoredRun { id, run, .. }: &StoredRun,
    ) -> Option<(Arc<Host>, Option<SystemTime>)> {
        let waits_for = run.waits_for.as_ref().filter(|_| run.status == RunStatus::Waiting)?;
        // Missing in a summary that an earlier release wrote, which may lack other facts too.
        let table = run.table.as_deref().filter(|_| run.parent.is_none())?;
        let host = self.hosts.named(id, &run.workflow).ok()?;
        if table != host.table.recorded().fingerprint() {
            return None;
        }
        let due = waits_for.until.into_iter().chain(run.deadline).min();
        let is_due = due.is_some_and(|due| due <= self.common.clock.shown());
        (!is_due).then_some((host, due))
    }

    /// Makes sure that the journal is this engine's own and ends where it is listed. The caller holds the run's lock.
    async fn take_waiting(&self, run: &StoredRun, departures: Option<usize>) -> Result<Taken, StoreError> {
        let StoredRun { id, end, run: summary } = run;
        let lease = self.journals.lease().filter(|lease| summary.owner.as_ref() != Some(lease.engine()));
        if let Some(lease) = lease {
            let records = vec![Record::RunKept { at: self.common.clock.shown() }];
            let write = Write { records, run: summary.clone().owned_by(Some(lease.engine().clone())) };
            // A store that does not answer in time delays no other run.
            let written = lease.wait(self.journals.store()?.append(id, *end, write)).await;
            return match written.unwrap_or_else(|| Err(StoreError::unavailable(Late))) {
                Ok(()) => Ok(Taken::Own(end.after(1))),
                Err(StoreError::Conflict { found, .. }) => Ok(Taken::Moved(found)),
                Err(error) => {
                    // The store may have the write: the next search for orphans looks at the run again.
                    self.claims.note_end(&RunError::Store { source: error.clone() });
                    Err(error)
                }
            };
        }
        let is_as_listed = departures == Some(self.runs.departures())
            || departures.is_some() && self.journals.listed(id).await?.as_ref() == Some(run);
        Ok(if is_as_listed { Taken::Own(*end) } else { Taken::Unknown })
    }

    /// Loads the run above a child, if it was entered as waiting.
    pub(super) async fn load_parent_of(self: &Arc<Self>, child: &StoredRun) -> Result<(), StoreError> {
        match &child.run.parent {
            Some(parent) if self.runs.is_new_waiting(&parent.run) => {
                self.wake(&parent.run, None).await.map(drop)
            }
            _ => Ok(()),
        }
    }
}
