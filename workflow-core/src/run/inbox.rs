//! A run and its inbox (S67): the engine applies the messages, and the run begins nothing before.
//!
//! ```text
//! load ─▶ gate closed, all timers held ─▶ message 1, message 2, … ─▶ gate open, timers free ─▶ begins
//!                   │                         └ frees the timers that were due when the inbox took it
//!                   └ the inbox is away: the run gives its permit up, and records once that it waits
//! ```
//!
//! Effects wait for the gate as for a permit ([`own_permit`](super::own_permit)). So it costs nothing where there is no inbox.
//! Each load of a run has its own gate. The clean-up of a run that ends does not wait for it.
//!
//! An inbox that is away is no crash of the process: a claim counts `RunResumed` at the end of a journal (S66), so the run
//! writes `RunKept` behind it, unless it waits anyway and records that.

use std::sync::Arc;
use std::time::SystemTime;

use super::any_run::AnyRun;
use super::commit::Committer;
use super::drive::Run;
use super::driver::Driver;
use super::own_permit::Gate;
use super::shared::RunShared;
use crate::id::RunStatus;
use crate::outcome::SendError;
use crate::store::{InboxMessage, RunMessage};

/// A run that begins nothing until its inbox is read.
pub(crate) struct InboxGate {
    gate: Arc<Gate>,
    run: Arc<RunShared>,
}

impl InboxGate {
    /// Frees the timers that are due at this time or before, and no later one.
    pub(crate) fn frees_timers_until(&self, at: SystemTime) {
        self.gate.free_timers_until(at);
        self.run.signals.wake();
    }

    /// Notes why the inbox cannot be read or settled now; `None` once it answers again.
    pub(crate) fn note_problem(&self, problem: Option<Arc<str>>) {
        self.gate.note_problem(problem);
        self.run.signals.wake();
    }

    /// The run may begin everything that is due.
    pub(crate) fn open(&self) {
        self.gate.open();
        self.run.signals.wake();
    }
}

impl Run {
    /// Lets the run begin nothing, and fire no timer, until the gate is open.
    pub(crate) fn wait_for_inbox(&mut self) -> InboxGate {
        let gate = Gate::closed();
        self.driver.admission.wait_for_inbox(Arc::clone(&gate));
        InboxGate { gate, run: Arc::clone(&self.driver.committer.shared) }
    }
}

impl Driver {
    /// Lets other runs have the permit while the inbox is away, and records once that this run waits.
    #[inline]
    pub(super) fn leave_absent_inbox(&mut self) {
        if self.admission.lacks_inbox() {
            self.wait_for_absent_inbox();
        }
    }

    /// Whether something would load the run again at once: a due timer or deadline, which may wait for the inbox, or the
    /// messages of an inbox that was not read yet.
    pub(super) fn would_be_loaded(&self) -> bool {
        let Committer { shared, state, clock, .. } = &self.committer;
        let timer = state.timers.pending(&state.scheduler).map(|(due, _)| due).next();
        let is_due = timer.into_iter().chain(shared.deadline()).any(|due| due <= clock.wall());
        is_due || self.admission.reads_inbox()
    }

    #[cold]
    fn wait_for_absent_inbox(&mut self) {
        self.admission.give_up_permit();
        self.stop_counting_time();
        let Self { committer, admission, .. } = self;
        let state = &committer.state;
        // A run that waits, or rests in its pause, has its own record, which stays the last one.
        let waits = state.scheduler.waits() || state.is_paused();
        let is_idle = waits || matches!(committer.shared.status(), RunStatus::Waiting | RunStatus::Paused);
        let is_over = state.end().is_some() || committer.is_detaching();
        if !is_idle && !is_over && admission.note_recorded() {
            committer.queue_kept();
        }
    }
}

impl AnyRun {
    /// Applies a message of the run's inbox. Returns once the journal has it.
    pub(crate) async fn apply(&self, message: &InboxMessage) -> Result<(), SendError> {
        let run = self.with_origin(message.origin());
        let result = match message.message.clone() {
            RunMessage::Send { event, data } => run.send_json(&event, data).await,
            RunMessage::Reply { request, data } => run.reply_json(request, data).await,
            RunMessage::Cancel { reason } => run.cancel(reason).await,
            RunMessage::Pause { how } => run.pause(how).await,
            RunMessage::Unpause => run.unpause().await,
        };
        // A run that stops here leaves a message unanswered before it says whether its journal is open.
        if matches!(result, Err(SendError::Ended { .. } | SendError::Stopped { .. })) {
            self.shared.finished().await;
        }
        result
    }

    /// Whether the run stopped here and its journal is open: another engine, or this one later, continues it.
    pub(crate) fn is_left_open(&self) -> bool {
        self.shared.is_left_open()
    }
}
