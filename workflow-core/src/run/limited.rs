//! Attempts of steps with a named limit (S70): what they need besides the run's own permits, and their waits.
//!
//! ```text
//! effect ─▶ room in the run ─▶ permit of the step ─▶ turn (S35) ─▶ permit of the limit ─▶ begins
//!           (admission)        (`concurrency`)       (turns)       (the queue of its key)
//!               ▲                  │ none: deferred                   │ none: waits, and gives up all the others
//!               │                  ▼                                  ▼
//!               └───────────── deferred ◀── handed a permit without the others: gives it back
//! ```
//!
//! The scheduler does not bound the concurrency of these steps: it would count attempts that wait. So the run does.
//!
//! An attempt that waits for its limit holds nothing, so it can be handed a permit at a moment when its step or its run
//! has none. It then gives the permit back, since others can use it, and keeps its place in the order of arrival. In a
//! run that is always full, at a limit that is always used up, that could go on for ever. So the first attempt of a run
//! that gave a permit back is *preferred*: while it waits again, the run keeps room and the next permit of the step for it.
//! One attempt of a run at a time is preferred, so the others lose one permit at most.
//!
//! # Why nothing waits for ever
//! A holder of a limit's permit has begun, waits for its turn, or waits for the store. An attempt that has its turn
//! does not wait for a limit. So holders of both go on by themselves, except where a step waits for a child that needs
//! the same limit and key. A preferred attempt holds permits of its own run only, for which no holder of a limit's permit
//! waits.
//!
//! # Invariants
//! - An execution is in at most one of `waiting`, the `deferred` attempts of its step, and those of the run.
//! - The permit of an attempt that begins belongs to its future, and the end of the attempt releases the permit.
//! - The permit of a step belongs to the execution from its first attempt to its end, except while it waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::task::Context;

use futures_util::future::BoxFuture;
use rustc_hash::{FxHashMap, FxHashSet};

use super::admission::Admission;
use super::commit::Committer;
use super::driver::Driver;
use super::execute::AttemptKind;
use super::in_flight::{DropSignal, LimitResult};
use super::state::{EffectKind, RunState};
use crate::error::StepError;
use crate::id::ExecutionId;
use crate::limit::{Arrival, Limiter, Requester};
use crate::panics::{caught, caught_in};
use crate::table::StepIndex;
use crate::workflow::Check;

/// The attempts of a run whose steps have limits.
#[derive(Default)]
pub(super) struct LimitedAttempts {
    /// The steps that have a `concurrency` as well. In order, so that each run does the same.
    steps: BTreeMap<StepIndex, StepPermits>,
    /// The attempts that wait for the permit of a limit, or for their key.
    waiting: FxHashMap<ExecutionId, WaitingAttempt>,
    /// The executions that gave a permit back and have none yet.
    returned: FxHashMap<ExecutionId, Returned>,
    /// The same, in the order in which they did. The first is preferred while it waits.
    by_return: BTreeMap<u64, ExecutionId>,
    /// The number of the next one.
    next_return: u64,
    /// The permits of attempts that are about to begin, or the errors of their keys.
    permits: FxHashMap<ExecutionId, LimitResult>,
    /// Those among them whose begin is on its way to the store. They count among the run's executions.
    journaled: FxHashSet<ExecutionId>,
}

/// The permits of one step.
struct StepPermits {
    most: usize,
    held: FxHashSet<ExecutionId>,
    /// Attempts that wait for a permit of the step, oldest first.
    deferred: VecDeque<EffectKind>,
}

/// An attempt that waits for the permit of a limit.
struct WaitingAttempt {
    begins: EffectKind,
    step: StepIndex,
    dropped: Arc<DropSignal>,
    /// Empty while the limit's key is not known.
    arrival: Arc<OnceLock<Arrival>>,
}

/// An execution that gave a permit back.
struct Returned {
    order: u64,
    /// Its place in the order of arrival.
    arrival: Arrival,
}

/// The reason why a deferred attempt waits, for reports.
pub(super) enum WaitsAt<'a> {
    /// The `concurrency` of its step.
    Step(u32),
    /// The named limit.
    Limit(&'a Arrival),
    /// The key at the named limit.
    Key,
}

impl LimitedAttempts {
    /// How many attempts count among the run's executions and are not in flight.
    pub(super) fn counted(&self) -> usize {
        self.journaled.len() + usize::from(self.preferred().is_some())
    }

