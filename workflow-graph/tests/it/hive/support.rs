//! Runs of Hive documents with scripts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use workflow_core::Clock;
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_graph::{
    Document, Format, GraphError, GraphFailure, GraphResult, GraphRun, HiveOptions, Registry,
    ScriptedExecutor, Trace,
};
use workflow_testkit::VirtualClock;

/// The end of a run.
pub(crate) struct Ran {
    pub(crate) ended: Result<GraphResult, Box<GraphFailure>>,
    pub(crate) elapsed: Duration,
}

pub(crate) fn hive(document: &Value) -> Document {
    hive_with(document, HiveOptions::new())
}

pub(crate) fn hive_with(document: &Value, options: HiveOptions) -> Document {
    Document::parse_as(&document.to_string(), "agent.json", Format::Hive(options)).unwrap()
}

pub(crate) fn engine(document: &Document, registry: &Registry, clock: &VirtualClock) -> Engine {
    let engine = Engine::builder().workflows(document.bind(registry).unwrap()).clock(clock.clone());
    engine.store(Arc::new(MemoryStore::default())).build().unwrap()
}

/// Plays a script from the begin to the end.
pub(crate) async fn play(document: &Document, input: Value, script: Value) -> Ran {
    let script = ScriptedExecutor::from_json(&script).unwrap();
    let (registry, clock) = (Registry::new().script(script.clone()), VirtualClock::new());
    let engine = engine(document, &registry, &clock);
    let started = clock.now();
    let run = GraphRun::start(&engine, document.name(), input).await.unwrap();
    run.play(&script).await.unwrap();
    let ended = ended(&run).await;
    Ran { ended, elapsed: clock.now().duration_since(started).unwrap() }
}

/// Runs with the functions and agents of a registry.
pub(crate) async fn run(document: &Document, input: Value, registry: &Registry) -> Ran {
    let clock = VirtualClock::new();
    let engine = engine(document, registry, &clock);
    let started = clock.now();
    let run = GraphRun::start(&engine, document.name(), input).await.unwrap();
    let ended = ended(&run).await;
    Ran { ended, elapsed: clock.now().duration_since(started).unwrap() }
}

async fn ended(run: &GraphRun) -> Result<GraphResult, Box<GraphFailure>> {
    match run.outcome().await {
        Ok(result) => Ok(result),
        Err(GraphError::Failed(failure)) => Err(failure),
        Err(error) => panic!("{error}"),
    }
}

impl Ran {
    pub(crate) fn result(&self) -> &GraphResult {
        self.ended.as_ref().unwrap_or_else(|failure| panic!("{failure}"))
    }

    pub(crate) fn failure(&self) -> &GraphFailure {
        self.ended.as_ref().unwrap_err()
    }

    pub(crate) fn trace(&self) -> &Trace {
        match &self.ended {
            Ok(result) => &result.trace,
            Err(failure) => &failure.trace,
        }
    }

    /// The visits in the order of their ends.
    pub(crate) fn path(&self) -> Vec<&str> {
        self.trace().visits.iter().map(|visit| &*visit.node).collect()
    }

    /// The visits by name.
    pub(crate) fn visited(&self) -> Vec<&str> {
        let mut path = self.path();
        path.sort_unstable();
        path
    }

    /// Routes with their reasons, in the order of their names.
    pub(crate) fn routes(&self) -> Vec<String> {
        let routes = self.trace().routes.iter();
        let mut routes: Vec<_> =
            routes.map(|route| format!("{}->{}: {}", route.from, route.to, route.reason)).collect();
        routes.sort_unstable();
        routes
    }

    pub(crate) fn memory(&self) -> &Value {
        &self.result().output
    }

    /// Status and quality.
    pub(crate) fn end(&self) -> (Value, Value) {
        match &self.ended {
            Ok(result) => (json!(result.status), json!(result.quality)),
            Err(_) => (json!("failed"), json!("failed")),
        }
    }
}

/// A function node with keys.
pub(crate) fn function(id: &str, output_keys: &[&str]) -> Value {
    json!({"id": id, "node_type": "function", "function": id, "output_keys": output_keys, "max_retries": 1})
}

pub(crate) fn agent(id: &str) -> Value {
    json!({"id": id, "node_type": "event_loop", "system_prompt": format!("Do {id}.")})
}

/// An edge that is taken on success.
pub(crate) fn edge(source: &str, target: &str) -> Value {
    json!({"source": source, "target": target})
}

pub(crate) fn edge_if(source: &str, target: &str, condition: &str) -> Value {
    json!({"source": source, "target": target, "condition": "conditional", "condition_expr": condition})
}

pub(crate) fn edge_on(source: &str, target: &str, condition: &str) -> Value {
    json!({"source": source, "target": target, "condition": condition})
}

/// A graph that begins with its first node.
pub(crate) fn graph(nodes: &[Value], edges: &[Value]) -> Value {
    json!({"id": "agent", "entry_node": nodes[0]["id"], "nodes": nodes, "edges": edges})
}

/// The same with further fields.
pub(crate) fn with(mut value: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!() };
    value.as_object_mut().unwrap().extend(more);
    value
}
