//! Edges: HV3, HV4, HV7, HV9, HV11.

use serde_json::{Value, json};
use workflow_graph::{Document, GraphOptions, GraphRun, GraphStatus, Registry, ScriptedExecutor};
use workflow_testkit::VirtualClock;

use super::support::{edge, edge_if, edge_on, engine, function, graph, hive, play, with};

/// The edges, from the node `n`, and the nodes that they name.
fn fan(edges: &[Value]) -> Document {
    let is_named = |id: &str| edges.iter().any(|edge| edge["target"] == id) || id == "n";
    let nodes: Vec<_> = ["n", "a", "b", "c"].into_iter().filter(|id| is_named(id)).collect();
    let nodes: Vec<_> = nodes.into_iter().map(|id| function(id, &[])).collect();
    hive(&graph(&nodes, edges))
}

fn first(edge: Value, priority: i64) -> Value {
    with(edge, json!({"priority": priority}))
}

// HV3
#[tokio::test(start_paused = true)]
async fn of_conditional_edges_the_first_by_priority_that_holds_is_taken() {
    let edges = [
        edge_if("n", "a", "x > 1"),
        first(edge_if("n", "b", "x > 1"), 2),
        first(edge_if("n", "c", "x > 2"), 3),
        edge_on("n", "c", "always"),
    ];
    let document = fan(&edges);
    let to = async |x: i64| play(&document, json!({"x": x}), json!({})).await.routes();
    assert_eq!(to(3).await, ["n->c: x > 2"]);
    assert_eq!(to(2).await, ["n->b: x > 1"]);
    assert_eq!(to(1).await, ["n->c: always"]);
}

// HV3
#[tokio::test(start_paused = true)]
async fn a_conditional_edge_without_expression_holds() {
    let ran = play(
        &fan(&[edge_on("n", "a", "conditional"), edge_if("n", "b", "True"), edge_on("n", "c", "always")]),
        json!({}),
        json!({}),
    )
    .await;
    assert_eq!(ran.path(), ["n", "a"]);
}

// HV3
#[tokio::test(start_paused = true)]
async fn every_success_edge_is_taken_beside_the_winner() {
    let document = fan(&[edge_if("n", "a", "ok"), edge("n", "b"), edge_on("n", "c", "always")]);
    let ran = play(&document, json!({"ok": true}), json!({})).await;
    assert_eq!(ran.visited(), ["a", "b", "n"]);
    let ran = play(&document, json!({"ok": false}), json!({})).await;
    assert_eq!(ran.visited(), ["b", "c", "n"]);
}

// HV3
#[tokio::test(start_paused = true)]
async fn a_node_that_can_take_several_edges_opens_a_branch_for_one() {
    let document = fan(&[edge_if("n", "a", "ok"), edge("n", "b"), edge("a", "c"), edge("b", "c")]);
    let ran = play(&document, json!({"ok": ""}), json!({})).await;
    assert_eq!(ran.path(), ["n", "b", "c"]);
    assert_eq!(ran.trace().visits[1].branch.as_deref(), Some("n/1"));
    assert_eq!(ran.trace().visits[2].branch, None);
    assert_eq!(ran.end(), (json!("completed"), json!("clean")));
}

// HV3
#[tokio::test(start_paused = true)]
async fn a_model_is_asked_once_where_no_condition_holds() {
    let asked = |to: &str| json!({"decide": {"n": [to]}});
    let edges = [
        edge_on("n", "a", "llm_decide"),
        edge_on("n", "b", "llm_decide"),
        edge_if("n", "c", "urgent"),
        edge_on("n", "c", "always"),
    ];
    let document = fan(&edges);
    let ran = play(&document, json!({"urgent": false}), asked("b")).await;
    assert_eq!(ran.routes(), ["n->b: chosen by the model"]);
    assert!(ran.result().warnings.is_empty());
    let ran = play(&document, json!({"urgent": true}), asked("b")).await;
    assert_eq!(ran.routes(), ["n->c: urgent"]);
    let ran = play(&document, json!({"urgent": false}), asked("c")).await;
    assert_eq!(ran.routes(), ["n->c: fallback: the model chose \"c\", which is no choice"]);
    assert_eq!(ran.result().warnings, ["`n`: fallback: the model chose \"c\", which is no choice"]);
    let ran = play(&document, json!({"urgent": false}), json!({})).await;
    assert_eq!(ran.routes(), ["n->c: fallback: the script has no choice of a model at `n`"]);
}