    /// Whether the attempt counts among the run's executions without being in flight.
    pub(super) fn is_counted(&self, execution: ExecutionId) -> bool {
        self.journaled.contains(&execution)
    }

    /// The execution for which the run keeps its next free permits: the first that gave a permit back, while it waits.
    pub(super) fn preferred(&self) -> Option<ExecutionId> {
        let (_, first) = self.by_return.first_key_value()?;
        self.waiting.contains_key(first).then_some(*first)
    }

    /// Notes that the begin of an attempt is on its way to the store. An attempt that holds a permit keeps its room in the
    /// run until then.
    pub(super) fn note_journaled(&mut self, execution: ExecutionId) {
        if self.permits.contains_key(&execution) {
            self.journaled.insert(execution);
        }
    }

    /// The permit of the attempt that begins now, if it needed one.
    pub(super) fn take_permit(&mut self, execution: ExecutionId) -> Option<LimitResult> {
        self.journaled.remove(&execution);
        self.permits.remove(&execution)
    }

    /// Whether the step has a permit for the execution, or the execution has one already.
    fn has_step_permit(&self, step: StepIndex, execution: ExecutionId) -> bool {
        let Some(permits) = self.steps.get(&step) else { return true };
        let is_kept = self.preferred().is_some_and(|preferred| {
            let is_of_step = || self.waiting.get(&preferred).is_some_and(|waiting| waiting.step == step);
            preferred != execution && !permits.held.contains(&preferred) && is_of_step()
        });
        permits.held.contains(&execution) || permits.held.len() + usize::from(is_kept) < permits.most
    }

    fn take_step_permit(&mut self, step: StepIndex, execution: ExecutionId) {
        if let Some(permits) = self.steps.get_mut(&step) {
            permits.held.insert(execution);
        }
    }

    /// Gives a free permit of the step to the oldest attempt that waits for it, if there are both.
    fn next_of_step(&mut self, step: StepIndex, state: &RunState) -> Option<EffectKind> {
        let permits = self.steps.get_mut(&step)?;
        while permits.deferred.pop_front_if(|begins| !state.is_wanted(begins)).is_some() {}
        let next = permits.deferred.front()?.execution()?;
        if !self.has_step_permit(step, next) {
            return None;
        }
        let permits = self.steps.get_mut(&step)?;
        permits.held.insert(next);
        permits.deferred.pop_front()
    }

    /// Defers an attempt until its step has a permit.
    fn defer(&mut self, step: StepIndex, begins: EffectKind) {
        if let Some(permits) = self.steps.get_mut(&step) {
            insert_in_order(&self.returned, &mut permits.deferred, begins);
        }
    }

    /// Defers an attempt that has its step's permit among these, which wait for room in the run.
    pub(super) fn defer_for_room(&self, deferred: &mut VecDeque<EffectKind>, begins: EffectKind) {
        insert_in_order(&self.returned, deferred, begins);
    }

    /// Takes the attempts that wait for permits of their steps, behind these. All of them hold nothing any more.
    pub(super) fn take_deferred(&mut self, deferred: &mut VecDeque<EffectKind>) {
        for permits in self.steps.values_mut() {
            deferred.append(&mut permits.deferred);
        }
        let taken: FxHashSet<ExecutionId> = deferred.iter().filter_map(EffectKind::execution).collect();
        for permits in self.steps.values_mut() {
            permits.held.retain(|execution| !taken.contains(execution));
        }
    }

    /// Notes that an execution gave a permit back.
    fn note_returned(&mut self, execution: ExecutionId, arrival: Arrival) {
        let order = self.next_return;
        let returned = self.returned.entry(execution).or_insert_with(|| Returned { order, arrival });
        self.next_return += 1;
        self.by_return.insert(returned.order, execution);
    }

    fn forget_returned(&mut self, execution: ExecutionId) {
        if let Some(Returned { order, .. }) = self.returned.remove(&execution) {
            self.by_return.remove(&order);
        }
    }

    /// Forgets an execution that was dropped. Returns the signal that drops its wait, and its begin, if it waits.
    fn forget(&mut self, execution: ExecutionId) -> Option<(Arc<DropSignal>, EffectKind)> {
        self.forget_returned(execution);
        self.permits.remove(&execution);
        self.journaled.remove(&execution);
        self.waiting.remove(&execution).map(WaitingAttempt::leave)
    }

