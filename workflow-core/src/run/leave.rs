//! Leaving a run where its journal ends, for whoever goes on with it: it takes in nothing more and begins nothing more, its
//! journal gets what there is, and then it stops without an end.

use std::sync::atomic::Ordering;

use super::drive::Phase;
use super::drive::Run;
use super::state::{Batch, Stop};
use super::{Command, Journal, RunShared};

impl RunShared {
    /// Signals the run to stop and leave its journal open. It is never taken back.
    pub(crate) fn note_leave(&self) {
        self.signals.detach();
    }

    /// Whether it is to stop and leave its journal open.
    pub(crate) fn is_to_be_left(&self) -> bool {
        // Said of all runs of the engine at once: none sees what becomes of another before it is left itself.
        self.signals.is_to_detach() || self.common.hands_over.load(Ordering::SeqCst)
    }
}

impl Run {
    /// Whether it is about to be left. A run without a journal is not: there is nowhere to go on from.
    pub(super) fn is_leaving(&self) -> bool {
        self.journal.is_some() && self.shared.is_to_be_left()
    }

    /// Takes the next of what handles want of a run that is about to be left, if there is something. That it is cancelled
    /// is done; who wants something else is told that the run has ended, once it has.
    pub(super) fn take_cancel(&mut self) -> bool {
        if !self.is_leaving() {
            return false;
        }
        // Whatever turns the task has left: there may be no later time.
        let Some(command) = self.shared.signals.mailbox.take() else { return false };
        if matches!(command, Command::Cancel { .. }) {
            self.handle_command(command);
        }
        true
    }

    /// Leaves the run, if it is about to be left and its journal has everything; says whether it does.
    pub(super) fn leaves(&mut self) -> bool {
        let is_due = self.is_leaving() && self.state.end().is_none();
        if !is_due || !self.journal.as_deref().is_some_and(Journal::is_quiet) {
            return false;
        }
        self.journal = None;
        self.phase = Phase::Detached;
        let _ = self.state.apply(Batch::Stopped(Stop::Unkept), self.clock.now);
        true
    }

    /// What an execution waits for is left with the run, before the execution is dropped and its children are told that
    /// nobody wants them any more.
    pub(super) fn leave_children(&self) {
        if let Some(family) = self.shared.children.get()
            && (self.phase == Phase::Detached || self.journal_error().is_some())
        {
            family.leave();
        }
    }
}
