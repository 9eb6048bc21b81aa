//! Files of earlier formats: `formats` has a file of each, which is never written anew. Every later version reads them.

use std::collections::BTreeSet;
use std::time::Duration;

use expect_test::expect;
use futures::executor::block_on;
use redb::{Database, ReadableDatabase as _, TableDefinition};
use workflow_core::RunStatus;
use workflow_core::store::{
    ContextScope, ContextStore, EngineId, EventStore, Position, Record, RunQuery, StoreError, StoredRun,
    Write,
};
use workflow_redb::{RedbStore, StoreFile};

use crate::disk::Disk;
use crate::fixtures::{Place, batch, moment};

/// A file of format 1: runs of two workflows, open, waiting and ended, with settled and recent writes, and contexts.
fn of_format_1() -> Place {
    let place = Place::new();
    std::fs::write(&place.file, include_bytes!("formats/1.redb")).unwrap();
    place
}

/// A line for each run, with the kinds of its records.
fn lines(runs: &[StoredRun], read: impl Fn(&StoredRun) -> Result<Vec<Record>, StoreError>) -> String {
    let line = |stored: &StoredRun| {
        let StoredRun { id, end, run } = stored;
        let records = read(stored).unwrap();
        let kind = |record: &Record| match serde_json::to_value(record).unwrap() {
            serde_json::Value::Object(fields) => fields.keys().next().unwrap().replace("event_", ""),
            other => other.to_string(),
        };
        let kinds: Vec<_> = records.iter().map(kind).collect();
        let since = run.started.duration_since(moment()).unwrap().as_millis();
        let owner = run.owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
        format!("{id} {} {:?} +{since}{owner} {end}: {}\n", run.workflow, run.status, kinds.join(" "))
    };
    runs.iter().map(line).collect()
}

fn read_only(place: &Place) -> String {
    let file = StoreFile::open(&place.file).unwrap();
    let runs = file.runs(&RunQuery::new()).unwrap();
    lines(&runs, |stored| file.read(&stored.id, Position(0), 100))
}

