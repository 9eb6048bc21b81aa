//! Checks of queries: each field of a summary, each filter, and the order of starts. `pages` checks pages in the order of
//! ids.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::json;
use workflow_core::report::{ParentRun, Quality};
use workflow_core::store::{EngineId, EventStore, Position, RunQuery, RunSummary};
use workflow_core::{RunId, RunStatus};

use super::ids::ALIKE;
use super::journal::Journal;
use super::listing::ids;
use super::samples::{labels, moment, waits_for};
use super::subject::Subject;

/// How many runs there are to list.
const RUNS: u64 = 10;

fn parent() -> ParentRun {
    let parent = json!({"run": "a/b \"ä\"", "step": "ask", "execution": u64::MAX, "attempt": u32::MAX});
    serde_json::from_value(parent).expect("a parent")
}

pub fn every_field_of_a_summary_is_listed_as_it_was_written<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let ended = journal.summary(0).ended(RunStatus::Completed);
        let with = |change: &dyn Fn(&mut RunSummary)| {
            let mut run = ended.clone();
            change(&mut run);
            run
        };
        let most = [("l".repeat(100), "ä".repeat((RunSummary::MAX_METADATA_BYTES - 107) / 2))];
        let summaries = [
            journal.summary(0).waiting(waits_for(moment(3))),
            with(&|run| run.table = Some("3573902dba8966da".into())),
            journal.summary(0).owned_by(Some(EngineId::new("engine/\"1\""))),
            with(&|run| run.thread = Some("user/4 ä".into())),
            with(&|run| run.metadata = Arc::new(labels())),
            with(&|run| run.metadata = Arc::new(most.clone().into())),
            with(&|run| run.parent = Some(parent())),
            with(&|run| run.ended = Some(moment(9))),
            with(&|run| run.quality = Some(Quality::Clean)),
            with(&|run| run.quality = Some(Quality::Degraded)),
            with(&|run| run.quality = Some(Quality::Failed)),
            with(&|run| run.incomplete_clean_up = Arc::new(vec!["refund".into(), "\"ä\"".into()])),
            with(&|run| run.stop = Some(Position(u64::MAX))),
            // The same fields are empty again.
            ended,
        ];
        for (at, run) in (0..).zip(summaries) {
            journal.put_summary(at, run.clone()).await;
            let listed = journal.listed().await.map(|stored| stored.run);
            assert_eq!(listed, Some(run), "every field of a summary is listed as it was written");
        }
    });
}

pub fn a_query_for_one_run_lists_that_run_and_no_other<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let stem = Journal::new(&store);
        let journals = ALIKE.map(|end| stem.beside(end));
        for journal in &journals {
            journal.put(0..1).await;
        }
        let demand = "a query for one run lists the very run that is asked for";
        for journal in &journals {
            let (one, only) = (RunQuery::new().run(journal.run.clone()), std::slice::from_ref(&journal.run));
            assert_eq!(ids(&journal.runs(&one).await), only, "{demand}");
            let of_page = journal.runs(&one.clone().newest_first().at_most(1)).await;
            assert_eq!(ids(&of_page), only, "{demand}, in any order");
            let filtered = [
                one.clone().workflow("another"),
                one.clone().status(RunStatus::Failed),
                one.clone().thread("another"),
                one.clone().after(journal.run.clone()),
                one.older_than(moment(1), journal.run.clone()),
            ];
            for query in filtered {
                let demand = "a query for one run lists it only if all filters admit it";
                assert_eq!(ids(&journal.runs(&query).await), [], "{demand}: {query:?}");
            }
        }
        assert!(journals[2].remove().await, "the run was there");
        let removed = RunQuery::new().run(journals[2].run.clone());
        assert_eq!(ids(&stem.runs(&removed).await), [], "a run that was removed is not listed");
    });
}

pub fn runs_below_an_id_are_listed_and_no_others<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let stem = Journal::new(&store);
        for end in ["", "/", "/a", "/a/b", "/b", "-a", "0", "0/a", ".a", "a/b"] {
            stem.beside(end).put(0..1).await;
        }
        let demand = "runs whose ids are an id, a slash, and more are below it, and no others";
        let below = |ends: &[&str]| ends.iter().map(|end| stem.beside(end).run).collect::<Vec<_>>();
        let above = RunQuery::new().below(stem.run.clone());
        let all = below(&["/", "/a", "/a/b", "/b"]);
        assert_eq!(ids(&stem.runs(&above).await), all, "{demand}");
        assert_eq!(ids(&stem.runs(&above.clone().open()).await), all, "{demand}: open ones");
        assert_eq!(ids(&stem.all_runs(above.clone().at_most(1)).await), all, "{demand}, page by page");
        let mut newest = ids(&stem.runs(&above.clone().newest_first()).await);
        newest.sort();
        assert_eq!(newest, all, "{demand}: newest first");
        for (after, left) in [("", &all[..]), ("-a", &all), ("/", &all[1..]), ("/a", &all[2..]), ("0", &[])] {
            let query = above.clone().after(stem.beside(after).run);
            assert_eq!(ids(&stem.runs(&query).await), left, "{demand}: {query:?}");
        }
        let query = RunQuery::new().below(stem.beside("/a").run);
        assert_eq!(ids(&stem.runs(&query).await), below(&["/a/b"]), "{demand}: {query:?}");
        let query = RunQuery::new().below(stem.beside("/a/b").run);
        assert_eq!(ids(&stem.runs(&query).await), [], "{demand}: {query:?}");
    });
}

