//! Whole documents, each with its route, results, events and quality, as the rules say them.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::play::{Ran, run};

/// Everything about a run that its document decides.
fn said(ran: &Ran) -> String {
    let route = ran.result.trace.routes.iter();
    let route: Vec<_> =
        route.map(|taken| format!("{}->{} ({})", taken.from, taken.to, taken.reason)).collect();
    let visits = ran.result.trace.visits.iter();
    let visits: Vec<_> = visits.map(|visit| format!("{} {}", visit.node, visit.status)).collect();
    let results = ran.result.results.iter();
    let results: Vec<_> = results.map(|(node, outcome)| format!("{node}={}", outcome.data)).collect();
    let events = ran.events.iter().filter(|event| !event.contains("->"));
    let events: Vec<_> = events.map(String::as_str).collect();
    format!(
        "visits: {}\nroute: {}\nresults: {}\nevents: {}\nends: {} at {}, {}, asked {}, prompted {}\n",
        visits.join(", "),
        route.join(", "),
        results.join(", "),
        events.join(", "),
        json!(ran.result.status).as_str().unwrap(),
        ran.result.at,
        json!(ran.result.quality).as_str().unwrap(),
        ran.notes.questions.len(),
        ran.notes.prompts.len(),
    )
}

/// A document of nodes `a` to `d`, of which some have these keys.
async fn plays(nodes: [&str; 4], edges: &str, script: Value, expected: Expect) {
    let mut text = "id: g\nname: G\nentry: a\nnodes:\n".to_owned();
    for (id, rest) in ["a", "b", "c", "d"].into_iter().zip(nodes) {
        // A node that no edge leads to would be a problem.
        if id == "a" || edges.contains(&format!("to: {id}")) {
            let comma = if rest.is_empty() { "" } else { ", " };
            text = format!("{text}  {id}: {{name: {id}, instruction: Do.{comma}{rest}}}\n");
        }
    }
    text = format!("{text}edges: [{edges}]\n");
    expected.assert_eq(&said(&run(&text, json!({"x": 1}), script).await));
}

