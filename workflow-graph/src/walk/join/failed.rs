//! Branches that failed: the visits that count without a result, and the way on from a failure of all branches.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use workflow_core::errors::FailedBranch;
use workflow_core::signature::StepCall;
use workflow_core::{InputValue, StepError};

use super::{Events, Left, Published};
use crate::document::model::{Failures, Next};
use crate::sight::Held;
use crate::state::{
    About, BranchStatus, Count, Failure, Joined, JoinedBranch, NodeResult, VisitStatus, names, part_of,
};
use crate::table::Plan;
use crate::walk::visit::Visit;
use crate::walk::{read, unread};

/// The counts of visits without results that a step sees.
pub(in crate::walk) fn counts(plan: &Plan, call: &StepCall) -> Result<Vec<(usize, Count)>, StepError> {
    let counts = plan.inputs.counts.iter().filter_map(|(node, at)| match call.input(*at) {
        InputValue::Event(event) => Some((*node, event.as_json().unwrap_or(&Value::Null))),
        _ => None,
    });
    counts.map(|(node, count)| Ok((node, read(count)?))).collect()
}

fn to_json(value: &impl Serialize) -> Result<Value, StepError> {
    serde_json::to_value(value).map_err(|error| StepError::permanent(error.to_string()))
}

/// Adds an event, in place of one of the same name.
fn publish(name: &Arc<str>, value: &impl Serialize, published: &mut Published) -> Result<(), StepError> {
    published.retain(|(known, _)| known != name);
    published.push((name.clone(), Held::Made(Arc::new(to_json(value)?))));
    Ok(())
}

fn publish_count(id: &str, count: Count, published: &mut Published) -> Result<(), StepError> {
    publish(&names::of(id, "count"), &count, published)
}

impl Visit<'_> {
    /// Counts the visits that failed with a branch. `with_result`: the node at which it failed leaves a failed result, in place
    /// of one that it left before.
    pub(super) fn publish_failure(
        &self,
        branch: &Left,
        with_result: bool,
        published: &mut Published,
    ) -> Result<(), StepError> {
        let (Some(error), Some(failed)) = (&branch.error, &branch.failed_at) else { return Ok(()) };
        for (node, attempts) in &failed.below {
            let count = self.counted(*node, Some(&branch.events))?.more(*attempts);
            publish_count(self.walk.id(*node), count, published)?;
        }
        let id = self.walk.id(failed.node);
        let before = self.counted(failed.node, Some(&branch.events))?;
        let count = if failed.has_left { before } else { before.more(failed.attempts) };
        if !with_result {
            return if failed.has_left { Ok(()) } else { publish_count(id, count, published) };
        }
        let result = NodeResult {
            status: VisitStatus::Failed,
            error: Some(error.clone()),
            visit: count.visit,
            done: count.done,
            carried: branch.carried.clone(),
            ..NodeResult::default()
        };
        publish(id, &result, published)
    }

    /// The visits of a node so far: in a branch, else as this step sees them.
    fn counted(&self, node: usize, within: Option<&Events>) -> Result<Count, StepError> {
        let id = self.walk.id(node);
        let About { visit, done, .. } = match within.and_then(|events| events.get(id)) {
            Some((_, event)) => part_of(event).map_err(|error| unread(&error))?,
            None => self.about(node)?,
        };
        let count = within.and_then(|events| events.get(&names::of(id, "count")));
        let count: Count = count.and_then(|(_, event)| event.as_json()).map_or(Ok(Count::default()), read)?;
        Ok(Count { visit, done }.or(count).or(self.sight.count(node)))
    }

    /// Leaves the counts of visits in branches that failed as a whole, and adds them to the visits of the walk.
    pub(in crate::walk) fn count_failed(&mut self, failed: &[FailedBranch]) -> Result<(), StepError> {
        let mut counts = BTreeMap::new();
        for branch in failed {
            // The failure of an item is one of the node itself.
            let node = self.walk.failing(&branch.step).filter(|node| *node != self.plan.node);
            let Some(node) = node else { continue };
            for (node, attempts) in self.walk.failing_from(node, self.plan.node, branch.attempts) {
                let count = match counts.get(&node) {
                    Some(count) => *count,
                    None => self.counted(node, None)?,
                };
                counts.insert(node, count.more(attempts));
                self.carried.steps = self.carried.steps.saturating_add(1);
            }
        }
        for (node, count) in counts {
            self.call.emit(&names::of(self.walk.id(node), "count"), to_json(&count)?)?;
            // Conditions of `on_failure` see it.
            self.sight.count_to(node, count);
        }
        Ok(())
    }

    /// Goes on at the join of branches of which one has failed, and which were dropped.
    pub(in crate::walk) fn join_failed(&mut self, failure: &Failure) -> Result<(), StepError> {
        let Next::Parallel(parallel) = &self.node().next else { return Ok(()) };
        let branches = std::mem::take(&mut self.opened).into_iter().map(|to| JoinedBranch {
            to,
            status: BranchStatus::Failed,
            error: (parallel.failures == Failures::WaitAll).then(|| failure.clone()),
        });
        let branches: Vec<_> = branches.collect();
        // With the node as a whole each of its branches has failed.
        let failed = u32::try_from(branches.len()).unwrap_or(u32::MAX);
        let (carried, error) = (self.carried.clone(), Some(failure.clone()));
        let joined = Joined { carried, error, failed, branches, writes: Map::new() };
        let value = serde_json::to_value(joined).map_err(|error| StepError::permanent(error.to_string()))?;
        Ok(self.call.emit(&names::of(&self.node().id.value, "joined"), value)?)
    }
}