pub fn runs_are_listed_by_the_whole_name_of_their_thread<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let stem = Journal::new(&store);
        let thread = |end: &str| format!("{}{end}", stem.run);
        for (number, end) in ALIKE.iter().enumerate() {
            let mut run = stem.summary(1);
            run.thread = Some(thread(end).into());
            stem.beside(number).put_summary(0, run).await;
        }
        // Of no thread.
        stem.beside("none").put(0..1).await;
        for (number, end) in ALIKE.iter().enumerate() {
            for query in [RunQuery::new(), RunQuery::new().newest_first()] {
                let query = query.thread(thread(end));
                let demand = "only runs of the very thread that is asked for are listed";
                assert_eq!(ids(&stem.runs(&query).await), [stem.beside(number).run], "{demand}: {query:?}");
            }
        }
    });
}

pub fn runs_of_excluded_owners_are_not_listed<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let owners = [None, Some("engine"), Some("engine-1"), Some("engine-2")];
        for (number, owner) in owners.into_iter().enumerate() {
            let run = journal.summary(1).owned_by(owner.map(EngineId::new));
            journal.beside(number).put_summary(0, run).await;
        }
        let run = |number: usize| journal.beside(number).run;
        let engines = |names: &[&str]| names.iter().copied().map(EngineId::new).collect::<Vec<_>>();
        let demand = "runs of the excluded engines are not listed, and those of others and of none are";
        for (excluded, left) in [
            (engines(&[]), vec![run(0), run(1), run(2), run(3)]),
            (engines(&["engine-1"]), vec![run(0), run(1), run(3)]),
            (engines(&["engine-2", "engine", "gone"]), vec![run(0), run(2)]),
            (engines(&["engine", "engine-1", "engine-2"]), vec![run(0)]),
        ] {
            let query = journal.query().not_owned_by(excluded);
            assert_eq!(ids(&journal.runs(&query).await), left, "{demand}: {query:?}");
            let open = query.open().at_most(left.len());
            assert_eq!(ids(&journal.runs(&open).await), left, "{demand}: {open:?}");
        }
        // Another engine takes the run.
        let taken = journal.summary(2).owned_by(Some(EngineId::new("engine-2")));
        journal.beside(1).put_summary(1, taken).await;
        let query = journal.query().not_owned_by(engines(&["engine-2"]));
        let demand = "the owner is the engine of the latest batch";
        assert_eq!(ids(&journal.runs(&query).await), [run(0), run(2)], "{demand}");
    });
}

/// Runs of one workflow, newest first. Every third one started at the time of the one before it, and every other one has
/// ended. They are appended in the order of their ids, which is none of their starts.
async fn begin(store: &Arc<dyn EventStore>) -> (Journal, Vec<(SystemTime, RunId)>) {
    let journal = Journal::new(store);
    let mut runs = Vec::new();
    for number in 0..RUNS {
        let run = journal.beside(number);
        // 7 and 10 have no common divisor. The times differ by less than a microsecond.
        let place = number * 7 % RUNS;
        let started = moment(0) + Duration::from_nanos(place - place % 3 / 2);
        let summary = RunSummary::running(Arc::clone(&journal.workflow), started);
        let summary = if number % 2 == 0 { summary.ended(RunStatus::Failed) } else { summary };
        run.put_summary(0, summary).await;
        runs.push((started, run.run));
    }
    runs.sort();
    runs.reverse();
    (journal, runs)
}

fn of(runs: &[(SystemTime, RunId)]) -> Vec<RunId> {
    runs.iter().map(|(_, run)| run.clone()).collect()
}

pub fn the_run_that_started_last_is_listed_first_on_demand<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let (journal, runs) = begin(&store).await;
        let listed = ids(&journal.runs(&journal.query().newest_first()).await);
        let demand =
            "the run that started last is listed first; of those that started at once, the greatest id";
        assert_eq!(listed, of(&runs), "{demand}");
        let mut by_id = of(&runs);
        by_id.sort();
        let listed = ids(&journal.runs(&journal.query()).await);
        assert_eq!(listed, by_id, "runs are listed by their ids unless a query asks for the newest first");
    });
}

