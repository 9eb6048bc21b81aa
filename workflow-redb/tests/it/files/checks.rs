//! The findings of checks: a file is changed behind the store's back, and the report names the damage.

use redb::{Database, TableDefinition};
use tokio::runtime::Builder;
use workflow_core::RunStatus;
use workflow_core::store::{
    ContextScope, ContextStore, ContextValue, EngineId, EventStore, Position, Record, RunQuery, RunSummary,
    StoreError, StoredRun, WaitingFor, Write,
};
use workflow_redb::{Problem, StoreFile};

use crate::fixtures::{Place, moment, put, put_ended, record};

type Bytes = &'static [u8];

const RECORDS: TableDefinition<Bytes, Bytes> = TableDefinition::new("workflow.records");
const RUNS: TableDefinition<Bytes, Bytes> = TableDefinition::new("workflow.runs");
const OPEN: TableDefinition<Bytes, Bytes> = TableDefinition::new("workflow.open");
const INDEX: TableDefinition<Bytes, Bytes> = TableDefinition::new("workflow.index");
const CONTEXTS: TableDefinition<Bytes, Bytes> = TableDefinition::new("workflow.contexts");

/// The key of a record of the run `a`.
fn key(position: u8) -> Vec<u8> {
    [b"\0\0\0\x01a\0\0\0\0\0\0\0".as_slice(), &[position]].concat()
}

/// A store with the runs `a`, of four records, and `b`, which has ended, and a value in the context of `a`.
fn sound() -> Place {
    let place = Place::new();
    let store = place.open();
    Builder::new_current_thread().build().unwrap().block_on(async {
        put(&store, "a", 0..4).await.unwrap();
        put_ended(&store, "b", RunStatus::Completed).await;
        let scope = ContextScope::Run("a".into());
        store.set(&scope, "k", Some(ContextValue::new(1))).await.unwrap();
        // Moves all records to their final table.
        store.compact().await.unwrap();
    });
    drop(store);
    place
}

/// Puts a value into a table, or removes it.
fn change(place: &Place, table: TableDefinition<Bytes, Bytes>, key: &[u8], value: Option<&[u8]>) {
    let database = Database::open(&place.file).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(table).unwrap();
        match value {
            Some(value) => drop(table.insert(key, value).unwrap()),
            None => assert!(table.remove(key).unwrap().is_some(), "there is nothing to remove"),
        }
    }
    transaction.commit().unwrap();
}

fn value(place: &Place, table: TableDefinition<Bytes, Bytes>, key: &[u8]) -> Vec<u8> {
    use redb::ReadableDatabase as _;
    let database = Database::open(&place.file).unwrap();
    let table = database.begin_read().unwrap().open_table(table).unwrap();
    table.get(key).unwrap().unwrap().value().to_vec()
}

/// The entry of a run without its checksum, as a file of format 1 has it.
fn entry(place: &Place, run: &[u8]) -> Vec<u8> {
    value(place, RUNS, run).split_off(5)
}

/// The problems that both checks find, as text.
fn problems(place: &Place) -> Vec<String> {
    let report = StoreFile::open(&place.file).unwrap().check().unwrap();
    let runtime = Builder::new_current_thread().build().unwrap();
    let store = place.open();
    assert_eq!(runtime.block_on(store.check()).unwrap(), report);
    assert_eq!(report.is_sound(), report.problems.is_empty());
    report.problems.iter().map(Problem::to_string).collect()
}

#[test]
fn a_sound_file_has_no_problems_and_is_counted() {
    let place = sound();
    let report = StoreFile::open(&place.file).unwrap().check().unwrap();
    assert!(report.is_sound());
    assert_eq!((report.runs, report.records, report.context_values), (2, 7, 1));
}

#[test]
fn a_run_that_waits_and_is_kept_waits_still() {
    let place = sound();
    let store = place.open();
    let waits_for = WaitingFor::default();
    let waits = Record::RunWaiting { waits_for: waits_for.clone(), at: moment() };
    let records = vec![waits, Record::RunKept { at: moment() }];
    let run = RunSummary::begun_by(&record(0)).unwrap().waiting(waits_for);
    let written = store.append(&"a".into(), Position(4), Write { records, run });
    Builder::new_current_thread().build().unwrap().block_on(written).unwrap();
    drop(store);
    assert_eq!(problems(&place), Vec::<String>::new());
}

