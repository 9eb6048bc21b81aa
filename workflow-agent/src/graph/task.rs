//! Tasks of nodes to prompts of agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use workflow_graph::{AgentTask, Mend, NodeError};

use super::conversation;
use crate::agent::{Agent, Prompt};
use crate::chain::Continues;
use crate::mark;

/// A prompt, and the warnings about it.
pub(super) struct Prepared {
    pub(super) prompt: Prompt,
    pub(super) warning: Option<String>,
}

/// The prompt of a task. In a retry it continues the run before, if that is known, and else the conversation of the node
/// before, in documents whose nodes share one.
pub(super) fn prompt(
    task: &AgentTask<'_>,
    agent: &Agent,
    skills: &BTreeMap<Arc<str>, Arc<str>>,
    before: Option<Continues>,
) -> Result<Prepared, NodeError> {
    let has = Skills::of(task, skills)?;
    let of_node = before.is_none().then(|| conversation::continues(task)).flatten();
    let text = match (&task.retry, &before) {
        (Some(mend), Some(_)) => again(mend),
        (Some(mend), None) => format!("{}\n\n{}", text(task, &has, of_node.is_some()), again(mend)),
        (None, _) => text(task, &has, of_node.is_some()),
    };
    let mut prompt = Prompt::new(text);
    prompt.tools = tools(task, agent)?;
    prompt.output = task.output.cloned();
    prompt.turns = task.max_turns;
    prompt.continues = before.or(of_node);
    if let Some(hive) = &task.hive {
        prompt.setting = conversation::setting(hive);
        prompt.output = prompt.output.or_else(|| conversation::output(hive));
        prompt.turns = prompt.turns.or_else(|| conversation::turns(hive));
    }
    prompt.return_work = true;
    Ok(Prepared { prompt, warning: has.warning })
}

/// The skills of a task.
struct Skills<'a> {
    /// Their names and texts, in the order in which the node lists them.
    texts: Vec<(&'a str, &'a str)>,
    /// Names those that are not there.
    warning: Option<String>,
}

impl<'a> Skills<'a> {
    fn of(task: &AgentTask<'a>, known: &'a BTreeMap<Arc<str>, Arc<str>>) -> Result<Self, NodeError> {
        let (mut texts, mut missing) = (Vec::new(), Vec::new());
        for name in &task.skills {
            let inline = || task.inline_skills.iter().find(|skill| *skill.id == **name);
            match (known.get(*name), inline()) {
                (Some(text), _) => texts.push((*name, &**text)),
                // One that is tools alone has no text.
                (None, Some(skill)) => {
                    let text = skill.instruction.as_deref().or(skill.description.as_deref());
                    texts.push((*name, text.unwrap_or_default()));
                }
                (None, None) => missing.push(*name),
            }
        }
        if missing.is_empty() {
            return Ok(Self { texts, warning: None });
        }
        let all: Vec<&str> = known.keys().map(|name| &**name).collect();
        let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        let missing = missing.join("`, `");
        if task.needs_any_skill && !texts.is_empty() {
            let warning =
                format!("the agent works without skills that are not there: `{missing}`; skills: {all}");
            return Ok(Self { texts, warning: Some(warning) });
        }
        Err(NodeError::permanent(format!("there is no skill `{missing}`; skills: {all}")))
    }
}

/// The task in words: the instruction first, and then each part that there is under a heading.
fn text(task: &AgentTask<'_>, skills: &Skills<'_>, continues: bool) -> String {
    let mut parts = vec![task.instruction.clone()];
    if !task.rules.is_empty() {
        parts.push(format!("# Rules\n{}", task.rules.join("\n")));
    }
    if !task.background.is_empty() {
        parts.push(format!("# Background\n{}", task.background.join("\n")));
    }
    for (name, text) in skills.texts.iter().filter(|(_, text)| !text.is_empty()) {
        parts.push(format!("# Skill: {name}\n{text}"));
    }
    if let Some(prior) = conversation::prior(task).filter(|_| !continues) {
        let result = mark::data(&prior.node, &conversation::accomplished(prior));
        parts.push(format!("# Result of the agent before, as data\n{result}"));
    }
    if has_content(&task.context) {
        let context = mark::data("workflow", &crate::tool::sorted_text(task.context.clone()));
        parts.push(format!("# Input and results of earlier steps, as data\n{context}"));
    }
    parts.join("\n\n")
}

fn has_content(context: &Value) -> bool {
    match context {
        Value::Null => false,
        Value::Object(fields) => fields.values().any(|value| !value.is_null()),
        _ => true,
    }
}

/// The message after failed checks. The reasons quote the data, so they are data too.
fn again(mend: &Mend) -> String {
    let failure = mark::data("checks", &mend.failure);
    let mut text = format!("Your result did not pass these checks:\n{failure}");
    if let Some(guidance) = &mend.guidance {
        text.push_str("\n\n# Advice\n");
        text.push_str(guidance);
    }
    text.push_str("\n\nDo what is missing, and give the whole result again.");
    text
}

/// The tools that the run may use; `None` for all of the agent's.
///
/// A name that the agent lacks would allow less, or deny less, than the document says.
fn tools(task: &AgentTask<'_>, agent: &Agent) -> Result<Option<Vec<String>>, NodeError> {
    let own = &agent.inner.tools.0;
    let named = task.allow.iter().flatten().chain(&task.deny);
    let mut unknown: Vec<&str> = named.copied().filter(|name| !own.contains_key(*name)).collect();
    unknown.dedup();
    if !unknown.is_empty() {
        let own: Vec<&str> = own.keys().map(|name| &**name).collect();
        let own = if own.is_empty() { "none".to_owned() } else { own.join(", ") };
        let (agent, unknown) = (agent.name(), unknown.join("`, `"));
        return Err(NodeError::permanent(format!("agent `{agent}` has no tool `{unknown}`; tools: {own}")));
    }
    if task.allow.is_none() && task.deny.is_empty() {
        return Ok(None);
    }
    let is_allowed = |name: &str| {
        task.allow.as_ref().is_none_or(|allow| allow.contains(&name)) && !task.deny.contains(&name)
    };
    Ok(Some(own.keys().filter(|name| is_allowed(name)).map(ToString::to_string).collect()))
}
