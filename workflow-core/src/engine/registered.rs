//! The entry of a driven run in its engine's registry. It keeps the engine alive.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::Inner;
use super::reminders::remind;
use crate::children::HostsRuns;
use crate::error::{RunError, StartError};
use crate::id::RunId;
use crate::run::{Held, Registration, Released, RunShared};

/// The entry of a run that is driven.
pub(super) struct Registered {
    engine: Arc<Inner>,
    id: RunId,
}

impl Registered {
    /// An error if there is a run of this id.
    pub(super) fn new(engine: &Arc<Inner>, run: &Arc<RunShared>) -> Result<Self, StartError> {
        let id = run.id.clone();
        if !engine.runs.enter(&id, Arc::downgrade(run)) {
            return Err(StartError::DuplicateRun { run: id });
        }
        Ok(Self { engine: Arc::clone(engine), id })
    }

    /// That of a run that was unloaded and is driven again; none if it was given up meanwhile.
    pub(super) fn again(engine: &Arc<Inner>, run: &Arc<RunShared>) -> Option<Self> {
        if let Some(due) = engine.runs.reload(&run.id, Arc::downgrade(run))?.due {
            engine.reminders.forget(due, &run.id);
        }
        Some(Self { engine: Arc::clone(engine), id: run.id.clone() })
    }
}

impl Registration for Registered {
    fn hold(&self) -> BoxFuture<'static, Held> {
        self.engine.runs.locked(&self.id).boxed()
    }

    fn release(self, released: Released, run: Arc<RunShared>) {
        let due = released.due;
        run.signals.mailbox.leave_to(Arc::clone(&self.engine) as Arc<dyn HostsRuns>);
        self.engine.runs.unload(self.id.clone(), released);
        self.engine.reminders.note_runtime();
        if let Some(due) = due {
            remind(&self.engine, due, &self.id);
        }
        // A cancel after this finds that the run was unloaded.
        if run.signals.cancel_is_unread() {
            Arc::clone(&self.engine).note_left(run);
        }
        // Either it is found among those that were unloaded, or it finds here that all runs are left.
        if self.engine.common.hands_over.load(Ordering::SeqCst) {
            self.engine.give_up_unloaded(&self.id, RunError::Abandoned);
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.engine.runs.forget_driven(&self.id);
    }
}
