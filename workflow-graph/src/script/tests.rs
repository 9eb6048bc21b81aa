//! The entries that are played, and their effects.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use workflow_core::ErrorClass;

use super::ScriptedExecutor;
use crate::context::testing::{context, parts};
use crate::{
    AgentExecutor, AgentResult, AgentStatus, AgentTask, NodeActivity, NodeContext, NodeError, Prompt,
    Purpose, Question, ToolCall, ToolExecutor,
};

fn script(text: &str) -> ScriptedExecutor {
    ScriptedExecutor::parse(text, "s.yaml").unwrap()
}

async fn play(script: &ScriptedExecutor, node: &str, runs: u32) -> Result<Value, (ErrorClass, String)> {
    let played = script.call("any", json!({}), &context(node, runs)).await;
    played.map_err(|error| (error.class(), error.to_string()))
}

async fn run(script: &ScriptedExecutor, node: &str, runs: u32) -> Result<AgentResult, NodeError> {
    let task = AgentTask {
        node,
        instruction: String::new(),
        rules: Vec::new(),
        background: Vec::new(),
        skills: Vec::new(),
        needs_any_skill: false,
        inline_skills: Vec::new(),
        context: json!({}),
        allow: None,
        deny: Vec::new(),
        output: None,
        model: None,
        max_turns: None,
        retry: None,
        hive: None,
    };
    script.run(task, &context(node, runs)).await
}

fn question(node: &str, asked: u32) -> Question<'_> {
    let result = &Value::Null;
    let (context, choices) = (result, Vec::new());
    Question { node, question: "Which?", context, result, goal: None, choices, model: None, asked }
}

fn prompt(node: &str, purpose: Purpose, asked: u32) -> Prompt<'_> {
    Prompt { node, purpose, text: "Well?".to_owned(), model: None, asked }
}

#[tokio::test]
async fn attempts_are_played_in_order_and_the_last_repeats() {
    let script = script("nodes: {a: [{data: 1}, {fail: away}, {fail: no, class: rejected}, {data: {x: 4}}]}");
    assert_eq!(play(&script, "a", 0).await, Ok(json!(1)));
    assert_eq!(play(&script, "a", 1).await, Err((ErrorClass::Transient, "away".to_owned())));
    assert_eq!(play(&script, "a", 2).await, Err((ErrorClass::Rejected, "no".to_owned())));
    for runs in [3, 4, u32::MAX] {
        assert_eq!(play(&script, "a", runs).await, Ok(json!({"x": 4})));
    }
    // Entries that were played before make no difference.
    assert_eq!(play(&script, "a", 0).await, Ok(json!(1)));
}

#[tokio::test]
async fn nodes_and_entries_that_say_nothing_return_an_empty_map() {
    let script = script("nodes: {a: [{called: []}]}");
    assert_eq!(play(&script, "a", 0).await, Ok(json!({})));
    assert_eq!(play(&script, "b", 5).await, Ok(json!({})));
    let agent = run(&script, "b", 0).await.unwrap();
    assert_eq!((agent.status, agent.data, agent.calls), (AgentStatus::Success, json!({}), Vec::new()));
}

#[tokio::test]
async fn agents_return_their_calls_and_may_skip() {
    let script = script(
        "nodes: {a: [{data: {x: 1}, called: [{tool: search}, {tool: mail, ok: false}]}, {skip: enough}]}",
    );
    let first = run(&script, "a", 0).await.unwrap();
    let calls = [("search", true), ("mail", false)].map(|(tool, ok)| ToolCall::new(tool, ok));
    assert_eq!(
        (first.status, first.data, first.calls),
        (AgentStatus::Success, json!({"x": 1}), calls.to_vec())
    );
    let second = run(&script, "a", 1).await.unwrap();
    assert_eq!((second.status, second.data), (AgentStatus::Skipped, json!({"skipped_reason": "enough"})));
    let refused = "the script skips `a`, and only agents skip their work";
    assert_eq!(play(&script, "a", 1).await, Err((ErrorClass::Permanent, refused.to_owned())));
}

#[tokio::test]
async fn agents_fail_with_the_class_of_the_script() {
    let classes = ["transient", "tool", "model", "permanent", "rejected"];
    let entries: Vec<Value> = classes.iter().map(|class| json!({"fail": "x", "class": class})).collect();
    let script = ScriptedExecutor::from_json(&json!({"nodes": {"a": entries}})).unwrap();
    for (runs, class) in (0..).zip(classes) {
        assert_eq!(run(&script, "a", runs).await.unwrap_err().class().to_string(), class);
    }
}

/// G32
#[tokio::test]
async fn calls_of_tools_are_shown() {
    let script = script("nodes: {a: [{called: [{tool: search, ok: false}]}]}");
    let (parts, mut shown) = parts("a");
    script.play(&NodeContext::new(parts)).await.unwrap();
    for expected in [json!(["tool_called", null]), json!(["tool_returned", false])] {
        let item = shown.next().await.unwrap();
        let item = serde_json::to_value(item.event::<NodeActivity>().unwrap()).unwrap();
        assert_eq!(json!([item["kind"], item.get("ok")]), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_entry_takes_its_time_on_the_clock_of_tokio() {
    let script = script("nodes: {a: [{data: 1, after: 48h}]}");
    let context = context("a", 0);
    let before = tokio::time::Instant::now();
    assert_eq!(script.play(&context).await.unwrap(), json!(1));
    assert!(before.elapsed() >= Duration::from_hours(48));
}

/// G13
#[tokio::test]
async fn choices_are_played_by_the_number_of_the_question() {
    let script = script("decide: {a: [left, right]}");
    for (asked, expected) in [(0, "left"), (1, "right"), (2, "right")] {
        assert_eq!(script.decide(question("a", asked)).await.unwrap().to, expected);
    }
    let error = script.decide(question("b", 0)).await.unwrap_err();
    assert_eq!(error.to_string(), "the script has no choice of a model at `b`");
    assert_eq!(error.class(), ErrorClass::Permanent);
}

#[tokio::test]
async fn judges_go_by_node_and_say_yes_where_the_script_says_nothing() {
    let script = script("judge: {a: ['no: long', 'yes: fine']}\nask: [Shorten it., Stop.]");
    for (node, asked, expected) in
        [("a", 0, "no: long"), ("a", 1, "yes: fine"), ("a", 9, "yes: fine"), ("b", 0, "yes")]
    {
        assert_eq!(script.ask(prompt(node, Purpose::Judge, asked)).await.unwrap(), expected);
    }
    for (node, asked, expected) in [("a", 0, "Shorten it."), ("b", 1, "Stop."), ("a", 2, "Stop.")] {
        assert_eq!(script.ask(prompt(node, Purpose::Guidance, asked)).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn advice_that_the_script_lacks_is_an_error() {
    let error = script("").ask(prompt("a", Purpose::Guidance, 0)).await.unwrap_err();
    assert_eq!(error.to_string(), "the script has no answer to prompts for advice");
}

#[test]
fn replies_go_by_visit() {
    let script = script("replies: {a: [{granted: false}, {granted: true}]}");
    assert_eq!(script.replies("a", 1), Some(&json!({"granted": false})));
    assert_eq!(script.replies("a", 2), Some(&json!({"granted": true})));
    assert_eq!(script.replies("a", 3), Some(&json!({"granted": true})));
    assert_eq!(script.replies("b", 1), None);
}
