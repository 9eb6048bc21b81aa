//! Sessions: conversations of runs, kept in the context of their thread. `head` and `exchanges` are the stored form,
//! `history` is the part of it that a run sees, `turns` keeps one run at a time, and `cache` is all that a process keeps.

use std::sync::Arc;

use workflow_core::{Engine, RunId, RunInfo, RunOptions, ThreadId};

mod cache;
mod error;
mod exchanges;
mod fork;
mod head;
mod history;
mod turns;

pub use error::SessionError;
pub use exchanges::SessionExchange;
pub(crate) use exchanges::{add, begins_anew, leave, stored};
pub(crate) use head::{accepts, take_back};
pub(crate) use history::{exchanges, history};

use crate::agent::{Agent, Prompt, SessionPlace};
use crate::run::AgentRun;

/// A conversation of runs with one agent: each run sees the exchanges before it.
///
/// A session is one conversation: other libraries call it a thread. A *thread* here is its owner, usually a user, who has
/// sessions and memory.
///
/// A session lives in the context of its thread, so it is as durable as the engine's contexts, and any process of the
/// engine's store can continue it. One run of a session works at a time. The exchange of a run enters the session when the
/// run ends with an answer, or stops at a limit of turns, output or budget. Of a run that ends otherwise, such as a failed or
/// cancelled one, it enters too if a call of a tool began that is not read-only: with its calls, their results, and a note how
/// the run ended. Other such runs leave nothing.
///
/// Engines that share a store must have [leases](workflow_core::EngineBuilder::lease). Without one, an engine takes an open
/// run of the session for one that an ended process left, and resumes it.
///
/// ```
/// use workflow_agent::prelude::*;
/// use workflow_agent::model::{ScriptedModel, ScriptedReply};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([ScriptedReply::text("Hello, Ada."), ScriptedReply::text("You are Ada.")]);
/// let agent = Agent::builder("assistant").model(model.clone()).build()?;
/// let engine = Engine::builder().agent(agent.clone()).build()?;
/// let session = Session::of(&engine, &agent).thread("ada").id("s-1");
/// session.say("I am Ada.").await?.outcome().await?;
/// let outcome = session.say("Who am I?").await?.outcome().await?;
/// assert_eq!(outcome.text(), "You are Ada.");
/// assert_eq!(model.requests()[1].messages.len(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    engine: Engine,
    agent: Agent,
    thread: ThreadId,
    id: Arc<str>,
    when_busy: WhenBusy,
}

/// The fate of a message that arrives while a run of its session works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenBusy {
    /// It waits for its turn, in order; 64 messages of a session at most wait in a process.
    #[default]
    Wait,
    /// It is refused with [`SessionError::Busy`].
    Refuse,
    /// The open run receives the text as a [`Steer`](crate::Steer), and its next model call sees the text.
    ///
    /// A prompt with anything besides text waits its turn, as does one whose run another engine drives.
    /// [`say`](Session::say) returns the run that is open: its stream begins with the items already shown, so compare
    /// [`id`](AgentRun::id) before you show it twice.
    Steer,
}

impl Session {
    /// The session `main` of the thread `main`. The engine must host the agent.
    ///
    /// People who use an application share both unless each has a [`thread`](Self::thread), and an [`id`](Self::id) for each
    /// conversation.
    pub fn of(engine: &Engine, agent: &Agent) -> Self {
        Self {
            engine: engine.clone(),
            agent: agent.clone(),
            thread: ThreadId::new("main"),
            id: "main".into(),
            when_busy: WhenBusy::Wait,
        }
    }

    /// Sets the thread, usually a user: the owner of sessions and memory.
    #[must_use]
    pub fn thread(self, thread: impl Into<ThreadId>) -> Self {
        Self { thread: thread.into(), ..self }
    }

