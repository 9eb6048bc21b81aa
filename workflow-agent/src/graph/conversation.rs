//! The conversation that the agents of a Hive document share. From node to node goes the name of a run, and no entry of it:
//! each run reads those before it from their logs, so branches fork a conversation without a copy.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workflow_core::RunId;
use workflow_graph::{AgentTask, HiveTask, NodeContext, PriorAgent};

use crate::chain::Continues;
use crate::entry::Marker;
use crate::model::Usage;

/// The end of a conversation, as the value that the next agent node on the path receives.
#[derive(Debug, Serialize, Deserialize)]
struct End {
    /// The agent that spoke last, for readers of the journal.
    agent: Arc<str>,
    run: RunId,
    parent: RunId,
}

/// The value for the next agent node on the path.
pub(super) fn value(agent: &str, run: &RunId, context: &NodeContext) -> Value {
    json!(End { agent: agent.into(), run: run.clone(), parent: context.run().clone() })
}

/// The conversation that the task continues. `None` at the begin of one, and for the value of another executor.
pub(super) fn continues(task: &AgentTask<'_>) -> Option<Continues> {
    let prior = prior(task)?;
    let End { run, parent, .. } = End::deserialize(prior.conversation.as_ref()?).ok()?;
    let marker = Marker {
        left: Some(Arc::clone(&prior.node)),
        entered: task.node.into(),
        accomplished: accomplished(prior),
        data: None,
        // The message of the run, which follows, says it.
        next: "".into(),
        hand_off: None,
        usage: Usage::default(),
        cost: 0.0,
    };
    Some(Continues { run, parent, marker: Some(marker) })
}

/// The result of the agent before, within the bound of markers.
pub(super) fn accomplished(prior: &PriorAgent) -> Arc<str> {
    match &prior.result {
        Value::String(text) => crate::phase::accomplished(text, None),
        data => crate::phase::accomplished("", Some(data)),
    }
}

/// The agent node before this one.
pub(super) fn prior<'t>(task: &'t AgentTask<'_>) -> Option<&'t PriorAgent> {
    task.hive.as_ref()?.prior.as_ref()
}

/// The part of the system text that all agents of the document share: its identity and its goal.
pub(super) fn setting(hive: &HiveTask<'_>) -> Option<Arc<str>> {
    let mut text = hive.identity_prompt.unwrap_or_default().trim().to_owned();
    if let Some(goal) = hive.goal.map(goal).filter(|goal| !goal.is_empty()) {
        let gap = if text.is_empty() { "" } else { "\n\n" };
        let _ = write!(text, "{gap}# Goal\n{goal}");
    }
    (!text.is_empty()).then(|| text.into())
}

/// A goal in words; fields that are not of the known form are left out.
fn goal(goal: &Value) -> String {
    let of = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).map(str::trim).unwrap_or_default().to_owned()
    };
    let said = [of(goal, "name"), of(goal, "description")];
    let said: Vec<String> = said.into_iter().filter(|text| !text.is_empty()).collect();
    let mut text = said.join(": ");
    for (key, heading) in [("success_criteria", "It is reached if:"), ("constraints", "Constraints:")] {
        let listed = goal.get(key).and_then(Value::as_array).into_iter().flatten();
        let listed = listed.map(|one| one.as_str().map_or_else(|| of(one, "description"), str::to_owned));
        let listed: Vec<String> =
            listed.filter(|text| !text.is_empty()).map(|text| format!("- {text}")).collect();
        if !listed.is_empty() {
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = write!(text, "{gap}{heading}\n{}", listed.join("\n"));
        }
    }
    text
}

/// The most model calls that the loop of the document allows.
pub(super) fn turns(hive: &HiveTask<'_>) -> Option<u32> {
    let most = hive.loop_config?.get("max_iterations")?.as_u64()?;
    u32::try_from(most).ok().filter(|most| *most > 0)
}

/// The type of an answer that has to have several keys. The text of an answer stands under a single one.
pub(super) fn output(hive: &HiveTask<'_>) -> Option<Value> {
    if hive.output_keys.len() < 2 {
        return None;
    }
    let any = json!({ "description": "Any JSON; null if there is nothing" });
    let properties: serde_json::Map<String, Value> =
        hive.output_keys.iter().map(|key| ((*key).to_owned(), any.clone())).collect();
    Some(json!({
        "type": "object",
        "properties": properties,
        "required": hive.output_keys,
        "additionalProperties": false,
    }))
}
