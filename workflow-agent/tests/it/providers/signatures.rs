//! Signatures and opaque parts: they go back unchanged to the provider that made them, and to no other.

use serde_json::{Value, json};
use workflow_agent::model::{Message, ModelReply, ModelRequest, Opaque, Part, ToolResult, ToolUse};
use workflow_agent::{Agent, Provider};

use super::recorded::{expected, streamed};
use super::server::{self, Server};
use super::{KINDS, at, hello, reply};

/// The conversation after a reply: its calls have results.
fn after(reply: &ModelReply) -> ModelRequest {
    let results =
        reply.calls().map(|call| ToolResult::new(call.id.clone(), call.name.clone(), "warm", false));
    let results = Message::Results(results.collect());
    let parts = reply.parts.clone().into();
    ModelRequest::new("Be brief.", vec![Message::user("Hello"), Message::Assistant { parts }, results], 100)
}

/// A8, A80
#[tokio::test]
async fn signatures_go_back_unchanged_where_they_came_from() {
    let sent: [(&str, &str, Value); 5] = [
        (
            "openai",
            "/messages/2/tool_calls/1/extra_content",
            json!({"google": {"thought_signature": "S1g-call"}}),
        ),
        (
            "openai_resp",
            "/input/1",
            json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "S1g-thought",
            "summary": [{"type": "summary_text", "text": "Two cities."}]}),
        ),
        (
            "anthropic",
            "/messages/1/content",
            json!([
            {"type": "thinking", "thinking": "Two cities.", "signature": "S1g-thought"},
            {"type": "redacted_thinking", "data": "S1g-redacted"},
            {"type": "text", "text": "I loök."},
            {"type": "tool_use", "id": "id_a", "name": "weather", "input": {"city": "Bern"}},
            {"type": "tool_use", "id": "id_b", "name": "time", "input": {}}]),
        ),
        (
            "gemini",
            "/contents/1/parts",
            json!([
            {"text": "Two cities.", "thought": true},
            {"text": "I lo"},
            {"text": "ök.", "thoughtSignature": "S1g-text"},
            {"functionCall": {"id": "id_a", "name": "weather", "args": {"city": "Bern"}}, "thoughtSignature": "S1g-call"},
            {"functionCall": {"id": "id_b", "name": "time", "args": {}}}]),
        ),
        (
            "ollama",
            "/messages/2",
            json!({"role": "assistant", "content": "I loök.", "thinking": "Two cities.", "tool_calls": [
            {"function": {"name": "weather", "arguments": {"city": "Bern"}}},
            {"function": {"name": "time", "arguments": {}}}]}),
        ),
    ];
    for (kind, pointer, value) in sent {
        let server = Server::start(move |_| server::streamed(kind, streamed(kind))).await;
        let model = at(kind, &server).build().unwrap();
        let first = reply(&model, hello()).await.unwrap();
        reply(&model, after(&first)).await.unwrap();
        assert_eq!(server.seen()[1].json().pointer(pointer), Some(&value), "{kind}");
    }
    let phase =
        Provider::request_body("openai_resp", &after(&expected("openai_resp", "openai_resp"))).unwrap();
    assert_eq!(phase["input"][2]["phase"], "commentary");
}

/// A8
#[test]
fn no_other_provider_receives_them() {
    for maker in KINDS {
        // The provider's name may differ in its endpoint alone.
        for provider in [maker.to_owned(), format!("{maker}@http://127.0.0.1:1")] {
            let request = after(&expected(maker, &provider));
            for receiver in KINDS {
                let body = Provider::request_body(receiver, &request).unwrap().to_string();
                let is_own = provider == receiver && maker != "ollama";
                assert_eq!(body.contains("S1g"), is_own, "{provider} to {receiver}: {body}");
                assert_eq!(
                    body.contains("Two cities."),
                    provider == receiver,
                    "{provider} to {receiver}: {body}"
                );
                assert!(body.contains("weather") && body.contains("warm"));
            }
        }
    }
}

/// A8
#[test]
fn a_message_of_foreign_thoughts_alone_is_left_out() {
    let thought = Part::Thought { text: "hm".into(), signature: Some(Opaque::new("other", json!("S1g"))) };
    let opaque = Part::Opaque(Opaque::new("other", json!({"type": "reasoning"})));
    let messages = vec![Message::user("Hello"), Message::Assistant { parts: [thought, opaque].into() }];
    let request = ModelRequest::new("", [messages, vec![Message::user("There?")]].concat(), 100);
    for (kind, pointer, count) in [
        ("openai", "/messages", 2),
        ("openai_resp", "/input", 2),
        ("anthropic", "/messages", 1),
        ("gemini", "/contents", 2),
        ("ollama", "/messages", 2),
    ] {
        let body = Provider::request_body(kind, &request).unwrap();
        assert_eq!(
            body.pointer(pointer).and_then(Value::as_array).map(Vec::len),
            Some(count),
            "{kind}: {body}"
        );
    }
}

/// A8, A80
#[test]
fn gemini_takes_calls_that_others_made() {
    let call =
        ToolUse { signature: Some(Opaque::new("openai", json!("S1g"))), ..ToolUse::new("a", "t", json!({})) };
    let parts = [Part::Call(call.clone()), Part::Call(ToolUse::new("b", "t", json!({})))].into();
    let results = ["a", "b"].map(|id| ToolResult::new(id, "t", "x", id == "b"));
    let messages =
        vec![Message::user("Hi"), Message::Assistant { parts }, Message::Results(results.to_vec())];
    let request = ModelRequest::new("", messages, 100);
    let body = Provider::request_body("gemini::gemini-3-pro", &request).unwrap();
    assert_eq!(body["contents"][1]["parts"][0]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(body["contents"][1]["parts"][1].get("thoughtSignature"), None);
    assert_eq!(body["contents"][2]["parts"][1]["functionResponse"]["response"], json!({"error": "x"}));
    let earlier = Provider::request_body("gemini::gemini-2.5-flash", &request).unwrap();
    assert_eq!(earlier["contents"][1]["parts"][0].get("thoughtSignature"), None);
}

/// A6, A8
#[test]
fn no_message_for_anthropic_ends_with_a_thought() {
    let thought =
        || Part::Thought { text: "hm".into(), signature: Some(Opaque::new("anthropic", json!("S1g"))) };
    let redacted = Part::Opaque(Opaque::new("anthropic", json!({"type": "redacted_thinking", "data": "x"})));
    let parts = vec![thought(), Part::Text("yes".into()), thought(), redacted];
    let messages =
        vec![Message::user("Hello"), Message::Assistant { parts: parts.into() }, Message::user("And?")];
    let body = Provider::request_body("anthropic", &ModelRequest::new("", messages, 100)).unwrap();
    let types: Vec<_> =
        body["messages"][1]["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(types, ["thinking", "text"]);
}

/// A8
#[tokio::test]
async fn signed_texts_go_back_unchanged_through_an_agent_too() {
    let server = Server::start(move |_| server::streamed("gemini", streamed("gemini"))).await;
    let model = at("gemini", &server).build().unwrap();
    let agent = Agent::builder("a").model(model).max_turns(2).build().unwrap();
    agent.ask("Hello").await.unwrap_err();
    let parts = server.seen()[1].json().pointer("/contents/1/parts").cloned().unwrap();
    assert_eq!(parts[0], json!({"text": "Two cities.", "thought": true}));
    assert_eq!(parts[1], json!({"text": "I lo"}));
    assert_eq!(parts[2], json!({"text": "ök.", "thoughtSignature": "S1g-text"}));
}