// SW12, SW18: a cycle that a model leaves.
#[tokio::test]
async fn a_cycle_runs_until_a_model_leaves_it() {
    plays(
        ["", "", "", ""],
        "{from: a, to: b}, {from: b, to: a, when: again, max_iterations: 3}, {from: b, to: c, when: done}",
        json!({"decide": {"b": ["a", "c"]}, "nodes": {"a": [{"data": {"n": 1}}, {"data": {"n": 2}}]}}),
        expect![[r#"
            visits: a success, b success, a success, b success, c success
            route: a->b (only path), b->a (again), a->b (only path), b->c (done)
            results: a={"n":2}, b={}, c={}
            events: graph.input, a, b, b:choose, b:taken, a, b, b:choose, b:taken, c, graph.output
            ends: completed at c, clean, asked 2, prompted 0
        "#]],
    )
    .await;
}

// SW12: a cycle whose bound is reached leads to the default.
#[tokio::test]
async fn a_cycle_that_is_used_up_takes_the_edge_without_a_condition() {
    plays(
        ["", "", "", ""],
        "{from: a, to: b}, {from: b, to: a, when: again, max_iterations: 1}, {from: b, to: c}",
        json!({"decide": {"b": ["a"]}}),
        expect![[r#"
            visits: a success, b success, a success, b success, c success
            route: a->b (only path), b->a (again), a->b (only path), b->c (only path)
            results: a={}, b={}, c={}
            events: graph.input, a, b, b:choose, b:taken, a, b, b:taken, c, graph.output
            ends: completed at c, clean, asked 1, prompted 0
        "#]],
    )
    .await;
}

// SW12: two ways meet again.
#[tokio::test]
async fn two_conditional_ways_meet_in_one_node() {
    plays(
        ["", "", "", ""],
        "{from: a, to: b, when: left}, {from: a, to: c, when: right}, {from: b, to: d}, {from: c, to: d}",
        json!({"decide": {"a": ["c"]}}),
        expect![[r#"
            visits: a success, c success, d success
            route: a->c (right), c->d (only path)
            results: a={}, c={}, d={}
            events: graph.input, a, a:choose, c, d, graph.output
            ends: completed at d, clean, asked 1, prompted 0
        "#]],
    )
    .await;
}

// SW9, SW6: the second attempt has the missing field.
#[tokio::test]
async fn a_missing_field_is_mended_by_the_second_attempt() {
    plays(
        ["output: {type: object, required: [n]}, retry: {max: 1, instruction: Give n.}", "", "", ""],
        "{from: a, to: b}",
        json!({"nodes": {"a": [{"data": {}}, {"data": {"n": 1}}]}}),
        expect![[r#"
            visits: a success, b success
            route: a->b (only path)
            results: a={"n":1}, b={}
            events: graph.input, a, b, graph.output
            ends: completed at b, clean, asked 0, prompted 0
        "#]],
    )
    .await;
}

// SW9, SW8: a judge refuses twice, and a model advises between.
#[tokio::test]
async fn a_judge_that_refuses_every_attempt_fails_the_node() {
    plays(
        [
            "eval: [{name: good, kind: judge, rubric: Good?}], retry: {max: 1, instruction: {auto: true}}",
            "",
            "",
            "",
        ],
        "{from: a, to: b}",
        json!({"judge": {"a": ["no: dull", "no: long"]}, "ask": ["Be brief."]}),
        expect![[r#"
            visits: a failed, b success
            route: a->b (only path)
            results: a={"error":"a check does not hold: `good`: the judge says `no`: long"}, b={}
            events: graph.input, a, b, graph.output
            ends: completed at b, degraded, asked 0, prompted 3
        "#]],
    )
    .await;
}

// SW9, SW7: the tool is called in the second attempt, after a reflection.
#[tokio::test]
async fn a_tool_that_was_not_called_is_called_after_a_reflection() {
    plays(
        ["eval: [{name: looked, kind: function, rule: {any_tool_called: [search]}}], retry: {max: 2, instruction: {reflect: Why?}}", "", "", ""],
        "{from: a, to: b}",
        json!({"nodes": {"a": [{"data": {"n": 1}}, {"data": {"n": 2}, "called": [{"tool": "search", "ok": true}]}]}, "ask": ["Search."]}),
        expect![[r#"
            visits: a success, b success
            route: a->b (only path)
            results: a={"n":2}, b={}
            events: graph.input, a, b, graph.output
            ends: completed at b, clean, asked 0, prompted 1
        "#]],
    )
    .await;
}

// SW5, SW11: an unmet check fails its node, and the next one is skipped for it.
#[tokio::test]
async fn unmet_checks_fail_and_skip_nodes_and_the_walk_goes_on() {
    plays(
        [
            "requires: {output_required: [input.y]}",
            "requires: {output_matches: [{path: a.n, equals: 1}], on_fail: skip}",
            "requires: {output_required: [b.skipped_reason]}",
            "",
        ],
        "{from: a, to: b}, {from: b, to: c}, {from: c, to: d}",
        json!({}),
        expect![[r#"
            visits: a failed, b skipped, c success, d success
            route: a->b (only path), b->c (only path), c->d (only path)
            results: a={"error":"`a` requires what does not hold: `output_required`: `input.y` is missing"}, b={"skipped_reason":"`b` requires what does not hold: `output_matches`: `a.n` is missing; it has to be 1"}, c={}, d={}
            events: graph.input, a, b, c, d, graph.output
            ends: completed at d, degraded, asked 0, prompted 0
        "#]],
    )
    .await;
}

// SW10, SW14: a soft failure, of which the model sees the described keys.
#[tokio::test]
async fn a_soft_failure_is_routed_like_a_success() {
    plays(
        ["fail_soft: true, output: {type: object, properties: {n: {type: number}}}", "", "", ""],
        "{from: a, to: b, when: n is known}, {from: a, to: c}",
        json!({"nodes": {"a": [{"fail": "no access"}]}, "decide": {"a": ["c"]}}),
        expect![[r#"
            visits: a success, c success
            route: a->c (only path)
            results: a={"error":"no access","fail_soft":true}, c={}
            events: graph.input, a, a:choose, c, graph.output
            ends: completed at c, degraded, asked 1, prompted 0
        "#]],
    )
    .await;
}

// SW12: the only condition that is left is asked, and does not hold.
#[tokio::test]
async fn the_only_condition_that_is_left_may_not_hold() {
    plays(
        ["", "", "", ""],
        "{from: a, to: a, when: again, max_iterations: 1}, {from: a, to: b, when: done}",
        json!({"decide": {"a": ["a", "a"]}}),
        expect![[r#"
            visits: a success, a success
            route: a->a (again)
            results: a={}
            events: graph.input, a, a:choose, a:taken, a, a:choose, graph.output
            ends: no_match at a, degraded, asked 2, prompted 0
        "#]],
    )
    .await;
}

// SW6, SW7: every kind of evaluation at once holds.
#[tokio::test]
async fn a_result_that_satisfies_every_kind_of_evaluation_is_a_success() {
    plays(
        ["eval: [{name: v, kind: value, rule: {output_required: ['list[*].n'], output_matches: [{path: 'any:list[*].n', equals: 2}, {path: word, matches: '^o'}, {path: word, in: [one, two]}]}}, {name: f, kind: function, rule: {any_tool_called: [x, y], all_tools_called: [y], no_tool_called: [z]}}, {name: j, kind: judge, rubric: Good?, pass_when: ok}]", "", "", ""],
        "{from: a, to: b}",
        json!({"nodes": {"a": [{"data": {"list": [{"n": 1}, {"n": 2}], "word": "one"}, "called": [{"tool": "y", "ok": true}]}]}, "judge": {"a": ["VERDICT: OK\nREASONING: fine"]}}),
        expect![[r#"
            visits: a success, b success
            route: a->b (only path)
            results: a={"list":[{"n":1},{"n":2}],"word":"one"}, b={}
            events: graph.input, a, b, graph.output
            ends: completed at b, clean, asked 0, prompted 1
        "#]],
    )
    .await;
}
