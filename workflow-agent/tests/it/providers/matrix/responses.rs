//! OpenAI's responses, and servers with that interface.

use serde_json::{Value, json};
use workflow_agent::model::{Finish, ModelReply, Opaque, Part};
use workflow_core::ErrorClass::{ContextLimit, Model, Permanent, Transient};

use super::{Recordings, call, replied, signed, sse, text, usage};

const KIND: &str = "openai_resp";

fn tokens() -> Value {
    json!({"input_tokens": 30, "input_tokens_details": {"cached_tokens": 20}, "output_tokens": 7})
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": output, "usage": tokens()}})
}

fn item(id: &str, call: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": id, "call_id": call, "name": name, "arguments": arguments})
}

fn added(index: Option<u64>, item: Value) -> Value {
    event("response.output_item.added", index, json!({ "item": item }))
}

fn done(index: Option<u64>, item: Value) -> Value {
    event("response.output_item.done", index, json!({ "item": item }))
}

fn piece(index: Option<u64>, id: &str, delta: &str) -> Value {
    event("response.function_call_arguments.delta", index, json!({"item_id": id, "delta": delta}))
}

fn event(kind: &str, index: Option<u64>, mut fields: Value) -> Value {
    fields["type"] = kind.into();
    if let Some(index) = index {
        fields["output_index"] = index.into();
    }
    fields
}

fn message(words: &str) -> Value {
    json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": words}]})
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
    let said = || {
        vec![
            json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
            added(Some(0), json!({"type": "message", "id": "m", "content": []})),
            event("response.output_text.delta", Some(0), json!({"item_id": "m", "delta": "Hi"})),
            done(Some(0), message("Hi")),
        ]
    };
    let hi = |finish| Ok(replied(vec![text("Hi")], finish).usage(usage()));
    let mut ends = |name, end: Value, expected| {
        let events: Vec<Value> = said().into_iter().chain([end]).collect();
        all.stream(name, sse(&events), expected);
    };
    ends("as documented", completed(json!([message("Hi")])), hi(Finish::Stop));
    ends("without the items again", completed(json!([])), hi(Finish::Stop));
    let bare =
        json!({"type": "response.completed", "response": {"output": [message("Hi")], "usage": tokens()}});
    ends("without a status", bare, hi(Finish::Stop));
    let incomplete = |details: Value| {
        json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": details,
            "output": [message("Hi")], "usage": tokens()}})
    };
    ends("length", incomplete(json!({"reason": "max_output_tokens"})), hi(Finish::Length));
    ends("max_tokens", incomplete(json!({"reason": "max_tokens"})), hi(Finish::Length));
    ends("incomplete for no reason", incomplete(Value::Null), hi(Finish::Length));
    ends("content_filter", incomplete(json!({"reason": "content_filter"})), hi(Finish::Refusal));
    ends("an unknown reason", incomplete(json!({"reason": "because"})), Err(Model));
    let refusal = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}]);
    let expected = replied(vec![text("I cannot.")], Finish::Refusal).usage(usage());
    ends("a refusal", completed(refusal), Ok(expected));
    all.stream("no end", sse(&said()), Err(Transient));
    all.stream("no end but [DONE]", sse(&said()) + "data: [DONE]\n\n", Err(Transient));
    let without_end = sse(&[completed(json!([message("Hi")]))]).trim_end().to_owned();
    all.stream("without the last line end", without_end, hi(Finish::Stop));
}