    /// The attempts that wait for their steps or for limits, in no order. Some may not be wanted any more.
    pub(super) fn deferred(&self) -> impl Iterator<Item = &EffectKind> {
        let for_steps = self.steps.values().flat_map(|permits| &permits.deferred);
        self.waiting.values().map(|waiting| &waiting.begins).chain(for_steps)
    }

    /// The reasons why these attempts wait.
    pub(super) fn waits(&self) -> impl Iterator<Item = (ExecutionId, WaitsAt<'_>)> {
        let for_limits = self.waiting.iter().map(|(execution, waiting)| {
            (*execution, waiting.arrival.get().map_or(WaitsAt::Key, WaitsAt::Limit))
        });
        let for_steps = self.steps.values().flat_map(|permits| {
            let most = u32::try_from(permits.most).unwrap_or(u32::MAX);
            let executions = permits.deferred.iter().filter_map(EffectKind::execution);
            executions.map(move |execution| (execution, WaitsAt::Step(most)))
        });
        for_limits.chain(for_steps)
    }

    /// How many attempts wait for their steps or for limits.
    pub(super) fn deferred_count(&self) -> usize {
        self.waiting.len() + self.steps.values().map(|permits| permits.deferred.len()).sum::<usize>()
    }

    /// Whether nothing waits or is about to begin.
    pub(super) fn is_idle(&self) -> bool {
        self.deferred_count() == 0 && self.permits.is_empty()
    }
}

/// Inserts an attempt: those that gave a permit back first, in the order in which they did, and then the others.
fn insert_in_order(
    returned: &FxHashMap<ExecutionId, Returned>,
    deferred: &mut VecDeque<EffectKind>,
    begins: EffectKind,
) {
    let order = |begins: &EffectKind| Some(returned.get(&begins.execution()?)?.order);
    match order(&begins) {
        None => deferred.push_back(begins),
        Some(mine) => {
            let at = deferred.partition_point(|other| order(other).is_some_and(|other| other < mine));
            deferred.insert(at, begins);
        }
    }
}

impl WaitingAttempt {
    /// Leaves the queue of the limit at once, before the future of the wait is dropped.
    fn leave(self) -> (Arc<DropSignal>, EffectKind) {
        if let Some(arrival) = self.arrival.get() {
            arrival.leave();
        }
        (self.dropped, self.begins)
    }
}

impl Admission {
    /// Forgets an execution that was dropped, or whose next attempt is not made. Returns the signal that drops its wait
    /// for a limit, if it waits.
    pub(super) fn forget_limited(
        &mut self,
        execution: ExecutionId,
        state: &RunState,
    ) -> Option<Arc<DropSignal>> {
        if !self.is_rare() {
            return None;
        }
        let limited = self.limited_mut();
        let left = limited.forget(execution);
        let steps: Vec<StepIndex> = limited.steps.keys().copied().collect();
        for step in steps {
            self.release_step_permit(step, execution, state);
        }
        let (dropped, begins) = left?;
        // It stays among those that have not begun, for a rewind that brings it back. It is not wanted until then.
        self.defer(begins);
        Some(dropped)
    }

    /// Takes back the step's permit of an execution, if it has one. Attempts that have a permit of the step now wait for
    /// room in the run.
    fn release_step_permit(&mut self, step: StepIndex, execution: ExecutionId, state: &RunState) {
        if let Some(permits) = self.limited_mut().steps.get_mut(&step) {
            permits.held.remove(&execution);
        }
        while let Some(next) = self.limited_mut().next_of_step(step, state) {
            self.defer_limited(next);
        }
    }

    /// Leaves all queues and releases all permits, because the run begins nothing more. The attempts stay deferred.
    /// Returns the signals that drop the waits.
    fn leave_limits(&mut self) -> Vec<Arc<DropSignal>> {
        let limited = self.limited_mut();
        limited.permits.clear();
        limited.journaled.clear();
        limited.returned.clear();
        limited.by_return.clear();
        let left: Vec<_> = limited.waiting.drain().map(|(_, waiting)| waiting.leave()).collect();
        let signals = left.into_iter().map(|(dropped, begins)| {
            self.defer(begins);
            dropped
        });
        signals.collect()
    }
}

