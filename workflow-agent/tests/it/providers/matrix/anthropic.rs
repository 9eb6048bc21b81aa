//! Anthropic's messages, and servers with that interface.

use serde_json::{Value, json};
use workflow_agent::model::{Finish, ModelReply, Opaque, Part, Usage};
use workflow_core::ErrorClass::{ContextLimit, Model, Permanent, Transient};

use super::{Recordings, call, replied, signed, sse, text, unsigned, usage};

const KIND: &str = "anthropic";

fn begin(index: Option<u64>, block: Value) -> Value {
    indexed("content_block_start", index, json!({ "content_block": block }))
}

fn delta(index: Option<u64>, delta: Value) -> Value {
    indexed("content_block_delta", index, json!({ "delta": delta }))
}

fn stop(index: Option<u64>) -> Value {
    indexed("content_block_stop", index, json!({}))
}

fn indexed(kind: &str, index: Option<u64>, mut fields: Value) -> Value {
    fields["type"] = kind.into();
    if let Some(index) = index {
        fields["index"] = index.into();
    }
    fields
}

fn started() -> Value {
    json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 8, "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 2, "output_tokens": 1}}})
}

fn reason(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}})
}

fn ended() -> Value {
    json!({"type": "message_stop"})
}

fn said() -> Vec<Value> {
    vec![
        started(),
        begin(Some(0), json!({"type": "text", "text": ""})),
        json!({"type": "ping"}),
        delta(Some(0), json!({"type": "text_delta", "text": "Hi"})),
        stop(Some(0)),
    ]
}

fn tool(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

fn piece(index: Option<u64>, piece: &str) -> Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": piece}))
}

fn two() -> ModelReply {
    replied(vec![call("a", "one"), call("b", "two")], Finish::ToolUse).usage(usage())
}

pub(super) fn all() -> Recordings {
    let mut all = Recordings::new(KIND);
    endings(&mut all);
    calls(&mut all);
    thoughts(&mut all);
    errors(&mut all);
    wholes(&mut all);
    all
}

fn endings(all: &mut Recordings) {
    let hi = |finish| Ok(replied(vec![text("Hi")], finish).usage(usage()));
    let mut ends = |name, end: &[Value], expected| {
        let events: Vec<Value> = said().into_iter().chain(end.iter().cloned()).collect();
        all.stream(name, sse(&events), expected);
    };
    for (name, word, finish) in [
        ("end_turn", "end_turn", Finish::Stop),
        ("stop_sequence", "stop_sequence", Finish::Stop),
        ("max_tokens", "max_tokens", Finish::Length),
        ("refusal", "refusal", Finish::Refusal),
        ("the window", "model_context_window_exceeded", Finish::ContextLimit),
        ("stop", "stop", Finish::Stop),
        ("length", "length", Finish::Length),
    ] {
        ends(name, &[reason(word), ended()], hi(finish));
    }
    ends("without message_stop", &[reason("end_turn")], hi(Finish::Stop));
    ends("an unknown reason", &[reason("pause_turn"), ended()], Err(Model));
    ends("no end", &[], Err(Transient));
    let unreasoned = Ok(replied(vec![text("Hi")], Finish::Stop).usage(Usage::new(30, 1).cached(20)));
    ends("without a reason", &[ended()], unreasoned);
    let named: String = said()
        .iter()
        .chain(&[reason("end_turn"), ended()])
        .map(|event| format!("event: {}\r\ndata: {event}\r\n\r\n", event["type"].as_str().unwrap()))
        .collect();
    all.stream("with names and carriage returns", named, hi(Finish::Stop));
    let unbegun =
        [started(), delta(Some(0), json!({"type": "text_delta", "text": "Hi"})), reason("end_turn"), ended()];
    all.stream("text of no block", sse(&unbegun), hi(Finish::Stop));
}

