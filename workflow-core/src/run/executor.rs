//! What a run has in flight: executions, asynchronous preconditions and waits for a time, until each completes or is
//! dropped. This part polls; it knows nothing of scheduling, and no journal.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use rustc_hash::FxHashMap;

use super::host::Host;
use super::in_flight::{Arrived, Begun, Dropped, Due, Flights, Guarded, InFlight, StepResult, has_threads};
use crate::error::StepError;
use crate::id::ExecutionId;
use crate::scheduler::CandidateId;
use crate::table::StepIndex;

/// The futures of one run.
#[derive(Default)]
pub(super) struct Executor {
    flights: Flights,
    /// How to drop what is in flight, by execution.
    executions: FxHashMap<ExecutionId, Arc<Dropped>>,
    questions: FxHashMap<CandidateId, (StepIndex, Arc<Dropped>)>,
    /// How many of those in flight were dropped and are still there.
    dropping: usize,
    /// What completed and waits for its turn, oldest first.
    completed: VecDeque<Arrived>,
    /// Whether the runtime has several threads; asked once in each poll, if it matters.
    threads: Option<bool>,
}

impl Executor {
    /// A poll of the run begins.
    pub(super) fn begin_poll(&mut self) {
        self.threads = None;
    }

    /// Whether the runtime has several threads.
    pub(super) fn has_threads(&mut self) -> bool {
        *self.threads.get_or_insert_with(has_threads)
    }

    /// How many executions have begun and wait for something.
    #[inline]
    pub(super) fn executing(&self) -> usize {
        self.executions.len()
    }

    /// Whether nothing is in flight and nothing has completed.
    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty()
            && self.executions.is_empty()
            && self.questions.is_empty()
            && self.completed.is_empty()
            && self.dropping == 0
    }

    /// The executions that have begun and wait for something.
    pub(super) fn executions(&self) -> impl Iterator<Item = ExecutionId> {
        self.executions.keys().copied()
    }

    /// Whether the execution has begun and waits for something.
    pub(super) fn has(&self, execution: ExecutionId) -> bool {
        self.executions.contains_key(&execution)
    }

    /// The executions that returned at once, and whose results wait for their turns.
    pub(super) fn returned_executions(&self) -> impl Iterator<Item = ExecutionId> {
        self.completed.iter().filter_map(|completion| match completion {
            Arrived::Execution(execution, _) => Some(*execution),
            _ => None,
        })
    }

    /// Whether the question is asked and has no answer that was taken in.
    pub(super) fn asks(&self, candidate: CandidateId) -> bool {
        self.questions.contains_key(&candidate)
    }

    /// Whether something completed and waits for its turn.
    #[inline]
    pub(super) fn has_completed(&self) -> bool {
        !self.completed.is_empty()
    }

    /// Whether futures that were dropped are still there.
    #[inline]
    pub(super) fn is_dropping(&self) -> bool {
        self.dropping > 0
    }

    /// Moves an execution to a task of its own; it is handed back where there is no runtime.
    pub(super) fn spawn(
        &mut self,
        execution: ExecutionId,
        begun: Begun,
        host: &Arc<Host>,
        step: usize,
    ) -> Result<(), Begun> {
        let task = begun.weighed(host, step).spawn()?;
        let dropped = self.droppable(execution);
        self.flights.push(InFlight::Spawned(execution, task), dropped);
        Ok(())
    }

    /// Keeps an execution that is pending.
    pub(super) fn keep(&mut self, execution: ExecutionId, begun: Begun, host: &Arc<Host>, step: usize) {
        let dropped = self.droppable(execution);
        self.flights.push(InFlight::Execution(execution, begun.weighed(host, step)), dropped);
    }

    /// Waits for the next attempt of an execution.
    pub(super) fn wait_for_retry(&mut self, execution: ExecutionId, due: BoxFuture<'static, ()>) {
        let dropped = self.droppable(execution);
        self.flights.push(InFlight::Wait(Due::Retry(execution), due), dropped);
    }

    /// Waits for a time. The handle drops the wait.
    pub(super) fn wait(&mut self, due: Due, sleep: BoxFuture<'static, ()>) -> Arc<Dropped> {
        let dropped = Arc::<Dropped>::default();
        self.flights.push(InFlight::Wait(due, sleep), Arc::clone(&dropped));
        dropped
    }

    /// Keeps a precondition that is pending.
    pub(super) fn ask(
        &mut self,
        candidate: CandidateId,
        step: StepIndex,
        check: BoxFuture<'static, Result<bool, StepError>>,
    ) {
        let dropped = Arc::<Dropped>::default();
        self.questions.insert(candidate, (step, Arc::clone(&dropped)));
        self.flights.push(InFlight::Check(candidate, Guarded::new(check)), dropped);
    }

    fn droppable(&mut self, execution: ExecutionId) -> Arc<Dropped> {
        Arc::clone(self.executions.entry(execution).or_default())
    }

    /// The execution is over, or its next attempt is due.
    pub(super) fn forget(&mut self, execution: ExecutionId) {
        if !self.executions.is_empty() {
            self.executions.remove(&execution);
        }
    }

    /// The step of a question, which has its answer.
    pub(super) fn answered(&mut self, candidate: CandidateId) -> Option<StepIndex> {
        self.questions.remove(&candidate).map(|(step, _)| step)
    }

    /// Drops an execution, if it is in flight or waits for its next attempt; says whether it is.
    pub(super) fn drop_execution(&mut self, execution: ExecutionId) -> bool {
        let dropped = self.executions.remove(&execution);
        let is_there = dropped.is_some();
        self.drop_wait(dropped);
        is_there
    }

    /// Drops the questions that nobody wants answered any more.
    pub(super) fn drop_questions(&mut self, is_wanted: impl Fn(CandidateId) -> bool) {
        let dropping = &mut self.dropping;
        self.questions.retain(|candidate, (_, dropped)| {
            let stays = is_wanted(*candidate);
            *dropping += usize::from(!stays && dropped.tell());
            stays
        });
    }

    /// Drops a wait.
    pub(super) fn drop_wait(&mut self, dropped: Option<Arc<Dropped>>) {
        if let Some(dropped) = dropped {
            self.dropping += usize::from(dropped.tell());
        }
    }

    /// What was dropped is gone.
    pub(super) fn is_gone(&mut self) {
        self.dropping -= 1;
    }

    /// Polls what is in flight; nothing if nothing completed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Option<Arrived> {
        match self.flights.poll_next(cx) {
            Poll::Ready(completion) => completion,
            Poll::Pending => None,
        }
    }

    /// What completed waits for its turn.
    pub(super) fn complete(&mut self, completion: Arrived) {
        self.completed.push_back(completion);
    }

    /// The same for what an execution returned.
    pub(super) fn returned(&mut self, execution: ExecutionId, result: StepResult) {
        self.complete(Arrived::Execution(execution, result));
    }

    /// What completed first and waits for its turn.
    pub(super) fn next_completed(&mut self) -> Option<Arrived> {
        self.completed.pop_front()
    }

    /// It was not its turn.
    pub(super) fn put_back(&mut self, completion: Arrived) {
        self.completed.push_front(completion);
    }

    /// Drops everything that is in flight.
    pub(super) fn clear(&mut self) {
        self.flights.clear();
    }

    /// Gives back the memory that it needs only while something is in flight.
    pub(super) fn shrink(&mut self) {
        self.flights.shrink();
        if self.completed.is_empty() {
            self.completed = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests;
