//! The end of a run: its outcome, and the exchange for session and memory.

use std::sync::Arc;

use serde_json::Value;
use workflow_chat::ChatTurn;
use workflow_core::StepFailed;
use workflow_core::prelude::*;

use crate::agent::{Agent, Answer, Called, Outcome, StopReason, Stopped, Terms, Work};
use crate::budget::Spent;
use crate::entities;
use crate::entry::{Entry, FailureClass, ToolDone};
use crate::failures;
use crate::flow::left::{self, Calls};
use crate::flow::request::{Earlier, Sources};
use crate::flow::state::State;
use crate::flow::{Accepted, Ending, Stopping};
use crate::memory::{Episode, Memory};
use crate::model::Usage;
use crate::phase::Conversation;
use crate::session;
use crate::transcript;

/// The surroundings of the end.
pub(super) struct Place<'a> {
    pub(super) thread: &'a ThreadContext,
    pub(super) info: &'a RunInfo,
    pub(super) children: &'a Children,
    pub(super) engine: &'a Engine,
}

impl Place<'_> {
    fn sources(&self) -> Sources<'_> {
        Sources { thread: self.thread, engine: self.engine }
    }
}

/// The entries and the calls of a run.
#[derive(Clone, Copy)]
pub(super) struct Own<'a> {
    pub(super) entries: &'a [&'a Entry],
    pub(super) calls: &'a Calls<'a>,
}

/// Stores the exchange, and returns the outcome.
pub(super) async fn run(
    terms: &Terms<'_>,
    ending: Ending,
    own: &[&Entry],
    calls: &Calls<'_>,
    chat: Option<&ChatTurn>,
    place: &Place<'_>,
) -> Result<Outcome, StepError> {
    let state = State::of(own, terms.agent);
    let outcome = match ending {
        Ending::Accepted(accepted) => {
            let before = if terms.prompt.is_some_and(|prompt| prompt.return_conversation) {
                Some(Earlier::of(terms, own, chat, place.sources()).await?)
            } else {
                None
            };
            let work = terms.prompt.is_some_and(|prompt| prompt.return_work).then(|| work(own, place.info));
            Outcome::Answered(Answer { work, ..answer(terms, accepted, own, state, before.as_ref()) })
        }
        Ending::Stopping(stopping) => Outcome::Stopped(stopped(terms.agent, stopping, own)),
    };
    match &outcome {
        Outcome::Stopped(stopped) if !stopped.reason.is_partial_answer() => {
            let own = Own { entries: own, calls };
            leave(terms, own, &stopped.reason, (place.thread, place.info)).await?;
        }
        _ => store(terms, own, chat, &outcome, place).await?,
    }
    Ok(outcome)
}

fn answer(
    terms: &Terms<'_>,
    accepted: Accepted,
    own: &[&Entry],
    state: State<'_>,
    before: Option<&Earlier>,
) -> Answer {
    let text = match (state.last_text(), &accepted.data) {
        (text, Some(data)) if text.trim().is_empty() => as_text(data),
        (text, _) => text,
    };
    let state = state.and_spent(accepted.usage, accepted.cost);
    Answer {
        text,
        data: accepted.data,
        usage: state.spent.usage,
        cost: state.spent.cost,
        tool_calls: state.spent.tool_calls,
        conversation: before.map(|before| conversation(terms, before, own, &state)),
        work: None,
    }
}

/// The run, and its calls that have results.
fn work(own: &[&Entry], info: &RunInfo) -> Work {
    let results = own.iter().filter_map(|entry| match entry {
        Entry::Results { results } => Some(results),
        _ => None,
    });
    let called = |done: &ToolDone| Called { tool: Arc::clone(&done.tool), ok: done.ran && !done.is_error };
    Work { run: info.run().clone(), calls: results.flatten().map(called).collect() }
}

fn as_text(data: &Value) -> String {
    data.as_str().map_or_else(|| data.to_string(), str::to_owned)
}

fn conversation(terms: &Terms<'_>, before: &Earlier, own: &[&Entry], state: &State<'_>) -> Conversation {
    let phase = terms.phase(state.entered).map(|(_, phase)| Arc::clone(&phase.name));
    let line = transcript::line(before.before(), own);
    let entries = line.iter().map(|item| detached(item.entry)).collect();
    Conversation::new(entries, phase)
}

