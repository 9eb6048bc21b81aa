//! A search index of one thread's episodes, in memory. It has no texts, only words and vectors, and reads nothing from
//! the store; `recall` keeps it up to date.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;

use bm25::{Embedder as WordEmbedder, EmbedderBuilder, Embedding, Scorer};
use workflow_core::RunId;

use super::embed::Vector;
use super::episode::StoredEpisode;
use super::words::Words;

/// The constant of reciprocal rank fusion: the larger it is, the less the first ranks stand out.
const FUSION: u32 = 60;

/// The most different words of a question that are searched for.
const MOST_WORDS: usize = 256;

/// Words and vectors of episodes, by slot.
pub(super) struct Index {
    entries: HashMap<u64, Entry>,
    scorer: Scorer<u64>,
    words: WordEmbedder<u32, Words>,
}

struct Entry {
    number: u64,
    run: RunId,
    vector: Option<Vector>,
    /// The number of words that the scorer has of the episode.
    words: usize,
}

/// An episode that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) slot: u64,
    pub(super) number: u64,
}

/// A question as it is searched for.
pub(super) struct Search<'a> {
    pub(super) text: &'a str,
    pub(super) vector: Option<Vector>,
    pub(super) known_runs: &'a HashSet<RunId>,
    /// The number of latest episodes, and of others that fit best.
    pub(super) recent: usize,
    pub(super) found: usize,
}

impl Index {
    /// An empty index for episodes of about the length of some of them.
    pub(super) fn fitted_to(episodes: &[StoredEpisode]) -> Self {
        let texts: Vec<String> = episodes.iter().map(StoredEpisode::searched).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let words = EmbedderBuilder::<u32, Words>::with_tokenizer_and_fit_to_corpus(Words, &texts);
        Self { entries: HashMap::new(), scorer: Scorer::new(), words: words.build() }
    }

    /// Adds the episode of a slot, or replaces it.
    pub(super) fn put(&mut self, slot: u64, episode: &StoredEpisode) {
        let words = self.words.embed(&episode.searched());
        let entry = Entry {
            number: episode.number,
            run: episode.run.clone(),
            vector: episode.vector(),
            words: words.len(),
        };
        self.scorer.upsert(&slot, once_each(words, usize::MAX));
        self.entries.insert(slot, entry);
    }

    pub(super) fn remove(&mut self, slot: u64) {
        self.scorer.remove(&slot);
        self.entries.remove(&slot);
    }

    /// The number of the episode that the index has in a slot.
    pub(super) fn number_in(&self, slot: u64) -> Option<u64> {
        self.entries.get(&slot).map(|entry| entry.number)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Roughly the bytes that the index takes.
    pub(super) fn weight(&self) -> usize {
        let of_entry =
            |entry: &Entry| 256 + 48 * entry.words + entry.vector.as_ref().map_or(0, Vector::dimension);
        self.entries.values().map(of_entry).sum()
    }

    /// The episodes that fit best, best first, and the latest, oldest first. None is in both.
    pub(super) fn choose(&self, search: &Search<'_>) -> (Vec<Chosen>, Vec<Chosen>) {
        let mut all = self.eligible(search.known_runs);
        let recent = all.split_off(all.len().saturating_sub(search.recent));
        let older: HashMap<u64, u64> = all.iter().map(|chosen| (chosen.slot, chosen.number)).collect();
        let by_words = self.by_words(search.text, &older);
        let mut found = match &search.vector {
            Some(vector) => fused([by_words, self.by_vector(vector, &all)]),
            None => by_words,
        };
        found.truncate(search.found);
        (found, recent)
    }

    /// The latest episode of each run that is not known, oldest first.
    fn eligible(&self, known_runs: &HashSet<RunId>) -> Vec<Chosen> {
        let mut latest: HashMap<&RunId, Chosen> = HashMap::new();
        for (slot, entry) in self.entries.iter().filter(|(_, entry)| !known_runs.contains(&entry.run)) {
            let chosen = Chosen { slot: *slot, number: entry.number };
            let there = latest.entry(&entry.run).or_insert(chosen);
            if there.number < chosen.number {
                *there = chosen;
            }
        }
        let mut all: Vec<Chosen> = latest.into_values().collect();
        all.sort_unstable_by_key(|chosen| chosen.number);
        all
    }

    fn by_words(&self, text: &str, older: &HashMap<u64, u64>) -> Vec<Chosen> {
        let question = once_each(self.words.embed(text), MOST_WORDS);
        let matches = self.scorer.matches(&question).into_iter();
        let chosen = |slot: u64| older.get(&slot).map(|number| Chosen { slot, number: *number });
        ranked(matches.filter_map(|found| Some((found.score, chosen(found.id)?))).collect())
    }

    fn by_vector(&self, vector: &Vector, older: &[Chosen]) -> Vec<Chosen> {
        let similarity =
            |chosen: &Chosen| self.entries.get(&chosen.slot)?.vector.as_ref()?.similarity(vector);
        let scored = older.iter().filter_map(|chosen| Some((similarity(chosen)?, *chosen)));
        ranked(scored.filter(|(similarity, _)| *similarity > 0.0).collect())
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("episodes", &self.entries.len()).finish_non_exhaustive()
    }
}

/// Each word once, the first ones of the text first: the value of a word already counts its repetitions.
fn once_each(words: Embedding<u32>, most: usize) -> Embedding<u32> {
    let mut seen = HashSet::new();
    Embedding(words.0.into_iter().filter(|word| seen.insert(word.index)).take(most).collect())
}

/// The best first, and the later of two equals first.
fn ranked(mut scored: Vec<(f32, Chosen)>) -> Vec<Chosen> {
    scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(y.number.cmp(&x.number)));
    scored.into_iter().map(|(_, chosen)| chosen).collect()
}

