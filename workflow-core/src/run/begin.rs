//! Beginning what is due: attempts of executions, and preconditions. Where an attempt returns at once and one execution
//! follows from what it returned, that begins without a queue in between.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustc_hash::FxHashSet;

use super::drive::Run;
use super::in_flight::{Begun, StepResult, panicked};
use super::state::{Batch, Begins};
use super::telemetry::Telemetry;
use crate::error::{ErrorClass, StepError};
use crate::id::{ExecutionId, ScopeId};
use crate::input::{CallContext, SlotValue, SlotValues, StepCall};
use crate::retry::NotRetried;
use crate::scheduler::{Candidate, CandidateId, ExecutionStart};
use crate::table::StepIndex;
use crate::workflow::Check;

/// What an execution that follows another handles: what that returned, its batch, and the start.
const HOP: usize = 3;

/// Which attempt begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The first one.
    First,
    /// The first one of an execution that became due at this very time.
    Next,
    /// A later one, or the one that an earlier process was at.
    Again,
}

impl Run {
    /// Begins an execution that follows directly, unless others come first or it may not begin now.
    pub(super) fn begin_directly(&mut self, start: ExecutionStart, left: &mut usize, cx: &mut Context<'_>) {
        if self.follows_directly() {
            self.run_on(start, Which::Next, left, cx);
        } else {
            self.state.defer(Begins::Execution(start));
        }
    }

    /// Whether nothing is in the way of an execution that follows from what was just taken in.
    fn follows_directly(&mut self) -> bool {
        self.journal.is_none()
            && !self.state.has_effects()
            && self.admission.is_open(self.executor.executing())
            && !self.shared.cancel_note.is_unread()
    }

    /// Begins an attempt, and what follows from it directly, as long as that handles no more than `left`, from which it
    /// is subtracted.
    pub(super) fn run_on(
        &mut self,
        start: ExecutionStart,
        mut which: Which,
        left: &mut usize,
        cx: &mut Context<'_>,
    ) {
        let mut next = Some(start);
        while let Some(start) = next.take() {
            let execution = start.execution;
            let Some(result) = self.start(&start, which, cx) else { return };
            if *left < HOP || !self.is_undisturbed() {
                return self.executor.returned(execution, result);
            }
            *left -= HOP;
            which = Which::Next;
            next = self.executed(execution, result);
            if let Some(start) = next.take_if(|_| !self.follows_directly()) {
                self.state.defer(Begins::Execution(start));
            }
        }
    }

    /// Whether nothing that came meanwhile is to be taken in before what was just returned.
    fn is_undisturbed(&self) -> bool {
        !self.state.has_effects()
            && !self.executor.has_completed()
            && !self.executor.is_dropping()
            && self.journal.is_none()
            && self.state.timers.is_empty()
            && !self.shared.cancel_note.is_unread()
    }

    /// Begins the first attempt of an execution, or another (S37): what it returned, if it did so at once.
    fn start(&mut self, start: &ExecutionStart, which: Which, cx: &mut Context<'_>) -> Option<StepResult> {
        let ExecutionStart { execution, step, .. } = *start;
        let mut begun = if which == Which::Again {
            self.attempt_again(start)
        } else {
            let span = self.telemetry.began(&self.shared, &self.state, start, None);
            if which == Which::First {
                self.state.trace.begin(execution, self.clock.now);
            }
            Begun::first(&self.host, &self.shared, self.step_call(start, 1), span)
        };
        let forced = self.host.table.step(step).policy.spawn;
        if forced || self.host.weight(step.get()).is_heavy() && self.executor.has_threads() {
            begun = match self.executor.spawn(execution, begun, &self.host, step.get()) {
                Ok(()) => return None,
                Err(begun) => begun,
            };
        }
        // Polled at once; what is pending stays in this task.
        let polled = begun.poll(cx);
        self.host.weight(step.get()).note(self.clock.tick());
        match polled {
            Poll::Ready(result) => Some(result),
            Poll::Pending => {
                self.executor.keep(execution, begun, &self.host, step.get());
                None
            }
        }
    }

    #[inline(never)]
    fn attempt_again(&mut self, start: &ExecutionStart) -> Begun {
        let execution = start.execution;
        let attempt = self.state.trace.attempt(execution);
        let span = self.telemetry.began(&self.shared, &self.state, start, Some(attempt));
        self.state.trace.attempted_again(execution);
        let compacts = self.state.trace.attempts(execution).last().is_some_and(|failed| failed.compacts);
        Begun::new(&self.host, &self.shared, self.step_call(start, attempt), span, compacts)
    }

    #[inline]
    fn step_call(&self, start: &ExecutionStart, attempt: u32) -> StepCall {
        let ExecutionStart { execution, step, scope, .. } = *start;
        let slots = self.state.log.slots_of(self.host.table.step(step), start);
        StepCall::new(slots, self.call(execution, step, scope, attempt))
    }