// HV3
#[tokio::test(start_paused = true)]
async fn the_fallback_is_a_success_edge_or_no_edge() {
    let document = fan(&[edge_on("n", "a", "llm_decide"), edge("n", "b"), edge("a", "c"), edge("b", "c")]);
    let ran = play(&document, json!({}), json!({"decide": {"n": ["a"]}})).await;
    assert_eq!(ran.visited(), ["a", "b", "c", "n"]);
    let ran = play(&document, json!({}), json!({})).await;
    assert_eq!(ran.path(), ["n", "b", "c"]);
    assert_eq!((ran.end().1, ran.result().warnings.len()), (json!("clean"), 1));
    let ran =
        play(&fan(&[edge_on("n", "a", "llm_decide"), edge_on("n", "b", "on_failure")]), json!({}), json!({}))
            .await;
    assert_eq!(ran.path(), ["n"]);
    assert_eq!(ran.end(), (json!("no_match"), json!("clean")));
    assert_eq!(ran.result().warnings.len(), 1);
}

// HV4
#[tokio::test(start_paused = true)]
async fn a_failure_takes_the_first_failure_edge_or_the_first_always_edge() {
    let failing = json!({"nodes": {"n": [{"fail": "away"}]}});
    let edges = [
        edge("n", "a"),
        edge("a", "b"),
        edge_on("n", "b", "on_failure"),
        first(edge_on("n", "c", "on_failure"), 1),
    ];
    let ran = play(&fan(&edges), json!({}), failing.clone()).await;
    assert_eq!((ran.path(), ran.end()), (vec!["n", "c"], (json!("completed"), json!("degraded"))));
    let ran = play(
        &fan(&[edge("n", "a"), edge_on("n", "b", "always"), edge("a", "c"), edge("b", "c")]),
        json!({}),
        failing.clone(),
    )
    .await;
    assert_eq!(ran.path(), ["n", "b", "c"]);
    let node = with(function("n", &[]), json!({"max_retries": 2}));
    let document = hive(&graph(&[node, function("a", &[])], &[edge("n", "a")]));
    let failing = json!({"nodes": {"n": [{"fail": "gone"}, {"fail": "away"}]}});
    let ran = play(&document, json!({}), failing).await;
    let failure = ran.failure();
    assert_eq!(failure.node.as_deref(), Some("n"));
    let text = failure.to_string();
    assert!(["`n`", "2 attempts", "away"].iter().all(|part| text.contains(part)), "{text}");
}

// HV4
#[tokio::test(start_paused = true)]
async fn the_failure_of_a_terminal_node_is_handled_too() {
    let document = with(
        graph(&[function("n", &[]), function("a", &[])], &[edge_on("n", "a", "on_failure"), edge("n", "n")]),
        json!({"terminal_nodes": ["n"]}),
    );
    let ran = play(&hive(&document), json!({}), json!({"nodes": {"n": [{"fail": "away"}]}})).await;
    assert_eq!(ran.path(), ["n", "a"]);
}

// HV7
#[tokio::test(start_paused = true)]
async fn a_terminal_node_ends_its_walk_whatever_edges_it_has() {
    let nodes = [function("n", &[]), function("a", &[])];
    let document =
        hive(&with(graph(&nodes, &[edge("n", "a"), edge("a", "n")]), json!({"terminal_nodes": ["a"]})));
    let ran = play(&document, json!({}), json!({})).await;
    assert_eq!(ran.path(), ["n", "a"]);
    assert_eq!((ran.result().status, &*ran.result().at), (GraphStatus::Completed, "a"));
}

