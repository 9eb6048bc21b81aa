//! Retention, compaction and snapshots.

use std::time::{Duration, SystemTime};

use workflow_core::RunStatus;
use workflow_core::store::{ContextScope, ContextStore, ContextValue, EventStore, Position, RunQuery};
use workflow_redb::{RedbStore, Retention, StoreFile, WorkError};

use crate::fixtures::{Place, ids, last_batch, put, put_ended, text};

/// One open run, three completed and one failed, in the order of their ids.
async fn five(store: &RedbStore) {
    put(store, "a-open", 0..2).await.unwrap();
    for run in ["b", "c", "d"] {
        put_ended(store, run, RunStatus::Completed).await;
    }
    put_ended(store, "e-failed", RunStatus::Failed).await;
}

async fn after(kept: Retention) -> Vec<String> {
    let place = Place::new();
    let store = place.open();
    five(&store).await;
    let removed = store.retain(&kept).await.unwrap();
    let left = ids(&store).await;
    assert_eq!(removed + left.len() as u64, 5);
    assert!(store.check().await.unwrap().is_sound());
    left
}

#[tokio::test]
async fn open_runs_are_always_kept() {
    assert_eq!(after(Retention::none()).await, ["a-open"]);
}

#[tokio::test]
async fn child_runs_are_kept_until_every_run_above_them_has_ended() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..2).await.unwrap();
    for run in ["a/ask-x1.1", "a/ask-x1.1/look-x2.1", "a-b"] {
        put_ended(&store, run, RunStatus::Completed).await;
    }
    assert_eq!(store.retain(&Retention::none()).await.unwrap(), 1);
    assert_eq!(ids(&store).await, ["a", "a/ask-x1.1", "a/ask-x1.1/look-x2.1"]);
    store.append(&"a".into(), Position(2), last_batch(RunStatus::Completed)).await.unwrap();
    assert_eq!(store.retain(&Retention::none()).await.unwrap(), 3);
}

#[tokio::test]
async fn the_last_runs_that_ended_are_kept() {
    assert_eq!(after(Retention::none().last(2)).await, ["a-open", "d", "e-failed"]);
    assert_eq!(after(Retention::none().last(9)).await.len(), 5);
}

#[tokio::test]
async fn what_failed_is_kept_on_demand() {
    assert_eq!(after(Retention::none().failed()).await, ["a-open", "e-failed"]);
}

#[tokio::test]
async fn what_ended_a_while_ago_is_removed_and_no_sooner() {
    let hour = Duration::from_hours(1);
    let within = Retention::none().within(hour);
    assert_eq!(after(within.clone()).await.len(), 5);
    let later = SystemTime::now() + 2 * hour;
    assert_eq!(after(within.now(later)).await, ["a-open"]);
}

#[tokio::test]
async fn retention_is_about_one_workflow_on_demand() {
    assert_eq!(after(Retention::none().workflow("Others")).await.len(), 5);
    assert_eq!(after(Retention::none().workflow("Orders")).await, ["a-open"]);
}

#[tokio::test]
async fn a_run_that_is_removed_takes_its_context_along() {
    let place = Place::new();
    let store = place.open();
    put_ended(&store, "a", RunStatus::Completed).await;
    let (run, thread) = (ContextScope::Run("a".into()), ContextScope::Thread("a".into()));
    for scope in [&run, &thread] {
        store.set(scope, "k", Some(ContextValue::new(1))).await.unwrap();
    }
    store.retain(&Retention::none()).await.unwrap();
    assert!(store.get(&run, "k").await.unwrap().is_none());
    assert!(store.get(&thread, "k").await.unwrap().is_some());
}

#[tokio::test]
async fn many_runs_are_removed_in_turns() {
    let place = Place::new();
    let store = place.open();
    let runs: Vec<String> = (0..150).map(|number| format!("run-{number:03}")).collect();
    let all = runs.iter().map(|run| put_ended(&store, run, RunStatus::Completed));
    futures::future::join_all(all).await;
    assert_eq!(store.retain(&Retention::none().last(10)).await.unwrap(), 140);
    assert_eq!(ids(&store).await.len(), 10);
}

