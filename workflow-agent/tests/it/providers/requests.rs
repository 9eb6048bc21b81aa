//! Bodies of requests: deterministic, growing at their end, and expressing images, schemas, choices and broken arguments.

use std::sync::Arc;

use serde_json::{Value, json};
use workflow_agent::Provider;
use workflow_agent::model::{Image, Message, ModelRequest, Part, ToolChoice, ToolResult, ToolUse};
use workflow_agent::tool::ToolSpec;

use super::KINDS;
use crate::validate;

fn tools() -> Arc<[ToolSpec]> {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    [ToolSpec::new("time", "", json!({})), ToolSpec::new("weather", "Current weather.", schema)].into()
}

fn turns(count: usize) -> ModelRequest {
    let mut messages = vec![Message::user("Hello")];
    for turn in 0..count {
        let id = format!("call_{turn}");
        let call = Part::Call(ToolUse::new(&*id, "weather", json!({"z": 1, "city": "Bern"})));
        messages.push(Message::Assistant { parts: [Part::Text("I look.".into()), call].into() });
        messages.push(Message::Results(vec![ToolResult::new(&*id, "weather", "warm", false)]));
    }
    let mut request = ModelRequest::new("Be brief.", messages, 100);
    request.tools = tools();
    request
}

fn body(kind: &str, request: &ModelRequest) -> Value {
    Provider::request_body(kind, request).unwrap()
}

/// A7, A80
#[test]
fn each_request_begins_with_the_bytes_of_the_one_before() {
    for (kind, list) in [
        ("openai", "messages"),
        ("openai_resp", "input"),
        ("anthropic", "messages"),
        ("gemini", "contents"),
        ("ollama", "messages"),
    ] {
        let mut before: Option<Value> = None;
        for count in 0..4 {
            let mut now = body(kind, &turns(count));
            assert_eq!(now.to_string(), body(kind, &turns(count)).to_string());
            let list_now = now[list].take();
            if let Some(before) = &mut before {
                let entries = list_now.to_string();
                let earlier = before[list].take().to_string();
                assert!(entries.starts_with(earlier.strip_suffix(']').unwrap()), "{kind}: {entries}");
                assert_eq!(*before, now, "{kind}");
            }
            now[list] = list_now;
            before = Some(now);
        }
    }
}

/// A80
#[test]
fn broken_arguments_go_back_as_each_format_can_say_them() {
    let call = Part::Call(ToolUse::new("a", "weather", json!("{\"city\": ")));
    let results = Message::Results(vec![ToolResult::new("a", "weather", "invalid", true)]);
    let messages = vec![Message::user("Hi"), Message::Assistant { parts: [call].into() }, results];
    let request = ModelRequest::new("", messages, 100);
    let object = json!({"unreadable": "{\"city\": "});
    let text = json!("{\"city\": ");
    for (kind, pointer, expected) in [
        ("openai", "/messages/1/tool_calls/0/function/arguments", &text),
        ("openai_resp", "/input/1/arguments", &text),
        ("anthropic", "/messages/1/content/0/input", &object),
        ("gemini", "/contents/1/parts/0/functionCall/args", &object),
        ("ollama", "/messages/1/tool_calls/0/function/arguments", &object),
    ] {
        assert_eq!(body(kind, &request).pointer(pointer), Some(expected), "{kind}");
    }
    assert_eq!(body("anthropic", &request)["messages"][2]["content"][0]["is_error"], true);
    validate::anthropic::check(&request).unwrap();
}

/// A80
#[test]
fn forbidden_calls_keep_the_tools_where_a_choice_forbids_them() {
    let mut request = turns(1);
    for kind in KINDS {
        assert!(body(kind, &request).get("tools").is_some(), "{kind}");
    }
    request.tool_choice = ToolChoice::None;
    assert_eq!(body("openai", &request)["tool_choice"], "none");
    assert_eq!(body("openai_resp", &request)["tool_choice"], "none");
    assert_eq!(body("anthropic", &request)["tool_choice"], json!({"type": "none"}));
    assert_eq!(body("gemini", &request)["toolConfig"]["functionCallingConfig"]["mode"], "NONE");
    for kind in KINDS {
        assert_eq!(body(kind, &request).get("tools").is_some(), kind != "ollama", "{kind}");
    }
    // Without tools there is nothing to forbid, but Anthropic wants those of earlier calls.
    request.tools = Arc::default();
    for kind in KINDS {
        assert_eq!(body(kind, &request).get("tools").is_some(), kind == "anthropic", "{kind}");
    }
    validate::anthropic::check(&request).unwrap();
    validate::openai_chat::check(&request).unwrap();
    validate::openai_responses::check(&request).unwrap();
}

