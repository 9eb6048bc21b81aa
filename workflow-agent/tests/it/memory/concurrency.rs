//! Many writers of one thread at a time, interleaved at each call of the store.

use std::sync::Arc;

use futures_util::future::join_all;
use workflow_agent::memory::{Entities, Entity, EntityStore, EpisodicMemory, Memory};

use super::watched::Watched;
use super::{episode, names, numbered, recall, runs, thread};

/// A43
#[tokio::test]
async fn concurrent_writers_lose_nothing() {
    for seed in 1..30 {
        let store = Arc::new(Watched::yielding(seed));
        let thread = thread(&store);
        let memories = [EpisodicMemory::new().recent(100), EpisodicMemory::new().recent(100)];
        let writes = (0..40).map(|number| {
            let (memory, thread) = (&memories[number % 2], &thread);
            async move {
                memory.remember(&numbered(number), thread).await.unwrap();
                let recalled = runs(&recall(memory, thread, "x").await);
                assert!(recalled.contains(&format!("r{number}")), "seed {seed}: {number} in {recalled:?}");
            }
        });
        join_all(writes).await;
        for memory in &memories {
            let mut recalled = runs(&recall(memory, &thread, "x").await);
            recalled.sort();
            let mut expected = names(0..40);
            expected.sort();
            assert_eq!(recalled, expected, "seed {seed}");
        }
    }
}

/// A43
#[tokio::test]
async fn concurrent_writers_of_one_run_store_one_episode() {
    for seed in 1..60 {
        let store = Arc::new(Watched::yielding(seed));
        let thread = thread(&store);
        let memory = EpisodicMemory::new();
        let texts: Vec<_> = (0..4).map(|writer| format!("writer{writer}")).collect();
        let writes = texts.iter().map(|text| {
            let (memory, thread) = (&memory, &thread);
            async move { memory.remember(&episode(7, text, ""), thread).await.unwrap() }
        });
        join_all(writes).await;
        memory.remember(&numbered(8), &thread).await.unwrap();
        let recalled = recall(&memory, &thread, "x").await;
        assert_eq!(runs(&recalled), names([7, 8]), "seed {seed}");
        assert!(texts.iter().any(|text| recalled[0].text.contains(text)));
    }
}

/// A44
#[tokio::test]
async fn concurrent_merges_lose_no_fact() {
    for seed in 1..40 {
        let store = Arc::new(Watched::yielding(seed));
        let thread = thread(&store);
        let merges = (0..12).map(|number| {
            let thread = &thread;
            async move {
                let facts = vec![format!("fact {number:02}")];
                let entities = ["Ada", "Bob"].map(|name| Entity {
                    name: name.into(),
                    facts: facts.clone(),
                    kind: String::new(),
                });
                let extracted = Entities { entities: entities.to_vec(), relations: vec![] };
                EntityStore::new(thread).merge(&format!("r{number}").into(), &extracted).await.unwrap();
            }
        });
        join_all(merges).await;
        let recalled = EntityStore::new(&thread).named_in("ada, bob").await.unwrap();
        for (entity, name) in recalled.iter().zip(["Ada", "Bob"]) {
            assert!(entity.text.starts_with(name));
            assert!(
                (0..12).all(|number| entity.text.contains(&format!("fact {number:02}"))),
                "{}",
                entity.text
            );
        }
    }
}
