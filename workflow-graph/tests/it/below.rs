//! Questions of the graphs below a run.

use std::sync::Arc;

use serde_json::{Value, json};
use workflow_core::RunStatus;
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_graph::{Document, GraphRun, NodeContext, Registry, ScriptedExecutor};
use workflow_testkit::VirtualClock;

const NESTED: &str = "
graph: order
nodes:
  start: {value: 1, next: {parallel: [pay, check], join: done}}
  pay: {graph: payment, next: done}
  check: {human: {ask: 'Checked?'}, next: done}
  done: {value: '${ pay.granted }'}
---
graph: payment
nodes: {ask_bank: {graph: bank}}
---
graph: bank
nodes:
  approve:
    human: {ask: 'Pay?', reply: {type: object, properties: {granted: {type: boolean}}, required: [granted]}}
";

fn engine(text: &str, store: Arc<MemoryStore>) -> Engine {
    let document = Document::parse(text, "g.yaml").unwrap_or_else(|error| panic!("{error}"));
    let workflows = document.bind(&Registry::new()).unwrap();
    Engine::builder().workflows(workflows).clock(VirtualClock::new()).store(store).build().unwrap()
}

// G27
#[tokio::test(start_paused = true)]
async fn questions_of_children_are_listed_and_answered_and_a_run_that_waits_for_them_is_settled() {
    let engine = engine(NESTED, Arc::default());
    let run = GraphRun::start(&engine, "order", json!({})).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    assert_eq!(run.settled_now().await, Some(RunStatus::Waiting));
    let gates = run.gates().await.unwrap();
    let asked: Vec<_> = gates.iter().map(|gate| (gate.path.join("/"), gate.node.as_str())).collect();
    assert_eq!(asked, [(String::new(), "check"), ("pay/ask_bank".to_owned(), "approve")]);
    assert_eq!(gates[0].run, *run.id());

    run.answer(gates[0].id, "yes").await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting, "a child still asks");
    let refused = run.answer(&gates[1], json!({"granted": 1})).await.unwrap_err().to_string();
    assert!(refused.contains("approve") && refused.contains("granted"), "{refused}");
    run.answer(&gates[1], json!({"granted": true})).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().output, true);
    assert_eq!(run.settled().await, RunStatus::Completed);
}

// G27
#[tokio::test(start_paused = true)]
async fn a_run_is_settled_once_all_beside_a_child_that_asks_has_ended() {
    let text = "
graph: g
nodes:
  begin: {value: 1, next: {parallel: [works, asks], join: done}}
  works: {function: work, next: done}
  asks: {graph: ask, next: done}
  done: {value: 2}
---
graph: ask
nodes: {a: {human: {ask: 'Sure?'}}}
";
    let registry = Registry::new().function("work", async |_: Value, _: NodeContext| {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        Ok::<_, workflow_graph::NodeError>(json!(1))
    });
    let workflows = Document::parse(text, "g.yaml").unwrap().bind(&registry).unwrap();
    let engine = Engine::builder().workflows(workflows).build().unwrap();
    let run = GraphRun::start(&engine, "g", json!({})).await.unwrap();
    let settled = tokio::time::timeout(std::time::Duration::from_hours(1), run.settled()).await;
    assert_eq!(settled, Ok(RunStatus::Waiting));
    assert_eq!(run.gates().await.unwrap().len(), 1);
}

// G27
#[tokio::test(start_paused = true)]
async fn the_people_of_a_script_answer_the_questions_of_children() {
    let engine = engine(NESTED, Arc::default());
    let run = GraphRun::start(&engine, "order", json!({})).await.unwrap();
    let replies = json!({"replies": {"check": ["yes"], "approve": [{"granted": false}]}});
    let people = ScriptedExecutor::from_json(&replies).unwrap();
    assert_eq!(run.play(&people).await.unwrap(), RunStatus::Completed);
    assert_eq!(run.outcome().await.unwrap().output, false);

    let run = GraphRun::start(&engine, "order", json!({})).await.unwrap();
    let silent = ScriptedExecutor::from_json(&json!({"replies": {"check": ["yes"]}})).unwrap();
    assert_eq!(run.play(&silent).await.unwrap(), RunStatus::Waiting);
}

// G27
#[tokio::test(start_paused = true)]
async fn a_gate_shows_the_schema_by_which_its_answer_is_checked_also_of_a_changed_document() {
    let document =
        |kind: &str| format!("graph: g\nnodes: {{a: {{human: {{ask: Sure?, reply: {{type: {kind}}}}}}}}}\n");
    let store = Arc::new(MemoryStore::default());
    let before = engine(&document("string"), Arc::clone(&store));
    let run = GraphRun::start(&before, "g", json!({})).await.unwrap();
    run.settled().await;
    let schema = |gate: &workflow_graph::Gate| gate.schema.clone().unwrap_or(Value::Null);
    assert_eq!(schema(&run.gates().await.unwrap()[0]), json!({"type": "string"}));
    let id = run.id().clone();
    before.shut_down(std::time::Duration::from_mins(1)).await;
    drop((run, before));

    let after = engine(&document("integer"), store);
    let run = GraphRun::attach(&after, id).await.unwrap();
    let gate = run.gates().await.unwrap().remove(0);
    assert_eq!(schema(&gate), json!({"type": "integer"}));
    assert!(run.answer(&gate, "yes").await.is_err());
    run.answer(&gate, 7).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().output, 7);
}
