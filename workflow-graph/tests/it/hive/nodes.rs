//! Memory and the work of nodes: HV1, HV2, HV5, HV6, HV10.

use std::time::Duration;

use serde_json::{Value, json};
use workflow_graph::{GraphRun, NodeContext, NodeError, Registry, ScriptedExecutor, VisitStatus};
use workflow_testkit::VirtualClock;

use super::support::{agent, edge, edge_if, edge_on, engine, function, graph, hive, play, run, with};

async fn seen(input: Value, _: NodeContext) -> Result<Value, NodeError> {
    Ok(json!({"seen": input}))
}

// HV1
#[tokio::test(start_paused = true)]
async fn nodes_receive_the_keys_they_name_and_write_what_they_return() {
    let nodes = [
        with(function("one", &["seen"]), json!({"input_keys": ["a", "absent"]})),
        with(function("two", &["other"]), json!({"input_keys": []})),
    ];
    let document = hive(&graph(&nodes, &[edge("one", "two")]));
    let registry =
        Registry::new().function("one", seen).function("two", |input: Value, _: NodeContext| async move {
            Ok::<_, NodeError>(json!({"other": input, "b": 3}))
        });
    let ran = run(&document, json!({"a": 1, "b": 2}), &registry).await;
    let memory = json!({"a": 1, "b": 3, "seen": {"a": 1}, "other": {"a": 1, "b": 2, "seen": {"a": 1}}});
    assert_eq!(*ran.memory(), memory);
    assert_eq!(ran.result().warnings, ["`two`: the result has `b`, and `output_keys` does not"]);
}

// HV1
#[tokio::test(start_paused = true)]
async fn a_result_that_is_no_map_is_written_under_its_key() {
    let nodes = [function("one", &["count"]), function("two", &[])];
    let document = hive(&graph(&nodes, &[edge_if("one", "two", "result == 7 and count == 7")]));
    let ran =
        play(&document, json!({}), json!({"nodes": {"one": [{"data": 7}], "two": [{"data": "x"}]}})).await;
    assert_eq!(*ran.memory(), json!({"count": 7, "result": "x"}));
}

// HV1
#[tokio::test(start_paused = true)]
async fn the_input_of_a_run_is_a_map() {
    let document = hive(&graph(&[function("one", &[])], &[]));
    let engine = engine(&document, &Registry::new().function("one", seen), &VirtualClock::new());
    assert!(GraphRun::start(&engine, "agent", json!([1])).await.is_err());
}

// HV2
#[tokio::test(start_paused = true)]
async fn a_result_without_a_declared_value_is_a_failure_that_names_the_key() {
    for lacking in [json!({"b": 1}), json!({"a": null, "b": 1}), json!({"a": "  ", "b": 1})] {
        let nodes = [with(function("one", &["a", "b", "c"]), json!({"nullable_output_keys": ["c"]}))];
        let script = json!({"nodes": {"one": [{"data": lacking}]}});
        let ran = play(&hive(&graph(&nodes, &[])), json!({}), script).await;
        let failure = ran.failure().to_string();
        assert!(failure.contains("the result of `one` has no value for `a`"), "{failure}");
    }
    let ran =
        play(&hive(&graph(&[with(agent("one"), json!({"output_keys": ["a"]}))], &[])), json!({}), json!({}))
            .await;
    assert_eq!(ran.end().0, "completed");
}

// HV2
#[tokio::test(start_paused = true)]
async fn nullable_keys_are_null_again_on_a_later_visit() {
    let nodes = [
        with(function("one", &["note"]), json!({"nullable_output_keys": ["note"], "input_keys": ["note"]})),
        function("two", &[]),
    ];
    let edges = [edge_if("one", "one", "note != None"), edge_on("one", "two", "always")];
    let script = json!({"nodes": {"one": [{"data": {"note": "again"}}, {"data": {}}]}});
    let ran = play(&hive(&graph(&nodes, &edges)), json!({}), script).await;
    assert_eq!(ran.path(), ["one", "one", "two"]);
    assert_eq!(*ran.memory(), json!({"note": null}));
}

// HV5
#[tokio::test(start_paused = true)]
async fn max_retries_counts_attempts_for_errors_and_for_results_that_are_failures() {
    let attempts =
        |attempts: u32| graph(&[with(function("one", &["a"]), json!({"max_retries": attempts}))], &[]);
    let script =
        json!({"nodes": {"one": [{"fail": "away"}, {"data": {}}, {"data": {}}, {"data": {"a": 1}}]}});
    let ran = play(&hive(&attempts(4)), json!({}), script.clone()).await;
    assert_eq!((ran.end().0, ran.elapsed), (json!("completed"), Duration::from_secs(7)));
    assert_eq!(ran.trace().visits[0].attempts, 4);
    let ran = play(&hive(&attempts(3)), json!({}), script.clone()).await;
    assert_eq!((ran.end().0, ran.elapsed), (json!("failed"), Duration::from_secs(3)));
    let ran = play(&hive(&attempts(0)), json!({}), script).await;
    assert_eq!((ran.end().0, ran.trace().visits[0].attempts), (json!("failed"), 1));
}

