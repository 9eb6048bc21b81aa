//! Where comments and pages cite rules. Code has no citations: there a name such as `S1` is a type.

use std::path::Path;

use super::number::{Number, digits};
use crate::comments::Comment;

/// One citation: a rule, or a range such as `S12–S17`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Citation {
    pub(crate) line: usize,
    pub(crate) first: Number,
    pub(crate) last: Number,
}

impl Citation {
    pub(crate) fn numbers(&self) -> impl Iterator<Item = Number> + use<> {
        let letters = self.first.letters;
        (self.first.digits..=self.last.digits).map(move |digits| Number { letters, digits })
    }
}

/// Citations in comments.
pub(crate) fn in_source(comments: &[Comment]) -> Vec<Citation> {
    in_lines(comments.iter().map(|comment| (comment.line, comment.text.as_str())))
}

/// Citations on a page.
pub(crate) fn in_page(text: &str) -> Vec<Citation> {
    in_lines(text.lines().enumerate().map(|(index, line)| (index + 1, line)))
}

/// A file with a test in it, or one that the tests of the compiler's messages build.
pub(crate) fn is_test(path: &Path, source: &str) -> bool {
    ["#[test]", "#[tokio::test"].iter().any(|test| source.contains(test))
        || path.components().any(|part| part.as_os_str() == "ui")
}

/// Blocks of code count only for the comments in them.
fn in_lines<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Citation> {
    let mut citations = Vec::new();
    let mut in_block = false;
    for (line, text) in lines {
        if text.trim_start().starts_with("```") {
            in_block = !in_block;
            continue;
        }
        let text = if in_block { text.split_once("//").map_or("", |(_, comment)| comment) } else { text };
        citations.extend(in_line(text).into_iter().map(|(_, first, last)| Citation { line, first, last }));
    }
    citations
}

/// The citations of a line outside of its code: in which bytes, and of which rules.
pub(crate) fn in_line(text: &str) -> Vec<(std::ops::Range<usize>, Number, Number)> {
    let mut found = Vec::new();
    let mut in_code = false;
    let mut in_word = false;
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let number = if in_code || in_word { None } else { Number::at_start(&text[at..]) };
        if let Some((first, rest)) = number {
            let (last, rest) = range_end(first, rest).unwrap_or((first, rest));
            let end = text.len() - rest.len();
            found.push((at..end, first, last));
            at = end;
            in_word = false;
        } else {
            in_code ^= letter == '`';
            in_word = letter.is_alphanumeric() || letter == '_';
            at += letter.len_utf8();
        }
    }
    found
}

/// The second half of a range: `–S17`, `-S17` or `–17`.
fn range_end(first: Number, rest: &str) -> Option<(Number, &str)> {
    let rest = rest.strip_prefix(['–', '-'])?;
    let rest = first.letters.strip(rest);
    let (digits, rest) = digits(rest)?;
    (digits > first.digits).then_some((Number { digits, ..first }, rest))
}
