//! The names of conditions of Hive documents, out of the log: memory and the result, as the walk had them.

use std::borrow::Cow;

use serde_json::{Map, Value};
use workflow_core::report::LoggedEvent;
use workflow_core::{ScopeId, Seq};

use crate::trace::Log;
use crate::walk::{Names, written};

/// The memory behind one visit, and the result of that.
pub(super) struct Memory {
    output: Value,
    /// A map.
    keys: Value,
}

impl Memory {
    /// The memory that the edges of a visit saw: the input, and each write up to the event that began its last step, and those
    /// of the result itself. Nothing in other documents.
    pub(super) fn of(
        log: &Log<'_>,
        node: &str,
        result: &Value,
        input: impl FnOnce() -> Value,
        (scope, until): (ScopeId, Seq),
        own: &[&LoggedEvent],
    ) -> Option<Self> {
        log.graph.hive()?;
        let hive = log.graph.nodes[log.graph.find(node)?].hive()?;
        let mut keys = match input() {
            Value::Object(keys) => keys,
            _ => Map::new(),
        };
        let scopes: Vec<ScopeId> = log.scopes(scope).collect();
        let before = log.report.log.iter().take_while(|event| event.seq <= until);
        // The items of branches have the writes of their openings once more.
        let seen = before.filter(|event| scopes.contains(&event.scope) && !event.event.ends_with(":item"));
        for event in seen.chain(own.iter().copied().filter(|event| *event.event == *node)) {
            if let Some(Value::Object(writes)) = event.value.as_json().and_then(|value| value.get("writes")) {
                keys.extend(writes.clone());
            }
        }
        let keys = Value::Object(keys);
        let is = |part: &str, what: &Value| result.get(part) == Some(what);
        let output = if is("kept", &Value::Bool(true)) {
            // Memory stands for the result of a visit that did not run.
            keys.clone()
        } else if is("status", &"skipped".into()) {
            Value::Object(Map::new())
        } else {
            Value::Object(written(hive, result.get("data").unwrap_or(&Value::Null)))
        };
        Some(Self { output, keys })
    }

    pub(super) fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        Names { output: &self.output, memory: &self.keys }.value(name).map(Cow::Borrowed)
    }
}
