//! Sessions: their exchanges, one run at a time, and the history of their runs.

use serde_json::json;
use workflow_agent::model::{Message, ModelLimits, ModelRequest, ScriptedModel, ScriptedReply};
use workflow_agent::prelude::*;
use workflow_agent::tool::FnTool;

mod crashes;
mod ends;
mod exchanges;
mod forks;
mod history;
mod late;
mod turns;

/// Arguments of `look`.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Look {
    /// The place.
    pub(crate) at: String,
}

/// A tool that changes nothing.
pub(crate) fn look() -> FnTool {
    FnTool::new(
        "look",
        "Looks.",
        |look: Look, _| async move { Ok::<_, ToolError>(format!("seen: {}", look.at)) },
    )
    .read_only()
}

/// The text of the last message that is the user's own.
pub(crate) fn asked(request: &ModelRequest) -> String {
    let mut texts = request.messages.iter().rev().filter_map(|message| match message {
        Message::User { text, .. } if !text.starts_with('<') && !text.starts_with('[') => {
            Some(text.to_string())
        }
        _ => None,
    });
    texts.next().unwrap_or_default()
}

/// A model that answers each question with `re: QUESTION`; for one with `look` it looks once before.
pub(crate) fn echo() -> ScriptedModel {
    ScriptedModel::respond(|request| {
        let asked = asked(request);
        let has_looked = matches!(request.messages.last(), Some(Message::Results(_)));
        if asked.contains("look") && !has_looked {
            ScriptedReply::call("c", "look", json!({"at": asked})).saying("One moment.")
        } else {
            ScriptedReply::text(format!("re: {asked}"))
        }
    })
}

/// An agent of this model with the tool `look`.
pub(crate) fn agent(model: &ScriptedModel) -> Agent {
    Agent::builder("a").model(model.clone()).tool(look()).build().unwrap()
}

/// The same, whose tool needs an approval.
pub(crate) fn asking(model: &ScriptedModel) -> Agent {
    Agent::builder("a").model(model.clone()).tool(look().approval(Approval::Always)).build().unwrap()
}

/// The same with a memory.
pub(crate) fn remembering(model: &ScriptedModel) -> Agent {
    let agent = Agent::builder("a").model(model.clone()).tool(look().approval(Approval::Always));
    agent.memory(workflow_agent::memory::EpisodicMemory::new()).build().unwrap()
}

pub(crate) fn session(engine: &Engine, agent: &Agent) -> Session {
    Session::of(engine, agent).thread("ada").id("s")
}

/// A window of so many tokens.
pub(crate) fn window(tokens: u64) -> ModelLimits {
    ModelLimits::new(tokens, 100)
}

/// The questions of a session, oldest first.
pub(crate) async fn questions(session: &Session) -> Vec<String> {
    let exchanges = session.exchanges(0, 1_000).await.unwrap();
    exchanges.iter().map(|exchange| exchange.question().to_string()).collect()
}

/// Says something, and waits for the outcome.
pub(crate) async fn say(session: &Session, text: &str) -> Outcome {
    session.say(text).await.unwrap().outcome().await.unwrap()
}
