//! Traces of runs by hand.

use expect_test::expect;
use serde_json::json;

use super::*;
use crate::fixtures::{
    CHECKS, DESK, Script, at_desk, at_gate, caught, document, graph, in_branches, report, start,
};

async fn trace(name: &str, input: serde_json::Value, script: Script) -> Trace {
    let document = document(if name == "desk" { DESK } else { CHECKS });
    let run = start(name, input, script, None).await;
    Trace::of(graph(&document), &*report(&run).await)
}

/// The trace without times.
fn lines(trace: &Trace) -> String {
    let mut trace = trace.clone();
    for visit in &mut trace.visits {
        (visit.started, visit.took) = (Duration::ZERO, Duration::ZERO);
    }
    trace.to_string()
}

/// G33
#[tokio::test]
async fn every_visit_has_its_iteration_its_attempts_and_its_route() {
    let trace = trace("desk", json!({"cents": 5}), at_desk).await;
    expect![[r#"
        look_up     success  at 0ms, took 0ms, 2 attempts → look_up (vars.tries < 2)
        look_up #2  success  at 0ms, took 0ms → pay (default)
        pay         success  at 0ms, took 0ms
    "#]]
    .assert_eq(&lines(&trace));
    assert_eq!(
        serde_json::from_value::<Trace>(serde_json::to_value(&trace).unwrap()).unwrap().routes,
        trace.routes
    );
}

/// G33
#[tokio::test]
async fn a_gate_is_no_visit_before_its_reply() {
    let trace = trace("desk", json!({"cents": 5000}), at_gate).await;
    expect![[r#"
        look_up  success  at 0ms, took 0ms → approve (input.cents > input.limit)
    "#]]
    .assert_eq(&lines(&trace));
}

/// G19, G33
#[tokio::test]
async fn a_caught_failure_is_one_visit() {
    let trace = trace("desk", json!({"cents": 5}), caught).await;
    expect![[r#"
        look_up  failed   at 0ms, took 0ms: permanent: no such order → refuse (on failure)
        refuse   success  at 0ms, took 0ms
    "#]]
    .assert_eq(&lines(&trace));
}

/// G19, G33
#[tokio::test]
async fn a_failure_without_an_event_is_a_visit_too() {
    let trace = trace("desk", json!({"cents": 5}), |step, call| match step {
        "pay" => Err(workflow_core::StepError::rejected("closed")),
        _ => at_desk(step, call),
    });
    let trace = trace.await;
    expect![[r#"
        look_up     success  at 0ms, took 0ms, 2 attempts → look_up (vars.tries < 2)
        look_up #2  success  at 0ms, took 0ms → pay (default)
        pay         failed   at 0ms, took 0ms: rejected: closed
    "#]]
    .assert_eq(&lines(&trace));
}

/// G14, G15, G33
#[tokio::test]
async fn visits_in_branches_name_them_and_results_that_a_join_publishes_are_none() {
    let trace = trace("checks", json!({}), in_branches).await;
    let mut trace = trace;
    // Branches run at the same time.
    trace.visits[1..3].sort_by(|a, b| a.node.cmp(&b.node));
    trace.routes[..3].sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
    expect![[r#"
        collect  success  at 0ms, took 0ms → scan (parallel), test (parallel), decide (joined)
        scan     failed   in collect/1  at 0ms, took 0ms: permanent: red
        test     success  in collect/2  at 0ms, took 0ms → decide (only path)
        decide   success  at 0ms, took 0ms
    "#]]
    .assert_eq(&lines(&trace));
    let json = serde_json::to_value(&trace.routes).unwrap();
    expect![[r#"
        [
          {
            "branch": "collect/1",
            "from": "collect",
            "iteration": 1,
            "reason": "parallel",
            "to": "scan"
          },
          {
            "branch": "collect/2",
            "from": "collect",
            "iteration": 1,
            "reason": "parallel",
            "to": "test"
          },
          {
            "branch": "collect/2",
            "from": "test",
            "iteration": 1,
            "reason": "only path",
            "to": "decide"
          },
          {
            "from": "collect",
            "iteration": 1,
            "reason": "joined",
            "to": "decide"
          }
        ]"#]]
    .assert_eq(&serde_json::to_string_pretty(&json).unwrap());
}

/// G23, G33
#[test]
fn visits_that_were_skipped_say_why_and_those_that_kept_a_result_say_so() {
    let trace: Trace = serde_json::from_value(json!({
        "visits": [
            {"node": "mail", "status": "skipped", "iteration": 1, "attempts": 1, "warnings": ["`requires` was not\nmet"]},
            {"node": "mail", "status": "success", "iteration": 2, "attempts": 1, "kept": true},
        ],
        "routes": [],
    }))
    .unwrap();
    expect![[r#"
        mail     skipped  at 0ms, took 0ms: `requires` was not met
        mail #2  success  at 0ms, took 0ms, beyond max_visits: the result before it stays
    "#]]
    .assert_eq(&trace.to_string());
}

/// G33
#[test]
fn branches_are_listed_in_the_order_of_the_document() {
    let visit = |node: &str, branch: Option<&str>| json!({"node": node, "status": "success", "iteration": 1, "attempts": 1, "branch": branch});
    let route = |from: &str, to: &str, branch: Option<&str>, reason: &str| json!({"from": from, "to": to, "iteration": 1, "branch": branch, "reason": reason});
    let branches = (1..=11)
        .rev()
        .map(|number| route("a", &format!("b{number}"), Some(&format!("a/{number}")), "branch"));
    let mut routes: Vec<_> = branches.collect();
    routes.push(route("b1", "c", Some("a/1"), "only path"));
    routes.push(route("a", "c", None, "joined"));
    let visits = [visit("a", None), visit("b1", Some("a/1"))];
    let trace: Trace = serde_json::from_value(json!({"visits": visits, "routes": routes})).unwrap();
    expect![[r#"
        a   success  at 0ms, took 0ms → b1 (branch), b2 (branch), b3 (branch), b4 (branch), b5 (branch), b6 (branch), b7 (branch), b8 (branch), b9 (branch), b10 (branch), b11 (branch), c (joined)
        b1  success  in a/1  at 0ms, took 0ms → c (only path)
    "#]].assert_eq(&trace.to_string());
}
