//! Words of a text: stems for the search of episodes, and tokens for the search of names. It ranks nothing.

use super::stem::stem;

/// The tokenizer of the search: stems of the words that carry meaning, without case and accents.
///
/// Scripts without spaces between words have pairs of characters instead of words.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Words;

impl bm25::Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for run in runs(&text.to_lowercase()) {
            match run {
                Run::Word(word) => words.extend(search_word(word)),
                Run::Unspaced(run) => words.extend(pairs(run)),
                Run::Symbol(_) => {}
            }
        }
        words
    }
}

/// The tokens by which names are found in a text: whole words, and other visible characters one by one.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for run in runs(&text.to_lowercase()) {
        match run {
            Run::Word(word) => tokens.push(word.to_owned()),
            Run::Unspaced(run) => tokens.extend(run.chars().map(String::from)),
            // The typographic apostrophe and the typed one are one.
            Run::Symbol('’') => tokens.push("'".to_owned()),
            Run::Symbol(symbol) => tokens.push(symbol.to_string()),
        }
    }
    tokens
}

/// A part of a text.
enum Run<'a> {
    /// Letters and digits.
    Word(&'a str),
    /// Characters of a script that puts no spaces between words.
    Unspaced(&'a str),
    /// Any other visible character.
    Symbol(char),
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Word,
    Unspaced,
    Symbol,
    Space,
}

fn class(c: char) -> Class {
    match c {
        '\u{e00}'..='\u{eff}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{20000}'..='\u{3ffff}' => Class::Unspaced,
        c if c.is_alphanumeric() || is_mark(c) => Class::Word,
        c if c.is_whitespace() || c.is_control() => Class::Space,
        _ => Class::Symbol,
    }
}

/// Accents that stand as characters of their own after their letter.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            let kind = class(first);
            let end = match kind {
                Class::Symbol => first.len_utf8(),
                _ => rest.find(|c| class(c) != kind).unwrap_or(rest.len()),
            };
            let (run, after) = rest.split_at(end);
            rest = after;
            match kind {
                Class::Word => return Some(Run::Word(run)),
                Class::Unspaced => return Some(Run::Unspaced(run)),
                Class::Symbol => return Some(Run::Symbol(first)),
                Class::Space => {}
            }
        }
    })
}

/// The longest word in bytes: a longer one is an encoded file and no word.
const LONGEST_WORD: usize = 64;

fn search_word(word: &str) -> Option<String> {
    if word.len() > LONGEST_WORD || STOP_WORDS.binary_search(&word).is_ok() {
        return None;
    }
    let plain: String = word.chars().filter(|c| !is_mark(*c)).map(without_accent).collect();
    Some(stem(&plain)).filter(|stem| !stem.is_empty())
}

fn without_accent(c: char) -> char {
    match c {
        'à'..='å' => 'a',
        'ç' => 'c',
        'è'..='ë' => 'e',
        'ì'..='ï' => 'i',
        'ñ' => 'n',
        'ò'..='ö' | 'ø' => 'o',
        'ù'..='ü' => 'u',
        'ý' | 'ÿ' => 'y',
        _ => c,
    }
}

fn pairs(run: &str) -> Vec<String> {
    let characters: Vec<char> = run.chars().collect();
    match characters.as_slice() {
        [only] => vec![only.to_string()],
        more => more.windows(2).map(|pair| pair.iter().collect()).collect(),
    }
}

/// English words that stand in most questions and distinguish no episode, sorted.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "because", "been", "before", "being", "but", "by", "can", "could", "d", "did", "do", "does", "doing",
    "don", "during", "each", "for", "from", "further", "had", "has", "have", "having", "he", "her", "here",
    "hers", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "ll", "m", "me",
    "might", "more", "most", "must", "my", "no", "nor", "not", "of", "off", "on", "once", "only", "or",
    "other", "our", "ours", "out", "over", "own", "please", "re", "remember", "remind", "s", "said", "same",
    "say", "shall", "she", "should", "so", "some", "such", "t", "tell", "than", "that", "the", "their",
    "theirs", "them", "then", "there", "these", "they", "this", "those", "through", "to", "too", "under",
    "until", "up", "us", "ve", "very", "was", "we", "were", "what", "when", "where", "which", "while", "who",
    "whom", "whose", "why", "will", "with", "would", "you", "your", "yours",
];

#[cfg(test)]
mod tests {
    use bm25::Tokenizer as _;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stop_words_are_sorted_for_their_search() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn search_words_have_no_case_no_accent_and_no_ending() {
        assert_eq!(
            Words.tokenize("What did the CAFÉS in Zürich repair?"),
            Words.tokenize("cafe zurich repairs")
        );
        assert_eq!(Words.tokenize("the and of"), Vec::<String>::new());
        assert_eq!(Words.tokenize("cafe\u{301}"), ["cafe"]);
    }

    #[test]
    fn scripts_without_spaces_are_searched_by_pairs() {
        assert_eq!(Words.tokenize("東京都 is big"), ["東京", "京都", "big"]);
        assert_eq!(Words.tokenize("猫"), ["猫"]);
    }

    #[test]
    fn tokens_of_names_keep_symbols() {
        assert_eq!(
            tokens("C++ and O’Brien's 王明"),
            ["c", "+", "+", "and", "o", "'", "brien", "'", "s", "王", "明"]
        );
    }

    proptest! {
        #[test]
        fn every_text_has_words(text in "\\PC{0,200}") {
            let _ = (Words.tokenize(&text), tokens(&text));
        }
    }
}
