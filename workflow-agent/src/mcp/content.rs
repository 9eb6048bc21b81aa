//! Results of calls as text for the model. It knows neither servers nor connections.

use serde_json::Value;

use crate::tool::{ToolOutput, sorted_text, terminal_safe};

/// The longest name, address or type of a part that is not text.
const LABEL: usize = 200;

/// The text of all parts, one below the other. Parts of other kinds are named in brackets; a structured result stands as
/// JSON if there is no text.
pub(super) fn output(result: &Value) -> ToolOutput {
    let mut parts = Vec::new();
    let mut has_text = false;
    for part in result["content"].as_array().into_iter().flatten() {
        has_text |= part["type"] == "text" || part["resource"]["text"].is_string();
        parts.push(text_of(part));
    }
    match &result["structuredContent"] {
        Value::Null => {}
        structured if !has_text => parts.push(sorted_text(structured.clone())),
        _ => {}
    }
    let text = parts.join("\n");
    if result["isError"] == true { ToolOutput::error(text) } else { ToolOutput::new(text) }
}

fn text_of(part: &Value) -> String {
    match part["type"].as_str().unwrap_or("part without a type") {
        "text" => part["text"].as_str().unwrap_or_default().to_owned(),
        kind @ ("image" | "audio") => {
            let size = decoded(part["data"].as_str().unwrap_or_default());
            label(&[kind, string(part, "mimeType")], Some(size))
        }
        "resource" => {
            let resource = &part["resource"];
            let words = ["resource", string(resource, "uri"), string(resource, "mimeType")];
            match resource["text"].as_str() {
                Some(text) => format!("{}\n{text}", label(&words, Some(text.len()))),
                None => label(&words, resource["blob"].as_str().map(decoded)),
            }
        }
        "resource_link" => {
            let size = part["size"].as_u64().and_then(|size| usize::try_from(size).ok());
            label(&["resource", string(part, "uri"), string(part, "mimeType")], size)
        }
        kind => label(&[kind], None),
    }
}

fn string<'a>(part: &'a Value, key: &str) -> &'a str {
    part[key].as_str().unwrap_or_default()
}

fn label(words: &[&str], size: Option<usize>) -> String {
    let words: Vec<String> =
        words.iter().filter(|word| !word.is_empty()).map(|word| short(word, LABEL)).collect();
    match size {
        Some(size) => format!("[{}, {size} bytes]", words.join(" ")),
        None => format!("[{}]", words.join(" ")),
    }
}

/// The number of bytes behind Base64.
fn decoded(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// A text of a server for an error or a label: one line, without control sequences, at most so many characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let safe = terminal_safe(text);
    let line = safe.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{output, short};
    use crate::tool::ToolOutput;

    /// A81
    #[test]
    fn texts_are_joined_and_other_parts_are_named_with_their_size() {
        let result = json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="},
            {"type": "audio", "mimeType": "audio/wav", "data": "aGVsbG8h"},
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "aGk="}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
            {"type": "hologram", "data": "…"},
            {"type": "text", "text": "two"},
        ], "structuredContent": {"left": "out"}});
        let expected = "one\n[image image/png, 5 bytes]\n[audio audio/wav, 6 bytes]\n\
            [resource file:///a text/plain, 6 bytes]\ninside\n[resource file:///b, 2 bytes]\n[resource file:///c]\n\
            [hologram]\ntwo";
        assert_eq!(output(&result), ToolOutput::new(expected));
    }

    /// A81
    #[test]
    fn a_structured_result_is_json_if_there_is_no_text() {
        let result = json!({"content": [], "structuredContent": {"degrees": 21}});
        assert_eq!(output(&result), ToolOutput::new(r#"{"degrees":21}"#));
        assert_eq!(output(&json!({"structuredContent": [1]})), ToolOutput::new("[1]"));
        assert_eq!(output(&json!({})), ToolOutput::new(""));
    }

    /// A81
    #[test]
    fn is_error_is_an_error_result() {
        let result = json!({"content": [{"type": "text", "text": "no such city"}], "isError": true});
        assert_eq!(output(&result), ToolOutput::error("no such city"));
    }

    /// A19
    #[test]
    fn labels_are_one_safe_line() {
        assert_eq!(short("a\x1b[2J\n\tb]\u{202e}", 10), "a b]");
        assert_eq!(short("ääää", 3), "äää…");
    }
}
