//! JSON in a text that a model wrote around it.

use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Value};

/// The most places of a text at which a value may begin.
const PLACES: usize = 100;
/// The column up to which an error says that a bracket begins no value.
const WORD: usize = 2;
/// The longest text in bytes that is searched for a value.
const LONGEST: usize = 1024 * 1024;

/// The value of a text that is JSON and nothing else, but for white space, or for one fence around it.
pub(crate) fn strict(text: &str) -> Result<Value, serde_json::Error> {
    let trimmed = text.trim();
    let unfenced =
        trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")).map(without_language);
    serde_json::from_str(unfenced.unwrap_or(trimmed).trim())
}

/// The value in a text that has thoughts, prose, a byte order mark or a fence around it; nothing if there are several.
pub(crate) fn loose(text: &str) -> Option<Value> {
    // Thoughts come first, and some servers leave out the mark before them.
    let answer = text.rsplit_once("</think>").map_or(text, |(_, answer)| answer);
    let answer = answer.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if let Ok(value) = strict(answer) {
        return Some(value);
    }
    let parts: Vec<&str> = answer.split("```").collect();
    if let [_, fenced, _] = parts[..]
        && let Ok(value) = serde_json::from_str(without_language(fenced).trim())
    {
        return Some(value);
    }
    if answer.len() > LONGEST {
        return None;
    }
    alone(answer)
}

/// The same as a type.
pub(crate) fn loose_as<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    match loose(text) {
        Some(value) => serde_json::from_value(value),
        None => serde_json::from_str(text.trim()),
    }
}

/// The text of a fence without the name of its language.
fn without_language(fenced: &str) -> &str {
    let language = fenced.find('\n').filter(|end| fenced[..*end].trim().chars().all(char::is_alphanumeric));
    language.map_or(fenced, |end| &fenced[end..])
}

/// The only object in a text, or the only list if it has no object. A value that is broken behind its begin is no value, and
/// neither are its parts.
fn alone(text: &str) -> Option<Value> {
    let (mut objects, mut lists) = (Vec::new(), Vec::new());
    let mut rest = text;
    for _ in 0..PLACES {
        let Some(at) = rest.find(['{', '[']) else {
            let found = if objects.is_empty() { lists } else { objects };
            return <[Value; 1]>::try_from(found).ok().map(|[value]| value);
        };
        rest = &rest[at..];
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        match values.next()? {
            Ok(value) => {
                if value.is_object() { &mut objects } else { &mut lists }.push(value);
                rest = &rest[values.byte_offset()..];
            }
            // Words in brackets.
            Err(error) if error.is_syntax() && error.line() == 1 && error.column() <= WORD => {
                rest = &rest[1..];
            }
            Err(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{loose, strict};

    /// A55
    #[test]
    fn strict_reading_takes_json_alone_or_in_one_fence() {
        for text in ["{\"a\":1}", " {\"a\":1}\n", "```json\n{\"a\":1}\n```", "```{\"a\":1}```"] {
            assert_eq!(strict(text).unwrap(), json!({"a": 1}), "{text}");
        }
        assert!(strict("It is {\"a\":1}").is_err());
    }

    /// A55
    #[test]
    fn loose_reading_finds_the_only_value() {
        for text in [
            "\u{feff}{\"a\":1}",
            "<think>{\"b\":2} or []?</think>\n{\"a\":1}",
            "hm {\"b\":2}</think>{\"a\":1}",
            "<think>x</think>\n```json\n{\"a\":1}\n```",
            "Here it is:\n```json\n{\"a\":1}\n```\nBye [1].",
            "The answer is {\"a\":1}, as {you} asked.",
        ] {
            assert_eq!(loose(text), Some(json!({"a": 1})), "{text}");
        }
        assert_eq!(loose("Sorted: [3, 1]."), Some(json!([3, 1])));
        assert_eq!(loose("Here: [{\"a\":1}]"), Some(json!([{"a": 1}])));
        assert_eq!(loose("As [1] says: {\"a\":1}"), Some(json!({"a": 1})));
        assert_eq!(loose("{\"items\":[{\"id\":1}],\"note\":\"a \"quoted\" word\"}"), None);
        for text in ["", "no", "{\"a\":1} or {\"a\":2}", "[1] or [2]", "{\"a\":"] {
            assert_eq!(loose(text), None, "{text}");
        }
        assert_eq!(loose(&"{".repeat(100_000)), None);
    }
}
