//! Agent nodes: their tasks, their ends and their retries.

use serde_json::json;
use workflow_core::ErrorClass;

use super::support::{Player, call, ran};
use crate::node::agent::Asked;
use crate::{AgentResult, AgentStatus, NodeError};

const CHECKED: &str = "
graph: g
nodes:
  draft:
    agent: Write.
    output: {type: object, properties: {text: {type: string}}, required: [text]}
    ensure:
      all:
        - {name: short, check: len(draft.text) <= 3}
        - {name: looked-up, called: {any: [search]}}
        - {name: sourced, judge: 'Has ${ draft.text } a source?'}
      retries: 1
";

fn wrote(text: &str) -> AgentResult {
    AgentResult::new(json!({ "text": text })).calls([call("search", true)])
}

#[tokio::test]
async fn the_task_is_rendered_from_the_document() {
    let player = Player::runs([Ok(AgentResult::new(json!({"text": "a"}))
        .conversation(json!([1]))
        .calls([call("search", true)]))]);
    let text = "
graph: g
defaults: {model: small}
nodes:
  n:
    agent:
      instruction: 'Write about ${ input.topic }.'
      rules: ['At most ${ input.most } words.', Be kind.]
      background: '${ input.known }'
      skills: [prose]
      tools: {allow: [search], deny: [rm]}
      max_turns: 5
    output: {type: object}
";
    let scope = json!({"input": {"topic": "wire", "most": 9, "known": {"a": 1}}});
    let done = ran(text, scope, &player).await.unwrap();
    assert_eq!(
        player.task(0).shown,
        "n: Write about wire. [\"At most 9 words.\", \"Be kind.\"] [\"{\\\"a\\\":1}\"] [\"prose\"] {\"input\":\"shown\"} \
         Some([\"search\"]) [\"rm\"] {\"type\":\"object\"} Some(\"small\") Some(5)"
    );
    assert_eq!(player.task(0).retry, None);
    assert_eq!((done.status, done.data), (AgentStatus::Success, json!({"text": "a"})));
    assert_eq!((done.conversation, done.calls), (Some(json!([1])), vec![call("search", true)]));
    assert_eq!(done.asked, Asked { runs: 1, judged: 0, prompts: 0 });
    assert!(done.verdicts.is_empty() && done.warnings.is_empty());
}

#[tokio::test]
async fn the_model_of_the_node_comes_before_that_of_the_document() {
    let player = Player::runs([Ok(AgentResult::new(1))]);
    let text = "
graph: g
defaults: {model: small}
nodes:
  n: {agent: {instruction: Write., model: large}}
";
    ran(text, json!({}), &player).await.unwrap();
    assert_eq!(
        player.task(0).shown,
        "n: Write. [] [] [] {\"input\":\"shown\"} None [] anything Some(\"large\") None"
    );
}

#[tokio::test]
async fn a_template_without_a_value_fails_the_node_before_the_agent_runs() {
    let player = Player::default();
    let text = "graph: g\nnodes:\n  n: {agent: {instruction: Write., rules: 'n ${ input.n + 1 }'}}\n";
    let failed = ran(text, json!({"input": {"n": "x"}}), &player).await.unwrap_err();
    assert_eq!(failed.class(), ErrorClass::Permanent);
    assert!(failed.to_string().starts_with("`rules` has no value: `input.n + 1`: "), "{}", failed);
}

// G17
#[tokio::test]
async fn an_error_of_the_executor_keeps_its_class_and_is_not_retried() {
    for (error, class) in [
        (NodeError::transient("away"), ErrorClass::Transient),
        (NodeError::rejected("away"), ErrorClass::Rejected),
        (NodeError::tool("away"), ErrorClass::Tool),
    ] {
        let failed = ran(CHECKED, json!({}), &Player::runs([Err(error)])).await.unwrap_err();
        assert_eq!((failed.class(), failed.to_string()), (class, "away".to_owned()));
    }
}

// SW9
#[tokio::test]
async fn an_agent_that_gives_up_fails_its_node_without_checks_and_without_retry() {
    let result = AgentResult::new(json!({"error": "no access"})).status(AgentStatus::Failed);
    let failed = ran(CHECKED, json!({}), &Player::runs([Ok(result)])).await.unwrap_err();
    assert_eq!(failed.class(), ErrorClass::Model);
    assert_eq!(failed.to_string(), "the agent failed: no access");

    let result = AgentResult::new(json!({"error": 5})).status(AgentStatus::Failed);
    let failed = ran(CHECKED, json!({}), &Player::runs([Ok(result)])).await.unwrap_err();
    assert_eq!(failed.to_string(), "the agent failed, and gives no `error` in its data");
}

// SW9
#[tokio::test]
async fn an_agent_that_has_nothing_to_do_is_not_checked() {
    let result = AgentResult::new(json!({"why": "done before"})).status(AgentStatus::Skipped);
    let done = ran(CHECKED, json!({}), &Player::runs([Ok(result)])).await.unwrap();
    assert_eq!((done.status, done.data), (AgentStatus::Skipped, json!({"why": "done before"})));
    assert!(done.verdicts.is_empty());
}

