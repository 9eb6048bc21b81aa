//! The inbox (S67): random calls against a model, its bounds, and damaged messages.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::expect;
use fastrand::Rng;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde_json::json;
use workflow_core::store::{
    EventStore as _, Inbox as _, InboxMessage, RefusedMessage, RunMessage, StoreError,
};
use workflow_core::{Pause, Seq};
use workflow_redb::{InboxError, RedbStore, StoreFile};

use crate::fixtures::{Place, moment, put};

fn message(id: &str, message: RunMessage) -> InboxMessage {
    InboxMessage::new(id, message, moment())
}

fn note(id: &str, number: u64) -> InboxMessage {
    message(id, RunMessage::Send { event: "Note".into(), data: number.into() })
}

/// Runs whose ids begin with each other, and hold each other's bytes.
const RUNS: [&str; 4] = ["a", "aa", "a/\u{0}1", ""];

/// What the inbox is to have.
#[derive(Default)]
struct Model {
    pending: BTreeMap<&'static str, Vec<InboxMessage>>,
    refused: Vec<RefusedMessage>,
}

impl Model {
    fn put(&mut self, run: &'static str, message: InboxMessage) {
        let pending = self.pending.entry(run).or_default();
        if !pending.iter().any(|known| known.id == message.id) {
            pending.push(message);
        }
    }

    fn take(&mut self, run: &'static str, id: &str) -> Option<InboxMessage> {
        let pending = self.pending.entry(run).or_default();
        let at = pending.iter().position(|known| *known.id == *id)?;
        Some(pending.remove(at))
    }

    fn settle(&mut self, run: &'static str, message: &InboxMessage, result: Result<(), String>) {
        if !self.pending.entry(run).or_default().contains(message) {
            return;
        }
        if let (Some(message), Err(reason)) = (self.take(run, &message.id), result) {
            self.refused.push(RefusedMessage::new(run.into(), message, reason));
        }
    }
}

/// One random call on both.
async fn call(store: &RedbStore, model: &mut Model, random: &mut Rng, number: u64) {
    let (run, id) = (RUNS[random.usize(..RUNS.len())], format!("{}", random.u32(..12)));
    match random.u8(..12) {
        0..6 => {
            let message = note(&id, number);
            let message = if random.bool() { message.by("ada") } else { message };
            store.put_message(run, message.clone()).await.unwrap();
            model.put(run, message);
        }
        6..9 => {
            let known = model.pending.entry(run).or_default();
            let mut message = known.get(random.usize(..4)).cloned().unwrap_or_else(|| note(&id, number));
            if random.u8(..4) == 0 {
                // Another message with the same id, which a client withdrew.
                message.message = RunMessage::Unpause;
            }
            let result = if random.bool() { Ok(()) } else { Err("no".to_owned()) };
            store.settle(&run.into(), &message, result.clone()).await.unwrap();
            model.settle(run, &message, result);
        }
        9 => {
            let was_there = store.withdraw_message(run, &*id).await.unwrap();
            assert_eq!(model.take(run, &id).is_some(), was_there);
        }
        10 => {
            let known = &store.pending(&run.into(), 100).await.unwrap();
            for message in known.iter().take(random.usize(..3)) {
                store.settle(&run.into(), message, Ok(())).await.unwrap();
                model.settle(run, message, Ok(()));
            }
        }
        _ => {
            store.remove(&run.into()).await.unwrap();
            model.pending.remove(run);
        }
    }
}

// S67
#[tokio::test]
async fn random_calls_have_the_effects_that_they_have_on_a_model() {
    let seed = fastrand::u64(..);
    let mut random = Rng::with_seed(seed);
    for _ in 0..12 {
        let (place, mut model) = (Place::new(), Model::default());
        let mut store = place.open();
        for number in 0..80 {
            if random.u8(..20) == 0 {
                drop(store);
                store = place.open();
            }
            call(&store, &mut model, &mut random, number).await;
            let run = RUNS[random.usize(..RUNS.len())];
            let at_most = random.usize(..5);
            let expected = model.pending.get(run).into_iter().flatten().take(at_most.max(1));
            let expected: Vec<_> = expected.cloned().collect();
            assert_eq!(store.pending(&run.into(), at_most).await.unwrap(), expected, "seed {seed}");
        }
        assert_eq!(store.refused_messages().await.unwrap(), model.refused, "seed {seed}");
        let report = store.check().await.unwrap();
        assert!(report.is_sound(), "seed {seed}: {:?}", report.problems);
        assert_eq!(report.pending_messages, model.pending.values().map(|all| all.len() as u64).sum::<u64>());
        let copy = Place::new();
        store.snapshot(&copy.file).await.unwrap();
        let mut runs = store.runs_with_messages().await.unwrap().unwrap();
        runs.sort();
        let pending = model.pending.iter().filter(|(_, pending)| !pending.is_empty());
        let expected: std::collections::BTreeSet<_> =
            pending.map(|(run, _)| workflow_core::RunId::from(*run)).collect();
        assert_eq!(runs, expected.into_iter().collect::<Vec<_>>(), "seed {seed}");
        let (listed, copied) = (store.pending_messages(None, 1_000).await.unwrap(), copy.open());
        assert_eq!(copied.pending_messages(None, 1_000).await.unwrap(), listed, "seed {seed}");
        assert_eq!(copied.refused_messages().await.unwrap(), model.refused, "seed {seed}");
    }
}

