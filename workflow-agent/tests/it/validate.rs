//! Checks of request bodies by the public schemas of three providers, written apart from the code that makes the bodies.

pub(crate) mod anthropic;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;

use serde_json::Value;

/// The string of a field.
fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("`{key}` is no string in {value}"))
}

/// Whether a name or an id has letters, digits, `_` and `-` alone.
fn is_word(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn require(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

/// The items of a list that is not empty.
fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], String> {
    let items = value[key].as_array().ok_or_else(|| format!("`{key}` is no list in {value}"))?;
    require(!items.is_empty(), || format!("`{key}` is empty in {value}"))?;
    Ok(items)
}

/// Arguments as OpenAI wants them: text. Broken JSON is allowed, since models write it.
fn arguments(value: &Value) -> Result<(), String> {
    text(value, "arguments").map(drop)
}

mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use workflow_agent::model::{Message, ModelRequest, Part, ToolResult, ToolUse};

    use super::{anthropic, openai_chat, openai_responses};

    fn request(messages: Vec<Message>) -> ModelRequest {
        ModelRequest::new("Be brief.", messages, 100)
    }

    fn call(id: &str) -> Part {
        Part::Call(ToolUse::new(id, "weather", json!({"city": "Bern"})))
    }

    fn said(parts: Vec<Part>) -> Message {
        Message::Assistant { parts: parts.into() }
    }

    fn results(ids: &[&str]) -> Message {
        Message::Results(ids.iter().map(|id| ToolResult::new(*id, "weather", "warm", false)).collect())
    }

    fn all(messages: Vec<Message>) -> [Result<(), String>; 3] {
        let request = request(messages);
        [openai_chat::check(&request), openai_responses::check(&request), anthropic::check(&request)]
    }

    /// A6, A80
    #[test]
    fn whole_conversations_pass() {
        let messages = vec![
            Message::user("Warm in Bern and Biel?"),
            said(vec![Part::Text("Let me look.".into()), call("a.1"), call("b")]),
            results(&["a.1", "b"]),
            Message::user(""),
            said(vec![Part::Thought { text: "of another".into(), signature: None }]),
            said(vec![Part::Text("Yes.".into())]),
            Message::user("Thanks"),
        ];
        assert_eq!(all(messages), [Ok(()), Ok(()), Ok(())]);
    }

    /// A6, A80
    #[test]
    fn missing_late_doubled_and_orphaned_results_are_found() {
        let ask = || Message::user("Warm?");
        let broken: [Vec<Message>; 6] = [
            vec![ask(), said(vec![call("a")]), Message::user("And?")],
            vec![ask(), said(vec![call("a"), call("b")]), results(&["a"]), Message::user("x")],
            vec![ask(), said(vec![call("a")]), results(&["a", "a"])],
            vec![ask(), results(&["a"])],
            vec![ask(), said(vec![call("a"), call("a")]), results(&["a"])],
            vec![ask(), said(vec![call("a")])],
        ];
        for messages in broken {
            let checked = all(messages.clone());
            assert!(checked.iter().all(Result::is_err), "{checked:?} of {messages:?}");
        }
        let late = vec![ask(), said(vec![call("a")]), Message::user("And?"), results(&["a"])];
        let [chat, _, anthropic] = all(late);
        assert!(chat.is_err() && anthropic.is_err());
        let names: Arc<str> = "get weather!".into();
        let odd =
            vec![ask(), said(vec![Part::Call(ToolUse::new("ä", names, json!("broken {")))]), results(&["ä"])];
        assert_eq!(all(odd), [Ok(()), Ok(()), Ok(())]);
    }
}
