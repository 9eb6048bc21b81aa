//! A checker of requests: everything that all providers require of a conversation (A6), and that a request continues the
//! one before (A7). It knows no provider's format.

use std::collections::HashSet;

use workflow_agent::model::{Message, ModelRequest, Part, ToolUse};
use workflow_agent::tool::ToolSpec;

/// The first violation of A6 in a request.
pub(crate) fn check(request: &ModelRequest) -> Result<(), String> {
    let fails = |at: usize, what: String| Err(format!("message {at}: {what}\n{:#?}", request.messages));
    let mut ids = HashSet::new();
    for (at, message) in request.messages.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &request.messages[before]);
        match message {
            Message::User { text, images } if text.trim().is_empty() && images.is_empty() => {
                return fails(at, "the user's text is empty".to_owned());
            }
            Message::Assistant { parts } => {
                if at == 0 {
                    return fails(at, "the conversation begins with the model".to_owned());
                }
                if let Some(blank) =
                    parts.iter().find(|part| matches!(part, Part::Text(text) if text.trim().is_empty()))
                {
                    return fails(at, format!("a text is empty: {blank:?}"));
                }
                if !parts.iter().any(|part| !matches!(part, Part::Thought { .. })) {
                    return fails(at, "there is neither a text nor a call".to_owned());
                }
                if let Some(twice) = calls(parts).find(|call| !ids.insert(call.id.clone())) {
                    return fails(at, format!("the id `{}` names two calls", twice.id));
                }
                let called: Vec<_> = calls(parts).map(|call| (&call.id, &call.name)).collect();
                let answered = match request.messages.get(at + 1) {
                    Some(Message::Results(results)) => {
                        results.iter().map(|result| (&result.call, &result.name)).collect()
                    }
                    _ => Vec::new(),
                };
                if called != answered {
                    return fails(at, format!("the calls {called:?} have the results {answered:?}"));
                }
                if at + 1 == request.messages.len() {
                    return fails(at, "the conversation ends with the model".to_owned());
                }
            }
            Message::Results(results) => {
                let is_behind_calls = matches!(before, Some(Message::Assistant { .. }));
                if results.is_empty() || !is_behind_calls {
                    return fails(at, "there are results without calls".to_owned());
                }
            }
            _ => {}
        }
    }
    let names: Vec<&str> = request.tools.iter().map(ToolSpec::name).collect();
    if !names.is_sorted_by(|one, other| one < other) {
        return Err(format!("the tools are not sorted, or one is there twice: {names:?}"));
    }
    if request.messages.is_empty() { Err("there is no message".to_owned()) } else { Ok(()) }
}

/// The difference that keeps `after` from beginning with `before`, byte for byte.
pub(crate) fn continues(before: &ModelRequest, after: &ModelRequest) -> Result<(), String> {
    if before.system != after.system {
        return Err(format!("the instructions changed:\n{}\nbecame\n{}", before.system, after.system));
    }
    if before.tools != after.tools || before.output != after.output {
        return Err(format!("the tools changed:\n{:?}\nbecame\n{:?}", before.tools, after.tools));
    }
    for (at, message) in before.messages.iter().enumerate() {
        let (old, new) = (format!("{message:?}"), after.messages.get(at).map(|new| format!("{new:?}")));
        if new.as_deref() != Some(&*old) {
            return Err(format!("message {at} changed:\n{old}\nbecame\n{new:?}"));
        }
    }
    Ok(())
}

fn calls(parts: &[Part]) -> impl Iterator<Item = &ToolUse> {
    parts.iter().filter_map(|part| match part {
        Part::Call(call) => Some(call),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use workflow_agent::model::{Message, ModelRequest, Part, ToolResult, ToolUse};

    use super::{check, continues};

    fn request(messages: Vec<Message>) -> ModelRequest {
        ModelRequest::new("", messages, 100)
    }

    fn said(parts: Vec<Part>) -> Message {
        Message::Assistant { parts: parts.into() }
    }

    fn call(id: &str) -> Part {
        Part::Call(ToolUse::new(id, "t", json!({})))
    }

    fn results(ids: &[&str]) -> Message {
        Message::Results(ids.iter().map(|id| ToolResult::new(*id, "t", "done", false)).collect())
    }

    /// A6
    #[test]
    fn the_checker_finds_every_kind_of_violation() {
        let go = || Message::user("go");
        assert_eq!(
            check(&request(vec![go(), said(vec![call("1"), call("2")]), results(&["1", "2"])])),
            Ok(())
        );
        let wrong = [
            vec![],
            vec![Message::user(" ")],
            vec![go(), said(vec![call("1")])],
            vec![go(), said(vec![call("1")]), go(), results(&["1"])],
            vec![go(), said(vec![call("1"), call("2")]), results(&["2", "1"])],
            vec![go(), said(vec![call("1")]), results(&["1", "1"])],
            vec![go(), results(&["1"])],
            vec![go(), said(vec![Part::Text("yes".into())]), results(&["1"])],
            vec![go(), said(vec![call("1")]), results(&["1"]), said(vec![call("1")]), results(&["1"])],
            vec![go(), said(vec![]), go()],
            vec![go(), said(vec![Part::Text(" ".into()), call("1")]), results(&["1"])],
            vec![go(), said(vec![Part::Thought { text: "hm".into(), signature: None }]), go()],
            vec![said(vec![Part::Text("yes".into())]), go()],
            vec![go(), said(vec![Part::Text("yes".into())])],
        ];
        for messages in wrong {
            assert!(check(&request(messages.clone())).is_err(), "{messages:#?}");
        }
    }

    /// A7
    #[test]
    fn a_request_continues_another_only_byte_for_byte() {
        let short = request(vec![Message::user("go")]);
        let long = request(vec![Message::user("go"), said(vec![call("1")]), results(&["1"])]);
        assert_eq!(continues(&short, &long), Ok(()));
        assert!(continues(&long, &short).is_err());
        assert!(continues(&short, &request(vec![Message::user("Go")])).is_err());
        assert!(continues(&short, &ModelRequest::new("other", vec![Message::user("go")], 100)).is_err());
    }
}
