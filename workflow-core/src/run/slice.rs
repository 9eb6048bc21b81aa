//! One slice: a bounded part of a poll. A poll has up to four of them ([`drive`](super::drive)).
//!
//! Order within a slice, so that no source starves another and earlier facts take effect first:
//!
//! ```text
//! once   the store's answer, a rewind, a child's store failure, the parent's cancel,
//!        a cancel, one command, one poll of the executor
//! loop   advance the state ─▶ begin one effect, else take one input:
//!        cancel, due timer, completion, command, then the journal
//! ```

use std::task::{Context, Poll};

use tokio::task::coop;

use super::Command;
use super::commit::Committer;
use super::driver::Driver;
use super::in_flight::Due;
use super::journal::Journal;
use super::state::Batch;

/// The most actions, batches and commands that one slice handles.
const SLICE: usize = 256;

/// The most work units by which one slice advances the state.
pub(super) const WORK: usize = 2 * SLICE;

/// The reason why a slice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The slice reached its bound: there may be more to do.
    More,
    /// The run has ended, and the store has every batch or has failed. [`Run::end`](super::drive::Run::end)
    /// then closes the journal.
    Ended,
    /// The run is being rewound, or has ended and the store does not have every batch.
    Blocked,
    /// There is nothing to do before something arrives or the store answers.
    Quiet,
}

/// One slice of a run.
pub(super) struct Slice<'a> {
    driver: &'a mut Driver,
    /// How much more the slice handles.
    left: usize,
}

impl<'a> Slice<'a> {
    pub(super) fn of(driver: &'a mut Driver) -> Self {
        Self { driver, left: SLICE }
    }

    /// Runs the slice.
    pub(super) fn poll(mut self, cx: &mut Context<'_>) -> Progress {
        self.driver.committer.clock.tick();
        self.driver.committer.shared.signals.register(cx.waker());
        self.driver.poll_store_answer(cx);
        if self.driver.poll_rewind(cx).is_pending() {
            return Progress::Blocked;
        }
        self.read_child_store_failure();
        self.read_parent_cancel(cx);
        // One command and one poll of the executor come before anything begins, so that executions that
        // complete at once starve neither.
        if self.accepts_input() {
            self.read_cancel_note();
            if !self.driver.committer.is_detaching() {
                self.poll_mailbox(cx);
                self.poll_executor(cx);
            }
        }
        let mut work = WORK;
        while self.left > 0 {
            self.left -= 1;
            if self.driver.poll_rewind(cx).is_pending() {
                return Progress::Blocked;
            }
            if !self.driver.advance(&mut work) {
                // The work units are used up. The next slice continues, and nothing begins before.
                break;
            }
            if self.driver.begin_next(&mut self.left, cx) {
                continue;
            }
            if self.has_ended() && self.driver.committer.is_written_out() {
                return Progress::Ended;
            }
            // With no effect to begin, the run takes its next input, and then looks at the journal.
            if !self.take_next_input(cx) && !self.driver.poll_journal(cx) {
                return if self.has_ended() { Progress::Blocked } else { Progress::Quiet };
            }
        }
        self.driver.poll_journal(cx);
        Progress::More
    }

    /// Whether the state has ended.
    fn has_ended(&self) -> bool {
        self.driver.committer.state.end().is_some()
    }

    /// Handles one cancel, due timer, completion or command, in this order. Returns whether there was one. A
    /// run that is about to detach handles only a cancel and drops other commands: their senders learn that
    /// the run has ended.
    fn take_next_input(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.accepts_input() {
            return false;
        }
        if self.read_cancel_note() {
            return true;
        }
        if !self.driver.committer.is_detaching() {
            return self.take_timer() || self.take_completed(cx) || self.poll_mailbox(cx);
        }
        // Taken regardless of the task's budget: there may be no later poll.
        let Some(command) = self.driver.committer.shared.signals.mailbox.take() else { return false };
        if matches!(command, Command::Cancel { .. }) {
            self.driver.handle_command(command);
        }
        true
    }