impl Driver {
    /// Begins the first attempt of an execution, unless it waits for its step's limit.
    #[inline(never)]
    pub(super) fn begin_limited(&mut self, begins: EffectKind, left: &mut usize, cx: &mut Context<'_>) {
        if let Some(EffectKind::Execution(start)) = self.take_limit(begins) {
            self.run_chain(start, AttemptKind::First, left, cx);
        }
    }

    /// Lets a later attempt take the permits of its step and of the step's limit, if it has one. Returns whether it has
    /// them; otherwise it waits.
    pub(super) fn take_limit_again(&mut self, execution: ExecutionId, step: StepIndex) -> bool {
        !self.host.has_limit(step) || self.take_limit(EffectKind::Attempt(execution)).is_some()
    }

    /// Lets an attempt take the permits of its step and of the step's limit. `None` if it waits for one of them. An attempt
    /// of a step without a limit needs neither.
    fn take_limit(&mut self, begins: EffectKind) -> Option<EffectKind> {
        let Some((execution, step, limit)) = self.limit_of(&begins) else { return Some(begins) };
        if self.admission.limited_mut().permits.contains_key(&execution) {
            return Some(begins);
        }
        let begins = self.take_step_permit(begins)?;
        let limited = self.admission.limited_mut();
        if let Some(returned) = limited.returned.get(&execution) {
            let arrival = returned.arrival.clone();
            return self.enter(begins, (execution, step), arrival);
        }
        let requester = Requester { run: self.committer.shared.id.clone(), execution };
        match self.limit_key(&begins) {
            Check::Answered(Ok(key)) => {
                let arrival = limit.arrive(&key, requester);
                self.enter(begins, (execution, step), arrival)
            }
            Check::Answered(Err(error)) => {
                self.admission.limited_mut().permits.insert(execution, Err(error));
                Some(begins)
            }
            Check::Pending(key) => {
                let arrival = Arc::<OnceLock<Arrival>>::default();
                let permit = Box::pin(permit_of_key(limit, requester, key, Arc::clone(&arrival)));
                self.wait_for_limit(begins, (execution, step), permit, arrival);
                None
            }
        }
    }

    /// Lets an attempt take a permit of its step, if its step has a limit. `None` if it waits for one.
    pub(super) fn take_step_permit(&mut self, begins: EffectKind) -> Option<EffectKind> {
        let Some((execution, step, _)) = self.limit_of(&begins) else { return Some(begins) };
        let most = self.host.table.step(step).policy.concurrency;
        let Some(most) = most else { return Some(begins) };
        let limited = self.admission.limited_mut();
        limited.steps.entry(step).or_insert_with(|| StepPermits {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            held: FxHashSet::default(),
            deferred: VecDeque::new(),
        });
        if limited.has_step_permit(step, execution) {
            limited.take_step_permit(step, execution);
            return Some(begins);
        }
        limited.defer(step, begins);
        None
    }

    /// The execution of an attempt, its step, and the step's limit; `None` if the step has none.
    fn limit_of(&self, begins: &EffectKind) -> Option<(ExecutionId, StepIndex, Arc<Limiter>)> {
        let (execution, step) = match begins {
            EffectKind::Execution(start) => (start.execution, start.step),
            EffectKind::Attempt(execution) => (*execution, self.committer.state.step_of(*execution)?),
            EffectKind::Precondition(_) | EffectKind::Wait => return None,
        };
        Some((execution, step, self.host.limiter(step.get()).map(Arc::clone)?))
    }

    /// Takes the permit of a limit, or waits for it.
    fn enter(
        &mut self,
        begins: EffectKind,
        of: (ExecutionId, StepIndex),
        arrival: Arrival,
    ) -> Option<EffectKind> {
        match arrival.take() {
            Ok(permit) => {
                let limited = self.admission.limited_mut();
                limited.forget_returned(of.0);
                limited.permits.insert(of.0, Ok(permit));
                Some(begins)
            }
            Err(wait) => {
                let arrival = wait.arrival().cloned().map(OnceLock::from).unwrap_or_default();
                let permit = Box::pin(async move { Ok(wait.await) });
                self.wait_for_limit(begins, of, permit, Arc::new(arrival));
                None
            }
        }
    }

