//! Chats whose client keeps the conversation.

use serde_json::{Value, json};
use workflow_agent::entry::FailureClass;
use workflow_agent::model::{Image, Message, Part, ScriptedReply};
use workflow_agent::prelude::*;
use workflow_chat::{ChatMessage, ChatTurn};
use workflow_testkit::{Scenario, TestRun};

use crate::parts::{agent, answered, assert_paired, call, results, scripted, stopped, weather};

fn turn(messages: Value) -> ChatTurn {
    let messages = serde_json::from_value::<Vec<ChatMessage>>(messages).unwrap();
    ChatTurn::new(messages)
}

async fn answer(model: &workflow_agent::model::ScriptedModel, chat: ChatTurn) -> TestRun<Agent> {
    let agent = agent(model).identity("You are the shop.").tool(weather()).build().unwrap();
    Scenario::new(agent).start(chat).await
}

/// A91, A6
#[tokio::test]
async fn a_blank_text_beside_calls_is_left_out() {
    let model = scripted([ScriptedReply::text("warm")]);
    let look = json!({"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}});
    let chat = turn(json!([
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": " ", "tool_calls": [look]},
        {"role": "tool", "tool_call_id": "1", "content": "sun"},
        {"role": "user", "content": "And now?"},
    ]));
    assert_eq!(answered(&answer(&model, chat).await), "warm");
    let Message::Assistant { parts } = &model.requests()[0].messages[1] else { panic!("no reply") };
    assert!(matches!(&parts[..], [Part::Call(_)]), "{parts:?}");
}

/// A91
#[tokio::test]
async fn the_messages_are_the_conversation_and_instructions_follow_the_agents_own() {
    let model = scripted([call("1", "weather", "Bern"), ScriptedReply::text("warm")]);
    let chat = turn(json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi."},
        {"role": "developer", "content": "Use metric units."},
        {"role": "user", "content": [{"type": "text", "text": "Warm "}, {"type": "text", "text": "in Bern?"}]},
    ]));
    let run = answer(&model, chat).await;
    assert_eq!(answered(&run), "warm");
    let requests = model.requests();
    assert_eq!(&*requests[0].system, "You are the shop.\n\nBe brief.\n\nUse metric units.");
    let texts: Vec<_> = requests[0].messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["Hello", "Hi.", "Warm in Bern?"]);
    assert!(requests[1].messages.starts_with(&requests[0].messages) && requests[1].messages.len() == 5);
}

/// A91, A6
#[tokio::test]
async fn calls_and_results_of_the_client_are_paired_whatever_their_ids() {
    let tool_call = |id: &str, city: &str| json!({"id": id, "type": "function", "function": {"name": "get.weather", "arguments": format!("{{\"city\": \"{city}\"}}")}});
    let chat = turn(json!([
        {"role": "user", "content": "Both?"},
        {"role": "assistant", "content": null, "tool_calls": [tool_call("same", "A"), tool_call("no good!", "B")]},
        {"role": "tool", "tool_call_id": "no good!", "content": "cold in B"},
        {"role": "tool", "tool_call_id": "same", "content": "warm in A"},
        {"role": "tool", "tool_call_id": "unknown", "content": "nobody asked"},
        {"role": "assistant", "content": null, "tool_calls": [tool_call("same", "C"), tool_call("lost", "D")]},
        {"role": "tool", "tool_call_id": "same", "content": "rain in C"},
        {"role": "user", "content": "And?"},
    ]));
    let model = scripted([call("same", "weather", "E"), ScriptedReply::text("done")]);
    assert_eq!(answered(&answer(&model, chat).await), "done");
    let requests = model.requests();
    requests.iter().for_each(assert_paired);
    let of = |index: usize| match &requests[0].messages[index] {
        Message::Results(results) => results.iter().map(|result| result.text.to_string()).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert!(of(2)[0].contains("warm in A") && of(2)[1].contains("cold in B"), "{:?}", of(2));
    assert!(of(4)[0].contains("rain in C") && of(4)[1].contains("not run"), "{:?}", of(4));
    assert!(results(&requests[1])[0].text.contains("warm in E"));
    let names = requests[0].messages.iter().filter_map(|message| match message {
        Message::Results(results) => Some(results[0].name.to_string()),
        _ => None,
    });
    assert!(names.into_iter().all(|name| !name.contains('.')));
}

/// A91, A6
#[tokio::test]
async fn a_chat_whose_client_dropped_the_oldest_messages_begins_with_a_message_all_the_same() {
    let chat = turn(json!([
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": " "},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Really?"},
    ]));
    let model = scripted([ScriptedReply::text("done")]);
    assert_eq!(answered(&answer(&model, chat).await), "done");
    let request = &model.requests()[0];
    crate::pairing::check(request).unwrap();
    let texts: Vec<_> = request.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["[The begin of the conversation is left out here]", "Yes.", "Really?"]);
}

/// A91
#[tokio::test]
async fn images_are_addresses_or_bytes() {
    let chat = turn(json!([{"role": "user", "content": [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]}]));
    let model = scripted([ScriptedReply::text("seen")]);
    assert_eq!(answered(&answer(&model, chat).await), "seen");
    let Message::User { images, .. } = &model.requests()[0].messages[0] else { panic!("no message") };
    let bytes = Image::Data { media_type: "image/png".into(), base64: "AAAA".into() };
    assert_eq!(images[..], [Image::Url("https://example.org/a.png".into()), bytes]);
}

/// A91
#[tokio::test]
async fn chats_that_cannot_be_answered_stop_before_any_call_and_say_why() {
    let image = json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{}", "A".repeat(7 * 1024 * 1024))}});
    let chats = [
        (ChatTurn::new([]), "the last message of the chat is not the user's"),
        (ChatTurn::new([ChatMessage::user("a"), ChatMessage::assistant("b")]), "is not the user's"),
        (ChatTurn::new([ChatMessage::user(" ")]), "the last message of the chat is empty"),
        (
            ChatTurn::new([ChatMessage::user("x".repeat(1024 * 1024 + 1)), ChatMessage::user("y")]),
            "message 0 of the chat has 1048577 bytes",
        ),
        (turn(json!([{"role": "user", "content": [image]}])), "an image of message 0 has"),
        (
            ChatTurn::new((0..17).map(|_| ChatMessage::user("x".repeat(1024 * 1024)))),
            "the chat has 17825792 bytes",
        ),
    ];
    for (chat, expected) in chats {
        let model = scripted([]);
        let agent = agent(&model).build().unwrap();
        let run =
            Scenario::new(agent).engine(|engine| engine.max_event_bytes(64 * 1024 * 1024)).start(chat).await;
        let StopReason::Failed { class: FailureClass::Permanent, error } = &stopped(&run).reason else {
            panic!("{run:?}")
        };
        assert!(error.contains(expected), "{error}");
        assert!(model.requests().is_empty());
    }
}

/// A91
#[tokio::test]
async fn empty_messages_before_the_last_are_left_out() {
    let chat = ChatTurn::new([ChatMessage::user(""), ChatMessage::assistant(""), ChatMessage::user("Hello")]);
    let model = scripted([ScriptedReply::text("done")]);
    assert_eq!(answered(&answer(&model, chat).await), "done");
    assert_eq!(model.requests()[0].messages, [Message::user("Hello")]);
}
