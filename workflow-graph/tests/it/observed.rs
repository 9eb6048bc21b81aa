//! Events of runs, as observers of documents receive them.

#![expect(clippy::needless_pass_by_value, reason = "tests write values in place")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{RunId, RunStatus};
use workflow_graph::{
    Document, Format, GraphEvent, GraphEvents, GraphObserver, GraphRun, HiveOptions, Registry,
    ScriptedExecutor, SwenyOptions, VisitStatus,
};
use workflow_testkit::VirtualClock;

use super::playing::script;

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<GraphEvent>>>);

impl GraphObserver for Seen {
    fn observe(&self, _: &RunId, event: &GraphEvent) {
        self.0.lock().unwrap().push(event.clone());
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

/// The events of a played run, and the JSON of its results.
async fn seen(document: &Document, input: Value, script: Value) -> (Vec<GraphEvent>, Option<Value>) {
    let (seen, script) = (Seen::default(), ScriptedExecutor::from_json(&script).unwrap());
    let workflows = document.bind(&Registry::new().script(script.clone())).unwrap();
    let engine = Engine::builder().workflows(workflows).observer(GraphEvents::of(document, seen.clone()));
    let engine = engine.clock(VirtualClock::new()).store(Arc::new(MemoryStore::default())).build().unwrap();
    let run = GraphRun::start(&engine, document.name(), input).await.unwrap();
    run.play(&script).await.unwrap();
    let results = run.outcome().await.ok().map(|result| json!(result.results));
    let events = std::mem::take(&mut *seen.0.lock().unwrap());
    (events, results)
}

fn native(text: &str) -> Document {
    Document::parse(text, "g.yaml").unwrap_or_else(|error| panic!("{error}"))
}

fn sweny(text: &str) -> Document {
    Document::parse_as(text, "g.yaml", Format::Sweny(SwenyOptions::new())).unwrap()
}

fn hive(nodes: Value, edges: Value, more: Value) -> Document {
    let mut graph = json!({"id": "g", "entry_node": nodes[0]["id"], "nodes": nodes, "edges": edges});
    graph.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let options = HiveOptions::new();
    Document::parse_as(&graph.to_string(), "g.json", Format::Hive(options)).unwrap()
}

/// The exits of each visit.
fn exits(events: &[GraphEvent]) -> BTreeMap<(String, Option<u32>), Vec<VisitStatus>> {
    let mut exits = BTreeMap::<_, Vec<_>>::new();
    for event in events {
        if let GraphEvent::NodeExited { node, iteration, status, .. } = event {
            exits.entry((node.to_string(), *iteration)).or_default().push(*status);
        }
    }
    exits
}

/// Asserts that each visit that was entered has exited once.
fn one_exit_each(events: &[GraphEvent]) {
    let entered = events.iter().filter_map(|event| match event {
        GraphEvent::NodeEntered { node, iteration, .. } => Some((node.to_string(), *iteration)),
        _ => None,
    });
    let exits = exits(events);
    for visit in entered {
        assert_eq!(exits.get(&visit).map_or(0, Vec::len), 1, "{visit:?}: {}", json!(events));
    }
}

fn failed_later(events: &[GraphEvent]) -> Vec<(String, String)> {
    let failed = events.iter().filter_map(|event| match event {
        GraphEvent::VisitFailed { node, error, .. } => Some((node.to_string(), error.message.to_string())),
        _ => None,
    });
    failed.collect()
}

// G32
#[tokio::test(start_paused = true)]
async fn events_have_instructions_calls_results_and_the_results_of_the_run() {
    let document = sweny(
        "
id: g
name: G
entry: a
nodes: {a: {name: A, instruction: Look around.}, b: {name: B, instruction: Go.}}
edges: [{from: a, to: b}]
",
    );
    let call = json!({"tool": "search", "input": {"for": "tea"}, "output": [1]});
    let played = script(json!({"a": [{"data": {"x": 1}, "called": [call]}]}));
    let (events, results) = seen(&document, json!({}), played).await;
    let result = json!({
        "status": "success", "data": {"x": 1}, "iteration": 1,
        "calls": [{"tool": "search", "ok": true, "input": {"for": "tea"}, "output": [1]}],
    });
    let at = json!({"node": "a", "iteration": 1, "attempt": 1, "tool": "search"});
    let with = |kind: &str, more: Value| {
        let mut event = at.clone();
        event["type"] = json!(kind);
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    assert_eq!(
        json!(events[..5]),
        json!([
            {"type": "started", "graph": "g"},
            {"type": "node_entered", "node": "a", "iteration": 1, "instruction": "Look around."},
            with("tool_called", json!({"input": {"for": "tea"}})),
            with("tool_returned", json!({"ok": true, "output": [1]})),
            {"type": "node_exited", "node": "a", "iteration": 1, "status": "success", "result": result},
        ])
    );
    let end =
        json!({"type": "ended", "status": "completed", "end": "completed", "results": results.unwrap()});
    assert_eq!(json!(events.last().unwrap()), end);
    one_exit_each(&events);
}

// G32
#[tokio::test(start_paused = true)]
async fn a_visit_is_entered_with_the_instruction_that_its_agent_receives() {
    let text = "
graph: g
nodes:
  a: {agent: 'Greet ${ input.name }.', next: b}
  b: {agent: 'Leave ${ input.name }.', requires: {all: [input.none], otherwise: skip}, next: c}
  c: {agent: 'Fail ${ input.name }.', on_failure: d}
  d: {value: 1}
";
    let played = script(json!({"c": [{"fail": "away"}]}));
    let (events, _) = seen(&native(text), json!({"name": "Ada", "none": false}), played).await;
    let entered: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            GraphEvent::NodeEntered { node, instruction, .. } => Some((&**node, instruction.as_deref())),
            _ => None,
        })
        .collect();
    let expected = [("a", Some("Greet Ada.")), ("b", None), ("c", Some("Fail Ada.")), ("d", None)];
    assert_eq!(entered, expected);
    one_exit_each(&events);
}

// G32, HV3
#[tokio::test(start_paused = true)]
async fn a_fallback_of_hive_exits_its_visit_once() {
    let nodes = json!([{"id": "n", "system_prompt": "Do."}, {"id": "a", "system_prompt": "Do."}, {"id": "b", "system_prompt": "Do."}]);
    let edges = json!([
        {"source": "n", "target": "a", "condition": "llm_decide"},
        {"source": "n", "target": "b", "condition": "always"},
    ]);
    let (events, results) = seen(&hive(nodes, edges, json!({})), json!({}), json!({})).await;
    one_exit_each(&events);
    let warnings = events.iter().filter(|event| matches!(event, GraphEvent::Warning { .. })).count();
    assert_eq!(warnings, 1, "{}", json!(events));
    let GraphEvent::Ended { results: Some(told), .. } = events.last().unwrap() else { panic!() };
    assert_eq!(json!(**told), results.unwrap());
}

// G32, HV10
#[tokio::test(start_paused = true)]
async fn a_pause_of_hive_exits_its_visit_once() {
    let nodes = json!([{"id": "n", "system_prompt": "Do."}, {"id": "a", "system_prompt": "Do."}]);
    let document = hive(nodes, json!([{"source": "n", "target": "a"}]), json!({"pause_nodes": ["n"]}));
    let (events, _) = seen(&document, json!({}), json!({"replies": {"n": [{"good": true}]}})).await;
    assert!(events.iter().any(|event| matches!(event, GraphEvent::Waiting)));
    one_exit_each(&events);
}

const BRANCHES: &str = "
graph: g
vars: {x: 0}
nodes:
  p: {value: 1, REST, next: {parallel: [b, c], join: j, failures: FAILURES}}
  b: {function: b, retry: none, set: {x: 1}, next: j}
  c: {value: 2, set: {x: 2}, next: j}
  j: {value: joined}
";

// G15, G16, G32
#[tokio::test(start_paused = true)]
async fn a_parallel_node_whose_branches_fail_or_conflict_exits_once_and_fails_later() {
    let fail = script(json!({"b": [{"fail": "no disk", "class": "permanent"}]}));
    let fails = "`b` failed: no disk";
    let conflicts = "the branches that begin with `b` and `c` both write the variable `x`: write it in one of them, or state `conflicts`";
    for (rest, failures, script, error, status) in [
        ("on_failure: h", "fail_all", fail.clone(), fails, RunStatus::Completed),
        ("on_failure: continue", "fail_all", fail.clone(), fails, RunStatus::Completed),
        ("description: x", "fail_all", fail, fails, RunStatus::Failed),
        ("on_failure: h", "wait_all", json!({}), conflicts, RunStatus::Completed),
        ("description: x", "wait_all", json!({}), conflicts, RunStatus::Failed),
    ] {
        let handler = if rest == "on_failure: h" { "  h: {value: handled}\n" } else { "" };
        let text = BRANCHES.replace("REST", rest).replace("FAILURES", failures) + handler;
        let (events, results) = seen(&native(&text), json!({}), script).await;
        assert_eq!(exits(&events)[&("p".to_owned(), Some(1))], [VisitStatus::Success], "{rest} {failures}");
        assert_eq!(failed_later(&events), [("p".to_owned(), error.to_owned())], "{rest} {failures}");
        let GraphEvent::Ended { status: ended, results: told, .. } = events.last().unwrap() else { panic!() };
        assert_eq!(*ended, status);
        if let Some(results) = results {
            assert_eq!(json!(told), results, "{rest} {failures}");
        }
    }
}

// G21, G32
#[tokio::test(start_paused = true)]
async fn a_visit_beyond_its_bound_says_so() {
    let text =
        "graph: g\nnodes: {a: {value: 1, max_visits: 1, next: [{when: visits < 2, to: a}, {to: end}]}}\n";
    let (events, _) = seen(&native(text), json!({}), json!({})).await;
    let kept: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            GraphEvent::NodeExited { iteration, kept, .. } => Some((*iteration, *kept)),
            _ => None,
        })
        .collect();
    assert_eq!(kept, [(Some(1), false), (Some(2), true)]);
}

