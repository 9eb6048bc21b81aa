//! Calls of tools, as results, contexts, traces and events have them. This file owns their form and their bounds; nothing here
//! calls a tool.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shorten;

/// The most bytes of JSON that an input, an output or an error of a call has in reports.
const VALUE: usize = 32 << 10;

/// The most bytes of JSON that inputs, outputs and errors of the calls of one visit have together.
const ALL: usize = 1 << 20;

/// The most calls of one visit in reports.
const CALLS: usize = 10_000;

/// One call of a tool by the work of a node.
///
/// Cloning copies pointers. As JSON: `{tool, ok, input, output}`, or `error` in the place of `output`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool.
    pub tool: Arc<str>,
    /// Whether the call succeeded.
    pub ok: bool,
    /// The input of the tool. Null if the executor does not say.
    #[serde(default, skip_serializing_if = "is_null")]
    pub input: Arc<Value>,
    /// The output of the tool. Null if there is none.
    #[serde(default, skip_serializing_if = "is_null")]
    pub output: Arc<Value>,
    /// The text of the failure of a call without an output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// The place of the item, from 0, in a node with `for_each`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
}

pub(crate) fn is_null(value: &Value) -> bool {
    value.is_null()
}

impl ToolCall {
    /// A call of which no more is known than whether it succeeded.
    pub fn new(tool: impl Into<Arc<str>>, ok: bool) -> Self {
        let none = Arc::new(Value::Null);
        Self { tool: tool.into(), ok, input: Arc::clone(&none), output: none, error: None, item: None }
    }

    /// A call of `tool` that returned `output`.
    ///
    /// It succeeded if `ok` in the output says so, or if the output says nothing and has no `error`; null and `false` are
    /// no error.
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_graph::ToolCall;
    ///
    /// let call = ToolCall::returned("search", json!({"for": "tea"}), json!({"hits": []}));
    /// assert!(call.ok && call.input["for"] == "tea");
    /// assert!(ToolCall::returned("search", json!({}), json!({"error": null})).ok);
    /// assert!(!ToolCall::returned("search", json!({}), json!({"error": "offline"})).ok);
    /// assert!(!ToolCall::returned("search", json!({}), json!({"ok": false})).ok);
    /// ```
    pub fn returned(tool: impl Into<Arc<str>>, input: impl Into<Value>, output: impl Into<Value>) -> Self {
        let output = output.into();
        let has_error = !matches!(output.get("error"), None | Some(Value::Null | Value::Bool(false)));
        let ok = output.get("ok").and_then(Value::as_bool).unwrap_or(!has_error);
        Self { input: Arc::new(input.into()), output: Arc::new(output), ..Self::new(tool, ok) }
    }

    /// A call of `tool` that failed, and returned nothing.
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_graph::ToolCall;
    ///
    /// let call = ToolCall::failed("search", json!({"for": "tea"}), "offline");
    /// assert_eq!((call.ok, call.error.as_deref()), (false, Some("offline")));
    /// ```
    pub fn failed(tool: impl Into<Arc<str>>, input: impl Into<Value>, error: impl Into<Arc<str>>) -> Self {
        Self { input: Arc::new(input.into()), error: Some(error.into()), ..Self::new(tool, false) }
    }

    fn sizes(&self) -> [usize; 3] {
        let error = self.error.as_ref().map_or(0, |error| error.len());
        [shorten::size(&self.input), shorten::size(&self.output), error]
    }

    fn within(self, most: usize) -> Self {
        let within = |value: Arc<Value>| shorten::begin(&value, most).map_or(value, Arc::new);
        let error = self.error.map(|error| match shorten::begin_of(&error, most) {
            Some(begin) => begin.into(),
            None => error,
        });
        Self { input: within(self.input), output: within(self.output), error, ..self }
    }

    /// The call as events have it.
    pub(crate) fn bounded(self) -> Self {
        self.within(VALUE)
    }
}

/// The calls of a visit within the bounds of reports, and a warning if there are too many of them.
pub(crate) fn bounded(mut calls: Vec<ToolCall>) -> (Vec<ToolCall>, Option<Arc<str>>) {
    let count = calls.len();
    calls.truncate(CALLS);
    let sizes: Vec<usize> = calls.iter().flat_map(ToolCall::sizes).map(|size| size.min(VALUE)).collect();
    let most = shorten::share(&sizes, ALL).unwrap_or(VALUE);
    let warning = || format!("the result has the first {CALLS} of {count} calls of tools").into();
    let calls = calls.into_iter().map(|call| call.within(most)).collect();
    (calls, (count > CALLS).then(warning))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// G33
    #[test]
    fn calls_of_older_journals_are_read_and_calls_without_values_have_their_form() {
        let call: ToolCall = serde_json::from_value(json!({"tool": "mail", "ok": false})).unwrap();
        assert_eq!(call, ToolCall::new("mail", false));
        assert_eq!(serde_json::to_value(call).unwrap(), json!({"tool": "mail", "ok": false}));
    }

    /// G33
    #[test]
    fn values_beyond_the_bounds_are_cut_and_calls_beyond_them_are_left_out_with_a_warning() {
        let long = ToolCall::returned("read", json!({"path": "a"}), "x".repeat(100_000));
        let (calls, warning) = bounded(vec![long.clone(), ToolCall::new("mail", true)]);
        assert_eq!(calls[0].input, long.input);
        let output = calls[0].output.as_str().unwrap();
        assert!(output.len() < VALUE + 100 && output.ends_with("… (cut: 100002 bytes of JSON in all)"));
        assert_eq!((&calls[1], warning), (&ToolCall::new("mail", true), None));

        let (calls, _) = bounded(vec![long.clone(); 1_000]);
        let all: usize = calls.iter().flat_map(ToolCall::sizes).sum();
        assert!(all < ALL + 1_000 * 100, "{all}");

        let (calls, warning) = bounded(vec![ToolCall::failed("mail", 1, "é".repeat(40_000)); CALLS + 1]);
        assert_eq!(calls.len(), CALLS);
        assert!(calls[0].error.as_ref().unwrap().len() < 200);
        assert_eq!(warning.as_deref(), Some("the result has the first 10000 of 10001 calls of tools"));
    }
}
