//! Errors of executions and preconditions, as long as the run's end or a gather may need them.
//!
//! ```text
//!  fail, not caught ─▶ insert ─┬▶ the run ends `Failed`           `of` for its error; stays for the report
//!                              └▶ the branch settles in a gather   `of` for its failure, then `forget`
//! ```
//!
//! Invariant: an error is here exactly while no step has caught it, no gather has taken it, and its execution has not
//! begun anew. A journal has
//! only its class and text, so after a resume these stand for the error.
//!
//! Example: two branches fail under `continue_others`. Both errors are here until the gather enters the log.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::RunState;
use crate::error::{BranchFailure, BranchItem, StepError};
use crate::failure::FailedBranch;
use crate::id::ExecutionId;
use crate::scheduler::CandidateId;
use crate::table::StepIndex;

/// The failures that no step caught and no gather took.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// By execution. The policy of its step does not tolerate the failure.
    executions: FxHashMap<ExecutionId, StepError>,
    /// Allocated with the first: a failed precondition ends its run, unless the run cleans up.
    preconditions: Option<Box<PreconditionErrors>>,
}

/// The errors of preconditions, by question.
#[derive(Debug, Default)]
struct PreconditionErrors(FxHashMap<CandidateId, (StepIndex, StepError)>);

impl Failures {
    pub(super) fn is_empty(&self) -> bool {
        self.executions.is_empty() && self.preconditions.is_none()
    }

    pub(super) fn insert(&mut self, execution: ExecutionId, error: StepError) {
        self.executions.insert(execution, error);
    }

    pub(super) fn of(&self, execution: ExecutionId) -> Option<&StepError> {
        self.executions.get(&execution)
    }

    /// Removes the errors of these executions, because a gather has them.
    pub(super) fn forget(&mut self, executions: &[ExecutionId]) {
        for execution in executions {
            self.executions.remove(execution);
        }
    }

    pub(super) fn insert_precondition(&mut self, candidate: CandidateId, step: StepIndex, error: StepError) {
        self.preconditions.get_or_insert_default().0.insert(candidate, (step, error));
    }

    pub(super) fn of_precondition(&self, candidate: CandidateId) -> Option<&(StepIndex, StepError)> {
        self.preconditions.as_ref()?.0.get(&candidate)
    }

    /// Forgets the errors of executions that are open again, and those of preconditions.
    pub(super) fn begin_anew(&mut self, is_open: impl Fn(ExecutionId) -> bool) {
        self.executions.retain(|execution, _| !is_open(*execution));
        self.preconditions = None;
    }

    /// The same after an end that stays: the preconditions that ended the run stay too.
    pub(super) fn begin_anew_of_clean_up(&mut self, is_open: impl Fn(ExecutionId) -> bool) {
        self.executions.retain(|execution, _| !is_open(*execution));
    }

    /// The errors of executions.
    pub(super) fn executions(&self) -> &FxHashMap<ExecutionId, StepError> {
        &self.executions
    }
}

impl RunState {
    /// The failure of an execution as its gather has it.
    pub(in crate::run) fn branch_failure(&self, execution: ExecutionId) -> Option<BranchFailure> {
        let step = self.step_of(execution)?;
        let error = self.failure_of(execution)?.clone();
        let (item, attempts) = (self.item_of(execution), self.trace.attempts_made(execution));
        Some(BranchFailure {
            step: Arc::clone(&self.table().step(step).name),
            execution,
            attempts,
            item,
            error,
        })
    }

    /// The failure of an execution as that of a branch which `opener` opened, or of one below it.
    pub(in crate::run) fn failed_branch(
        &self,
        opener: ExecutionId,
        execution: ExecutionId,
    ) -> Option<FailedBranch> {
        let step = self.step_of(execution)?;
        let error = self.failure_of(execution)?;
        let mut scope = self.scheduler.executions().get(execution)?.scope;
        let branch = loop {
            let branch = self.log.branch_of(scope)?;
            if branch.opener == opener {
                break self.log.place_of(scope)?;
            }
            scope = branch.parent;
        };
        Some(FailedBranch {
            branch,
            step: Arc::clone(&self.table().step(step).name),
            class: error.class(),
            error: error.to_string().into(),
            attempts: self.trace.attempts_made(execution),
        })
    }

    /// The item of the innermost branch that an execution is in; `None` in the root.
    pub(in crate::run) fn item_of(&self, execution: ExecutionId) -> Option<BranchItem> {
        let scope = self.scheduler.executions().get(execution)?.scope;
        let branch = self.log.branch_of(scope)?;
        let event = self.log.get(branch.item)?.index;
        let step = self.step_of(branch.opener)?;
        Some(BranchItem {
            seq: branch.item,
            event: Arc::clone(&self.table().event(event).name),
            step: Arc::clone(&self.table().step(step).name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(executions: &[u64]) -> Failures {
        let mut failures = Failures::default();
        for id in executions {
            failures.insert(ExecutionId(*id), StepError::permanent(format!("error {id}")));
        }
        failures
    }

    #[test]
    fn a_gather_takes_the_failures_of_its_branches_and_no_others() {
        let mut failures = failed(&[1, 2, 3]);
        failures.forget(&[ExecutionId(2), ExecutionId(1), ExecutionId(9)]);
        assert!(failures.of(ExecutionId(1)).is_none() && failures.of(ExecutionId(2)).is_none());
        assert!(failures.of(ExecutionId(3)).is_some_and(|error| error.to_string() == "error 3"));
        assert_eq!(failures.executions().len(), 1);
    }

    #[test]
    fn the_error_of_a_precondition_is_found_by_its_candidate() {
        let mut failures = failed(&[]);
        assert!(failures.is_empty());
        failures.insert_precondition(CandidateId(4), StepIndex::at(1), StepError::permanent("no"));
        assert!(failures.of_precondition(CandidateId(4)).is_some_and(|(step, _)| *step == StepIndex::at(1)));
        assert!(failures.of_precondition(CandidateId(5)).is_none() && !failures.is_empty());
    }
}
