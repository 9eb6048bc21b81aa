//! Checks of listings: the runs, their order and their summaries.

use workflow_core::store::{EventStore, RunQuery, StoredRun};
use workflow_core::{RunId, RunStatus};

use super::ids::ALIKE;
use super::journal::Journal;
use super::samples::{STATUSES, notes};
use super::subject::Subject;

pub fn a_run_is_listed_as_its_latest_batch_left_it<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        for status in STATUSES {
            let journal = Journal::new(&store);
            journal.put(0..3).await;
            let demand = "a run is listed with the summary of its latest batch and the end of its journal";
            assert_eq!(journal.listed().await, Some(journal.stored(3)), "{demand}");
            journal.put_records(3, notes(3..5), status).await;
            let mut expected = journal.stored(5);
            expected.run.status = status;
            assert_eq!(journal.listed().await, Some(expected), "{demand}");
        }
    });
}

pub fn runs_are_listed_in_the_order_of_the_bytes_of_their_ids<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let mut begun = Vec::new();
        // The runs are begun and written in other orders than that of their ids.
        for end in ALIKE.iter().rev() {
            let journal = journal.beside(end);
            journal.put(0..1).await;
            begun.push(journal);
        }
        begun[7].put(1..2).await;
        let mut expected: Vec<RunId> = begun.into_iter().map(|journal| journal.run).collect();
        expected.sort_by(|one, other| one.as_str().as_bytes().cmp(other.as_str().as_bytes()));
        let demand = "runs are listed in the order of the bytes of their ids";
        assert_eq!(ids(&journal.runs(&journal.query()).await), expected, "{demand}");
    });
}

pub fn runs_that_have_ended_are_not_open<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        for (number, status) in STATUSES.into_iter().enumerate() {
            let run = journal.beside(number);
            run.put(0..1).await;
            run.put_records(1, notes(1..2), status).await;
        }
        // Ended by its first batch.
        journal.beside("at once").put_records(0, notes(0..1), RunStatus::Completed).await;
        let open = ids(&journal.runs(&journal.query().open()).await);
        let expected: Vec<RunId> = (STATUSES.into_iter().enumerate())
            .filter(|(_, status)| !status.is_ended())
            .map(|(number, _)| journal.beside(number).run)
            .collect();
        assert_eq!(open, expected, "a run is open until its summary says that it has ended");
        let all = journal.runs(&journal.query()).await;
        assert_eq!(
            all.len(),
            STATUSES.len() + 1,
            "runs that have ended are listed unless only open ones are asked for"
        );
        for (number, status) in STATUSES.into_iter().enumerate().skip(1) {
            let demand = "a query for statuses lists the runs that have one of them";
            let two = journal.query().status(STATUSES[0]).status(status);
            let mut expected = vec![journal.beside(0).run, journal.beside(number).run];
            expected.extend((status == RunStatus::Completed).then(|| journal.beside("at once").run));
            assert_eq!(ids(&journal.runs(&two).await), expected, "{demand}");
        }
        // A redriven run continues behind its end.
        let failed = STATUSES.into_iter().position(|status| status == RunStatus::Failed);
        let again = journal.beside(failed.expect("a run can fail"));
        again.put_records(2, notes(2..3), STATUSES[0]).await;
        let open = ids(&journal.runs(&journal.query().open()).await);
        let mut expected = expected;
        expected.push(again.run);
        assert_eq!(open, expected, "a run is open again if its summary says so");
    });
}

pub fn runs_are_listed_by_the_whole_name_of_their_workflow<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let stem = Journal::new(&store);
        for (number, end) in ALIKE.iter().enumerate() {
            stem.beside(number).of_workflow(format!("{}{end}", stem.workflow)).put(0..1).await;
        }
        for (number, end) in ALIKE.iter().enumerate() {
            let query = RunQuery::new().workflow(format!("{}{end}", stem.workflow));
            let demand = "only runs of the very workflow that is asked for are listed";
            assert_eq!(ids(&stem.runs(&query).await), [stem.beside(number).run], "{demand}: {query:?}");
        }
    });
}

pub fn a_listing_changes_nothing<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        journal.put(0..2).await;
        for query in [RunQuery::new(), journal.query(), journal.query().open().at_most(1)] {
            journal.runs(&query).await;
            journal.assert_ends_at(2, "a listing changes nothing, however often it is repeated").await;
        }
    });
}

pub(super) fn ids(runs: &[StoredRun]) -> Vec<RunId> {
    runs.iter().map(|stored| stored.id.clone()).collect()
}
