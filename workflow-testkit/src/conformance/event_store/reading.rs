//! Checks of reads: from a position, in order, in pages.

use workflow_core::store::EventStore;

use super::journal::Journal;
use super::samples::number;
use super::subject::Subject;

pub fn a_batch_is_read_back_whole_and_in_its_order<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let demand = "a batch is in the journal as a whole and in its order, behind all that came before it";
        for (begin, end) in [(0, 1), (1, 6), (6, 16)] {
            journal.put(begin..end).await;
            let numbers: Vec<u64> = journal.all(100).await.iter().map(number).collect();
            assert_eq!(numbers, (0..end).collect::<Vec<_>>(), "{demand}");
        }
    });
}

pub fn a_read_begins_at_its_position<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        journal.put(0..3).await;
        journal.put(3..7).await;
        for from in 0..7 {
            let first = journal.numbers(from, 1).await;
            assert_eq!(first, [from], "a read begins with the record at its position, within a batch too");
        }
    });
}

pub fn a_read_returns_at_most_so_many_records_and_at_least_one<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        journal.put(0..3).await;
        journal.put(3..7).await;
        for at_most in [1, 2, 3, 6, 7, 8, 1_000, usize::MAX, 0] {
            for from in 0..7 {
                let read = journal.numbers(from, at_most).await;
                let demand = format!("a read from {from} of 7 returns at most {at_most}");
                assert!(read.len() <= at_most.max(1), "{demand}, where 0 is as good as 1: {read:?}");
                assert!(!read.is_empty(), "{demand}, and at least one: the journal does not end there");
                let expected: Vec<u64> = (from..7).take(read.len()).collect();
                assert_eq!(read, expected, "{demand}, in their order and without a gap");
            }
        }
    });
}

pub fn reads_put_together_are_the_whole_journal<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        for batch in 0..5 {
            journal.put(batch * 5..batch * 5 + 5).await;
        }
        for at_a_time in [1, 2, 4, 5, 7, 24, 25, 26] {
            let numbers: Vec<u64> = journal.all(at_a_time).await.iter().map(number).collect();
            let demand = "reads that begin where the last one ended make the whole journal";
            assert_eq!(numbers, (0..25).collect::<Vec<_>>(), "{demand}, by {at_a_time} at a time");
        }
    });
}

pub fn from_behind_the_end_there_is_nothing_to_read<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        journal.put(0..3).await;
        for from in [3, 4, 1_000, u64::MAX] {
            let read = journal.numbers(from, 10).await;
            assert_eq!(
                read, [0; 0],
                "from the end on, and from behind it, there is nothing: from {from} of 3"
            );
        }
    });
}

pub fn a_run_that_is_not_there_has_no_records<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        journal.beside("2").put(0..3).await;
        for from in [0, 1, u64::MAX] {
            let read = journal.numbers(from, 10).await;
            assert_eq!(read, [0; 0], "of a run that the store does not have there are no records");
        }
        let demand = "reading a run that the store does not have does not begin one";
        journal.assert_ends_at(0, demand).await;
        journal.put(0..1).await;
        journal.assert_ends_at(1, demand).await;
    });
}

pub fn a_read_changes_nothing<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        journal.put(0..4).await;
        for from in [0, 2, 4, 0] {
            journal.read(from, 2).await;
            journal.assert_ends_at(4, "a read changes nothing, however often it is repeated").await;
        }
        journal.put(4..5).await;
        journal.assert_ends_at(5, "a read changes nothing, nor where the journal ends").await;
    });
}