    /// Waits for the permit of a limit, without a permit of the step and without a turn. A preferred attempt keeps the
    /// step's permit, and the run keeps room for it.
    fn wait_for_limit(
        &mut self,
        begins: EffectKind,
        (execution, step): (ExecutionId, StepIndex),
        permit: BoxFuture<'static, LimitResult>,
        arrival: Arc<OnceLock<Arrival>>,
    ) {
        if self.admission.give_up_turn(execution) {
            // It was there for its turn.
            self.executor.forget(execution);
        }
        let dropped = self.executor.wait_for_limit(execution, permit);
        let limited = self.admission.limited_mut();
        limited.waiting.insert(execution, WaitingAttempt { begins, step, dropped, arrival });
        if limited.preferred() != Some(execution) {
            self.admission.release_step_permit(step, execution, &self.committer.state);
        }
    }

    /// An attempt is handed the permit of its step's limit: it begins, or gives the permit back if its step or its run
    /// has none for it now.
    pub(super) fn limit_admits(
        &mut self,
        execution: ExecutionId,
        permit: LimitResult,
        left: &mut usize,
        cx: &mut Context<'_>,
    ) {
        let limited = self.admission.limited_mut();
        // An execution that was dropped meanwhile has no entry, and its permit is released here.
        let Some(waiting) = limited.waiting.remove(&execution) else { return };
        if let (Ok(permit), Some(arrival)) = (&permit, waiting.arrival.get())
            && !permit.is_of(arrival)
        {
            // It left the queue, and waits anew since: this permit is void.
            limited.waiting.insert(execution, waiting);
            return;
        }
        let WaitingAttempt { begins, step, .. } = waiting;
        if !self.committer.state.is_wanted(&begins) {
            return;
        }
        let has_step_permit = limited.has_step_permit(step, execution);
        let has_room = self.admission.has_room_for(execution, self.executor.executing());
        if has_step_permit && has_room && self.may_begin(cx) {
            let limited = self.admission.limited_mut();
            limited.take_step_permit(step, execution);
            limited.forget_returned(execution);
            limited.permits.insert(execution, permit);
            return self.begin(begins, left, cx);
        }
        let limited = self.admission.limited_mut();
        match permit {
            Ok(permit) => limited.note_returned(execution, permit.give_back()),
            // It holds nothing, and begins to fail in its turn.
            Err(error) => drop(limited.permits.insert(execution, Err(error))),
        }
        if has_step_permit {
            limited.take_step_permit(step, execution);
            self.admission.defer_limited(begins);
        } else {
            limited.defer(step, begins);
        }
    }

    /// The key of an attempt at its step's limit. The function belongs to no execution, as a precondition.
    fn limit_key(&self, begins: &EffectKind) -> Check<String> {
        let start = match begins {
            EffectKind::Execution(start) => Some(start.clone()),
            _ => begins.execution().and_then(|execution| self.committer.state.start_of(execution)),
        };
        let Some(start) = start else { return Check::Answered(Ok(String::new())) };
        let call = self.call_before(&start);
        let key = caught(|| self.host.limit_key(start.step.get(), call));
        key.unwrap_or_else(|panic| Check::Answered(Err(StepError::permanent(panic))))
    }

    /// Takes back the step's permit of an execution that ends.
    #[inline]
    pub(super) fn release_step_permit(&mut self, execution: ExecutionId, step: StepIndex) {
        if self.admission.is_rare() {
            self.admission.release_step_permit(step, execution, &self.committer.state);
        }
    }

    /// Leaves the queues of all limits, once the run begins nothing more.
    #[inline]
    pub(super) fn leave_limits(&mut self) {
        let Committer { state, .. } = &self.committer;
        let begins_nothing =
            || state.begins_nothing() || state.is_paused() || self.committer.begins_nothing();
        if self.admission.limited().is_some_and(|limited| !limited.is_idle()) && begins_nothing() {
            for wait in self.admission.leave_limits() {
                self.executor.drop_wait(Some(wait));
            }
        }
    }
}

/// Asks for the key, and then waits for the permit.
async fn permit_of_key(
    limiter: Arc<Limiter>,
    requester: Requester,
    key: BoxFuture<'static, Result<String, StepError>>,
    noted: Arc<OnceLock<Arrival>>,
) -> LimitResult {
    let key = caught_in(key).await.unwrap_or_else(|panic| Err(StepError::permanent(panic)))?;
    let arrival = limiter.arrive(&key, requester);
    let _ = noted.set(arrival.clone());
    match arrival.take() {
        Ok(permit) => Ok(permit),
        Err(wait) => Ok(wait.await),
    }
}