fn calls(all: &mut Recordings) {
    let mut ends = |name, events: &[Value], expected| {
        let events: Vec<Value> = [started()]
            .into_iter()
            .chain(events.iter().cloned())
            .chain([reason("tool_use"), ended()])
            .collect();
        all.stream(name, sse(&events), expected);
    };
    let sequence = |first: Option<u64>, second: Option<u64>| {
        vec![
            begin(first, tool("a", "one")),
            piece(first, ""),
            piece(first, "{\"for\":"),
            piece(first, "\"one\"}"),
            stop(first),
            begin(second, tool("b", "two")),
            piece(second, "{\"for\":\"two\"}"),
            stop(second),
        ]
    };
    ends("as documented", &sequence(Some(0), Some(1)), Ok(two()));
    ends("without an index", &sequence(None, None), Ok(two()));
    ends("with one index", &sequence(Some(0), Some(0)), Ok(two()));
    let interleaved = [
        begin(Some(1), tool("a", "one")),
        begin(Some(2), tool("b", "two")),
        piece(Some(2), "{\"for\":"),
        piece(Some(1), "{\"for\":\"one\"}"),
        piece(Some(2), "\"two\"}"),
        stop(Some(1)),
        stop(Some(2)),
    ];
    ends("interleaved", &interleaved, Ok(two()));
    let whole =
        |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {"for": name}});
    let begun =
        [begin(Some(0), whole("a", "one")), stop(Some(0)), begin(Some(1), whole("b", "two")), stop(Some(1))];
    ends("whole calls", &begun, Ok(two()));
    let lost = [begin(Some(0), tool("a", "one")), piece(Some(3), "{\"for\":\"two\"}"), stop(Some(0))];
    ends("arguments of no call", &lost, Err(Model));
    let late = [begin(Some(0), tool("a", "one")), stop(Some(0)), piece(Some(0), "{\"for\":\"one\"}")];
    ends("arguments behind their call", &late, Err(Model));
    let of_text = [begin(Some(0), json!({"type": "text", "text": ""})), piece(Some(0), "{\"for\":\"one\"}")];
    ends("arguments of a text", &of_text, Err(Model));
    ends("a call without a name", &[begin(Some(0), tool("a", "")), stop(Some(0))], Err(Model));
    let server = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let other = [
        begin(Some(0), server),
        piece(Some(0), "{\"query\":1}"),
        stop(Some(0)),
        begin(Some(1), whole("a", "one")),
        stop(Some(1)),
    ];
    ends(
        "a block of another type",
        &other,
        Ok(replied(vec![call("a", "one")], Finish::ToolUse).usage(usage())),
    );
}

fn thoughts(all: &mut Recordings) {
    let think = |signature: Option<&str>| {
        let mut events = vec![
            started(),
            begin(Some(0), json!({"type": "thinking", "thinking": ""})),
            delta(Some(0), json!({"type": "thinking_delta", "thinking": "Two "})),
            delta(Some(0), json!({"type": "thinking_delta", "thinking": "cities."})),
        ];
        events.extend(
            signature
                .map(|signature| delta(Some(0), json!({"type": "signature_delta", "signature": signature}))),
        );
        let call = json!({"type": "tool_use", "id": "a", "name": "one", "input": {"for": "one"}});
        events.extend([
            stop(Some(0)),
            begin(Some(1), json!({"type": "redacted_thinking", "data": "S1g-2"})),
            stop(Some(1)),
            begin(Some(2), call),
            stop(Some(2)),
            reason("tool_use"),
            ended(),
        ]);
        sse(&events)
    };
    let redacted = || Part::Opaque(Opaque::new(KIND, json!({"type": "redacted_thinking", "data": "S1g-2"})));
    let expected =
        |thought| Ok(replied(vec![thought, redacted(), call("a", "one")], Finish::ToolUse).usage(usage()));
    all.stream("a signed thought", think(Some("S1g")), expected(signed(KIND, json!("S1g"), "Two cities.")));
    all.stream(
        "a thought without a signature",
        think(None),
        expected(unsigned(KIND, &json!("thinking"), "Two cities.")),
    );
}

fn errors(all: &mut Recordings) {
    for (name, kind, class) in [
        ("overloaded", "overloaded_error", Transient),
        ("rate limit", "rate_limit_error", Transient),
        ("api error", "api_error", Transient),
        ("wrong key", "authentication_error", Permanent),
        ("no credit", "billing_error", Permanent),
        ("too large", "request_too_large", ContextLimit),
    ] {
        let error = json!({"type": "error", "error": {"type": kind, "message": "no"}});
        let events: Vec<Value> = said().into_iter().chain([error]).collect();
        all.stream(name, sse(&events), Err(class));
    }
}

fn wholes(all: &mut Recordings) {
    let body = |content: Value, reason: Value| {
        json!({"type": "message", "role": "assistant", "content": content, "stop_reason": reason, "usage": {"input_tokens": 8,
            "cache_read_input_tokens": 20, "cache_creation_input_tokens": 2, "output_tokens": 7}})
    };
    let calls = json!([{"type": "tool_use", "id": "a", "name": "one", "input": {"for": "one"}},
        {"type": "tool_use", "id": "b", "name": "two", "input": {"for": "two"}}]);
    all.whole("as documented", &body(calls.clone(), json!("tool_use")), Ok(two()));
    all.whole("without a reason", &body(calls, Value::Null), Ok(two()));
    let thought = json!([{"type": "thinking", "thinking": "Two cities."}, {"type": "text", "text": "Hi"}]);
    let parts = vec![unsigned(KIND, &json!("thinking"), "Two cities."), text("Hi")];
    all.whole(
        "a thought without a signature",
        &body(thought, json!("end_turn")),
        Ok(replied(parts, Finish::Stop).usage(usage())),
    );
    let partial = body(json!([{"type": "text", "text": "Hi"}]), json!("model_context_window_exceeded"));
    all.whole("the window", &partial, Ok(replied(vec![text("Hi")], Finish::ContextLimit).usage(usage())));
    all.whole(
        "an error",
        &json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}),
        Err(Transient),
    );
    all.whole("nothing", &json!({}), Err(Transient));
}
