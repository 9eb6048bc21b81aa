//! Marks around text that is data and no instruction: results of tools, memory, messages that arrive meanwhile.

use std::borrow::Cow;

/// The text between marks that it cannot close.
pub(crate) fn data(source: &str, text: &str) -> String {
    let mut marked = String::with_capacity(text.len() + source.len() + 32);
    let plain = |c: char| if matches!(c, '"' | '<' | '>' | '\n') { '_' } else { c };
    marked.push_str("<data source=\"");
    marked.extend(source.chars().map(plain));
    marked.push_str("\">\n");
    marked.push_str(&unmarked(text));
    if !text.ends_with('\n') {
        marked.push('\n');
    }
    marked.push_str("</data>");
    marked
}

/// The text with each `<` that begins a mark written as `&lt;`.
fn unmarked(text: &str) -> Cow<'_, str> {
    let mut begins = text.match_indices('<').map(|(at, _)| at).filter(|at| begins_mark(&text[at + 1..]));
    let Some(first) = begins.next() else { return Cow::Borrowed(text) };
    let mut plain = String::with_capacity(text.len() + 8);
    let mut done = 0;
    for at in std::iter::once(first).chain(begins) {
        plain.push_str(&text[done..at]);
        plain.push_str("&lt;");
        done = at + 1;
    }
    plain.push_str(&text[done..]);
    Cow::Owned(plain)
}

/// Whether the text behind a `<` continues as a mark, closing or not, in any case and with any spaces.
fn begins_mark(text: &str) -> bool {
    let invisible = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
    };
    let mut rest = text.chars().filter(|c| !invisible(*c)).skip_while(|c| *c == '/');
    "data".chars().all(|expected| rest.next().is_some_and(|found| found.eq_ignore_ascii_case(&expected)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::data;

    proptest! {
        /// A19
        #[test]
        fn no_text_closes_its_mark(text in "(</data>|< / DATA >|<data|<|/|data|a|\n){0,12}") {
            let marked = data("tool x", &text);
            prop_assert_eq!(marked.to_lowercase().matches("</data").count(), 1);
            prop_assert!(marked.ends_with("\n</data>"));
            prop_assert!(marked.starts_with("<data source=\"tool x\">\n"));
        }
    }
}
