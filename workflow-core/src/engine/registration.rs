//! The entry of a driven run in its engine's registry. The entry keeps the engine alive.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::Inner;
use super::reminders::remind;
use crate::id::RunId;
use crate::outcome::{RunError, StartError};
use crate::run::{HostsRuns, Registration, RunLockGuard, RunShared, UnloadedRun, end_unbegun};

/// The entry of a driven run. Dropping it forgets the run, unless the run was unloaded.
pub(super) struct Registered {
    engine: Arc<Inner>,
    id: RunId,
}

impl Registered {
    /// Registers a run that begins or is resumed. An error if the id has an entry.
    pub(super) fn new(engine: &Arc<Inner>, run: &Arc<RunShared>) -> Result<Self, StartError> {
        let id = run.id.clone();
        if !engine.runs.enter(&id, Arc::downgrade(run)) {
            return Err(StartError::DuplicateRun { run: id });
        }
        Ok(Self { engine: Arc::clone(engine), id })
    }

    /// Registers an unloaded run that is driven again; `None` if the engine gave the run up meanwhile.
    pub(super) fn again(engine: &Arc<Inner>, run: &Arc<RunShared>) -> Option<Self> {
        if let Some(due) = engine.runs.reload(&run.id, Arc::downgrade(run))?.due {
            engine.reminders.forget(due, &run.id);
        }
        Some(Self { engine: Arc::clone(engine), id: run.id.clone() })
    }
}

/// A registered run without a task, which callers may have found by its id. If it gets none, it ends for them.
pub(super) struct Unbegun(Option<(Registered, Arc<RunShared>)>);

impl Unbegun {
    /// Registers the run. An error if the id has an entry.
    pub(super) fn new(engine: &Arc<Inner>, run: Arc<RunShared>) -> Result<Self, StartError> {
        Ok(Self(Some((Registered::new(engine, &run)?, run))))
    }

    pub(super) fn run(&self) -> Option<&Arc<RunShared>> {
        self.0.as_ref().map(|(_, run)| run)
    }

    /// The run gets its task, which takes the entry over.
    pub(super) fn begins(mut self) -> Option<(Registered, Arc<RunShared>)> {
        self.0.take()
    }

    /// The start is refused for this reason. Callers that found the run learn it.
    pub(super) fn refuse(mut self, error: &StartError) {
        self.end(Some(error));
    }

    fn end(&mut self, refused: Option<&StartError>) {
        if let Some((registered, run)) = self.0.take() {
            // First, so that the id is free once a caller learns of the end.
            drop(registered);
            end_unbegun(&run, refused);
        }
    }
}

impl Drop for Unbegun {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl Inner {
    /// Keeps a run that is about to lose its entry, if the engine keeps ended runs. A child is part of its parent's report.
    fn keep_ended(&self, run: &RunId) {
        if let Some(ended) = self.runs.ended()
            && let Some(run) = self.runs.driven(run).filter(|run| run.parent().is_none() && run.has_report())
        {
            ended.add(run);
        }
    }
}

impl Registration for Registered {
    fn hold(&self) -> BoxFuture<'static, RunLockGuard> {
        self.engine.runs.locked(&self.id).boxed()
    }

    fn release(self, released: UnloadedRun, run: Arc<RunShared>) {
        let due = released.due;
        // The order matters: a sender that finds the mailbox closed asks the engine, and waits for the run's lock,
        // which the caller holds until the entry is changed.
        run.signals.mailbox.close_for_unload(Arc::clone(&self.engine) as Arc<dyn HostsRuns>);
        self.engine.runs.unload(self.id.clone(), released);
        self.engine.reminders.note_runtime();
        if let Some(due) = due {
            remind(&self.engine, due, &self.id);
        }
        // A cancel or a viewer after this finds that the run was unloaded.
        if run.signals.cancel_is_unread() || run.signals.has_new_viewer() {
            Arc::clone(&self.engine).deliver_signal(run);
        }
        // Either `shut_down` finds the entry of the unloaded run, or the flag is seen here.
        if self.engine.common.wind_down.detaches() {
            self.engine.give_up_unloaded(&self.id, RunError::Detached);
        }
        self.engine.common.wind_down.progresses();
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Its result is set before, and announced after.
        if self.engine.journals.are_kept()
            && let Some(run) = self.engine.runs.driven(&self.id)
            && let Some(Err(error)) = run.finished.get().map(|finished| &finished.outcome)
        {
            self.engine.claims.note_end(error);
            if run.is_left_uncancelled() {
                self.engine.ending.leaves_open(&self.id);
            }
        }
        self.engine.keep_ended(&self.id);
        self.engine.runs.forget_driven(&self.id);
        self.engine.common.wind_down.progresses();
    }
}
