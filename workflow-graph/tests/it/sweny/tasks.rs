//! Tasks of agents of SWEny documents, and their failures.

use serde_json::{Value, json};
use workflow_core::report::Quality;
use workflow_graph::{AgentResult, AgentStatus, GraphError, GraphRun, Registry, VisitStatus};

use super::play::{Noting, document, run, run_in};

const SKILLS: &str = "
id: g
name: G
entry: a
skills:
  tickets: {name: Tickets, instruction: Search first., mcp: {command: server}, mcpAliases: {open: [create]}}
nodes:
  a:
    name: A
    instruction: Do it.
    skills: [tickets, mail]
    tools: {allow: [open, search], deny: [search]}
    disallowed_tools: [shell]
    max_turns: 7
    output: {type: object, properties: {x: {type: string}}}
edges: []
";

// SW1
#[tokio::test]
async fn an_agent_receives_its_skills_and_which_tools_to_keep_and_drop() {
    let ran = run(SKILLS, json!({}), json!({})).await;
    let task = ran.task("a");
    assert_eq!(task.skills, ["tickets", "mail"]);
    assert_eq!(task.inline.len(), 1);
    assert_eq!(task.inline[0]["instruction"], "Search first.");
    assert_eq!(task.inline[0]["mcpAliases"], json!({"open": ["create"]}));
    assert_eq!(task.allow.as_deref().unwrap(), ["open", "search"]);
    assert_eq!(task.deny, ["search", "shell"]);
    assert_eq!(task.max_turns, Some(7));
    assert_eq!(task.output["properties"], json!({"x": {"type": "string"}}));
    assert_eq!(ran.result.quality, Quality::Clean);
}

// SW1
#[tokio::test]
async fn a_node_none_of_whose_skills_is_there_fails_when_it_is_reached() {
    let text = SKILLS.replace("skills: [tickets, mail]", "skills: [mail, chat]");
    let registry = Registry::new().skills(["github"]);
    let ran = run_in(&document(&text), json!({}), Noting::new(&json!({})), registry).await;
    assert_eq!(ran.runs("a"), 0);
    assert_eq!(ran.statuses()["a"], json!("failed"));
    assert_eq!(ran.error("a"), "`a` needs one of the skills `mail`, `chat`, and none of them is there");

    // One is in the document, or nobody knows which there are.
    let registry = Registry::new().skills(["github"]);
    let ran = run_in(&document(SKILLS), json!({}), Noting::new(&json!({})), registry).await;
    assert_eq!(ran.runs("a"), 1);
    assert_eq!(run(&text, json!({}), json!({})).await.runs("a"), 1);
}

// SW1
#[tokio::test]
async fn a_registered_skill_wins_over_one_of_the_document() {
    let registry = Registry::new().skills(["tickets"]);
    let ran = run_in(&document(SKILLS), json!({}), Noting::new(&json!({})), registry).await;
    assert_eq!(ran.task("a").skills, ["tickets", "mail"]);
    assert!(ran.task("a").inline.is_empty());
}

// SW2
#[tokio::test]
async fn a_node_reads_the_input_and_the_latest_results_of_all_nodes_that_ended() {
    let text = "
id: g
name: G
entry: fine
nodes:
  fine: {name: A, instruction: Do., eval: [{name: has_x, kind: value, rule: {output_required: [x]}}]}
  fails: {name: B, instruction: Do., eval: [{name: has_y, kind: value, rule: {output_required: [y]}}]}
  skips: {name: C, instruction: Do., requires: {output_required: [fails.y], on_fail: skip}}
  last: {name: D, instruction: Do., requires: {output_matches: [{path: fine.evals.has_x.pass, equals: true}]}}
edges: [{from: fine, to: fails}, {from: fails, to: skips}, {from: skips, to: last}]
";
    let script = json!({"nodes": {"fine": [{"data": {"x": 1}}], "fails": [{"data": {"z": 2}}]}});
    let ran = run(text, json!({"who": "Ada"}), script).await;
    assert_eq!(
        ran.task("last").context,
        json!({
            "input": {"who": "Ada"},
            "fine": {"x": 1, "evals": {"has_x": {"name": "has_x", "pass": true}}},
            "fails": {
                "z": 2,
                "error": "a check does not hold: `has_y`: `y` is missing",
                "evals": {"has_y": {"name": "has_y", "pass": false, "reasoning": "`y` is missing"}},
            },
            "skips": {"skipped_reason": "`skips` requires what does not hold: `output_required`: `fails.y` is missing"},
        })
    );
    assert_eq!(ran.statuses()["last"], json!("success"));
    assert_eq!(ran.result.results["fine"].data, json!({"x": 1}));
}