/// Fuses rankings: the score of an episode is the sum of 1 / (60 + rank) over the rankings that have it.
fn fused(rankings: [Vec<Chosen>; 2]) -> Vec<Chosen> {
    let mut scores: HashMap<Reverse<u64>, (f64, Chosen)> = HashMap::new();
    for ranking in rankings {
        for (rank, chosen) in (1_u32..).zip(ranking) {
            scores.entry(Reverse(chosen.number)).or_insert((0.0, chosen)).0 += 1.0 / f64::from(FUSION + rank);
        }
    }
    let mut fused: Vec<_> = scores.into_values().collect();
    fused.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(y.number.cmp(&x.number)));
    fused.into_iter().map(|(_, chosen)| chosen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(number: u64, run: &str, text: &str) -> StoredEpisode {
        StoredEpisode {
            number,
            run: run.into(),
            at: 0,
            question: text.to_owned(),
            answer: String::new(),
            vector: None,
        }
    }

    fn numbers(chosen: &[Chosen]) -> Vec<u64> {
        chosen.iter().map(|chosen| chosen.number).collect()
    }

    fn search<'a>(text: &'a str, known_runs: &'a HashSet<RunId>) -> Search<'a> {
        Search { text, vector: None, known_runs, recent: 2, found: 2 }
    }

    /// A43
    #[test]
    fn an_index_finds_older_episodes_by_words_and_the_latest_by_number() {
        let mut index = Index::fitted_to(&[]);
        let texts = ["red apples", "green pears", "red cherries", "apples", "nothing"];
        for (number, text) in (0..).zip(texts) {
            index.put(number, &episode(number, &format!("r{number}"), text));
        }
        let known = HashSet::new();
        let (found, recent) = index.choose(&search("a red apple", &known));
        assert_eq!((numbers(&found), numbers(&recent)), (vec![0, 2], vec![3, 4]));
        let known = HashSet::from(["r0".into(), "r4".into()]);
        let (found, recent) = index.choose(&search("a red apple", &known));
        assert_eq!((numbers(&found), numbers(&recent)), (vec![], vec![2, 3]));
    }

    /// A43
    #[test]
    fn a_run_with_two_episodes_counts_by_its_later_one() {
        let mut index = Index::fitted_to(&[]);
        for (number, run) in [(0, "a"), (1, "b"), (2, "a"), (3, "c")] {
            index.put(number, &episode(number, run, "apples"));
        }
        let known = HashSet::new();
        let (found, recent) = index.choose(&search("apples", &known));
        assert_eq!((numbers(&found), numbers(&recent)), (vec![1], vec![2, 3]));
    }

    /// A43
    #[test]
    fn ranks_are_fused_with_sixty() {
        let all: Vec<_> = (0..4).map(|number| Chosen { slot: number, number }).collect();
        // 2 has ranks 2 and 1, 0 has 1 and 3, 1 and 3 have one rank each.
        let order = fused([vec![all[0], all[2], all[1]], vec![all[2], all[3], all[0]]]);
        assert_eq!(numbers(&order), [2, 0, 3, 1]);
    }
}
