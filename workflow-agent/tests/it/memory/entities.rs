//! Entities: merging, relations, bounds and recall by name.

use std::sync::Arc;

use proptest::prelude::*;
use workflow_agent::memory::{Entities, Entity, EntityStore, EpisodicMemory, RecalledKind, Relation};
use workflow_core::ThreadContext;

use super::watched::Watched;
use super::{numbered, recall, thread};

fn entity(name: &str, kind: &str, facts: &[&str]) -> Entity {
    Entity {
        name: name.into(),
        kind: kind.into(),
        facts: facts.iter().map(|fact| (*fact).to_owned()).collect(),
    }
}

fn relation(from: &str, relation: &str, to: &str) -> Relation {
    Relation { from: from.into(), relation: relation.into(), to: to.into() }
}

async fn merge(thread: &ThreadContext, run: &str, entities: Vec<Entity>, relations: Vec<Relation>) {
    EntityStore::new(thread).merge(&run.into(), &Entities { entities, relations }).await.unwrap();
}

async fn texts(thread: &ThreadContext, message: &str) -> Vec<String> {
    let recalled = EntityStore::new(thread).named_in(message).await.unwrap();
    recalled.into_iter().map(|recalled| recalled.text).collect()
}

/// A44
#[tokio::test]
async fn entities_are_merged_by_their_names_in_any_case_and_spacing() {
    let thread = ThreadContext::in_memory();
    merge(&thread, "r1", vec![entity("Ada  Byron", "woman", &["lives in Bern"])], vec![]).await;
    merge(&thread, "r2", vec![entity(" ADA BYRON", "", &["Lives  in bern", "has a cat"])], vec![]).await;
    assert_eq!(
        texts(&thread, "Is ada\nbyron at home?").await,
        ["ADA BYRON (woman): Lives in bern; has a cat"]
    );
    merge(
        &thread,
        "r3",
        vec![entity("ZÜRICH", "city", &[]), entity("zürich", "town", &["is large"])],
        vec![],
    )
    .await;
    assert_eq!(texts(&thread, "Zürich").await, ["ZÜRICH (city): is large"]);
}

/// A44
#[tokio::test]
async fn relations_are_recalled_with_both_of_their_ends_once() {
    let thread = ThreadContext::in_memory();
    let relations = vec![relation("Ada", "works for", "Acme"), relation("Acme", "sells", "anvils")];
    merge(&thread, "r1", vec![entity("Ada", "person", &[]), entity("Acme", "firm", &["is old"])], relations)
        .await;
    assert_eq!(texts(&thread, "ada").await, ["Ada (person)", "Ada works for Acme"]);
    assert_eq!(texts(&thread, "Anvils!").await, ["Acme sells anvils"]);
    let recalled = EntityStore::new(&thread).named_in("Does Ada like Acme?").await.unwrap();
    let kinds: Vec<_> = recalled.iter().map(|recalled| (recalled.kind, recalled.text.as_str())).collect();
    assert_eq!(
        kinds,
        [
            (RecalledKind::Entity, "Acme (firm): is old"),
            (RecalledKind::Entity, "Ada (person)"),
            (RecalledKind::Relation, "Ada works for Acme"),
            (RecalledKind::Relation, "Acme sells anvils"),
        ]
    );
}

/// A44
#[tokio::test]
async fn only_entities_that_a_message_names_are_recalled_with_its_episodes() {
    let (memory, thread) = (EpisodicMemory::new(), ThreadContext::in_memory());
    workflow_agent::memory::Memory::remember(&memory, &numbered(1), &thread).await.unwrap();
    merge(&thread, "r1", vec![entity("Ada", "person", &[]), entity("Adam", "person", &[])], vec![]).await;
    let recalled = recall(&memory, &thread, "Where is Adam?").await;
    let kinds: Vec<_> = recalled.iter().map(|recalled| recalled.kind).collect();
    assert_eq!(kinds, [RecalledKind::Episode, RecalledKind::Entity]);
    assert_eq!(recalled[1].text, "Adam (person)");
    assert_eq!(texts(&thread, "Canada and Madam").await, Vec::<String>::new());
}

/// A44
#[tokio::test]
async fn at_most_twenty_entities_are_recalled_those_mentioned_last_first() {
    let thread = ThreadContext::in_memory();
    for number in 0..30 {
        merge(&thread, &format!("r{number}"), vec![entity(&format!("n{number:02}"), "thing", &[])], vec![])
            .await;
    }
    merge(&thread, "again", vec![entity("n03", "thing", &[])], vec![]).await;
    let message: Vec<_> = (0..30).map(|number| format!("n{number:02}")).collect();
    let expected: Vec<_> =
        std::iter::once(3).chain((11..30).rev()).map(|number| format!("n{number:02} (thing)")).collect();
    assert_eq!(texts(&thread, &message.join(" ")).await, expected);
}

/// A45
#[tokio::test]
async fn a_thread_keeps_a_thousand_entities_those_mentioned_last_at_a_flat_cost() {
    let store = Arc::new(Watched::default());
    let thread = thread(&store);
    for number in 0..1300 {
        merge(
            &thread,
            &format!("r{number}"),
            vec![entity(&format!("thing {number}"), "thing", &["is red"])],
            vec![],
        )
        .await;
        assert_eq!(store.take_calls(), 2);
        if number % 100 == 0 {
            merge(&thread, &format!("again{number}"), vec![entity("thing 0", "", &[])], vec![]).await;
            store.take_calls();
        }
    }
    let keys = thread.list(Some("agent/memory/entity/"), 2000).await.unwrap();
    assert_eq!(keys.len(), 1000);
    assert_eq!(texts(&thread, "thing 300 or thing 301").await, ["thing 301 (thing): is red"]);
    assert_eq!(texts(&thread, "thing 0").await, ["thing 0 (thing): is red"]);
    assert_eq!(texts(&thread, "thing 1299").await, ["thing 1299 (thing): is red"]);
    // A message reads the directory and the entities that it names, however many there are.
    store.take_calls();
    texts(&thread, "thing 500, thing 501").await;
    assert_eq!(store.take_calls(), 3);
}