// HV5
#[tokio::test(start_paused = true)]
async fn each_visit_has_attempts_of_its_own_and_agents_have_one() {
    let nodes = [
        with(function("one", &[]), json!({"max_retries": 2})),
        with(agent("two"), json!({"max_retries": 9})),
    ];
    let edges = [edge("one", "two"), edge_if("two", "one", "again")];
    let script = json!({"nodes": {
        "one": [{"fail": "away"}, {"data": {}}, {"fail": "away"}, {"data": {}}],
        "two": [{"data": {"again": true}}, {"fail": "tired", "class": "transient"}],
    }});
    let ran = play(&hive(&graph(&nodes, &edges)), json!({}), script).await;
    let attempts: Vec<_> = ran.trace().visits.iter().map(|visit| (&*visit.node, visit.attempts)).collect();
    assert_eq!(attempts, [("one", 2), ("two", 1), ("one", 2), ("two", 1)]);
    assert_eq!(ran.end().0, "failed");
}

// HV6
#[tokio::test(start_paused = true)]
async fn a_visit_beyond_max_node_visits_is_skipped_with_memory_as_its_result() {
    let nodes = [
        with(function("one", &[]), json!({"max_node_visits": 1, "nullable_output_keys": ["n"]})),
        function("two", &[]),
        function("three", &[]),
    ];
    let edges = [
        edge_if("one", "two", "'n' in output and not output.get('late', False)"),
        edge_if("one", "three", "output.late"),
        edge("two", "one"),
    ];
    let script = json!({"nodes": {"one": [{"data": {"n": 1}}], "two": [{"data": {"late": true}}]}});
    let ran = play(&hive(&graph(&nodes, &edges)), json!({}), script).await;
    assert_eq!(ran.path(), ["one", "two", "one", "three"]);
    assert!(ran.trace().visits[2].kept && !ran.trace().visits[0].kept);
    assert_eq!(*ran.memory(), json!({"n": 1, "late": true}));
    assert_eq!(ran.end(), (json!("completed"), json!("clean")));
}

// HV10
#[tokio::test(start_paused = true)]
async fn a_pause_shows_memory_and_writes_the_reply() {
    let nodes = [
        with(function("ask", &["draft"]), json!({"description": "Is it good?"})),
        function("send", &[]),
        function("mend", &[]),
    ];
    let edges = [edge_if("ask", "send", "good"), edge_if("ask", "mend", "not good")];
    let document = hive(&with(graph(&nodes, &edges), json!({"pause_nodes": ["ask"]})));
    let script = ScriptedExecutor::from_json(&json!({"nodes": {"ask": [{"data": {"draft": "d"}}]}})).unwrap();
    let engine = engine(&document, &Registry::new().script(script), &VirtualClock::new());
    let run = GraphRun::start(&engine, "agent", json!({"to": "Ada"})).await.unwrap();
    run.settled().await;
    let gates = run.gates().await.unwrap();
    assert_eq!(gates[0].text, "The run pauses after `ask`: Is it good?");
    assert_eq!(gates[0].memory, Some(json!({"to": "Ada", "draft": "d"})));
    assert_eq!(gates[0].schema, Some(json!({"type": "object"})));
    let refused = run.answer(gates[0].id, "yes").await.unwrap_err().to_string();
    assert!(refused.contains("a map of keys"), "{refused}");
    run.answer(gates[0].id, json!({"good": false, "draft": "e"})).await.unwrap();
    let result = run.outcome().await.unwrap();
    let path: Vec<_> = result.trace.visits.iter().map(|visit| &*visit.node).collect();
    assert_eq!(path, ["ask", "mend"]);
    assert_eq!(result.output, json!({"to": "Ada", "draft": "e", "good": false}));
    assert_eq!(result.trace.visits[0].status, VisitStatus::Success);
}

// HV10
#[tokio::test(start_paused = true)]
async fn a_run_goes_on_at_the_entry_point_of_its_pause() {
    let nodes = [function("ask", &[]), function("skipped", &[]), function("on", &[])];
    let edges = [edge("ask", "skipped"), edge("on", "skipped")];
    let more = json!({"pause_nodes": ["ask"], "terminal_nodes": ["ask"], "entry_points": {"start": "ask", "ask_resume": "on"}});
    let document = hive(&with(graph(&nodes, &edges), more));
    let ran = play(&document, json!({}), json!({"replies": {"ask": [{"yes": 1}]}})).await;
    assert_eq!(ran.path(), ["ask", "on", "skipped"]);
    assert_eq!(*ran.memory(), json!({"yes": 1}));
}

// HV10
#[tokio::test(start_paused = true)]
async fn a_failed_pause_node_asks_nobody() {
    let nodes = [function("ask", &[]), function("help", &[])];
    let edges = [edge_on("ask", "help", "on_failure")];
    let document = hive(&with(graph(&nodes, &edges), json!({"pause_nodes": ["ask"]})));
    let ran = play(&document, json!({}), json!({"nodes": {"ask": [{"fail": "away"}]}})).await;
    assert_eq!(ran.path(), ["ask", "help"]);
    assert_eq!(ran.end(), (json!("completed"), json!("degraded")));
}

// HV2
#[tokio::test(start_paused = true)]
async fn a_node_that_a_script_leaves_out_need_not_leave_its_values() {
    let nodes = [function("ask", &["topic"]), with(function("tell", &[]), json!({"input_keys": ["topic"]}))];
    let document = hive(&with(graph(&nodes, &[edge("ask", "tell")]), json!({"pause_nodes": ["ask"]})));
    let replies = json!({"ask": [{"topic": "lamps"}]});
    let ran = play(&document, json!({}), json!({"replies": replies})).await;
    assert_eq!((ran.path(), ran.memory()), (vec!["ask", "tell"], &json!({"topic": "lamps"})));
    let script = json!({"replies": replies, "nodes": {"ask": [{"data": {}}]}});
    assert_eq!(play(&document, json!({}), script).await.end().0, "failed");
}
