//! Google's Gemini API.

use serde_json::{Value, json};
use workflow_agent::model::{Finish, ModelReply, Opaque, Part, ToolUse};
use workflow_core::ErrorClass::{ContextLimit, Model, Permanent, Transient};

use super::{Recordings, arguments, call, replied, sse, text, unsigned, usage};

const KIND: &str = "gemini";

fn parts(parts: Value) -> Value {
    json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}]})
}

fn end(reason: &str) -> Value {
    json!({"candidates": [{"index": 0, "finishReason": reason}], "usageMetadata": {"promptTokenCount": 30,
        "cachedContentTokenCount": 20, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}})
}

fn function(name: &str) -> Value {
    json!({"functionCall": {"name": name, "args": {"for": name}}})
}

fn two() -> ModelReply {
    replied(vec![call("call_0", "one"), call("call_1", "two")], Finish::ToolUse).usage(usage())
}

fn hi(finish: Finish) -> ModelReply {
    replied(vec![text("Hi")], finish).usage(usage())
}

pub(super) fn all() -> Recordings {
    let mut all = Recordings::new(KIND);
    let said = || parts(json!([{"text": "Hi"}]));
    for (name, reason, finish) in [
        ("STOP", "STOP", Finish::Stop),
        ("MAX_TOKENS", "MAX_TOKENS", Finish::Length),
        ("SAFETY", "SAFETY", Finish::Refusal),
        ("RECITATION", "RECITATION", Finish::Refusal),
    ] {
        all.stream(name, sse(&[said(), end(reason)]), Ok(hi(finish)));
    }
    all.stream(
        "without the last line end",
        sse(&[said(), end("STOP")]).trim_end().to_owned(),
        Ok(hi(Finish::Stop)),
    );
    all.stream("with [DONE]", sse(&[said(), end("STOP")]) + "data: [DONE]\n\n", Ok(hi(Finish::Stop)));
    all.stream("a malformed call", sse(&[said(), end("MALFORMED_FUNCTION_CALL")]), Err(Model));
    all.stream("no end", sse(&[said()]), Err(Transient));
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    all.stream("a refused prompt", sse(&[blocked]), Ok(replied(vec![], Finish::Refusal)));
    calls(&mut all);
    for (name, code, status, message, class) in [
        ("overloaded", 503, "UNAVAILABLE", "overloaded", Transient),
        ("rate limit", 429, "RESOURCE_EXHAUSTED", "quota", Transient),
        ("a bad request", 400, "INVALID_ARGUMENT", "no", Permanent),
        (
            "context",
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens",
            ContextLimit,
        ),
    ] {
        let error = json!({"error": {"code": code, "status": status, "message": message}});
        all.stream(name, sse(&[said(), error.clone()]), Err(class));
        all.whole(name, &error, Err(class));
    }
    wholes(&mut all);
    all
}

fn calls(all: &mut Recordings) {
    let parallel = [parts(json!([function("one"), function("two")])), end("STOP")];
    all.stream("parallel calls without ids", sse(&parallel), Ok(two()));
    let apart = [parts(json!([function("one")])), parts(json!([function("two")])), end("STOP")];
    all.stream("calls one after the other", sse(&apart), Ok(two()));
    let mut signed = function("one");
    signed["thoughtSignature"] = "S1g".into();
    let thought = parts(json!([{"text": "Two ", "thought": true}, {"text": "cities.", "thought": true}]));
    let signature = Some(Opaque::new(KIND, json!("S1g")));
    let one = Part::Call(ToolUse { signature, ..ToolUse::new("call_0", "one", arguments("one")) });
    let expected = vec![unsigned(KIND, &json!("thought"), "Two cities."), one];
    let events = [thought, parts(json!([signed])), end("STOP")];
    all.stream(
        "a thought and a signed call",
        sse(&events),
        Ok(replied(expected, Finish::ToolUse).usage(usage())),
    );
    let nameless = [parts(json!([{"functionCall": {"args": {"for": "one"}}}])), end("STOP")];
    all.stream("a call without a name", sse(&nameless), Err(Model));
}

fn wholes(all: &mut Recordings) {
    let mut body = end("STOP");
    body["candidates"][0]["content"] = json!({"parts": [function("one"), function("two")]});
    all.whole("as documented", &body, Ok(two()));
    body["candidates"][0]["content"] = json!({"parts": [{"text": "Hi"}]});
    all.whole("an answer", &body, Ok(hi(Finish::Stop)));
    body["candidates"][0].as_object_mut().unwrap().remove("finishReason");
    all.whole("without a reason", &body, Ok(hi(Finish::Stop)));
    all.whole("nothing", &json!({}), Err(Transient));
}
