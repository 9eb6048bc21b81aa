//! Cancellation: a call whose future is dropped takes effect completely or not at all, and obstructs no later call. The
//! number of polls before the drop makes no difference, so the checks try every number up to a bound.

use workflow_core::store::{EventStore, Position, StoreError};

use super::journal::Journal;
use super::samples::number;
use super::subject::Subject;
use crate::conformance::stage::abandon;

/// The most polls before a call is dropped.
const MOST_POLLS: u32 = 12;

pub fn an_append_that_is_dropped_is_done_or_not_done<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        for (polls, begin) in (0..=MOST_POLLS).flat_map(|polls| [(polls, 0), (polls, 2)]) {
            let journal = Journal::new(&store);
            if begin > 0 {
                journal.put(0..begin).await;
            }
            let is_done = abandon(journal.try_put(begin, begin..begin + 5), polls).await;
            let end = end(&journal).await;
            let is_whole = end == begin + 5 || (end == begin && !is_done);
            let demand = "an `append` that is dropped is done or not done";
            assert!(is_whole, "{demand}: after {polls} polls at {begin}, a batch of 5 left it at {end}");
            append_next(&journal, end).await;
        }
    });
}

/// Appends at the end; the dropped call may still take effect before that.
async fn append_next(journal: &Journal, end: u64) {
    let demand = "an append that is dropped is in nobody's way";
    let found = match journal.try_put(end, end..end + 1).await {
        Err(StoreError::Conflict { found: Position(found), .. }) if found == end + 5 => {
            journal.put(found..found + 1).await;
            found
        }
        Err(error) => panic!("{demand}, but the next one returned: {error}"),
        Ok(()) => end,
    };
    journal.assert_ends_at(found + 1, demand).await;
}

pub fn a_remove_that_is_dropped_is_done_or_not_done<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        for polls in 0..=MOST_POLLS {
            let journal = Journal::new(&store);
            journal.put(0..3).await;
            journal.put(3..5).await;
            let is_done = abandon(store.remove(&journal.run), polls).await;
            let end = end(&journal).await;
            let is_whole = end == 0 || (end == 5 && !is_done);
            let demand = "a `remove` that is dropped is done or not done";
            assert!(is_whole, "{demand}: after {polls} polls, of a journal of 5 it left {end}");
            journal.remove().await;
            begin_again(&journal).await;
        }
    });
}

/// Begins a removed run again; the dropped call may still take effect after that.
async fn begin_again(journal: &Journal) {
    journal.put(0..2).await;
    if end(journal).await != 2 {
        journal.put(0..2).await;
        journal.assert_ends_at(2, "a `remove` that is dropped is in nobody's way").await;
    }
}

pub fn a_read_or_a_listing_that_is_dropped_is_in_nobodys_way<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        for (polls, end) in (0..=MOST_POLLS).zip(1..) {
            journal.put(end - 1..end).await;
            abandon(store.read(&journal.run, Position(0), 100), polls).await;
            abandon(store.runs(&journal.query()), polls).await;
            journal.assert_ends_at(end, "a read or a listing that is dropped is in nobody's way").await;
        }
    });
}

/// The end of the journal, by its records and its summary. A dropped call may take effect between the two reads, but
/// only once.
async fn end(journal: &Journal) -> u64 {
    for _ in 0..3 {
        let before = journal.listed().await;
        let numbers: Vec<u64> = journal.all(100).await.iter().map(number).collect();
        if journal.listed().await != before {
            continue;
        }
        let end = numbers.len() as u64;
        let demand = "a call that is dropped is done or not done, the journal and the summary alike";
        let expected = (end > 0).then(|| journal.stored(end));
        assert_eq!(before, expected, "{demand}: what is listed of a journal of {end}");
        return end;
    }
    panic!("a call that is dropped is done or not done, but the run changes again and again");
}
