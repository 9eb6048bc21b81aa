//! The executor of a run: polls the futures in flight, and queues completions until their turn.
//!
//! It knows nothing of scheduling and of journals. Counts and ids here follow three lifetimes:
//!
//! ```text
//! executions   from the spawn, the first pending poll or the wait for a retry, until completion or drop
//! questions    from the first pending poll of a precondition until its answer or drop
//! dropping     from the drop request until the future itself is gone
//! ```
//!
//! Invariants: a drop request removes the id at once, and the future leaves later. So for the driver a dropped
//! execution is not in flight, while its future may still exist. An execution that has completed stays among
//! `executions` until the driver handles its completion.
//!
//! Example: `fetch` is in flight, and its branch is dropped. The id leaves `executions`, and `dropping` is 1. A later
//! poll drops the future and returns `Completion::Dropped`. The driver calls `is_gone`, and `dropping` is 0.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use rustc_hash::FxHashMap;
use tokio_util::task::TaskTracker;

use super::in_flight::{
    Attempt, AttemptFuture, Completion, DropSignal, Due, FuturesInFlight, Guarded, InFlight, LastSign,
    LimitResult, StepResult, has_threads,
};
use super::weight::Added;
use crate::error::StepError;
use crate::id::ExecutionId;
use crate::panics::discard;
use crate::scheduler::CandidateId;
use crate::table::StepIndex;

/// The futures of one run, and their completions.
#[derive(Default)]
pub(super) struct Executor {
    /// All futures: attempts, preconditions, and waits for retries, timers and the timeout.
    in_flight: FuturesInFlight,
    /// The drop signals of executions in flight. Their number is what the run's limit bounds.
    executions: FxHashMap<ExecutionId, Arc<DropSignal>>,
    /// The steps and drop signals of preconditions in flight.
    questions: FxHashMap<CandidateId, (StepIndex, Arc<DropSignal>)>,
    /// How many futures were requested to drop and still exist.
    dropping: u32,
    /// Those of them that begin again after a pause.
    again: u32,
    /// Whether nothing begins before the dropped futures are gone: after a rewind, their work may begin again.
    holds: bool,
    /// Completions that wait for their turn, oldest first. The order of completion is the order of handling.
    completed: VecDeque<Completion>,
    /// Whether an execution had a task of its own.
    had_tasks: bool,
    /// Whether the runtime has several threads; looked up at most once in each poll.
    threads: Option<bool>,
}

impl Executor {
    /// Notes that a poll of the run begins.
    pub(super) fn begin_poll(&mut self) {
        self.threads = None;
    }

    /// Whether the runtime has several threads.
    pub(super) fn has_threads(&mut self) -> bool {
        *self.threads.get_or_insert_with(has_threads)
    }

    /// How many executions are in flight, with those that wait for their next attempt.
    #[inline]
    pub(super) fn executing(&self) -> usize {
        self.executions.len()
    }

