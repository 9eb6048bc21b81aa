//! Engines on a store: their files are sound, and readable when they are gone.

use std::sync::Arc;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::store::{EventStore, Position, RunQuery, StoreError};
use workflow_core::{Pause, ResumeError, RunOptions, RunStatus};
use workflow_redb::{RedbStore, StoreFile};

use crate::fixtures::{Place, listed, text};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin {
    fails: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Half(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u32);

struct Work;

#[workflow]
impl Work {
    #[step]
    async fn split(&self, begin: &Begin, rounds: ThreadContext) -> Result<Half, std::io::Error> {
        let round = rounds.increment("rounds", 1).await.map_err(std::io::Error::other)?;
        if begin.fails {
            return Err(std::io::Error::other("it fails, on purpose"));
        }
        Ok(Half(u32::try_from(round).unwrap_or_default()))
    }

    #[step]
    async fn join(&self, half: &Half) -> Done {
        Done(half.0 * 2)
    }
}

fn engine(store: &RedbStore) -> Engine {
    Engine::builder().workflow(Work).store(store.clone()).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_engines_write_is_sound_and_can_be_read_when_they_are_gone() {
    let place = Place::new();
    let store = place.open();
    let engine = engine(&store);
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..40 {
        let engine = engine.clone();
        runs.spawn(async move {
            let options = RunOptions::new().id(format!("run-{number:02}")).thread("user-4");
            let begin = Begin { fails: number % 4 == 0 };
            let handle = engine.start_with::<Work>(begin, options).await.unwrap();
            drop(handle.outcome().await);
        });
    }
    runs.join_all().await;
    assert!(store.check().await.unwrap().is_sound(), "{:?}", store.check().await);
    let history = engine.history(&"run-01".into()).await.unwrap();
    drop((engine, store));

    let mut file = StoreFile::open(&place.file).unwrap();
    assert_eq!(text(&file.read(&"run-01".into(), Position(0), 1_000).unwrap()), text(&history));
    let stored = file.runs(&RunQuery::new()).unwrap();
    let failed = stored.iter().filter(|stored| stored.run.status == RunStatus::Failed).count();
    let completed = stored.iter().filter(|stored| stored.run.status == RunStatus::Completed).count();
    assert_eq!((stored.len(), failed, completed), (40, 10, 30));
    assert!(file.runs(&RunQuery::new().open()).unwrap().is_empty());
    assert_eq!(file.check().unwrap().problems, []);
}

/// Waits for a note.
struct Waits;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(u32);

#[workflow]
impl Waits {
    #[step]
    async fn end(&self, _begin: &Begin, note: &Note) -> Done {
        Done(note.0)
    }
}

/// Overwrites the entry of a run in a table.
fn damage(place: &Place, table: &'static str, key: &[u8], value: &[u8]) {
    let table: redb::TableDefinition<&[u8], &[u8]> = redb::TableDefinition::new(table);
    let database = redb::Database::open(&place.file).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert(key, value).unwrap();
    transaction.commit().unwrap();
}

fn waiting(store: &RedbStore) -> Engine {
    Engine::builder().workflow(Waits).store(store.clone()).build().unwrap()
}

/// Starts three runs that wait, and returns the end of the first one's journal.
async fn three_wait(place: &Place) -> Position {
    let store = place.open();
    let engine = waiting(&store);
    for id in ["a", "b", "c"] {
        let options = RunOptions::new().id(id);
        engine.start_with::<Waits>(Begin { fails: false }, options).await.unwrap().settled().await;
    }
    // Moves all records to their final table.
    store.compact().await.unwrap();
    listed(&store).await[0].end
}

// S87
#[tokio::test]
async fn a_restart_over_a_file_reads_and_writes_nothing_of_runs_that_wait() {
    let place = Place::new();
    let store = place.open();
    let first = waiting(&store);
    for id in ["a", "b", "c"] {
        let options = RunOptions::new().id(id);
        first.start_with::<Waits>(Begin { fails: false }, options).await.unwrap().settled().await;
    }
    first.shut_down(Duration::from_secs(5)).await;
    drop((first, store));
    // As an earlier release has written it, which knew no table of a summary.
    let earlier = |entry: &[u8]| {
        let at = entry.windows(9).position(|bytes| bytes == b",\"table\":").unwrap();
        let end = at + 9 + entry[at + 9..].iter().position(|byte| *byte == b',').unwrap();
        // Without a checksum, as in files of format 1.
        [&entry[5..at], &entry[end..]].concat()
    };
    let entry = entry_of(&place, b"b");
    damage(&place, "workflow.runs", b"b", &earlier(&entry));
    let before = ["a", "c"].map(|run| entry_of(&place, run.as_bytes()));

    let store = place.open();
    let engine = waiting(&store);
    let resumed = engine.resume_open_runs().await.unwrap();
    assert_eq!(resumed.runs, ["a".into(), "b".into(), "c".into()]);
    assert!(engine.find(&"b".into()).is_some() && engine.find(&"a".into()).is_none(), "only `b` is loaded");
    engine.shut_down(Duration::from_secs(5)).await;
    drop((engine, store));
    assert_eq!(["a", "c"].map(|run| entry_of(&place, run.as_bytes())), before);

    // From here on the list has the table of `b` too.
    let store = place.open();
    let engine = waiting(&store);
    assert_eq!(engine.resume_open_runs().await.unwrap().runs.len(), 3);
    assert!(engine.find(&"b".into()).is_none());
    for id in ["a", "b", "c"] {
        let run = engine.attach::<Waits>(id).await.unwrap();
        run.send(Note(7)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(7));
    }
    assert!(store.check().await.unwrap().is_sound());
}

/// The entry of a run.
fn entry_of(place: &Place, run: &[u8]) -> Vec<u8> {
    let table: redb::TableDefinition<&[u8], &[u8]> = redb::TableDefinition::new("workflow.runs");
    let database = redb::Database::open(&place.file).unwrap();
    let transaction = redb::ReadableDatabase::begin_read(&database).unwrap();
    transaction.open_table(table).unwrap().get(run).unwrap().unwrap().value().to_vec()
}

#[test]
fn damaged_runs_are_reported_and_the_others_continue() {
    let place = Place::new();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The runs hold the store until their runtime is gone.
    let end = runtime().block_on(three_wait(&place));
    // `a` has lost only its summary, `b` also its beginning.
    let header = [&end.0.to_be_bytes()[..], &[0; 10]].concat();
    damage(&place, "workflow.runs", b"a", &header);
    damage(&place, "workflow.runs", b"b", b"short");
    damage(&place, "workflow.records", b"\0\0\0\x01b\0\0\0\0\0\0\0\0", b"{");

    runtime().block_on(go_on_but_for_b(&place.open()));
}

async fn go_on_but_for_b(store: &RedbStore) {
    let engine = waiting(store);
    let resumed = engine.resume_open_runs().await.unwrap();
    assert_eq!(resumed.runs, ["a".into(), "c".into()]);
    let [(refused, ResumeError::Store(StoreError::Corrupt { run, .. }))] = &*resumed.refused else {
        panic!("{:?}", resumed.refused)
    };
    assert!(refused.as_str() == "b" && run == refused);
    for id in ["a", "c"] {
        let run = engine.attach::<Waits>(id).await.unwrap();
        run.send(Note(7)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(7));
    }
    // Resumed runs are whole again.
    let found: Vec<String> = store.check().await.unwrap().problems.iter().map(ToString::to_string).collect();
    assert!(found.iter().all(|problem| problem.starts_with("run `b`")), "{found:?}");
}

#[tokio::test]
async fn what_runs_of_a_thread_share_outlives_the_store() {
    let place = Place::new();
    for round in 1..=3 {
        let store = place.open();
        let options = RunOptions::new().thread("user-4");
        let handle = engine(&store).start_with::<Work>(Begin { fails: false }, options).await.unwrap();
        let Done(doubled) = handle.outcome().await.unwrap();
        assert_eq!(doubled, round * 2);
    }
    assert_eq!(place.open().runs(&RunQuery::new()).await.unwrap().len(), 3);
}

// S61
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_is_listed_as_such_and_its_file_is_sound() {
    let place = Place::new();
    let store = place.open();
    let engine = waiting(&store);
    let run = engine.start_with::<Waits>(Begin { fails: false }, RunOptions::new().id("a")).await.unwrap();
    let is_listed = async |status| {
        run.settled().await;
        while store.runs(&RunQuery::new()).await.unwrap()[0].run.status != status {
            tokio::task::yield_now().await;
        }
        let report = store.check().await.unwrap();
        assert!(report.is_sound(), "{status}: {report:?}");
    };
    is_listed(RunStatus::Waiting).await;
    for how in [Pause::AfterRunning, Pause::Now] {
        run.pause(how).await.unwrap();
        is_listed(RunStatus::Paused).await;
    }
    run.unpause().await.unwrap();
    is_listed(RunStatus::Waiting).await;
    run.pause(Pause::AfterRunning).await.unwrap();
    run.send(Note(3)).await.unwrap();
    is_listed(RunStatus::Paused).await;
    run.unpause().await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(3));
    is_listed(RunStatus::Completed).await;
}

// S61
#[tokio::test]
async fn the_file_of_an_engine_that_ended_beside_a_paused_run_is_sound() {
    let place = Place::new();
    let store = Arc::new(place.open());
    let engine = Engine::builder().store(Arc::clone(&store)).workflow(Waits).build().unwrap();
    let run = engine.start::<Waits>(Begin { fails: false }).await.unwrap();
    run.pause(Pause::AfterRunning).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
    engine.shut_down(Duration::from_secs(1)).await;
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
}
