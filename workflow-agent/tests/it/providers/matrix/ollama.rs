//! Ollama's chats: lines of JSON.

use serde_json::{Value, json};
use workflow_agent::model::{Finish, ModelReply, Usage};
use workflow_core::ErrorClass::{Model, Transient};

use super::{Recordings, call, replied, text, unsigned};

const KIND: &str = "ollama";

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn message(message: Value) -> Value {
    json!({"model": "m", "message": message, "done": false})
}

fn end(fields: Value) -> Value {
    let mut end = json!({"model": "m", "message": {"role": "assistant", "content": ""}, "prompt_eval_count": 30, "eval_count": 7});
    end.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    end
}

fn function(name: &str) -> Value {
    json!({"function": {"name": name, "arguments": {"for": name}}})
}

fn two() -> ModelReply {
    replied(vec![call("call_0", "one"), call("call_1", "two")], Finish::ToolUse).usage(Usage::new(30, 7))
}

pub(super) fn all() -> Recordings {
    let mut all = Recordings::new(KIND);
    let said = || message(json!({"role": "assistant", "content": "Hi"}));
    let hi = |finish| Ok(replied(vec![text("Hi")], finish).usage(Usage::new(30, 7)));
    for (name, fields, finish) in [
        ("as documented", json!({"done": true, "done_reason": "stop"}), Finish::Stop),
        ("done alone", json!({"done": true}), Finish::Stop),
        ("a reason alone", json!({"done_reason": "stop"}), Finish::Stop),
        ("length", json!({"done": true, "done_reason": "length"}), Finish::Length),
    ] {
        let documented = lines(&[said(), end(fields.clone())]);
        all.stream(name, documented, hi(finish));
        let mut whole = end(fields);
        whole["message"]["content"] = "Hi".into();
        all.whole(name, &whole, hi(finish));
    }
    let ended = lines(&[said(), end(json!({"done": true, "done_reason": "stop"}))]);
    all.stream("without the last line end", ended.trim_end().to_owned(), hi(Finish::Stop));
    all.stream("with carriage returns", ended.replace('\n', "\r\n"), hi(Finish::Stop));
    all.stream("no end", lines(&[said()]), Err(Transient));
    all.stream(
        "an unknown reason",
        lines(&[said(), end(json!({"done": true, "done_reason": "because"}))]),
        Err(Model),
    );
    all.stream("an error", lines(&[said(), json!({"error": "the runner has terminated"})]), Err(Transient));
    all.whole("an error", &json!({"error": "the runner has terminated"}), Err(Transient));
    all.whole("nothing", &json!({}), Err(Transient));
    let done = || end(json!({"done": true, "done_reason": "stop"}));
    let parallel = message(json!({"content": "", "tool_calls": [function("one"), function("two")]}));
    all.stream("parallel calls", lines(&[parallel, done()]), Ok(two()));
    let apart = [
        message(json!({"content": "", "tool_calls": [function("one")]})),
        message(json!({"content": "", "tool_calls": [function("two")]})),
    ];
    all.stream("calls one after the other", lines(&[apart[0].clone(), apart[1].clone(), done()]), Ok(two()));
    let thoughts = [
        message(json!({"content": "", "thinking": "Two "})),
        message(json!({"content": "", "thinking": "cities."})),
    ];
    let expected =
        vec![unsigned(KIND, &json!("thinking"), "Two cities."), call("call_0", "one"), call("call_1", "two")];
    let expected = replied(expected, Finish::ToolUse).usage(Usage::new(30, 7));
    let [first, second] = thoughts;
    let [one, two] = apart;
    all.stream("a thought and calls", lines(&[first, second, one, two, done()]), Ok(expected));
    let nameless = message(json!({"content": "", "tool_calls": [{"function": {"arguments": {}}}]}));
    all.stream("a call without a name", lines(&[nameless, done()]), Err(Model));
    all
}
