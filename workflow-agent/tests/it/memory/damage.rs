//! Stored values that are damaged or of another program: an error that names the key, and never a panic.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use workflow_agent::memory::{Entities, Entity, EntityStore, EpisodicMemory, Memory, Question, Relation};
use workflow_core::ThreadContext;
use workflow_core::errors::ContextError;

use super::watched::Watched;
use super::{names, numbered, recall, remember, runs, thread};

const KEYS: [&str; 5] = [
    "agent/memory/state",
    "agent/memory/episode/002",
    "agent/memory/entities",
    "agent/memory/entity/000",
    "bucket",
];

fn extracted() -> Entities {
    let entity = Entity { name: "Ada".into(), kind: "person".into(), facts: vec!["is tall".into()] };
    let relation = Relation { from: "Ada".into(), relation: "knows".into(), to: "Bob".into() };
    Entities { entities: vec![entity], relations: vec![relation] }
}

/// A thread with values under each key, one of which is replaced.
async fn damaged(key: &str, value: Value) -> (Arc<Watched>, ThreadContext) {
    let store = Arc::new(Watched::default());
    let thread = thread(&store);
    remember(&EpisodicMemory::new(), &thread, 0..4).await;
    EntityStore::new(&thread).merge(&"r1".into(), &extracted()).await.unwrap();
    let bucket = thread.list(Some("agent/memory/runs/"), 1).await.unwrap()[0].0.clone();
    thread.set(if key == "bucket" { &bucket } else { key }, value).await.unwrap();
    (store, thread)
}

/// All calls, with an old and a new run.
async fn call_all(thread: &ThreadContext) -> Vec<ContextError> {
    let memory = EpisodicMemory::new();
    let mut errors = Vec::new();
    for number in [2, 3, 2_000] {
        errors.extend(memory.remember(&numbered(number), thread).await.err());
        errors.extend(memory.recall(&Question::new("Ada w2"), thread).await.err());
        errors.extend(EntityStore::new(thread).merge(&format!("r{number}").into(), &extracted()).await.err());
    }
    errors
}

/// A43, A44
#[tokio::test]
async fn a_value_of_another_type_is_an_error_that_names_its_key() {
    for key in &KEYS[..4] {
        let (_store, thread) = damaged(key, json!("garbage")).await;
        let errors = call_all(&thread).await;
        assert!(!errors.is_empty(), "{key}");
        for error in errors {
            assert!(
                matches!(&error, ContextError::WrongType { key: named, .. } if &**named == *key),
                "{error}"
            );
        }
    }
}

/// A43
#[tokio::test]
async fn an_episode_in_the_wrong_slot_and_a_damaged_vector_are_left_out() {
    let (_store, thread) = damaged("other", json!(1)).await;
    let mut episode: Value = thread.get("agent/memory/episode/002").await.unwrap().unwrap();
    episode["vector"] = json!("zz");
    thread.set("agent/memory/episode/002", episode.clone()).await.unwrap();
    thread.set("agent/memory/episode/005", episode).await.unwrap();
    assert_eq!(runs(&recall(&EpisodicMemory::new(), &thread, "x").await), names(0..4));
}

/// Parts of the stored values, damaged at random.
fn garbage() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop_oneof![Just(u64::MAX), Just(u64::MAX - 998), Just(0), 0_u64..3000].prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z0-9]{0,6}".prop_map(Value::from),
    ];
    let number = || prop_oneof![Just(u64::MAX), Just(u64::MAX - 1), 0_u64..3000, any::<u64>()];
    let numbers = prop::collection::vec(number(), 0..100);
    prop_oneof![
        leaf.clone(),
        leaf.prop_recursive(3, 20, 4, |inner| prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("(id|next|name|number|run|entries|runs|facts)", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]),
        (number(), number(), numbers)
            .prop_map(|(next, changes, logged)| json!({ "id": "x", "next": next, "changes": changes, "logged": logged })),
        (number(), any::<u64>()).prop_map(|(number, at)| {
            json!({ "number": number, "run": "r2", "at": at, "question": "q", "answer": "a", "vector": "00ff" })
        }),
        (number(), any::<u16>(), number()).prop_map(|(id, slot, mention)| json!({
            "entries": { "ada": { "slot": slot, "id": id, "mention": mention }, "": { "slot": 0, "id": 1, "mention": 1 } },
            "entered": id, "merged": mention, "runs": [["r2", mention]]
        })),
        (number(), number()).prop_map(|(id, run)| json!({
            "id": id, "name": [run, "Ada"], "kind": [run, ""],
            "facts": [{ "run": run, "place": 3, "text": "" }], "links": []
        })),
        number().prop_map(|number| json!([["r2", number], ["r3", number]])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A43, A44
    #[test]
    fn garbage_in_the_store_is_a_clear_error_or_left_out_and_never_a_panic(
        key in prop::sample::select(&KEYS[..]),
        value in garbage(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (_store, thread) = damaged(key, value).await;
            for error in call_all(&thread).await {
                prop_assert!(matches!(&error, ContextError::WrongType { key, .. } if key.starts_with("agent/memory/")), "{error}");
            }
            Ok(())
        })?;
    }
}