    /// Sets the id, unique in its thread.
    #[must_use]
    pub fn id(self, id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), ..self }
    }

    /// Sets the fate of messages that arrive while a run works. Default: [`WhenBusy::Wait`].
    #[must_use]
    pub fn when_busy(self, when_busy: WhenBusy) -> Self {
        Self { when_busy, ..self }
    }

    /// Says something: starts a run that answers with the session's history. Secrets of the agent are removed from the
    /// text before anything is stored.
    ///
    /// The future completes when the run has started, and so waits while an earlier run of the session is open, also
    /// while that one waits for an approval. So answer the approvals of [`open_run`](Self::open_run) first, also after a
    /// restart.
    ///
    /// # Errors
    /// [`SessionError::Busy`] as [`when_busy`](Self::when_busy) says, or if 64 messages wait already; a prompt beyond its
    /// bounds; an agent that the engine does not host; and failures of the store.
    pub async fn say(&self, prompt: impl Into<Prompt>) -> Result<AgentRun, SessionError> {
        let mut prompt = prompt.into();
        prompt.redact(&self.agent.inner.caller.redactor);
        prompt.check()?;
        self.agent.check_price(&prompt)?;
        turns::say(self, prompt).await
    }

    /// The run of the session that works or waits now, if there is one. After a restart it resumes the run.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn open_run(&self) -> Result<Option<AgentRun>, SessionError> {
        turns::open_run(self).await
    }

    /// Copies the session, as it is now, to a new one of the same thread.
    ///
    /// After a failure the new session is busy until the fork is repeated. The repetition completes the copy that began, of
    /// the session as it was then.
    ///
    /// # Errors
    /// [`SessionError::Exists`] if there is one with this id, [`SessionError::Busy`] if this session is itself being copied,
    /// and failures of the store.
    pub async fn fork(&self, id: impl Into<Arc<str>>) -> Result<Self, SessionError> {
        let forked = self.clone().id(id);
        let source = turns::settled(self).await?;
        fork::fork(&self.context(), source, &self.key(), &forked.key()).await?;
        Ok(forked)
    }

    /// Up to `at_most` exchanges behind the one numbered `after`, oldest first; from the first one with `after` 0.
    ///
    /// # Errors
    /// [`SessionError::Busy`] while the session is being copied from another one, and failures of the store.
    pub async fn exchanges(&self, after: u64, at_most: usize) -> Result<Vec<SessionExchange>, SessionError> {
        exchanges::list(&self.context(), &self.key(), after, at_most).await
    }

    /// The agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    fn context(&self) -> workflow_core::ThreadContext {
        self.engine.thread_context(self.thread.clone())
    }

    /// The name of the session in the context of its thread: sessions of two agents do not meet.
    fn key(&self) -> Arc<str> {
        format!("{}.{}", part(self.agent.name()), part(&self.id)).into()
    }

    fn run_id(&self, number: u64) -> RunId {
        run_id(&self.thread, &self.key(), number)
    }

    fn options(&self, number: u64) -> RunOptions {
        RunOptions::new().workflow(self.agent.name()).thread(self.thread.clone()).id(self.run_id(number))
    }

    fn place(&self, number: u64) -> SessionPlace {
        SessionPlace { id: self.key(), number, takes_back: false }
    }
}

fn run_id(thread: &ThreadId, key: &str, number: u64) -> RunId {
    RunId::new(format!("{}.{key}.{number}", part(thread.as_str())))
}

/// Whether a run has the id of its place: only such a run is alone in its session.
pub(crate) fn is_run_of(place: &SessionPlace, info: &RunInfo) -> bool {
    place.number > 0
        && place.number < head::NUMBERS
        && *info.run() == run_id(info.thread(), &place.id, place.number)
}

/// A part of an id in which dots and slashes cannot be mistaken for separators.
fn part(text: &str) -> String {
    let mut part = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '%' => part.push_str("%25"),
            '.' => part.push_str("%2E"),
            '/' => part.push_str("%2F"),
            other => part.push(other),
        }
    }
    part
}
