//! Crashes between any two calls of the store, and calls whose effect stays unknown.

use std::sync::Arc;

use workflow_agent::memory::{Entities, Entity, EntityStore, EpisodicMemory, Memory, Question, Relation};

use super::watched::Watched;
use super::{episode, names, numbered, recall, remember, runs, thread};

/// A43, A45
#[tokio::test]
async fn after_a_crash_at_any_call_recall_works_and_a_repetition_completes_the_work() {
    for (before, late, repeats) in [0, 3, 1000, 1003]
        .into_iter()
        .flat_map(|before| [false, true].map(|late| (before, late)))
        .flat_map(|(before, late)| [false, true].map(|repeats| (before, late, repeats)))
    {
        for calls in 0..5 {
            let store = Arc::new(Watched::default());
            let thread = thread(&store);
            let (memory, witness) = (EpisodicMemory::new(), EpisodicMemory::new().recent(100));
            remember(&memory, &thread, 0..before).await;
            recall(&witness, &thread, "x").await;
            store.fail_after(Some(calls), late);
            assert!(memory.remember(&numbered(before), &thread).await.is_err(), "{before}, {calls}");
            store.fail_after(None, false);
            let context = format!("{before} before, crash at {calls}, late {late}, repeated {repeats}");

            let kept: Vec<_> = names(before.saturating_sub(100)..=before);
            for memory in [&witness, &EpisodicMemory::new().recent(100)] {
                let recalled = runs(&recall(memory, &thread, "x").await);
                let from = kept.len().saturating_sub(1).min(100);
                let all = &kept[kept.len().saturating_sub(100)..];
                let old = &kept[kept.len() - 1 - from..kept.len() - 1];
                assert!(recalled == all || recalled == old, "{context}: {recalled:?}");
            }
            let mut expected = names(before.saturating_sub(90)..before);
            if repeats {
                for _ in 0..2 {
                    memory.remember(&numbered(before), &thread).await.unwrap();
                }
                expected.push(format!("r{before}"));
            }
            remember(&memory, &thread, before + 1..before + 8).await;
            expected.extend(names(before + 1..before + 8));
            let expected = &expected[expected.len().saturating_sub(80)..];
            for memory in [&witness, &EpisodicMemory::new().recent(100)] {
                let mut recalled = runs(&recall(memory, &thread, "x").await);
                if !repeats {
                    // The run may or may not have its episode.
                    recalled.retain(|run| *run != format!("r{before}"));
                }
                assert!(recalled.ends_with(expected), "{context}: {recalled:?}");
            }
            let slots = thread.list(Some("agent/memory/episode/"), 2000).await.unwrap();
            let slots = slots.iter().filter(|(key, _)| key.starts_with("agent/memory/episode/")).count();
            assert!(slots <= 1000 && slots >= (before + 7).min(1000), "{context}: {slots}");
        }
    }
}

/// A43
#[tokio::test]
async fn a_late_repetition_reaches_an_index_that_was_read_in_between() {
    let store = Arc::new(Watched::default());
    let thread = thread(&store);
    let (memory, witness) = (EpisodicMemory::new(), EpisodicMemory::new().recent(0));
    remember(&memory, &thread, 0..3).await;
    // The process ends after the number was taken and noted.
    store.fail_after(Some(3), false);
    assert!(memory.remember(&episode(3, "a heron", ""), &thread).await.is_err());
    store.fail_after(None, false);
    assert_eq!(runs(&recall(&witness, &thread, "herons").await), names([]));
    remember(&memory, &thread, 4..30).await;
    assert_eq!(runs(&recall(&witness, &thread, "herons").await), names([]));
    // This time it ends before the change is logged.
    store.fail_after(Some(2), false);
    assert!(memory.remember(&episode(3, "a heron", ""), &thread).await.is_err());
    store.fail_after(None, false);
    assert_eq!(runs(&recall(&witness, &thread, "herons").await), names([3]));
}

