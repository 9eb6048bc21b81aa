//! Branches and the nodes where they meet: what is published, what a join sees, and failures in branches.

use expect_test::expect;
use serde_json::{Value, json};
use workflow_core::report::Quality;
use workflow_graph::GraphStatus;

use super::playing::{data, played, script, sorted, visits};

/// Two branches of `p` that meet at `j`.
const TWO: &str = "
graph: g
vars: {x: 0}
nodes:
  p: {value: 1, next: {parallel: [a, b], join: j, failures: F, conflicts: C}}
  a: {function: f, retry: none, set: {x: 1}, next: j}
  b: {function: f, retry: none, next: j}
  j: {value: {joined: \"${ joined }\", b: \"${ nodes.b.status }\", x: \"${ vars.x }\"}}
";

fn two(failures: &str, conflicts: &str) -> String {
    TWO.replace("failures: F", &format!("failures: {failures}")).replace("C}", &format!("{conflicts}}}"))
}

fn fails(node: &str) -> Value {
    script(json!({node: [{"fail": "no", "class": "rejected"}]}))
}

// G14, G15, G26
#[tokio::test(start_paused = true)]
async fn a_join_sees_how_its_branches_ended() {
    let result = played(&two("fail_all", "error"), json!({}), json!({})).await.result().await;
    let arrived = |to: &str| json!({"to": to, "status": "arrived"});
    assert_eq!(
        result.output,
        json!({"joined": {"failed": 0, "branches": [arrived("a"), arrived("b")]}, "b": "success", "x": 1})
    );
    assert_eq!(result.quality, Quality::Clean);

    // `wait_all` hands on the error, and publishes the failed node.
    let result = played(&two("wait_all", "error"), json!({}), fails("b")).await.result().await;
    let error = json!({"message": "no", "class": "rejected", "node": "b"});
    let failed = json!({"to": "b", "status": "failed", "error": error});
    assert_eq!(result.output["joined"], json!({"failed": 1, "branches": [arrived("a"), failed]}));
    assert_eq!((&result.output["b"], result.quality), (&json!("failed"), Quality::Degraded));
    assert_eq!(result.results["b"].iteration, 1);

    // `continue_others` counts it.
    let result = played(&two("continue_others", "error"), json!({}), fails("b")).await.result().await;
    let failed = json!({"to": "b", "status": "failed"});
    assert_eq!(result.output["joined"], json!({"failed": 1, "branches": [arrived("a"), failed]}));
    assert_eq!((&result.output["b"], result.quality), (&Value::Null, Quality::Degraded));
}

// G15, G16 (Hive)
#[tokio::test(start_paused = true)]
async fn a_branch_that_fails_sets_no_variable() {
    let text = two("wait_all", "error").replace(
        "b: {function: f, retry: none,",
        "b: {value: 1, set: {x: 5}, next: c}\n  c: {function: f, retry: none,",
    );
    let result = played(&text, json!({}), fails("c")).await.result().await;
    assert_eq!((&result.output["x"], &result.output["b"]), (&json!(1), &json!("success")));
    assert_eq!(result.output["joined"]["branches"][1]["error"]["node"], "c");
}

// G16
#[tokio::test(start_paused = true)]
async fn two_branches_that_write_one_variable_conflict() {
    let both = |conflicts: &str| {
        two("fail_all", conflicts).replace("b: {function: f, retry: none,", "b: {function: f, set: {x: 2},")
    };
    let first_ends = |first: &str, second: &str| {
        script(json!({first: [{"data": 1, "after": "1s"}], second: [{"data": 1, "after": "2s"}]}))
    };
    let failure = played(&both("error"), json!({}), first_ends("a", "b")).await.failure().await;
    assert_eq!(failure.node.as_deref(), Some("p"));
    expect!["`p` failed after 1 attempt (permanent): the branches that begin with `a` and `b` both write the variable `x`: write it in one of them, or state `conflicts`"].assert_eq(&failure.to_string());
    for (conflicts, first, second, x) in [
        ("last_wins", "a", "b", 2),
        ("last_wins", "b", "a", 1),
        ("first_wins", "a", "b", 1),
        ("first_wins", "b", "a", 2),
    ] {
        let result = played(&both(conflicts), json!({}), first_ends(first, second)).await.result().await;
        assert_eq!(result.output["x"], x, "{conflicts}, {first} before {second}");
    }
}

// G15, G19
#[tokio::test(start_paused = true)]
async fn a_failure_in_a_branch_fails_the_parallel_node_which_may_catch_it() {
    let failure = played(&two("fail_all", "error"), json!({}), fails("b")).await.failure().await;
    assert_eq!(failure.node.as_deref(), Some("b"));

    let to = two("fail_all", "error").replace("p: {value: 1,", "p: {value: 1, on_failure: c,")
        + "  c: {value: \"${ error.node }, ${ error.class }, ${ nodes.p.status }, ${ vars.x }, ${ nodes.a.visits }\"}\n";
    let result = played(&to, json!({}), fails("b")).await.result().await;
    assert_eq!((result.output, result.quality), (json!("p, rejected, failed, 0, 0"), Quality::Degraded));
}

// G15, G19
#[tokio::test(start_paused = true)]
async fn a_parallel_node_that_continues_goes_on_at_the_join() {
    let text = two("fail_all", "error").replace("p: {value: 1,", "p: {value: 1, on_failure: continue,");
    let result = played(&text, json!({}), fails("b")).await.result().await;
    let failed = |to: &str| json!({"to": to, "status": "failed"});
    assert_eq!(result.output["joined"], json!({"failed": 2, "branches": [failed("a"), failed("b")]}));
    assert_eq!((result.status, result.quality), (GraphStatus::Completed, Quality::Degraded));

    // Without a join the walk ends there.
    let apart = "
graph: g
nodes:
  p: {value: 1, on_failure: continue, next: {parallel: [a, b]}}
  a: {function: f, retry: none}
  b: {value: 2}
";
    let result = played(apart, json!({}), fails("a")).await.result().await;
    assert_eq!(
        (result.status, &*result.at, result.quality),
        (GraphStatus::Completed, "p", Quality::Degraded)
    );
}

// G8, G14
#[tokio::test(start_paused = true)]
async fn branches_of_branches_meet_at_one_node_which_runs_once() {
    let text = "
graph: g
nodes:
  p: {value: 1, next: {parallel: [q, c], join: j}}
  q: {value: 2, next: {parallel: [a, r], join: j}}
  r: {value: 3, next: {parallel: [b, d], join: j}}
  a: {value: a, next: j}
  b: {value: b, next: j}
  c: {value: c, next: j}
  d: {value: d}
  j: {value: \"${ a }${ b }${ c }${ joined.failed }${ len(joined.branches) }\"}
";
    let result = played(text, json!({}), json!({})).await.result().await;
    assert_eq!(result.output, "abc02");
    assert_eq!(sorted(&result.trace).iter().filter(|visit| visit.starts_with('j')).count(), 1);
    assert_eq!(result.trace.visits.len(), 8);
}

// G14
#[tokio::test(start_paused = true)]
async fn a_branch_may_lead_directly_to_the_join_and_none_need_arrive() {
    let direct = "
graph: g
nodes:
  p: {value: 1, next: {parallel: [{to: j, when: input.direct}, {to: a, when: input.a}, {to: e, when: input.e}], join: j}}
  a: {value: 2, next: j}
  e: {value: 3, next: end}
  j: {value: \"${ joined.branches }\"}
";
    let all = played(direct, json!({"direct": true, "a": true, "e": true}), json!({})).await.result().await;
    let branch = |to: &str, status: &str| json!({"to": to, "status": status});
    assert_eq!(all.output, json!([branch("j", "arrived"), branch("a", "arrived"), branch("e", "ended")]));
    let only =
        played(direct, json!({"direct": true, "a": false, "e": false}), json!({})).await.result().await;
    assert_eq!((only.output, visits(&only.trace).len()), (json!([branch("j", "arrived")]), 2));
    for e in [true, false] {
        let none =
            played(direct, json!({"direct": false, "a": false, "e": e}), json!({})).await.result().await;
        assert_eq!((none.status, &*none.at, none.quality), (GraphStatus::NoMatch, "p", Quality::Degraded));
    }
}

// G11: visits count on within branches, and again outside of them.
#[tokio::test(start_paused = true)]
async fn a_node_in_a_branch_sees_its_own_earlier_results() {
    let text = "
graph: g
vars: {sum: 0}
nodes:
  p: {value: \"${ visits }\", next: {parallel: [a, b], join: j}}
  a: {value: \"${ default(a, 0) + 1 }\", next: [{to: a, max: 3}, {to: j}]}
  b: {value: \"${ default(a, 0) }\", set: {sum: \"${ vars.sum + b }\"}, next: j}
  j: {value: [\"${ a }\", \"${ nodes.a.visits }\", \"${ vars.sum }\"], next: [{to: p, max: 1}, {to: end}]}
";
    let result = played(text, json!({}), json!({})).await.result().await;
    // Three of the route's times are used up in the first round.
    assert_eq!(result.output, json!([5, 5, 4]));
    let iterations: Vec<_> =
        result.trace.visits.iter().filter(|visit| *visit.node == *"a").map(|visit| visit.iteration).collect();
    assert_eq!(iterations, [1, 2, 3, 4, 5]);
}

// G15: a failed visit has the number that follows those before it.
#[tokio::test(start_paused = true)]
async fn a_failed_node_is_published_with_the_number_of_its_visit() {
    let text = "
graph: g
nodes:
  p: {value: 1, next: {parallel: [a], join: j, failures: wait_all}}
  a: {function: f, retry: none, next: [{to: a, max: 1}, {to: j}]}
  j: {value: [\"${ nodes.a.status }\", \"${ nodes.a.visits }\"], next: [{to: p, max: 1}, {to: end}]}
";
    let entries = json!([{"data": 1}, {"data": 2}, {"fail": "no", "class": "permanent"}, {"data": 4}]);
    let result = played(text, json!({}), script(json!({"a": entries}))).await.result().await;
    assert_eq!(result.output, json!(["failed", 3]));
    assert_eq!(result.results["a"].error.as_deref(), Some("no"));
}

// G23
#[tokio::test(start_paused = true)]
async fn a_join_adds_the_visits_of_its_branches() {
    let text = "
graph: g
limits: {steps: N}
nodes:
  p: {value: 1, next: {parallel: [a, b], join: j}}
  a: {value: 2, next: c}
  c: {value: 3, next: j}
  b: {value: 4, next: j}
  j: {value: 5, next: k}
  k: {value: 6}
";
    let with = |steps: &str| text.replace("steps: N", &format!("steps: {steps}"));
    let result = played(&with("6"), json!({}), json!({})).await.result().await;
    assert_eq!(result.status, GraphStatus::Completed);
    let result = played(&with("5"), json!({}), json!({})).await.result().await;
    assert_eq!((result.status, &*result.at), (GraphStatus::StepLimit, "k"));
    assert_eq!(data(&result).len(), 5);
    // Each branch counts what it sees.
    let result = played(&with("2"), json!({}), json!({})).await.result().await;
    assert_eq!((result.status, &*result.at, result.quality), (GraphStatus::StepLimit, "c", Quality::Failed));
}

// G19: a document handles one failure of a visit.
#[tokio::test(start_paused = true)]
async fn branches_that_open_after_a_failure_may_not_fail_again() {
    let text = "
graph: g
vars: {x: 0}
nodes:
  p: {function: f, retry: none, on_failure: continue, next: {parallel: [a, b], join: j, conflicts: C}}
  a: {value: 1, set: {x: 1}, next: j}
  b: {value: 2, set: {x: 2}, next: j}
  j: {value: \"${ nodes.p.status }\"}
";
    let failing = script(json!({"p": [{"fail": "away"}]}));
    let conflict =
        played(&text.replace("conflicts: C", "conflicts: error"), json!({}), failing.clone()).await;
    let failure = conflict.failure().await;
    assert_eq!(failure.node.as_deref(), Some("p"));
    assert!(failure.to_string().contains("both write the variable `x`"), "{failure}");
    let result = played(&text.replace("conflicts: C", "conflicts: last_wins"), json!({}), failing)
        .await
        .result()
        .await;
    assert_eq!((result.output, result.quality), (json!("failed"), Quality::Degraded));
}

// G14, G26: the output is made where the walk ends, with all that it reads.
#[tokio::test(start_paused = true)]
async fn the_output_sees_results_where_no_branch_arrives() {
    let text = "
graph: g
output: {a: \"${ default(a.v, 0) }\", visits: \"${ nodes.a.visits }\"}
nodes:
  a: {value: {v: 7}, next: p}
  p: {value: 1, next: {parallel: [{to: b, when: input.b}, {to: c, when: input.b}], join: d}}
  b: {value: 2, next: d}
  c: {value: 3, next: d}
  d: {value: 4}
";
    let result = played(text, json!({"b": false}), json!({})).await.result().await;
    assert_eq!((result.status, result.output), (GraphStatus::NoMatch, json!({"a": 7, "visits": 1})));
}

// G23: a run that ends within branches has their results.
#[tokio::test(start_paused = true)]
async fn the_step_limit_within_branches_leaves_all_results() {
    let text = "
graph: g
limits: {steps: 3}
nodes:
  p: {value: 1, next: {parallel: [a], join: j}}
  a: {value: 2, next: b}
  b: {value: 3, next: c}
  c: {value: 4, next: j}
  j: {value: 5}
";
    let result = played(text, json!({}), json!({})).await.result().await;
    let found: Vec<&str> = result.results.keys().map(String::as_str).collect();
    assert_eq!((result.status, found), (GraphStatus::StepLimit, vec!["a", "b", "p"]));
}

// G11, G21: a cycle around branches that fail meets the bound of a node inside.
#[tokio::test(start_paused = true)]
async fn visits_that_failed_in_branches_count_when_the_branches_open_again() {
    let text = "
graph: g
nodes:
  p: {value: 1, HANDLED next: {parallel: [a, b], join: j, failures: POLICY}}
  a: {value: 2, next: j}
  b: {function: f, retry: none, max_visits: 2, next: j}
  j: {value: \"${ nodes.b.visits }\", next: [{to: p, max: 3}, {to: end}]}
";
    for (handled, policy) in [
        ("", "continue_others"),
        ("", "wait_all"),
        ("on_failure: continue,", "fail_all"),
        ("on_failure: j2,", "fail_all"),
    ] {
        let mut text = text.replace("HANDLED", handled).replace("POLICY", policy);
        if handled.ends_with("j2,") {
            text += "  j2: {value: \"${ nodes.b.visits }\", next: [{to: p, max: 3}, {to: end}]}\n";
        }
        let entries =
            json!([{"fail": "1", "class": "permanent"}, {"fail": "2", "class": "permanent"}, {"data": 3}]);
        let result = played(&text, json!({}), script(json!({"b": entries}))).await.result().await;
        let of_b: Vec<String> =
            sorted(&result.trace).into_iter().filter(|visit| visit.starts_with('b')).collect();
        // Two visits fail, and the bound skips each one after them.
        let status = if policy == "wait_all" { "failed" } else { "skipped" };
        // Both ways back are bounded, so that one through `j2` leads round more often.
        let last = if handled.ends_with("j2,") { 6 } else { 4 };
        let failed = ["b#1 failed", "b#2 failed"].map(str::to_owned).into_iter();
        let kept = (3..=last).map(|visit| format!("b#{visit} {status} kept"));
        assert_eq!(of_b, failed.chain(kept).collect::<Vec<_>>(), "{policy} {handled}");
    }
}

// G11, G23: so do those below, and the nodes that opened them.
#[tokio::test(start_paused = true)]
async fn visits_that_failed_in_branches_of_branches_count() {
    let text = "
graph: g
nodes:
  p: {value: 1, next: {parallel: [q], join: j, failures: continue_others}}
  q: {value: 2, next: {parallel: [a], join: k}}
  a: {function: f, retry: none, next: k}
  k: {value: 3, next: j}
  j: {value: [\"${ nodes.a.visits }\", \"${ nodes.q.visits }\", \"${ nodes.k.visits }\"], next: [{to: p, max: 1}, {to: end}]}
";
    let entries = json!([{"fail": "1", "class": "permanent"}, {"data": 2}]);
    let result = played(text, json!({}), script(json!({"a": entries}))).await.result().await;
    assert_eq!(result.output, json!([2, 2, 1]));
    // Of the first round `p`, `q`, `a`, `j`; of the second also `k`.
    let limited = |steps: u32| text.replace("graph: g", &format!("graph: g\nlimits: {{steps: {steps}}}"));
    let nine = played(&limited(9), json!({}), script(json!({"a": entries}))).await.result().await;
    let eight = played(&limited(8), json!({}), script(json!({"a": entries}))).await.result().await;
    assert_eq!((nine.status, eight.status), (GraphStatus::Completed, GraphStatus::StepLimit));
}

// G1, G15, G19: the join sees the failure, in words about nodes.
#[tokio::test(start_paused = true)]
async fn a_join_behind_a_caught_failure_sees_the_error_of_the_node_that_failed() {
    let text = "
graph: g
nodes:
  p: {value: 1, on_failure: continue, next: {parallel: [q], join: j}}
  q: {value: 2, next: {parallel: [h], join: k}}
  h: {human: {ask: Now?, expires: 1h}, next: k}
  k: {value: 3, next: j}
  j: {value: [\"${ default(error.message, 'none') }\", \"${ default(error.node, 'none') }\", \"${ joined.failed }\"]}
";
    let result = played(text, json!({}), json!({})).await.result().await;
    assert_eq!(result.output, json!(["`h` failed: nobody answered `h` within 1h", "p", 1]));
}

// G1, G19, G22
#[tokio::test(start_paused = true)]
async fn the_error_of_items_says_their_places() {
    let text = "
graph: g
nodes:
  e: {for_each: {in: '[1, 2, 3]', failures: wait_all}, function: f, retry: none, on_failure: c}
  c: {value: \"${ error.message }\"}
";
    let entries =
        json!([{"fail": "no", "class": "rejected"}, {"data": 1}, {"fail": "away", "class": "rejected"}]);
    let result = played(text, json!({}), script(json!({"e": entries}))).await.result().await;
    assert_eq!(result.output, "item 1 (index 0): no; item 3 (index 2): away");
}

// G19
#[tokio::test(start_paused = true)]
async fn the_error_is_seen_behind_a_choice_and_at_the_begin_of_branches() {
    let text = "
graph: g
nodes:
  d: {function: f, retry: none, on_failure: continue, next: {decide: Where?, choices: [{to: p, about: on}], otherwise: p}}
  p: {value: \"${ default(error.node, 'none') }\", next: q}
  q: {function: f, retry: none, on_failure: continue, next: {parallel: [a, b], join: j}}
  a: {value: \"${ default(error.node, 'none') }\", next: j}
  b: {value: \"${ default(error.node, 'none') }\", next: j}
  j: {value: [\"${ p }\", \"${ a }\", \"${ b }\"]}
";
    let mut script = script(json!({"d": [{"fail": "no"}], "q": [{"fail": "no"}]}));
    script["decide"] = json!({"d": ["p"]});
    let result = played(text, json!({}), script).await.result().await;
    assert_eq!(result.output, json!(["d", "q", "q"]));
}

// G22, S60: a failure of branches that is caught counts their failed visits before the conditions of `on_failure` are asked.
#[tokio::test(start_paused = true)]
async fn conditions_of_on_failure_see_the_visits_that_failed_with_the_branches() {
    let text = "
graph: g
nodes:
  p:
    value: 1
    next: {parallel: [x, y], join: j}
    on_failure: [{when: nodes.x.visits < 2, to: p}, {to: e}]
    max_visits: 10
  x: {function: f, retry: none, next: j}
  y: {value: 2, next: j}
  j: {value: 1}
  e: {value: [\"${ nodes.x.visits }\", \"${ nodes.p.visits }\"]}
";
    let fail = json!({"fail": "no", "class": "rejected"});
    let script = script(json!({"x": [fail, fail, {"data": "never played"}]}));
    let result = played(text, json!({}), script).await.result().await;
    assert_eq!(result.output, json!([2, 2]));
}

// G16, S60: an output behind branches without a join counts what failed in them.
#[tokio::test(start_paused = true)]
async fn the_output_behind_branches_sees_the_visits_that_failed_in_them() {
    let text = "
graph: g
output: [\"${ nodes.x.visits }\", \"${ nodes.y.visits }\"]
nodes:
  p: {value: 1, next: {parallel: [x, y], failures: continue_others}}
  x: {function: f, retry: none}
  y: {value: 2}
";
    let result = played(text, json!({}), fails("x")).await.result().await;
    assert_eq!(result.output, json!([1, 1]));
}
