//! The attempts of a node: the task, its evaluations, and further attempts with the reasons and advice. They come to a
//! result in any case; errors and panics of the executor are failed results.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::evaluate::{self, Aliases};
use super::seen::Seen;
use crate::document::model::sweny::{Layer, SwenyGraph, SwenyGuidance, SwenyNode};
use crate::document::model::{Agent, Defaults, Node};
use crate::executor::caught;
use crate::node::judge::{Judges, bounded};
use crate::node::{add_warnings, checks, reason};
use crate::retried::Again;
use crate::skill::InlineSkill;
use crate::state::{Verdict, VisitStatus};
use crate::{
    AgentExecutor, AgentResult, AgentStatus, AgentTask, Mend, NodeContext, NodeError, Prompt, Purpose,
    ToolCall,
};

/// A node, and what its attempts need.
pub(super) struct Attempts<'a> {
    pub(super) node: &'a Node,
    pub(super) agent: &'a Agent,
    pub(super) extras: &'a SwenyNode,
    pub(super) graph: &'a SwenyGraph,
    pub(super) defaults: &'a Defaults,
    pub(super) executor: &'a dyn AgentExecutor,
    /// The skills of the program, if it says which it has.
    pub(super) registered: Option<&'a BTreeSet<Arc<str>>>,
    pub(super) context: NodeContext,
    pub(super) seen: Arc<Seen>,
    /// Questions to judges before, of this node in this run.
    pub(super) judged: u32,
    /// Prompts for advice before, of this run.
    pub(super) prompts: u32,
}

/// The end of a visit.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) status: VisitStatus,
    pub(super) data: Value,
    /// Class and text of a failure.
    pub(super) error: Option<(&'static str, String)>,
    /// Whether a failure counts as a success.
    pub(super) is_soft: bool,
    pub(super) verdicts: Vec<Verdict>,
    pub(super) warnings: Vec<Arc<str>>,
    pub(super) conversation: Option<Value>,
    pub(super) calls: Vec<ToolCall>,
    pub(super) again: Vec<Again>,
    pub(super) runs: u32,
    pub(super) judged: u32,
    pub(super) prompts: u32,
}

impl Ended {
    /// A failure before any attempt.
    pub(super) fn failed(class: &'static str, message: String) -> Self {
        let data = json!({ "error": message });
        Self { status: VisitStatus::Failed, data, error: Some((class, message)), ..Self::default() }
    }

    pub(super) fn skipped(reason: &str) -> Self {
        Self { status: VisitStatus::Skipped, data: json!({ "skipped_reason": reason }), ..Self::default() }
    }
}

