//! Refused documents: every code, with its text.

use expect_test::{Expect, expect};
use serde_json::json;
use workflow_graph::{Document, Format, HiveOptions};

use super::support::{edge, edge_if, function, graph, hive, play, with};
use crate::support::lines;

fn refused(text: &str, expected: &Expect) {
    let format = Format::Hive(HiveOptions::new());
    let error = Document::parse_as(text, "agent.json", format).unwrap_err();
    expected.assert_eq(&lines(&error.problems));
}

// HV3
#[test]
fn unknown_conditions_and_node_types_are_unsupported() {
    let text = r#"{"id": "a", "entry_node": "x",
"nodes": [{"id": "x", "node_type": "router"}, {"id": "y"}, {"id": "z"}],
"edges": [{"source": "y", "target": "z", "condition": "on_sucess"}, {"source": "y", "target": "z", "condition": "maybe"}]}"#;
    refused(
        text,
        &expect![[r#"
            agent.json:2:36: error[unsupported]: nodes of the type `router` cannot be run; write `event_loop` for an agent, or `function`
            agent.json:2:54: warning[unreachable-node]: no route from `x`, where runs start, leads to `y`; lead a route to it, or remove it
            agent.json:3:55: error[unsupported]: edges have no condition `on_sucess`; did you mean `on_success`?
            agent.json:3:113: error[unsupported]: edges have no condition `maybe`; write `on_success`, `always`, `on_failure`, `conditional` or `llm_decide`
        "#]],
    );
}

#[test]
fn two_nodes_of_one_id_are_a_duplicate_key() {
    let text = r#"{"id": "a", "entry_node": "x", "edges": [],
"nodes": [{"id": "x"}, {"id": "x"}]}"#;
    refused(
        text,
        &expect![[r#"
        agent.json:2:31: error[duplicate-key]: two nodes have the id `x`, the first in line 2; rename one of them
    "#]],
    );
}

#[test]
fn required_keys_are_asked_for_all_at_once() {
    refused(
        r#"{"nodes": [{"name": "x"}], "edges": [{"id": "e"}]}"#,
        &expect![[r#"
        agent.json:1:1: error[missing-key]: a graph needs the key `id`; add `id`
        agent.json:1:1: error[missing-key]: a graph needs the key `entry_node`; add `entry_node`
        agent.json:1:12: error[missing-key]: a node needs the key `id`; add `id`
        agent.json:1:38: error[missing-key]: an edge needs the key `source`; add `source`
        agent.json:1:38: error[missing-key]: an edge needs the key `target`; add `target`
    "#]],
    );
    refused(
        r#"{"id": "a", "entry_node": "x", "nodes": [], "edges": []}"#,
        &expect![[r#"
        agent.json:1:41: error[missing-key]: the graph has no node; add one to `nodes`
    "#]],
    );
    refused(
        "{}",
        &expect![[r#"
        agent.json:1:1: error[missing-key]: a graph needs the key `id`; add `id`
        agent.json:1:1: error[missing-key]: a graph needs the key `entry_node`; add `entry_node`
        agent.json:1:1: error[missing-key]: a graph needs the key `nodes`; add `nodes`
        agent.json:1:1: error[missing-key]: a graph needs the key `edges`; add `edges`
    "#]],
    );
}

#[test]
fn values_of_another_type_are_reported_where_they_stand() {
    let text = r#"{"id": "a", "entry_node": "x", "max_steps": "ten", "conversation_mode": "shared", "pause_nodes": "x",
"nodes": [{"id": "x", "max_retries": -1, "input_keys": "k"}, 7],
"edges": [{"source": "x", "target": "x", "priority": "high", "input_mapping": ["k"]}, "x->x"],
"entry_points": ["x"]}"#;
    refused(
        text,
        &expect![[r#"
        agent.json:1:45: error[wrong-type]: `max_steps` is a whole number from 1 to 100000, and this is the text `ten`; write a whole number from 1 to 100000
        agent.json:1:73: error[wrong-type]: `conversation_mode` is `continuous` or `isolated`, and this is `shared`; write `continuous` or `isolated`
        agent.json:1:98: error[wrong-type]: `pause_nodes` is a list, and this is the text `x`; write a list
        agent.json:2:38: error[wrong-type]: `max_retries` is a whole number from 0 to 1000, and this is -1; write a whole number from 0 to 1000
        agent.json:2:56: error[wrong-type]: `input_keys` is a list, and this is the text `k`; write a list
        agent.json:2:62: error[wrong-type]: a node is a map, and this is the number 7; write a map
        agent.json:3:54: error[wrong-type]: `priority` is a whole number, and this is the text `high`; write a whole number
        agent.json:3:79: error[wrong-type]: `input_mapping` is a map of texts, and this is a list; write a map of texts
        agent.json:3:87: error[wrong-type]: an edge is a map, and this is the text `x->x`; write a map
        agent.json:4:17: error[wrong-type]: `entry_points` is a map of texts, and this is a list; write a map of texts
    "#]],
    );
    refused(
        r#"{"graph": 7}"#,
        &expect![[r#"
        agent.json:1:11: error[wrong-type]: `graph` is a map, and this is the number 7; write a map
    "#]],
    );
    refused(
        "[1]",
        &expect![[r#"
        agent.json:1:1: error[wrong-type]: a Hive agent is a map, and this is a list; write a map
    "#]],
    );
}

#[test]
fn names_of_no_node_are_unknown() {
    let text = r#"{"id": "a", "entry_node": "strat", "terminal_nodes": ["ende"], "pause_nodes": ["paus"], "entry_points": {"start_resume": "stert"},
"nodes": [{"id": "start"}, {"id": "end"}],
"edges": [{"source": "start", "target": "endd"}, {"source": "begin", "target": "end"}]}"#;
    refused(
        text,
        &expect![[r#"
        agent.json:1:27: error[unknown-start]: `entry_node` is `strat`, and the graph has no such node; did you mean `start`?
        agent.json:1:55: error[unknown-node]: `terminal_nodes` has `ende`, and the graph has no such node; did you mean `end`?
        agent.json:1:80: error[unknown-node]: `pause_nodes` has `paus`, and the graph has no such node; add the node, or name another
        agent.json:1:122: error[unknown-node]: the entry point `start_resume` is `stert`, and the graph has no such node; did you mean `start`?
        agent.json:3:41: error[unknown-node]: an edge of `start` leads to `endd`, and the graph has no such node; did you mean `end`?
        agent.json:3:61: error[unknown-node]: an edge begins at `begin`, and the graph has no such node; add the node, or name another
    "#]],
    );
}

#[test]
fn bad_ids_and_names_are_reported() {
    refused(
        r#"{"id": "1 agent", "entry_node": "x", "nodes": [{"id": "x y"}, {"id": "x"}], "edges": []}"#,
        &expect![[r#"
            agent.json:1:8: error[bad-name]: `1 agent` is no name of a graph; begin with a letter and use at most 64 letters, digits, `.`, `_` and `-`
            agent.json:1:55: error[bad-name]: `x y` is no id of a node; begin with a letter or `_` and use at most 64 letters, digits, `_` and `-`
            agent.json:1:55: warning[unreachable-node]: no route from `x`, where runs start, leads to `x y`; lead a route to it, or remove it
        "#]],
    );
}

// HV11
#[test]
fn a_text_that_is_no_expression_is_located() {
    let text = r#"{"id": "a", "entry_node": "x", "nodes": [{"id": "x"}, {"id": "y"}],
"edges": [{"source": "x", "target": "y", "condition": "conditional", "condition_expr": "output.ok = True"}]}"#;
    refused(
        text,
        &expect![[r#"
        agent.json:2:99: error[bad-expression]: `=` has no meaning in expressions; to compare, write `==`; nothing is assigned in expressions
    "#]],
    );
}

#[test]
fn a_second_document_in_the_file_is_unsupported() {
    let text = "id: a\nentry_node: x\nnodes: [{id: x}]\nedges: []\n---\nid: b\n";
    refused(
        text,
        &expect![[r#"
        agent.json:6:1: error[unsupported]: a Hive file has one agent, and this is a second document; move it to a file of its own
    "#]],
    );
}

// HV14
#[test]
fn nodes_at_which_a_program_may_begin_and_those_behind_terminal_nodes_are_no_problem() {
    let nodes = ["x", "behind", "entry", "webhook", "pause", "helper"].map(|id| function(id, &[]));
    let mut document = with(
        graph(&nodes, &[edge("x", "behind")]),
        json!({
            "terminal_nodes": ["x"], "pause_nodes": ["pause"], "entry_points": {"retry": "entry"},
            "async_entry_points": [{"id": "w", "entry_node": "webhook", "trigger_type": "webhook"}],
        }),
    );
    document["nodes"][0]["sub_agents"] = json!(["helper"]);
    assert!(hive(&document).warnings().is_empty());
}

// HV14
#[tokio::test(start_paused = true)]
async fn a_node_that_nothing_leads_to_is_a_warning_and_the_rest_runs() {
    let nodes = [function("x", &["k"]), function("y", &[]), function("lost", &[])];
    let document = hive(&graph(&nodes, &[edge("x", "y"), edge("lost", "y")]));
    expect![[r#"
        agent.json:1:301: warning[unreachable-node]: no route from `x`, where runs start, leads to `lost`; lead a route to it, or remove it
    "#]]
    .assert_eq(&lines(document.warnings()));
    let ran = play(&document, json!({}), json!({"nodes": {"x": [{"data": {"k": 1}}]}})).await;
    assert_eq!((ran.path(), ran.end()), (vec!["x", "y"], (json!("completed"), json!("clean"))));
}

// HV13
#[test]
fn forms_of_hive_documents_that_are_not_read_are_refused_by_their_names() {
    let earlier = r#"{"goal": {"goal_id": "hello"},
"nodes": [{"node_id": "echo", "node_type": "function", "function": "echo"}],
"edges": [{"edge_id": "a", "source": "START", "target": "echo"}, {"edge_id": "b", "source": "echo", "target": "END"}]}"#;
    let named = r#"{"entry_node": "greet", "nodes": [{"id": "greet"}],
"edges": [{"source": "START", "target": "greet"}, {"source": "greet", "target": "END"}]}"#;
    let listed = "nodes:\n  - name: enrich\n    type: python\n    entrypoint: agent.enrich\nedges:\n  - from: enrich\n    to: score\n";
    let mut found = String::new();
    for text in [earlier, named, listed] {
        found += &lines(&Document::parse(text, "agent.json").unwrap_err().problems);
    }
    expect![[r#"
        agent.json:2:11: error[unsupported]: a Hive document of the form `node_id`/`START` is not read: it is one of an earlier version; write `id` for `node_id`, `entry_node` for the edges from `START`, and `terminal_nodes` for those to `END`
        agent.json:2:11: error[unsupported]: a Hive document of the form `node_id`/`START` is not read: it is one of an earlier version; write `id` for `node_id`, `entry_node` for the edges from `START`, and `terminal_nodes` for those to `END`
        agent.json:2:5: error[unsupported]: a Hive document of the form list-YAML, whose nodes have `name` and `entrypoint`, is not read; write `id`, `entry_node`, nodes with `id`, `node_type: function` and `function`, and edges with `source` and `target`
    "#]].assert_eq(&found);
}

// HV8
#[test]
fn branches_that_meet_in_two_places_have_no_join() {
    let text = r#"{"id": "a", "entry_node": "n",
"nodes": [{"id": "n"}, {"id": "a"}, {"id": "b"}, {"id": "x"}, {"id": "y"}],
"edges": [{"source": "n", "target": "a"}, {"source": "n", "target": "b"},
{"source": "a", "target": "x"}, {"source": "b", "target": "x", "condition": "conditional", "condition_expr": "ok"},
{"source": "b", "target": "y", "condition": "conditional"}, {"source": "a", "target": "y", "condition": "on_failure"}]}"#;
    refused(
        text,
        &expect![[r#"
            agent.json:2:18: error[no-common-join]: the branches of `n` that begin with `a` and `b` both lead to `x`, which would run in each; let all branches meet in one node, or end them before
        "#]],
    );
}

#[test]
fn keys_of_exports_tell_the_format_and_null_is_absent() {
    let node = with(
        function("x", &[]),
        json!({"system_prompt": null, "model": null, "success_criteria": "Well done."}),
    );
    let document = graph(&[node], &[]);
    assert_eq!(Document::parse(&document.to_string(), "a.json").unwrap().name(), "agent");
    let export = json!({"agent": {"id": "a"}, "graph": document, "goal": {"id": "g"}, "required_tools": [], "metadata": {}});
    assert_eq!(Document::parse(&export.to_string(), "a.json").unwrap().name(), "agent");
}

#[test]
fn cycles_need_no_bound() {
    let nodes = [function("x", &[]), function("y", &[])];
    let document = hive(&graph(&nodes, &[edge("x", "y"), edge_if("y", "x", "l"), edge_if("y", "y", "k")]));
    assert!(document.warnings().is_empty());
}