/// A45
#[tokio::test]
async fn texts_and_numbers_of_an_extraction_are_bounded() {
    let thread = ThreadContext::in_memory();
    let long = "é".repeat(500);
    let facts: Vec<String> = (0..40).map(|fact| format!("fact{fact} {long}")).collect();
    let entities = vec![Entity { name: format!("Ada {long}"), kind: long.clone(), facts }];
    let many = (0..5_000).map(|number| entity(&format!("other{number}"), "x", &[])).collect::<Vec<_>>();
    let relations =
        (0..5_000).map(|number| relation("Bob", &format!("knows {number} {long}"), "Carl")).collect();
    merge(&thread, "r1", [entities, many].concat(), relations).await;
    let keys = thread.list(Some("agent/memory/entity/"), 2000).await.unwrap();
    assert_eq!(keys.len(), 64 + 2);
    for (key, value) in keys {
        let bytes = value.to_json().unwrap().to_string().len();
        assert!(bytes < 10_000, "{key} has {bytes} bytes");
    }
    let recalled = texts(&thread, "Bob").await;
    assert_eq!(recalled.len(), 20);
    assert!(recalled[0].starts_with("Bob knows 0 é") && recalled[0].len() < 120);
}

/// A44
#[tokio::test]
async fn empty_extractions_and_names_store_nothing() {
    let thread = ThreadContext::in_memory();
    merge(&thread, "r1", vec![], vec![]).await;
    merge(
        &thread,
        "r1",
        vec![entity("", "x", &["y"]), entity(" \t", "x", &[])],
        vec![relation("a", " ", "b")],
    )
    .await;
    assert_eq!(thread.list(None, 10).await.unwrap().len(), 0);
    merge(&thread, "r1", vec![entity("?!", "x", &[])], vec![]).await;
    assert_eq!(texts(&thread, "any words").await, Vec::<String>::new());
    assert_eq!(texts(&thread, "what?!").await, ["?! (x)"]);
}

/// A44
#[test]
fn the_schema_names_what_a_model_must_write() {
    let schema = schemars::schema_for!(Entities).to_value().to_string();
    for word in ["entities", "relations", "facts", "kind", "name", "from", "to", "Lasting facts"] {
        assert!(schema.contains(word), "{word} in {schema}");
    }
    let lenient: Entities = serde_json::from_str(r#"{"entities": [{"name": "Ada"}]}"#).unwrap();
    assert_eq!(lenient.entities, [entity("Ada", "", &[])]);
}

fn extraction() -> impl Strategy<Value = Entities> {
    let name = || "[abAB]{1,2}";
    let entity = (name(), "[xy]?", prop::collection::vec("[a-d]{1,2}", 0..4));
    let entity = entity.prop_map(|(name, kind, facts)| Entity { name, kind, facts });
    let relation = (name(), "[kl]", name()).prop_map(|(from, relation, to)| Relation { from, relation, to });
    (prop::collection::vec(entity, 0..4), prop::collection::vec(relation, 0..4))
        .prop_map(|(entities, relations)| Entities { entities, relations })
}

/// Everything that is known, without order and spelling.
async fn known(thread: &ThreadContext) -> Vec<String> {
    let mut known = Vec::new();
    for name in ["a", "b", "aa", "ab", "ba", "bb"] {
        for text in texts(thread, name).await {
            let (head, facts) = text.split_once(": ").unwrap_or((&text, ""));
            // The kind and the spelling are those of the later run.
            let head = head.to_lowercase().replace(" (x)", "").replace(" (y)", "");
            let mut facts: Vec<_> = facts.split("; ").collect();
            facts.sort_unstable();
            known.push(format!("{head}: {facts:?}"));
        }
    }
    known.sort();
    known.dedup();
    known
}

async fn values(thread: &ThreadContext) -> Vec<(String, serde_json::Value)> {
    let values = thread.list(None, 1000).await.unwrap();
    values.into_iter().map(|(key, value)| (key, value.to_json().unwrap())).collect()
}

proptest! {
    /// A44
    #[test]
    fn merging_again_changes_nothing_and_the_order_of_two_runs_does_not_matter(
        first in extraction(),
        second in extraction(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (one, other) = (ThreadContext::in_memory(), ThreadContext::in_memory());
            let (r1, r2) = ("r1".into(), "r2".into());
            EntityStore::new(&one).merge(&r1, &first).await.unwrap();
            EntityStore::new(&one).merge(&r2, &second).await.unwrap();
            let once = values(&one).await;
            for (run, extracted) in [(&r1, &first), (&r2, &second), (&r1, &first)] {
                EntityStore::new(&one).merge(run, extracted).await.unwrap();
                prop_assert_eq!(values(&one).await, once.clone());
            }
            EntityStore::new(&other).merge(&r2, &second).await.unwrap();
            EntityStore::new(&other).merge(&r1, &first).await.unwrap();
            prop_assert_eq!(known(&one).await, known(&other).await);
            Ok(())
        })?;
    }
}
