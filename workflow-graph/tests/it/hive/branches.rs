//! Branches: HV8.

use serde_json::{Value, json};
use workflow_graph::{BranchConflicts, BranchFailures, HiveOptions};

use super::support::{edge, edge_on, function, graph, hive_with, play, with};

fn diamond() -> Value {
    let nodes = ["n", "long", "more", "short", "meet"].map(|id| function(id, &[]));
    let edges = [
        edge("n", "long"),
        edge("n", "short"),
        edge("long", "more"),
        edge("more", "meet"),
        edge("short", "meet"),
    ];
    graph(&nodes, &edges)
}

// HV8
#[tokio::test(start_paused = true)]
async fn branches_of_any_length_meet_once_and_write_in_the_order_of_their_ends() {
    let script = json!({"nodes": {
        "long": [{"data": {"k": "long", "l": 1}}],
        "more": [{"data": {"m": 1}, "after": "1s"}],
        "short": [{"data": {"k": "short"}}],
    }});
    for (conflicts, k) in [(BranchConflicts::LastWins, "long"), (BranchConflicts::FirstWins, "short")] {
        let document = hive_with(&diamond(), HiveOptions::new().conflicts(conflicts));
        let ran = play(&document, json!({"k": "old"}), script.clone()).await;
        assert_eq!(ran.visited(), ["long", "meet", "more", "n", "short"]);
        assert_eq!(*ran.memory(), json!({"k": k, "l": 1, "m": 1}));
    }
    let document = hive_with(&diamond(), HiveOptions::new().conflicts(BranchConflicts::Error));
    let ran = play(&document, json!({}), script).await;
    let failure = ran.failure().to_string();
    assert!(
        failure.contains("the branches that begin with `long` and `short` both write the key `k`"),
        "{failure}"
    );
}

// HV8
#[tokio::test(start_paused = true)]
async fn a_failed_branch_writes_nothing_and_degrades_the_run() {
    let script = json!({"nodes": {"long": [{"data": {"k": 1}}], "more": [{"fail": "away"}], "short": [{"data": {"s": 1}}]}});
    for failures in [BranchFailures::ContinueOthers, BranchFailures::WaitAll] {
        let document = hive_with(&diamond(), HiveOptions::new().failures(failures));
        let ran = play(&document, json!({}), script.clone()).await;
        assert_eq!(ran.end(), (json!("completed"), json!("degraded")));
        assert_eq!(*ran.memory(), json!({"s": 1}));
    }
    let document = hive_with(&diamond(), HiveOptions::new());
    assert_eq!(play(&document, json!({}), script).await.end().0, "failed");
}

// HV8
#[tokio::test(start_paused = true)]
async fn a_failure_of_branches_takes_the_failure_edge_of_the_node_that_opened_them() {
    let mut document = diamond();
    document["nodes"].as_array_mut().unwrap().push(function("help", &[]));
    document["edges"].as_array_mut().unwrap().push(edge_on("n", "help", "on_failure"));
    let script = json!({"nodes": {"n": [{"data": {"n": 1}}], "short": [{"fail": "away"}], "long": [{"data": {"k": 1}, "after": "1s"}]}});
    let ran = play(&hive_with(&document, HiveOptions::new()), json!({}), script).await;
    assert_eq!(ran.path(), ["n", "short", "help"]);
    assert_eq!(ran.end(), (json!("completed"), json!("degraded")));
    assert_eq!(*ran.memory(), json!({"n": 1}));
}

// HV8, HV9
#[tokio::test(start_paused = true)]
async fn branches_nest_and_their_mappings_are_writes_of_the_branch() {
    let nodes = ["n", "a", "a1", "a2", "a3", "b", "meet"].map(|id| function(id, &[]));
    let edges = [
        with(edge("n", "a"), json!({"input_mapping": {"who": "first"}})),
        with(edge("n", "b"), json!({"input_mapping": {"b_who": "second"}})),
        edge("a", "a1"),
        edge("a", "a2"),
        edge("a1", "a3"),
        with(edge("a2", "a3"), json!({"input_mapping": {"from_a2": "x"}})),
        edge("a3", "meet"),
        edge("b", "meet"),
    ];
    let document = hive_with(&graph(&nodes, &edges), HiveOptions::new().conflicts(BranchConflicts::Error));
    let script = json!({"nodes": {"a1": [{"data": {"y": 1}}], "a2": [{"data": {"x": 2}}], "a3": [{"data": {"y": 3}}], "b": [{"data": {"z": 4}}]}});
    let ran = play(&document, json!({"first": "f", "second": "s"}), script).await;
    let memory =
        json!({"first": "f", "second": "s", "who": "f", "b_who": "s", "from_a2": 2, "x": 2, "y": 3, "z": 4});
    assert_eq!(*ran.memory(), memory);
    assert_eq!(ran.visited(), ["a", "a1", "a2", "a3", "b", "meet", "n"]);
}

// HV8
#[tokio::test(start_paused = true)]
async fn branches_that_never_meet_leave_their_writes_in_the_output() {
    let nodes = ["n", "a", "b"].map(|id| function(id, &[]));
    let document = hive_with(&graph(&nodes, &[edge("n", "a"), edge("n", "b")]), HiveOptions::new());
    let script = json!({"nodes": {"a": [{"data": {"x": 1}}], "b": [{"data": {"y": 2}}]}});
    let ran = play(&document, json!({}), script).await;
    assert_eq!((ran.end().0, ran.memory()), (json!("completed"), &json!({"x": 1, "y": 2})));
}

// HV8
#[tokio::test(start_paused = true)]
async fn a_branch_may_end_early_where_the_others_meet() {
    let mut document = diamond();
    document["nodes"].as_array_mut().unwrap().push(function("stop", &[]));
    document["edges"].as_array_mut().unwrap().push(edge_on("short", "stop", "on_failure"));
    let document = with(document, json!({"terminal_nodes": ["stop", "meet"]}));
    let script = json!({"nodes": {"short": [{"fail": "away"}], "stop": [{"data": {"stopped": true}}]}});
    let ran = play(&hive_with(&document, HiveOptions::new()), json!({}), script).await;
    assert_eq!(ran.visited(), ["long", "meet", "more", "n", "short", "stop"]);
    assert_eq!(
        (ran.end(), ran.memory()),
        ((json!("completed"), json!("degraded")), &json!({"stopped": true}))
    );
}

// HV3, HV4, HV8
#[tokio::test(start_paused = true)]
async fn branches_that_a_model_chose_fail_like_others() {
    let nodes = ["n", "a", "b", "help"].map(|id| function(id, &[]));
    let edges = [edge_on("n", "a", "llm_decide"), edge("n", "b"), edge_on("n", "help", "on_failure")];
    let document = hive_with(&graph(&nodes, &edges), HiveOptions::new());
    let script =
        json!({"nodes": {"a": [{"fail": "away"}], "n": [{"data": {"k": 1}}]}, "decide": {"n": ["a"]}});
    let ran = play(&document, json!({}), script).await;
    assert!(ran.path().contains(&"help"), "{:?}", ran.path());
    assert_eq!((ran.end(), ran.memory()), ((json!("completed"), json!("degraded")), &json!({"k": 1})));
}
