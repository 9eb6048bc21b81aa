//! Orders passages: first by their ranks in several results, then, if enabled, by their words.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::index::Index;

/// A passage and its score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ranked {
    pub(crate) passage: u32,
    pub(crate) score: f64,
}

/// Reduces the difference between the first ranks of a result; the usual value of this formula.
const SMOOTHING: f64 = 60.0;

/// Reciprocal rank fusion: a passage with high ranks in many results comes first. Scores of different queries are not
/// comparable, but ranks are.
pub(crate) fn fuse<'a>(results: impl Iterator<Item = &'a [u32]>, most: usize) -> Vec<Ranked> {
    let mut scores: BTreeMap<u32, f64> = BTreeMap::new();
    for result in results {
        for (place, passage) in (1_u32..).zip(result) {
            *scores.entry(*passage).or_default() += 1.0 / (SMOOTHING + f64::from(place));
        }
    }
    best_first(scores.into_iter().map(|(passage, score)| Ranked { passage, score }), most)
}

/// Weighs each passage's rank by the number of the question's words in it, and their closeness.
pub(crate) fn rerank(index: &Index, question: &str, ranked: &[Ranked]) -> Vec<Ranked> {
    let wanted: HashSet<String> = index.stems(question).into_iter().collect();
    let again = ranked.iter().map(|Ranked { passage, score }| {
        let (coverage, closeness) = fit(&wanted, &index.stems_of(*passage));
        Ranked { passage: *passage, score: score * (1.0 + 2.0 * coverage + closeness) }
    });
    best_first(again, ranked.len())
}

fn best_first(ranked: impl Iterator<Item = Ranked>, most: usize) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> = ranked.collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.passage.cmp(&b.passage)));
    ranked.truncate(most);
    ranked
}

/// The share of the wanted words in a passage, and their density where they are closest; both from 0 to 1.
fn fit(wanted: &HashSet<String>, stems: &[String]) -> (f64, f64) {
    let places: Vec<(usize, &String)> =
        stems.iter().enumerate().filter(|(_, stem)| wanted.contains(*stem)).collect();
    let held = places.iter().map(|(_, stem)| stem).collect::<HashSet<_>>().len();
    if held == 0 {
        return (0.0, 0.0);
    }
    let coverage = ratio(held, wanted.len());
    // Closeness counts in proportion to the matched words: one word alone is always close to itself.
    (coverage, coverage * ratio(held, closest(&places, held)))
}

/// The length of the shortest stretch with all `held` words.
fn closest(places: &[(usize, &String)], held: usize) -> usize {
    let mut shortest = usize::MAX;
    let mut inside: BTreeMap<&String, usize> = BTreeMap::new();
    let mut first = 0;
    for (place, stem) in places {
        *inside.entry(stem).or_default() += 1;
        while inside.len() == held {
            let (start, dropped) = places[first];
            shortest = shortest.min(place - start + 1);
            first += 1;
            if let Some(count) = inside.get_mut(dropped) {
                *count -= 1;
            }
            inside.retain(|_, count| *count > 0);
        }
    }
    shortest
}

#[expect(clippy::cast_precision_loss, reason = "numbers of words are small")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
