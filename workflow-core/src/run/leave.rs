//! Leaving a run where its journal ends, for whoever goes on with it: it takes in nothing more and begins nothing more, its
//! journal gets what there is, and then it stops without an end.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use tokio::task::coop;

use super::drive::Run;
use super::{Command, Journal};
use crate::scheduler::Fact;

/// A note beside a run's mailbox that says that it is to be left as its journal has it. It is never taken back.
#[derive(Debug, Default)]
pub(crate) struct LeaveNote {
    is_there: AtomicBool,
    /// The same for all runs of the engine at once: none of them sees what becomes of another before it is left itself.
    is_for_all: Arc<AtomicBool>,
    waker: AtomicWaker,
}

impl LeaveNote {
    /// That of a run whose engine says there whether it leaves all of its runs.
    pub(crate) fn of(is_for_all: Arc<AtomicBool>) -> Self {
        Self { is_for_all, ..Self::default() }
    }

    pub(crate) fn leave(&self) {
        self.is_there.store(true, Ordering::Release);
        self.waker.wake();
    }

    pub(crate) fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Acquire) || self.is_for_all.load(Ordering::SeqCst)
    }

    /// Wakes the run when it is there.
    pub(super) fn wakes(&self, cx: &mut Context<'_>) {
        self.waker.register(cx.waker());
    }
}

impl Run {
    /// Whether it is about to be left. A run without a journal is not: there is nowhere to go on from.
    pub(super) fn is_leaving(&self) -> bool {
        self.journal.is_some() && self.shared.leave_note.is_there()
    }

    /// Takes the next of what handles want of a run that is about to be left, if there is something. That it is cancelled
    /// is done; who wants something else is told that the run has ended, once it has.
    pub(super) fn poll_cancel(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.is_leaving() {
            return false;
        }
        let Some(command) = self.poll_command(cx) else { return false };
        if matches!(command, Command::Cancel { .. }) {
            self.obey(command);
        }
        true
    }

    /// The next command, whatever turns the task has left: there may be no later time.
    fn poll_command(&mut self, cx: &mut Context<'_>) -> Option<Command> {
        let mailboxes = self.closing.iter_mut().chain([&mut self.mailbox]);
        for mailbox in mailboxes {
            if let Poll::Ready(Some(command)) = pin!(coop::unconstrained(mailbox.recv())).poll(cx) {
                return Some(command);
            }
        }
        None
    }

    /// Leaves the run, if it is about to be left and its journal has everything; says whether it does.
    pub(super) fn leaves(&mut self) -> bool {
        let is_due = self.is_leaving() && self.scheduler.end().is_none();
        if !is_due || !self.journal.as_ref().is_some_and(Journal::is_quiet) {
            return false;
        }
        self.journal = None;
        self.is_left = true;
        self.scheduler.apply(Fact::AppendFailed);
        true
    }

    /// What an execution waits for is left with the run, before the execution is dropped and its children are told that
    /// nobody wants them any more.
    pub(super) fn leave_children(&self) {
        if let Some(family) = self.shared.children.get()
            && (self.is_left || self.journal_error().is_some())
        {
            family.leave();
        }
    }
}
