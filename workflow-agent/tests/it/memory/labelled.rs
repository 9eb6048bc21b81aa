//! The labelled set: 1,000 episodes, and questions about one of them each, written in other words.

#![expect(clippy::print_stdout, reason = "the test reports its figure")]

use std::collections::HashMap;

use workflow_agent::memory::{EpisodicMemory, Memory as _, Question};
use workflow_core::ThreadContext;

use super::embedding::WordVectors;
use super::{episode, runs};

const EPISODES: &str = include_str!("../../recall/episodes.txt");
const QUESTIONS: &str = include_str!("../../recall/questions.txt");

fn lines(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

async fn remember_all(memory: &EpisodicMemory, thread: &ThreadContext) -> HashMap<&'static str, String> {
    let mut runs = HashMap::new();
    for (number, line) in lines(EPISODES).enumerate() {
        let [id, question, answer] = line[..] else { panic!("{line:?}") };
        let episode = episode(number, question, answer);
        memory.remember(&episode, thread).await.unwrap();
        assert!(runs.insert(id, episode.run.to_string()).is_none(), "{id} is there twice");
    }
    runs
}

/// The share of the questions whose episode is among the five that were found, and the share of first ranks.
async fn share(memory: &EpisodicMemory) -> (f64, f64) {
    let thread = ThreadContext::in_memory();
    let expected = remember_all(memory, &thread).await;
    assert_eq!(expected.len(), 1000);
    let (mut asked, mut found, mut first) = (0, 0, 0);
    for line in lines(QUESTIONS) {
        let [id, question] = line[..] else { panic!("{line:?}") };
        let recalled = runs(&memory.recall(&Question::new(question), &thread).await.unwrap());
        let (best, latest) = recalled.split_at(recalled.len() - 20);
        assert!(best.len() <= 5 && !latest.contains(&expected[id]));
        asked += 1;
        match best.iter().position(|run| *run == expected[id]) {
            Some(rank) => {
                found += 1;
                first += usize::from(rank == 0);
            }
            None => println!("not found: {id} {question}"),
        }
    }
    assert!(asked >= 200);
    let share = |part| f64::from(u32::try_from(part).unwrap()) / f64::from(asked);
    (share(found), share(first))
}

/// A43
#[tokio::test]
async fn nine_of_ten_paraphrased_questions_find_their_episode_among_a_thousand_by_words() {
    let (found, first) = share(&EpisodicMemory::new()).await;
    println!("recall@5 by words: {found:.3}, first: {first:.3}");
    assert!(found >= 0.9, "recall@5 is {found:.3}");
}

/// A43
#[tokio::test]
async fn an_embedder_without_a_better_idea_of_texts_leaves_most_of_the_recall() {
    let (found, first) = share(&EpisodicMemory::new().embedder(WordVectors)).await;
    println!("recall@5 with vectors: {found:.3}, first: {first:.3}");
    assert!(found >= 0.85, "recall@5 is {found:.3}");
}
