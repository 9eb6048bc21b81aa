//! Text of documents, runs and errors as a terminal may have it: no character of theirs controls it.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;

/// The text on one line, without characters that a terminal would interpret.
pub(crate) fn plain(text: &str) -> String {
    escaped(text, false)
}

/// The text, with its lines, without characters that a terminal would interpret.
pub(crate) fn plain_lines(text: &str) -> String {
    escaped(text, true)
}

fn escaped(text: &str, keeps_lines: bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' if keeps_lines => plain.push('\n'),
            _ if is_control(character) => plain.extend(character.escape_default()),
            _ => plain.push(character),
        }
    }
    plain
}

/// Controls, and marks that reorder the text beside them or take no room.
fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The text on one line, cut after so many characters.
pub(crate) fn short(text: &str, length: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = match line.char_indices().nth(length) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    };
    plain(&cut)
}

/// Prints JSON, indented. Characters that a terminal would interpret can stand in its strings only, where JSON has
/// another way to write them.
pub(crate) fn print_json(to: &mut dyn io::Write, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character != '\n' && is_control(character) {
            // Each of them is one unit of UTF-16.
            let _ = write!(safe, "\\u{:04x}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    writeln!(to, "{safe}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\x1b[31m\n日本\u{9b}"), "a\\u{1b}[31m\\n日本\\u{9b}");
        assert_eq!(plain_lines("a\r\nb"), "a\\r\nb");
    }

    #[test]
    fn json_stays_json_without_control_characters() {
        let value = serde_json::json!({"a\u{9b}": "\x1b[31m\u{202e}\n日本"});
        let mut printed = Vec::new();
        print_json(&mut printed, &value).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        assert!(printed.chars().all(|character| character == '\n' || !is_control(character)), "{printed}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), value);
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(short("日本\n 語", 3), "日本 …");
    }
}
