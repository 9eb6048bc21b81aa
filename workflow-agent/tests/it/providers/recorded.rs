//! Replies in the documented format of each kind: a thought, text, two calls whose arguments come in fragments where the
//! format has fragments, and usage.

use serde_json::{Value, json};
use workflow_agent::model::{Finish, ModelReply, Opaque, Part, ToolUse, Usage};

/// The events as a stream of this kind.
pub(super) fn stream(kind: &str, events: &[Value]) -> String {
    let lines = events.iter().map(|event| match (kind, event["type"].as_str()) {
        ("ollama", _) => format!("{event}\n"),
        ("anthropic" | "openai_resp", Some(name)) => format!("event: {name}\ndata: {event}\n\n"),
        _ => format!("data: {event}\n\n"),
    });
    let end = if kind == "openai" { "data: [DONE]\n\n" } else { "" };
    lines.chain([end.to_owned()]).collect()
}

/// The stream of the reply.
pub(super) fn streamed(kind: &str) -> String {
    stream(kind, &events(kind))
}

pub(super) fn events(kind: &str) -> Vec<Value> {
    match kind {
        "openai" => openai(),
        "openai_resp" => responses(),
        "anthropic" => anthropic(),
        "gemini" => gemini(),
        _ => ollama(),
    }
}

fn openai() -> Vec<Value> {
    let delta =
        |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let call = |fragment: Value| delta(json!({"tool_calls": [fragment]}));
    vec![
        delta(json!({"role": "assistant", "content": "", "refusal": null})),
        delta(json!({"reasoning_content": "Two "})),
        delta(json!({"reasoning_content": "cities."})),
        delta(json!({"content": "I lo"})),
        delta(json!({"content": "ök."})),
        call(
            json!({"index": 0, "id": "id_a", "type": "function", "function": {"name": "weather", "arguments": ""}}),
        ),
        call(json!({"index": 0, "function": {"arguments": "{\"city\":"}})),
        call(
            json!({"index": 1, "id": "id_b", "type": "function", "extra_content": {"google": {"thought_signature": "S1g-call"}},
            "function": {"name": "time", "arguments": "{}"}}),
        ),
        call(json!({"index": 0, "function": {"arguments": "\"Bern\"}"}})),
        json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 20}}}),
    ]
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Two cities."}],
        "encrypted_content": "S1g-thought"})
}

fn responses_output() -> Value {
    json!([
        reasoning(),
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
            "content": [{"type": "output_text", "text": "I loök.", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "id_a", "name": "weather", "status": "completed",
            "arguments": "{\"city\":\"Bern\"}"},
        {"type": "function_call", "id": "fc_2", "call_id": "id_b", "name": "time", "status": "completed", "arguments": "{}"},
    ])
}

fn responses_usage() -> Value {
    json!({"input_tokens": 30, "input_tokens_details": {"cached_tokens": 20}, "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 37})
}

fn responses() -> Vec<Value> {
    let output = responses_output();
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": []}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "Two "}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "cities."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": output[0]}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "role": "assistant", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "I lo"}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "ök."}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": output[1]}),
    ];
    for (index, name) in [(2, "weather"), (3, "time")] {
        let mut item = output[index].clone();
        item["arguments"] = "".into();
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        let arguments = output[index]["arguments"].as_str().unwrap();
        let (head, tail) = arguments.split_at(1);
        for delta in [head, tail] {
            events.push(json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta}));
        }
        assert_eq!(output[index]["name"], name);
        // The second call never comes whole: its fragments stand for it.
        if index == 2 {
            events.push(
                json!({"type": "response.output_item.done", "output_index": index, "item": output[index]}),
            );
        }
    }
    events.push(
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [],
        "usage": responses_usage()}}),
    );
    events
}

fn anthropic() -> Vec<Value> {
    let start =
        |index, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index| json!({"type": "content_block_stop", "index": index});
    vec![
        json!({"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 8,
            "cache_read_input_tokens": 20, "cache_creation_input_tokens": 2, "output_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "Two "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "cities."})),
        delta(0, json!({"type": "signature_delta", "signature": "S1g-thought"})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "S1g-redacted"})),
        stop(1),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "I lo"})),
        delta(2, json!({"type": "text_delta", "text": "ök."})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "id_a", "name": "weather", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"city\":"})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "\"Bern\"}"})),
        stop(3),
        start(4, json!({"type": "tool_use", "id": "id_b", "name": "time", "input": {}})),
        stop(4),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

fn gemini() -> Vec<Value> {
    let parts =
        |parts: Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}]});
    vec![
        parts(json!([{"text": "Two ", "thought": true}])),
        parts(json!([{"text": "cities.", "thought": true}])),
        parts(json!([{"text": "I lo"}])),
        parts(json!([{"text": "ök.", "thoughtSignature": "S1g-text"}])),
        parts(
            json!([{"functionCall": {"id": "id_a", "name": "weather", "args": {"city": "Bern"}}, "thoughtSignature": "S1g-call"}]),
        ),
        json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"functionCall": {"id": "id_b", "name": "time"}}]},
            "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 30, "cachedContentTokenCount": 20,
            "candidatesTokenCount": 5, "thoughtsTokenCount": 2}}),
    ]
}

