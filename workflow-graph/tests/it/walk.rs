//! One visit after the other: routes, failures, attempts, bounds, and what a visit sees.

use std::time::Duration;

use expect_test::expect;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use workflow_core::report::Quality;
use workflow_graph::{
    AgentExecutor, AgentResult, AgentTask, Choice, GraphOptions, GraphStatus, NodeContext, NodeError, Prompt,
    Question, Registry, ScriptedExecutor,
};

use super::playing::{bound, data, played, routes, script, start, visits, workflows};

// G12
#[tokio::test(start_paused = true)]
async fn a_condition_that_errs_fails_the_visit_with_route_expression_and_values() {
    let text = "
graph: g
nodes:
  a: {value: {v: 1}, next: [{to: b, when: \"input.v < 'x'\"}, b]}
  b: {value: 2}
"
    .replace(", b]", ", {to: b}]");
    let failure = played(&text, json!({"v": 1}), json!({})).await.failure().await;
    assert_eq!(failure.node.as_deref(), Some("a"));
    expect!["`a` failed after 1 attempt (permanent): the condition of the route `a->b`, `input.v < 'x'`, has no value: `input.v < 'x'`: a number and a text have no order, where `input.v` is 1. Convert one of them, with `float(text)` or `str(number)`"].assert_eq(&failure.to_string());
}

// G12, G25, G26
#[tokio::test(start_paused = true)]
async fn no_route_that_holds_ends_the_walk_with_every_condition_and_its_values() {
    let text = "
graph: g
nodes:
  a:
    function: f
    next: [{to: b, when: a.v > 3}, {to: a, when: a.v == 1, max: 1}, {to: b, when: input.x, id: asked}]
    on_no_match: end
  b: {value: 2}
";
    let played = played(text, json!({"x": false}), script(json!({"a": [{"data": {"v": 1}}]}))).await;
    let result = played.result().await;
    assert_eq!((result.status, result.quality, &*result.at), (GraphStatus::NoMatch, Quality::Degraded, "a"));
    assert_eq!(visits(&result.trace), ["a#1 success", "a#2 success"]);
    expect!["`a`: no route of `a` held: `a->b` asks for `a.v > 3`, where `a.v` is 1; `a->a` was taken as often as `max: 1` allows; `asked` asks for `input.x`, where `input.x` is false"].assert_eq(&result.warnings.join("\n"));

    let fails = text.replace("on_no_match: end", "on_no_match: fail");
    let failure =
        super::playing::played(&fails, json!({"x": false}), script(json!({"a": [{"data": {"v": 2}}]})));
    expect!["`a` failed after 1 attempt (permanent): no route of `a` held: `a->b` asks for `a.v > 3`, where `a.v` is 2; `a->a` asks for `a.v == 1`, where `a.v` is 2; `asked` asks for `input.x`, where `input.x` is false"].assert_eq(&failure.await.failure().await.to_string());
}

// G12, G19: `continue` leads to `next`, and `on_no_match` is a matter of `next`.
#[tokio::test(start_paused = true)]
async fn a_walk_that_continues_after_a_failure_ends_where_no_route_holds() {
    let text = "
graph: g
nodes:
  a: {function: f, retry: none, on_failure: continue, next: [{to: b, when: \"nodes.a.status == 'success'\"}], on_no_match: end}
  b: {value: 2}
";
    let result = played(text, json!({}), script(json!({"a": [{"fail": "away"}]}))).await.result().await;
    assert_eq!((result.status, result.quality), (GraphStatus::NoMatch, Quality::Degraded));
    assert_eq!(visits(&result.trace), ["a#1 failed"]);
}

// G19
#[tokio::test(start_paused = true)]
async fn a_failure_leads_on_with_its_message_class_and_node() {
    let text = "
graph: g
nodes:
  a: {function: f, on_failure: [{to: c, when: \"error.class == 'rejected'\"}, {to: b}]}
  b: {value: \"${ error.node }: ${ error.message } (${ error.class }), ${ nodes.a.status }, ${ has(a) }\"}
  c: {value: no}
";
    let failing = script(json!({"a": [{"fail": "no such order", "class": "permanent"}]}));
    let result = played(text, json!({}), failing).await.result().await;
    assert_eq!(result.output, "a: no such order (permanent), failed, true");
    assert_eq!(routes(&result.trace), ["a -> b: default"]);
    assert_eq!(result.quality, Quality::Degraded);
}

// G17, G26
#[tokio::test(start_paused = true)]
async fn three_attempts_are_made_after_one_and_two_seconds() {
    let text = "graph: g\nnodes:\n  a: {function: f}\n";
    let first =
        played(text, json!({}), script(json!({"a": [{"fail": "1"}, {"fail": "2"}, {"data": 3}]}))).await;
    let result = first.result().await;
    assert_eq!(
        (&result.output, result.quality, first.elapsed()),
        (&json!(3), Quality::Clean, Duration::from_secs(3))
    );
    assert_eq!(result.trace.visits[0].attempts, 3);

    let failing =
        played(text, json!({}), script(json!({"a": [{"fail": "1"}, {"fail": "2"}, {"fail": "3"}]}))).await;
    assert!(failing.failure().await.to_string().contains('3'));
    assert_eq!(failing.elapsed(), Duration::from_secs(3));

    for class in ["permanent", "rejected"] {
        let failing = played(text, json!({}), script(json!({"a": [{"fail": "no", "class": class}]}))).await;
        assert_eq!(failing.failure().await.trace.visits[0].attempts, 1);
        assert_eq!(failing.elapsed(), Duration::ZERO);
    }
}

// G17
#[tokio::test(start_paused = true)]
async fn stated_attempts_have_stated_delays() {
    let text =
        "graph: g\nnodes:\n  a: {function: f, retry: {attempts: 5, first: 2s, factor: 3, most: 10s}}\n";
    let played = played(text, json!({}), script(json!({"a": [{"fail": "away"}]}))).await;
    assert_eq!(played.failure().await.trace.visits[0].attempts, 5);
    assert_eq!(played.elapsed(), Duration::from_secs(2 + 6 + 10 + 10));
}

// G17, G18: data that does not fit is no accident.
#[tokio::test(start_paused = true)]
async fn data_that_does_not_fit_is_not_tried_again() {
    let text = "graph: g\nnodes:\n  a: {function: f, output: {type: integer}, ensure: [a > 3]}\n";
    let unfit =
        played(text, json!({}), script(json!({"a": [{"data": "x"}, {"data": 4}]}))).await.failure().await;
    assert_eq!(unfit.trace.visits[0].attempts, 1);
    expect![[r#"`a` failed after 1 attempt (permanent): the data does not fit `output`: "x" is not of type "integer""#]]
        .assert_eq(&unfit.to_string());
    let low = played(text, json!({}), script(json!({"a": [{"data": 3}, {"data": 4}]}))).await.failure().await;
    expect![
        "`a` failed after 1 attempt (permanent): a check does not hold: `a > 3`: it is false, where `a` is 3"
    ]
    .assert_eq(&low.to_string());
}

// G19
#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_that_a_document_can_catch() {
    async fn f(_: Value, _: NodeContext) -> Result<Value, NodeError> {
        panic!("out of luck")
    }

    let text = "
graph: g
nodes:
  a: {function: f, retry: none, on_failure: b}
  b: {value: \"${ error.message }\"}
";
    let played = start(bound(text, Registry::new().function("f", f)), json!({}), GraphOptions::new()).await;
    let result = played.result().await;
    assert!(result.output.as_str().unwrap().contains("out of luck"), "{}", result.output);
    assert_eq!(result.quality, Quality::Degraded);
}

// G17: an attempt has a time, and the next one has it anew.
#[tokio::test(start_paused = true)]
async fn an_attempt_beyond_its_time_is_followed_by_the_next() {
    async fn f(_: Value, context: NodeContext) -> Result<Value, NodeError> {
        if context.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(json!(context.attempt()))
    }

    let text = "graph: g\nnodes:\n  a: {function: f, timeout: 2s, retry: {attempts: 2, first: 1s}}\n";
    let played = start(bound(text, Registry::new().function("f", f)), json!({}), GraphOptions::new()).await;
    assert_eq!(played.result().await.output, 2);
    assert_eq!(played.elapsed(), Duration::from_secs(3));
}

// G24
#[tokio::test(start_paused = true)]
async fn a_dry_run_ends_before_the_first_choice_with_its_routes() {
    let text = "
graph: g
nodes:
  a: {value: 1, next: b}
  b: {value: 2, next: [{to: c, when: b > 1}, {to: c, when: b > 0}, {to: end, when: b == 0, id: nothing}, {to: c}]}
  c: {value: 3}
";
    let played = start(workflows(text, json!({})), json!({}), GraphOptions::new().dry_run()).await;
    let result = played.result().await;
    assert_eq!((result.status, result.quality, &*result.at), (GraphStatus::DryRun, Quality::Clean, "b"));
    assert_eq!(result.candidates, ["b->c", "b->c.2", "nothing", "b->c.3"]);
    assert_eq!(visits(&result.trace), ["a#1 success", "b#1 success"]);
    assert_eq!(result.output, Value::Null);
}

// G11
#[tokio::test(start_paused = true)]
async fn defaults_of_the_input_are_seen_by_expressions_and_functions() {
    async fn f(text: Value, context: NodeContext) -> Result<Value, NodeError> {
        Ok(json!([text, context.input()]))
    }

    let text = "
graph: g
input: {type: object, properties: {n: {type: integer}, unit: {type: string, default: cm}}, required: [n]}
nodes:
  a: {function: f, with: \"${ input.n }${ input.unit }\", next: [{to: b, when: \"input.unit == 'cm'\"}, {to: end}]}
  b: {value: \"${ a }\"}
";
    let workflows = bound(text, Registry::new().function("f", f));
    let result = start(workflows.clone(), json!({"n": 3}), GraphOptions::new()).await.result().await;
    assert_eq!(result.output, json!(["3cm", {"n": 3, "unit": "cm"}]));
    let whole = json!({"n": 3, "unit": "m"});
    let result = start(workflows, whole.clone(), GraphOptions::new()).await.result().await;
    assert_eq!(result.output, json!(["3m", whole]));
}

// G11: a node that has not run has been visited no times.
#[tokio::test(start_paused = true)]
async fn visits_are_counted_from_none() {
    let text = "
graph: g
nodes:
  a:
    value: [\"${ visits }\", \"${ nodes.a.visits }\", \"${ nodes.b.visits }\", \"${ nodes.b.status }\"]
    next: [{to: b, when: nodes.b.visits + 0 < 2, max: 9}, {to: end}]
  b: {value: 1, next: a}
";
    let result = played(text, json!({}), json!({})).await.result().await;
    assert_eq!(visits(&result.trace).last().unwrap(), "a#3 success");
    assert_eq!(result.output, json!([3, 3, 2, "success"]));
}

// G10, G21, G23
#[tokio::test(start_paused = true)]
async fn a_visit_beyond_the_bound_of_its_node_keeps_the_result_and_counts() {
    let text = "
graph: g
limits: {steps: 6}
vars: {n: 0}
nodes:
  a: {value: \"${ vars.n }\", max_visits: 2, set: {n: \"${ vars.n + 1 }\"}, next: b}
  b: {value: \"${ a }\", next: a}
";
    let result = played(text, json!({}), json!({})).await.result().await;
    assert_eq!((result.status, result.quality), (GraphStatus::StepLimit, Quality::Failed));
    let expected =
        ["a#1 success", "b#1 success", "a#2 success", "b#2 success", "a#3 success kept", "b#3 success"];
    assert_eq!(visits(&result.trace), expected);
    assert_eq!(data(&result), [("a".to_owned(), json!(1)), ("b".to_owned(), json!(1))].into());
    assert_eq!((result.output, &*result.at), (Value::Null, "a"));
}

// G20
#[tokio::test(start_paused = true)]
async fn an_unmet_requirement_skips_or_fails() {
    let text = "
graph: g
nodes:
  a: {value: 1, requires: {all: [input.x > 1], otherwise: skip}, next: b}
  b: {value: \"${ nodes.a.status }\", requires: [input.y > 1]}
";
    let result = played(text, json!({"x": 0, "y": 2}), json!({})).await.result().await;
    assert_eq!(visits(&result.trace), ["a#1 skipped", "b#1 success"]);
    assert_eq!((result.output, result.quality), (json!("skipped"), Quality::Clean));
    let failure = played(text, json!({"x": 2, "y": 0}), json!({})).await.failure().await;
    expect!["`b` failed after 1 attempt (permanent): `b` requires what does not hold: `input.y > 1`: it is false, where `input.y` is 0"].assert_eq(&failure.to_string());
}

// G28: a script plays commands, too, and nothing is started.
#[tokio::test]
async fn a_script_plays_the_commands_of_a_document() {
    let text = "graph: g\nnodes:\n  a: {command: [no-such-program], retry: none}\n";
    let script = json!({"nodes": {"a": [{"data": {"lines": 3}}]}});
    let played = start(workflows(text, script), json!({}), GraphOptions::new()).await;
    assert_eq!(played.run.outcome().await.unwrap().output, json!({"lines": 3}));
}

/// A model that panics whatever it is asked.
struct Panics;

impl AgentExecutor for Panics {
    fn run<'a>(
        &'a self,
        _: AgentTask<'a>,
        _: &'a NodeContext,
    ) -> BoxFuture<'a, Result<AgentResult, NodeError>> {
        panic!("out of luck")
    }

    fn decide<'a>(&'a self, _: Question<'a>) -> BoxFuture<'a, Result<Choice, NodeError>> {
        panic!("out of luck")
    }

    fn ask<'a>(&'a self, _: Prompt<'a>) -> BoxFuture<'a, Result<String, NodeError>> {
        panic!("out of luck")
    }
}

// G13: a fallback to the end has its warning, and a panic of the model takes it.
#[tokio::test]
async fn the_fallback_to_the_end_has_a_warning_after_a_panic_too() {
    let text = "
graph: g
nodes:
  a: {value: 1, next: {decide: Which?, choices: [{to: b}], otherwise: end}}
  b: {value: 2}
";
    for registry in [
        Registry::new().agents(Panics),
        Registry::new().script(ScriptedExecutor::from_json(&json!({"decide": {"a": ["c"]}})).unwrap()),
    ] {
        let played = start(bound(text, registry), json!({}), GraphOptions::new()).await;
        let result = played.result().await;
        assert_eq!((&*result.at, result.warnings.len()), ("a", 1), "{:?}", result.warnings);
        assert!(result.warnings[0].contains("fallback: "), "{:?}", result.warnings);
    }
}

// G24
#[tokio::test(start_paused = true)]
async fn a_dry_run_ends_before_the_first_choice_of_a_child() {
    let text = "
graph: g
nodes: {a: {CALL next: b}, b: {function: f}}
---
graph: child
nodes: {x: {value: 1, next: [{when: has(input.yes), to: y}, {to: z}]}, y: {function: f}, z: {function: f}}
";
    for call in ["graph: child,", "for_each: '[1, 2]', graph: child,"] {
        let text = text.replace("CALL", call);
        let played = start(workflows(&text, json!({})), json!({}), GraphOptions::new().dry_run()).await;
        let result = played.result().await;
        assert_eq!((result.status, &*result.at), (GraphStatus::DryRun, "a"));
        assert_eq!(result.candidates, ["child: x->y", "child: x->z"]);
    }
    // One without a choice runs whole.
    let text = "
graph: g
nodes: {a: {graph: child}}
---
graph: child
nodes: {x: {value: 7}}
";
    let played = start(workflows(text, json!({})), json!({}), GraphOptions::new().dry_run()).await;
    assert_eq!(played.result().await.output, 7);
}
