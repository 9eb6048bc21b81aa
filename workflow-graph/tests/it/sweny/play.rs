//! Runs a document with agents that a test writes, and notes what they were given.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_graph::{
    AgentExecutor, AgentResult, AgentTask, Choice, Document, Format, GraphResult, GraphRun, NodeContext,
    NodeError, Prompt, Question, Registry, ScriptedExecutor,
};

/// The task that an agent was given.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    pub(super) node: String,
    pub(super) instruction: String,
    pub(super) rules: Vec<String>,
    pub(super) background: Vec<String>,
    pub(super) skills: Vec<String>,
    pub(super) inline: Vec<Value>,
    pub(super) context: Value,
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Vec<String>,
    pub(super) output: Value,
    pub(super) model: Option<String>,
    pub(super) max_turns: Option<u32>,
    pub(super) retry: Option<(String, Option<String>)>,
}

/// A question to a model.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) node: String,
    pub(super) context: Value,
    pub(super) result: Value,
    pub(super) choices: Vec<(String, String)>,
    pub(super) model: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) tasks: Vec<Given>,
    pub(super) questions: Vec<Asked>,
    /// Prompts: their text and their model.
    pub(super) prompts: Vec<(String, Option<String>)>,
}

/// Replaces what the script returns for a node.
pub(super) type Replace = fn(&str, u32) -> Option<Result<AgentResult, NodeError>>;

/// A script that notes.
#[derive(Clone)]
pub(super) struct Noting {
    pub(super) script: ScriptedExecutor,
    pub(super) notes: Arc<Mutex<Notes>>,
    pub(super) replace: Replace,
}

impl Noting {
    pub(super) fn new(script: &Value) -> Self {
        let script = ScriptedExecutor::from_json(script).unwrap();
        Self { script, notes: Arc::default(), replace: |_, _| None }
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

impl AgentExecutor for Noting {
    fn run<'a>(
        &'a self,
        task: AgentTask<'a>,
        context: &'a NodeContext,
    ) -> BoxFuture<'a, Result<AgentResult, NodeError>> {
        let given = Given {
            node: task.node.to_owned(),
            instruction: task.instruction.clone(),
            rules: task.rules.clone(),
            background: task.background.clone(),
            skills: owned(&task.skills),
            inline: task.inline_skills.iter().map(|skill| json!(skill)).collect(),
            context: task.context.clone(),
            allow: task.allow.as_deref().map(owned),
            deny: owned(&task.deny),
            output: task.output.cloned().unwrap_or_default(),
            model: task.model.map(str::to_owned),
            max_turns: task.max_turns,
            retry: task.retry.clone().map(|retry| (retry.failure, retry.guidance)),
        };
        let mut notes = self.notes.lock().unwrap();
        let before = notes.tasks.iter().filter(|earlier| earlier.node == given.node).count();
        notes.tasks.push(given);
        drop(notes);
        match (self.replace)(task.node, u32::try_from(before).unwrap()) {
            Some(result) => Box::pin(std::future::ready(result)),
            None => self.script.run(task, context),
        }
    }

    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Choice, NodeError>> {
        let choices = question.choices.iter();
        let asked = Asked {
            node: question.node.to_owned(),
            context: question.context.clone(),
            result: question.result.clone(),
            choices: choices
                .map(|offer| (offer.to.to_owned(), offer.about.unwrap_or_default().to_owned()))
                .collect(),
            model: question.model.map(str::to_owned),
        };
        self.notes.lock().unwrap().questions.push(asked);
        self.script.decide(question)
    }

    fn ask<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<String, NodeError>> {
        let model = prompt.model.map(str::to_owned);
        self.notes.lock().unwrap().prompts.push((prompt.text.clone(), model));
        self.script.ask(prompt)
    }
}

/// A run that ended.
pub(super) struct Ran {
    pub(super) result: GraphResult,
    pub(super) notes: Notes,
    pub(super) events: Vec<String>,
}

impl Ran {
    pub(super) fn path(&self) -> Vec<String> {
        self.result.trace.visits.iter().map(|visit| visit.node.to_string()).collect()
    }

    pub(super) fn statuses(&self) -> BTreeMap<String, Value> {
        self.result.results.iter().map(|(node, outcome)| (node.clone(), json!(outcome.status))).collect()
    }

    pub(super) fn task(&self, node: &str) -> &Given {
        self.notes.tasks.iter().rev().find(|given| given.node == node).unwrap()
    }

    pub(super) fn runs(&self, node: &str) -> usize {
        self.notes.tasks.iter().filter(|given| given.node == node).count()
    }

    pub(super) fn reasons(&self) -> Vec<String> {
        self.result.trace.routes.iter().map(|route| route.reason.to_string()).collect()
    }

    pub(super) fn error(&self, node: &str) -> &str {
        self.result.results[node].error.as_deref().unwrap_or("no error")
    }
}

pub(super) fn document(text: &str) -> Document {
    Document::parse(text, "s.yaml").unwrap()
}

/// Runs a document with a script.
pub(super) async fn run(text: &str, input: Value, script: Value) -> Ran {
    run_in(&document(text), input, Noting::new(&script), Registry::new()).await
}

pub(super) async fn run_as(text: &str, format: Format, script: Value) -> Ran {
    let document = Document::parse_as(text, "s.yaml", format).unwrap();
    run_in(&document, json!({}), Noting::new(&script), Registry::new()).await
}

pub(super) async fn run_in(document: &Document, input: Value, agents: Noting, registry: Registry) -> Ran {
    let registry = registry.agents(agents.clone());
    let engine = Engine::builder().workflows(document.bind(&registry).unwrap()).build().unwrap();
    let run = GraphRun::start(&engine, document.name(), input).await.unwrap();
    let result = run.outcome().await.unwrap();
    let report = run.run().report().await.unwrap();
    let events = report.log.iter().map(|logged| logged.event.to_string()).collect();
    let notes = std::mem::take(&mut *agents.notes.lock().unwrap());
    Ran { result, notes, events }
}
