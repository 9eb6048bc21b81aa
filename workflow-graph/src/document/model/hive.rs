//! The model of what only Hive documents have: memory's keys, edges and their order, goal and conversation.

use std::sync::Arc;

use serde_json::Value;

use super::Name;
use crate::document::template::Expression;
use crate::executor::ConversationMode;

/// The parts that only Hive graphs have.
#[derive(Debug)]
pub(crate) struct HiveGraph {
    pub(crate) goal: Option<Value>,
    pub(crate) identity_prompt: Option<Arc<str>>,
    pub(crate) mode: ConversationMode,
    pub(crate) loop_config: Option<Value>,
    /// Nodes besides the start at which a program may begin, and those that terminal nodes name as next ones.
    pub(crate) roots: Vec<Arc<str>>,
}

/// The parts that only nodes of Hive documents have. The static shape of their edges stands in `next` and `on_failure`, for checks
/// and tables.
#[derive(Debug)]
pub(crate) struct HiveNode {
    pub(crate) input_keys: Vec<Arc<str>>,
    pub(crate) output_keys: Vec<Arc<str>>,
    pub(crate) nullable: Vec<Arc<str>>,
    pub(crate) is_pause: bool,
    /// Those that a success can take, by priority. A terminal node has none.
    pub(crate) edges: Vec<HiveEdge>,
    /// The edge that a failure takes.
    pub(crate) failure: Option<HiveEdge>,
    /// Whether a failure opens a branch, since its edge leads to a node that runs in one.
    pub(crate) failure_opens: bool,
    /// Fields of the node that have no other use.
    pub(crate) metadata: Value,
}

/// One edge.
#[derive(Debug, Clone)]
pub(crate) struct HiveEdge {
    pub(crate) to: Name,
    pub(crate) condition: Condition,
    /// Of a conditional edge; absent: it holds.
    pub(crate) when: Option<Expression>,
    /// Target keys and source keys.
    pub(crate) mapping: Vec<(Arc<str>, Arc<str>)>,
    pub(crate) description: Option<Arc<str>>,
}

/// When an edge is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    OnSuccess,
    Always,
    OnFailure,
    Conditional,
    LlmDecide,
}

impl HiveNode {
    /// Whether a model may choose an edge.
    pub(crate) fn asks_model(&self) -> bool {
        self.edges.iter().any(|edge| edge.condition == Condition::LlmDecide)
    }

    /// Whether edges of the node to the node `to` write memory.
    pub(crate) fn maps_to(&self, to: &str) -> bool {
        let edges = self.edges.iter().chain(&self.failure);
        edges.filter(|edge| *edge.to.value == *to).any(|edge| !edge.mapping.is_empty())
    }
}