/// The entry for use outside of its run: places among its entries mean nothing there.
fn detached(entry: &Entry) -> Entry {
    match entry {
        Entry::Assistant(reply) => Entry::Said { parts: Arc::clone(&reply.parts) },
        entry => entry.clone(),
    }
}

fn stopped(agent: &Agent, stopping: Stopping, own: &[&Entry]) -> Stopped {
    let text = State::latest_text(own);
    let spent = State::of(own, agent).and_spent(stopping.usage, stopping.cost).spent;
    let Spent { usage, cost, tool_calls } = spent;
    Stopped { reason: stopping.reason, text, usage, cost, tool_calls }
}

/// The end of a run in which a step failed for good.
pub(super) async fn gave_up(
    terms: &Terms<'_>,
    failed: &StepFailed,
    own: Own<'_>,
    (usage, cost): (Usage, f64),
    (thread, info): (&ThreadContext, &RunInfo),
) -> Result<Stopped, StepError> {
    let error = format!("step `{}`: {}", failed.step, failed.error);
    let error = terms.agent.inner.caller.redactor.text(&error).as_ref().into();
    let reason = StopReason::Failed { class: FailureClass::from(failed.class), error };
    // The outcome may have been refused once the exchange had entered: it can be larger than events may be. A message that
    // arrives beside the end can fail as well.
    let has_left = leave(terms, own, &reason, (thread, info)).await?;
    if let Some(session) = terms.prompt.and_then(|prompt| prompt.session.as_ref())
        && !has_left
        && matches!(&*failed.step, "finish" | "hear")
    {
        session::take_back(thread, session).await.map_err(failures::of_context)?;
    }
    Ok(stopped(terms.agent, Stopping { reason, usage, cost }, own.entries))
}

/// Leaves what a run did in its session, with a note how it ended, if something that acts began, or a summary was paid that
/// the next run would pay again. Whether it did so.
async fn leave(
    terms: &Terms<'_>,
    own: Own<'_>,
    reason: &StopReason,
    (thread, info): (&ThreadContext, &RunInfo),
) -> Result<bool, StepError> {
    let Some(session) = terms.prompt.and_then(|prompt| prompt.session.as_ref()) else { return Ok(false) };
    let is_summarised = own.entries.iter().any(|entry| matches!(entry, Entry::Summary(_)));
    if !own.calls.have_acted() && !is_summarised {
        return Ok(false);
    }
    let entries = left::entries(terms.agent, own.entries, own.calls, &reason.to_string());
    session::leave(thread, session, info, &entries).await?;
    Ok(true)
}

/// Adds the exchange to session and memory. A repetition after a crash changes nothing.
async fn store(
    terms: &Terms<'_>,
    own: &[&Entry],
    chat: Option<&ChatTurn>,
    outcome: &Outcome,
    place: &Place<'_>,
) -> Result<(), StepError> {
    let Place { thread, info, children, .. } = place;
    let session = terms.prompt.and_then(|prompt| prompt.session.as_ref());
    // Memory must not know an exchange that the session refuses.
    if let Some(session) = session
        && !session::accepts(thread, session).await?
    {
        return Ok(());
    }
    if let Some(memory) = &terms.agent.inner.memory {
        let episode = remember(terms, &**memory, own, chat, outcome, place).await?;
        // A repetition after a crash finds the extraction that it began. An attempt after a failure of the store begins
        // another one, which merges into the same entities. Like the episode, the extraction may belong to an exchange that
        // does not enter after all: when a later run starts right now, or the store stays away.
        if terms.agent.inner.entities && matches!(outcome, Outcome::Answered(_)) {
            entities::begin(terms.agent, &episode, children, info).await;
        }
    }
    // Last, since nothing may fail or wait once the session has changed.
    if let Some(session) = session {
        session::add(thread, session, info, own).await?;
    }
    Ok(())
}

async fn remember(
    terms: &Terms<'_>,
    memory: &dyn Memory,
    own: &[&Entry],
    chat: Option<&ChatTurn>,
    outcome: &Outcome,
    place: &Place<'_>,
) -> Result<Episode, StepError> {
    let episode = Episode {
        run: place.info.run().clone(),
        at: std::time::SystemTime::now(),
        question: super::open::question(terms.agent, own, chat).to_string(),
        answer: outcome.text().to_owned(),
    };
    let remembered = failures::guarded(memory.remember(&episode, place.thread)).await;
    failures::of_memory(remembered, &terms.agent.inner.caller.redactor)?;
    Ok(episode)
}
