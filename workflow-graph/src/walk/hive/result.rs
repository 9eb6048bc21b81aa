//! Results of Hive nodes: their writes, their failures, and pauses for people behind them.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use workflow_core::StepError;
use workflow_core::signature::Emitted;

use crate::document::model::Work;
use crate::document::model::hive::HiveNode;
use crate::executor::ConversationMode;
use crate::state::{NodeResult, VisitStatus, names};
use crate::walk::unread;
use crate::walk::visit::{Visit, forget};
use crate::walk::work::Worked;

/// The longest conversation that one agent hands to the next, as JSON.
const MOST_CONVERSATION: usize = 64 << 10;

impl<'w> Visit<'w> {
    /// The end of a visit whose work is done.
    pub(in crate::walk) async fn finish_hive(
        mut self: Box<Self>,
        hive: &'w HiveNode,
        worked: Worked,
    ) -> Result<Emitted, StepError> {
        let is_agent = matches!(self.node().work, Work::Agent(_));
        let is_skipped = worked.status == VisitStatus::Skipped;
        let output = if is_skipped { Map::new() } else { written(hive, &worked.data) };
        // A node that a script leaves out returns nothing, and that is no failure of the document.
        let script = self.walk.executors.script();
        let is_played = script.is_none_or(|script| script.plays(&self.node().id.value));
        if !is_agent && is_played {
            self.lacks(hive, &output)?;
        }
        forget(worked.saved).await?;
        let mut result = NodeResult { status: worked.status, data: worked.data, ..self.result() };
        result.done.runs = result.done.runs.saturating_add(worked.runs);
        self.warnings.extend(worked.warnings);
        result.calls = self.bounded(worked.calls);
        // The whole of a result that is no map is one key of it.
        let is_map = result.data.is_object();
        if is_map {
            self.undeclared(hive, &output);
        }
        result.writes = self.nulls(hive);
        let keeps = |key: &str| is_map || key != "result" || hive.output_keys.is_empty();
        result.writes.extend(
            output.iter().filter(|(key, _)| keeps(key)).map(|(key, value)| (key.clone(), value.clone())),
        );
        self.remember(&result.writes);
        if is_agent && !is_skipped {
            self.converse(worked.conversation, &mut result);
        }
        let output = Value::Object(output);
        if hive.is_pause && !is_skipped {
            return self.pause(result);
        }
        let way = self.hive_way(hive, &output, result.done.decided)?;
        self.leave_by(result, way)
    }

    /// Fails where a function leaves no value for a key. (HV2)
    fn lacks(&self, hive: &HiveNode, output: &Map<String, Value>) -> Result<(), StepError> {
        let is_blank = |value: &Value| match value {
            Value::Null => true,
            Value::String(text) => text.trim().is_empty(),
            _ => false,
        };
        let lacks =
            |key: &&Arc<str>| !hive.nullable.contains(*key) && output.get(&***key).is_none_or(is_blank);
        let lacking: Vec<String> =
            hive.output_keys.iter().filter(lacks).map(|key| format!("`{key}`")).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let message =
            format!("the result of `{}` has no value for {}", self.node().id.value, lacking.join(" and "));
        Err(StepError::transient(message))
    }

    /// Warns of keys that the node does not declare. (HV1)
    fn undeclared(&mut self, hive: &HiveNode, output: &Map<String, Value>) {
        if hive.output_keys.is_empty() {
            return;
        }
        let is_new = |key: &&String| {
            let mut declared = hive.output_keys.iter().chain(&hive.nullable);
            !declared.any(|known| **known == ***key)
        };
        let new: Vec<String> = output.keys().filter(is_new).map(|key| format!("`{key}`")).collect();
        if !new.is_empty() {
            let warning = format!("the result has {}, and `output_keys` does not", new.join(" and "));
            self.warnings.push(warning.into());
        }
    }

    /// Makes the node the latest agent of its path. (HV12)
    fn converse(&mut self, conversation: Option<Value>, result: &mut NodeResult) {
        let mode = self.walk.graph.hive().map(|graph| graph.mode);
        if mode != Some(ConversationMode::Continuous) {
            return;
        }
        self.carried.agent = Some(self.node().id.value.clone());
        let bytes = conversation.as_ref().map_or(0, |conversation| conversation.to_string().len());
        if bytes > MOST_CONVERSATION {
            let warning = format!(
                "the conversation has {bytes} bytes, and the next agent receives at most {MOST_CONVERSATION}: it is dropped"
            );
            self.warnings.push(warning.into());
        } else {
            result.conversation = conversation;
        }
    }

    /// Leaves the result and a request, and waits for people. (HV10)
    fn pause(mut self: Box<Self>, result: NodeResult) -> Result<Emitted, StepError> {
        let node = self.node();
        let text = match &node.description {
            Some(about) => format!("The run pauses after `{}`: {about}", node.id.value),
            None => format!("The run pauses after `{}`.", node.id.value),
        };
        let request = json!({
            "text": text,
            "iteration": self.sight.visit,
            "reply": { "type": "object" },
            "memory": self.memory_keys(),
        });
        self.leave_result(result)?;
        self.call.emit(&names::of(&node.id.value, "ask"), request)?;
        self.call.commit(())
    }

    /// Writes the reply to a pause, and goes on.
    pub(in crate::walk) fn hive_replied(
        mut self: Box<Self>,
        hive: &'w HiveNode,
        reply: &Value,
    ) -> Result<Emitted, StepError> {
        self.carried = self.own()?.walk;
        let mut result = self.again()?;
        let output = Value::Object(written(hive, &result.data));
        result.writes = reply.as_object().cloned().unwrap_or_default();
        self.remember(&result.writes);
        let way = self.hive_way(hive, &output, result.done.decided)?;
        self.leave_by(result, way)
    }

    /// The result of this visit, which is in the log, without its writes. Its warnings come before new ones.
    pub(super) fn again(&mut self) -> Result<NodeResult, StepError> {
        let own = self.sight.result(self.plan.node);
        let mut result: NodeResult =
            own.map_or_else(|| Ok(self.result()), |own| own.part().map_err(|error| unread(&error)))?;
        result.writes.clear();
        let later = std::mem::take(&mut self.warnings);
        self.warnings = std::mem::take(&mut result.warnings);
        self.warnings.extend(later);
        Ok(result)
    }
}

/// The result as a map. One that is none stands under `result`, and under the first of `output_keys`.
pub(crate) fn written(hive: &HiveNode, data: &Value) -> Map<String, Value> {
    match data {
        Value::Object(map) => map.clone(),
        Value::Null => Map::new(),
        value => {
            let key = hive.output_keys.first().map(|key| (key.to_string(), value.clone()));
            key.into_iter().chain([("result".to_owned(), value.clone())]).collect()
        }
    }
}
