//! Calls before an execution exists: the questions of preconditions and their answers, and the calls of other functions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::commit::Committer;
use super::driver::Driver;
use super::in_flight::panicked;
use super::state::Batch;
use super::telemetry::Telemetry;
use crate::error::StepError;
use crate::id::ExecutionId;
use crate::input::{CallContext, SlotValue, SlotValues, StepCall};
use crate::scheduler::{Candidate, CandidateId, ExecutionStart};
use crate::table::StepIndex;
use crate::workflow::Check;

impl Driver {
    /// A call with the events that an execution is bound to, for a function that belongs to no execution yet.
    pub(super) fn call_before(&self, start: &ExecutionStart) -> StepCall {
        let ExecutionStart { step, scope, .. } = *start;
        let slots = self.committer.state.log.slots_of(self.host.table.step(step), start);
        let (run, execution) = (Arc::clone(&self.committer.shared), ExecutionId(0));
        StepCall::new(slots, CallContext { run, step: step.get(), execution, attempt: 1, scope })
    }

    /// Asks a precondition with the slots of the step, in the order of its own parameters (S18).
    pub(super) fn ask(&mut self, candidate: CandidateId) {
        let Some(asked) = self.committer.state.scheduler.asked(candidate) else { return };
        let Candidate { step, scope, ref binding, .. } = *asked;
        let row = self.host.table.step(step);
        let wanted = row.precondition.iter().flat_map(|precondition| &precondition.slots);
        let mut slots = SlotValues::new();
        for slot in wanted {
            let value = slot.map(|slot| self.committer.state.log.slot_of(row, binding, slot));
            slots.push(value.unwrap_or(SlotValue::Injected));
        }
        // A precondition belongs to no execution yet.
        let (run, execution) = (Arc::clone(&self.committer.shared), ExecutionId(0));
        let context = CallContext { run, step: step.get(), execution, attempt: 1, scope };
        let call = StepCall::new(slots, context);
        let asked = catch_unwind(AssertUnwindSafe(|| self.host.check(step.get(), call)));
        match asked.unwrap_or_else(|panic| Check::Answered(Err(panicked(panic)))) {
            Check::Answered(answer) => self.answer(candidate, step, answer),
            Check::Pending(check) => self.executor.ask(candidate, step, check),
        }
    }

    /// Commits the answer of a precondition, unless the scheduler has withdrawn the question.
    pub(super) fn answer(
        &mut self,
        candidate: CandidateId,
        step: StepIndex,
        answer: Result<bool, StepError>,
    ) {
        let Committer { shared, state, .. } = &self.committer;
        let Some(trigger) = state.scheduler.asked(candidate).map(|asked| asked.trigger) else { return };
        Telemetry::answered(shared, state, (step, trigger), answer.as_ref().ok().copied());
        let _ = self.commit(Batch::Answered { candidate, step, answer }, None);
    }
}
