//! Runs that were unloaded while they wait: loading them again when a timer is due, or somebody wants something of them,
//! and giving them up.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use futures_util::stream;

use super::Inner;
use super::load::ResumeAs;
use super::registry::{Lookup, Unloaded};
use super::reminders::{AGAIN_AFTER, LOADED_AT_ONCE};
use crate::error::{ResumeError, RunError};
use crate::id::RunId;
use crate::run::{RunShared, give_up};
use crate::store::{Position, StoreError};

impl Inner {
    /// Loads a run that was unloaded, to be cancelled if there is a reason; whether it runs here.
    pub(super) async fn wake(
        self: &Arc<Self>,
        id: &RunId,
        cancelled: Option<&Arc<str>>,
    ) -> Result<bool, StoreError> {
        let _held = self.runs.lock(id).await?;
        self.wake_held(id, cancelled).await
    }

    /// The same for a caller that has its lock.
    async fn wake_held(
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
            let again = pin!(self.common.clock.sleep(AGAIN_AFTER));
            // An engine that ends loads its runs itself.
            if let Either::Right(_) = select(again, pin!(self.ending.begins())).await {
                return;
            }
        }
    }

    async fn reload(
        self: &Arc<Self>,
        id: &RunId,
        unloaded: &Unloaded,
        cancelled: Option<&Arc<str>>,
    ) -> Result<bool, StoreError> {
        let records = self.journals.read(id).await?;
        if Position::default().after(records.len()) != unloaded.end {
            self.give_up_unloaded(id, RunError::Conflict { run: id.clone() });
            return Ok(false);
        }
        match self.resume(id, &records, ResumeAs { cancelled, unloaded: Some(unloaded) }) {
            Ok(_) => Ok(true),
            Err(ResumeError::Store(error)) => Err(error),
            // It was given up meanwhile.
            Err(ResumeError::ShutDown) => Ok(false),
            Err(error) => {
                let error = match error {
                    ResumeError::Incompatible { run, difference } => {
                        RunError::Incompatible { run, difference }
                    }
                    other => RunError::Store { source: StoreError::unavailable(other) },
                };
                self.give_up_unloaded(id, error);
                Ok(false)
            }
        }
    }

    /// Forgets an unloaded run and ends its handles with this error. Does nothing if the run is not unloaded any more.
    /// Its journal stays as it is.
    pub(super) fn give_up_unloaded(&self, id: &RunId, error: RunError) {
        let Some(unloaded) = self.runs.forget_unloaded(id) else { return };
        if let Some(due) = unloaded.due {
            self.reminders.forget(due, id);
        }
        if let Some(run) = unloaded.run.upgrade() {
            give_up(&run, error);
            run.signals.mailbox.leave_home();
        }
    }

    /// Cancels every run.
    pub(super) async fn cancel_all(self: &Arc<Self>, reason: &Arc<str>) {
        let runs = stream::iter(self.runs.ids());
        runs.for_each_concurrent(LOADED_AT_ONCE, |run| async move { self.cancel(&run, reason).await }).await;
    }

    /// Cancels a run. One that cannot be loaded for that is left to the engine that resumes it later.
    async fn cancel(self: &Arc<Self>, id: &RunId, reason: &Arc<str>) {
        let woken = match self.runs.lock(id).await {
            Ok(_held) => self.wake_held(id, Some(reason)).await,
            Err(error) => Err(error),
        };
        if let Err(source) = woken {
            self.give_up_unloaded(id, RunError::Store { source });
        }
    }
}