pub fn a_page_newest_first_begins_behind_its_run<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let (journal, runs) = begin(&store).await;
        let newest = journal.query().newest_first();
        let demand = "a page newest first begins with the first run behind the one that it is older than";
        for (number, (started, run)) in runs.iter().enumerate() {
            let page = ids(&journal.runs(&newest.clone().older_than(*started, run.clone())).await);
            assert_eq!(page, of(&runs[number + 1..]), "{demand}, without that one");
            // A run that the store does not have, before this one.
            let page = newest.clone().older_than(*started, format!("{run}-"));
            assert_eq!(ids(&journal.runs(&page).await), of(&runs[number..]), "{demand}, known or not");
        }
        let (started, run) = &runs[4];
        let mut older = of(&runs[5..]);
        older.sort();
        let by_id = ids(&journal.runs(&journal.query().older_than(*started, run.clone())).await);
        assert_eq!(by_id, older, "older runs can be listed in the order of their ids");
        let after = newest.clone().after(run.clone());
        let mut greater = of(&runs);
        greater.retain(|other| other > run);
        let demand = "runs with greater ids can be listed newest first";
        assert_eq!(ids(&journal.runs(&after).await), greater, "{demand}");
    });
}

pub fn pages_newest_first_list_each_run_once<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let (journal, runs) = begin(&store).await;
        for at_a_time in [1, 2, 3, 5, 9, 10, 11] {
            let query = journal.query().newest_first().at_most(at_a_time);
            let page = journal.runs(&query).await;
            let demand = "a page has as many runs as were asked for, and fewer only if it is the last";
            assert_eq!(page.len(), runs.len().min(at_a_time), "{demand}: newest first");
            let all = ids(&journal.all_runs(query).await);
            assert_eq!(all, of(&runs), "pages of {at_a_time} newest first list each run once");
        }
    });
}

pub fn a_page_newest_first_counts_only_the_runs_that_the_query_asks_for<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let (journal, runs) = begin(&store).await;
        for (started, run) in &runs {
            // Runs of another workflow, between the others.
            let other = journal.of_run(format!("{run}-")).of_workflow(format!("{}-", journal.workflow));
            other.put_summary(0, RunSummary::running(Arc::clone(&other.workflow), *started)).await;
        }
        let number = |run: &RunId| run.as_str()[journal.run.as_str().len()..].parse::<u64>().unwrap_or(0);
        let mut open = of(&runs);
        open.retain(|run| number(run) % 2 == 1);
        let mut failed = of(&runs);
        failed.retain(|run| number(run) % 2 == 0);
        for at_most in 1..=open.len() {
            let query = journal.query().newest_first().at_most(at_most);
            let demand = "a page counts only the runs that the query asks for";
            let page = ids(&journal.runs(&query.clone().open()).await);
            assert_eq!(page, open[..at_most], "{demand}: open ones, newest first");
            let page = ids(&journal.runs(&query.clone().status(RunStatus::Failed)).await);
            assert_eq!(page, failed[..at_most], "{demand}: failed ones, newest first");
            let page = ids(&journal.runs(&query.status(RunStatus::Stalled)).await);
            assert_eq!(page, [], "{demand}: stalled ones, newest first");
        }
    });
}

pub fn a_run_is_listed_by_its_latest_summary_alone<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let [other, name] = ["a", "b"].map(|end| format!("{}{end}", journal.workflow));
        let mut first = RunSummary::running(other.clone(), moment(7));
        first.thread = Some(other.clone().into());
        journal.put_summary(0, first).await;
        let mut last = RunSummary::running(name.clone(), moment(3)).ended(RunStatus::Completed);
        last.thread = Some(name.clone().into());
        journal.put_summary(1, last).await;
        let demand = "a run is listed by its latest summary, and by no earlier one";
        let only = std::slice::from_ref(&journal.run);
        for query in [RunQuery::new(), RunQuery::new().newest_first()] {
            let [of_first, of_last] = [&other, &name].map(|name| query.clone().workflow(name.clone()));
            assert_eq!(ids(&journal.runs(&of_first).await), [], "{demand}: its workflow");
            assert_eq!(ids(&journal.runs(&of_last).await), only, "{demand}: its workflow");
            let [of_first, of_last] = [&other, &name].map(|name| query.clone().thread(name.clone()));
            assert_eq!(ids(&journal.runs(&of_first).await), [], "{demand}: its thread");
            assert_eq!(ids(&journal.runs(&of_last).await), only, "{demand}: its thread");
            let own = query.workflow(name.clone());
            assert_eq!(ids(&journal.runs(&own.clone().open()).await), [], "{demand}: its status");
            let older = own.older_than(moment(5), "");
            assert_eq!(ids(&journal.runs(&older).await), only, "{demand}: its start");
        }
        assert!(journal.remove().await, "the run was there");
        let removed = RunQuery::new().workflow(name).newest_first();
        assert_eq!(ids(&journal.runs(&removed).await), [], "a run that was removed is in no list");
    });
}