// S67
#[tokio::test]
async fn the_last_1000_refused_messages_are_kept() {
    let place = Place::new();
    let builder =
        RedbStore::builder().durability(workflow_redb::Durability::Buffered(std::time::Duration::MAX));
    let store = builder.open(&place.file).unwrap();
    for number in 0..RefusedMessage::KEPT as u64 + 7 {
        let id = number.to_string();
        store.put_message("a", note(&id, number)).await.unwrap();
        store.settle(&"a".into(), &note(&id, number), Err("it came too late".to_owned())).await.unwrap();
    }
    let refused = store.refused_messages().await.unwrap();
    assert_eq!((refused.len(), &*refused[0].message.id), (RefusedMessage::KEPT, "7"));
}

#[tokio::test]
async fn a_message_that_could_not_be_read_again_is_not_stored() {
    let place = Place::new();
    let store = place.open();
    // Each level has its own JSON beside the message's three.
    let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    let send = |depth| message("1", RunMessage::Send { event: "Note".into(), data: nested(depth) });
    let refused = store.put_message("a", send(124)).await.unwrap_err();
    assert!(matches!(refused, InboxError::Unserialisable { .. }), "{refused:?}");
    store.put_message("a", send(123)).await.unwrap();
    let pending = store.pending(&"a".into(), 1).await.unwrap();
    assert_eq!(pending, [send(123)]);
    store.settle(&"a".into(), &send(123), Err("no".to_owned())).await.unwrap();
    assert_eq!(store.refused_messages().await.unwrap()[0].message, send(123));
}

#[tokio::test]
async fn a_run_that_is_removed_takes_its_messages_along_and_others_keep_theirs() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..1).await.unwrap();
    for run in ["a", "aa", "b"] {
        store.put_message(run, note("1", 1)).await.unwrap();
    }
    assert!(store.remove(&"a".into()).await.unwrap());
    assert!(store.pending(&"a".into(), 1).await.unwrap().is_empty());
    let rest: Vec<_> = store.pending_messages(None, 10).await.unwrap();
    assert_eq!(rest.iter().map(|pending| pending.run.as_str()).collect::<Vec<_>>(), ["b", "aa"]);
}

type Bytes = &'static [u8];

fn table(name: &str) -> TableDefinition<'_, Bytes, Bytes> {
    TableDefinition::new(name)
}

/// The keys and values of the inbox's tables, and the format; bytes that are no text are escaped.
fn dump(place: &Place) -> String {
    let database = Database::open(&place.file).unwrap();
    let transaction = database.begin_read().unwrap();
    let mut dump = String::new();
    for name in ["workflow.inbox", "workflow.inbox_ids", "workflow.refused", "workflow.meta"] {
        writeln!(dump, "{name}").unwrap();
        for entry in transaction.open_table(table(name)).unwrap().range::<&[u8]>(..).unwrap() {
            let (key, value) = entry.unwrap();
            let value = value.value().escape_ascii().to_string().replace("\\\"", "\"");
            writeln!(dump, "  {}\n    {value}", key.value().escape_ascii()).unwrap();
        }
    }
    dump
}

