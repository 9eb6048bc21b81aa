//! Chat completions: OpenAI, and the servers that copied its interface.

use serde_json::{Value, json};
use workflow_agent::model::{Finish, ModelReply, Opaque, Part, ToolUse, Usage};
use workflow_core::ErrorClass::{ContextLimit, Model, Permanent, Transient};

use super::{Recordings, call, replied, signed, sse, text, unsigned, usage};

const KIND: &str = "openai";
const DONE: &str = "data: [DONE]\n\n";

fn delta(delta: Value) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn fragments(list: Value) -> Value {
    delta(json!({ "tool_calls": list }))
}

fn end(reason: &str) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn tokens() -> Value {
    json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 20}}})
}

/// The parallel calls `one` and `two`.
fn two() -> ModelReply {
    replied(vec![call("a", "one"), call("b", "two")], Finish::ToolUse)
}

fn unnamed_ids() -> ModelReply {
    replied(vec![call("call_0", "one"), call("call_1", "two")], Finish::ToolUse)
}

fn hi(finish: Finish) -> ModelReply {
    replied(vec![text("Hi")], finish)
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
    let said = || delta(json!({"role": "assistant", "content": "Hi"}));
    let documented = sse(&[said(), end("stop"), tokens()]) + DONE;
    all.stream("as documented", documented.clone(), Ok(hi(Finish::Stop).usage(usage())));
    let crlf = documented.replace('\n', "\r\n");
    all.stream("with carriage returns", crlf, Ok(hi(Finish::Stop).usage(usage())));
    let commented = format!(": OPENROUTER PROCESSING\n\n{documented}");
    all.stream("with comments", commented, Ok(hi(Finish::Stop).usage(usage())));
    let without = sse(&[said(), end("stop"), tokens()]);
    all.stream("without [DONE]", without, Ok(hi(Finish::Stop).usage(usage())));
    let without = documented.trim_end().to_owned();
    all.stream("without the last line end", without, Ok(hi(Finish::Stop).usage(usage())));
    all.stream("without a reason", sse(&[said(), tokens()]) + DONE, Ok(hi(Finish::Stop).usage(usage())));
    let empty = json!({"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": ""}]});
    all.stream("with empty reasons", sse(&[empty]) + DONE, Ok(hi(Finish::Stop)));
    all.stream("with neither", sse(&[said()]), Err(Transient));
    for (name, reason, finish) in [
        ("length", "length", Finish::Length),
        ("max_tokens", "max_tokens", Finish::Length),
        ("eos", "eos", Finish::Stop),
        ("end_turn", "end_turn", Finish::Stop),
        ("content_filter", "content_filter", Finish::Refusal),
        ("the window", "model_length", Finish::ContextLimit),
    ] {
        all.stream(name, sse(&[said(), end(reason)]) + DONE, Ok(hi(finish)));
    }
    all.stream("an unknown reason", sse(&[said(), end("because")]) + DONE, Err(Model));
    let refusal = sse(&[delta(json!({"refusal": "I "})), delta(json!({"refusal": "cannot."})), end("stop")]);
    all.stream("a refusal", refusal + DONE, Ok(replied(vec![text("I cannot.")], Finish::Refusal)));
    let hits = json!({"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 7, "prompt_cache_hit_tokens": 20}});
    all.stream(
        "cached tokens as of DeepSeek",
        sse(&[said(), end("stop"), hits]) + DONE,
        Ok(hi(Finish::Stop).usage(usage())),
    );
}

fn calls(all: &mut Recordings) {
    let mut ends = |name, deltas: &[Value], reason: &str, expected: ModelReply| {
        let events: Vec<Value> = deltas.iter().cloned().chain([end(reason)]).collect();
        all.stream(name, sse(&events) + DONE, Ok(expected));
    };
    let interleaved = [
        fragments(
            json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": ""}}]),
        ),
        fragments(
            json!([{"index": 1, "id": "b", "type": "function", "function": {"name": "two", "arguments": ""}}]),
        ),
        fragments(
            json!([{"index": 0, "function": {"arguments": "{\"for\":"}}, {"index": 1, "function": {"arguments": "{\"f"}}]),
        ),
        fragments(json!([{"index": 1, "function": {"arguments": "or\":\"two\"}"}}])),
        fragments(json!([{"index": 0, "function": {"arguments": "\"one\"}"}}])),
    ];
    ends("interleaved by index", &interleaved, "tool_calls", two());
    ends("calls that end with tool_use", &interleaved, "tool_use", two());
    ends("calls that end with stop", &interleaved, "stop", two());
    let ids = [
        fragments(json!([{"id": "a", "function": {"name": "one", "arguments": "{\"for\":"}}])),
        fragments(json!([{"id": "b", "function": {"name": "two", "arguments": "{\"for\":"}}])),
        fragments(
            json!([{"id": "a", "function": {"arguments": "\"one\"}"}}, {"id": "b", "function": {"arguments": "\"two\"}"}}]),
        ),
    ];
    ends("interleaved by id, without an index", &ids, "tool_calls", two());
    let ids = [
        fragments(json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{\"for\":"}}])),
        fragments(json!([{"index": 0, "id": "b", "function": {"name": "two", "arguments": "{\"for\":"}}])),
        fragments(json!([{"index": 0, "id": "a", "function": {"arguments": "\"one\"}"}}])),
        fragments(json!([{"index": 0, "id": "b", "function": {"arguments": "\"two\"}"}}])),
    ];
    ends("interleaved by id, with one index", &ids, "tool_calls", two());
    let whole = |id: Value, index: Value, name: &str| json!({"index": index, "id": id, "function": {"name": name, "arguments": format!("{{\"for\":\"{name}\"}}")}});
    let null = || Value::Null;
    let list = [fragments(json!([whole(null(), null(), "one"), whole(null(), null(), "two")]))];
    ends("whole calls in one list, without ids", &list, "tool_calls", unnamed_ids());
    let same = [
        fragments(json!([whole(null(), json!(0), "one")])),
        fragments(json!([whole(null(), json!(0), "two")])),
    ];
    ends("whole calls with one index and without ids", &same, "tool_calls", unnamed_ids());
    let twice = [
        fragments(json!([whole(null(), json!(0), "one")])),
        fragments(json!([whole(null(), json!(0), "one")])),
    ];
    let both = replied(vec![call("call_0", "one"), call("call_1", "one")], Finish::ToolUse);
    ends("one tool twice with one index and without ids", &twice, "tool_calls", both);
    let late = [
        fragments(json!([whole(json!("a"), json!(0), "one")])),
        fragments(json!([{"index": 1, "id": "b", "function": {"name": "two"}}])),
        fragments(json!([{"index": 7, "function": {"arguments": "{\"for\":"}}])),
        fragments(json!([{"function": {"arguments": "\"two\"}"}}])),
        // Fragments that say nothing change nothing.
        fragments(json!([{"index": 0, "function": {"arguments": ""}}, {"index": 3}])),
    ];
    ends("fragments with unknown indices", &late, "tool_calls", two());
    let repeated = [
        fragments(json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{\"for\":"}}])),
        fragments(json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": "\"one\"}"}}])),
        fragments(json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": ""}}])),
        fragments(json!([{"index": 1, "id": "", "function": {"name": "two", "arguments": "{\"for\":"}}])),
        fragments(json!([{"index": 1, "id": "", "function": {"name": "two", "arguments": "\"two\"}"}}])),
        fragments(json!([{"index": 1, "id": "b", "function": {"arguments": ""}}])),
    ];
    ends("names in each fragment, and a late id", &repeated, "tool_calls", two());
    let objects = [fragments(
        json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": {"for": "one"}}},
        {"index": 1, "id": "b", "function": {"name": "two", "arguments": {"for": "two"}}}]),
    )];
    ends("arguments as objects", &objects, "tool_calls", two());
    let signed = json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{\"for\":\"one\"}"},
        "extra_content": {"google": {"thought_signature": "S1g"}}}]);
    let signature = Some(Opaque::new(KIND, json!({"google": {"thought_signature": "S1g"}})));
    let one = Part::Call(ToolUse { signature, ..ToolUse::new("a", "one", super::arguments("one")) });
    ends("a signed call", &[fragments(signed)], "tool_calls", replied(vec![one], Finish::ToolUse));
    let open = [
        fragments(json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{\"for\":"}}])),
        fragments(json!([{"index": 0, "function": {"name": "two", "arguments": "{\"for\":\"two\"}"}}])),
    ];
    let broken = Part::Call(ToolUse::new("a", "one", json!("{\"for\":")));
    ends(
        "another name within arguments",
        &open,
        "tool_calls",
        replied(vec![broken, call("call_1", "two")], Finish::ToolUse),
    );
    let nameless = sse(&[
        fragments(json!([whole(json!("a"), json!(0), "one")])),
        fragments(json!([{"index": 1, "id": "b", "function": {"arguments": "{\"for\":\"two\"}"}}])),
        end("tool_calls"),
    ]);
    all.stream("a call without a name", nameless + DONE, Err(Model));
}

