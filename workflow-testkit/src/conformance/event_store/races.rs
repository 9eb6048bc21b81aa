//! Atomicity: many callers at once, and each call as a whole.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::{JoinSet, yield_now};
use workflow_core::store::{EventStore, StoreError};

use super::journal::{Journal, assert_conflict};
use super::samples::number;
use super::subject::Subject;

/// How many callers there are at a time, and how often each of them calls.
const CALLERS: u64 = 8;
const CALLS: u64 = 25;

/// How many records are in a batch.
const BATCH: u64 = 4;

pub fn of_concurrent_appends_at_one_position_exactly_one_succeeds<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        for round in 0..CALLS {
            let (begin, end) = (round * BATCH, (round + 1) * BATCH);
            let mut callers = JoinSet::new();
            for _ in 0..CALLERS {
                let journal = journal.clone();
                callers.spawn(async move { journal.try_put(begin, begin..end).await });
            }
            let returned: Vec<Result<(), StoreError>> = callers.join_all().await;
            let demand = "of any number of appends at one position exactly one succeeds";
            let taken = returned.iter().filter(|returned| returned.is_ok()).count();
            assert_eq!(taken, 1, "{demand}: {CALLERS} at {begin} at the same time returned {returned:?}");
            for refused in returned.iter().filter(|returned| returned.is_err()) {
                assert_conflict(refused, begin, end, demand);
            }
            journal.assert_ends_at(end, demand).await;
        }
    });
}

pub fn concurrent_writers_of_several_runs_do_not_disturb_each_other<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let mut writers = JoinSet::new();
        for caller in 0..CALLERS {
            writers.spawn(write(journal.beside(caller)));
        }
        writers.join_all().await;
        for caller in 0..CALLERS {
            let demand = "concurrent writers of several runs do not disturb each other";
            journal.beside(caller).assert_ends_at(CALLS * BATCH, demand).await;
        }
    });
}

pub fn a_remove_leaves_nothing_of_an_append_at_the_same_time<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let demand = "whichever comes first, a remove leaves nothing of an append at the same time";
        for round in 0..CALLS {
            let journal = Journal::new(&store);
            journal.put(0..BATCH).await;
            let mut appends = JoinSet::new();
            let appended = journal.clone();
            appends.spawn(async move { appended.try_put(BATCH, BATCH..2 * BATCH).await });
            // In some rounds the append has begun by now, in others it has not.
            for _ in 0..round % 5 {
                yield_now().await;
            }
            assert!(journal.remove().await, "{demand}: there was a run to remove");
            for refused in appends.join_all().await.iter().filter(|returned| returned.is_err()) {
                assert_conflict(refused, BATCH, 0, demand);
            }
            journal.assert_ends_at(0, demand).await;
        }
    });
}

/// Writes a whole journal, batch by batch.
async fn write(journal: Journal) {
    for begin in (0..CALLS).map(|round| round * BATCH) {
        journal.put(begin..begin + BATCH).await;
        yield_now().await;
    }
}

pub fn nobody_reads_half_of_a_batch<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        meanwhile(Journal::new(&store), |journal| async move {
            let read: Vec<u64> = journal.all(1_000).await.iter().map(number).collect();
            let end = read.len() as u64;
            assert_eq!(
                read,
                (0..end).collect::<Vec<_>>(),
                "a journal is read in its order while it is written"
            );
            let is_whole = end.is_multiple_of(BATCH);
            assert!(
                is_whole,
                "nobody sees a part of a batch: of batches of {BATCH} there were {end} records"
            );
        })
        .await;
    });
}

pub fn nobody_lists_a_batch_without_its_summary<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        meanwhile(Journal::new(&store), |journal| async move {
            let Some(listed) = journal.listed().await else { return };
            let end = listed.end.0;
            let demand = "a batch is in the journal together with its summary, while it is written too";
            assert!(end.is_multiple_of(BATCH) && end > 0, "{demand}: listed to end at {end}");
            assert_eq!(listed, journal.stored(end), "{demand}: a run that ends at {end}");
            let behind = journal.read(end - 1, 1).await;
            assert_eq!(behind.len(), 1, "{demand}: a run that was listed to end at {end}");
        })
        .await;
    });
}

/// Reads a journal repeatedly from several threads while it is written.
async fn meanwhile<L: Future<Output = ()> + Send + 'static>(
    journal: Journal,
    look: impl Fn(Journal) -> L + Copy + Send + 'static,
) {
    let is_over = Arc::<AtomicBool>::default();
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        let (journal, is_over) = (journal.clone(), Arc::clone(&is_over));
        readers.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                look(journal.clone()).await;
                yield_now().await;
            }
            look(journal).await;
        });
    }
    let written = tokio::spawn(write(journal)).await;
    is_over.store(true, Ordering::Relaxed);
    readers.join_all().await;
    written.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
}

pub fn a_call_that_returned_comes_before_calls_that_begin_later<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        for end in 1..=CALLS {
            journal.put(end - 1..end).await;
            elsewhere(&journal, end).await;
        }
        journal.remove().await;
        elsewhere(&journal, 0).await;
    });
}

/// Reads a journal from a separate task, which may run on another thread than the writer's.
async fn elsewhere(journal: &Journal, end: u64) {
    let journal = journal.clone();
    let demand = "a call takes effect before it returns, and a later one sees it from any thread";
    let looked = tokio::spawn(async move { journal.assert_ends_at(end, demand).await }).await;
    looked.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
}
