//! The begin of a run: the entries that session and memory add, and the message.

use std::sync::Arc;

use workflow_chat::ChatTurn;
use workflow_core::prelude::*;

use crate::agent::{Agent, Prompt, PromptError};
use crate::entry::Entry;
use crate::failures;
use crate::memory::{EntityStore, Question, Recalled};
use crate::phase::Conversation;
use crate::session;

/// The entries of a prompt.
pub(super) async fn entries(
    agent: &Agent,
    prompt: &Prompt,
    thread: &ThreadContext,
    info: &RunInfo,
) -> Result<Vec<Entry>, StepError> {
    prompt.check().map_err(StepError::permanent)?;
    agent.check_price(prompt).map_err(StepError::permanent)?;
    let mut entries = Vec::new();
    let mut known = Vec::new();
    if let Some(place) = &prompt.session {
        if !session::is_run_of(place, info) {
            let session = &place.id;
            return Err(StepError::permanent(format!(
                "the run is none of session `{session}`: say it through `Session`"
            )));
        }
        let window = agent.inner.caller.model.limits().context;
        let history = session::history(thread, place, window, info).await?;
        if let Some(range) = history.range {
            entries.push(Entry::History(range));
        }
        known = history.runs;
    }
    if let Some(conversation) = &prompt.conversation {
        agent.check_phase(conversation)?;
        entries.push(Entry::Given);
    }
    if prompt.continues.is_some() {
        entries.push(Entry::Given);
    }
    let text = agent.inner.caller.redactor.shared(&prompt.text);
    let question = Question::new(&*text).known_runs(known);
    entries.extend(recalled(agent, &question, thread).await?);
    entries.push(Entry::User { text, images: prompt.images.clone().into() });
    Ok(entries)
}

/// The entries of a chat's turn.
pub(super) async fn chat_entries(
    agent: &Agent,
    turn: &ChatTurn,
    thread: &ThreadContext,
) -> Result<Vec<Entry>, StepError> {
    let asked = crate::chat::asked(turn, &agent.inner.caller.redactor).map_err(StepError::permanent)?;
    let mut entries = vec![Entry::Given];
    let question = Question::new(asked.text);
    entries.extend(recalled(agent, &question, thread).await?);
    Ok(entries)
}

async fn recalled(
    agent: &Agent,
    question: &Question,
    thread: &ThreadContext,
) -> Result<Option<Entry>, StepError> {
    let Some(memory) = &agent.inner.memory else { return Ok(None) };
    let recalled = failures::guarded(memory.recall(question, thread)).await;
    let mut recalled = failures::of_memory(recalled, &agent.inner.caller.redactor)?;
    if agent.inner.entities {
        let named = EntityStore::new(thread).named_in(&question.text).await;
        recalled.extend(named.map_err(failures::of_context)?);
    }
    let items = bounded(recalled, agent);
    Ok((!items.is_empty()).then_some(Entry::Recalled { items }))
}

/// Recalled texts within an eighth of the window, without secrets, none twice.
fn bounded(recalled: Vec<Recalled>, agent: &Agent) -> Vec<String> {
    let window = agent.inner.caller.model.limits().context;
    let mut left = usize::try_from(window / 8 * 4).unwrap_or(usize::MAX);
    let mut items = Vec::new();
    for one in recalled {
        let text = agent.inner.caller.redactor.text(&one.to_data()).into_owned();
        if items.contains(&text) {
            continue;
        }
        let Some(rest) = left.checked_sub(text.chars().count()) else { continue };
        left = rest;
        items.push(text);
    }
    items
}

impl Agent {
    /// Refuses a conversation in a phase that the agent lacks: no phase's limits would hold.
    fn check_phase(&self, conversation: &Conversation) -> Result<(), StepError> {
        let phases = &self.inner.phases;
        let Some(entered) = conversation.phase().filter(|_| !phases.is_empty()) else { return Ok(()) };
        if phases.iter().any(|phase| &*phase.name == entered) {
            return Ok(());
        }
        let known: Vec<&str> = phases.iter().map(|phase| &*phase.name).collect();
        let known = known.join(", ");
        Err(StepError::permanent(format!("the agent has no phase `{entered}`; phases: {known}")))
    }

    /// Refuses a prompt that limits the cost of a model without a price.
    pub(crate) fn check_price(&self, prompt: &Prompt) -> Result<(), PromptError> {
        let limited = prompt.budget.filter(|budget| budget.needs_price());
        match limited.and_then(|_| self.unpriced()) {
            Some(model) => Err(PromptError::NoPrice { model: model.to_owned() }),
            None => Ok(()),
        }
    }

    /// The name of the first agent, among this one and its sub-agents, whose model has no price.
    pub(crate) fn unpriced(&self) -> Option<&str> {
        if self.inner.caller.model.limits().price.is_none() {
            return Some(self.inner.caller.model.name());
        }
        self.inner.sub_agents.iter().find_map(|sub_agent| sub_agent.agent.unpriced())
    }
}

/// The text of the message that the run answers.
pub(super) fn question(agent: &Agent, own: &[&Entry], chat: Option<&ChatTurn>) -> Arc<str> {
    if let Some(chat) = chat {
        let asked = crate::chat::asked(chat, &agent.inner.caller.redactor);
        return asked.map(|asked| asked.text.into()).unwrap_or_default();
    }
    let text = own.iter().find_map(|entry| match entry {
        Entry::User { text, .. } => Some(Arc::clone(text)),
        _ => None,
    });
    text.unwrap_or_default()
}