fn thoughts(all: &mut Recordings) {
    let one = || {
        fragments(
            json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{\"for\":\"one\"}"}}]),
        )
    };
    let mut ends = |name, deltas: &[Value], thoughts: Vec<Part>| {
        let events: Vec<Value> = deltas.iter().cloned().chain([one(), end("tool_calls"), tokens()]).collect();
        let parts = thoughts.into_iter().chain([call("a", "one")]).collect();
        all.stream(name, sse(&events) + DONE, Ok(replied(parts, Finish::ToolUse).usage(usage())));
    };
    for field in ["reasoning_content", "reasoning"] {
        let deltas = [
            delta(json!({"role": "assistant", "content": null, field: ""})),
            delta(json!({field: "Two "})),
            delta(json!({field: "cities.", "content": null})),
        ];
        ends(field, &deltas, vec![unsigned(KIND, &json!(field), "Two cities.")]);
    }
    let empty = [delta(json!({"role": "assistant", "content": null, "reasoning_content": ""}))];
    ends("an empty thought", &empty, vec![unsigned(KIND, &json!("reasoning_content"), "")]);
    let detail = |fields: Value| {
        let mut detail = json!({"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0});
        detail.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let text = detail["text"].clone();
        delta(json!({"reasoning": text, "reasoning_details": [detail]}))
    };
    let of_claude = [
        detail(json!({"text": "Two "})),
        detail(json!({"text": "cities."})),
        detail(json!({"text": "", "signature": "S1g"})),
        delta(
            json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "S1g-2", "index": 1, "id": null}]}),
        ),
    ];
    let text =
        json!({"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "signature": "S1g"});
    let data = json!({"type": "reasoning.encrypted", "data": "S1g-2", "index": 1});
    ends("details", &of_claude, vec![signed(KIND, text, "Two cities."), signed(KIND, data, "")]);
    let summaries = [
        delta(
            json!({"reasoning": "Two ", "reasoning_details": [{"type": "reasoning.summary", "summary": "Two ", "index": 0}]}),
        ),
        delta(
            json!({"reasoning": "cities.", "reasoning_details": [{"type": "reasoning.summary", "summary": "cities.", "index": 0}]}),
        ),
    ];
    let summary = json!({"type": "reasoning.summary", "index": 0});
    ends("details without a signature", &summaries, vec![unsigned(KIND, &summary, "Two cities.")]);
    let parts = [
        delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Two "}]}]})),
        delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "cities."}]}]})),
    ];
    ends("parts of the content", &parts, vec![unsigned(KIND, &json!("thinking"), "Two cities.")]);
}

