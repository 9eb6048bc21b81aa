//! Sentences that are ruled out.

use super::paragraphs::Paragraph;

/// Words that are no subject.
const WORDS: [&str; 4] = ["what", "who", "whoever", "whatever"];
/// Behind these a clause is a subject.
const BEFORE: [&str; 9] =
    ["; ", ", and ", ", but ", ", so ", ", or ", " because ", " so that ", " says that ", " say that "];
/// Phrases in all their forms.
const PHRASES: [&str; 22] = [
    "is told",
    "are told",
    "was told",
    "were told",
    "be told",
    "been told",
    "comes of",
    "come of",
    "came of",
    "goes on with",
    "go on with",
    "went on with",
    "going on with",
    "gone on with",
    "lets go of",
    "let go of",
    "letting go of",
    "nobody's",
    "nobody’s",
    "is said to",
    "are said to",
    "is let go",
];

/// One sentence that is ruled out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The findings of a paragraph, at most one per line.
pub(crate) fn findings(paragraph: &Paragraph) -> Vec<Finding> {
    let text = without_quotations(paragraph.text());
    let mut places = Vec::new();
    for (start, sentence) in sentences(&text) {
        let end = sentence.trim_end();
        if end.ends_with('?') {
            continue;
        }
        // Without a full stop it is a phrase, as cells of tables are.
        if begins_with_word(sentence) && end.ends_with(['.', '!', ':']) {
            places.push(start);
        }
        let lower = sentence.to_ascii_lowercase();
        for before in BEFORE {
            places.extend(lower.match_indices(before).filter_map(|(at, found)| {
                begins_with_word(&sentence[at + found.len()..]).then_some(start + at + found.len())
            }));
        }
        for phrase in PHRASES {
            places.extend(
                lower
                    .match_indices(phrase)
                    .filter_map(|(at, found)| is_whole(&lower, at, at + found.len()).then_some(start + at)),
            );
        }
    }
    places.sort_unstable();
    let mut found: Vec<Finding> = places
        .into_iter()
        .map(|at| Finding { line: paragraph.line_at(at), text: excerpt(&paragraph.text()[at..]) })
        .collect();
    found.dedup_by_key(|finding| finding.line);
    found
}

/// Sentences, and where each begins.
fn sentences(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(['.', '?', '!', ':']) {
        let rest = &text[at + 1..];
        let ends = rest.starts_with([' ', ')', '*']) || rest.is_empty();
        if ends && at >= start {
            found.push((start, &text[start..=at]));
            start = at + 1 + (rest.len() - rest.trim_start_matches([' ', ')', '*', '(']).len());
        }
    }
    found.push((start, &text[start..]));
    found.retain(|(_, sentence)| !sentence.trim().is_empty());
    found
}

fn begins_with_word(text: &str) -> bool {
    let text = text.trim_start_matches(['*', '_', '(']);
    let end = text.find(|letter: char| !letter.is_alphabetic()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    // Alone it is a name, as the cell of a table may have.
    WORDS.iter().any(|subject| word.eq_ignore_ascii_case(subject)) && rest.starts_with(' ')
}

fn is_whole(text: &str, start: usize, end: usize) -> bool {
    !text[..start].ends_with(char::is_alphanumeric) && !text[end..].starts_with(char::is_alphanumeric)
}

/// The text with what is between backticks and quotation marks blanked, so that places stay.
fn without_quotations(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut inside: Option<char> = None;
    for (at, letter) in text.char_indices() {
        match inside {
            Some(quote) => {
                if letter == quote {
                    inside = None;
                }
                blanked.push_str(&"_".repeat(letter.len_utf8()));
            }
            None if matches!(letter, '`' | '"') && text[at + 1..].contains(letter) => {
                inside = Some(letter);
                blanked.push('_');
            }
            None => blanked.push(letter),
        }
    }
    blanked
}

fn excerpt(text: &str) -> String {
    text.chars().take(90).collect()
}
