//! Calls of tools in results, contexts and traces, in documents of every format.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_graph::{
    AgentExecutor, AgentResult, AgentTask, Choice, Document, Format, GraphResult, GraphRun, HiveOptions,
    NodeContext, NodeError, Prompt, Question, Registry, SwenyOptions, ToolCall,
};

/// Calls two tools in each task, and notes the calls of the node `a` that it sees.
#[derive(Clone, Default)]
struct Caller(Arc<Mutex<Vec<Vec<ToolCall>>>>);

fn calls() -> Vec<ToolCall> {
    vec![
        ToolCall::returned("search", json!({"for": "tea"}), json!({"hits": 3})),
        ToolCall::failed("mail", json!({"to": "ada"}), "offline"),
    ]
}

impl AgentExecutor for Caller {
    fn run<'a>(
        &'a self,
        _: AgentTask<'a>,
        context: &'a NodeContext,
    ) -> BoxFuture<'a, Result<AgentResult, NodeError>> {
        self.0.lock().unwrap().push(context.calls("a"));
        for call in calls() {
            context.tool_called(Arc::clone(&call.tool), Value::clone(&call.input));
            context.tool_returned(&call);
        }
        Box::pin(std::future::ready(Ok(AgentResult::new(json!({"x": 1})).calls(calls()))))
    }

    fn decide<'a>(&'a self, _: Question<'a>) -> BoxFuture<'a, Result<Choice, NodeError>> {
        Box::pin(std::future::ready(Err(NodeError::permanent("nothing is decided"))))
    }

    fn ask<'a>(&'a self, _: Prompt<'a>) -> BoxFuture<'a, Result<String, NodeError>> {
        Box::pin(std::future::ready(Err(NodeError::permanent("nothing is asked"))))
    }
}

async fn ran(document: &Document, input: Value) -> (GraphResult, Vec<Vec<ToolCall>>) {
    let caller = Caller::default();
    let registry = Registry::new().agents(caller.clone());
    let engine = Engine::builder().workflows(document.bind(&registry).unwrap()).build().unwrap();
    let run = GraphRun::start(&engine, document.name(), input).await.unwrap();
    let result = run.outcome().await.unwrap();
    let seen = std::mem::take(&mut *caller.0.lock().unwrap());
    (result, seen)
}

const NATIVE: &str = "
graph: g
nodes:
  a: {agent: Do., next: b}
  b: {agent: Do.}
";

const SWENY: &str = "
id: g
name: G
entry: a
nodes: {a: {name: A, instruction: Do.}, b: {name: B, instruction: Do.}}
edges: [{from: a, to: b}]
";

fn documents() -> Vec<Document> {
    let hive = json!({
        "id": "g", "entry_node": "a",
        "nodes": [{"id": "a", "system_prompt": "Do."}, {"id": "b", "system_prompt": "Do."}],
        "edges": [{"source": "a", "target": "b"}],
    });
    vec![
        Document::parse(NATIVE, "g.yaml").unwrap(),
        Document::parse_as(SWENY, "g.yaml", Format::Sweny(SwenyOptions::new())).unwrap(),
        Document::parse_as(&hive.to_string(), "g.json", Format::Hive(HiveOptions::new())).unwrap(),
    ]
}

// G33
#[tokio::test]
async fn calls_of_every_format_are_in_results_and_traces_with_input_and_output() {
    for document in documents() {
        let (result, _) = ran(&document, json!({})).await;
        for node in ["a", "b"] {
            assert_eq!(result.results[node].calls, calls(), "{node}");
            let visit = result.trace.visits.iter().find(|visit| &*visit.node == node).unwrap();
            assert_eq!(visit.calls, calls(), "{node}");
        }
        assert_eq!(
            json!(result.results["a"].calls),
            json!([
                {"tool": "search", "ok": true, "input": {"for": "tea"}, "output": {"hits": 3}},
                {"tool": "mail", "ok": false, "input": {"to": "ada"}, "error": "offline"},
            ])
        );
        assert!(result.trace.to_string().contains("2 calls of tools"), "{}", result.trace);
    }
}

// G33
#[tokio::test]
async fn later_nodes_see_the_calls_of_earlier_ones() {
    for document in documents() {
        let (_, seen) = ran(&document, json!({})).await;
        assert_eq!(seen, [vec![], calls()]);
    }
}

// G33
#[tokio::test]
async fn a_node_with_items_has_the_calls_of_each_with_its_place() {
    let text = "graph: g\nnodes: {a: {agent: Do., for_each: {in: '[1, 2]'}}}\n";
    let (result, _) = ran(&Document::parse(text, "g.yaml").unwrap(), json!({})).await;
    let places: Vec<_> = result.results["a"].calls.iter().map(|call| (&*call.tool, call.item)).collect();
    let expected = [("search", Some(0)), ("mail", Some(0)), ("search", Some(1)), ("mail", Some(1))];
    assert_eq!(places, expected);
}

/// G33
#[tokio::test]
async fn a_node_whose_evaluations_fail_keeps_its_calls() {
    let text = "
id: g
name: G
entry: a
nodes:
  a:
    name: A
    instruction: Do.
    eval: [{name: no_search, kind: function, rule: {no_tool_called: [search]}}]
edges: []
";
    let document = Document::parse_as(text, "g.yaml", Format::Sweny(SwenyOptions::new())).unwrap();
    let (result, _) = ran(&document, json!({})).await;
    assert_eq!(result.results["a"].calls, calls());
    assert_eq!(result.trace.visits[0].calls, calls());
}
