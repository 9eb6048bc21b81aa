//! Bounds: a thousand episodes a thread, and the cost of calls, counted in calls of the store.

use std::sync::Arc;

use workflow_agent::memory::{EpisodicMemory, Memory as _, Question};

use super::watched::Watched;
use super::{names, numbered, recall, remember, runs, thread};

/// A45
#[tokio::test]
async fn of_ten_thousand_episodes_the_last_thousand_stay_at_a_flat_cost() {
    let store = Arc::new(Watched::default());
    let (memory, thread) = (EpisodicMemory::new(), thread(&store));
    for number in 0..10_000 {
        memory.remember(&numbered(number), &thread).await.unwrap();
        assert!(store.take_calls() <= 5, "remember {number}");
    }
    let mut after = String::new();
    let mut keys = Vec::new();
    loop {
        let page = thread.list(Some(&after), 100).await.unwrap();
        let Some((last, _)) = page.last() else { break };
        after.clone_from(last);
        keys.extend(page.into_iter().map(|(key, _)| key));
    }
    assert_eq!(keys.iter().filter(|key| key.starts_with("agent/memory/episode/")).count(), 1000);
    // One state, and 64 values that map runs.
    assert_eq!(keys.len(), 1065);
    let fresh = EpisodicMemory::new();
    assert_eq!(runs(&recall(&fresh, &thread, "w8999").await), names(9980..10_000));
    assert_eq!(runs(&recall(&fresh, &thread, "w9000").await), [names([9000]), names(9980..10_000)].concat());
}

/// A45
#[tokio::test]
async fn a_recall_reads_what_changed_and_not_a_thousand_episodes() {
    let store = Arc::new(Watched::default());
    let (memory, thread) = (EpisodicMemory::new(), thread(&store));
    remember(&memory, &thread, 0..1000).await;
    store.take_calls();
    recall(&memory, &thread, "w3").await;
    // The state, 16 pages and their end, 21 episodes, the directory of entities.
    assert!(store.take_calls() <= 40);
    for number in 1000..1200 {
        memory.remember(&numbered(number), &thread).await.unwrap();
        store.take_calls();
        assert_eq!(recall(&memory, &thread, "w500").await.len(), 21);
        assert!(store.take_calls() <= 24, "recall after {number}");
        recall(&memory, &thread, "w500").await;
        assert_eq!(store.take_calls(), 23, "the second recall after {number}");
    }
}

/// A43
#[tokio::test]
async fn more_threads_than_are_cached_recall_the_same() {
    let store = Arc::new(Watched::default());
    let engine = workflow_core::Engine::builder().contexts(Arc::clone(&store)).build().unwrap();
    let memory = EpisodicMemory::new();
    let threads: Vec<_> = (0..100).map(|thread| engine.thread_context(format!("t{thread}"))).collect();
    for _ in 0..2 {
        for (number, thread) in threads.iter().enumerate() {
            memory.remember(&numbered(number), thread).await.unwrap();
            let recalled = memory.recall(&Question::new("x"), thread).await.unwrap();
            assert_eq!(runs(&recalled), names([number]));
        }
    }
}
