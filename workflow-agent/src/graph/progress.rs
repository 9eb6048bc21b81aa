//! The runs of a node's visit so far: saved for the next one, which continues the conversation of the last.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use workflow_core::RunId;
use workflow_graph::{NodeContext, NodeError, ToolCall};

use super::conversation;
use crate::agent::Agent;
use crate::chain::Continues;

/// The runs so far.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    agent: Arc<str>,
    work: Runs,
}

/// The last run, and the calls of all that ended.
#[derive(Debug, Serialize, Deserialize)]
struct Runs {
    run: RunId,
    calls: Vec<ToolCall>,
}

impl Progress {
    /// The runs of this agent in the visit before. `None` if the context has lost them.
    pub(super) async fn of(context: &NodeContext, agent: &Agent) -> Result<Option<Self>, NodeError> {
        let saved: Option<Self> = context.saved().await?;
        Ok(saved.filter(|saved| *saved.agent == *agent.name()))
    }

    /// The runs with one more, and its calls.
    pub(super) fn after(before: Option<Self>, agent: &Agent, run: RunId, calls: Vec<ToolCall>) -> Self {
        let mut all = before.map(|before| before.work.calls).unwrap_or_default();
        all.extend(calls);
        Self { agent: agent.name().into(), work: Runs { run, calls: all } }
    }

    pub(super) async fn save(&self, context: &NodeContext) -> Result<(), NodeError> {
        context.save(self).await
    }

    /// The calls that ended.
    pub(super) fn calls(&self) -> impl Iterator<Item = ToolCall> {
        self.work.calls.iter().cloned()
    }

    /// The place of a next run of the same node.
    pub(super) fn continues(&self, context: &NodeContext) -> Continues {
        Continues { run: self.run().clone(), parent: context.run().clone(), marker: None }
    }

    /// The conversation, for the next agent node on the path.
    pub(super) fn conversation(&self, context: &NodeContext) -> Value {
        conversation::value(&self.agent, self.run(), context)
    }

    fn run(&self) -> &RunId {
        &self.work.run
    }
}
