//! Pausing a live run (S61): the work that it drops, holds back and gives up, and the moment from which nothing runs.
//!
//! ```text
//! pause ─▶ RunPaused ─▶ effects stay queued; waits for limits and turns are given up
//!             │
//!             └ once nothing is under way: rest ─▶ RunWaiting ─▶ status `Paused`, no permit, no active time
//! unpause ─▶ RunUnpaused ─▶ effects begin
//! ```
//!
//! The state defers what follows later. The driver holds back what was due before: retries, attempts of earlier lives,
//! and questions. It begins no effect of a paused run, and everything that waited elsewhere becomes an effect again. So
//! a deferred attempt holds no permit, no turn and no place in a queue.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::any_run::Command;
use super::commands::ended;
use super::commit::Committer;
use super::driver::Driver;
use super::journal::Journal;
use super::shared::RunShared;
use super::state::{Batch, EffectKind, PauseStart};
use crate::id::{ExecutionId, Origin, Pause, RunStatus};
use crate::observe::Observed;
use crate::outcome::SendError;
use crate::store::Record;

/// The answer to a pause or an unpause.
type Done = oneshot::Sender<Result<(), SendError>>;

/// The origin of a pause or an unpause, and the channel for the answer.
type Caller = (Option<Arc<Origin>>, Option<Done>);

/// Whether the run of these records is paused, if it has not ended.
pub(super) fn is_paused(records: &[Record]) -> bool {
    let mut paused = [false; 2];
    for record in records {
        match record {
            Record::RunPaused { by_parent, .. } => paused[usize::from(*by_parent)] = true,
            Record::RunUnpaused { by_parent, .. } => paused[usize::from(*by_parent)] = false,
            Record::RunEnded { .. } => paused = [false; 2],
            _ => {}
        }
    }
    paused.contains(&true)
}

fn has_id(origin: Option<&Arc<Origin>>) -> bool {
    origin.is_some_and(|origin| origin.id.is_some())
}

impl Driver {
    /// Pauses the run by itself, and answers once the journal has that.
    #[cold]
    pub(super) fn pause(&mut self, how: Pause, origin: Option<Arc<Origin>>, done: Done) {
        let Committer { state, journal, shared, .. } = &self.committer;
        let refusal = match how {
            _ if state.end().is_some() => Some(ended(&self.committer)),
            Pause::Now if journal.is_none() => Some(SendError::NoStore { run: shared.id.clone() }),
            _ => None,
        };
        if let Some(refusal) = refusal {
            drop(done.send(Err(refusal)));
            return;
        }
        let is_paused = state.is_paused() && state.lives.pause().is_some_and(|pause| pause.own);
        if how == Pause::Now {
            shared.signals.unload_paused(true);
            // The run is unloaded at once, and does not wait for an earlier alarm.
            self.alarms.idle = None;
        }
        // The journal has each id, also that of a pause which changes nothing: its repetition after an unpause is no pause.
        if is_paused && !has_id(origin.as_ref()) && (how == Pause::AfterRunning || self.has_nothing_to_drop())
        {
            return self.committer.answer_when_written(done, Ok(()), |done| {
                // Nothing is left to drop.
                Command::Pause { how: Pause::AfterRunning, done }
            });
        }
        self.commit_pause(false, how, (origin, Some(done)));
    }

    /// Takes the next command. Attempts that the pause dropped are gone before its end begins them again, so an unpause waits
    /// for that, and not for others.
    pub(super) fn next_command(&self) -> Option<Command> {
        let Committer { shared, state, .. } = &self.committer;
        if self.executor.is_dropping_for_pause() && state.is_paused() {
            return shared.signals.mailbox.take_before_unpause();
        }
        shared.signals.mailbox.take()
    }

    /// Unpauses the run by itself, and answers once the journal has that.
    #[cold]
    pub(super) fn unpause(&mut self, origin: Option<Arc<Origin>>, done: Done) {
        let state = &self.committer.state;
        if state.end().is_some() {
            drop(done.send(Err(ended(&self.committer))));
            return;
        }
        let is_paused = state.is_paused() && state.lives.pause().is_some_and(|pause| pause.own);
        if !is_paused && !has_id(origin.as_ref()) {
            return self.committer.answer_when_written(done, Ok(()), |done| Command::Unpause { done });
        }
        self.commit_unpause(false, (origin, Some(done)));
    }

    /// Pauses and unpauses the run with its parent, which waits for it.
    #[inline]
    pub(super) fn follow_parent(&mut self) {
        if let Some(is_paused) = self.committer.shared.signals.parent_paused() {
            self.follow(is_paused);
        }
    }

    #[cold]
    fn follow(&mut self, parent_is_paused: bool) {
        let state = &self.committer.state;
        if state.end().is_some() || self.committer.is_detaching() {
            return;
        }
        let follows = state.is_paused() && state.lives.pause().is_some_and(|pause| pause.by_parent);
        match (parent_is_paused, follows) {
            (true, false) => self.commit_pause(true, Pause::AfterRunning, (None, None)),
            (false, true) => self.commit_unpause(true, (None, None)),
            _ => {}
        }
    }

    /// Takes up the pause that the journal has, if it has one: children that join pause too. A child whose parent asks for
    /// it follows that.
    pub(super) fn resume_pause(&mut self) {
        self.committer.state.defer_questions(|_| false);
        let Committer { state, shared, .. } = &self.committer;
        let Some(pause) = state.lives.pause().filter(|_| state.is_paused()) else { return };
        shared.pause_children(true);
        if let Some(link) = shared.parent_link().filter(|_| pause.by_parent) {
            link.follow_parent(shared);
        }
    }