// S82
#[test]
fn a_run_that_waits_and_learns_of_the_end_of_a_child_waits_still() {
    let place = sound();
    let store = place.open();
    let waits_for = WaitingFor::default();
    let waits = Record::RunWaiting { waits_for: waits_for.clone(), at: moment() };
    let records = vec![waits, Record::ChildrenEnded { children: Vec::new(), at: moment() }];
    let run = RunSummary::begun_by(&record(0)).unwrap().waiting(waits_for);
    let written = store.append(&"a".into(), Position(4), Write { records, run });
    Builder::new_current_thread().build().unwrap().block_on(written).unwrap();
    drop(store);
    assert_eq!(problems(&place), Vec::<String>::new());
}

#[test]
fn a_gap_is_found_and_read_as_one() {
    let place = sound();
    change(&place, RECORDS, &key(2), None);
    assert_eq!(problems(&place), ["run `a`: position 2 is missing, the next is 3"]);
    let file = StoreFile::open(&place.file).unwrap();
    let error = file.read(&"a".into(), Position(0), 10).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { position: Position(2), .. }), "{error:?}");
}

#[test]
fn records_that_are_missing_at_the_end_are_found() {
    let place = sound();
    change(&place, RECORDS, &key(3), None);
    assert_eq!(problems(&place), ["run `a` ends at 3, and its summary says at 4"]);
    let file = StoreFile::open(&place.file).unwrap();
    assert_eq!(file.read(&"a".into(), Position(0), 3).unwrap().len(), 3);
    for from in [0, 3] {
        let error = file.read(&"a".into(), Position(from), 10).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { position: Position(3), .. }), "{error:?}");
    }
    assert!(file.read(&"a".into(), Position(4), 10).unwrap().is_empty(), "from the end");
}

#[test]
fn a_record_that_cannot_be_decoded_is_found_and_read_as_one() {
    let place = sound();
    change(&place, RECORDS, &key(1), Some(b"{\"event_logged\":"));
    let found = problems(&place);
    assert!(found[0].starts_with("run `a`: the record at 1 cannot be decoded: EOF"), "{found:?}");
    assert_eq!(found.len(), 1);
    let file = StoreFile::open(&place.file).unwrap();
    let error = file.read(&"a".into(), Position(0), 10).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { position: Position(1), .. }), "{error:?}");
    assert_eq!(file.read(&"a".into(), Position(2), 10).unwrap().len(), 2);
}

#[test]
fn a_run_without_a_summary_is_found() {
    let place = sound();
    change(&place, RUNS, b"a", None);
    assert_eq!(
        problems(&place),
        [
            "run `a` has records and no summary",
            "run `a` is wrongly in the index of runs that have not ended",
            "run `a` is wrongly in the index by start",
        ],
    );
    let file = StoreFile::open(&place.file).unwrap();
    assert!(matches!(file.read(&"a".into(), Position(0), 10), Err(StoreError::Corrupt { .. })));
}

#[test]
fn a_summary_that_cannot_be_decoded_is_found_and_its_run_is_listed_as_its_journal_tells() {
    let place = sound();
    let mut bytes = entry(&place, b"a");
    bytes.pop();
    change(&place, RUNS, b"a", Some(&bytes));
    let found = problems(&place);
    assert!(found[0].starts_with("run `a`: the summary cannot be decoded: EOF"), "{found:?}");
    change(&place, RUNS, b"a", Some(&[0; 17]));
    let too_short = "run `a`: the summary cannot be decoded: it has no entry of 18 bytes and more";
    assert_eq!(problems(&place), [too_short]);
    change(&place, RUNS, b"a", Some(b"other"));
    assert_eq!(problems(&place), ["run `a`: the summary cannot be decoded: it has no matching checksum"]);
    let file = StoreFile::open(&place.file).unwrap();
    let told = StoredRun { id: "a".into(), end: Position(4), run: RunSummary::begun_by(&record(0)).unwrap() };
    for query in [RunQuery::new(), RunQuery::new().newest_first(), RunQuery::new().run("a")] {
        let listed = file.runs(&query).unwrap();
        assert!(listed.contains(&told), "{listed:?}");
    }
    // What is there can be saved. Whether it is all, nobody knows.
    assert_eq!(file.read(&"a".into(), Position(0), 10).unwrap().len(), 4);
    let error = file.read(&"a".into(), Position(4), 10).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { position: Position(4), .. }), "{error:?}");
    assert_eq!(file.run(&"a".into()).unwrap().as_ref(), Some(&told));
    let listed = file.runs(&RunQuery::new()).unwrap();
    assert_eq!(listed[0], told);
    assert_eq!((listed.len(), listed[1].run.status), (2, RunStatus::Completed));
    assert_eq!(file.runs(&RunQuery::new().open()).unwrap(), [told]);
    drop(file);
    change(&place, RUNS, b"b", Some(b"short"));
    let listed = StoreFile::open(&place.file).unwrap().runs(&RunQuery::new()).unwrap();
    assert_eq!((listed[1].end, listed[1].run.status), (Position(3), RunStatus::Completed));
}

