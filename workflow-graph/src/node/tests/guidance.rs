//! The advice that an agent receives for its next run.

use serde_json::json;

use super::support::{Player, ran};
use crate::node::agent::Asked;
use crate::{AgentResult, NodeError};

fn document(guidance: &str, retries: u32) -> String {
    format!(
        "
graph: g
defaults: {{model: small}}
nodes:
  n:
    agent: 'Count ${{ input.what }}.'
    ensure: {{all: [{{name: many, check: n.n > 1}}], retries: {retries}, guidance: {guidance}}}
"
    )
}

fn counted(n: u32) -> AgentResult {
    AgentResult::new(json!({ "n": n }))
}

// SW9
#[tokio::test]
async fn a_text_is_rendered_with_the_data_that_failed() {
    let player = Player::runs([Ok(counted(0)), Ok(counted(1)), Ok(counted(2))]);
    let text = document("'More ${ input.what } than ${ n.n }.'", 3);
    let done = ran(&text, json!({"input": {"what": "sheep"}}), &player).await.unwrap();
    let failure = |n: u32| format!("`many`: `n.n > 1` is false, where `n.n` is {n}");
    assert_eq!(player.task(1).retry, Some((failure(0), Some("More sheep than 0.".to_owned()))));
    assert_eq!(player.task(2).retry, Some((failure(1), Some("More sheep than 1.".to_owned()))));
    assert_eq!(done.asked, Asked { runs: 3, judged: 0, prompts: 0 });
}

// SW9
#[tokio::test]
async fn a_model_comments_on_the_failure() {
    let player = Player::runs([Ok(counted(0)), Ok(counted(1)), Ok(counted(2))])
        .answers([Ok("Look again."), Ok("Once more.")]);
    let done = ran(&document("auto", 2), json!({"input": {"what": "sheep"}}), &player).await.unwrap();
    assert_eq!(player.task(1).retry.unwrap().1.unwrap(), "Look again.");
    assert_eq!(player.task(2).retry.unwrap().1.unwrap(), "Once more.");
    assert_eq!(player.asked(), ["n Guidance small 20", "n Guidance small 21"]);
    let text = player.prompt(1).text;
    for part in ["Count sheep.", "{\"n\":1}", "`many`: `n.n > 1` is false, where `n.n` is 1"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(done.asked, Asked { runs: 3, judged: 0, prompts: 2 });
    assert!(done.warnings.is_empty());
}

// SW9
#[tokio::test]
async fn without_advice_the_agent_tries_again_with_the_reasons_alone() {
    let player = Player::runs([Ok(counted(0)), Ok(counted(0)), Ok(counted(2))])
        .answers([Err(NodeError::model("away")), Ok(" \n")]);
    let done = ran(&document("auto", 2), json!({"input": {"what": "sheep"}}), &player).await.unwrap();
    assert_eq!((player.task(1).retry.unwrap().1, player.task(2).retry.unwrap().1), (None, None));
    let warnings: Vec<&str> = done.warnings.iter().map(|warning| &**warning).collect();
    assert_eq!(
        warnings,
        [
            "the agent tries again without guidance: away",
            "the agent tries again without guidance: the model said nothing",
        ]
    );
    assert_eq!(done.asked.prompts, 2);
}

#[tokio::test]
async fn a_text_without_a_value_is_a_warning() {
    let player = Player::runs([Ok(counted(0)), Ok(counted(9))]);
    let text = document("'${ n.n + \"x\" } more'", 1);
    let done = ran(&text, json!({"input": {"what": "x"}}), &player).await.unwrap();
    assert_eq!(player.task(1).retry.unwrap().1, None);
    assert!(done.warnings[0].starts_with("the agent tries again without guidance: `n.n + \"x\"`: "));
    assert_eq!(done.asked, Asked { runs: 2, judged: 0, prompts: 0 });
}