    fn call(&self, execution: ExecutionId, step: StepIndex, scope: ScopeId, attempt: u32) -> CallContext {
        CallContext { run: Arc::clone(&self.shared), step: step.get(), execution, attempt, scope }
    }

    /// A precondition gets the step's slots in the order of its own parameters (S18).
    pub(super) fn ask(&mut self, candidate: CandidateId) {
        let Some(asked) = self.state.scheduler.asked(candidate) else { return };
        let Candidate { step, scope, ref binding, .. } = *asked;
        let row = self.host.table.step(step);
        let wanted = row.precondition.iter().flat_map(|precondition| &precondition.slots);
        let mut slots = SlotValues::new();
        for slot in wanted {
            let value = slot.map(|slot| self.state.log.slot_of(row, binding, slot));
            slots.push(value.unwrap_or(SlotValue::Empty));
        }
        let call = StepCall::new(slots, self.call(ExecutionId(0), step, scope, 1));
        let asked = catch_unwind(AssertUnwindSafe(|| self.host.check(step.get(), call)));
        match asked.unwrap_or_else(|panic| Check::Answered(Err(panicked(panic)))) {
            Check::Answered(answer) => self.answer(candidate, step, answer),
            Check::Pending(check) => self.executor.ask(candidate, step, check),
        }
    }

    /// A precondition answered, unless nobody wants to know any more.
    pub(super) fn answer(
        &mut self,
        candidate: CandidateId,
        step: StepIndex,
        answer: Result<bool, StepError>,
    ) {
        let Some(trigger) = self.state.scheduler.asked(candidate).map(|asked| asked.trigger) else { return };
        Telemetry::answered(&self.shared, &self.state, (step, trigger), answer.as_ref().ok().copied());
        let _ = self.commit(Batch::Answered { candidate, step, answer }, None);
    }

    /// Whether an attempt that failed is followed by another, and after which time.
    pub(super) fn decide_retry(
        &self,
        execution: ExecutionId,
        step: StepIndex,
        class: ErrorClass,
    ) -> Result<Duration, NotRetried> {
        let trace = &self.state.trace;
        // The attempt that failed was only waited for: no policy has anything to say of a clock.
        if trace.next_attempt(execution).is_some() {
            return Err(NotRetried::Clock);
        }
        let earlier = trace.attempts(execution).iter().filter(|attempt| attempt.class == class);
        let failed = u32::try_from(earlier.count()).unwrap_or(u32::MAX).saturating_add(1);
        let elapsed = trace.elapsed(execution, self.clock.now);
        let seed = seed(self.shared.id.as_str(), execution, trace.attempt(execution));
        let retry_in = self.host.retry_policy(step.get()).decide(class, failed, elapsed, seed)?;
        // Nothing begins in a run that has ended (S28).
        if self.state.end().is_some() { Err(NotRetried::RunEnding) } else { Ok(retry_in) }
    }

    /// S36: by the engine's clock, and until the children have ended that the failed attempt waited for: two attempts
    /// never work at the same time. The wait is dropped as the attempt would be.
    pub(super) fn wait_for_retry(&mut self, execution: ExecutionId, retry_in: Duration) {
        let ending = self.shared.children.get().map_or_else(Vec::new, |family| family.awaited_by(execution));
        if retry_in.is_zero() && ending.is_empty() {
            return self.state.defer(Begins::Attempt(execution));
        }
        let sleep = self.shared.common.clock.sleep(retry_in);
        let due = Box::pin(async move {
            sleep.await;
            for child in ending {
                child.ended().await;
            }
        });
        self.executor.wait_for_retry(execution, due);
    }

    /// Drops an execution, unless it is among those that have not begun.
    pub(super) fn drop_execution(&mut self, execution: ExecutionId, unbegun: &FxHashSet<ExecutionId>) {
        if self.executor.drop_execution(execution) {
            self.shared.cancellations.tell(execution);
        }
        if !unbegun.contains(&execution) {
            self.telemetry.dropped(&self.shared, &self.state, execution);
        }
    }

    /// The executions that are due and have not begun, be they wanted or not.
    pub(super) fn unbegun(&self) -> FxHashSet<ExecutionId> {
        let due = self.state.effects.iter().map(|effect| &effect.begins).chain(self.admission.deferred());
        let due = due.filter_map(|begins| match begins {
            Begins::Execution(start) => Some(start.execution),
            _ => None,
        });
        due.collect()
    }
}

/// What jitter is drawn from: another for each attempt, and the same whenever the same program makes the run again
/// under its id.
fn seed(run: &str, execution: ExecutionId, attempt: u32) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (run, execution.0, attempt).hash(&mut hasher);
    hasher.finish()
}
