//! Displayed items, which the work of a node shows while it runs. They leave at once, and are no part of the log.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use workflow_core::Event;

use crate::retried::Again;
use crate::tool_call::is_null;

/// A sign of a node's work while it runs, as a run displays it.
///
/// [`NodeContext::progress`](crate::NodeContext::progress) and its neighbours show them. Viewers of a run receive them as
/// [`DisplayItem::Shown`](workflow_core::DisplayItem::Shown). They stand for no result: an attempt that shows them may
/// still fail.
///
/// ```
/// use serde_json::json;
/// use workflow_graph::NodeActivity;
///
/// let shown = json!({"node": "load", "iteration": 1, "attempt": 2, "kind": "progress", "text": "half"});
/// let activity: NodeActivity = serde_json::from_value(shown)?;
/// assert_eq!((&*activity.node, activity.attempt, activity.item), ("load", 2, None));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(display, name = "graph.activity")]
#[non_exhaustive]
pub struct NodeActivity {
    /// The id of the node.
    pub node: Arc<str>,
    /// The visit of the node, from 1.
    pub iteration: u32,
    /// The attempt of the visit, or of the item, from 1.
    pub attempt: u32,
    /// The place of the item, in a node with `for_each`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// The sign itself.
    #[serde(flatten)]
    pub activity: Activity,
}

/// A sign of a node's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Activity {
    /// The work has come so far.
    Progress {
        /// How far, in words.
        text: Arc<str>,
    },
    /// A tool was called.
    ToolCalled {
        /// The name of the tool.
        tool: Arc<str>,
        /// Its input.
        #[serde(default, skip_serializing_if = "is_null")]
        input: Arc<Value>,
    },
    /// A tool has returned.
    ToolReturned {
        /// The name of the tool.
        tool: Arc<str>,
        /// Whether the call succeeded.
        ok: bool,
        /// Its output. Null if there is none.
        #[serde(default, skip_serializing_if = "is_null")]
        output: Arc<Value>,
        /// The text of the failure of a call without an output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
    },
    /// An agent runs again, or a judge is asked again, in the same attempt of the node.
    Again(Again),
    /// The agent of the node receives its task.
    Instructed {
        /// The instruction.
        instruction: Arc<str>,
    },
}
