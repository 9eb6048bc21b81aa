//! Runs documents on a virtual clock, and reads what became of them.

#![expect(clippy::needless_pass_by_value, reason = "tests write values in place")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{Clock, RunStatus, RuntimeWorkflow};
use workflow_graph::{
    Document, GraphError, GraphFailure, GraphOptions, GraphResult, GraphRun, Registry, ScriptedExecutor,
    Trace,
};
use workflow_testkit::VirtualClock;

/// A document with the script that plays its nodes.
pub(crate) fn workflows(text: &str, script: Value) -> Vec<RuntimeWorkflow> {
    bound(text, Registry::new().script(ScriptedExecutor::from_json(&script).unwrap()))
}

pub(crate) fn bound(text: &str, registry: Registry) -> Vec<RuntimeWorkflow> {
    let document = Document::parse(text, "g.yaml").unwrap_or_else(|error| panic!("{error}"));
    document.bind(&registry).unwrap_or_else(|error| panic!("{error}"))
}

/// A run of the graph `g`.
pub(crate) struct Played {
    pub(crate) run: GraphRun,
    /// It drives the run as long as it lives.
    _engine: Engine,
    pub(crate) started: std::time::SystemTime,
    pub(crate) clock: VirtualClock,
}

pub(crate) async fn start(workflows: Vec<RuntimeWorkflow>, input: Value, options: GraphOptions) -> Played {
    let clock = VirtualClock::new();
    let engine = Engine::builder().workflows(workflows).clock(clock.clone());
    let engine = engine.store(Arc::new(MemoryStore::default())).build().unwrap();
    let started = clock.now();
    let run = GraphRun::start_with(&engine, "g", input, options).await.unwrap();
    Played { run, _engine: engine, started, clock }
}

/// The whole run of a document.
pub(crate) async fn played(text: &str, input: Value, script: Value) -> Played {
    let people = ScriptedExecutor::from_json(&script).unwrap();
    let played = start(workflows(text, script), input, GraphOptions::new()).await;
    played.run.play(&people).await.unwrap();
    played
}

impl Played {
    pub(crate) async fn result(&self) -> GraphResult {
        self.run.outcome().await.unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) async fn failure(&self) -> GraphFailure {
        match self.run.outcome().await {
            Err(GraphError::Failed(failure)) => *failure,
            other => panic!("{other:?}"),
        }
    }

    /// The virtual time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.now().duration_since(self.started).unwrap()
    }

    pub(crate) async fn waits(&self) {
        assert_eq!(self.run.settled().await, RunStatus::Waiting);
    }
}

/// The visits of a trace as `node#iteration status`.
pub(crate) fn visits(trace: &Trace) -> Vec<String> {
    let visit = |visit: &workflow_graph::Visit| {
        let kept = if visit.kept { " kept" } else { "" };
        format!("{}#{} {}{kept}", visit.node, visit.iteration, visit.status)
    };
    trace.visits.iter().map(visit).collect()
}

/// The same without an order.
pub(crate) fn sorted(trace: &Trace) -> Vec<String> {
    let mut visits = visits(trace);
    visits.sort();
    visits
}

/// The routes of a trace, with their reasons.
pub(crate) fn routes(trace: &Trace) -> Vec<String> {
    trace.routes.iter().map(|route| format!("{} -> {}: {}", route.from, route.to, route.reason)).collect()
}

/// The data of the results, by node.
pub(crate) fn data(result: &GraphResult) -> BTreeMap<String, Value> {
    result.results.iter().map(|(id, outcome)| (id.clone(), outcome.data.clone())).collect()
}

/// A script of functions that succeed with these data.
pub(crate) fn script(nodes: Value) -> Value {
    json!({ "nodes": nodes })
}