/// A key that is no id belongs to no run; the others are listed.
#[test]
fn an_unreadable_run_is_listed_as_open() {
    let place = sound();
    change(&place, RUNS, b"a", Some(b"short"));
    change(&place, RECORDS, &key(0), Some(b"{"));
    change(&place, RUNS, b"\xff", Some(b"short"));
    let listed = StoreFile::open(&place.file).unwrap().runs(&RunQuery::new()).unwrap();
    assert_eq!(listed.iter().map(|stored| stored.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((&*listed[0].run.workflow, listed[0].run.status), ("", RunStatus::Running));
}

#[test]
fn a_damaged_run_blocks_no_other() {
    let place = sound();
    change(&place, RUNS, b"a", Some(b"short"));
    let store = place.open();
    Builder::new_current_thread().build().unwrap().block_on(async {
        let (damaged, whole) = tokio::join!(put(&store, "a", 4..5), put(&store, "c", 0..2));
        assert!(matches!(damaged, Err(StoreError::Corrupt { .. })), "{damaged:?}");
        whole.unwrap();
        assert!(store.remove(&"a".into()).await.unwrap());
        assert!(store.check().await.unwrap().is_sound());
    });
}

#[test]
fn a_summary_that_does_not_agree_with_its_journal_is_found() {
    let place = sound();
    let before = entry(&place, b"b");
    let json = String::from_utf8_lossy(&before[18..]).into_owned();
    let with = |json: String| [&before[..18], json.as_bytes()].concat();
    let of_index = ["run `b` is missing in the index by start", "run `b` is wrongly in the index by start"];
    change(&place, RUNS, b"b", Some(&with(json.replace("completed", "failed"))));
    let differs = "run `b`: its summary says Failed, and its last record says Completed";
    assert_eq!(problems(&place), [differs, of_index[0], of_index[1]]);
    change(&place, RUNS, b"b", Some(&with(json.replace("Orders", "Others"))));
    let differs = "run `b`: its first record does not begin the run that its summary tells of";
    assert_eq!(problems(&place), [differs, of_index[0], of_index[1]]);
    // The record says `user-4`.
    change(&place, RUNS, b"b", Some(&with(json.replace("\"status\"", "\"thread\":\"ada\",\"status\""))));
    assert_eq!(problems(&place), [differs, of_index[0]]);
}

/// A store with an open run of this engine.
fn of_engine(owner: &str) -> Place {
    let place = Place::new();
    let store = place.open();
    let run = RunSummary::running("Orders", moment()).owned_by(Some(EngineId::new(owner)));
    let write = Write { records: (0..2).map(record).collect(), run };
    Builder::new_current_thread().build().unwrap().block_on(async {
        store.append(&"a".into(), Position(0), write).await.unwrap();
    });
    drop(store);
    place
}

/// Open runs that none of these engines owns.
fn not_owned_by(place: &Place, owner: &str) -> Vec<String> {
    let query = RunQuery::new().open().not_owned_by([EngineId::new(owner)]);
    let runs = StoreFile::open(&place.file).unwrap().runs(&query).unwrap();
    runs.iter().map(|run| run.id.to_string()).collect()
}

#[test]
fn the_index_of_open_runs_alone_tells_whose_they_are() {
    let place = of_engine("engine-1");
    assert_eq!(not_owned_by(&place, "engine-1"), [""; 0]);
    assert_eq!(not_owned_by(&place, "engine"), ["a"]);
    // Where it has no owner, the entry has one.
    change(&place, OPEN, b"a", Some(b""));
    assert_eq!(not_owned_by(&place, "engine-1"), [""; 0]);
    assert_eq!(problems(&place), [""; 0]);
    // An entry that cannot be read has none.
    change(&place, RUNS, b"a", Some(b"?"));
    assert_eq!(not_owned_by(&place, "engine-1"), ["a"]);
    change(&place, OPEN, b"a", Some(b"engine-1"));
    assert_eq!(not_owned_by(&place, "engine-1"), [""; 0], "the entry is not looked at");
}

#[test]
fn an_index_that_names_another_engine_is_found() {
    let place = of_engine("engine-1");
    change(&place, OPEN, b"a", Some(b"engine-2"));
    let differs = "run `a`: the index of runs that have not ended names another engine than its summary";
    assert_eq!(problems(&place), [differs]);
}

#[test]
fn an_index_that_does_not_agree_is_found() {
    let place = sound();
    change(&place, OPEN, b"a", None);
    change(&place, OPEN, b"b", Some(b""));
    change(&place, OPEN, b"c", Some(b""));
    assert_eq!(
        problems(&place),
        [
            "run `a` is missing in the index of runs that have not ended",
            "run `b` is wrongly in the index of runs that have not ended",
            "run `c` is wrongly in the index of runs that have not ended",
        ],
    );
    assert!(StoreFile::open(&place.file).unwrap().runs(&RunQuery::new().open()).unwrap().is_empty());
}

#[test]
fn an_index_by_start_that_does_not_agree_is_found_and_lists_no_run_twice() {
    let place = sound();
    // The key of an open run that started at this second.
    let key = |run: &str, state: &[u8], second: u64| {
        let length = u32::try_from(state.len()).unwrap().to_be_bytes();
        [&[0][..], &length, state, &second.to_be_bytes(), &[0; 4], run.as_bytes()].concat()
    };
    change(&place, INDEX, &key("a", b"open", 1_700_000_000), None);
    change(&place, INDEX, &key("b", b"open", 1_700_000_000), Some(b""));
    change(&place, INDEX, &key("b", b"completed", 1_700_000_001), Some(b""));
    change(&place, INDEX, &key("c", b"failed", 1_700_000_001), Some(b""));
    change(&place, INDEX, b"\x07", Some(b""));
    assert_eq!(
        problems(&place),
        [
            "run `a` is missing in the index by start",
            r"table `workflow.index` has a key that is none: \x07",
            "run `b` is wrongly in the index by start",
            "run `c` is wrongly in the index by start",
        ],
    );
    let file = StoreFile::open(&place.file).unwrap();
    let newest = file.runs(&RunQuery::new().newest_first()).unwrap();
    assert_eq!(newest.into_iter().map(|stored| stored.id).collect::<Vec<_>>(), ["b".into()]);
}

#[test]
fn keys_and_values_that_are_none_are_found() {
    let place = sound();
    change(&place, RECORDS, b"\0\0\0\x09a", Some(b"{}"));
    change(&place, CONTEXTS, b"\x07", Some(b"1"));
    change(&place, CONTEXTS, b"\0\0\0\0\x01ak", Some(b"[1"));
    let found = problems(&place);
    assert_eq!(found[0], r"table `workflow.records` has a key that is none: \x00\x00\x00\ta");
    assert!(
        found[1].starts_with("the value `k` of the context of run a cannot be decoded: EOF"),
        "{found:?}"
    );
    assert_eq!(found[2], r"table `workflow.contexts` has a key that is none: \x07");
    assert_eq!(found.len(), 3);
}

#[test]
fn problems_beyond_a_thousand_are_counted() {
    let place = sound();
    let database = Database::open(&place.file).unwrap();
    let transaction = database.begin_write().unwrap();
    for number in 0..1_500_u32 {
        let key = number.to_be_bytes();
        transaction.open_table(OPEN).unwrap().insert(&key[..], &[][..]).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    let report = StoreFile::open(&place.file).unwrap().check().unwrap();
    assert_eq!((report.problems.len(), report.more_problems), (1_000, 500));
}

#[test]
fn a_value_that_could_not_be_read_again_is_not_written() {
    let place = sound();
    let store = place.open();
    let runtime = Builder::new_current_thread().build().unwrap();
    let scope = ContextScope::Run("a".into());
    for (depth, is_kept) in [(127, true), (128, false)] {
        let deep = (0..depth).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        let set = runtime.block_on(store.set(&scope, "k", Some(ContextValue::from_json(deep.clone()))));
        assert_eq!(set.is_ok(), is_kept, "{depth} deep: {set:?}");
        let there = runtime.block_on(store.get(&scope, "k")).unwrap().unwrap().to_json().unwrap();
        assert_eq!(there == deep, is_kept);
    }
}

#[tokio::test]
async fn the_index_of_open_runs_follows_their_summaries() {
    let place = Place::new();
    let store = place.open();
    put(&store, "goes-on", 0..2).await.unwrap();
    put(&store, "goes-on", 2..3).await.unwrap();
    put_ended(&store, "ended", RunStatus::Completed).await;
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    let open = store.runs(&RunQuery::new().open()).await.unwrap();
    assert_eq!(open.into_iter().map(|run| run.id).collect::<Vec<_>>(), ["goes-on".into()]);
}
