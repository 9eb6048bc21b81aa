//! Parts of the tests: tools, agents, and looks into requests. It asserts nothing but the invariant of requests.

use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::{Value, json};
use workflow_agent::model::{Message, ModelRequest, Part, ScriptedModel, ScriptedReply, ToolResult};
use workflow_agent::prelude::*;
use workflow_agent::tool::FnTool;
use workflow_agent::{AgentBuilder, Stopped};
use workflow_testkit::{Scenario, TestRun};

/// The arguments of the tools.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub(crate) struct City {
    pub(crate) city: String,
}

/// The calls of a tool, in order.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    pub(crate) fn add(&self, call: impl Into<String>) {
        self.0.lock().unwrap().push(call.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Reads.
pub(crate) fn weather() -> FnTool {
    let weather = |city: City, _| async move { Ok::<_, ToolError>(format!("warm in {}", city.city)) };
    FnTool::new("weather", "The weather of a city.", weather).read_only()
}

/// Acts, and records the cities.
pub(crate) fn visit(calls: &Calls) -> FnTool {
    let calls = calls.clone();
    FnTool::new("visit", "Visits a city.", move |city: City, _| {
        calls.add(&city.city);
        async move { Ok::<_, ToolError>(format!("visited {}", city.city)) }
    })
}

/// A tool that fails with what the function makes.
pub(crate) fn failing(name: &str, calls: &Calls, error: fn() -> ToolError) -> FnTool {
    let calls = calls.clone();
    FnTool::new(name.to_owned(), "Fails.", move |_: Value, _| {
        calls.add("called");
        async move { Err::<String, _>(error()) }
    })
}

pub(crate) fn call(id: &str, tool: &str, city: &str) -> ScriptedReply {
    ScriptedReply::call(id, tool, json!({ "city": city }))
}

pub(crate) fn scripted(replies: impl IntoIterator<Item = ScriptedReply>) -> ScriptedModel {
    ScriptedModel::new(replies)
}

pub(crate) fn agent(model: &ScriptedModel) -> AgentBuilder {
    Agent::builder("assistant").model(model.clone())
}

/// Runs an agent in memory on virtual time.
pub(crate) async fn run(agent: AgentBuilder, prompt: impl Into<Prompt>) -> TestRun<Agent> {
    Scenario::new(agent.build().unwrap()).start(prompt.into()).await
}

/// The text of an answer.
pub(crate) fn answered(run: &TestRun<Agent>) -> String {
    match run.outcome().unwrap() {
        Outcome::Answered(answer) => answer.text.clone(),
        other => panic!("no answer: {other:?}"),
    }
}

pub(crate) fn stopped(run: &TestRun<Agent>) -> &Stopped {
    match run.outcome().unwrap() {
        Outcome::Stopped(stopped) => stopped,
        other => panic!("not stopped: {other:?}"),
    }
}

/// The results of the last message with results.
pub(crate) fn results(request: &ModelRequest) -> Vec<ToolResult> {
    let results = request.messages.iter().rev().find_map(|message| match message {
        Message::Results(results) => Some(results.clone()),
        _ => None,
    });
    results.unwrap_or_default()
}

/// The only result of the last message with results.
pub(crate) fn result(request: &ModelRequest) -> ToolResult {
    let results = results(request);
    assert_eq!(results.len(), 1, "{results:?}");
    results[0].clone()
}

/// A6: each call has exactly one result, in the message directly behind it, and no result lacks its call.
pub(crate) fn assert_paired(request: &ModelRequest) {
    let mut open: Vec<Arc<str>> = Vec::new();
    let mut seen: Vec<Arc<str>> = Vec::new();
    for message in &request.messages {
        if let Message::Results(results) = message {
            let ids: Vec<Arc<str>> = results.iter().map(|result| Arc::clone(&result.call)).collect();
            assert!(!ids.is_empty(), "empty results in {:#?}", request.messages);
            assert_eq!(ids, open, "in {:#?}", request.messages);
            open.clear();
            continue;
        }
        assert!(open.is_empty(), "calls {open:?} have no results in {:#?}", request.messages);
        if let Message::Assistant { parts } = message {
            let calls = parts.iter().filter_map(|part| match part {
                Part::Call(call) => Some(Arc::clone(&call.id)),
                _ => None,
            });
            open.extend(calls);
            for id in &open {
                assert!(!seen.contains(id), "{id} is used twice");
                seen.push(Arc::clone(id));
            }
        }
    }
    assert!(open.is_empty(), "calls {open:?} have no results in {:#?}", request.messages);
}

/// Everything that a run logged, as text.
pub(crate) fn log_of(run: &TestRun<Agent>) -> String {
    let names: std::collections::BTreeSet<&str> =
        run.report().log.iter().map(|logged| &*logged.event).collect();
    names.into_iter().flat_map(|name| run.emitted_json(name)).map(|value| value.to_string() + "\n").collect()
}
