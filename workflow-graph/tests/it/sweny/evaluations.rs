//! Evaluations of SWEny results: their kinds, and attempts after failed ones.

use serde_json::{Value, json};
use workflow_core::report::Quality;
use workflow_graph::{AgentResult, AgentStatus, Registry};

use super::play::{Noting, Ran, document, run, run_in};

/// A document of one node with these keys.
fn node(rest: &str) -> String {
    format!(
        "
id: g
name: G
entry: a
skills:
  one: {{instruction: x, mcpAliases: {{open: [create, shared]}}}}
  two: {{instruction: x, mcpAliases: {{close: [shared]}}}}
nodes:
  a: {{name: A, instruction: Do it., skills: [one, two], {rest}}}
  b: {{name: B, instruction: Do.}}
edges: [{{from: a, to: b}}]
"
    )
}

async fn played(rest: &str, attempts: Value) -> Ran {
    run(&node(rest), json!({}), json!({"nodes": {"a": attempts}})).await
}

// SW6
#[tokio::test]
async fn missing_output_is_one_evaluation_and_the_declared_ones_do_not_run() {
    let rest =
        "output: {type: object, required: [x, y, z]}, eval: [{name: good, kind: judge, rubric: Good?}]";
    let ran = played(rest, json!([{"data": {"x": null}}])).await;
    assert_eq!(ran.error("a"), "a check does not hold: `output_required`: the data has no `y`, `z`");
    assert_eq!(ran.result.results["a"].checks.keys().collect::<Vec<_>>(), ["output_required"]);
    assert!(ran.notes.prompts.is_empty());

    // Null is there, and types are the agent's affair.
    let ran = played(rest, json!([{"data": {"x": null, "y": 1, "z": []}}])).await;
    assert_eq!(ran.result.results["a"].checks, [("good".to_owned(), true)].into());
}

// SW6
#[tokio::test]
async fn all_evaluators_run_in_order_and_every_reason_is_in_the_failure() {
    let rest = "eval: [{name: third, kind: judge, rubric: Good?}, {name: first, kind: value, rule: {output_required: [x], output_matches: {path: n, in: [1, 2]}}}, {name: second, kind: function, rule: {any_tool_called: [search], no_tool_called: [shell]}}, {name: holds, kind: value, rule: {output_matches: [{path: n, equals: 3}]}}]";
    let script = json!({
        "nodes": {"a": [{"data": {"n": 3}, "called": [{"tool": "shell", "ok": false}]}]},
        "judge": {"a": [format!("no: {}", "x".repeat(600))]},
    });
    let ran = run(&node(rest), json!({}), script).await;
    let reason = format!("the judge says `no`: {}…", "x".repeat(500 - "the judge says `no`: ".len()));
    assert_eq!(
        ran.error("a"),
        format!(
            "3 checks do not hold: `third`: {reason}; `first`: `x` is missing; `n` is 3; it has to be one of [1, 2]; \
             `second`: no call of `search` succeeded; `shell` was called"
        )
    );
    let evals = &ran.task("b").context["a"]["evals"];
    let passed = ["third", "first", "second", "holds"].map(|name| evals[name]["pass"].clone());
    assert_eq!(json!(passed), json!([false, false, false, true]));
    assert_eq!(ran.task("b").context["a"]["error"], ran.error("a"));
    assert_eq!(ran.result.quality, Quality::Degraded);
}

// SW7
#[tokio::test]
async fn calls_count_under_aliases_unless_two_tools_claim_one() {
    let rest = "eval: [{name: x, kind: function, rule: {all_tools_called: [TOOL]}}]";
    let called = |tool: &str| json!([{"data": {}, "called": [{"tool": tool, "ok": true}]}]);
    for (expected, made, holds) in [
        ("open", "open", true),
        ("open", "create", true),
        ("create", "open", true),
        ("open", "shared", false),
        ("shared", "shared", true),
        ("close", "shared", false),
        ("close", "open", false),
    ] {
        let ran = played(&rest.replace("TOOL", expected), called(made)).await;
        assert_eq!(ran.result.results["a"].checks["x"], holds, "{expected} by {made}");
    }
    let failed = json!([{"data": {}, "called": [{"tool": "create", "ok": false}]}]);
    let ran = played(&rest.replace("TOOL", "open"), failed.clone()).await;
    assert_eq!(ran.error("a"), "a check does not hold: `x`: no call of `open` succeeded");
    let ran = played("eval: [{name: x, kind: function, rule: {no_tool_called: [open]}}]", failed).await;
    assert_eq!(ran.error("a"), "a check does not hold: `x`: `open` was called");
}