#[test]
fn a_file_of_format_1_is_read_without_being_changed() {
    let place = of_format_1();
    let before = place.bytes();
    expect![[r"
        completed Orders Completed +0 3: run_started logged run_ended
        failed Orders Failed +0 3: run_started logged run_ended
        other-0 Others Running +6000 of engine-1 2: run_started logged
        other-1 Others Running +4500 of engine-1 2: run_started logged
        other-2 Others Running +3000 of engine-1 2: run_started logged
        other-3 Others Running +1500 of engine-1 2: run_started logged
        recent-0 Orders Running +0 6: run_started logged logged logged logged logged
        recent-1 Orders Running +0 6: run_started logged logged logged logged logged
        recent-2 Orders Running +0 6: run_started logged logged logged logged logged
        recent-3 Orders Running +0 6: run_started logged logged logged logged logged
        recent-4 Orders Running +0 6: run_started logged logged logged logged logged
        recent-5 Orders Cancelled +0 7: run_started logged logged logged logged logged run_ended
        settled Orders Waiting +0 5: run_started logged logged logged run_waiting
    "]]
    .assert_eq(&read_only(&place));
    assert!(StoreFile::open(&place.file).unwrap().check().unwrap().is_sound());
    assert!(place.bytes() == before, "a file that is opened for reading stays unchanged");
}

/// Queries in both orders, by each filter.
fn queries() -> Vec<RunQuery> {
    let filtered = [
        RunQuery::new(),
        RunQuery::new().workflow("Others"),
        RunQuery::new().open(),
        RunQuery::new().status(RunStatus::Cancelled).status(RunStatus::Failed),
        RunQuery::new().thread("user-4"),
        RunQuery::new().run("other-2"),
        RunQuery::new().not_owned_by([EngineId::new("engine-1")]),
        RunQuery::new().older_than(moment() + Duration::from_secs(4), "").at_most(3),
    ];
    filtered.into_iter().flat_map(|query| [query.clone(), query.newest_first()]).collect()
}

// The index of starts is only in the file that was opened for writing.
#[tokio::test]
async fn queries_of_a_file_of_format_1_are_answered_before_and_after_it_is_brought_to_format_2() {
    let place = of_format_1();
    let file = StoreFile::open(&place.file).unwrap();
    let before: Vec<_> = queries().iter().map(|query| file.runs(query).unwrap()).collect();
    drop(file);
    assert_eq!(before[3].iter().map(|stored| stored.id.as_str()).next(), Some("other-0"), "the newest");
    assert!(before[8].is_empty(), "runs of earlier releases have no thread in their summaries");
    let store = RedbStore::open(&place.file).unwrap();
    for (query, before) in queries().iter().zip(before) {
        assert_eq!(store.runs(query).await.unwrap(), before, "{query:?}");
    }
    drop(store);
    let after = place.bytes();
    drop(RedbStore::open(&place.file).unwrap());
    assert_eq!(place.bytes().len(), after.len(), "it is brought to format 2 once");
}

#[test]
fn a_power_cut_while_a_file_is_brought_to_format_2_loses_nothing() {
    let image = include_bytes!("formats/1.redb");
    let place = of_format_1();
    let file = StoreFile::open(&place.file).unwrap();
    let runs = file.runs(&RunQuery::new()).unwrap();
    let mut cut = 0;
    for seed in 0..200 {
        let (mut random, disk) = (fastrand::Rng::with_seed(seed), Disk::holding(image.to_vec()));
        let open = |disk: &Disk| RedbStore::builder().open_backend("disk", disk.clone());
        disk.cut_after(random.usize(1..20));
        drop(open(&disk));
        cut += usize::from(disk.is_off());
        let store = open(&Disk::holding(disk.after_the_cut(&mut random))).unwrap();
        let newest = RunQuery::new().newest_first();
        assert_eq!(block_on(store.runs(&RunQuery::new())).unwrap(), runs, "seed {seed}");
        assert_eq!(block_on(store.runs(&newest)).unwrap(), file.runs(&newest).unwrap(), "seed {seed}");
        assert!(block_on(store.check()).unwrap().is_sound(), "seed {seed}");
    }
    assert!(cut > 50, "{cut} cuts came before the end of the opening");
}

/// The first bytes of the values of a table.
fn first_bytes(place: &Place, table: &str) -> BTreeSet<u8> {
    let database = Database::open(&place.file).unwrap();
    let table = TableDefinition::<&[u8], &[u8]>::new(table);
    let table = database.begin_read().unwrap().open_table(table).unwrap();
    table.range::<&[u8]>(..).unwrap().map(|entry| entry.unwrap().1.value()[0]).collect()
}

#[tokio::test]
async fn records_of_format_1_get_checksums_where_they_are_written_again() {
    let place = of_format_1();
    let before = read_only(&place);
    drop(RedbStore::open(&place.file).unwrap());
    assert_eq!(first_bytes(&place, "workflow.records"), [b'{'].into(), "opening writes no record again");
    let (store, copy) = (RedbStore::open(&place.file).unwrap(), Place::new());
    store.snapshot(&copy.file).await.unwrap();
    for table in ["workflow.records", "workflow.runs"] {
        assert_eq!(first_bytes(&copy, table), [0x84].into(), "a copy has checksums");
    }
    assert_eq!(read_only(&copy), before);
    store.compact().await.unwrap();
    drop(store);
    let moved = first_bytes(&place, "workflow.records");
    assert_eq!(moved, [b'{', 0x84].into(), "writes that move get checksums");
    assert_eq!(read_only(&place), before);
}

#[tokio::test]
async fn a_file_of_format_1_is_written_on() {
    let place = of_format_1();
    let before = read_only(&place);
    let store = RedbStore::open(&place.file).unwrap();
    let runs = store.runs(&RunQuery::new()).await.unwrap();
    let read = |stored: &StoredRun| block_on(store.read(&stored.id, Position(0), 100));
    assert_eq!(lines(&runs, read), before);
    assert!(store.check().await.unwrap().is_sound());
    for scope in [ContextScope::Run("settled".into()), ContextScope::Thread("user-4".into())] {
        let value = store.get(&scope, "rounds").await.unwrap().unwrap();
        assert_eq!(value.to_json().unwrap(), serde_json::json!([1, 2]));
    }
    for stored in runs {
        let end = stored.end.0;
        let write = Write { run: stored.run.running_again(), ..batch(end..end + 2) };
        store.append(&stored.id, stored.end, write).await.unwrap();
        assert_eq!(store.read(&stored.id, Position(0), 100).await.unwrap().len() as u64, end + 2);
    }
    assert!(store.check().await.unwrap().is_sound());
}
