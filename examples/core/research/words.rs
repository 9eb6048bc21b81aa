//! Words as retrieval compares them: in lower case, without the most frequent ones and without endings. This module knows
//! no passages.

use rust_stemmers::{Algorithm, Stemmer};

/// Words that nearly every English passage has, so that they find nothing.
const STOP_WORDS: &str = " a about all also an and any are as at be because been before but by can could did do does for \
    from had has have he her here his how i if in into is it its like may me might more most my no not of on one only \
    or our out over own same she should so some such than that the their them then there these they this those through \
    to too under until up very was we were what when where which while who whom why will with would you your ";

/// Makes the stems of English texts.
pub(crate) struct Words {
    stemmer: Stemmer,
}

impl Words {
    pub(crate) fn english() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English) }
    }

    /// The words of a text that carry meaning, without their endings.
    pub(crate) fn stems(&self, text: &str) -> Vec<String> {
        words(text)
            .filter(|word| carries_meaning(word))
            .map(|word| self.stemmer.stem(&word).into_owned())
            .collect()
    }
}

/// BM25 splits texts by these words.
impl bm25::Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        self.stems(text)
    }
}

/// The words of a text in lower case.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Whether a word in lower case is none of the most frequent ones, nor what an apostrophe leaves, as the `s` of `it's`.
fn carries_meaning(word: &str) -> bool {
    word.len() > 1 && !STOP_WORDS.contains(&format!(" {word} "))
}
