//! Checks of the runs that `retain` removes and keeps. Every check names one workflow, so that it removes no other
//! runs.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use workflow_core::RunStatus;
use workflow_core::store::{ContextScope, ContextValue, EventStore, Retention};

use super::journal::Journal;
use super::listing::ids;
use super::samples::{STATUSES, notes};
use super::subject::Subject;

const HOUR: Duration = Duration::from_hours(1);

/// Longer than the precision to which a store may round the time of a batch.
const APART: Duration = Duration::from_millis(20);

impl Journal {
    /// A retention that keeps no ended run of this check.
    fn none(&self) -> Retention {
        Retention::none().workflow(self.workflow.clone())
    }

    async fn retain(&self, kept: &Retention) -> u64 {
        self.store.retain(kept).await.unwrap_or_else(|error| self.reported("retain", &error))
    }

    /// Begins the run beside this one, and ends it.
    async fn ended(&self, end: &str, status: RunStatus) -> Self {
        let journal = self.beside(end);
        journal.put(0..2).await;
        journal.put_records(2, notes(2..3), status).await;
        journal
    }

    /// Asserts that these runs of the check remain, in the order of their ids.
    async fn assert_left(&self, left: &[&str], demand: &str) {
        let left: Vec<_> = left.iter().map(|end| self.beside(end).run).collect();
        assert_eq!(ids(&self.all_runs(self.query()).await), left, "{demand}");
    }
}

pub fn retain_removes_runs_that_have_ended_and_says_how_many<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let demand = "`retain` removes the runs that have ended and that no rule keeps, whole";
        for end in ["a", "b", "c"] {
            journal.ended(end, RunStatus::Completed).await;
        }
        let says = "`retain` says how many runs it has removed";
        assert_eq!(journal.retain(&journal.none()).await, 3, "{says}");
        for end in ["a", "b", "c"] {
            journal.beside(end).assert_ends_at(0, demand).await;
        }
        assert_eq!(journal.retain(&journal.none()).await, 0, "{says} when it is repeated");
        journal.beside("b").put(0..2).await;
        journal.beside("b").assert_ends_at(2, "the id of a run that `retain` has removed is free").await;
    });
}

pub fn retain_keeps_runs_that_go_on<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let open = journal.beside("b");
        open.put(0..3).await;
        for end in ["a", "c"] {
            journal.ended(end, RunStatus::Cancelled).await;
        }
        journal.retain(&journal.none()).await;
        open.assert_ends_at(3, "`retain` keeps runs that have not ended").await;
        open.put(3..4).await;
    });
}

pub fn retain_keeps_children_as_long_as_a_run_above_them_goes_on<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let parent = journal.beside("a");
        parent.put(0..2).await;
        for end in ["a/ask-x1.1", "a/ask-x1.1/look-x2.1", "a-b"] {
            journal.ended(end, RunStatus::Completed).await;
        }
        journal.retain(&journal.none()).await;
        let demand =
            "`retain` keeps the children of a run that has not ended, at any depth, and nothing else";
        journal.assert_left(&["a", "a/ask-x1.1", "a/ask-x1.1/look-x2.1"], demand).await;
        parent.put_records(2, notes(2..3), RunStatus::Completed).await;
        journal.retain(&journal.none()).await;
        journal.assert_left(&[], "`retain` removes children once the runs above them have ended").await;
    });
}

pub fn retain_keeps_the_last_runs_that_ended<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        // Begun in another order than that of their ids, and ended in a third one.
        for end in ["c", "a", "d", "b"] {
            journal.beside(end).put(0..2).await;
        }
        for end in ["d", "a", "b", "c"] {
            journal.beside(end).put_records(2, notes(2..3), RunStatus::Completed).await;
            tokio::time::sleep(APART).await;
        }
        journal.retain(&journal.none().last(9)).await;
        journal.assert_left(&["a", "b", "c", "d"], "`retain` keeps as many as are to be kept").await;
        journal.retain(&journal.none().last(2)).await;
        let demand = "`retain` keeps the last runs, by when their latest batches were written";
        journal.assert_left(&["b", "c"], demand).await;
    });
}

pub fn retain_keeps_what_ended_a_short_while_ago<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        journal.ended("a", RunStatus::Completed).await;
        let within = journal.none().within(HOUR);
        journal.retain(&within).await;
        journal.assert_left(&["a"], "`retain` keeps what ended within the time").await;
        journal.retain(&within.now(SystemTime::now() + 2 * HOUR)).await;
        journal.assert_left(&[], "`retain` removes what ended before the time").await;
    });
}

pub fn retain_keeps_what_failed_on_demand<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        for status in STATUSES.into_iter().filter(|status| status.is_ended()) {
            journal.ended(&status.to_string(), status).await;
        }
        let unfinished = journal.beside("unfinished");
        unfinished.put(0..2).await;
        let mut run = unfinished.summary(3).ended(RunStatus::Cancelled);
        run.incomplete_clean_up = Arc::new(vec!["refund".into()]);
        unfinished.put_summary(2, run).await;
        journal.retain(&journal.none().failed()).await;
        let demand = "`retain` keeps what neither completed nor was cancelled, and every unfinished clean-up";
        journal.assert_left(&["failed", "stalled", "timed out", "unfinished"], demand).await;
    });
}

pub fn retain_is_about_one_workflow_on_demand<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let other = journal.of_workflow(format!("{} and more", journal.workflow));
        for journal in [&journal, &other] {
            let end = if journal.workflow == other.workflow { "z" } else { "a" };
            journal.ended(end, RunStatus::Completed).await;
        }
        journal.retain(&journal.none().last(1)).await;
        let demand = "the runs of other workflows are kept, and do not count";
        journal.assert_left(&["a"], demand).await;
        journal.retain(&journal.none()).await;
        journal.assert_left(&[], "`retain` removes the runs of the workflow that it is about").await;
        other.assert_left(&["z"], demand).await;
    });
}

pub fn contexts_that_a_store_hands_out_are_its_own_and_go_with_the_runs<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let Some(contexts) = store.contexts() else { return };
        let journal = Journal::new(&store);
        let ended = journal.ended("a", RunStatus::Completed).await;
        let open = journal.beside("b");
        open.put(0..2).await;
        for journal in [&ended, &open] {
            let scope = ContextScope::Run(journal.run.clone());
            let set = contexts.set(&scope, "count", Some(ContextValue::new(1))).await;
            assert!(set.is_ok(), "a value can be set in contexts that a store hands out: {set:?}");
        }
        let again = store.contexts();
        let again = again.unwrap_or_else(|| panic!("a store that hands out contexts does so at every call"));
        let is_there = async |journal: &Journal| {
            let scope = ContextScope::Run(journal.run.clone());
            let value = again.get(&scope, "count").await;
            value.unwrap_or_else(|error| panic!("a context cannot be read: {error}")).is_some()
        };
        assert!(is_there(&ended).await, "every call of `contexts` hands out the same contexts");
        journal.retain(&journal.none()).await;
        assert!(!is_there(&ended).await, "`retain` removes the contexts of the runs that it removes");
        assert!(is_there(&open).await, "`retain` leaves contexts of open runs alone");
    });
}
