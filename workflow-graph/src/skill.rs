//! Skills that a document defines itself. Executors of agents read them; nothing here uses them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

/// A skill that a document defines in place, as SWEny documents may.
///
/// An executor of agents receives those of a node in [`AgentTask::inline_skills`](crate::AgentTask::inline_skills). A skill
/// that the program registers with [`Registry::skills`](crate::Registry::skills) under the same id wins: it is then
/// among the names of the task alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct InlineSkill {
    /// The id by which nodes list it.
    pub id: Arc<str>,
    /// The name for people; the id if the document has none.
    pub name: Arc<str>,
    /// The skill, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Arc<str>>,
    /// A word that groups skills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Arc<str>>,
    /// Instructions for the agents that use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<Arc<str>>,
    /// The server of its tools, in a form that only executors read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<Value>,
    /// Settings, in a form that only executors read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// By tool, further names under which its calls count.
    #[serde(rename = "mcpAliases", skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<Arc<str>, Vec<Arc<str>>>,
}
