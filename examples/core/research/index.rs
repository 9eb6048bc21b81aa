//! The index over all passages: built once, shared by every execution. This module knows words and scores, but no
//! workflows.

use std::collections::{BTreeMap, HashSet};

use bm25::{Document, SearchEngine, SearchEngineBuilder};

use crate::corpus::{Corpus, Passage};
use crate::spelling;
use crate::words::{Words, words};

/// The searchable corpus.
pub(crate) struct Index {
    passages: Vec<Passage>,
    files: usize,
    engine: SearchEngine<u32, u32, Words>,
    stemmer: Words,
    /// Every word in lower case, with the number of passages that contain it.
    words: BTreeMap<String, usize>,
    /// The same words without their endings, as retrieval compares them.
    stems: HashSet<String>,
}

/// A passage that matched a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Match {
    pub(crate) passage: u32,
    pub(crate) score: f32,
}

impl Index {
    /// Reads every passage once, its heading included.
    pub(crate) fn of(corpus: Corpus) -> Self {
        let stemmer = Words::english();
        let texts: Vec<String> = corpus.passages.iter().map(searched).collect();
        let words = count(&texts);
        let stems = words.keys().flat_map(|word| stemmer.stems(word)).collect();
        let documents = (0..).zip(texts).map(|(id, text)| Document::new(id, text));
        let engine = SearchEngineBuilder::with_tokenizer_and_documents(Words::english(), documents).build();
        Self { passages: corpus.passages, files: corpus.files, engine, stemmer, words, stems }
    }

    pub(crate) fn passage(&self, id: u32) -> &Passage {
        &self.passages[id as usize]
    }

    pub(crate) fn passages(&self) -> usize {
        self.passages.len()
    }

    pub(crate) fn files(&self) -> usize {
        self.files
    }

    /// The best matches, best first; of equal ones the earlier passage, so that answers are repeatable.
    pub(crate) fn search(&self, query: &str, most: usize) -> Vec<Match> {
        let found = self.engine.search(query, None).into_iter();
        let mut found: Vec<Match> =
            found.map(|result| Match { passage: result.document.id, score: result.score }).collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.passage.cmp(&b.passage)));
        found.truncate(most);
        found
    }

    /// The words of a text that carry meaning, without their endings.
    pub(crate) fn stems(&self, text: &str) -> Vec<String> {
        self.stemmer.stems(text)
    }

    /// The words that retrieval sees of a passage, as stems.
    pub(crate) fn stems_of(&self, passage: u32) -> Vec<String> {
        self.stems(&searched(self.passage(passage)))
    }

    /// The words of a question that carry meaning, as they are written.
    pub(crate) fn key_words(&self, question: &str) -> Vec<String> {
        let mut key_words: Vec<String> = Vec::new();
        for word in words(question).filter(|word| !self.stems(word).is_empty()) {
            if !key_words.contains(&word) {
                key_words.push(word);
            }
        }
        key_words
    }

    /// The number of passages that contain a word.
    pub(crate) fn passages_with(&self, word: &str) -> usize {
        self.words.get(word).copied().unwrap_or(0)
    }

    /// The word itself if the corpus contains it, otherwise the nearest word that it contains.
    pub(crate) fn known(&self, word: &str) -> Option<String> {
        if self.stems(word).iter().all(|stem| self.stems.contains(stem)) {
            return Some(word.into());
        }
        spelling::nearest(word, self.words.keys().map(String::as_str)).map(str::to_owned)
    }
}

fn searched(passage: &Passage) -> String {
    format!("{}\n{}", passage.heading, passage.text)
}

fn count(texts: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for text in texts {
        for word in words(text).collect::<HashSet<_>>() {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Index({} passages)", self.passages.len())
    }
}
