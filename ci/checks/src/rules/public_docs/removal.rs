//! Takes citations in parentheses out of lines of text.

use std::collections::BTreeSet;

use crate::rules::citations::in_line;

/// The text without parentheses that have nothing but numbers of rules in them, on these lines.
pub(crate) fn without_numbers(text: &str, lines: &BTreeSet<usize>) -> String {
    let mut fixed = String::with_capacity(text.len());
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if lines.contains(&(index + 1)) {
            fixed.push_str(&without(line));
        } else {
            fixed.push_str(line);
        }
    }
    fixed
}

fn without(line: &str) -> String {
    let mut rest = line;
    let mut fixed = String::with_capacity(line.len());
    while let Some((before, inside, after)) = parenthesis(rest) {
        if has_only_numbers(inside) {
            fixed.push_str(before.trim_end_matches(' '));
        } else {
            fixed.push_str(before);
            fixed.push('(');
            fixed.push_str(inside);
            fixed.push(')');
        }
        rest = after;
    }
    fixed.push_str(rest);
    fixed
}

/// The parts before, in and after the first pair of parentheses without others in it.
fn parenthesis(text: &str) -> Option<(&str, &str, &str)> {
    let close = text.find(')')?;
    let open = text[..close].rfind('(')?;
    Some((&text[..open], &text[open + 1..close], &text[close + 1..]))
}

fn has_only_numbers(text: &str) -> bool {
    let found = in_line(text);
    let covered: usize = found.iter().map(|(range, ..)| range.len()).sum();
    let between = text.len() - covered;
    let separators: usize = text.matches(", ").count() * 2;
    !found.is_empty() && between == separators
}
