//! Drawings of the examples, and of runs.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::fixtures::{CHECKS, DESK, at_desk, document, graph, in_branches, report, start};
use crate::trace::Trace;

fn drawn(example: &str, expected: &Expect) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example);
    expected.assert_eq(&Document::load(path).unwrap().draw().to_mermaid());
}

/// G1
#[test]
fn routes_have_their_conditions_and_failures_are_dotted() {
    drawn(
        "refund.yaml",
        &expect![[r#"
        flowchart TD
            n_start(["start"])
            n_stop(["end"])
            n_s0["look_up<br/>function orders.find"]
            n_s1["approve<br/>human"]
            n_s2["pay<br/>function payments.refund"]
            n_s3["refuse<br/>value"]
            n_start -->|"input"| n_s0
            n_s0 -->|"input.cents #62; look_up.paid"| n_s3
            n_s0 -->|"large#58; input.cents #62;= 10000"| n_s1
            n_s0 -->|"default"| n_s2
            n_s0 --x|"on failure"| n_s3
            n_s1 -->|"approve.granted"| n_s2
            n_s1 -->|"default"| n_s3
            n_s1 --x|"on failure"| n_s3
            n_s2 -->|"end"| n_stop
            n_s3 -->|"end"| n_stop
    "#]],
    );
}

/// G1
#[test]
fn bounded_routes_say_their_bound() {
    drawn(
        "draft-loop.yaml",
        &expect![[r#"
        flowchart TD
            n_start(["start"])
            n_stop(["end"])
            n_s0["draft<br/>agent"]
            n_s1["review<br/>agent, model small"]
            n_s2["publish<br/>value"]
            n_s3["shelve<br/>value"]
            n_start -->|"input"| n_s0
            n_s0 -->|"next"| n_s1
            n_s1 -->|"review.score #62;= 0.8"| n_s2
            n_s1 -->|"default, max 2"| n_s0
            n_s1 -->|"default"| n_s3
            n_s2 -->|"end"| n_stop
            n_s3 -->|"end"| n_stop
    "#]],
    );
}

/// G1
#[test]
fn branches_lie_in_a_box_and_the_join_gathers_them() {
    drawn(
        "release-checks.yaml",
        &expect![[r#"
        flowchart TD
            n_start(["start"])
            n_stop(["end"])
            n_s0["collect<br/>function changes.collect"]
            n_s5["decide<br/>value, joins the branches of collect"]
            subgraph b0 ["each branch of collect"]
                n_s1["licences<br/>function licences.scan"]
                n_s2["tests<br/>function ci.unit"]
                n_s3["integration<br/>function ci.integration"]
                n_s4["security<br/>human"]
            end
            n_start -->|"input"| n_s0
            n_s0 -->|"branch"| n_s1
            n_s0 -->|"branch"| n_s2
            n_s0 -->|"branch if collect.touches_auth"| n_s4
            n_s1 ==>|"gather branches of collect"| n_s5
            n_s2 -->|"next"| n_s3
            n_s3 ==>|"gather branches of collect"| n_s5
            n_s4 ==>|"gather branches of collect"| n_s5
            n_s5 -->|"end"| n_stop
    "#]],
    );
}

/// G1
#[test]
fn children_and_items_are_nodes() {
    drawn(
        "thumbnails.yaml",
        &expect![[r#"
        flowchart TD
            n_start(["start"])
            n_stop(["end"])
            n_s0["shrink<br/>graph thumbnail, for each file of input.files<br/>2 at a time"]
            n_s1["report<br/>value"]
            n_start -->|"input"| n_s0
            n_s0 -->|"next"| n_s1
            n_s1 -->|"end"| n_stop
    "#]],
    );
}

/// G1
#[test]
fn every_other_form_of_a_route_is_drawn() {
    let text = "
graph: all
defaults: {on_no_match: end}
nodes:
  a: {value: 1, max_visits: 2, requires: [has(input.x)], on_failure: [{when: error.class == 'tool', to: b}, {to: end}], next: {decide: Which?, choices: [{to: b, about: it is new}, {to: c-d}], otherwise: end}}
  b: {command: [git, status], on_failure: continue, next: [{when: input.y > 1, to: c-d, id: many}]}
  c-d: {tool: search, description: Looks it up.}
";
    expect![[r##"
        digraph "all" {
            rankdir=TB; node [shape=box, style=rounded, fontname="sans-serif"]; edge [fontname="sans-serif"];
            "start" [label="start", shape=oval];
            "stop" [label="end", shape=oval];
            "s0" [label="a\nvalue\nif has(input.x)\nat most twice", shape=hexagon];
            "s1" [label="b\ncommand git, continues after a failure"];
            "s2" [label="c-d\ntool search: Looks it up."];
            "start" -> "s0" [label="input"];
            "s0" -> "s1" [label="it is new"];
            "s0" -> "s2" [label="choice"];
            "s0" -> "stop" [label="otherwise"];
            "s0" -> "s1" [label="on failure, error.class == 'tool'", style=dotted, color="#cc0000"];
            "s0" -> "stop" [label="on failure", style=dotted, color="#cc0000"];
            "s1" -> "s2" [label="many: input.y > 1"];
            "s1" -> "stop" [label="no route holds"];
            "s2" -> "stop" [label="end"];
        }
    "##]]
    .assert_eq(&document(text).draw().to_dot());
}

/// G1
#[tokio::test]
async fn a_run_over_a_drawing_counts_visits_and_routes() {
    let document = document(DESK);
    let run = start("desk", json!({"cents": 5}), at_desk, None).await;
    let trace = Trace::of(graph(&document), &*report(&run).await);
    expect![[r#"
        flowchart TD
            n_start(["start"])
            n_stop(["end"])
            n_s0["look_up<br/>function orders.find<br/>ran ×2"]
            n_s1["approve<br/>human<br/>did not run"]
            n_s2["pay<br/>function bank.pay<br/>ran ×1"]
            n_s3["refuse<br/>value<br/>did not run"]
            n_start -->|"input"| n_s0
            n_s0 -->|"large#58; input.cents #62; input.limit"| n_s1
            n_s0 -->|"vars.tries #60; 2, max 3 (taken ×1)"| n_s0
            n_s0 -->|"default (taken ×1)"| n_s2
            n_s0 --x|"on failure"| n_s3
            n_s1 -->|"approve.granted"| n_s2
            n_s1 -->|"default"| n_s3
            n_s2 -->|"end"| n_stop
            n_s3 -->|"end"| n_stop
            classDef ran fill:#dfd,stroke:#080
            class n_s0,n_s2 ran
            classDef idle fill:#eee,stroke:#999,stroke-dasharray:4
            class n_s1,n_s3 idle
    "#]]
    .assert_eq(&draw_run(graph(&document), &trace).to_mermaid());
}

/// G1, G14
#[tokio::test]
async fn a_run_over_a_drawing_counts_branches_and_failures() {
    let document = document(CHECKS);
    let run = start("checks", json!({}), in_branches, None).await;
    let trace = Trace::of(graph(&document), &*report(&run).await);
    expect![[r#"
        flowchart TD
            n_start(["start"])
            n_stop(["end"])
            n_s0["collect<br/>function changes.collect<br/>ran ×1"]
            n_s4["decide<br/>value, joins the branches of collect<br/>ran ×1"]
            subgraph b0 ["each branch of collect#58; 2"]
                n_s1["scan<br/>function scan<br/>ran ×1, 1 failed"]
                n_s2["test<br/>function test<br/>ran ×1"]
                n_s3["audit<br/>function audit<br/>did not run"]
            end
            n_start -->|"input"| n_s0
            n_s0 -->|"branch (taken ×1)"| n_s1
            n_s0 -->|"branch (taken ×1)"| n_s2
            n_s0 -->|"branch if collect.auth"| n_s3
            n_s1 ==>|"gather branches of collect"| n_s4
            n_s2 ==>|"gather branches of collect (taken ×1)"| n_s4
            n_s3 ==>|"gather branches of collect"| n_s4
            n_s4 -->|"end"| n_stop
            classDef failed fill:#fdd,stroke:#c00
            class n_s1 failed
            classDef ran fill:#dfd,stroke:#080
            class n_s0,n_s2,n_s4 ran
            classDef idle fill:#eee,stroke:#999,stroke-dasharray:4
            class n_s3 idle
    "#]]
    .assert_eq(&draw_run(graph(&document), &trace).to_mermaid());
}
