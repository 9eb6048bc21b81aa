//! Checks of appends: a journal can be written only at its end.

use workflow_core::store::EventStore;

use super::journal::{Journal, assert_conflict};
use super::subject::Subject;

pub fn a_journal_begins_at_position_0_and_only_there<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let demand = "position 0 begins a journal, and no other does";
        for at in [1, 2, 1_000, u64::MAX] {
            assert_conflict(&journal.try_put(at, 0..2).await, at, 0, demand);
            journal.assert_ends_at(0, demand).await;
        }
        journal.put(0..2).await;
        journal.assert_ends_at(2, demand).await;
    });
}

pub fn a_journal_goes_on_where_it_ends_and_nowhere_else<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let demand = "`append` takes a batch at the end of the journal, and nowhere else";
        let mut end = 0;
        for records in [3, 1, 4] {
            journal.put(end..end + records).await;
            end += records;
            for at in (0..end).chain([end + 1, end + 1_000, u64::MAX]) {
                assert_conflict(&journal.try_put(at, end..end + 1).await, at, end, demand);
            }
            journal.assert_ends_at(end, demand).await;
        }
    });
}

pub fn an_append_that_is_repeated_is_a_conflict<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let demand = "an append that is repeated is a conflict";
        journal.put(0..2).await;
        assert_conflict(&journal.try_put(0, 0..2).await, 0, 2, demand);
        journal.put(2..3).await;
        assert_conflict(&journal.try_put(2, 2..3).await, 2, 3, demand);
        journal.assert_ends_at(3, demand).await;
    });
}

pub fn a_conflict_changes_nothing<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let demand = "a conflict changes nothing, neither the journal nor the summary";
        journal.put(0..4).await;
        for at in [0, 2, 3, 5] {
            // The refused writer does not know the run, and names another workflow.
            let other = journal.of_workflow(format!("{}, by another", journal.workflow));
            assert_conflict(&other.try_put(at, at..at + 7).await, at, 4, demand);
            journal.assert_ends_at(4, demand).await;
            let listed = other.listed().await;
            assert_eq!(listed, None, "{demand}: the run as listed by the other workflow");
        }
        journal.put(4..6).await;
        journal.assert_ends_at(6, "after a conflict the journal goes on where it ended").await;
    });
}