const LAYERS: &str = "
id: g
name: G
entry: a
rules: [document rule]
context: [document context]
nodes:
  a: {name: A, instruction: Do., rules: [node rule], context: [node context]}
  b: {name: B, instruction: Do., rules: {only: true, sources: [alone]}, context: {sources: [more]}}
edges: [{from: a, to: b}]
";

// SW3
#[tokio::test]
async fn rules_and_context_come_from_the_run_the_document_and_the_node_in_this_order() {
    let input = json!({"rules": ["run rule"], "context": "run context"});
    let ran = run(LAYERS, input, json!({})).await;
    let (a, b) = (ran.task("a"), ran.task("b"));
    assert_eq!(a.rules, ["run rule", "document rule", "node rule"]);
    assert_eq!(a.background, ["run context", "document context", "node context"]);
    assert_eq!(a.instruction, "Do.");
    assert_eq!(b.rules, ["alone"]);
    assert_eq!(b.background, ["run context", "document context", "more"]);
}

// SW4
#[tokio::test]
async fn models_are_those_of_the_nearest_level_that_names_one() {
    let text = |top: &str| {
        format!(
            "
id: g
name: G
entry: a
{top}
nodes:
  a: {{name: A, instruction: Do., model: own, eval: [{{name: x, kind: judge, rubric: Good?, model: mine}}]}}
  b: {{name: B, instruction: Do., judge_model: node, eval: [{{name: x, kind: judge, rubric: Good?}}]}}
  c: {{name: C, instruction: Do., eval: [{{name: x, kind: judge, rubric: Good?}}]}}
edges: [{{from: a, to: b}}, {{from: b, to: c}}]
"
        )
    };
    let models = |ran: &super::play::Ran| {
        let tasks: Vec<_> = ran.notes.tasks.iter().map(|task| task.model.clone()).collect();
        let judges: Vec<_> = ran.notes.prompts.iter().map(|(_, model)| model.clone()).collect();
        json!([tasks, judges])
    };
    let ran = run(&text("model: big\njudge_model: small"), json!({}), json!({})).await;
    assert_eq!(models(&ran), json!([["own", "big", "big"], ["mine", "node", "small"]]));
    let ran = run(&text(""), json!({}), json!({})).await;
    assert_eq!(models(&ran), json!([["own", null, null], ["mine", "node", null]]));
}

// SW5
#[tokio::test]
async fn requires_names_every_failure_and_nothing_runs_but_routing() {
    let text = |on_fail: &str| {
        format!(
            "
id: g
name: G
entry: a
nodes:
  a:
    name: A
    instruction: Do.
    requires:
      output_required: [input.x, 'input.list[*].y', input.there]
      output_matches: [{{path: 'input.none[*].z', equals: 1}}, {{path: 'any:input.none[*].z', equals: 1}}, {{path: input.there, in: [2, 3]}}, {{path: input.there, matches: '^o'}}]
      on_fail: {on_fail}
    eval: [{{name: x, kind: judge, rubric: Good?}}]
    retry: {{max: 2}}
  b: {{name: B, instruction: Do.}}
edges: [{{from: a, to: b}}]
"
        )
    };
    let input = json!({"x": null, "list": [], "none": [], "there": "one"});
    let message = "`a` requires what does not hold: `output_required`: `input.x` is missing; \
        `input.list[*].y` has no element; \
        `output_matches`: `input.none[*].z` has no element; one has to be 1; \
        `output_matches`: `input.there` is \"one\"; it has to be one of [2, 3]";
    let ran = run(&text("fail"), input.clone(), json!({})).await;
    assert_eq!((ran.runs("a"), ran.notes.prompts.len()), (0, 0));
    assert_eq!(ran.path(), ["a", "b"]);
    assert_eq!(ran.result.results["a"].status, VisitStatus::Failed);
    assert_eq!(ran.error("a"), message);
    assert_eq!(ran.result.quality, Quality::Degraded);

    let ran = run(&text("skip"), input, json!({})).await;
    assert_eq!((ran.runs("a"), ran.notes.prompts.len()), (0, 0));
    assert_eq!(ran.result.results["a"].status, VisitStatus::Skipped);
    assert_eq!(ran.result.results["a"].data, json!({"skipped_reason": message}));
    assert_eq!(ran.result.quality, Quality::Clean);

    let input = json!({"x": 1, "list": [{"y": 1}], "none": [{"z": 1}], "there": "one"});
    let ran = run(&text("fail").replace("[2, 3]", "[one]"), input, json!({})).await;
    assert_eq!(ran.runs("a"), 1);
}

const SOFT: &str = "
id: g
name: G
entry: a
nodes:
  a: {name: A, instruction: Do., fail_soft: true, output: {type: object, required: [x]}}
  b: {name: B, instruction: Do.}
edges: [{from: a, to: b}]
";