fn ollama() -> Vec<Value> {
    let message = |message: Value| json!({"model": "m", "message": message, "done": false});
    vec![
        message(json!({"role": "assistant", "content": "", "thinking": "Two "})),
        message(json!({"role": "assistant", "content": "", "thinking": "cities."})),
        message(json!({"role": "assistant", "content": "I lo"})),
        message(json!({"role": "assistant", "content": "ök."})),
        message(json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "id_a", "function": {"name": "weather", "arguments": {"city": "Bern"}}}]})),
        message(json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "id_b", "function": {"name": "time", "arguments": {}}}]})),
        json!({"model": "m", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop",
            "prompt_eval_count": 30, "eval_count": 7}),
    ]
}

/// The same reply in one piece.
pub(super) fn whole(kind: &str) -> Value {
    match kind {
        "openai" => json!({"id": "c", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "I loök.", "reasoning_content": "Two cities.", "refusal": null, "tool_calls": [
                {"id": "id_a", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Bern\"}"}},
                {"id": "id_b", "type": "function", "function": {"name": "time", "arguments": "{}"},
                    "extra_content": {"google": {"thought_signature": "S1g-call"}}}]}}],
            "usage": {"prompt_tokens": 30, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 20}}}),
        "openai_resp" => json!({"id": "r", "status": "completed", "error": null, "incomplete_details": null,
            "output": responses_output(), "usage": responses_usage()}),
        "anthropic" => {
            json!({"id": "m", "type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
            {"type": "thinking", "thinking": "Two cities.", "signature": "S1g-thought"},
            {"type": "redacted_thinking", "data": "S1g-redacted"},
            {"type": "text", "text": "I loök."},
            {"type": "tool_use", "id": "id_a", "name": "weather", "input": {"city": "Bern"}},
            {"type": "tool_use", "id": "id_b", "name": "time", "input": {}}],
            "usage": {"input_tokens": 8, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 2, "output_tokens": 7}})
        }
        "gemini" => {
            let parts: Vec<Value> =
                gemini().iter().map(|event| event["candidates"][0]["content"]["parts"][0].clone()).collect();
            json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 30, "cachedContentTokenCount": 20, "candidatesTokenCount": 5,
                    "thoughtsTokenCount": 2}})
        }
        _ => {
            json!({"model": "m", "message": {"role": "assistant", "content": "I loök.", "thinking": "Two cities.",
            "tool_calls": [{"id": "id_a", "function": {"name": "weather", "arguments": {"city": "Bern"}}},
                {"id": "id_b", "function": {"name": "time", "arguments": {}}}]}, "done": true, "done_reason": "stop",
            "prompt_eval_count": 30, "eval_count": 7})
        }
    }
}

/// What a client reads of the reply. Opaque data belongs to `provider`.
pub(super) fn expected(kind: &str, provider: &str) -> ModelReply {
    let own = |data: Value| Opaque::new(provider, data);
    // Thoughts that nobody signed have a mark of where they came.
    let unsigned = |place: &str| Some(own(json!({ "unsigned": place })));
    let thought = |signature| Part::Thought { text: "Two cities.".into(), signature };
    let call = |id: &str, name: &str, arguments: Value, signature| {
        Part::Call(ToolUse { signature, ..ToolUse::new(id, name, arguments) })
    };
    let bern = json!({"city": "Bern"});
    let text = Part::Text("I loök.".into());
    let plain = [call("id_a", "weather", bern.clone(), None), call("id_b", "time", json!({}), None)];
    let parts = match kind {
        "openai" => {
            let signature = own(json!({"google": {"thought_signature": "S1g-call"}}));
            let [a, _] = plain;
            vec![
                thought(unsigned("reasoning_content")),
                text,
                a,
                call("id_b", "time", json!({}), Some(signature)),
            ]
        }
        "openai_resp" => {
            let before =
                [thought(Some(own(reasoning()))), Part::Opaque(own(json!({"phase": "commentary"}))), text];
            before.into_iter().chain(plain).collect()
        }
        "anthropic" => {
            let redacted = Part::Opaque(own(json!({"type": "redacted_thinking", "data": "S1g-redacted"})));
            let before = [thought(Some(own("S1g-thought".into()))), redacted, text];
            before.into_iter().chain(plain).collect()
        }
        "gemini" => {
            let [_, b] = plain;
            let signed = Part::Opaque(own(json!({"thoughtSignature": "S1g-text", "text": true})));
            let a = call("id_a", "weather", bern, Some(own("S1g-call".into())));
            vec![
                thought(unsigned("thought")),
                Part::Text("I lo".into()),
                Part::Text("ök.".into()),
                signed,
                a,
                b,
            ]
        }
        _ => [thought(unsigned("thinking")), text].into_iter().chain(plain).collect(),
    };
    let usage = Usage::new(30, 7);
    ModelReply::new(parts, Finish::ToolUse).usage(if kind == "ollama" { usage } else { usage.cached(20) })
}
