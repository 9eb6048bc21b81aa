//! The workflow: its events, its steps, and nothing else.

use std::sync::Arc;

use workflow_core::prelude::*;

use crate::index::Index;
use crate::rank::{self, Ranked};

/// The number of passages per query, and the number kept after fusion.
const PER_QUERY: usize = 20;

/// The settings, from `RESEARCH_…` variables and flags.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) rerank: bool,
    pub(crate) passages: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { rerank: true, passages: 3 }
    }
}

/// The user's question.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Question {
    pub(crate) text: String,
}

/// One variant of the question; the first event of a branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
pub(crate) struct Query {
    pub(crate) way: Way,
    pub(crate) words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Way {
    AsAsked,
    RarestWords,
    PairOfWords,
    OtherSpelling,
}

/// The passages of one query, best first.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Hits {
    pub(crate) passages: Vec<u32>,
}

/// Displayed when a query has found its passages.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
pub(crate) struct Searched {
    pub(crate) query: Query,
    pub(crate) found: usize,
}

/// The passages of all queries, best first.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Retrieved {
    pub(crate) ranked: Vec<Ranked>,
}

/// The same passages in a better order; logged and displayed.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(control, display)]
pub(crate) struct Reranked {
    pub(crate) ranked: Vec<Ranked>,
    pub(crate) moved: usize,
}

/// A quotation and its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quotation {
    pub(crate) text: String,
    pub(crate) heading: String,
    pub(crate) source: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Answer {
    pub(crate) question: String,
    pub(crate) quotations: Vec<Quotation>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct NothingFound {
    pub(crate) question: String,
    pub(crate) searched: usize,
}

/// The outcome of a run.
#[derive(Debug, EventSet)]
pub(crate) enum Outcome {
    Answer(Answer),
    NothingFound(NothingFound),
}

/// The dependency of the steps: the index, built once and shared.
#[derive(Debug)]
pub(crate) struct Research {
    pub(crate) index: Arc<Index>,
}

#[workflow(output = Outcome)]
impl Research {
    /// Opens a branch for each variant of the question.
    #[step]
    async fn vary(&self, question: &Question) -> FanOut<Query> {
        self.variants(&question.text).into_iter().collect()
    }

    /// Runs once in every branch.
    #[step]
    async fn retrieve(&self, query: &Query, display: &Display) -> Hits {
        let found = self.index.search(&query.words, PER_QUERY);
        display.show(Searched { query: query.clone(), found: found.len() });
        Hits { passages: found.into_iter().map(|found| found.passage).collect() }
    }

    /// Runs once, when every branch has settled, for any number of branches.
    #[step]
    async fn fuse(&self, hits: &Gather<Hits>) -> Retrieved {
        Retrieved { ranked: rank::fuse(hits.ok().map(|hits| &hits.passages[..]), PER_QUERY) }
    }

    #[precondition]
    fn wants_reranking(config: &Config<Settings>, retrieved: &Retrieved) -> bool {
        config.rerank && !retrieved.ranked.is_empty()
    }

    /// Ranks passages by their words, unless the configuration skips this.
    #[step(precondition = wants_reranking)]
    async fn rerank(&self, question: &Question, retrieved: &Retrieved) -> Reranked {
        let ranked = rank::rerank(&self.index, &question.text, &retrieved.ranked);
        let moved =
            ranked.iter().zip(&retrieved.ranked).filter(|(new, old)| new.passage != old.passage).count();
        Reranked { ranked, moved }
    }

    #[precondition]
    fn ranking_is_final(
        config: &Config<Settings>,
        retrieved: &Retrieved,
        reranked: Option<&Reranked>,
    ) -> bool {
        reranked.is_some() || !config.rerank || retrieved.ranked.is_empty()
    }

    /// Quotes the best passages. The question comes straight from the start of the run.
    #[step(precondition = ranking_is_final)]
    async fn answer(
        &self,
        question: &Question,
        retrieved: &Retrieved,
        reranked: Option<&Reranked>,
        config: &Config<Settings>,
    ) -> Outcome {
        let question = question.text.clone();
        let ranked = reranked.map_or(&retrieved.ranked, |reranked| &reranked.ranked);
        if ranked.is_empty() {
            return Outcome::NothingFound(NothingFound { question, searched: self.index.passages() });
        }
        let quotations =
            ranked.iter().take(config.passages).map(|ranked| self.quote(ranked.passage)).collect();
        Outcome::Answer(Answer { question, quotations })
    }
}

impl Research {
    /// The question as it is, its rarest words, its neighbouring words, and its words as the corpus spells
    /// them.
    fn variants(&self, question: &str) -> Vec<Query> {
        let words = self.index.key_words(question);
        let mut variants = Vec::new();
        let mut add = |way, words: String| variants.push(Query { way, words });
        if !words.is_empty() {
            add(Way::AsAsked, words.join(" "));
        }
        if words.len() > 2 {
            add(Way::RarestWords, self.rarest(&words).join(" "));
            words.windows(2).for_each(|pair| add(Way::PairOfWords, pair.join(" ")));
        }
        let known: Vec<String> = words.iter().filter_map(|word| self.index.known(word)).collect();
        if !known.is_empty() && known != words {
            add(Way::OtherSpelling, known.join(" "));
        }
        variants
    }

    /// The two words that occur in the fewest passages, but at least one.
    fn rarest<'a>(&self, words: &'a [String]) -> Vec<&'a str> {
        let count = |word: &&str| self.index.passages_with(word);
        let mut known: Vec<&str> = words.iter().map(String::as_str).filter(|word| count(word) > 0).collect();
        known.sort_by_key(count);
        known.truncate(2);
        known
    }

    fn quote(&self, passage: u32) -> Quotation {
        let passage = self.index.passage(passage);
        Quotation {
            text: passage.text.clone(),
            heading: passage.heading.clone(),
            source: format!("{}:{}", passage.file, passage.line),
        }
    }
}
