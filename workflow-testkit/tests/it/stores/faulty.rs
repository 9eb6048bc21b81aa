//! A faulty store's effects on calls, and its record of them.

use std::sync::Arc;
use std::time::SystemTime;

use futures::executor::block_on;
use futures::future::poll_immediate;
use workflow_core::RunStatus;
use workflow_core::store::{
    EventStore, MemoryStore, Position, Record, RunQuery, RunSummary, StoreError, StoreFuture, Write,
};
use workflow_testkit::conformance::event_store::{Subject, reading};
use workflow_testkit::{Fault, FaultyStore, Injected, StoreCall};

use crate::stores::conformance::broken_stores::failure;

/// A batch of two records.
fn batch() -> Write {
    let now = SystemTime::UNIX_EPOCH;
    let record = || Record::RunEnded {
        status: RunStatus::Completed,
        step: None,
        error: None,
        deadline: None,
        origin: None,
        at: now,
    };
    Write { records: vec![record(), record()], run: RunSummary::running("Orders", now) }
}

fn append(store: &impl EventStore, at: u64) -> StoreFuture<()> {
    store.append(&"r".into(), Position(at), batch())
}

fn length(store: &impl EventStore) -> usize {
    block_on(store.read(&"r".into(), Position(0), 100)).unwrap().len()
}

/// A store with one fault at its first append, and the wrapped store.
fn with(fault: Fault) -> (FaultyStore<Arc<MemoryStore>>, Arc<MemoryStore>) {
    let kept = Arc::new(MemoryStore::default());
    (FaultyStore::new(Arc::clone(&kept)).fail(StoreCall::Append, 1, fault), kept)
}

#[test]
fn a_call_that_is_refused_does_nothing() {
    let (store, kept) = with(Fault::Refused);
    let error = block_on(append(&store, 0)).unwrap_err();
    let StoreError::Unavailable { source } = &error else { panic!("{error:?}") };
    assert_eq!(source.to_string(), "the call was refused, on purpose");
    assert_eq!(length(&kept), 0);
    block_on(append(&store, 0)).unwrap();
    assert_eq!(length(&kept), 2);
}

#[test]
fn a_call_whose_answer_is_lost_is_done() {
    let (store, kept) = with(Fault::AnswerLost);
    let error = block_on(append(&store, 0)).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert_eq!(length(&kept), 2);
    let again = block_on(append(&store, 0)).unwrap_err();
    assert!(matches!(again, StoreError::Conflict { found: Position(2), .. }), "{again:?}");
}

#[test]
fn a_late_call_is_done_and_answered_after_the_given_polls() {
    let (store, kept) = with(Fault::Late(3));
    let mut late = append(&store, 0);
    for _ in 0..3 {
        assert!(block_on(poll_immediate(&mut late)).is_none());
        assert_eq!(length(&kept), 2);
    }
    block_on(late).unwrap();
}

#[test]
fn a_conflict_and_damage_change_nothing() {
    let (store, kept) = with(Fault::Conflict);
    let error = block_on(append(&store, 0)).unwrap_err();
    assert!(matches!(error, StoreError::Conflict { expected: Position(0), found: Position(1) }), "{error:?}");
    assert_eq!(length(&kept), 0);
    let (store, kept) = with(Fault::Corrupt);
    let error = block_on(append(&store, 0)).unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt { run, .. } if run.as_str() == "r"), "{error:?}");
    assert_eq!(length(&kept), 0);
}

#[test]
fn a_torn_batch_is_answered_and_never_whole() {
    for (kept_of_it, length_of_it) in [(0, 0), (1, 1), (2, 1), (9, 1)] {
        let (store, kept) = with(Fault::Torn(kept_of_it));
        block_on(append(&store, 0)).unwrap();
        assert_eq!(length(&kept), length_of_it);
    }
}

#[test]
fn the_suite_finds_torn_batches() {
    let torn = || FaultyStore::seeded(MemoryStore::default(), 1).one_in(1).among([Fault::Torn(1)]);
    let whole = || FaultyStore::new(MemoryStore::default());
    reading::a_batch_is_read_back_whole_and_in_its_order(Subject::new(whole));
    let found = failure(|| {
        reading::a_batch_is_read_back_whole_and_in_its_order(Subject::new(torn));
    });
    assert!(found.contains("whole"), "{found}");
}

#[test]
fn calls_count_per_kind_and_faults_are_reported() {
    let store = FaultyStore::new(MemoryStore::default())
        .fail(StoreCall::Read, 2, Fault::Refused)
        .fail(StoreCall::Runs, 1, Fault::AnswerLost)
        .fail(StoreCall::Remove, 1, Fault::AnswerLost);
    block_on(append(&store, 0)).unwrap();
    assert!(block_on(store.read(&"r".into(), Position(0), 9)).is_ok());
    assert!(block_on(store.runs(&RunQuery::new())).is_err());
    assert!(block_on(store.read(&"r".into(), Position(0), 9)).is_err());
    assert!(block_on(store.remove(&"r".into())).is_err());
    assert!(!block_on(store.clone().remove(&"r".into())).unwrap(), "it was removed, and nobody was told");
    let told: Vec<String> = store.injected().iter().map(Injected::to_string).collect();
    assert_eq!(
        told,
        ["AnswerLost at Runs 1", "Refused at Read 2 of run `r`", "AnswerLost at Remove 1 of run `r`"]
    );
}

/// The faults of 200 reads.
fn drawn(store: &FaultyStore<MemoryStore>) -> Vec<Injected> {
    for _ in 0..200 {
        drop(store.read(&"r".into(), Position(0), 9));
    }
    store.injected()
}

#[test]
fn a_seed_gives_the_same_faults_each_time_and_another_one_others() {
    let seeded = |seed| FaultyStore::seeded(MemoryStore::default(), seed);
    let faults = drawn(&seeded(7));
    assert_eq!(faults, drawn(&seeded(7)));
    assert_ne!(faults, drawn(&seeded(8)));
    assert!((5..60).contains(&faults.len()), "one in ten of 200, about: {}", faults.len());
    assert!(
        faults.iter().all(|injected| !matches!(injected.fault, Fault::Conflict)),
        "reads have no conflicts"
    );
    assert_eq!(drawn(&seeded(7).one_in(0)).len(), 200);
    assert_eq!(drawn(&seeded(7).one_in(1).at_most(3)).len(), 3);
    assert_eq!(drawn(&seeded(7).one_in(1).among([Fault::Conflict])), []);
}

#[test]
fn a_fault_that_a_call_cannot_have_is_refused_where_it_is_written() {
    let store = || FaultyStore::new(MemoryStore::default());
    let said = failure(|| {
        drop(store().fail(StoreCall::Read, 1, Fault::Conflict));
    });
    assert_eq!(said, "`Conflict` is no fault of `Read`");
}
