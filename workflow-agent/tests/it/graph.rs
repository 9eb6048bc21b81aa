//! Agents as the nodes of documents. This file has what the scenarios share.

use std::sync::Arc;

use serde_json::{Value, json};
use workflow_agent::model::{Message, ModelRequest, ScriptedModel, ScriptedReply};
use workflow_agent::prelude::*;
use workflow_agent::{AgentBuilder, GraphAgents};
use workflow_core::store::MemoryStore;
use workflow_core::{EngineBuilder, RuntimeWorkflow};
use workflow_graph::{Document, GraphError, GraphFailure, GraphResult, GraphRun, Registry};
use workflow_testkit::VirtualClock;

use crate::parts::{Calls, call, visit, weather};

mod conversations;
mod crashes;
mod failures;
mod people;
mod questions;
mod retries;
mod tasks;

/// A document of two agents with tools, a judge and a decision.
const REPORT: &str = "
graph: report
input: {type: object, properties: {city: {type: string}}, required: [city]}
nodes:
  look:
    agent: {instruction: 'Find out the sky of ${ input.city }.', model: scout, tools: {deny: [visit]}}
    output: {type: object, properties: {sky: {type: string}}, required: [sky]}
    ensure:
      all:
        - {name: looked, called: {all: [weather]}}
        - {name: judged, judge: 'Is the sky of ${ input.city } described?', model: writer}
    next:
      decide: 'Is the sky worth a text?'
      choices: [{to: write, about: the sky is known}, {to: nothing, about: the sky is dull}]
      otherwise: nothing
  write:
    agent: {instruction: 'Write about the sky: ${ look.sky }.', model: writer, max_turns: 3}
  nothing: {value: 'nothing to say'}
";

/// The reply of the model that answers everything in `REPORT`.
fn reporter(request: &ModelRequest) -> ScriptedReply {
    let last = request.messages.last().unwrap();
    let text = last.text();
    if request.system.starts_with("You choose") {
        return ScriptedReply::text(r#"{"choice": "write", "reason": "the sky is known"}"#);
    }
    if text.starts_with("Judge the result") {
        return ScriptedReply::text("VERDICT: yes\nREASONING: it is");
    }
    match last {
        Message::Results(_) if has_tool(request, "final_answer") => {
            ScriptedReply::call("2", "final_answer", json!({"sky": "clear"}))
        }
        Message::Results(_) => ScriptedReply::text("The sky is clear."),
        _ => call("1", "weather", "Bern"),
    }
}

fn reporters(model: &ScriptedModel, visits: &Calls) -> GraphAgents {
    let scout = agent("scout", model).tool(weather()).tool(visit(visits));
    let writer = agent("writer", model).tool(weather());
    GraphAgents::new([scout.build().unwrap(), writer.build().unwrap()])
}

fn agent(name: &str, model: &ScriptedModel) -> AgentBuilder {
    Agent::builder(name).model(model.clone()).identity(format!("You are the {name}."))
}

/// Agents that all are `agent`, and nothing else.
fn only(agent: AgentBuilder) -> (GraphAgents, Agent) {
    let agent = agent.build().unwrap();
    (GraphAgents::new([agent.clone()]), agent)
}

fn has_tool(request: &ModelRequest, tool: &str) -> bool {
    request.tools.iter().any(|spec| spec.name() == tool)
}

fn names(request: &ModelRequest) -> Vec<&str> {
    request.tools.iter().map(workflow_agent::tool::ToolSpec::name).collect()
}

fn bound(text: &str, agents: &GraphAgents) -> Vec<RuntimeWorkflow> {
    let document = Document::parse(text, "test.yaml").unwrap_or_else(|error| panic!("{error}"));
    document
        .bind(&Registry::new().agents(agents.clone()))
        .unwrap_or_else(|error| panic!("{error}"))
        .into_iter()
        .collect()
}

fn builder(text: &str, agents: &GraphAgents) -> EngineBuilder {
    Engine::builder().workflows(bound(text, agents)).clock(VirtualClock::new())
}

/// A run of the graph `test` of one agent, without a store, to its end.
async fn run(text: &str, agent: AgentBuilder) -> Result<GraphResult, GraphError> {
    let (agents, agent) = only(agent);
    let engine = builder(text, &agents).agent(agent).build().unwrap();
    GraphRun::start(&engine, "test", json!({})).await?.outcome().await
}

fn failed(ended: Result<GraphResult, GraphError>) -> GraphFailure {
    match ended {
        Err(GraphError::Failed(failure)) => *failure,
        other => panic!("{other:?}"),
    }
}

fn store() -> Arc<MemoryStore> {
    Arc::default()
}

fn first(agents: &GraphAgents) -> Vec<&str> {
    agents.names().collect()
}

/// The texts of a request's messages.
fn texts(request: &ModelRequest) -> Vec<String> {
    request.messages.iter().map(|message| message.text().into_owned()).collect()
}

fn reads(value: &Value, text: &str) -> bool {
    value.to_string().contains(text)
}