#[tokio::test]
async fn a_file_is_smaller_when_what_was_removed_is_given_back() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..2).await.unwrap();
    for number in 0..20 {
        put(&store, &format!("long-{number}"), 0..1_000).await.unwrap();
    }
    for number in 0..20 {
        assert!(store.remove(&format!("long-{number}").into()).await.unwrap());
    }
    let before = place.file.metadata().unwrap().len();
    while store.compact().await.unwrap() {}
    let after = place.file.metadata().unwrap().len();
    assert!(after < before / 2, "{after} bytes are left of {before}");
    assert_eq!(ids(&store).await, ["a"]);
    put(&store, "a", 2..3).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_blocks_no_other_call() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..500).await.unwrap();
    let reads = (0..50).map(|_| store.read(&"a".into(), Position(0), 500));
    let reads: Vec<_> = reads.map(tokio::spawn).collect();
    let compacts: Vec<_> = (0..3)
        .map(|_| {
            tokio::spawn({
                let store = store.clone();
                async move { store.compact().await }
            })
        })
        .collect();
    let appends = (500..520).map(|at| at..at + 1);
    for positions in appends {
        put(&store, "a", positions).await.unwrap();
    }
    for read in reads {
        assert_eq!(read.await.unwrap().unwrap().len(), 500);
    }
    for compact in compacts {
        compact.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_snapshot_is_a_store_with_what_was_there() {
    let place = Place::new();
    let store = place.open();
    five(&store).await;
    let scope = ContextScope::Thread("user-4".into());
    store.set(&scope, "greeted", Some(ContextValue::new(true))).await.unwrap();
    let backup = place.folder.path().join("backup.redb");
    store.snapshot(&backup).await.unwrap();
    put(&store, "f", 0..2).await.unwrap();

    assert!(StoreFile::open(&backup).unwrap().check().unwrap().is_sound());
    let copy = RedbStore::open(&backup).unwrap();
    assert_eq!(ids(&copy).await, ["a-open", "b", "c", "d", "e-failed"]);
    assert_eq!(copy.runs(&RunQuery::new().open()).await.unwrap().len(), 1);
    let both = [&store, &copy].map(|store| store.read(&"b".into(), Position(0), 10));
    let [here, there] = both;
    assert_eq!(text(&here.await.unwrap()), text(&there.await.unwrap()));
    assert!(copy.get(&scope, "greeted").await.unwrap().unwrap().get::<bool>().unwrap());
    put(&copy, "a-open", 2..3).await.unwrap();
}

#[tokio::test]
async fn a_snapshot_overwrites_nothing_and_leaves_nothing_behind() {
    let place = Place::new();
    let store = place.open();
    let backup = place.folder.path().join("backup.redb");
    std::fs::write(&backup, "precious").unwrap();
    let error = store.snapshot(&backup).await.unwrap_err();
    assert!(matches!(&error, WorkError::Exists { path } if **path == *backup), "{error:?}");
    assert_eq!(std::fs::read_to_string(&backup).unwrap(), "precious");

    let error = store.snapshot(place.folder.path().join("missing/backup.redb")).await.unwrap_err();
    assert!(matches!(error, WorkError::Snapshot { .. }), "{error:?}");
    assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 2);
}

#[cfg(unix)]
#[tokio::test]
async fn a_snapshot_and_a_compacted_file_have_the_mode_of_the_store() {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for wanted in [0o600, 0o640] {
        let place = Place::new();
        let store = place.open();
        std::fs::set_permissions(&place.file, std::fs::Permissions::from_mode(wanted)).unwrap();
        put(&store, "a", 0..500).await.unwrap();
        let backup = place.folder.path().join("backup.redb");
        store.snapshot(&backup).await.unwrap();
        assert_eq!(mode(&backup), wanted);
        assert!(store.remove(&"a".into()).await.unwrap());
        store.compact().await.unwrap();
        assert_eq!(mode(&place.file), wanted);
    }
}
