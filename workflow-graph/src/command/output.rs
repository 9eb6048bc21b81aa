//! The output of a program, bounded while it is read, and the part of it in messages: without control characters and
//! without values of variables.

use std::io;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::{CommandSpec, MOST};

/// The most bytes of errors in a message.
const SHOWN: usize = 4 * 1024;
/// The most characters of a program's name in a message.
const NAME: usize = 200;
/// The bytes of one read.
const CHUNK: usize = 16 * 1024;
/// Shorter values are removed where they stand alone only: `1` is part of too many words and numbers.
const SHORT: usize = 4;
/// Stands for a removed value.
const MARK: &[u8] = b"[redacted]";

/// Why the output of a program is not complete.
pub(super) enum Cut {
    TooMuch,
    Failed(io::Error),
}

/// Reads to the end. Dropped, it leaves in `bytes` all that was read.
pub(super) async fn read(pipe: Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) -> Result<(), Cut> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    while bytes.len() <= MOST {
        bytes.reserve(CHUNK);
        if pipe.read_buf(bytes).await.map_err(Cut::Failed)? == 0 {
            return Ok(());
        }
    }
    Err(Cut::TooMuch)
}

/// The last bytes of the errors.
pub(super) struct Tail {
    bytes: Vec<u8>,
    /// The bytes that stay. There may be twice as many before the first are dropped.
    most: usize,
    is_part: bool,
}

impl Tail {
    /// Room for what messages show, and for the longest value: one that was cut would not be recognised.
    pub(super) fn new(env: &[(String, String)]) -> Self {
        let longest = parts(env).iter().map(|part| part.len()).max().unwrap_or_default();
        Self { bytes: Vec::new(), most: SHOWN + longest, is_part: false }
    }

    /// Reads to the end. A failure is an end, too: these bytes are only for a message.
    pub(super) async fn read(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = vec![0; CHUNK];
        while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
            self.push(&chunk[..read]);
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * self.most {
            self.bytes.drain(..self.bytes.len() - self.most);
            self.is_part = true;
        }
    }

    /// The end of the errors, as a message shows it.
    pub(super) fn text(&self, env: &[(String, String)]) -> String {
        let first = self.bytes.len().saturating_sub(self.most);
        let text = shown(&redacted(&self.bytes[first..], self.is_part || first > 0, env));
        let text = text.trim_end();
        text[text.ceil_char_boundary(text.len().saturating_sub(SHOWN))..].to_owned()
    }
}

/// The name of a program, as a message shows it.
pub(super) fn name(spec: &CommandSpec) -> String {
    let program = spec.run.first().map_or("", String::as_str);
    let name = shown(&redacted(program.as_bytes(), false, &spec.env)).replace('\n', "\\n");
    match name.char_indices().nth(NAME) {
        Some((cut, _)) => format!("{}…", &name[..cut]),
        None => name,
    }
}

/// Text without characters that a terminal would interpret. Lines stay lines.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        let is_plain =
            matches!(character, '\n' | '\t') || !(character.is_control() || is_invisible(character));
        if is_plain { shown.push(character) } else { shown.extend(character.escape_default()) }
    }
    shown
}

/// Marks that reorder what is beside them, or take no room.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The lines of all values: programs print single lines of a key, and values without the newline of their file.
fn parts(env: &[(String, String)]) -> Vec<&str> {
    let mut parts: Vec<&str> = env.iter().flat_map(|(_, value)| value.lines()).map(str::trim).collect();
    parts.retain(|part| !part.is_empty());
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// The bytes without values of variables. If bytes before these were cut, the first may be the end of a value.
fn redacted(bytes: &[u8], was_cut: bool, env: &[(String, String)]) -> Vec<u8> {
    let parts = parts(env);
    let Some(longest) = parts.iter().map(|part| part.len()).max() else { return bytes.to_vec() };
    // The kind that is built in the time and room of the values, however long they are.
    let builder = AhoCorasick::builder().kind(Some(AhoCorasickKind::NoncontiguousNFA)).build(&parts);
    let Ok(values) = builder else { return MARK.to_vec() };
    // Values may overlap, so each place has the end of the longest that begins there.
    let mut ends = vec![0; bytes.len()];
    for found in values.find_overlapping_iter(bytes) {
        if found.len() >= SHORT || stands_alone(bytes, found.start(), found.end()) {
            ends[found.start()] = found.end().max(ends[found.start()]);
        }
    }
    let first = if was_cut { longest - 1 } else { 0 };
    let (mut redacted, mut end) = (Vec::with_capacity(bytes.len()), 0);
    for (place, byte) in bytes.iter().enumerate() {
        if ends[place] > place {
            if place >= end {
                redacted.extend_from_slice(MARK);
            }
            end = end.max(ends[place]);
        }
        if place >= end && place >= first {
            redacted.push(*byte);
        }
    }
    redacted
}

fn stands_alone(bytes: &[u8], start: usize, end: usize) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let before = start.checked_sub(1).and_then(|place| bytes.get(place));
    !before.is_some_and(is_word) && !bytes.get(end).is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::{MARK, SHOWN, Tail, redacted};

    fn env(values: &[&str]) -> Vec<(String, String)> {
        values.iter().enumerate().map(|(at, value)| (format!("V{at}"), (*value).to_owned())).collect()
    }

    fn redacted_text(text: &str, values: &[&str]) -> String {
        String::from_utf8(redacted(text.as_bytes(), false, &env(values))).unwrap()
    }

    // G28
    #[test]
    fn values_are_removed_also_where_they_overlap_or_touch() {
        assert_eq!(redacted_text("a=abcdef;", &["abcd", "cdef"]), "a=[redacted];");
        assert_eq!(redacted_text("xhunter2hunter2y", &["hunter2"]), "x[redacted][redacted]y");
        assert_eq!(redacted_text("one\nsecond\n", &["first line\nsecond\n"]), "one\n[redacted]\n");
        assert_eq!(redacted_text("nothing", &["", "\n"]), "nothing");
    }

    // G28
    #[test]
    fn short_values_are_removed_where_they_stand_alone() {
        assert_eq!(
            redacted_text("line 1 of 21: C, Cc, ab", &["1", "C", "ab"]),
            "line [redacted] of 21: [redacted], Cc, [redacted]"
        );
        // The short value begins first, and does not hide the long one.
        assert_eq!(redacted_text("abcdef", &["ab", "bcde"]), "a[redacted]f");
    }

    // G28
    #[test]
    fn a_value_that_was_cut_is_not_shown_in_part() {
        let secret = "secret-".repeat(100);
        let env = env(&[&secret]);
        for after in [SHOWN - 10, SHOWN - 300, SHOWN + 100, 2 * SHOWN] {
            for chunk in [1000, 7, 16 * 1024] {
                let mut tail = Tail::new(&env);
                let text = format!("{}{secret}{}{secret}", "x".repeat(20_000), "y".repeat(after));
                text.as_bytes().chunks(chunk).for_each(|chunk| tail.push(chunk));
                let shown = tail.text(&env);
                assert!(!shown.contains("secret") && shown.len() <= SHOWN, "{shown}");
                assert!(shown.ends_with(&format!("yyy{}", str::from_utf8(MARK).unwrap())));
            }
        }
    }
}
