//! The questions of native documents to models, and their contexts.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_graph::{
    AgentExecutor, AgentResult, AgentTask, Choice, Document, GraphRun, NodeContext, NodeError, Prompt,
    Question, Registry, ScriptedExecutor,
};

/// Notes what models are asked, and plays a script.
#[derive(Clone)]
struct Noting {
    script: ScriptedExecutor,
    /// The context of each question, and the text of each prompt.
    seen: Arc<Mutex<Vec<Value>>>,
}

impl AgentExecutor for Noting {
    fn run<'a>(
        &'a self,
        task: AgentTask<'a>,
        context: &'a NodeContext,
    ) -> BoxFuture<'a, Result<AgentResult, NodeError>> {
        self.script.run(task, context)
    }

    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Choice, NodeError>> {
        self.seen.lock().unwrap().push(question.context.clone());
        self.script.decide(question)
    }

    fn ask<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<String, NodeError>> {
        self.seen.lock().unwrap().push(json!(prompt.text));
        self.script.ask(prompt)
    }
}

/// The contexts and prompts of a run.
async fn seen(text: &str, input: Value, script: Value) -> Vec<Value> {
    let script = ScriptedExecutor::from_json(&script).unwrap();
    let noting = Noting { script, seen: Arc::default() };
    let document = Document::parse(text, "g.yaml").unwrap_or_else(|error| panic!("{error}"));
    let registry = Registry::new().agents(noting.clone());
    let engine = Engine::builder().workflows(document.bind(&registry).unwrap()).build().unwrap();
    let run = GraphRun::start(&engine, "g", input).await.unwrap();
    run.outcome().await.unwrap();
    std::mem::take(&mut *noting.seen.lock().unwrap())
}

const DECIDE: &str = "
graph: g
nodes:
  gather: {value: {severity: high}, next: note}
  note: {value: noted, next: last}
  last: {WORK, next: {decide: 'High?', choices: [{to: end}], otherwise: end}}
";

// G13
#[tokio::test]
async fn a_model_that_chooses_sees_the_input_and_every_result_so_far() {
    let text = DECIDE.replace("WORK", "value: 1");
    let seen = seen(&text, json!({"id": 7}), json!({"decide": {"last": ["end"]}})).await;
    assert_eq!(
        seen,
        [json!({"input": {"id": 7}, "gather": {"severity": "high"}, "note": "noted", "last": 1})]
    );
}

// G13
#[tokio::test]
async fn behind_an_agent_with_reads_a_model_sees_what_the_agent_saw() {
    let text = DECIDE.replace("WORK", "agent: Do it., reads: [note]");
    let seen = seen(&text, json!({}), json!({"decide": {"last": ["end"]}})).await;
    assert_eq!(seen, [json!({"input": {}, "note": "noted", "last": {}})]);
}

// G13
#[tokio::test]
async fn a_context_beyond_its_bound_is_cut_at_the_largest_results() {
    let text = DECIDE.replace("WORK", "value: 1");
    let long = "x".repeat(1 << 20);
    let seen = seen(&text, json!({"long": long}), json!({"decide": {"last": ["end"]}})).await;
    assert_eq!(seen[0]["gather"], json!({"severity": "high"}));
    let input = seen[0]["input"].as_str().unwrap();
    assert!(input.starts_with(r#"{"long":"xxx"#) && input.ends_with("… (cut: 1048587 bytes of JSON in all)"));
    assert!(seen[0].to_string().len() < (257 << 10));
}

// G18
#[tokio::test]
async fn a_judge_sees_the_input_and_every_result_so_far() {
    for work in ["value: 1", "agent: Do it."] {
        let work = format!("{work}, ensure: [{{name: good, judge: 'Fits the severity?'}}]");
        let text = DECIDE
            .replace("WORK", &work)
            .replace(", next: {decide: 'High?', choices: [{to: end}], otherwise: end}", "");
        let seen = seen(&text, json!({"id": 7}), json!({})).await;
        let prompt = seen[0].as_str().unwrap();
        let context = json!({"input": {"id": 7}, "gather": {"severity": "high"}, "note": "noted"});
        assert!(prompt.contains(&context.to_string()), "{prompt}");
    }
}