// G17, G32, G33
#[tokio::test(start_paused = true)]
async fn runs_of_an_agent_after_failed_checks_and_second_questions_to_judges_are_told() {
    let text = "
graph: g
nodes:
  a:
    agent: Do.
    ensure: {all: [a.x > 1, {name: good, judge: 'Good?'}], retries: 2}
";
    let played = json!({
        "nodes": {"a": [{"data": {"x": 1}}, {"data": {"x": 2}}]},
        "judge": {"a": ["yes", "I cannot say that at all", "yes"]},
    });
    let (events, _) = seen(&native(text), json!({}), played.clone()).await;
    let again: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            GraphEvent::WorkRepeated { of, failure, .. } => Some((json!(of), failure.to_string())),
            _ => None,
        })
        .collect();
    assert_eq!(again[0], (json!("agent"), "`a.x > 1`: it is false, where `a.x` is 1".to_owned()));
    assert_eq!(again[1].0, json!("judge"));
    assert!(again[1].1.contains("gave no verdict"), "{again:?}");
    assert_eq!(again.len(), 2);

    let result = super::playing::played(text, json!({}), played).await.result().await;
    let told: Vec<_> = result.trace.visits[0].retries.iter().map(|again| json!(again.of)).collect();
    assert_eq!(told, [json!("agent"), json!("judge")]);
    assert!(result.trace.to_string().contains("2 retries"), "{}", result.trace);
}

