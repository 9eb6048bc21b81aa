//! The memory of threads: episodes, their recall, entities, and the store beneath.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use workflow_agent::memory::{Episode, EpisodicMemory, Memory, Question, Recalled, RecalledKind};
use workflow_core::{Engine, ThreadContext};

mod bounds;
mod concurrency;
mod crashes;
mod damage;
mod embedding;
mod entities;
mod episodes;
mod labelled;
mod watched;

use watched::Watched;

/// A thread whose store is watched.
fn thread(store: &Arc<Watched>) -> ThreadContext {
    Engine::builder().contexts(Arc::clone(store)).build().unwrap().thread_context("ada")
}

fn episode(number: usize, question: &str, answer: &str) -> Episode {
    let at = UNIX_EPOCH + Duration::from_hours(24 * number as u64);
    Episode { run: format!("r{number}").into(), at, question: question.into(), answer: answer.into() }
}

/// An episode whose words are its number only.
fn numbered(number: usize) -> Episode {
    episode(number, &format!("question w{number}"), "answer")
}

async fn remember(memory: &EpisodicMemory, thread: &ThreadContext, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        memory.remember(&numbered(number), thread).await.unwrap();
    }
}

async fn recall(memory: &EpisodicMemory, thread: &ThreadContext, question: &str) -> Vec<Recalled> {
    memory.recall(&Question::new(question), thread).await.unwrap()
}

/// The runs of recalled episodes, in order.
fn runs(recalled: &[Recalled]) -> Vec<String> {
    let episodes = recalled.iter().filter(|recalled| recalled.kind == RecalledKind::Episode);
    episodes.map(|episode| episode.run.as_ref().unwrap().to_string()).collect()
}

fn names(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("r{number}")).collect()
}