// SW10
#[tokio::test]
async fn a_soft_failure_is_a_success_with_the_error_in_its_data() {
    let mut agents = Noting::new(&json!({}));
    agents.replace = |node, _| {
        let result = AgentResult::new(json!({"error": "no access", "x": 1})).status(AgentStatus::Failed);
        (node == "a").then_some(Ok(result))
    };
    let ran = run_in(&document(SOFT), json!({}), agents, Registry::new()).await;
    assert_eq!(ran.statuses()["a"], json!("success"));
    assert_eq!(ran.task("b").context["a"], json!({"error": "no access", "x": 1, "fail_soft": true}));
    assert_eq!(ran.result.quality, Quality::Degraded);

    // An error of the executor is a failed result.
    let ran = run(SOFT, json!({}), json!({"nodes": {"a": [{"fail": "away"}]}})).await;
    assert_eq!(ran.task("b").context["a"], json!({"error": "away", "fail_soft": true}));

    // Missing output is no failure that the agent reports.
    let ran = run(SOFT, json!({}), json!({"nodes": {"a": [{"data": {"y": 1}}]}})).await;
    assert_eq!(ran.statuses()["a"], json!("failed"));
    assert_eq!(ran.task("b").context["a"]["evals"]["output_required"]["pass"], false);
}

// SW11
#[tokio::test]
async fn a_failed_node_does_not_stop_the_walk_and_its_data_stays() {
    let text = "
id: g
name: G
entry: a
nodes:
  a: {name: A, instruction: Do., retry: {max: 3}}
  b: {name: B, instruction: Do.}
  c: {name: C, instruction: Do.}
  d: {name: D, instruction: Do.}
edges: [{from: a, to: b}, {from: b, to: c}, {from: c, to: d}]
";
    let mut agents = Noting::new(&json!({"nodes": {"b": [{"fail": "away", "class": "tool"}]}}));
    agents.replace = |node, _| match node {
        "a" => Some(Ok(AgentResult::new(json!({"half": 1})).status(AgentStatus::Failed))),
        "c" => panic!("out of cheese"),
        _ => None,
    };
    let ran = run_in(&document(text), json!({}), agents, Registry::new()).await;
    assert_eq!(ran.path(), ["a", "b", "c", "d"]);
    assert_eq!(
        ran.statuses(),
        serde_json::from_value(json!({"a": "failed", "b": "failed", "c": "failed", "d": "success"})).unwrap()
    );
    let context = &ran.task("d").context;
    assert_eq!(context["a"], json!({"half": 1}));
    assert_eq!(context["b"], json!({"error": "away"}));
    assert_eq!(ran.error("a"), "the agent failed, and gives no `error` in its data");
    assert_eq!(ran.error("b"), "away");
    assert_eq!(ran.error("c"), "the executor panicked: out of cheese");
    let classes: Vec<_> = ran
        .result
        .trace
        .visits
        .iter()
        .filter_map(|visit| Some(visit.error.as_ref()?.class.to_string()))
        .collect();
    assert_eq!(classes, ["model", "tool", "permanent"]);
    assert_eq!(ran.result.quality, Quality::Degraded);
    assert_eq!(ran.runs("a"), 1, "a result that the agent calls failed is not retried");
}

const INPUTS: &str = "
id: g
name: G
entry: a
inputs:
  alarm: {type: string, required: true, description: Which one.}
  hours: {type: number, default: 24}
  tags: {type: 'string[]', enum: [a, b]}
  loud: {type: boolean}
nodes: {a: {name: A, instruction: Do.}}
edges: []
";

// SW19
#[tokio::test]
async fn inputs_have_defaults_null_is_missing_and_undeclared_keys_pass() {
    let ran =
        run(INPUTS, json!({"alarm": "disk", "hours": null, "tags": null, "more": null}), json!({})).await;
    assert_eq!(ran.task("a").context["input"], json!({"alarm": "disk", "hours": 24, "more": null}));
}

// SW19
#[tokio::test]
async fn every_mistake_of_an_input_is_reported_at_once() {
    let registry = Registry::new().agents(Noting::new(&json!({})));
    let document = document(INPUTS);
    let engine =
        workflow_core::Engine::builder().workflows(document.bind(&registry).unwrap()).build().unwrap();
    for (input, expected) in [
        (
            json!({"alarm": null, "hours": "2", "tags": ["a", "c", 1], "loud": "yes"}),
            vec!["alarm", "hours", "loud", "tags[1]", "tags[2]", "tags[2]"],
        ),
        (Value::Null, vec!["alarm"]),
    ] {
        let refused = GraphRun::start(&engine, "g", input).await.unwrap_err();
        let GraphError::Unfit { fields, .. } = refused else { panic!("{refused}") };
        let mut paths: Vec<_> = fields.iter().map(|field| field.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, expected);
    }
}
