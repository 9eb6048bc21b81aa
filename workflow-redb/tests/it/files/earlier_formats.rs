//! Files of earlier formats: `formats` has a file of each, which is never written anew. Every later version reads them.

use expect_test::expect;
use workflow_core::store::{
    ContextScope, ContextStore, EventStore, Position, Record, RunQuery, StoreError, StoredRun, Write,
};
use workflow_redb::{RedbStore, StoreFile};

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
    expect![[r#"
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
    "#]]
    .assert_eq(&read_only(&place));
    assert!(StoreFile::open(&place.file).unwrap().check().unwrap().is_sound());
    assert!(place.bytes() == before, "a file that is opened for reading stays unchanged");
}

#[tokio::test]
async fn a_file_of_format_1_is_written_on() {
    let place = of_format_1();
    let before = read_only(&place);
    let store = RedbStore::open(&place.file).unwrap();
    let runs = store.runs(&RunQuery::new()).await.unwrap();
    let read = |stored: &StoredRun| futures::executor::block_on(store.read(&stored.id, Position(0), 100));
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
