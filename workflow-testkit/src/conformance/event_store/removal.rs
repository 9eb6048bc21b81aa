//! Checks of what `remove` removes and keeps.

use workflow_core::store::EventStore;

use super::journal::{Journal, assert_conflict};
use super::subject::Subject;

pub fn a_run_that_was_removed_is_gone<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        journal.put(0..3).await;
        journal.put(3..5).await;
        journal.remove().await;
        journal.assert_ends_at(0, "`remove` removes a run with its journal and its summary").await;
    });
}

pub fn remove_says_whether_there_was_a_run<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        assert!(!journal.remove().await, "`remove` returns `false` where there was no run");
        journal.put(0..1).await;
        assert!(journal.remove().await, "`remove` returns `true` where there was a run");
        assert!(!journal.remove().await, "`remove` returns `false` when it is repeated");
        journal.assert_ends_at(0, "removing twice leaves what removing once leaves").await;
    });
}

pub fn remove_leaves_other_runs_alone<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        journal.put(0..1).await;
        let name = journal.run.as_str();
        let alike = [format!("{name}2"), format!("{name}/a"), format!("{name}%"), name[1..].to_owned()];
        let others = alike.map(|name| journal.of_run(name));
        for other in &others {
            other.put(0..2).await;
        }
        journal.remove().await;
        for other in others {
            let demand = format!("`remove` of {name} leaves other runs alone");
            other.assert_ends_at(2, &demand).await;
            other.put(2..3).await;
            other.assert_ends_at(3, &demand).await;
        }
    });
}

pub fn the_id_of_a_run_that_was_removed_is_free<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let demand = "the id of a run that was removed is free: its journal begins at position 0 again";
        for end in [5, 2, 3] {
            let begun = journal.try_put(0, 0..end).await;
            begun.unwrap_or_else(|error| panic!("{demand}, but: {error}"));
            journal.assert_ends_at(end, demand).await;
            journal.remove().await;
        }
    });
}

pub fn who_still_writes_to_a_run_that_was_removed_gets_a_conflict<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let demand = "who still writes to a run that was removed gets a conflict";
        journal.put(0..3).await;
        journal.remove().await;
        assert_conflict(&journal.try_put(3, 3..4).await, 3, 0, demand);
        journal.assert_ends_at(0, demand).await;
        // The same if the id has been used again by then.
        journal.put(0..2).await;
        assert_conflict(&journal.try_put(3, 3..4).await, 3, 2, demand);
        journal.assert_ends_at(2, demand).await;
    });
}
