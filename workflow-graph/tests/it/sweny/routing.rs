//! The edges that walks of SWEny documents follow.

use serde_json::{Value, json};
use workflow_core::report::Quality;
use workflow_graph::{Format, GraphStatus, SwenyOptions};

use super::play::{Ran, run, run_as};

/// Nodes `a`, `b` and `c`, the first with these keys, and these edges.
fn graph(rest: &str, edges: &str) -> String {
    format!(
        "
id: g
name: G
entry: a
model: big
nodes:
  a: {{name: A, instruction: Do.{rest}}}
  b: {{name: B, instruction: Do.}}
  c: {{name: C, instruction: Do.}}
edges: [{edges}, {{from: b, to: c, when: never, max_iterations: 1}}]
"
    )
}

fn ends(ran: &Ran) -> (Value, Vec<String>, Vec<String>, Quality) {
    (json!(ran.result.status), ran.path(), ran.reasons(), ran.result.quality)
}

// SW12, SW13
#[tokio::test]
async fn the_only_edge_is_taken_without_a_question_if_it_has_no_condition() {
    let text = graph("", "{from: a, to: c, when: '  '}")
        .replace(", {from: b, to: c, when: never, max_iterations: 1}", ", {from: c, to: b}");
    let ran = run(&text, json!({}), json!({})).await;
    assert!(ran.notes.questions.is_empty());
    assert_eq!(
        ends(&ran),
        (
            json!("completed"),
            vec!["a".into(), "c".into(), "b".into()],
            vec!["only path".into(); 2],
            Quality::Clean
        )
    );
}

// SW12
#[tokio::test]
async fn a_single_condition_is_asked_too() {
    let text =
        graph("", "{from: a, to: b, when: it rains}, {from: a, to: c, when: it snows, max_iterations: 1}")
            .replace("when: it snows", "when: it rains");
    let ran = run(&text, json!({}), json!({"decide": {"a": ["b"], "b": ["c"]}})).await;
    assert_eq!(ran.path(), ["a", "b", "c"]);
    let asked = &ran.notes.questions[1];
    assert_eq!(asked.node, "b");
    assert_eq!(asked.choices, [("c".to_owned(), "never".to_owned())]);
    assert_eq!(asked.model.as_deref(), Some("big"));
    assert_eq!(ran.reasons(), ["it rains", "never"]);
    assert_eq!(ran.result.at, "c");
}

// SW12
#[tokio::test]
async fn the_edge_without_a_condition_stands_for_none_of_them() {
    let text = graph("", "{from: a, to: b, when: it rains}, {from: a, to: c}");
    let ran = run(&text, json!({}), json!({"decide": {"a": ["c"]}})).await;
    let none = "none of the other conditions holds";
    assert_eq!(
        ran.notes.questions[0].choices,
        [("b".to_owned(), "it rains".to_owned()), ("c".to_owned(), none.to_owned())]
    );
    assert_eq!((ran.reasons(), ran.result.warnings.len()), (vec!["only path".to_owned()], 0));

    let ran = run(&text, json!({}), json!({"decide": {"a": ["C"]}})).await;
    assert_eq!(
        (ran.path(), ran.reasons()),
        (vec!["a".to_owned(), "c".to_owned()], vec!["only path".to_owned()])
    );
    assert_eq!(ran.result.warnings, ["`a`: the model chose `C`, which is no choice"]);

    let ran = run(&text, json!({}), json!({})).await;
    assert_eq!(ran.path(), ["a", "c"]);
    assert_eq!(
        ran.result.warnings,
        ["`a`: the model chose no route: the script has no choice of a model at `a`"]
    );
}

// SW12
#[tokio::test]
async fn without_such_an_edge_an_answer_that_is_no_choice_ends_the_walk() {
    let text = graph("", "{from: a, to: b, when: it rains}, {from: a, to: c, when: it snows}");
    let ran =
        run(&text, json!({}), json!({"decide": {"a": ["d"]}, "nodes": {"a": [{"data": {"x": 1}}]}})).await;
    assert_eq!(ends(&ran), (json!("no_match"), vec!["a".into()], vec![], Quality::Degraded));
    assert_eq!((ran.result.output.clone(), ran.result.warnings.len()), (json!({"x": 1}), 0));

    let ran = run(&text, json!({}), json!({})).await;
    assert_eq!(ran.result.status, GraphStatus::NoMatch);
    assert_eq!(
        ran.result.warnings,
        ["`a`: the model chose no route: the script has no choice of a model at `a`"]
    );
}

