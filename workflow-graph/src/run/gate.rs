//! Questions of nodes to people, as programs and front ends see them.

use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Value, json};
use workflow_core::report::OpenRequest;
use workflow_core::{RunId, Seq};

use crate::document::model::{Graph, Work};

/// A node that asks people, and waits for the answer.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Gate {
    /// The number of the question in its run.
    pub id: Seq,
    /// The run that asks: the run itself, or a child.
    pub run: RunId,
    /// The nodes that run the child in which the question is asked, from the outside in. Empty for a question of the run
    /// itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// The id of the node.
    pub node: String,
    /// Which visit of the node asks, from 1.
    pub iteration: u32,
    /// The question's text.
    pub text: String,
    /// The JSON Schema by which the answer is checked: that of the present document. Any answer fits if there is none.
    pub schema: Option<Value>,
    /// The end of the time to answer. In JSON by RFC 3339.
    #[serde(serialize_with = "crate::trace::optional_moment")]
    pub deadline: Option<SystemTime>,
    /// The memory of the run, where a Hive document pauses. The answer is a map of keys to write to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Value>,
}

/// Which question an answer is for.
///
/// Pass the [`Gate`], also for a question of a child, or the id of its run with its number. A number alone is a question of the
/// run itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateId {
    /// `None`: the run that is asked for the answer.
    pub(super) run: Option<RunId>,
    pub(super) seq: Seq,
}

impl From<Seq> for GateId {
    fn from(seq: Seq) -> Self {
        Self { run: None, seq }
    }
}

impl From<(RunId, Seq)> for GateId {
    fn from((run, seq): (RunId, Seq)) -> Self {
        Self { run: Some(run), seq }
    }
}

impl From<&Gate> for GateId {
    fn from(gate: &Gate) -> Self {
        Self { run: Some(gate.run.clone()), seq: gate.id }
    }
}

impl Gate {
    /// The question that a request of a run of this graph is.
    pub(crate) fn of(graph: &Graph, run: &RunId, request: &OpenRequest) -> Option<Self> {
        let node = request.name().strip_suffix(":ask")?;
        let data = request.event().as_json()?;
        let iteration = data.get("iteration").and_then(Value::as_u64).and_then(|n| n.try_into().ok());
        let schema = match graph.find(node).map(|node| &graph.nodes[node]) {
            Some(node) => match &node.work {
                Work::Human(human) => human.reply.as_ref().map(|schema| Value::clone(&schema.value)),
                _ => Some(json!({ "type": "object" })),
            },
            // The present document has no such node. The question has the schema of its own document.
            None => data.get("reply").cloned(),
        };
        Some(Self {
            id: request.seq(),
            run: run.clone(),
            path: Vec::new(),
            node: node.to_owned(),
            iteration: iteration.unwrap_or(1),
            text: data.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
            schema,
            deadline: request.expires_at(),
            memory: data.get("memory").cloned(),
        })
    }
}