// G22, G25, G34
#[tokio::test(start_paused = true)]
async fn an_item_that_fails_is_named_with_its_node_in_error_trace_explanation_and_events() {
    let text = "graph: g\nnodes: {a: {function: x, retry: none, for_each: {in: \"['p', 'q']\"}}}\n";
    let played = script(json!({"a": [{"data": 1}, {"fail": "no disk", "class": "permanent"}]}));
    let (events, _) = seen(&native(text), json!({}), played.clone()).await;
    let error = events.iter().find_map(|event| match event {
        GraphEvent::NodeExited { error, .. } => error.clone(),
        _ => None,
    });
    let item = "item 2 (index 1, \"q\")";
    assert_eq!(&*error.unwrap().message, format!("{item}: no disk"));
    one_exit_each(&events);

    let played = super::playing::played(text, json!({}), played).await;
    let failure = played.failure().await;
    assert_eq!(failure.to_string(), format!("`a` failed at {item} after 1 attempt (permanent): no disk"));
    assert_eq!((failure.node.as_deref(), failure.item), (Some("a"), Some(1)));
    let visit = &failure.trace.visits[0];
    assert_eq!(&*visit.error.as_ref().unwrap().message, format!("{item}: no disk"));
    let explained = played.run.explain().await.unwrap().to_string();
    assert!(explained.contains(&format!("{item}: no disk")), "{explained}");
}
