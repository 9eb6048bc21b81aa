//! The memory of a Hive document: the run's input and every write that a visit can see, in the order of the log. Nothing of it
//! is stored as a whole.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use workflow_core::AnyEvent;

use crate::document::model::hive::HiveNode;
use crate::executor::{ConversationMode, HiveTask, PriorAgent};
use crate::expression::Scope;
use crate::state::{NodeResult, VisitStatus};
use crate::walk::Walk;
use crate::walk::visit::Visit;

/// The sight of a visit of a Hive document.
#[derive(Debug)]
pub(in crate::walk) struct Memory {
    /// A map.
    keys: Value,
    /// The latest agent node on the path that led here.
    prior: Option<PriorAgent>,
}

/// The names of expressions. (HV11)
pub(crate) struct Names<'a> {
    pub(crate) output: &'a Value,
    pub(crate) memory: &'a Value,
}

impl<'a> Names<'a> {
    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        match name {
            "output" => Some(self.output),
            "memory" => Some(self.memory),
            "result" => self.output.get("result"),
            key => self.memory.get(key),
        }
    }
}

impl Scope for Names<'_> {
    fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.value(name).map(Cow::Borrowed)
    }
}

/// The keys that an event writes.
pub(in crate::walk) fn writes(event: &AnyEvent) -> Map<String, Value> {
    if let Some(result) = event.typed_output::<NodeResult>() {
        return result.writes.clone();
    }
    match event.as_json().and_then(|value| value.get("writes")) {
        Some(Value::Object(writes)) => writes.clone(),
        _ => Map::new(),
    }
}

/// The part of a result that the look for a prior agent reads.
#[derive(Deserialize)]
struct Answered {
    #[serde(default)]
    status: VisitStatus,
    #[serde(default)]
    kept: bool,
    data: Value,
    conversation: Option<Value>,
}

impl Walk {
    /// Memory, out of events in the order of the log. Nothing in other documents.
    pub(in crate::walk) fn memory(
        &self,
        input: &Value,
        events: &[&AnyEvent],
        agent: Option<&str>,
    ) -> Option<Memory> {
        self.graph.hive()?;
        let mut keys = input.as_object().cloned().unwrap_or_default();
        for event in events {
            keys.extend(writes(event));
        }
        Some(Memory { keys: Value::Object(keys), prior: agent.and_then(|agent| prior(events, agent)) })
    }
}

/// The latest success of an agent node.
fn prior(events: &[&AnyEvent], agent: &str) -> Option<PriorAgent> {
    events.iter().rev().filter(|event| event.name() == agent).find_map(|event| {
        let Answered { status, kept, data, conversation } = Answered::deserialize(event.as_json()?).ok()?;
        let is_answer = status == VisitStatus::Success && !kept;
        is_answer.then(|| PriorAgent { node: Arc::from(agent), result: data, conversation })
    })
}

impl<'w> Visit<'w> {
    /// Memory as a map.
    pub(in crate::walk) fn memory_keys(&self) -> Value {
        self.memory.as_ref().map(|memory| memory.keys.clone()).unwrap_or_default()
    }

    /// The same with further writes.
    pub(in crate::walk) fn memory_with(&self, writes: Map<String, Value>) -> Value {
        let mut keys = self.memory_keys();
        if let Value::Object(keys) = &mut keys {
            keys.extend(writes);
        }
        keys
    }

    /// Writes what this visit leaves, so that its edges see it.
    pub(super) fn remember(&mut self, writes: &Map<String, Value>) {
        if let Some(Memory { keys: Value::Object(keys), .. }) = &mut self.memory {
            keys.extend(writes.clone());
        }
    }

    pub(super) fn names<'a>(&'a self, output: &'a Value) -> Names<'a> {
        let memory = self.memory.as_ref().map_or(&Value::Null, |memory| &memory.keys);
        Names { output, memory }
    }

    /// The input of a node: the keys that it names and that exist, or all. (HV1)
    pub(in crate::walk) fn hive_input(&self, hive: &HiveNode) -> Value {
        let Value::Object(mut keys) = self.memory_before(hive) else { return Value::Object(Map::new()) };
        if !hive.input_keys.is_empty() {
            keys.retain(|key, _| hive.input_keys.iter().any(|named| **named == **key));
        }
        Value::Object(keys)
    }

    /// Memory as the node finds it: on a later visit, nullable keys are null again. (HV2)
    fn memory_before(&self, hive: &HiveNode) -> Value {
        self.memory_with(self.nulls(hive))
    }

    /// The writes of a visit before its node runs.
    pub(super) fn nulls(&self, hive: &HiveNode) -> Map<String, Value> {
        if self.sight.visit < 2 {
            return Map::new();
        }
        hive.nullable.iter().map(|key| (key.to_string(), Value::Null)).collect()
    }

    /// The addition of the document to the task of an agent. (HV12)
    pub(in crate::walk) fn hive_task(&self, hive: &'w HiveNode) -> Option<HiveTask<'w>> {
        let graph = self.walk.graph.hive()?;
        let prior = self.memory.as_ref().and_then(|memory| memory.prior.clone());
        Some(HiveTask {
            goal: graph.goal.as_ref(),
            identity_prompt: graph.identity_prompt.as_deref(),
            conversation_mode: graph.mode,
            loop_config: graph.loop_config.as_ref(),
            output_keys: hive.output_keys.iter().map(|key| &**key).collect(),
            prior: prior.filter(|_| graph.mode == ConversationMode::Continuous),
            metadata: &hive.metadata,
        })
    }
}