// SW12
#[tokio::test]
async fn two_edges_to_one_target_are_one_choice_with_both_texts() {
    let text = graph(
        "",
        "{from: a, to: b, when: it rains}, {from: a, to: c, when: it is dry}, {from: a, to: b, when: it snows}",
    );
    let ran = run(&text, json!({}), json!({"decide": {"a": ["b"], "b": ["x"]}})).await;
    let choices = &ran.notes.questions[0].choices;
    assert_eq!(
        *choices,
        [("b".to_owned(), "it rains or it snows".to_owned()), ("c".to_owned(), "it is dry".to_owned())]
    );
    assert_eq!(ran.reasons(), ["it rains"]);
}

// SW12
#[tokio::test]
async fn edges_between_the_same_nodes_share_a_count() {
    let text = "
id: g
name: G
entry: a
nodes:
  a: {name: A, instruction: Do.}
  b: {name: B, instruction: Do.}
  c: {name: C, instruction: Do.}
edges:
  - {from: a, to: b, when: first, max_iterations: 1}
  - {from: a, to: b, when: second, max_iterations: 2}
  - {from: a, to: c, when: enough}
  - {from: b, to: a}
";
    let ran = run(text, json!({}), json!({"decide": {"a": ["b", "b", "c"]}})).await;
    assert_eq!(ran.path(), ["a", "b", "a", "b", "a", "c"]);
    assert_eq!(ran.reasons(), ["first", "only path", "second", "only path", "enough"]);
    let offered: Vec<usize> = ran.notes.questions.iter().map(|asked| asked.choices.len()).collect();
    assert_eq!(offered, [2, 2, 1]);
    assert_eq!(ran.notes.questions[1].choices[0].1, "second");
    assert!(ran.events.iter().filter(|event| *event == "a:taken").count() == 3, "{:?}", ran.events);
}

// SW12
#[tokio::test]
async fn where_every_edge_is_used_up_the_walk_ends_as_no_match() {
    let text = "
id: g
name: G
entry: a
nodes: {a: {name: A, instruction: Do.}}
edges: [{from: a, to: a, max_iterations: 2}]
";
    let ran = run(text, json!({}), json!({})).await;
    assert_eq!(
        ends(&ran),
        (json!("no_match"), vec!["a".into(); 3], vec!["only path".into(); 2], Quality::Degraded)
    );
    assert!(ran.notes.questions.is_empty());
}

// SW14
#[tokio::test]
async fn a_routing_model_sees_the_described_keys_alone() {
    let output = ", output: {type: object, properties: {x: {type: object}, y: {type: string}}}, eval: [{name: has_x, kind: value, rule: {output_required: [x]}}]";
    let text = graph(output, "{from: a, to: b, when: it rains}, {from: a, to: c}");
    let script = |data: Value| json!({"nodes": {"a": [{"data": data}]}, "decide": {"a": ["c"]}});
    let ran = run(&text, json!({}), script(json!({"x": {"deep": 1}, "secret": 2}))).await;
    let seen = json!({"x": {"deep": 1}, "y": null, "evals": {"has_x": {"name": "has_x", "pass": true}}});
    assert_eq!(ran.notes.questions[0].result, seen);
    assert_eq!(
        ran.result.warnings,
        ["`a`: the model that chooses the route sees null for `y`, which the data lacks"]
    );

    let ran = run(&text, json!({}), script(json!({"secret": 2}))).await;
    assert_eq!((ran.statuses()["a"].clone(), ran.result.warnings.len()), (json!("failed"), 0));
    assert_eq!(ran.notes.questions[0].result["x"], Value::Null);

    let text = graph("", "{from: a, to: b, when: it rains}, {from: a, to: c}");
    let ran = run(&text, json!({}), script(json!({"secret": 2}))).await;
    assert_eq!((ran.notes.questions[0].result.clone(), ran.result.warnings.len()), (json!({"secret": 2}), 0));
}

// SW14
#[tokio::test]
async fn a_routing_model_sees_the_input_and_every_result_so_far() {
    let text = "
id: g
name: G
entry: gather
nodes:
  gather: {name: A, instruction: Do., output: {type: object, properties: {severity: {type: string}}}}
  skipped: {name: S, instruction: Do., requires: {output_required: [input.none], on_fail: skip}}
  b: {name: B, instruction: Do., eval: [{name: has_x, kind: value, rule: {output_required: [x]}}]}
  c: {name: C, instruction: Do.}
edges:
  - {from: gather, to: skipped}
  - {from: skipped, to: b}
  - {from: b, to: c, when: the severity that `gather` found is high}
  - {from: b, to: b, when: not yet, max_iterations: 1}
";
    let script = json!({
        "nodes": {
            "gather": [{"data": {"severity": "high", "prose": "it is low"}}],
            "b": [{"data": {"x": 1}}, {"data": {"x": 2}}],
        },
        "decide": {"b": ["b", "c"]},
    });
    let ran = run(text, json!({"ticket": 7}), script).await;
    let asked = &ran.notes.questions[1];
    // Of a node with a schema the described keys alone.
    assert_eq!(asked.context["gather"], json!({"severity": "high"}));
    assert_eq!(asked.context["input"], json!({"ticket": 7}));
    assert!(asked.context["skipped"]["skipped_reason"].is_string(), "{}", asked.context);
    assert_eq!(asked.context["b"]["x"], 2);
    assert_eq!(asked.context["b"], asked.result);
    assert_eq!(asked.context.as_object().unwrap().len(), 4);
}