/// A80
#[test]
fn each_kind_binds_answers_to_a_schema() {
    let mut request = ModelRequest::new("Be brief.", vec![Message::user("Hi")], 100);
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]});
    request.output = Some(Arc::new(schema.clone()));
    let format = body("openai", &request)["response_format"].take();
    assert_eq!(format["json_schema"], json!({"name": "answer", "schema": schema, "strict": false}));
    let format = body("openai_resp", &request)["text"]["format"].take();
    assert_eq!(format, json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": false}));
    let format = body("anthropic", &request)["output_config"]["format"].take();
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["schema"]["additionalProperties"], false);
    assert_eq!(format["schema"]["properties"]["n"]["description"], "{minimum: 1}");
    let config = body("gemini", &request)["generationConfig"].take();
    assert_eq!(
        (&config["responseMimeType"], &config["responseJsonSchema"]),
        (&json!("application/json"), &schema)
    );
    assert_eq!(body("ollama", &request)["format"], schema);
}

/// A80
#[test]
fn a_schema_that_cannot_be_bound_stands_in_the_instructions() {
    let mut request = turns(0);
    request.output = Some(Arc::new(json!({"type": "object", "additionalProperties": {"type": "string"}})));
    let system = |kind: &str, pointer: &str| {
        let body = body(kind, &request);
        let text = body.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        assert!(text.starts_with("Be brief.\n\nAnswer with one JSON value"), "{text}");
        assert!(text.ends_with(r#"{"additionalProperties":{"type":"string"},"type":"object"}"#), "{text}");
        body
    };
    // Anthropic cannot leave the fields of an object open.
    assert_eq!(system("anthropic", "/system").get("output_config"), None);
    // A format of Ollama, and a schema of earlier models of Gemini, would forbid calls.
    assert_eq!(system("ollama", "/messages/0/content").get("format"), None);
    let earlier = system("gemini::gemini-2.5-pro", "/systemInstruction/parts/0/text");
    assert_eq!(earlier["generationConfig"].get("responseJsonSchema"), None);
}

/// A80
#[test]
fn images_are_sent_as_addresses_and_as_data() {
    let data = Image::Data { media_type: "image/png".into(), base64: "aGk=".into() };
    let url = Image::Url("https://example.org/a.png?x".into());
    let with = |images: Vec<Image>| {
        ModelRequest::new("", vec![Message::User { text: "Look".into(), images: images.into() }], 100)
    };
    let both = with(vec![url, data.clone()]);
    let image_urls = ["https://example.org/a.png?x", "data:image/png;base64,aGk="];
    let chat = body("openai", &both)["messages"][0]["content"].take();
    let responses = body("openai_resp", &both)["input"][0]["content"].take();
    for (index, url) in image_urls.iter().enumerate() {
        assert_eq!(chat[index + 1]["image_url"]["url"], *url);
        assert_eq!(responses[index + 1]["image_url"], *url);
    }
    let messages = body("anthropic", &both)["messages"][0]["content"].take();
    assert_eq!(messages[0]["source"], json!({"type": "url", "url": image_urls[0]}));
    assert_eq!(messages[1]["source"], json!({"type": "base64", "media_type": "image/png", "data": "aGk="}));
    let parts = body("gemini", &both)["contents"][0]["parts"].take();
    assert_eq!(parts[1]["fileData"], json!({"fileUri": image_urls[0], "mimeType": "image/png"}));
    assert_eq!(parts[2]["inlineData"], json!({"mimeType": "image/png", "data": "aGk="}));
    assert_eq!(body("ollama", &with(vec![data]))["messages"][0]["images"], json!(["aGk="]));
    let error = Provider::request_body("ollama", &both).unwrap_err();
    assert!(error.to_string().contains("send its bytes"), "{error}");
    validate::openai_chat::check(&both).unwrap();
    validate::openai_responses::check(&both).unwrap();
    validate::anthropic::check(&both).unwrap();
}

/// A80
#[test]
fn responses_are_not_stored_and_bring_their_reasoning_along() {
    let request = turns(1);
    let sent = body("openai_resp", &request);
    assert_eq!((&sent["store"], &sent["include"]), (&json!(false), &json!(["reasoning.encrypted_content"])));
    assert_eq!(sent["tools"][0]["strict"], false);
    assert_eq!(body("openai_resp::gpt-4.1", &request).get("include"), None);
    assert_eq!(body("ollama", &request)["truncate"], false);
    assert_eq!(body("openai", &request)["stream_options"], json!({"include_usage": true}));
}
