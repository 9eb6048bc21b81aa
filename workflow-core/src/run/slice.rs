//! One slice: a bounded part of a poll of the run. A poll has up to four of them (`drive`).

use std::task::{Context, Poll};

use tokio::task::coop;

use super::Command;
use super::commit::Committer;
use super::driver::Driver;
use super::in_flight::Due;
use super::journal::Journal;
use super::state::Batch;

/// How many actions, batches and commands one slice handles.
const SLICE: usize = 256;

/// How much the state is advanced in one slice at most.
pub(super) const WORK: usize = 2 * SLICE;

/// How a slice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The slice reached its bound: there may be more to do.
    More,
    /// The run has ended, and the store has every batch or has failed. [`Run::end`](super::drive::Run::end) closes the
    /// journal.
    Ended,
    /// The run is being rewound, or has ended and has batches that the store does not have.
    Blocked,
    /// There is nothing to do before something arrives or the store answers.
    Quiet,
}

/// One slice of a run.
pub(super) struct Slice<'a> {
    driver: &'a mut Driver,
    /// How much more it handles.
    left: usize,
}

impl<'a> Slice<'a> {
    pub(super) fn of(driver: &'a mut Driver) -> Self {
        Self { driver, left: SLICE }
    }

    /// Handles what there is to handle.
    pub(super) fn poll(mut self, cx: &mut Context<'_>) -> Progress {
        self.driver.committer.clock.tick();
        self.driver.committer.shared.signals.register(cx.waker());
        self.driver.poll_store_answer(cx);
        if self.driver.poll_rewind(cx).is_pending() {
            return Progress::Blocked;
        }
        self.read_child_store_failure();
        self.poll_unwanted(cx);
        // Each slice takes one command and polls the executor before it begins anything, so that executions that
        // complete at once cannot starve either.
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
                break;
            }
            if self.driver.begin_next(&mut self.left, cx) {
                continue;
            }
            if self.has_ended() && self.driver.committer.is_written_out() {
                return Progress::Ended;
            }
            if !self.take_next_input(cx) && !self.driver.poll_journal(cx) {
                return if self.has_ended() { Progress::Blocked } else { Progress::Quiet };
            }
        }
        self.driver.poll_journal(cx);
        Progress::More
    }

    fn has_ended(&self) -> bool {
        self.driver.committer.state.end().is_some()
    }

    /// Takes in one cancel, due timer, completion or command, in this order; says whether there was one. A run that is
    /// about to detach takes in only that it is cancelled, and drops other commands: their senders learn that the run
    /// has ended.
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
        // Whatever turns the task has left: there may be no later time.
        let Some(command) = self.driver.committer.shared.signals.mailbox.take() else { return false };
        if matches!(command, Command::Cancel { .. }) {
            self.driver.handle_command(command);
        }
        true
    }

    /// Whether the run takes anything in: it has not ended, its state has all that follows from what it took before,
    /// and the store is not too far behind.
    fn accepts_input(&self) -> bool {
        let Committer { state, journal, .. } = &self.driver.committer;
        state.end().is_none()
            && state.scheduler.is_settled()
            && !journal.as_deref().is_some_and(Journal::is_full)
    }

    fn read_cancel_note(&mut self) -> bool {
        self.driver.committer.shared.signals.read_cancel().is_some_and(|reason| self.driver.cancel(reason))
    }

    fn poll_mailbox(&mut self, cx: &mut Context<'_>) -> bool {
        // Once the task has no turns left, it is woken to have more.
        let Poll::Ready(turn) = coop::poll_proceed(cx) else { return false };
        let Some(command) = self.driver.committer.shared.signals.mailbox.take() else { return false };
        turn.made_progress();
        self.driver.handle_command(command);
        true
    }

    fn take_completed(&mut self, cx: &mut Context<'_>) -> bool {
        // What was dropped goes first: its futures must not outlive their branches.
        if self.driver.executor.is_dropping() {
            self.poll_executor(cx);
        }
        if !self.driver.executor.has_completed() {
            self.poll_executor(cx);
        }
        let Some(completion) = self.driver.executor.next_completed() else { return false };
        // The detach may have come during this poll and may have caused this completion: it does not enter the log.
        if self.driver.committer.is_detaching() {
            self.driver.executor.put_back(completion);
            return false;
        }
        self.driver.complete(completion, &mut self.left, cx);
        true
    }

    fn poll_executor(&mut self, cx: &mut Context<'_>) {
        if let Some(completion) = self.driver.executor.poll(cx) {
            self.driver.committer.clock.tick();
            self.driver.executor.complete(completion);
        }
    }

    /// Fires the timer that is due, if one is; else sees to it that the run is woken for the next one.
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

    /// A child that nobody wants any more is cancelled.
    fn poll_unwanted(&mut self, cx: &mut Context<'_>) {
        let Some(birth) = self.driver.committer.shared.birth() else { return };
        // A parent that is detached says so before it says that it does not want its children.
        if !self.has_ended() && birth.unwanted.is_told(cx) && !self.driver.committer.is_detaching() {
            let reason = birth.why_unwanted();
            self.driver.cancel(reason);
        }
    }

    /// Stops as if the store had failed for the run itself, after a failure for a child, once the write that is under way is
    /// answered.
    fn read_child_store_failure(&mut self) {
        let Committer { journal, shared, state, .. } = &mut self.driver.committer;
        let (Some(journal), Some(why)) = (journal, shared.signals.child_store_failure()) else { return };
        if state.end().is_none() && journal.fail_if_idle(why) {
            self.driver.stop_unkept(None);
        }
    }
}
