//! A run and its inbox (S67): the engine applies the messages, and the run begins nothing before.
//!
//! ```text
//! load ─▶ gate closed, all timers held ─▶ message 1, message 2, … ─▶ gate open, timers free ─▶ begins
//!                                             └ frees the timers that were due when the inbox took it
//! ```
//!
//! The gate is a limit without permits ([`RunLimit::inbox`]), and effects wait for it as for any other limit. So it
//! costs nothing where there is no inbox. The clean-up of a run that ends does not wait for it.

use std::sync::Arc;
use std::time::SystemTime;

use super::any_run::AnyRun;
use super::drive::Run;
use super::permits::RunLimit;
use super::shared::RunShared;
use crate::outcome::{RunError, SendError};
use crate::store::{InboxMessage, RunMessage};

/// A run that begins nothing until its inbox is read.
pub(crate) struct InboxGate {
    limit: Arc<RunLimit>,
    run: Arc<RunShared>,
}

impl InboxGate {
    /// Frees the timers that are due at this time or before, and no later one.
    pub(crate) fn frees_timers_until(&self, at: SystemTime) {
        self.run.signals.hold_timers_after(Some(at));
    }

    /// The run may begin what is due.
    pub(crate) fn open(&self) {
        self.limit.open();
        self.run.signals.hold_timers_after(None);
    }
}

impl Run {
    /// Lets the run begin nothing, and fire no timer, until the gate is open.
    pub(crate) fn wait_for_inbox(&mut self) -> InboxGate {
        let (limit, run) = (Arc::new(RunLimit::inbox()), Arc::clone(&self.driver.committer.shared));
        self.driver.admission.wait_for_inbox(Arc::clone(&limit));
        run.signals.hold_timers_after(Some(SystemTime::UNIX_EPOCH));
        InboxGate { limit, run }
    }
}

impl AnyRun {
    /// Applies a message of the run's inbox. Returns once the journal has it.
    pub(crate) async fn apply(&self, message: &InboxMessage) -> Result<(), SendError> {
        let run = self.with_origin(message.origin());
        match message.message.clone() {
            RunMessage::Send { event, data } => run.send_json(&event, data).await,
            RunMessage::Reply { request, data } => run.reply_json(request, data).await,
            RunMessage::Cancel { reason } => run.cancel(reason).await,
            RunMessage::Pause { how } => run.pause(how).await,
            RunMessage::Unpause => run.unpause().await,
        }
    }

    /// Whether the run stopped here and its journal is open: another engine, or this one later, continues it.
    pub(crate) fn is_left_open(&self) -> bool {
        let outcome = self.shared.finished.get().map(|finished| &finished.outcome);
        matches!(outcome, Some(Err(RunError::Detached | RunError::Conflict { .. } | RunError::Store { .. })))
    }
}