    /// Whether the run takes input: it has not ended, its state has everything that follows from earlier
    /// input, and the store is not too far behind.
    fn accepts_input(&self) -> bool {
        let Committer { state, journal, .. } = &self.driver.committer;
        state.end().is_none()
            && state.scheduler.is_settled()
            && !journal.as_deref().is_some_and(Journal::is_full)
    }

    /// Cancels the run if there is an unread cancel signal. Returns whether there was.
    fn read_cancel_note(&mut self) -> bool {
        self.driver.committer.shared.signals.read_cancel().is_some_and(|reason| self.driver.cancel(reason))
    }

    /// Handles one command. Returns whether there was one.
    fn poll_mailbox(&mut self, cx: &mut Context<'_>) -> bool {
        // A task without budget is woken when it has some again.
        let Poll::Ready(turn) = coop::poll_proceed(cx) else { return false };
        let Some(command) = self.driver.committer.shared.signals.mailbox.take() else { return false };
        turn.made_progress();
        self.driver.handle_command(command);
        true
    }

    /// Handles one completion. Returns whether there was one.
    fn take_completed(&mut self, cx: &mut Context<'_>) -> bool {
        // Dropped futures go first: they must not outlive their branches.
        if self.driver.executor.is_dropping() {
            self.poll_executor(cx);
        }
        if !self.driver.executor.has_completed() {
            self.poll_executor(cx);
        }
        let Some(completion) = self.driver.executor.next_completed() else { return false };
        // The detach may have come during this poll and may have caused this completion, which then must not
        // enter the log.
        if self.driver.committer.is_detaching() {
            self.driver.executor.put_back(completion);
            return false;
        }
        self.driver.complete(completion, &mut self.left, cx);
        true
    }

    /// Polls the futures in flight once, and queues a completion.
    fn poll_executor(&mut self, cx: &mut Context<'_>) {
        if let Some(completion) = self.driver.executor.poll(cx) {
            self.driver.committer.clock.tick();
            self.driver.executor.complete(completion);
        }
    }

    /// Fires a due timer, or sets the alarm for the earliest one. Returns whether a timer fired.
    fn take_timer(&mut self) -> bool {
        let Committer { shared, state, clock, .. } = &mut self.driver.committer;
        let state = &mut **state;
        let Some((due, timer)) = state.timers.next(&state.scheduler) else { return false };
        if !self.driver.alarms.has_come(due, clock.wall()) {
            let sleep = || self.driver.executor.wait(Due::Timer(due), shared.common.clock.sleep_until(due));
            let earlier = self.driver.alarms.set(due, sleep);
            self.driver.executor.drop_wait(earlier);
            return false;
        }
        if let Some(event) = state.timers.event(due, timer) {
            self.driver.commit_in_turn(Batch::Fired { timer, event }, None);
        }
        true
    }

    /// Cancels a child whose parent does not want it any more.
    fn read_parent_cancel(&mut self, cx: &mut Context<'_>) {
        let Some(link) = self.driver.committer.shared.parent_link() else { return };
        // A parent signals the detach before the cancel.
        if !self.has_ended() && link.drop_signal.is_set(cx) && !self.driver.committer.is_detaching() {
            let reason = link.cancel_reason();
            self.driver.cancel(reason);
        }
    }

    /// After a failure of a child's store, stops the run as if its own store had failed. Waits for the answer
    /// of the write under way.
    fn read_child_store_failure(&mut self) {
        let Committer { journal, shared, state, .. } = &mut self.driver.committer;
        let (Some(journal), Some(why)) = (journal, shared.signals.child_store_failure()) else { return };
        if state.end().is_none() && journal.fail_if_idle(why) {
            self.driver.stop_after_journal_failure(None);
        }
    }
}
