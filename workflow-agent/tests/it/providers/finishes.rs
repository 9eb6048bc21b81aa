//! How replies end: refusals, lengths, unknown reasons, and calls that end as if there were none.

use serde_json::{Value, json};
use workflow_agent::Provider;
use workflow_agent::model::{Finish, ModelError, ModelReply, Part};
use workflow_core::ErrorClass;

use super::recorded::stream;
use super::{KINDS, last};

/// A short answer that ends for this reason.
fn ended(kind: &str, reason: &str) -> Vec<Value> {
    match kind {
        "openai" => vec![
            json!({"choices": [{"delta": {"content": "Hi"}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": reason}]}),
        ],
        "openai_resp" => {
            let (status, details) = match reason {
                "completed" => ("completed", Value::Null),
                reason => ("incomplete", json!({"reason": reason})),
            };
            vec![
                json!({"type": format!("response.{status}"), "response": {"status": status, "incomplete_details": details,
                "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}]}}),
            ]
        }
        "anthropic" => vec![
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
            json!({"type": "message_stop"}),
        ],
        "gemini" => {
            vec![json!({"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": reason}]})]
        }
        _ => vec![json!({"message": {"content": "Hi"}, "done": true, "done_reason": reason})],
    }
}

fn read(kind: &str, events: &[Value]) -> Result<ModelReply, ModelError> {
    last(Provider::replay(kind, [stream(kind, events)]).unwrap())
}

/// A80
#[test]
fn known_reasons_are_told_apart() {
    use Finish::{ContextLimit, Length, Refusal, Stop};
    let reasons = [
        ("openai", "stop", Stop),
        ("openai", "length", Length),
        ("openai", "content_filter", Refusal),
        ("openai_resp", "completed", Stop),
        ("openai_resp", "max_output_tokens", Length),
        ("openai_resp", "content_filter", Refusal),
        ("anthropic", "end_turn", Stop),
        ("anthropic", "stop_sequence", Stop),
        ("anthropic", "max_tokens", Length),
        ("anthropic", "refusal", Refusal),
        ("anthropic", "model_context_window_exceeded", ContextLimit),
        // Servers with the interface of another provider keep their own words.
        ("openai", "eos", Stop),
        ("openai", "end_turn", Stop),
        ("openai", "max_tokens", Length),
        ("openai", "model_length", ContextLimit),
        ("anthropic", "stop", Stop),
        ("anthropic", "length", Length),
        ("ollama", "end_turn", Stop),
        ("gemini", "STOP", Stop),
        ("gemini", "MAX_TOKENS", Length),
        ("gemini", "SAFETY", Refusal),
        ("gemini", "PROHIBITED_CONTENT", Refusal),
        ("ollama", "stop", Stop),
        ("ollama", "length", Length),
    ];
    for (kind, reason, finish) in reasons {
        let reply = read(kind, &ended(kind, reason)).unwrap();
        assert_eq!(reply.finish, finish, "{kind} {reason}");
        assert_eq!(reply.parts, [Part::Text("Hi".into())]);
        assert_eq!(reply.usage, None);
    }
}

/// A80
#[test]
fn an_unknown_reason_is_an_unusable_reply() {
    for kind in KINDS {
        for reason in ["because", "pause_turn", "MALFORMED_FUNCTION_CALL"] {
            let error = read(kind, &ended(kind, reason)).unwrap_err();
            assert_eq!(error.class, ErrorClass::Model, "{kind}");
            assert!(error.message().contains(reason), "{error}");
        }
    }
}

/// A80
#[test]
fn refusals_have_their_text() {
    let refusals = [
        (
            "openai",
            vec![
                json!({"choices": [{"delta": {"refusal": "I can"}}]}),
                json!({"choices": [{"delta": {"refusal": "not."}, "finish_reason": "stop"}]}),
            ],
        ),
        (
            "openai_resp",
            vec![
                json!({"type": "response.refusal.delta", "delta": "I cannot."}),
                json!({"type": "response.completed", "response": {"status": "completed", "output": [
                {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}]}}),
            ],
        ),
        (
            "anthropic",
            vec![
                json!({"type": "message_delta", "delta": {"stop_reason": "refusal",
                "stop_details": {"type": "refusal", "explanation": "I cannot."}}}),
                json!({"type": "message_stop"}),
            ],
        ),
    ];
    for (kind, events) in refusals {
        let reply = read(kind, &events).unwrap();
        assert_eq!(
            (reply.finish, reply.parts),
            (Finish::Refusal, vec![Part::Text("I cannot.".into())]),
            "{kind}"
        );
    }
    let blocked = read("gemini", &[json!({"promptFeedback": {"blockReason": "SAFETY"}})]).unwrap();
    assert_eq!((blocked.finish, blocked.parts), (Finish::Refusal, vec![]));
}

/// A80
#[test]
fn calls_that_end_with_stop_are_calls() {
    let call = json!({"id": "a", "function": {"name": "weather", "arguments": "{}"}});
    let events = [json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "stop"}]})];
    assert_eq!(read("openai", &events).unwrap().finish, Finish::ToolUse);
}

/// A80
#[test]
fn a_reused_index_with_a_new_id_begins_a_new_call() {
    let fragment = |index: Value, id: Value, name: Value, arguments: &str| {
        let call = json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
        json!({"choices": [{"delta": {"tool_calls": [call]}}]})
    };
    let null = || Value::Null;
    let events = [
        fragment(json!(0), json!("a"), json!("one"), "{\"x\":"),
        // The id again, an empty id, and no id: all belong to the same call.
        fragment(json!(0), json!("a"), null(), "1"),
        fragment(json!(0), json!(""), null(), "2"),
        fragment(json!(0), null(), null(), "}"),
        fragment(json!(0), json!("b"), json!("two"), "{}"),
        fragment(null(), null(), json!("three"), "{\"y\":"),
        fragment(null(), null(), null(), "3}"),
        fragment(null(), null(), json!("four"), "broken {"),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let reply = read("openai", &events).unwrap();
    let calls: Vec<_> = reply.calls().map(|call| (&*call.id, &*call.name, call.arguments.clone())).collect();
    let expected = [
        ("a", "one", json!({"x": 12})),
        ("b", "two", json!({})),
        ("call_2", "three", json!({"y": 3})),
        ("call_3", "four", json!("broken {")),
    ];
    assert_eq!(calls, expected);
}
