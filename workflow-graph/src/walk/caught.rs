//! Failures of visits that a document catches: the failed result, and the way on.

use std::sync::Arc;

use workflow_core::signature::{Emitted, StepCall};
use workflow_core::{InputValue, StepError, StepFailed};

use super::Walk;
use super::leave::Leave;
use crate::document::model::{Next, OnFailure};
use crate::state::{Failure, NodeResult, VisitStatus};
use crate::table::Plan;

impl Walk {
    pub(super) fn caught(&self, plan: &Plan, call: StepCall) -> Result<Emitted, StepError> {
        let failed = match call.input(0) {
            InputValue::Event(event) => event.downcast::<StepFailed>(),
            _ => None,
        };
        let failed = failed.ok_or_else(|| StepError::permanent("the step has no failure"))?;
        let mut visit = self.open(plan, call)?;
        if visit.has_failed {
            // A document handles one failure of a visit: the join of branches that it opened afterwards fails it.
            return Err(StepError::permanent(failed.error.to_string()));
        }
        let node = visit.node();
        let failure = Failure {
            message: self.message(plan, &failed),
            class: failed.class.to_string().into(),
            node: node.id.value.clone(),
        };
        visit.count_failed(&failed.branches)?;
        visit.carried.degraded = true;
        visit.sight.error = Some(failure.clone());
        let mut result =
            NodeResult { status: VisitStatus::Failed, error: Some(failure.clone()), ..visit.result() };
        if !visit.is_left {
            result.done.runs = result.done.runs.saturating_add(failed.attempts);
        }
        if let Some(hive) = node.hive() {
            return visit.hive_failed(hive, failure, result);
        }
        // Branches of this visit have failed, so that to go on is to join.
        let is_joined = visit.is_left && matches!(node.next, Next::Parallel(_));
        let leave = match &node.on_failure {
            Some(OnFailure::Continue) if is_joined => Leave::Joined(failure),
            _ => Leave::Failed(failure),
        };
        visit.end(result, leave)
    }

    /// The text of a failure, in which the failures of branches are those of their nodes, and those of items have their places.
    fn message(&self, plan: &Plan, failed: &StepFailed) -> Arc<str> {
        if failed.branches.is_empty() {
            return failed.error.clone();
        }
        let told = failed.branches.iter().map(|branch| match self.failing(&branch.step) {
            Some(node) if node != plan.node => format!("`{}` failed: {}", self.id(node), branch.error),
            _ => {
                let index = branch.branch;
                format!("item {} (index {index}): {}", index.saturating_add(1), branch.error)
            }
        });
        told.collect::<Vec<_>>().join("; ").into()
    }
}