impl Attempts<'_> {
    pub(super) async fn run(mut self) -> Ended {
        let model = self.extras.judge_model.as_deref().or(self.defaults.judge_model.as_deref());
        // The loop counts prompts in `self` while judges hold the context.
        let seen = Arc::clone(&self.seen);
        let mut judges = Judges::new(&self.node.id.value, Some(self.executor), model, &seen.0, self.judged);
        judges.show_by(self.context.clone());
        let retries = self.extras.retry.as_ref().map_or(0, |retry| retry.max);
        let aliases = Aliases::of(self.inline_skills());
        let (mut retry, mut warnings, mut again) = (None, Vec::new(), Vec::new());
        let (mut runs, before) = (0, self.prompts);
        let ended = loop {
            let answer = self.attempt(runs, retry.take()).await;
            runs += 1;
            let result = match answer {
                Ok(mut result) => {
                    add_warnings(&mut warnings, std::mem::take(&mut result.warnings));
                    result
                }
                Err(error) => break self.broken(&error),
            };
            match result.status {
                AgentStatus::Success => {}
                AgentStatus::Skipped => break Ended { status: VisitStatus::Skipped, ..of(result) },
                AgentStatus::Failed => break self.given_up(result),
            }
            let verdicts = self.verdicts(&result, &aliases, &mut judges).await;
            again.extend(judges.take_again());
            let failures = checks::failures(&verdicts);
            let Some(text) = checks::failure_text(&verdicts) else {
                break Ended { verdicts, ..of(result) };
            };
            if runs > retries {
                let data = with_error(result.data, &text);
                let (status, error) = (VisitStatus::Failed, Some(("permanent", text)));
                break Ended {
                    status,
                    data,
                    error,
                    calls: result.calls,
                    verdicts,
                    conversation: result.conversation,
                    ..Ended::default()
                };
            }
            let failure = failures.join("\n");
            again.push(Again::agent(&failure));
            self.context.again(Again::agent(&failure));
            let guidance = match self.guidance(&failure, &result.data).await {
                None => None,
                Some(Ok(advice)) => Some(advice),
                Some(Err(error)) => {
                    warnings.push(reason(&format!("the agent tries again without guidance: {error}")).into());
                    None
                }
            };
            retry = Some(Mend::new(failure, guidance));
        };
        Ended { runs, judged: judges.asked(), prompts: self.prompts - before, warnings, again, ..ended }
    }

    async fn attempt(&self, runs: u32, retry: Option<Mend>) -> Result<AgentResult, NodeError> {
        let context = self.context.after(runs);
        let task = self.task(retry);
        caught(async { self.executor.run(task, &context).await }).await
    }

    fn model(&self) -> Option<&str> {
        self.agent.model.as_deref().or(self.defaults.model.as_deref())
    }

    fn task(&self, retry: Option<Mend>) -> AgentTask<'_> {
        let agent = self.agent;
        AgentTask {
            node: &self.node.id.value,
            instruction: self.instruction().to_owned(),
            rules: self.layered("rules", &self.graph.rules, &self.extras.rules),
            background: self.layered("context", &self.graph.context, &self.extras.context),
            skills: agent.skills.iter().map(|name| &*name.value).collect(),
            needs_any_skill: true,
            inline_skills: self.inline_skills().collect(),
            context: self.seen.0.clone(),
            allow: agent.allow.as_ref().map(|allow| allow.iter().map(|name| &*name.value).collect()),
            deny: agent.deny.iter().map(|name| &*name.value).collect(),
            output: self.extras.output.as_ref().map(|schema| &*schema.value),
            model: self.model(),
            max_turns: agent.max_turns,
            retry,
            hive: None,
        }
    }

    fn instruction(&self) -> &str {
        self.agent.instruction.fixed_text().unwrap_or_default()
    }

    /// Texts of the run, of the document and of the node, in this order. (SW3)
    fn layered(&self, key: &str, document: &[Arc<str>], own: &Layer) -> Vec<String> {
        let mut texts = Vec::new();
        if !own.is_only {
            match self.seen.input().get(key) {
                None | Some(Value::Null) => {}
                Some(Value::Array(items)) => texts.extend(items.iter().map(text)),
                Some(other) => texts.push(text(other)),
            }
            texts.extend(document.iter().map(ToString::to_string));
        }
        texts.extend(own.texts.iter().map(ToString::to_string));
        texts
    }

    /// The skills of the node that the document defines, unless the program has one of that id.
    fn inline_skills(&self) -> impl Iterator<Item = &InlineSkill> {
        let names = self.agent.skills.iter().map(|skill| &skill.value);
        let own = names.filter(|name| !self.registered.is_some_and(|registered| registered.contains(*name)));
        own.filter_map(|name| self.graph.skills.get(name))
    }

    async fn verdicts(
        &self,
        result: &AgentResult,
        aliases: &Aliases,
        judges: &mut Judges<'_>,
    ) -> Vec<Verdict> {
        if let Some(missing) = evaluate::missing_output(&self.extras.required, &result.data) {
            return vec![missing];
        }
        let evaluators = &self.extras.evaluators;
        evaluate::evaluate(evaluators, &result.data, &result.calls, aliases, &self.seen, judges).await
    }

    /// The advice for the next attempt; nothing if the document gives none. (SW9)
    async fn guidance(&mut self, failure: &str, data: &Value) -> Option<Result<String, String>> {
        let head = match self.extras.retry.as_ref()?.guidance.as_ref()? {
            SwenyGuidance::Text(text) => return Some(Ok(text.to_string())),
            SwenyGuidance::Auto => "Say in a few sentences why they failed, and what to do otherwise.",
            SwenyGuidance::Reflect(text) => &**text,
        };
        let text = format!(
            "An agent did a task, and evaluations of its result failed. {head}\n\n# Task\n{}\n\n\
             # Result\n{}\n\n# Failed evaluations\n{failure}",
            self.instruction(),
            bounded(data)
        );
        let (node, model, asked) = (&*self.node.id.value, self.model(), self.prompts);
        let prompt = Prompt { node, purpose: Purpose::Guidance, text, model, asked };
        let answer = self.executor.ask(prompt).await;
        self.prompts = asked.saturating_add(1);
        Some(match answer {
            Ok(advice) if advice.trim().is_empty() => Err("the model said nothing".to_owned()),
            Ok(advice) => Ok(advice),
            Err(error) => Err(error.to_string()),
        })
    }

    /// An error of the executor. (SW11)
    fn broken(&self, error: &NodeError) -> Ended {
        let message = error.to_string();
        let class = error.class();
        if self.extras.is_fail_soft {
            return soft(Value::Null, &message);
        }
        Ended { error: Some((class_name(class), message.clone())), ..Ended::failed("permanent", message) }
    }

    /// A result that the agent calls failed. (SW10)
    fn given_up(&self, result: AgentResult) -> Ended {
        let said =
            result.data.get("error").and_then(Value::as_str).map(reason).filter(|text| !text.is_empty());
        let message = match said {
            Some(error) => format!("the agent failed: {error}"),
            None => "the agent failed, and gives no `error` in its data".to_owned(),
        };
        if self.extras.is_fail_soft {
            let (conversation, calls) = (result.conversation, result.calls);
            return Ended { conversation, calls, ..soft(result.data, &message) };
        }
        Ended { status: VisitStatus::Failed, error: Some(("model", message)), ..of(result) }
    }
}

fn of(result: AgentResult) -> Ended {
    let AgentResult { data, conversation, calls, .. } = result;
    Ended { data, conversation, calls, ..Ended::default() }
}

/// The data as a map: under `data`, unless it is one.
fn as_map(data: Value) -> Map<String, Value> {
    match data {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        other => Map::from_iter([("data".to_owned(), other)]),
    }
}

/// The data of a result whose evaluations failed: later nodes read why. (SW6)
fn with_error(data: Value, error: &str) -> Value {
    let mut map = as_map(data);
    map.insert("error".into(), error.into());
    Value::Object(map)
}

/// A failure that counts as a success. The agent's own `error` stays.
fn soft(data: Value, error: &str) -> Ended {
    let mut map = as_map(data);
    map.insert("fail_soft".into(), true.into());
    map.entry("error").or_insert_with(|| error.into());
    Ended { data: Value::Object(map), is_soft: true, ..Ended::default() }
}

fn class_name(class: workflow_core::ErrorClass) -> &'static str {
    use workflow_core::ErrorClass;
    match class {
        ErrorClass::Transient => "transient",
        ErrorClass::Tool => "tool",
        ErrorClass::Model => "model",
        ErrorClass::Rejected => "rejected",
        _ => "permanent",
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