/// A43
#[tokio::test]
async fn a_run_whose_episode_is_gone_is_remembered_as_new() {
    let store = Arc::new(Watched::default());
    let thread = thread(&store);
    let memory = EpisodicMemory::new();
    for gone in [1000, 2100] {
        remember(&memory, &thread, 0..=gone).await;
        store.take_calls();
        memory.remember(&numbered(0), &thread).await.unwrap();
        assert!(store.take_calls() <= 6);
        let recalled = runs(&recall(&memory, &thread, "x").await);
        assert_eq!(recalled.last().unwrap(), "r0");
        memory.remember(&numbered(0), &thread).await.unwrap();
        assert_eq!(runs(&recall(&memory, &thread, "x").await), recalled);
        remember(&memory, &thread, 5000..6000).await;
    }
}

/// A43
#[tokio::test]
async fn a_recall_that_fails_or_is_dropped_leaves_the_next_one_right() {
    let store = Arc::new(Watched::default());
    let thread = thread(&store);
    let memory = EpisodicMemory::new();
    remember(&memory, &thread, 0..100).await;
    for calls in 0..30 {
        remember(&memory, &thread, 100 + calls..101 + calls).await;
        store.fail_after(Some(calls), false);
        let failed = memory.recall(&Question::new("w7"), &thread).await.is_err();
        store.fail_after(None, false);
        let expected = [names([7]), names(81 + calls..101 + calls)].concat();
        assert_eq!(runs(&recall(&memory, &thread, "w7").await), expected, "{failed} at {calls}");
    }
    let slow = Arc::new(Watched::yielding(3));
    let thread = super::thread(&slow);
    remember(&memory, &thread, 0..100).await;
    for polls in 0..60 {
        let question = Question::new("w7");
        let mut recall = memory.recall(&question, &thread);
        for _ in 0..polls {
            if futures::poll!(&mut recall).is_ready() {
                break;
            }
        }
        drop(recall);
        remember(&memory, &thread, 100 + polls..101 + polls).await;
    }
    assert_eq!(runs(&recall(&memory, &thread, "w7 w159 w0").await).len(), 22);
}

fn extraction() -> Entities {
    let entity = |name: &str| Entity {
        name: name.into(),
        kind: "person".into(),
        facts: vec![format!("{name} is tall")],
    };
    let relation =
        |from: &str, to: &str| Relation { from: from.into(), relation: "knows".into(), to: to.into() };
    Entities {
        entities: vec![entity("Ada"), entity("Bob")],
        relations: vec![relation("Ada", "Carl"), relation("Bob", "Ada")],
    }
}

/// A44
#[tokio::test]
async fn after_a_crash_at_any_call_of_a_merge_its_repetition_completes_it() {
    let clean = Arc::new(Watched::default());
    let thread_of_clean = thread(&clean);
    EntityStore::new(&thread_of_clean).merge(&"r".into(), &extraction()).await.unwrap();
    let expected = EntityStore::new(&thread_of_clean).named_in("ada bob carl").await.unwrap();
    assert_eq!(expected.len(), 4);
    let calls_of_merge = 4;
    for (calls, late) in (0..calls_of_merge).flat_map(|calls| [(calls, false), (calls, true)]) {
        let store = Arc::new(Watched::default());
        let thread = thread(&store);
        let entities = EntityStore::new(&thread);
        store.fail_after(Some(calls), late);
        assert!(entities.merge(&"r".into(), &extraction()).await.is_err());
        store.fail_after(None, false);
        let partly = entities.named_in("ada bob carl").await.unwrap();
        assert!(partly.iter().all(|recalled| expected.contains(recalled)));
        entities.merge(&"r".into(), &extraction()).await.unwrap();
        assert_eq!(entities.named_in("ada bob carl").await.unwrap(), expected, "crash at {calls}");
    }
}
