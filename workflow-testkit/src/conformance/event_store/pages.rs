//! Checks of pages: a listing of many runs in parts.

use std::sync::Arc;

use workflow_core::store::{EventStore, RunQuery};
use workflow_core::{RunId, RunStatus};

use super::journal::Journal;
use super::listing::ids;
use super::samples::notes;
use super::subject::Subject;

/// How many runs there are to list.
const RUNS: usize = 10;

/// Runs of one workflow, in the order of their ids. Every other one has ended.
async fn begin(store: &Arc<dyn EventStore>) -> (Journal, Vec<RunId>) {
    let journal = Journal::new(store);
    let mut runs = Vec::new();
    for number in 0..RUNS {
        let run = journal.beside(number);
        let status = if number % 2 == 0 { RunStatus::Completed } else { RunStatus::Running };
        run.put_records(0, notes(0..1), status).await;
        runs.push(run.run);
    }
    (journal, runs)
}

pub fn a_page_begins_behind_the_id_that_it_comes_after<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let (journal, runs) = begin(&store).await;
        let demand = "a page begins with the first run behind the one that it comes after, without that one";
        for (number, run) in runs.iter().enumerate() {
            let page = ids(&journal.runs(&journal.query().after(run.clone())).await);
            assert_eq!(page, runs[number + 1..], "{demand}");
            // A run that the store does not have, between this one and the next.
            let page = ids(&journal.runs(&journal.query().after(format!("{run}-"))).await);
            assert_eq!(page, runs[number + 1..], "{demand}, whether the store has that one or not");
        }
        let page = ids(&journal.runs(&journal.query().after(journal.run.clone())).await);
        assert_eq!(page, runs, "{demand}, whether the store has that one or not");
    });
}

pub fn a_page_is_shorter_than_asked_only_if_it_is_the_last<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let (journal, runs) = begin(&store).await;
        for at_most in [0, 1, 3, RUNS - 1, RUNS, RUNS + 1, usize::MAX] {
            for after in [3, 0] {
                let query = journal.query().after(runs[after].clone()).at_most(at_most);
                let rest = &runs[after + 1..];
                let page = ids(&journal.runs(&query).await);
                let demand = "a page has as many runs as were asked for, and fewer only if it is the last";
                assert_eq!(page, rest[..rest.len().min(at_most.max(1))], "{demand}: at most {at_most}");
            }
        }
    });
}

pub fn pages_put_together_list_each_run_once<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let (journal, runs) = begin(&store).await;
        for at_a_time in [1, 2, 3, 5, 9, 10, 11] {
            let demand = format!("pages of {at_a_time} list each run once");
            let all = ids(&journal.all_runs(journal.query().at_most(at_a_time)).await);
            assert_eq!(all, runs, "{demand}");
            // Without a workflow filter the listing may contain runs of others, but no other id starts like these.
            let query = RunQuery::new().after(journal.run.clone()).at_most(at_a_time);
            assert_eq!(ours(&journal, query).await, runs, "{demand}, of whichever workflow");
        }
    });
}

/// The runs from here on, of any workflow, up to the first that is not of this check.
async fn ours(journal: &Journal, mut query: RunQuery) -> Vec<RunId> {
    let mut all = Vec::new();
    loop {
        let page = ids(&journal.runs(&query).await);
        let found = page.len();
        all.extend(page.into_iter().take_while(|run| run.as_str().starts_with(journal.run.as_str())));
        match all.last() {
            Some(last) if all.len().is_multiple_of(query.page()) && found > 0 && all.len() <= RUNS => {
                query = query.after(last.clone());
            }
            _ => return all,
        }
    }
}

pub fn a_page_counts_only_the_runs_that_the_query_asks_for<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let (journal, runs) = begin(&store).await;
        // These runs are of another workflow, and between the others.
        for run in &runs {
            let other = journal.of_run(format!("{run}-")).of_workflow(format!("{}-", journal.workflow));
            other.put(0..1).await;
        }
        let open: Vec<RunId> = runs.iter().skip(1).step_by(2).cloned().collect();
        for at_most in 1..=RUNS {
            let demand = "a page counts only the runs that the query asks for";
            let page = ids(&journal.runs(&journal.query().open().at_most(at_most)).await);
            assert_eq!(page, open[..open.len().min(at_most)], "{demand}: open ones");
            let query = journal.query().open().after(open[1].clone()).at_most(at_most);
            let page = ids(&journal.runs(&query).await);
            assert_eq!(page, open[2..][..3.min(at_most)], "{demand}: open ones from the third on");
            let page = ids(&journal.runs(&journal.query().at_most(at_most)).await);
            assert_eq!(page, runs[..at_most], "{demand}: those of the workflow");
        }
    });
}
