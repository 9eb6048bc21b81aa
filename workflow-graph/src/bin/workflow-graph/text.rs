//! Text of documents, runs and errors as a terminal may have it: no character of theirs controls it.

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use workflow_graph::Gate;

/// The text on one line, without characters that a terminal would interpret.
pub(crate) fn plain(text: &str) -> String {
    escaped(text, false)
}

/// The lines of the text as one, without characters that a terminal would interpret.
pub(crate) fn one_line(text: &str) -> String {
    if !text.trim_end().contains('\n') {
        return plain(text.trim_end());
    }
    plain(&text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" "))
}

/// The time that is left to answer a question, and its end by RFC 3339, as the gate's JSON has it.
pub(crate) fn time_to_answer(gate: &Gate) -> Option<String> {
    let left = gate.deadline?.duration_since(SystemTime::now()).ok()?;
    let gate = serde_json::to_value(gate).ok()?;
    let until = gate.get("deadline")?.as_str()?;
    Some(format!("time to answer: {}, until {until}", time(left)))
}

/// A time as people say it: `250ms`, `1.5s`, `12m 5s`, `47h 59m`.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    let two = |large: u64, unit: &str, small: u64, below: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit} {small}{below}"),
    };
    match seconds {
        0..60 if time.as_millis() == 0 => "0ms".to_owned(),
        0..60 => format!("{:?}", Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))),
        60..3600 => two(seconds / 60, "m", seconds % 60, "s"),
        _ => two(seconds / 3600, "h", seconds % 3600 / 60, "m"),
    }
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
    fn lines_are_joined_and_times_have_units() {
        assert_eq!(one_line("  a\n"), "  a");
        assert_eq!(one_line("a ==\n  1 or\n\n  b\r\n"), "a == 1 or b");
        let times = [0, 250, 1_500, 61_000, 172_800_000].map(|ms| time(Duration::from_millis(ms)));
        assert_eq!(times, ["0ms", "250ms", "1.5s", "1m 1s", "48h"]);
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(short("日本\n 語", 3), "日本 …");
    }
}