#[tokio::test]
async fn a_file_with_messages_has_the_tables_keys_and_values_of_the_format() {
    let place = Place::new();
    let store = place.open();
    let reply = RunMessage::Reply { request: Seq(4), data: json!({ "ok": true }) };
    store.put_message("order-17", message("reply-1", reply).by("ada")).await.unwrap();
    store.put_message("order-17", message("pause-1", RunMessage::Pause { how: Pause::Now })).await.unwrap();
    store.put_message("order-18", message("1", RunMessage::Unpause)).await.unwrap();
    store.settle(&"order-18".into(), &message("1", RunMessage::Unpause), Err("no".to_owned())).await.unwrap();
    drop(store);
    expect![[r#"
        workflow.inbox
          \x00\x00\x00\x08order-17\x00\x00\x00\x00\x00\x00\x00\x00reply-1
            \x84\x0e\xc9\x17\xac{"id":"reply-1","by":"ada","message":{"reply":{"request":4,"data":{"ok":true}}},"at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}
          \x00\x00\x00\x08order-17\x00\x00\x00\x00\x00\x00\x00\x01pause-1
            \x84O\xc3\xcd/{"id":"pause-1","message":{"pause":{"how":"now"}},"at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}
        workflow.inbox_ids
          \x00\x00\x00\x08order-17pause-1
            \x00\x00\x00\x00\x00\x00\x00\x01
          \x00\x00\x00\x08order-17reply-1
            \x00\x00\x00\x00\x00\x00\x00\x00
        workflow.refused
          \x00\x00\x00\x00\x00\x00\x00\x00
            \x84\x8e>\xbbH{"run":"order-18","message":{"id":"1","message":"unpause","at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}},"reason":"no"}
        workflow.meta
          format
            \x00\x00\x00\x03
          recovery
            one-phase
    "#]].assert_eq(&dump(&place));
}

/// A store with three messages to a run, whose second one is damaged.
async fn damaged() -> Place {
    let place = Place::new();
    let store = place.open();
    for number in 1..4 {
        store.put_message("a", note(&number.to_string(), number)).await.unwrap();
    }
    drop(store);
    let database = Database::open(&place.file).unwrap();
    let transaction = database.begin_write().unwrap();
    let key = b"\0\0\0\x01a\0\0\0\0\0\0\0\x012";
    let mut inbox = transaction.open_table(table("workflow.inbox")).unwrap();
    let mut bytes = inbox.get(&key[..]).unwrap().unwrap().value().to_vec();
    bytes[20] ^= 1;
    inbox.insert(&key[..], &*bytes).unwrap();
    drop(inbox);
    transaction.commit().unwrap();
    place
}

#[tokio::test]
async fn a_damaged_message_hides_no_other_and_is_reported_and_withdrawn() {
    let place = damaged().await;
    let problems = StoreFile::open(&place.file).unwrap().check().unwrap().problems;
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        ["run `a`: the message `2` in its inbox cannot be decoded: it has no matching checksum"]
    );
    let store = place.open();
    let run = "a".into();
    assert_eq!(store.pending(&run, 10).await.unwrap(), [note("1", 1), note("3", 3)]);
    let listed = store.pending_messages(Some(&run), 10).await.unwrap();
    let damaged: Vec<_> = listed.iter().map(|listed| (&*listed.id, listed.message.is_none())).collect();
    assert_eq!(damaged, [("1", false), ("2", true), ("3", false)]);
    for message in [note("1", 1), note("3", 3)] {
        store.settle(&run, &message, Ok(())).await.unwrap();
    }
    let error = store.pending(&run, 10).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(workflow_core::errors::chain(&error).contains("message `2`"), "{error:?}");
    // A later one is not behind it.
    store.put_message("a", note("4", 4)).await.unwrap();
    assert_eq!(store.pending(&run, 10).await.unwrap(), [note("4", 4)]);
    assert!(store.withdraw_message("a", "2").await.unwrap());
    assert!(!store.withdraw_message("a", "2").await.unwrap());
    assert!(store.check().await.unwrap().is_sound());
    store.settle(&run, &note("4", 4), Ok(())).await.unwrap();
    assert!(store.pending(&run, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_index_of_ids_that_is_damaged_is_found_and_settles_messages_all_the_same() {
    for damage in [None, Some(&b"\0\0\0\0\0\0\0\x09"[..]), Some(b"?")] {
        let place = Place::new();
        let store = place.open();
        store.put_message("a", note("1", 1)).await.unwrap();
        drop(store);
        let database = Database::open(&place.file).unwrap();
        let transaction = database.begin_write().unwrap();
        let (mut ids, key) = (transaction.open_table(table("workflow.inbox_ids")).unwrap(), b"\0\0\0\x01a1");
        match damage {
            None => drop(ids.remove(&key[..]).unwrap()),
            Some(order) => drop(ids.insert(&key[..], order).unwrap()),
        }
        drop(ids);
        transaction.commit().unwrap();
        drop(database);
        let store = place.open();
        let problems = store.check().await.unwrap().problems;
        assert!(problems.iter().any(|problem| problem.to_string().contains("in the index of ids")));
        store.settle(&"a".into(), &note("1", 1), Ok(())).await.unwrap();
        assert!(store.pending(&"a".into(), 1).await.unwrap().is_empty());
        assert!(store.check().await.unwrap().is_sound(), "{damage:?}");
    }
}

#[tokio::test]
async fn keys_and_refused_messages_that_are_none_are_found() {
    let place = Place::new();
    let store = place.open();
    store.put_message("a", note("1", 1)).await.unwrap();
    store.settle(&"a".into(), &note("1", 1), Err("no".to_owned())).await.unwrap();
    drop(store);
    let database = Database::open(&place.file).unwrap();
    let transaction = database.begin_write().unwrap();
    for (name, key) in
        [("workflow.inbox", &b"x"[..]), ("workflow.inbox_ids", b"y"), ("workflow.refused", &[0; 8])]
    {
        transaction.open_table(table(name)).unwrap().insert(key, &b"z"[..]).unwrap();
    }
    transaction.open_table(table("workflow.refused")).unwrap().insert(&b"w"[..], &b"z"[..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let store = place.open();
    let problems: Vec<_> = store.check().await.unwrap().problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "table `workflow.inbox` has a key that is none: x",
            "table `workflow.inbox_ids` has a key that is none: y",
            "the refused message 0 cannot be decoded: it has no matching checksum",
            "table `workflow.refused` has a key that is none: w",
        ]
    );
    assert!(store.refused_messages().await.unwrap().is_empty());
    // Both go on.
    store.put_message("a", note("2", 2)).await.unwrap();
    store.settle(&"a".into(), &note("2", 2), Err("no".to_owned())).await.unwrap();
    assert_eq!(store.refused_messages().await.unwrap().len(), 1);
}
