//! The bound of texts that come out of users' errors, panics and reasons (S80).

use std::fmt;
use std::sync::Arc;

/// The most bytes of an error text.
const MAX_BYTES: usize = 16 * 1024;

/// Room for the note that ends a text which was cut.
const NOTE: usize = 48;

/// The text, if it has at most 16 KiB. Otherwise its beginning, and how many bytes were cut.
pub(crate) fn bounded(text: impl Into<String>) -> String {
    cut(text.into(), 0, "")
}

/// The same of a shared text.
pub(crate) fn bounded_shared(text: Arc<str>) -> Arc<str> {
    if text.len() <= MAX_BYTES { text } else { bounded(&*text).into() }
}

/// The beginning of a text that is being written, and how much followed.
#[derive(Default)]
pub(crate) struct Beginning {
    text: String,
    left_out: usize,
    /// The end of the text that was left out.
    end: String,
}

impl Beginning {
    /// Whether something was left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    /// The text so far, to put others before it.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// The text behind `before`, which has what was [taken](Self::take).
    pub(crate) fn end(self, before: String) -> String {
        cut(before, self.left_out, &self.end)
    }
}

impl fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = if self.is_cut() { 0 } else { MAX_BYTES - self.text.len() };
        let (kept, rest) = text.split_at(text.floor_char_boundary(room));
        self.text.push_str(kept);
        if !rest.is_empty() {
            self.left_out += rest.len();
            self.end.push_str(last(rest));
            self.end.drain(..self.end.len() - last(&self.end).len());
        }
        Ok(())
    }
}

/// The end of a text, as long as a note.
fn last(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(NOTE))..]
}

/// The beginning of a text that continues with so many bytes, the last of which are `end`.
fn cut(mut text: String, left_out: usize, end: &str) -> String {
    if text.len() <= MAX_BYTES && left_out == 0 {
        return text;
    }
    let kept = text.floor_char_boundary(MAX_BYTES - NOTE);
    // A part of the text may have been cut before, and says so at its end.
    let (note, before) = note_of(&format!("{}{end}", last(&text)));
    let cut = (text.len() - kept + left_out - note).saturating_add(before);
    text.truncate(kept);
    let note = format!(" … ({cut} bytes cut)");
    text + &note
}

/// The length of the note at the end of a text, and the bytes that it counts.
fn note_of(end: &str) -> (usize, usize) {
    let note = end.rfind(" … (").and_then(|at| {
        let count = end[at..].strip_prefix(" … (")?.strip_suffix(" bytes cut)")?;
        Some((end.len() - at, count.parse().ok()?))
    });
    note.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// The text by one write of each part.
    fn written(parts: &[&str]) -> String {
        let mut written = Beginning::default();
        for part in parts {
            written.write_str(part).unwrap();
        }
        let text = written.take();
        written.end(text)
    }

    /// What a text says of its cut, and how much is left of it.
    fn said(text: &str) -> (usize, usize) {
        assert!(text.len() <= MAX_BYTES, "{}", text.len());
        let (note, cut) = note_of(last(text));
        (text.len() - note, cut)
    }

    // S80
    #[test]
    fn a_text_of_sixteen_kibibytes_stays_and_a_longer_one_is_cut() {
        let most = "x".repeat(MAX_BYTES);
        assert_eq!((bounded(&*most), written(&[&most])), (most.clone(), most.clone()));
        let longer = format!("{most}y");
        let (kept, cut) = said(&bounded(&*longer));
        assert_eq!((kept + cut, kept), (MAX_BYTES + 1, MAX_BYTES - NOTE));
        assert_eq!(written(&["x", &most[1..], "y"]), bounded(&*longer));
        assert_eq!(bounded(bounded(&*longer)), bounded(&*longer));
        assert_eq!(*bounded_shared(longer.clone().into()), *bounded(longer));
    }

    // S80
    #[test]
    fn a_cut_text_within_others_counts_on() {
        let inner = bounded("x".repeat(10_000_000));
        let (kept, cut) = said(&bounded(format!("it panicked: {inner}")));
        assert_eq!(kept + cut, 10_000_000 + "it panicked: ".len());
        let (kept, cut) = said(&written(&["again: ", "it panicked: ", &inner]));
        assert_eq!(kept + cut, 10_000_000 + "again: it panicked: ".len());
        let (kept, cut) = said(&bounded(format!("{inner} ({})", "y".repeat(100))));
        assert_eq!(kept + cut, inner.len() + 103, "a note in the middle is text");
    }

    // S80
    #[test]
    fn texts_are_cut_between_characters() {
        for before in ["", "a", "aa", "aaa"] {
            let text = format!("{before}{}", "😀".repeat(MAX_BYTES));
            let (kept, cut) = said(&bounded(&*text));
            assert_eq!(kept + cut, text.len());
            assert_eq!(written(&[before, &text[before.len()..]]), bounded(&*text));
        }
    }
}