    /// Commits a pause, and gives up everything that attempts wait for.
    fn commit_pause(&mut self, by_parent: bool, how: Pause, (origin, done): Caller) {
        // Everything that follows from earlier batches is due, and deferred with the rest.
        self.advance(&mut usize::MAX.clone());
        let under_way = self.under_way();
        let (running, dropped) =
            if how == Pause::Now { (Vec::new(), under_way) } else { (under_way, Vec::new()) };
        let start = PauseStart { by_parent, running, dropped: dropped.clone(), origin };
        self.commit_in_turn(Batch::Paused(Box::new(start)), done);
        if !self.committer.state.is_paused() {
            // A consequence of earlier batches has ended the run.
            return;
        }
        let shared = &self.committer.shared;
        if how == Pause::Now {
            shared.detach_awaited_children(&dropped);
        }
        shared.pause_children(true);
        if how == Pause::Now {
            self.drop_under_way(dropped);
        }
        self.hold_back();
    }

    fn commit_unpause(&mut self, by_parent: bool, (origin, done): Caller) {
        self.advance(&mut usize::MAX.clone());
        let was_paused = self.committer.state.is_paused();
        self.commit_in_turn(Batch::Unpaused { by_parent, origin }, done);
        if self.committer.state.is_paused() || !was_paused {
            return;
        }
        let shared = &self.committer.shared;
        // An execution that was dropped begins again.
        self.queued_executions().into_iter().for_each(|execution| shared.cancellations.revoke(execution));
        shared.signals.unload_paused(false);
        if !self.executor.holds() {
            // Attempts that the pause dropped are gone before its end.
            shared.child_registry().attempts_gone();
        }
        shared.pause_children(false);
        if self.committer.journal.is_none() {
            shared.tell(|| Observed::RunUnpaused);
        }
    }

    /// Whether `Now` finds nothing under way.
    fn has_nothing_to_drop(&self) -> bool {
        self.under_way().is_empty() && !self.executor.is_asking()
    }

    /// Drops attempts and preconditions that are under way.
    fn drop_under_way(&mut self, executions: Vec<ExecutionId>) {
        self.executor.discard_results(&executions);
        self.executor.begin_again(&executions);
        self.drop_executions(executions);
        self.executor.drop_questions(|_| false);
    }

    /// Makes effects of all attempts that are due and have not begun. They leave queues and give up limits and turns.
    /// Questions that are not asked are deferred with those that follow.
    pub(super) fn hold_back(&mut self) {
        let Self { executor, committer, .. } = self;
        committer.state.defer_questions(|candidate| executor.asks(candidate));
        self.leave_limits();
        let turns: Vec<ExecutionId> =
            self.admission.turns_before_begin().map(|(execution, _)| execution).collect();
        for execution in turns {
            self.admission.give_up_turn(execution);
            self.executor.drop_execution(execution);
        }
        for begins in self.admission.take_deferred().into_iter().rev() {
            let state = &mut self.committer.state;
            if state.is_wanted(&begins) {
                state.effects.put_back(begins);
            }
        }
        let queued = self.queued_executions();
        for execution in self.committer.state.trace.running() {
            // Those in flight are under way, or wait for their delays.
            let is_due = !queued.contains(&execution) && !self.executor.has(execution);
            let has_returned = || self.executor.returned_executions().any(|id| id == execution);
            if is_due && !has_returned() && self.committer.state.scheduler.is_running(execution) {
                self.committer.state.queue_effect(EffectKind::Attempt(execution));
            }
        }
    }

    /// Notes that nothing runs in the paused run any more, once that is so. Returns whether it has become so: there is a
    /// record to write.
    #[inline]
    pub(super) fn rest_in_pause(&mut self) -> bool {
        self.committer.state.is_paused() && self.rest_if_nothing_runs()
    }

    #[cold]
    fn rest_if_nothing_runs(&mut self) -> bool {
        let is_written = || self.committer.journal.as_deref().is_none_or(Journal::is_written);
        if self.committer.shared.status() == RunStatus::Paused || !is_written() || !self.has_paused() {
            return false;
        }
        let Committer { telemetry, state, .. } = &mut self.committer;
        telemetry.compare(state);
        self.admission.give_up_permit();
        telemetry.meter.waits();
        self.stop_counting_time();
        self.committer.record_rest();
        self.give_back();
        // An execution that waits for this run is not under way any more.
        super::child_records::wake_parent(&self.committer.shared);
        true
    }

    /// The pause for the state without a batch that the store refused. The lists of the first time hold, though some of
    /// their executions have ended or are gone since: all had begun. So had the refused execution, which fails later.
    pub(super) fn pause_again(&self, start: PauseStart, refused: Option<ExecutionId>) -> PauseStart {
        let PauseStart { by_parent, mut running, mut dropped, origin } = start;
        let others = if dropped.is_empty() { &mut running } else { &mut dropped };
        others.extend(self.under_way());
        running.extend(refused);
        dropped.retain(|execution| Some(*execution) != refused);
        for list in [&mut running, &mut dropped] {
            list.retain(|execution| self.committer.state.scheduler.is_running(*execution));
            list.sort_unstable();
            list.dedup();
        }
        PauseStart { by_parent, running, dropped, origin }
    }

    /// Whether nothing runs that could continue in the pause.
    pub(super) fn has_paused(&self) -> bool {
        !self.executor.is_dropping() && self.rests(|child| child.status() == RunStatus::Paused)
    }
}

impl RunShared {
    /// Pauses or unpauses the children that executions of this run wait for, and those that join later.
    fn pause_children(&self, is_paused: bool) {
        self.child_registry().pause(is_paused);
    }

    /// Detaches the children that these executions wait for. They are dropped, and ask for them again.
    fn detach_awaited_children(&self, dropped: &[ExecutionId]) {
        self.signals.note_detached_children();
        self.child_registry().detach_awaited(dropped);
    }
}