fn calls(all: &mut Recordings) {
    let none = || json!([]);
    let mut ends = |name, events: &[Value], output: Value| {
        let events: Vec<Value> = events.iter().cloned().chain([completed(output)]).collect();
        all.stream(name, sse(&events), Ok(two()));
    };
    let (one, two) = ("{\"for\":\"one\"}", "{\"for\":\"two\"}");
    let both = json!([item("i1", "a", "one", one), item("i2", "b", "two", two)]);
    let interleaved = |first: Option<u64>, second: Option<u64>| {
        vec![
            added(first, item("i1", "a", "one", "")),
            added(second, item("i2", "b", "two", "")),
            piece(second, "i2", "{\"for\":"),
            piece(first, "i1", "{\"for\":"),
            piece(first, "i1", "\"one\"}"),
            piece(second, "i2", "\"two\"}"),
        ]
    };
    ends("interleaved, and whole at the end", &interleaved(Some(0), Some(1)), both.clone());
    ends("interleaved, in fragments only", &interleaved(Some(0), Some(1)), none());
    ends("interleaved with one index", &interleaved(Some(0), Some(0)), none());
    ends("interleaved without an index", &interleaved(None, None), none());
    let sequence = |index: Option<u64>| {
        vec![
            added(index, item("i1", "a", "one", "")),
            piece(index, "x1", "{\"for\":"),
            piece(index, "x2", "\"one\"}"),
            done(index, item("x3", "a", "one", one)),
            added(index, item("i2", "b", "two", "")),
            piece(index, "x4", two),
            done(index, item("x5", "b", "two", two)),
        ]
    };
    ends("another id in each event, one index", &sequence(Some(0)), none());
    ends("another id in each event, no index", &sequence(None), none());
    let finished = [done(Some(1), item("i2", "b", "two", two)), done(Some(0), item("i1", "a", "one", one))];
    ends("finished in another order", &finished, none());
    let lost = sse(&[
        added(Some(0), item("i1", "a", "one", "")),
        done(Some(0), item("i1", "a", "one", one)),
        piece(Some(5), "i9", two),
        completed(none()),
    ]);
    all.stream("arguments of no call", lost, Err(Model));
    all.stream("a call without a name", sse(&[completed(json!([item("i1", "a", "", "{}")]))]), Err(Model));
}

fn thoughts(all: &mut Recordings) {
    let reasoning = |state: Value| json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Two cities."}], "encrypted_content": state});
    for (name, state) in [("reasoning", json!("S1g")), ("reasoning without its state", Value::Null)] {
        let item = reasoning(state);
        let events = [
            added(Some(0), json!({"type": "reasoning", "id": "rs", "summary": []})),
            event(
                "response.reasoning_summary_text.delta",
                Some(0),
                json!({"item_id": "rs", "summary_index": 0, "delta": "Two cities."}),
            ),
            done(Some(0), item.clone()),
            completed(json!([item, super::responses::item("i1", "a", "one", "{\"for\":\"one\"}")])),
        ];
        let parts = vec![signed(KIND, item, "Two cities."), call("a", "one")];
        all.stream(name, sse(&events), Ok(replied(parts, Finish::ToolUse).usage(usage())));
    }
    let mut phase = message("Hi");
    phase["phase"] = "commentary".into();
    let own = Part::Opaque(Opaque::new(KIND, json!({"phase": "commentary"})));
    let expected = replied(vec![own, text("Hi")], Finish::Stop).usage(usage());
    all.stream("a phase", sse(&[completed(json!([phase]))]), Ok(expected));
}

fn errors(all: &mut Recordings) {
    let failed = |code: &str| json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": code, "message": "no"}}});
    for (name, event, class) in [
        ("server error", failed("server_error"), Transient),
        ("rate limit", json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}), Transient),
        ("no credit", json!({"type": "error", "code": "insufficient_quota", "message": "no"}), Permanent),
        ("a flagged prompt", failed("invalid_prompt"), Permanent),
        ("context", failed("context_length_exceeded"), ContextLimit),
    ] {
        all.stream(name, sse(&[event]), Err(class));
    }
}

fn wholes(all: &mut Recordings) {
    let body = |status: Value, output: Value| json!({"id": "r", "status": status, "output": output, "usage": tokens()});
    let calls =
        json!([item("i1", "a", "one", "{\"for\":\"one\"}"), item("i2", "b", "two", "{\"for\":\"two\"}")]);
    all.whole("as documented", &body(json!("completed"), calls.clone()), Ok(two()));
    all.whole("without a status", &body(Value::Null, calls), Ok(two()));
    all.whole(
        "a failure",
        &json!({"status": "failed", "error": {"code": "server_error", "message": "no"}}),
        Err(Transient),
    );
    all.whole("nothing", &json!({}), Err(Transient));
    all.whole("cancelled", &body(json!("cancelled"), json!([])), Err(Model));
}