fn errors(all: &mut Recordings) {
    let said = || delta(json!({"content": "Hi"}));
    for (name, error, class) in [
        ("overloaded", json!({"message": "overloaded", "type": "server_error", "code": 503}), Transient),
        (
            "rate limit",
            json!({"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}),
            Transient,
        ),
        (
            "no credit",
            json!({"message": "quota", "type": "insufficient_quota", "code": "insufficient_quota"}),
            Permanent,
        ),
        ("wrong key", json!({"message": "key", "code": "invalid_api_key"}), Permanent),
        ("context", json!({"message": "long", "code": "context_length_exceeded"}), ContextLimit),
    ] {
        all.stream(name, sse(&[said(), json!({ "error": error })]), Err(class));
    }
    all.stream("broken JSON", sse(&[said()]) + "data: {\"choices\":\n\n", Err(Transient));
    all.stream("an empty body", String::new(), Err(Transient));
}

fn wholes(all: &mut Recordings) {
    let body = |message: Value, reason: Value| {
        json!({"choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": {"prompt_tokens": 30,
            "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 20}}})
    };
    let hi = |reason: Value| body(json!({"role": "assistant", "content": "Hi"}), reason);
    let said = |finish| Ok(replied(vec![text("Hi")], finish).usage(usage()));
    all.whole("as documented", &hi(json!("stop")), said(Finish::Stop));
    all.whole("without a reason", &hi(Value::Null), said(Finish::Stop));
    all.whole("eos", &hi(json!("eos")), said(Finish::Stop));
    all.whole("max_tokens", &hi(json!("max_tokens")), said(Finish::Length));
    all.whole("an unknown reason", &hi(json!("because")), Err(Model));
    all.whole("nothing", &json!({}), Err(Transient));
    let call_of = |name: &str| json!({"index": 0, "function": {"name": name, "arguments": format!("{{\"for\":\"{name}\"}}")}});
    let calls = body(
        json!({"content": null, "reasoning_content": "Two cities.", "tool_calls": [call_of("one"), call_of("two")]}),
        json!("tool_calls"),
    );
    let thought = unsigned(KIND, &json!("reasoning_content"), "Two cities.");
    let parts = vec![thought, call("call_0", "one"), call("call_1", "two")];
    all.whole("calls with one index", &calls, Ok(replied(parts, Finish::ToolUse).usage(usage())));
    let same = json!({"tool_calls": [{"function": {"name": "one"}}, {"function": {"name": "one", "arguments": "{\"for\":\"one\"}"}}]});
    let parts = vec![Part::Call(ToolUse::new("call_0", "one", json!({}))), call("call_1", "one")];
    all.whole(
        "one tool twice",
        &body(same, json!("tool_calls")),
        Ok(replied(parts, Finish::ToolUse).usage(usage())),
    );
    let nameless = json!({"tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]});
    all.whole("a call without a name", &body(nameless, json!("tool_calls")), Err(Model));
    let quota = json!({"error": {"message": "quota", "code": "insufficient_quota"}});
    all.whole("no credit", &quota, Err(Permanent));
    let plain = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    all.whole("nothing cached", &plain, Ok(replied(vec![text("Hi")], Finish::Stop).usage(Usage::new(3, 1))));
}
