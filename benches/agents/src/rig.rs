//! The turns by rig: its agent, over a transport that answers at once in the format of its scripted model.

use std::convert::Infallible;

use futures::stream;
use rig_agent::{Agent, AgentBuilder};
use rig_core::completion::{AssistantContent, CompletionRequest, CompletionResponse, Message, Usage};
use rig_core::driver::{Exchange, Model, Opened, Opening, Transport};
use rig_core::message::{Origin, ToolCall, ToolFunction, ToolName};
use rig_core::test_utils::{MockFrame, MockScript};
use rig_core::tool::PortableTool;
use serde_json::{Value, json};

use crate::{ANSWER, IDENTITY, MESSAGE, Place, TURNS, about};

/// A model that makes two calls in each turn, and answers in the last one.
#[derive(Debug, Clone, Copy)]
struct Counting;

impl Transport<MockScript> for Counting {
    fn send(&self, request: CompletionRequest, _: Exchange) -> Opening<MockFrame> {
        let turn =
            request.chat_history.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        let choice = if turn + 1 >= TURNS {
            vec![AssistantContent::text(ANSWER)]
        } else {
            let call = |name: &str| {
                let fit = ToolName::new(name).expect("the name is not empty");
                let function = ToolFunction::new(fit, json!({ "city": "Bern", "days": turn }));
                AssistantContent::ToolCall(ToolCall::from_wire(format!("{name}-{turn}"), function))
            };
            vec![call("weather"), call("traffic")]
        };
        let usage = Usage::new().input_tokens(1_000).output_tokens(10);
        let origin = Origin::new("counting", "counting", "counting");
        let response = CompletionResponse::new(choice, usage, origin, Value::Null);
        let frames = stream::iter([Ok(MockFrame::Response(Box::new(response)))]);
        Opening::ready(Opened::new(frames).with_document(Value::Null))
    }
}

/// Defines a tool of this name.
macro_rules! tool {
    ($tool:ident, $name:literal) => {
        struct $tool;

        impl PortableTool for $tool {
            const NAME: &'static str = $name;
            type Args = Place;
            type Output = String;
            type Error = Infallible;

            fn description(&self) -> String {
                "Tells about a city.".to_owned()
            }

            fn parameters(&self) -> Value {
                schemars::schema_for!(Place).to_value()
            }

            async fn call(&self, place: Place) -> Result<String, Infallible> {
                Ok(about($name, &place))
            }
        }
    };
}

tool!(Weather, "weather");
tool!(Traffic, "traffic");

/// The agent.
pub(crate) fn agent() -> Agent {
    let model = Model::new(MockScript::new("counting"), Counting);
    AgentBuilder::new(model).preamble(IDENTITY).tool(Weather).tool(Traffic).build()
}

/// One run of all turns.
pub(crate) async fn run(agent: &Agent) -> String {
    let response = agent.prompt(MESSAGE).max_turns(TURNS).tool_concurrency(16).await.expect("it answers");
    response.output()
}
