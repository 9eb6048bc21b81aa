//! Visits of nodes of SWEny documents, which go on after every failure. This file owns the begin and the end of a visit;
//! attempts, what is seen, and the choice of an edge are files of their own.

use std::sync::Arc;

use workflow_core::StepError;
use workflow_core::signature::Emitted;

use super::leave::Leave;
use super::visit::{Visit, forget};
use crate::document::model::sweny::{SwenyGraph, SwenyNode};
use crate::document::model::{Agent, Dialect, Otherwise, Work};
use crate::node::checks;
use crate::state::{Failure, NodeResult, VisitStatus};

mod attempts;
mod choose;
mod evaluate;
mod seen;

use attempts::{Attempts, Ended};
use seen::Seen;

impl Visit<'_> {
    /// A visit: checks, attempts, and the way on, whatever they come to. (SW11)
    pub(super) async fn sweny(self: Box<Self>, extras: &SwenyNode) -> Result<Emitted, StepError> {
        let node = self.node();
        let (Dialect::Sweny(graph), Work::Agent(agent)) = (&self.walk.graph.dialect, &node.work) else {
            return Err(StepError::permanent("the node is no node of a SWEny document"));
        };
        let seen = Seen::of(&self.sight);
        if let Some(requires) = &node.requires
            && let Err(unmet) = checks::requires(requires, &seen)
        {
            let message = format!("`{}` requires what does not hold: {}", node.id.value, unmet.join("; "));
            return match requires.otherwise {
                Otherwise::Fail => self.leave_as(Ended::failed("permanent", message)),
                Otherwise::Skip => self.leave_as(Ended::skipped(&message)),
            };
        }
        if let Some(message) = self.lacks_skills(agent, graph) {
            return self.leave_as(Ended::failed("permanent", message));
        }
        let context = self.context()?;
        let Some(executor) = self.walk.executors.agents() else {
            return Err(StepError::permanent("no executor of agents is registered"));
        };
        let attempts = Attempts {
            node,
            agent,
            extras,
            graph,
            defaults: &self.walk.graph.defaults,
            executor: &**executor,
            registered: self.walk.executors.skills(),
            context: context.clone(),
            seen: Arc::new(seen),
            judged: self.done.judged,
            prompts: self.carried.prompts,
        };
        let ended = attempts.run().await;
        forget(Some(context)).await?;
        self.leave_as(ended)
    }

    /// Why the node cannot have the skills that it lists. (SW1)
    fn lacks_skills(&self, agent: &Agent, graph: &SwenyGraph) -> Option<String> {
        let registered = self.walk.executors.skills()?;
        let is_there = |name: &str| registered.contains(name) || graph.skills.contains_key(name);
        if agent.skills.is_empty() || agent.skills.iter().any(|skill| is_there(&skill.value)) {
            return None;
        }
        let names: Vec<String> = agent.skills.iter().map(|skill| format!("`{}`", skill.value)).collect();
        let id = &self.node().id.value;
        Some(format!("`{id}` needs one of the skills {}, and none of them is there", names.join(", ")))
    }

    fn leave_as(mut self: Box<Self>, ended: Ended) -> Result<Emitted, StepError> {
        let error = ended.error.map(|(class, message)| Failure {
            message: message.into(),
            class: class.into(),
            node: self.node().id.value.clone(),
        });
        let mut result = NodeResult { status: ended.status, data: ended.data, error, ..self.result() };
        result.done.runs = result.done.runs.saturating_add(ended.runs);
        result.done.judged = result.done.judged.saturating_add(ended.judged);
        result.conversation = ended.conversation;
        result.verdicts = ended.verdicts;
        result.retries = ended.again;
        result.calls = self.bounded(ended.calls);
        self.carried.prompts = self.carried.prompts.saturating_add(ended.prompts);
        self.carried.degraded |= ended.status == VisitStatus::Failed || ended.is_soft;
        self.warnings.extend(ended.warnings);
        self.end(result, Leave::Next)
    }
}