// HV7
#[tokio::test(start_paused = true)]
async fn a_node_none_of_whose_edges_is_taken_ends_its_walk_without_a_match() {
    let ran = play(&fan(&[edge_if("n", "a", "ok")]), json!({"ok": 0}), json!({})).await;
    assert_eq!(ran.path(), ["n"]);
    assert_eq!(ran.end(), (json!("no_match"), json!("clean")));
    assert_eq!(*ran.memory(), json!({"ok": 0}));
}

// HV9
#[tokio::test(start_paused = true)]
async fn a_mapping_writes_values_of_the_result_or_else_of_memory() {
    let mapping = json!({"input_mapping": {"x": "own", "y": "old", "z": "absent", "own": "old"}});
    let document = fan(&[with(edge("n", "a"), mapping)]);
    let ran = play(&document, json!({"old": 1}), json!({"nodes": {"n": [{"data": {"own": 2}}]}})).await;
    assert_eq!(*ran.memory(), json!({"old": 1, "own": 1, "x": 2, "y": 1}));
}

// HV9
#[tokio::test(start_paused = true)]
async fn the_mapping_of_a_chosen_edge_and_of_a_failure_is_written_too() {
    let mapping = json!({"input_mapping": {"x": "old"}});
    let document = fan(&[
        with(edge_on("n", "a", "llm_decide"), mapping.clone()),
        with(edge_on("n", "b", "on_failure"), mapping),
    ]);
    let ran = play(&document, json!({"old": 1}), json!({"decide": {"n": ["a"]}})).await;
    assert_eq!((ran.path(), ran.memory()), (vec!["n", "a"], &json!({"old": 1, "x": 1})));
    let ran = play(&document, json!({"old": 1}), json!({"nodes": {"n": [{"fail": "away"}]}})).await;
    assert_eq!((ran.path(), ran.memory()), (vec!["n", "b"], &json!({"old": 1, "x": 1})));
}

// HV11
#[tokio::test(start_paused = true)]
async fn conditions_read_output_memory_and_keys_and_empty_values_are_false() {
    let data = json!({"result": "Yes ", "memory": "mine", "items": []});
    let script = json!({"nodes": {"n": [{"data": data}]}});
    let holds = async |condition: &str| {
        let ran = play(
            &fan(&[edge_if("n", "a", condition), edge_on("n", "b", "always")]),
            json!({"k": 1, "output": 9}),
            script.clone(),
        )
        .await;
        (ran.path()[1] == "a", ran.result().warnings.len())
    };
    for condition in [
        "output.result == result and memory.k == k",
        "str(result).lower().strip() == 'yes'",
        "output.memory == 'mine' and memory.memory == 'mine'",
        "memory.get('absent', None) is None",
        "not items and result",
        "memory['output'] == 9",
    ] {
        assert_eq!(holds(condition).await, (true, 0), "{condition}");
    }
    assert_eq!(holds("items").await, (false, 0));
    for condition in ["absent", "absent == None", "k > 'text'", "output.absent.more"] {
        assert_eq!(holds(condition).await, (false, 1), "{condition}");
    }
}

// HV3
#[tokio::test(start_paused = true)]
async fn a_dry_run_ends_before_a_choice() {
    let document = fan(&[edge_if("n", "a", "ok"), edge("n", "b")]);
    let script = ScriptedExecutor::from_json(&json!({})).unwrap();
    let engine = engine(&document, &Registry::new().script(script), &VirtualClock::new());
    let run = GraphRun::start_with(&engine, "agent", json!({}), GraphOptions::new().dry_run()).await.unwrap();
    let result = run.outcome().await.unwrap();
    assert_eq!(result.status, GraphStatus::DryRun);
    assert_eq!(result.candidates, ["n->a", "n->b"]);
}
