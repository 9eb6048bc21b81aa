//! Unloaded runs: reloading one when a timer falls due or a caller needs the run, and giving one up.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use futures_util::stream;

use super::Inner;
use super::load::ResumeAs;
use super::registry::{Lookup, Unloaded};
use super::reminders::{MAX_CONCURRENT_LOADS, RETRY_DELAY};
use crate::config::ConfigError;
use crate::id::RunId;
use crate::outcome::{ResumeError, RunError};
use crate::run::{RunShared, end_unloaded};
use crate::store::{Position, StoreError};

impl Inner {
    /// Reloads an unloaded run; with a reason, the run is cancelled. Returns whether this engine drives the run.
    pub(super) async fn wake(
        self: &Arc<Self>,
        id: &RunId,
        cancelled: Option<&Arc<str>>,
    ) -> Result<bool, StoreError> {
        let _run_lock = self.runs.lock(id).await?;
        self.wake_locked(id, cancelled).await
    }

    /// The same for a caller that holds the run's lock.
    async fn wake_locked(
        self: &Arc<Self>,
        id: &RunId,
        cancelled: Option<&Arc<str>>,
    ) -> Result<bool, StoreError> {
        match self.runs.find(id) {
            None => Ok(false),
            Some(Lookup::Driven(run)) => {
                let run = run.upgrade();
                if let (Some(run), Some(reason)) = (&run, cancelled) {
                    run.note_cancel(reason);
                }
                Ok(run.is_some_and(|run| !run.signals.mailbox.is_closed()))
            }
            Some(Lookup::Unloaded(unloaded)) => self.reload(id, &unloaded, cancelled).await,
        }
    }

    /// Reloads an unloaded run that has an unread cancel, and retries while the store cannot be read.
    pub(super) async fn deliver(self: Arc<Self>, run: Arc<RunShared>) {
        let reason = run.signals.unread_cancel();
        // Once this run has ended, its id may belong to another.
        while !run.status().is_ended() {
            let Err(error) = self.wake(&run.id, reason.as_ref()).await else { return };
            tracing::warn!(run = %run.id, %error, "a run that waits in its store could not be loaded");
            let again = pin!(self.common.clock.sleep(RETRY_DELAY));
            // An engine that ends loads its runs itself.
            if let Either::Right(_) = select(again, pin!(self.ending.begins())).await {
                return;
            }
        }
    }

    /// Reads the journal of an unloaded run and resumes it. Returns `false`, and gives the run up, if it cannot be
    /// resumed.
    async fn reload(
        self: &Arc<Self>,
        id: &RunId,
        unloaded: &Unloaded,
        cancelled: Option<&Arc<str>>,
    ) -> Result<bool, StoreError> {
        let records = self.journals.read(id).await?;
        // Another engine wrote to the run, so this engine has lost it (S40).
        if Position::default().after(records.len()) != unloaded.end {
            self.give_up_unloaded(id, RunError::Conflict { run: id.clone() });
            return Ok(false);
        }
        // A run that still has handles has its configuration too, and keeps it until it is resumed.
        let handles = unloaded.run.upgrade();
        let given = match &handles {
            Some(_) => Ok(None),
            None => self.secrets_of(id, &records, cancelled.is_some()).await,
        };
        let resumed = given.and_then(|given| {
            let how = ResumeAs {
                cancelled,
                unloaded: Some(unloaded),
                given: given.as_ref(),
                ..ResumeAs::default()
            };
            self.resume(id, &records, how)
        });
        match resumed {
            Ok(_) => Ok(true),
            Err(ResumeError::Store(error)) => Err(error),
            Err(ResumeError::Config(error @ ConfigError::Unavailable { .. })) => {
                Err(StoreError::unavailable(error))
            }
            // The engine gave the run up meanwhile.
            Err(ResumeError::ShutDown) => Ok(false),
            Err(error) => {
                let error = match error {
                    ResumeError::Incompatible { run, difference } => {
                        RunError::Incompatible { run, difference }
                    }
                    other => RunError::Store { source: StoreError::unavailable(other) },
                };
                // No caller of a resume learns of it.
                if unloaded.is_new {
                    tracing::warn!(run = %id, %error, "a run that waits in its store does not fit any more");
                }
                self.give_up_unloaded(id, error);
                Ok(false)
            }
        }
    }

    /// Forgets an unloaded run and ends its handles with this error. Does nothing if the run is not unloaded any more.
    /// Its journal stays as it is.
    pub(super) fn give_up_unloaded(&self, id: &RunId, error: RunError) {
        let Some(unloaded) = self.runs.forget_unloaded(id) else { return };
        self.claims.note_end(&error);
        self.ending.leaves_open(id);
        if let Some(due) = unloaded.due {
            self.reminders.forget(due, id);
        }
        if let Some(run) = unloaded.run.upgrade() {
            end_unloaded(&run, error);
            run.signals.mailbox.release_engine();
        }
    }

    /// Cancels every run of the engine.
    pub(super) async fn cancel_runs(self: &Arc<Self>, reason: &Arc<str>) {
        let runs = stream::iter(self.runs.ids());
        runs.for_each_concurrent(MAX_CONCURRENT_LOADS, |run| async move { self.cancel(&run, reason).await })
            .await;
    }

    /// Cancels a run. A run that cannot be loaded is given up here and stays open in its store.
    async fn cancel(self: &Arc<Self>, id: &RunId, reason: &Arc<str>) {
        let woken = match self.runs.lock(id).await {
            Ok(_run_lock) => self.wake_locked(id, Some(reason)).await,
            Err(error) => Err(error),
        };
        if let Err(source) = woken {
            self.give_up_unloaded(id, RunError::Store { source });
        }
    }
}