// SW8
#[tokio::test]
async fn a_judge_sees_the_input_and_every_result_so_far() {
    let text = "
id: g
name: G
entry: a
nodes:
  a: {name: A, instruction: Do.}
  b: {name: B, instruction: Do., eval: [{name: fits, kind: judge, rubric: Does it fit the severity?}]}
edges: [{from: a, to: b}]
";
    let script = json!({"nodes": {"a": [{"data": {"severity": "high"}}], "b": [{"data": {"x": 1}}]}});
    let ran = run(text, json!({"ticket": 7}), script).await;
    let (prompt, _) = &ran.notes.prompts[0];
    let (before, data) = prompt.split_once("# Data").unwrap();
    let context = json!({"input": {"ticket": 7}, "a": {"severity": "high"}});
    assert!(before.contains(&context.to_string()), "{prompt}");
    assert!(data.contains(r#"{"x":1}"#), "{prompt}");
}

// SW15
#[tokio::test]
async fn a_dry_run_ends_behind_the_first_node_with_a_condition() {
    let text = "
id: g
name: G
entry: a
nodes:
  a: {name: A, instruction: Do.}
  b: {name: B, instruction: Do.}
  c: {name: C, instruction: Do.}
edges: [{from: a, to: b}, {from: b, to: c, when: it rains}, {from: b, to: b, when: again, max_iterations: 1}]
";
    let script = json!({"decide": {"b": ["c"]}, "nodes": {"b": [{"fail": "away"}]}});
    let ran = run(text, json!({"dryRun": true}), script.clone()).await;
    assert_eq!(
        (json!(ran.result.status), ran.path()),
        (json!("dry_run"), vec!["a".to_owned(), "b".to_owned()])
    );
    assert_eq!(ran.result.candidates, ["b->c", "b->b"]);
    assert!(ran.notes.questions.is_empty());
    let ran = run(text, json!({"dryRun": "true"}), script).await;
    assert_eq!(ran.result.status, GraphStatus::Completed);
}

// SW16
#[tokio::test]
async fn a_run_ends_after_two_hundred_visits_and_attempts_do_not_count() {
    let text = "
id: g
name: G
entry: a
nodes:
  a: {name: A, instruction: Do., output: {type: object, required: [x]}, retry: {max: 1}}
edges: [{from: a, to: a, max_iterations: 1000}]
";
    let ran = run(text, json!({}), json!({})).await;
    assert_eq!((json!(ran.result.status), ran.path().len()), (json!("step_limit"), 200));
    assert_eq!((ran.runs("a"), ran.result.quality), (400, Quality::Failed));
    let ran = run_as(text, Format::Sweny(SwenyOptions::new().steps(3)), json!({})).await;
    assert_eq!((json!(ran.result.status), ran.path().len()), (json!("step_limit"), 3));
}

const BRANCHES: &str = "
id: g
name: G
entry: a
nodes:
  a: {name: A, instruction: Do.}
  b: {name: B, instruction: Do.}
  c: {name: C, instruction: Do.}
  d: {name: D, instruction: Do.}
  e: {name: E, instruction: Do.}
edges: [{from: a, to: b}, {from: a, to: c}, {from: b, to: d}, {from: c, to: e, when: it rains}, {from: e, to: d}]
";

// SW17
#[tokio::test]
async fn with_the_option_edges_without_conditions_open_branches() {
    let options = || Format::Sweny(SwenyOptions::new().parallel());
    let script =
        json!({"nodes": {"b": [{"fail": "away"}], "e": [{"data": {"e": 1}}]}, "decide": {"c": ["e"]}});
    let ran = run_as(BRANCHES, options(), script).await;
    let mut path = ran.path();
    path.sort();
    assert_eq!(path, ["a", "b", "c", "d", "e"]);
    assert_eq!(ran.task("d").context["b"], json!({"error": "away"}));
    assert_eq!(ran.task("d").context["e"], json!({"e": 1}));
    assert_eq!((ran.result.at.as_str(), ran.result.quality), ("d", Quality::Degraded));

    // A branch that ends because no condition holds does not hold up the join.
    let ran = run_as(BRANCHES, options(), json!({"decide": {"c": ["nothing"]}})).await;
    let mut path = ran.path();
    path.sort();
    assert_eq!(
        (path, ran.result.quality),
        (["a", "b", "c", "d"].map(str::to_owned).to_vec(), Quality::Degraded)
    );
    assert_eq!(ran.result.status, GraphStatus::Completed);
}
