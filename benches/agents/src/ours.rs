//! The turns by this project's agent, hosted by an engine in memory.

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use serde_json::json;
use workflow_agent::model::{
    Finish, Message, Model, ModelError, ModelEvent, ModelLimits, ModelReply, ModelRequest, ModelStream, Part,
    ToolUse, Usage,
};
use workflow_agent::prelude::*;
use workflow_agent::tool::FnTool;

use crate::{ANSWER, IDENTITY, MESSAGE, Place, TURNS, about};

/// A model that makes two calls in each turn, and answers in the last one.
#[derive(Debug, Clone, Copy)]
struct Counting;

impl Model for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn limits(&self) -> ModelLimits {
        ModelLimits::new(1_000_000, 8_000)
    }

    fn call(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        let turn =
            request.messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count();
        let reply = if turn + 1 >= TURNS {
            ModelReply::text(ANSWER)
        } else {
            let call = |name: &str| {
                let arguments = json!({ "city": "Bern", "days": turn });
                Part::Call(ToolUse::new(format!("{name}-{turn}"), name, arguments))
            };
            ModelReply::new(vec![call("weather"), call("traffic")], Finish::ToolUse)
        };
        let reply = reply.usage(Usage::new(1_000, 10));
        async move { Ok(stream::iter([Ok(ModelEvent::Finished(reply))]).boxed()) }.boxed()
    }
}

fn tool(name: &'static str) -> FnTool {
    let call = move |place: Place, _| async move { Ok::<_, ToolError>(about(name, &place)) };
    FnTool::new(name, "Tells about a city.", call).read_only()
}

/// The agent, and the engine that hosts it.
pub(crate) fn agent() -> (Agent, Engine) {
    let agent = Agent::builder("bench").model(Counting).identity(IDENTITY).max_turns(10_000);
    let agent = agent.tool(tool("weather")).tool(tool("traffic")).repeats(None).build().expect("it fits");
    let engine = Engine::builder().agent(agent.clone()).build().expect("it fits");
    (agent, engine)
}

/// One run of all turns.
pub(crate) async fn run((agent, engine): &(Agent, Engine)) -> String {
    let run = agent.start(engine, MESSAGE).await.expect("it starts");
    match run.outcome().await.expect("it ends") {
        Outcome::Answered(answer) => answer.text,
        stopped => panic!("{stopped:?}"),
    }
}