    /// Whether nothing is in flight and nothing has completed.
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
            && self.executions.is_empty()
            && self.questions.is_empty()
            && self.completed.is_empty()
            && self.dropping == 0
    }

    /// The executions in flight.
    pub(super) fn executions(&self) -> impl Iterator<Item = ExecutionId> {
        self.executions.keys().copied()
    }

    /// Whether the execution is in flight.
    pub(super) fn has(&self, execution: ExecutionId) -> bool {
        self.executions.contains_key(&execution)
    }

    /// Drops the results of these executions that wait for their turn.
    pub(super) fn discard_results(&mut self, executions: &[ExecutionId]) {
        self.completed.retain(|completion| match completion {
            Completion::Execution(execution, _) => !executions.contains(execution),
            _ => true,
        });
    }

    /// The executions whose results wait for their turn.
    pub(super) fn returned_executions(&self) -> impl Iterator<Item = ExecutionId> {
        self.completed.iter().filter_map(|completion| match completion {
            Completion::Execution(execution, _) => Some(*execution),
            _ => None,
        })
    }

    /// Whether an execution had a task of its own. It may still be in a poll when it was aborted.
    #[inline]
    pub(super) fn had_tasks(&self) -> bool {
        self.had_tasks
    }

    /// Whether the precondition is in flight.
    pub(super) fn asks(&self, candidate: CandidateId) -> bool {
        self.questions.contains_key(&candidate)
    }

    /// Whether a precondition is in flight.
    pub(super) fn is_asking(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Whether a completion waits for its turn.
    #[inline]
    pub(super) fn has_completed(&self) -> bool {
        !self.completed.is_empty()
    }

    /// Whether dropped futures still exist.
    #[inline]
    pub(super) fn is_dropping(&self) -> bool {
        self.dropping > 0
    }

    /// Whether futures still exist that a pause dropped, and that begin again after it.
    #[inline]
    pub(super) fn is_dropping_for_pause(&self) -> bool {
        self.again > 0
    }

    /// Nothing begins before the futures that were dropped so far are gone, because their work may begin again.
    #[cold]
    pub(super) fn wait_for_dropped(&mut self) {
        self.holds = true;
    }

    /// Whether something waited for dropped futures at the last look.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        self.holds
    }

    /// Whether nothing may begin yet.
    pub(super) fn waits_for_dropped(&mut self) -> bool {
        self.holds &= self.is_dropping();
        self.holds
    }

    /// Notes that these executions, and all questions, begin again once a pause is over. They are dropped next.
    #[cold]
    pub(super) fn begin_again(&self, executions: &[ExecutionId]) {
        let executions = executions.iter().filter_map(|execution| self.executions.get(execution));
        executions.chain(self.questions.values().map(|(_, dropped)| dropped)).for_each(|it| it.note_again());
    }

    /// Moves an execution to a task of its own. Returns it if there is no runtime. Afterwards the run polls only the
    /// task's result.
    pub(super) fn spawn(
        &mut self,
        execution: ExecutionId,
        begun: AttemptFuture,
        of: Attempt<'_>,
        tasks: &TaskTracker,
    ) -> Result<(), AttemptFuture> {
        let dropped = self.drop_signal(execution);
        let task = begun.weighed(of, Added::default(), &dropped).spawn(tasks);
        let task = task.inspect_err(|_| self.forget(execution))?;
        self.had_tasks = true;
        self.in_flight.push(InFlight::Spawned(execution, task), dropped);
        Ok(())
    }

    /// Polls a pending execution from here on.
    pub(super) fn keep(
        &mut self,
        execution: ExecutionId,
        begun: AttemptFuture,
        of: Attempt<'_>,
        added: Added,
    ) {
        let dropped = self.drop_signal(execution);
        let attempt = begun.weighed(of, added, &dropped);
        self.in_flight.push(InFlight::Execution(execution, attempt), dropped);
    }

    /// The last sign of the attempt of an execution; `None` if none is in flight.
    pub(super) fn last_sign(&self, execution: ExecutionId) -> Option<LastSign> {
        self.executions.get(&execution)?.last_sign()
    }

    /// Waits for the next attempt of an execution. The wait counts as the execution, so the run's limit holds for it.
    pub(super) fn wait_for_retry(&mut self, execution: ExecutionId, due: BoxFuture<'static, ()>) {
        let dropped = self.drop_signal(execution);
        self.in_flight.push(InFlight::Wait(Due::Retry(execution), due), dropped);
    }

    /// Waits for the turn of an execution. The wait counts as the execution, as that for a retry does.
    pub(super) fn wait_for_turn(&mut self, execution: ExecutionId, turn: BoxFuture<'static, ()>) {
        let dropped = self.drop_signal(execution);
        self.in_flight.push(InFlight::Wait(Due::Turn(execution), turn), dropped);
    }

    /// Waits for a permit of a limit. The wait counts as no execution. The returned signal drops it.
    pub(super) fn wait_for_limit(
        &mut self,
        execution: ExecutionId,
        turn: BoxFuture<'static, LimitResult>,
    ) -> Arc<DropSignal> {
        let dropped = Arc::<DropSignal>::default();
        self.in_flight.push(InFlight::Limit(execution, Guarded::new(turn)), Arc::clone(&dropped));
        dropped
    }

    /// Waits for a time. The returned signal drops the wait.
    pub(super) fn wait(&mut self, due: Due, sleep: BoxFuture<'static, ()>) -> Arc<DropSignal> {
        let dropped = Arc::<DropSignal>::default();
        self.in_flight.push(InFlight::Wait(due, sleep), Arc::clone(&dropped));
        dropped
    }

    /// Polls a pending precondition from here on.
    pub(super) fn ask(
        &mut self,
        candidate: CandidateId,
        step: StepIndex,
        check: BoxFuture<'static, Result<bool, StepError>>,
    ) {
        let dropped = Arc::<DropSignal>::default();
        self.questions.insert(candidate, (step, Arc::clone(&dropped)));
        self.in_flight.push(InFlight::Check(candidate, Guarded::new(check)), dropped);
    }

    /// The drop signal of an execution. Attempts and waits of one execution share it.
    fn drop_signal(&mut self, execution: ExecutionId) -> Arc<DropSignal> {
        Arc::clone(self.executions.entry(execution).or_default())
    }

    /// Removes an execution that has completed, or whose next attempt is due.
    pub(super) fn forget(&mut self, execution: ExecutionId) {
        if !self.executions.is_empty() {
            self.executions.remove(&execution);
        }
    }

    /// Removes a precondition that has its answer, and returns its step.
    pub(super) fn answered(&mut self, candidate: CandidateId) -> Option<StepIndex> {
        self.questions.remove(&candidate).map(|(step, _)| step)
    }

    /// Drops an execution in flight. Returns whether it was in flight.
    pub(super) fn drop_execution(&mut self, execution: ExecutionId) -> bool {
        let dropped = self.executions.remove(&execution);
        let is_there = dropped.is_some();
        self.drop_wait(dropped);
        is_there
    }

    /// Drops the preconditions whose answers are not wanted any more. A future that has completed already has no
    /// drop to wait for, so it does not count.
    pub(super) fn drop_questions(&mut self, is_wanted: impl Fn(CandidateId) -> bool) {
        let Self { questions, dropping, again, .. } = self;
        questions.retain(|candidate, (_, dropped)| {
            let stays = is_wanted(*candidate);
            if !stays && dropped.set() {
                *dropping += 1;
                *again += u32::from(dropped.begins_again());
            }
            stays
        });
    }

    /// Drops a wait, if there is one.
    pub(super) fn drop_wait(&mut self, dropped: Option<Arc<DropSignal>>) {
        if let Some(dropped) = dropped.filter(|dropped| dropped.set()) {
            self.dropping += 1;
            self.again += u32::from(dropped.begins_again());
        }
    }

    /// Notes that a dropped future is gone.
    pub(super) fn is_gone(&mut self, begins_again: bool) {
        // Each drop request that came in time has one such completion, so the counts do not go below 0.
        self.dropping -= 1;
        self.again -= u32::from(begins_again);
    }

    /// Polls the futures in flight. Returns a completion, if there is one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Option<Completion> {
        match self.in_flight.poll_next(cx) {
            Poll::Ready(completion) => completion,
            Poll::Pending => None,
        }
    }

    /// Queues a completion until its turn: the driver handles one per turn, after effects that may begin.
    pub(super) fn complete(&mut self, completion: Completion) {
        self.completed.push_back(completion);
    }

    /// Queues the result of an execution until its turn.
    pub(super) fn returned(&mut self, execution: ExecutionId, result: StepResult) {
        self.complete(Completion::Execution(execution, result));
    }

    /// The oldest completion.
    pub(super) fn next_completed(&mut self) -> Option<Completion> {
        self.completed.pop_front()
    }

    /// Puts a completion back in front, because it could not be handled now. It keeps its turn.
    pub(super) fn put_back(&mut self, completion: Completion) {
        self.completed.push_front(completion);
    }

    /// Drops every future in flight, without waiting for their turns. Only for a run that has ended. `but_tasks`: aborted
    /// tasks stay, for [`tasks_gone`](Self::tasks_gone), since they may be in a poll.
    pub(super) fn clear(&mut self, but_tasks: bool) {
        self.in_flight.clear(but_tasks);
    }

    /// Whether no future is left.
    #[inline]
    pub(super) fn is_cleared(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Waits until the aborted tasks are gone.
    #[cold]
    pub(super) async fn tasks_gone(&mut self) {
        while let Some(completion) = std::future::poll_fn(|cx| self.in_flight.poll_next(cx)).await {
            // It may have the result of a step.
            discard(completion);
        }
    }

    /// Frees memory that is needed only while something is in flight.
    pub(super) fn shrink(&mut self) {
        self.in_flight.shrink();
        if self.completed.is_empty() {
            self.completed = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests;
