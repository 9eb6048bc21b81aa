//! Explanations of runs by hand.

use std::time::Duration;

use expect_test::expect;
use serde_json::json;
use workflow_core::StepError;

use super::*;
use crate::fixtures::{
    CHECKS, DESK, Out, Script, at_desk, at_gate, caught, document, graph, in_branches, report, result, start,
    token,
};

async fn explain(name: &str, input: Value, script: Script) -> Explanation {
    let document = document(if name == "desk" { DESK } else { CHECKS });
    let run = start(name, input, script, None).await;
    Explanation::of(graph(&document), &*report(&run).await, SystemTime::UNIX_EPOCH)
}

/// G34
#[tokio::test]
async fn every_route_that_was_not_taken_has_the_values_that_it_saw() {
    let explained = explain("desk", json!({"cents": 5}), at_desk).await;
    expect![[r#"
        run run-1 of desk: The run completed at `pay`.
        look_up (function orders.find): visited twice
          the run begins here
          from `look_up`: vars.tries < 2 (vars.tries = 1)
          at visit 1 led to `look_up`: vars.tries < 2 (vars.tries = 1)
            not to `approve` (large: input.cents > input.limit): false: input.cents = 5, input.limit = 900
          at visit 2 led to `pay`: default
            not to `approve` (large: input.cents > input.limit): false at visit 2: input.cents = 5, input.limit = 900
            not to `look_up` (vars.tries < 2, max 3): false at visit 2: vars.tries = 2
        approve (human): not visited
          not from `look_up` (large: input.cents > input.limit): false at visit 2: input.cents = 5, input.limit = 900
        pay (function bank.pay): visited once
          from `look_up`: default
        refuse (value): not visited
          not from `look_up` (on failure): `look_up` did not fail
          not from `approve` (default): `approve` was not visited
    "#]].assert_eq(&explained.to_string());
    let approve = serde_json::to_value(&explained.nodes[1]).unwrap();
    expect![[r#"
        {
          "kind": "human",
          "node": "approve",
          "not_taken": [
            {
              "from": "look_up",
              "route": "large: input.cents > input.limit",
              "values": [
                {
                  "path": "input.cents",
                  "value": 5
                },
                {
                  "path": "input.limit",
                  "value": 900
                }
              ],
              "visit": 2,
              "why": "did_not_hold"
            }
          ],
          "visits": 0
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&approve).unwrap());
}

/// G34
#[tokio::test]
async fn an_open_gate_is_under_way() {
    let explained = explain("desk", json!({"cents": 5000}), at_gate).await;
    expect![[r#"
        run run-1 of desk: The run waits at `approve`.
          `approve` waits for the reply to #5: Refund it?
        look_up (function orders.find): visited once
          the run begins here
          led to `approve`: large: input.cents > input.limit (input.cents = 5000, input.limit = 900)
            not to `look_up` (vars.tries < 2, max 3): also holds, but comes later than the route to `approve` (input.cents > input.limit): vars.tries = 1
        approve (human): under way
          from `look_up`: large: input.cents > input.limit (input.cents = 5000, input.limit = 900)
        pay (function bank.pay): not visited
          not from `look_up` (default): the route to `approve` comes first (input.cents > input.limit)
          not from `approve` (approve.granted): `approve` has not ended
        refuse (value): not visited
          not from `look_up` (on failure): `look_up` did not fail
          not from `approve` (default): `approve` has not ended
    "#]]
    .assert_eq(&explained.to_string());
}

/// G19, G34
#[tokio::test]
async fn a_failure_that_was_handled_leads_on() {
    let explained = explain("desk", json!({"cents": 5}), caught).await;
    expect![[r#"
        run run-1 of desk: The run completed at `refuse`.
        look_up (function orders.find): failed once: permanent: no such order (not retried: a permanent failure never is); `on_failure` led to `refuse`
          the run begins here
        approve (human): not visited
          not from `look_up` (large: input.cents > input.limit): `look_up` failed (permanent: no such order)
        pay (function bank.pay): not visited
          not from `look_up` (default): `look_up` failed (permanent: no such order)
          not from `approve` (approve.granted): `approve` was not visited
        refuse (value): visited once
          from `look_up`: on failure
    "#]]
    .assert_eq(&explained.to_string());
}

/// G25, G34
#[tokio::test]
async fn a_failed_run_names_the_node_and_its_attempts() {
    let explained = explain("desk", json!({"cents": 5000}), |step, call| match step {
        "look_up" => at_gate(step, call),
        _ => Err(StepError::rejected("closed")),
    });
    expect!["The run failed at `approve`: rejected: closed."].assert_eq(&explained.await.summary);
}

/// G12, G34
#[tokio::test]
async fn a_condition_that_errs_says_so() {
    let explained = explain("desk", json!({"cents": "much"}), |step, _| match step {
        "look_up" => Ok(vec![
            result("look_up", 1, json!({})),
            Out::Event("vars.tries", json!(7)),
            token("look_up->pay", "default"),
        ]),
        _ => at_desk(step, 1),
    });
    expect![[r#"
        approve (human): not visited
          not from `look_up` (large: input.cents > input.limit): the condition failed at visit 1: `input.cents > input.limit`: a text and a number have no order, where `input.cents` is "much" and `input.limit` is 900. Convert one of them, with `float(text)` or `str(number)`; input.cents = "much", input.limit = 900
    "#]].assert_eq(&explained.await.nodes[1].to_string());
}

/// G8, G14, G34
#[tokio::test]
async fn a_branch_that_did_not_open_has_its_condition() {
    let explained = explain("checks", json!({}), in_branches).await;
    expect![[r#"
        run run-1 of checks: The run completed at `decide`.
        collect (function changes.collect): visited once
          the run begins here
        scan (function scan): failed once: permanent: red
          from `collect`: branch
        test (function test): visited once
          from `collect`: branch
        audit (function audit): not visited
          not from `collect` (branch if collect.auth): false: collect.auth = false
        decide (value): visited once
          all branches of `collect` have ended (1 arrived, 1 failed: `scan` (permanent: red))
    "#]]
    .assert_eq(&explained.to_string());
}

/// G34
#[test]
fn a_child_has_its_item_and_an_attempt_its_moment() {
    let (node, due) = (Arc::from("each"), Duration::from_hours(1));
    let child = Wait::Child { node, item: Some(1), run: RunId::from("r-2"), graph: "child".into() };
    expect!["`each` at index 1 waits for `child` (run r-2)"].assert_eq(&child.to_string());
    let error = VisitError { class: "transient".into(), message: "busy".into() };
    let at = SystemTime::UNIX_EPOCH + due;
    let attempt =
        Wait::Attempt { node: "a".into(), attempt: 2, error, due, at, left: Duration::from_mins(5) };
    expect!["`a` waits for attempt 2, which is due in 5m, at 1970-01-01T01:00:00Z: transient: busy"]
        .assert_eq(&attempt.to_string());
}
