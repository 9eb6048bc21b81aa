//! The event of a chat's turn: OpenAI's JSON in and out, and a workflow that takes it.

use futures::stream;
use serde_json::{Value, json};
use workflow_chat::{ChatContent, ChatMessage, ChatPart, ChatRole, ChatTurn, ShowText as _};
use workflow_core::prelude::*;
use workflow_testkit::{Scenario, crash_everywhere};

/// Messages of each role and kind, as a client sends them.
fn conversation() -> Value {
    json!([
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": "Speak like a clerk."},
        {"role": "user", "name": "ada", "content": [
            {"type": "text", "text": "Where is "},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            {"type": "text", "text": "this?"}
        ]},
        {"role": "assistant", "refusal": null, "tool_calls": [
            {"id": "call-1", "type": "function", "function": {"name": "find", "arguments": "{\"order\": 7}"}}
        ]},
        {"role": "tool", "tool_call_id": "call-1", "content": "on its way"},
        {"role": "assistant", "content": "On its way."}
    ])
}

#[test]
fn a_conversation_is_read_and_written_as_it_is() {
    let body = json!({"messages": conversation(), "user": "u-1", "parameters": {"temperature": 0.5, "stop": ["\n"]}});
    let turn: ChatTurn = serde_json::from_value(body.clone()).unwrap();
    assert_eq!(serde_json::to_value(&turn).unwrap(), body);
    let roles: Vec<ChatRole> = turn.messages.iter().map(|message| message.role).collect();
    let written = ["developer", "system", "user", "assistant", "tool", "assistant"];
    assert_eq!(json!(roles), json!(written));
    let texts: Vec<_> = turn.messages.iter().map(ChatMessage::text).collect();
    assert_eq!(
        texts,
        ["Be brief.", "Speak like a clerk.", "Where is this?", "", "on its way", "On its way."]
    );
    let Some(ChatContent::Parts(parts)) = &turn.messages[2].content else { panic!("{:?}", turn.messages[2]) };
    assert!(matches!(&parts[2], ChatPart::Other(part) if part["type"] == "input_audio"));
    let call = &turn.messages[3].tool_calls[0];
    assert_eq!((&*call.function.name, &call.more["type"]), ("find", &json!("function")));
}

#[test]
fn a_turn_without_more_is_its_messages() {
    let turn = ChatTurn::new([ChatMessage::system("Be brief."), ChatMessage::tool("call-1", "done")]);
    let written = json!({"messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "tool", "content": "done", "tool_call_id": "call-1"}
    ]});
    assert_eq!(serde_json::to_value(&turn).unwrap(), written);
    assert_eq!(serde_json::from_value::<ChatTurn>(written).unwrap(), turn);
    let more = turn.user("ada").parameter("n", 1).parameter("n", 2);
    assert_eq!((more.user.as_deref(), &more.parameters["n"]), (Some("ada"), &json!(2)));
}

#[test]
fn what_is_no_conversation_is_refused() {
    let refused = |messages: Value| {
        serde_json::from_value::<ChatTurn>(json!({"messages": messages})).unwrap_err().to_string()
    };
    assert!(refused(json!([{"role": "king", "content": "we"}])).contains("unknown variant `king`"));
    assert!(refused(json!([{"content": "who?"}])).contains("missing field `role`"));
    assert!(refused(json!([{"role": "user", "content": 7}])).contains("ChatContent"));
    assert!(refused(json!("hello")).contains("expected a sequence"));
}

#[test]
fn a_schema_names_every_field() {
    let schema = schemars::schema_for!(ChatTurn).to_value();
    let mut fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["messages", "parameters", "user"]);
    assert_eq!(schema["required"], json!(["messages"]));
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer {
    text: String,
}

/// Answers with the last message, word by word.
struct Echo;

#[workflow]
impl Echo {
    #[step]
    async fn answer(&self, turn: &ChatTurn, display: &Display) -> Answer {
        let asked = turn.messages.last().map(ChatMessage::text).unwrap_or_default();
        let words: Vec<String> = asked.split_inclusive(' ').map(str::to_owned).collect();
        Answer { text: display.stream_text(stream::iter(words)).await.text }
    }
}

#[tokio::test]
async fn a_turn_starts_a_run_and_survives_a_crash_at_every_write() {
    let turn: ChatTurn = serde_json::from_value(json!({"messages": conversation()})).unwrap();
    let run = Scenario::new(Echo).start(turn.clone()).await;
    run.assert_output(&Answer { text: "On its way.".into() });
    assert_eq!(run.report().log[0].event.as_ref(), "chat.turn");
    let scenario = move |store| Scenario::new(Echo).engine(|engine| engine.store(store)).start(turn.clone());
    crash_everywhere(scenario).await;
}