// G18
#[tokio::test]
async fn all_checks_run_and_their_verdicts_are_in_the_result() {
    let player = Player::runs([Ok(wrote("a"))]).answers([Ok("yes: it does")]);
    let done = ran(CHECKED, json!({}), &player).await.unwrap();
    let checks: Vec<_> =
        done.verdicts.iter().map(|verdict| (&*verdict.check, verdict.failure.as_deref())).collect();
    assert_eq!(checks, [("short", None), ("looked-up", None), ("sourced", None)]);
    assert_eq!(done.asked, Asked { runs: 1, judged: 1, prompts: 0 });
    assert!(player.prompt(0).text.contains("Has a a source?"));
}

// G17
#[tokio::test]
async fn failed_checks_are_retried_with_every_reason() {
    let first = AgentResult::new(json!({"text": "long"})).calls([call("search", false)]);
    let player = Player::runs([Ok(first), Ok(wrote("b"))]).answers([Ok("no: none"), Ok("yes")]);
    let done = ran(CHECKED, json!({}), &player).await.unwrap();
    let reasons = "`short`: `len(draft.text) <= 3` is false, where `draft.text` is \"long\"\n\
                   `looked-up`: no call of `search` succeeded\n\
                   `sourced`: the judge says `no`: none";
    assert_eq!(player.task(1).retry, Some((reasons.to_owned(), None)));
    assert_eq!(player.task(1).instruction, "Write.");
    assert_eq!(*player.contexts.lock().unwrap(), [0, 1]);
    assert_eq!(player.asked(), ["draft Judge - 10", "draft Judge - 11"]);
    // Downstream sees the last run alone.
    assert_eq!((done.data, done.calls), (json!({"text": "b"}), vec![call("search", true)]));
    assert!(done.verdicts.iter().all(|verdict| verdict.failure.is_none()));
    assert_eq!(done.asked, Asked { runs: 2, judged: 2, prompts: 0 });
}

// SW6
#[tokio::test]
async fn data_that_does_not_fit_its_schema_is_retried_and_not_checked_further() {
    let player = Player::runs([Ok(AgentResult::new(json!({"n": 1}))), Ok(wrote("b"))]).answers([Ok("yes")]);
    ran(CHECKED, json!({}), &player).await.unwrap();
    let (failure, _) = player.task(1).retry.unwrap();
    assert_eq!(failure, "`output`: the data does not fit `output`: \"text\" is a required property");
    assert_eq!(player.asked().len(), 1);
}

// G18
#[tokio::test]
async fn checks_that_fail_after_all_retries_fail_the_node_for_good() {
    let player = Player::runs([Ok(wrote("a")), Ok(wrote("long"))]).answers([Ok("no: none"), Ok("no: none")]);
    let failed = ran(CHECKED, json!({}), &player).await.unwrap_err();
    assert_eq!(failed.class(), ErrorClass::Permanent);
    assert_eq!(
        failed.to_string(),
        "2 checks do not hold: `short`: `len(draft.text) <= 3` is false, where `draft.text` is \"long\"; `sourced`: the \
         judge says `no`: none (the agent ran 2 times)"
    );
}

// SW6
#[tokio::test]
async fn each_reason_of_the_failure_is_cut() {
    let long = format!("no: {}", "x".repeat(2_000));
    let player = Player::runs([Ok(wrote("a")), Ok(wrote("a"))]).answers([Ok(&*long), Ok(&*long)]);
    let text = ran(CHECKED, json!({}), &player).await.unwrap_err().to_string();
    let start = "a check does not hold: `sourced`: ";
    let end = " (the agent ran 2 times)";
    assert!(text.starts_with(start) && text.ends_with(&format!("x…{end}")), "{text}");
    assert_eq!(text.chars().count(), start.chars().count() + 501 + end.chars().count());
}

// G17
#[tokio::test]
async fn an_error_in_a_retry_is_the_nodes() {
    let player = Player::runs([Ok(wrote("long")), Err(NodeError::model("away"))]).answers([Ok("yes")]);
    let failed = ran(CHECKED, json!({}), &player).await.unwrap_err();
    assert_eq!((failed.class(), failed.to_string()), (ErrorClass::Model, "away".to_owned()));
}

// G18
#[tokio::test]
async fn without_ensure_the_schema_alone_decides() {
    let text = "graph: g\nnodes:\n  n: {agent: Write., output: {type: string}}\n";
    let failed = ran(text, json!({}), &Player::runs([Ok(AgentResult::new(1))])).await.unwrap_err();
    assert_eq!(failed.class(), ErrorClass::Permanent);
    assert_eq!(
        failed.to_string(),
        "a check does not hold: `output`: the data does not fit `output`: 1 is not of type \"string\""
    );
}
