//! Thoughts go back to the server that made them, in the form in which they came, with the calls to which they led.

use serde_json::{Value, json};
use workflow_agent::{Agent, Secret};

use super::at;
use super::server::{self, Server};

/// Servers, the first reply of each, and the content of its second request.
fn servers() -> Vec<(&'static str, &'static str, String, &'static str, Value)> {
    let chat = |delta: Value| {
        let call = json!({"index": 0, "id": "a", "function": {"name": "lookup", "arguments": "{}"}});
        let events = [
            json!({ "delta": delta }),
            json!({"delta": {"tool_calls": [call]}}),
            json!({"delta": {}, "finish_reason": "tool_calls"}),
        ];
        let lines = events.map(|choice| format!("data: {}\n\n", json!({ "choices": [choice] })));
        lines.concat() + "data: [DONE]\n\n"
    };
    let details = json!([
        {"type": "reasoning.text", "text": "Two cities.", "signature": "S1g", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "S1g-2", "index": 1}
    ]);
    let unsigned = json!([{"type": "reasoning.summary", "summary": "Two cities.", "index": 0}]);
    let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "Two cities."}]}]);
    let blocks = json!([{"type": "thinking", "thinking": "Two cities."}, {"type": "tool_use", "id": "a", "name": "lookup", "input": {}}]);
    let messages = [
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Two cities."}}),
        json!({"type": "content_block_start", "index": 1, "content_block": blocks[1]}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ];
    let item = json!({"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "Two cities."}]});
    let call =
        json!({"type": "function_call", "id": "fc", "call_id": "a", "name": "lookup", "arguments": "{}"});
    let response =
        json!({"type": "response.completed", "response": {"status": "completed", "output": [item, call]}});
    let local = json!({"message": {"content": "", "thinking": "Two cities.", "tool_calls": [{"function": {"name": "lookup", "arguments": {}}}]},
        "done": true});
    let google = json!({"candidates": [{"content": {"parts": [{"text": "Two cities.", "thought": true}, {"functionCall": {"name": "lookup", "args": {}}}]},
        "finishReason": "STOP"}]});
    vec![
        (
            "DeepSeek",
            "openai",
            chat(json!({"reasoning_content": "Two cities."})),
            "/messages/1/reasoning_content",
            json!("Two cities."),
        ),
        (
            "DeepSeek without a thought",
            "openai",
            chat(json!({"content": null, "reasoning_content": ""})),
            "/messages/1/reasoning_content",
            json!(""),
        ),
        (
            "Groq",
            "openai",
            chat(json!({"reasoning": "Two cities."})),
            "/messages/1/reasoning",
            json!("Two cities."),
        ),
        (
            "OpenRouter",
            "openai",
            chat(json!({"reasoning": "Two cities.", "reasoning_details": details})),
            "/messages/1/reasoning_details",
            details.clone(),
        ),
        (
            "OpenRouter unsigned",
            "openai",
            chat(json!({"reasoning_details": unsigned})),
            "/messages/1/reasoning_details",
            unsigned.clone(),
        ),
        ("Mistral", "openai", chat(json!({ "content": parts })), "/messages/1/content", parts.clone()),
        (
            "Kimi by messages",
            "anthropic",
            messages.map(|event| format!("data: {event}\n\n")).concat(),
            "/messages/1/content",
            blocks,
        ),
        ("a server of responses", "openai_resp", format!("data: {response}\n\n"), "/input/1", item),
        ("Ollama", "ollama", format!("{local}\n"), "/messages/1/thinking", json!("Two cities.")),
        (
            "Gemini",
            "gemini",
            format!("data: {google}\n\n"),
            "/contents/1/parts/0",
            json!({"text": "Two cities.", "thought": true}),
        ),
    ]
}

async fn second_request(kind: &'static str, body: String, secret: Option<Secret>) -> Value {
    let server = Server::start(move |_| server::streamed(kind, body.clone())).await;
    let model = at(kind, &server).build().unwrap();
    let builder = Agent::builder("a").model(model).max_turns(2);
    let agent = secret.into_iter().fold(builder, workflow_agent::AgentBuilder::secret).build().unwrap();
    agent.ask("Hello").await.unwrap_err();
    server.seen()[1].json()
}

/// A8
#[tokio::test]
async fn each_server_gets_its_thoughts_back_as_they_came() {
    for (name, kind, body, pointer, expected) in servers() {
        let sent = second_request(kind, body, None).await;
        assert_eq!(sent.pointer(pointer), Some(&expected), "{name}: {sent}");
    }
}

/// A8, A18
#[tokio::test]
async fn a_thought_that_nobody_signed_goes_back_without_its_secret() {
    for (name, kind, body, pointer, expected) in servers() {
        let sent = second_request(kind, body, Some(Secret::new("place", "cities"))).await;
        assert!(!sent.to_string().contains("cities"), "{name}: {sent}");
        // A signature would not fit the changed text, so a signed thought stays here.
        let is_signed = expected.to_string().contains("S1g") || kind == "openai_resp";
        let shown = sent.pointer(pointer).map(ToString::to_string).unwrap_or_default();
        assert!(is_signed || expected == "" || shown.contains("Two [secret place]."), "{name}: {sent}");
    }
}