// SW8
#[tokio::test]
async fn a_judge_is_asked_once_more_where_it_gives_no_verdict() {
    let rest = "eval: [{name: x, kind: judge, rubric: Is it good?, pass_when: Fine}]";
    let judged = async |answers: Value| run(&node(rest), json!({}), json!({"judge": {"a": answers}})).await;
    let ran = judged(json!(["VERDICT: FINE\nREASONING: all there"])).await;
    assert_eq!((ran.statuses()["a"].clone(), ran.notes.prompts.len()), (json!("success"), 1));
    assert!(ran.notes.prompts[0].0.contains("Is it good?"));
    let ran = judged(json!(["I cannot say this in a word", "VERDICT: fine\nREASONING: it is"])).await;
    assert_eq!((ran.statuses()["a"].clone(), ran.notes.prompts.len()), (json!("success"), 2));
    let ran = judged(json!(["I cannot say this in a word"])).await;
    assert_eq!(
        (ran.error("a"), ran.notes.prompts.len()),
        ("a check does not hold: `x`: the judge gave no verdict: I cannot say this in a word", 2)
    );
    let ran = judged(json!(["VERDICT: yes\nREASONING: it is dull"])).await;
    assert_eq!(ran.error("a"), "a check does not hold: `x`: the judge says `yes`: it is dull");
    let default = node("eval: [{name: x, kind: judge, rubric: Good?, pass_when: yes}]");
    let ran = run(&default, json!({}), json!({"judge": {"a": ["VERDICT: Yes\nREASONING: it is"]}})).await;
    assert_eq!(ran.statuses()["a"], json!("success"));
}

const RETRIED: &str = "output: {type: object, required: [x]}, retry: {max: 2GUIDE}";

// SW9
#[tokio::test]
async fn failed_evaluations_are_retried_with_the_latest_failures_and_the_text() {
    let rest = RETRIED.replace("GUIDE", ", instruction: Give an x.");
    let ran = played(&rest, json!([{"data": {"a": 1}}, {"data": {"b": 1}}, {"data": {"x": 1}}])).await;
    let retries: Vec<_> =
        ran.notes.tasks.iter().filter(|task| task.node == "a").map(|task| task.retry.clone()).collect();
    let mend = Some(("`output_required`: the data has no `x`".to_owned(), Some("Give an x.".to_owned())));
    assert_eq!(retries, [None, mend.clone(), mend]);
    assert_eq!(ran.task("b").context["a"], json!({"x": 1}));
    assert_eq!(ran.result.quality, Quality::Clean);
    assert_eq!(ran.result.trace.visits.len(), 2);
}

// SW9
#[tokio::test]
async fn after_the_last_attempt_the_node_fails_with_the_data_of_that_attempt() {
    let rest = RETRIED.replace("GUIDE", "");
    let ran = played(
        &rest,
        json!([{"data": {"a": 1}}, {"data": {"b": 1}}, {"data": {"c": 1}}, {"data": {"x": 1}}]),
    )
    .await;
    assert_eq!(ran.runs("a"), 3);
    assert_eq!(ran.result.results["a"].data, json!({"c": 1, "error": ran.error("a")}));
    assert_eq!(ran.statuses()["a"], json!("failed"));
    assert_eq!(ran.task("a").retry.as_ref().unwrap().1, None);
}

// SW9
#[tokio::test]
async fn advice_comes_from_a_model_or_is_left_out_where_it_fails() {
    let attempts = json!([{"data": {"a": 1}}, {"data": {"x": 1}}]);
    for (guide, asks) in
        [(", instruction: {auto: true}", "otherwise"), (", instruction: {reflect: What now?}", "What now?")]
    {
        let rest = RETRIED.replace("GUIDE", guide);
        let script = json!({"nodes": {"a": attempts}, "ask": ["Add an x."]});
        let ran = run(&node(&rest), json!({}), script).await;
        let prompt = &ran.notes.prompts[0].0;
        assert!(
            prompt.contains(asks) && prompt.contains("has no `x`") && prompt.contains("Do it."),
            "{prompt}"
        );
        assert_eq!(ran.task("a").retry.as_ref().unwrap().1.as_deref(), Some("Add an x."));

        let ran = run(&node(&rest), json!({}), json!({"nodes": {"a": attempts}})).await;
        assert_eq!(ran.task("a").retry.as_ref().unwrap().1, None);
        assert_eq!(ran.statuses()["a"], json!("success"));
        assert_eq!(
            ran.result.warnings,
            ["`a`: the agent tries again without guidance: the script has no answer to prompts for advice"]
        );
    }
}

// SW9
#[tokio::test]
async fn what_the_agent_calls_skipped_is_neither_evaluated_nor_retried() {
    let rest = RETRIED.replace("GUIDE", "");
    let ran = played(&rest, json!([{"skip": "nothing to do"}])).await;
    assert_eq!((ran.runs("a"), ran.statuses()["a"].clone()), (1, json!("skipped")));
    assert!(ran.result.results["a"].checks.is_empty());

    // Nor is an error of a later attempt.
    let mut agents = Noting::new(&json!({}));
    agents.replace = |node, before| match (node, before) {
        ("a", 0) => Some(Ok(AgentResult::new(json!({})))),
        ("a", _) => Some(Ok(AgentResult::new(json!({"error": "tired"})).status(AgentStatus::Failed))),
        _ => None,
    };
    let ran = run_in(&document(&node(&rest)), json!({}), agents, Registry::new()).await;
    assert_eq!((ran.runs("a"), ran.error("a")), (2, "the agent failed: tired"));
}

// SW2
#[tokio::test]
async fn a_key_of_the_data_precedes_the_evaluations() {
    let rest = "eval: [{name: good, kind: judge, rubric: Good?}]";
    let ran = played(rest, json!([{"data": {"evals": "own"}}])).await;
    assert_eq!(ran.task("b").context["a"], json!({"evals": "own"}));
}
