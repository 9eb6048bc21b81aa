//! Documents, names and an executor that plays what a test scripts and records what it is asked.

use std::collections::VecDeque;
use std::sync::Mutex;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::context::testing::context;
use crate::document::model::{Node, Work};
use crate::expression::Scope;
use crate::node::agent::{self, AgentDone, AgentWork};
use crate::node::judge::Judges;
use crate::node::{Sees, checks};
use crate::{
    AgentExecutor, AgentResult, AgentTask, Choice, Document, NodeContext, NodeError, Prompt, Question,
    ToolCall,
};

pub(super) fn document(text: &str) -> Document {
    Document::parse(text, "test.yaml").unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn names(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no map"),
    }
}

pub(super) fn call(tool: &str, ok: bool) -> ToolCall {
    ToolCall::new(tool, ok)
}

/// Why a check of `ensure` of node `n` does not hold.
pub(super) fn unmet_after(check: &str, calls: &[ToolCall], scope: Value) -> Option<String> {
    let document = document(&format!("graph: g\nnodes:\n  n: {{function: f, ensure: [{check}]}}\n"));
    let ensure = document.graphs()[0].nodes[0].ensure.as_ref().unwrap();
    let mut judges = Judges::new("n", None, None, &Value::Null, 0);
    let scope = names(scope);
    let verdicts = checks::ensure(ensure, &Value::Null, &scope, calls, &mut judges)
        .now_or_never()
        .expect("nobody is asked");
    assert_eq!(verdicts.len(), 1);
    verdicts[0].failure.clone()
}

/// The same with `n` as the only name, and without calls.
pub(super) fn unmet(check: &str, data: impl Into<Value>) -> Option<String> {
    unmet_after(check, &[], json!({ "n": data.into() }))
}

/// Plays answers in order, and records what it is asked.
#[derive(Default)]
pub(super) struct Player {
    runs: Mutex<VecDeque<Result<AgentResult, NodeError>>>,
    answers: Mutex<VecDeque<Result<String, NodeError>>>,
    pub(super) tasks: Mutex<Vec<Task>>,
    pub(super) prompts: Mutex<Vec<Posed>>,
    /// The runs before each, of which the surroundings were asked for.
    pub(super) contexts: Mutex<Vec<u32>>,
}

/// The part of a task that tests read.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) shown: String,
    pub(super) instruction: String,
    pub(super) retry: Option<(String, Option<String>)>,
}

#[derive(Debug, Clone)]
pub(super) struct Posed {
    pub(super) shown: String,
    pub(super) text: String,
    pub(super) asked: u32,
}

impl Player {
    pub(super) fn runs(runs: impl IntoIterator<Item = Result<AgentResult, NodeError>>) -> Self {
        Self { runs: Mutex::new(runs.into_iter().collect()), ..Self::default() }
    }

    pub(super) fn answers<'a>(self, answers: impl IntoIterator<Item = Result<&'a str, NodeError>>) -> Self {
        let answers = answers.into_iter().map(|answer| answer.map(str::to_owned)).collect();
        Self { answers: Mutex::new(answers), ..self }
    }

    pub(super) fn prompt(&self, at: usize) -> Posed {
        self.prompts.lock().unwrap()[at].clone()
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.prompts.lock().unwrap().iter().map(|prompt| prompt.shown.clone()).collect()
    }

    pub(super) fn task(&self, at: usize) -> Task {
        self.tasks.lock().unwrap()[at].clone()
    }
}

impl AgentExecutor for Player {
    fn run<'a>(
        &'a self,
        task: AgentTask<'a>,
        _: &'a NodeContext,
    ) -> BoxFuture<'a, Result<AgentResult, NodeError>> {
        let retry = task.retry.clone().map(|mend| (mend.failure, mend.guidance));
        let AgentTask { node, instruction, rules, background, skills, .. } = &task;
        let AgentTask { context: reads, allow, deny, output, model, max_turns, .. } = &task;
        let shown = format!(
            "{node}: {instruction} {rules:?} {background:?} {skills:?} {reads} {allow:?} {deny:?} {} {model:?} {max_turns:?}",
            output.map_or("anything".to_owned(), Value::to_string),
        );
        let instruction = instruction.clone();
        self.tasks.lock().unwrap().push(Task { shown, instruction, retry });
        let result = self.runs.lock().unwrap().pop_front().expect("the agent runs too often");
        Box::pin(async move {
            tokio::task::yield_now().await;
            result
        })
    }

    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Choice, NodeError>> {
        panic!("nothing is decided: {question:?}")
    }

    fn ask<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<String, NodeError>> {
        let Prompt { node, purpose, text, model, asked } = prompt;
        let shown = format!("{node} {purpose:?} {} {asked}", model.unwrap_or("-"));
        self.prompts.lock().unwrap().push(Posed { shown, text, asked });
        let answer = self.answers.lock().unwrap().pop_front().expect("there are too many questions");
        Box::pin(async move {
            tokio::task::yield_now().await;
            answer
        })
    }
}

/// Asks the judge of a check of node `n`, whose data is `{text: a}`; and how often it was asked.
pub(super) async fn judged(check: &str, player: &Player, before: u32) -> (Option<String>, u32) {
    let document = document(&format!("graph: g\nnodes:\n  n: {{function: f, ensure: [{check}]}}\n"));
    let ensure = document.graphs()[0].nodes[0].ensure.as_ref().unwrap();
    let context = json!({"input": {"topic": "tea"}, "n": null});
    let mut judges = Judges::new("n", Some(player), Some("default-judge"), &context, before);
    let data = json!({"text": "a"});
    let scope = names(json!({ "n": data }));
    let verdicts = checks::ensure(ensure, &data, &scope, &[], &mut judges).await;
    (verdicts[0].failure.clone(), judges.asked())
}

/// Names beside which the node's own data appears.
struct World<'a> {
    node: &'a Node,
    names: Map<String, Value>,
    context: Box<dyn Fn(u32) -> NodeContext + Send + Sync>,
    player: &'a Player,
}

impl Sees for World<'_> {
    fn before(&self) -> &(dyn Scope + Send + Sync) {
        &self.names
    }

    fn with<'a>(&'a self, data: &'a Value) -> Box<dyn Scope + Send + Sync + 'a> {
        let mut names = self.names.clone();
        names.insert(self.node.id.value.to_string(), data.clone());
        Box::new(names)
    }

    fn context(&self, runs: u32) -> NodeContext {
        self.player.contexts.lock().unwrap().push(runs);
        (self.context)(runs)
    }
}

/// Runs the first node of a document, which is an agent node. It asked 10 judges and 20 times for guidance before.
pub(super) async fn ran(
    text: &str,
    scope: Value,
    player: &Player,
) -> Result<AgentDone, workflow_core::StepError> {
    let document = document(text);
    let graph = &document.graphs()[0];
    let node = &graph.nodes[0];
    let Work::Agent(agent) = &node.work else { panic!("the first node is no agent") };
    let world = World { node, names: names(scope), context: Box::new(contexts()), player };
    let work = AgentWork {
        node,
        agent,
        defaults: &graph.defaults,
        executor: player,
        sees: &world,
        reads: json!({"input": "shown"}),
        judged: 10,
        prompts: 20,
        hive: None,
    };
    is_send(agent::run(work)).await
}

fn is_send<T: Send>(value: T) -> T {
    value
}

/// Contexts of a node that ran twice before.
fn contexts() -> impl Fn(u32) -> NodeContext + Send + Sync + 'static {
    let context = context("n", 2);
    move |runs| context.after(runs)
}
