//! The final assertions: on the store, on each journal, and on the side effects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use workflow_core::prelude::*;
use workflow_core::scheduler::Cause;
use workflow_core::store::{EventStore, Position, Record, RunQuery, StoredRun};
use workflow_core::{RunId, RunStatus, Seq};
use workflow_redb::{RedbStore, StoreFile};

use crate::contexts;
use crate::ledger::{Deed, Ledger, Line, lines};
use crate::load::{Done, Double, Expected, Load};
use crate::worker::number_of;

/// The numbers of checked items.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Runs that completed, without their children.
    pub(crate) runs: u64,
    /// The number of resumes.
    pub(crate) resumed: u64,
    /// The number of repeated side effects.
    pub(crate) repeated: u64,
    /// The number of ended runs with contexts when their process was killed.
    pub(crate) left: usize,
    /// The number of journals read by the processes after killed ones.
    pub(crate) read: usize,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, resumed, repeated, left, read } = self;
        write!(
            f,
            "{runs} runs completed, were resumed {resumed} times, and repeated {repeated} deeds; {read} journals were \
             read after kills; {left} runs had ended and still had contexts, which were cleared"
        )
    }
}

/// Panics if anything does not hold.
pub(crate) fn judge(folder: &Path) -> Seen {
    let file = folder.join("runs.redb");
    let report = StoreFile::open(&file).unwrap().check().unwrap();
    assert!(report.is_sound(), "{report:?}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = RedbStore::open(&file).unwrap();
    let mut seen = Seen::default();
    let runs = runtime.block_on(all_runs(&store));
    for stored in &runs {
        assert_eq!(stored.run.status, RunStatus::Completed, "run {}", stored.id);
        let records = runtime.block_on(records_of(&store, stored));
        seen.resumed +=
            records.iter().filter(|record| matches!(record, Record::RunResumed { .. })).count() as u64;
        seen.runs += u64::from(!is_child(&stored.id));
        Journal { run: &stored.id, records: &records, expected: &expected(&stored.id) }.judge();
    }
    runtime.block_on(looks_back(&store, folder, &runs));
    let runs = runs.iter().map(|stored| stored.id.to_string()).collect();
    runtime.block_on(has_no_contexts(&store));
    let lines = lines(folder);
    seen.left = left_in(&lines);
    seen.read = lines.iter().map(|line| if let Line::Read { journals } = line { *journals } else { 0 }).sum();
    seen.repeated = judge_deeds(&lines, &runs);
    seen
}

/// The number of ended runs that had contexts when their process was killed, so far.
pub(crate) fn left(folder: &Path) -> usize {
    left_in(&lines(folder))
}

fn left_in(lines: &[Line]) -> usize {
    lines.iter().map(|line| if let Line::Left { contexts } = line { *contexts } else { 0 }).sum()
}

/// The run itself, or the run whose child it is.
fn parent_of(run: &str) -> &str {
    run.split('/').next().unwrap_or(run)
}

fn is_child(run: &RunId) -> bool {
    run.as_str().contains('/')
}

fn expected(run: &RunId) -> Expected {
    let number = number_of(run);
    if is_child(run) { Expected::of_child(number) } else { Expected::of(number) }
}

/// Every run has ended, and the next resuming process has cleared all remaining contexts.
async fn has_no_contexts(store: &RedbStore) {
    assert_eq!(contexts::scopes(store).await, [], "contexts without a run");
}

pub(crate) async fn all_runs(store: &RedbStore) -> Vec<StoredRun> {
    let (mut runs, mut query) = (Vec::new(), RunQuery::new());
    loop {
        let page = store.runs(&query).await.unwrap();
        let Some(last) = page.last() else { return runs };
        query = query.after(last.id.clone());
        runs.extend(page);
    }
}

pub(crate) async fn records_of(store: &RedbStore, stored: &StoredRun) -> Vec<Record> {
    let records = store.read(&stored.id, Position(0), usize::MAX).await.unwrap();
    assert_eq!(records.len() as u64, stored.end.0, "the journal of {} has gaps", stored.id);
    records
}

/// The engine's own check: it replays each journal, and refuses records that the workflow would not have produced.
async fn looks_back(store: &RedbStore, folder: &Path, runs: &[StoredRun]) {
    let ledger = Ledger::of(folder);
    let engine = Engine::builder().workflow(Load(ledger.clone())).workflow(Double(ledger));
    let engine = engine.store(store.clone()).build().unwrap();
    for StoredRun { id, .. } in runs {
        let output = if is_child(id) {
            engine.attach::<Double>(id.clone()).await.unwrap().outcome().await.unwrap()
        } else {
            engine.attach::<Load>(id.clone()).await.unwrap().outcome().await.unwrap()
        };
        assert_eq!(output, Done(expected(id).output), "run {id}");
    }
}

/// Compares a journal with that of an uninterrupted run.
struct Journal<'a> {
    run: &'a RunId,
    records: &'a [Record],
    expected: &'a Expected,
}

impl Journal<'_> {
    fn judge(&self) {
        self.begins_and_ends_once();
        self.has_its_events_in_order();
        self.has_each_execution_once();
        let run = self.run;
        let gathers = self.count(|record| matches!(record, Record::FanOutGathered { .. }));
        let timers = self.count(|record| matches!(record, Record::TimerSet { .. }));
        let children = self.count(|record| matches!(record, Record::ChildStarted { .. }));
        let Expected { gathers: g, timers: t, children: c, .. } = *self.expected;
        assert_eq!((gathers, timers, children), (g, t, c), "gathers, timers and children of {run}");
        assert_eq!(
            self.count(|record| matches!(record, Record::ExecutionFailed { .. })),
            0,
            "failures of {run}"
        );
    }

    fn count(&self, is_one: impl Fn(&Record) -> bool) -> usize {
        self.records.iter().filter(|record| is_one(record)).count()
    }

    fn begins_and_ends_once(&self) {
        let Self { run, records, expected } = self;
        let begins = |record: &Record| matches!(record, Record::RunStarted { .. });
        let ends = |record: &Record| matches!(record, Record::RunEnded { .. });
        assert!(
            matches!(&records[0], Record::RunStarted { workflow, .. } if **workflow == *expected.workflow),
            "the beginning of {run}"
        );
        assert!(
            matches!(records.last(), Some(Record::RunEnded { status: RunStatus::Completed, .. })),
            "the end of {run}"
        );
        assert_eq!((self.count(begins), self.count(ends)), (1, 1), "{run} begins and ends once");
    }

    fn has_its_events_in_order(&self) {
        let run = self.run;
        let mut found: Vec<(String, Value)> = Vec::new();
        let mut latest = Seq(0);
        for record in self.records {
            match record {
                Record::EventLogged { seq, cause, event, .. } => {
                    assert_eq!(seq.0, latest.0 + 1, "positions in the log of {run}");
                    latest = *seq;
                    let name = match cause {
                        Cause::Reply(_) => "Ask.reply",
                        _ => event.name(),
                    };
                    found.push((name.to_owned(), event.to_json().unwrap()));
                }
                Record::FanOutGathered { seq, .. } => {
                    assert_eq!(seq.0, latest.0 + 1, "positions in the log of {run}");
                    latest = *seq;
                }
                Record::ExecutionSucceeded { trigger, .. } | Record::RetryScheduled { trigger, .. } => {
                    assert!(
                        *trigger <= latest,
                        "{run} executes a step for an event that it does not have yet"
                    );
                }
                _ => {}
            }
        }
        let expected = self.expected.events.iter().map(|(name, data)| ((*name).to_owned(), data.clone()));
        assert_eq!(counted(found), counted(expected.collect()), "the events of {run}");
    }

    fn has_each_execution_once(&self) {
        let run = self.run;
        let succeeded = self.records.iter().filter_map(|record| match record {
            Record::ExecutionSucceeded { execution, step, scope, trigger, .. } => {
                Some((execution.0, (Arc::clone(step), scope.0, trigger.0)))
            }
            _ => None,
        });
        let succeeded: Vec<_> = succeeded.collect();
        let by_id: BTreeMap<_, _> = succeeded.iter().cloned().collect();
        let by_trigger: BTreeSet<_> = succeeded.iter().map(|(_, of)| of.clone()).collect();
        assert_eq!(
            (by_id.len(), by_trigger.len()),
            (succeeded.len(), succeeded.len()),
            "{run} commits twice"
        );
        let steps = succeeded.iter().map(|(_, (step, ..))| step.to_string());
        let expected = self.expected.executions.keys().map(|(step, _)| (*step).to_owned());
        assert_eq!(counted(steps.collect()), counted(expected.collect()), "the executions of {run}");
        let retries = self.expected.executions.values().map(|attempts| attempts - 1).sum::<u32>();
        let scheduled = self.count(|record| matches!(record, Record::RetryScheduled { .. }));
        assert_eq!(scheduled, retries as usize, "the retries of {run}");
    }
}

fn counted<T: fmt::Debug>(all: Vec<T>) -> BTreeMap<String, usize> {
    all.into_iter().fold(BTreeMap::new(), |mut counted, one| {
        *counted.entry(format!("{one:?}")).or_default() += 1;
        counted
    })
}

/// Checks the side effects (S39), and returns the number of repetitions.
fn judge_deeds(lines: &[Line], runs: &BTreeSet<String>) -> u64 {
    let mut deeds: BTreeMap<(&str, u64), Vec<(&Deed, u32)>> = BTreeMap::new();
    let mut kept = BTreeSet::new();
    let (mut paused, mut ended_pauses) = (BTreeSet::new(), BTreeMap::<&str, u32>::new());
    for line in lines {
        match line {
            Line::Started { run } => assert!(runs.contains(run), "{run} was started, and is lost"),
            Line::Kept { run, execution } => {
                assert!(kept.insert((run.as_str(), *execution)), "x{execution} of {run} was kept twice");
            }
            Line::Paused { run } => {
                paused.insert(run);
            }
            Line::Unpauses { run } => {
                *ended_pauses.entry(run).or_default() += u32::from(paused.remove(run));
            }
            Line::Left { .. } | Line::Read { .. } => {}
            Line::Did(deed) => {
                let unpaused = ended_pauses.get(parent_of(&deed.run)).copied().unwrap_or_default();
                let execution = (deed.run.as_str(), deed.execution);
                assert!(!kept.contains(&execution), "done again after that was kept: {deed:?}");
                assert!(runs.contains(&deed.run), "done for a run that is not there: {deed:?}");
                deeds.entry(execution).or_default().push((deed, unpaused));
            }
        }
    }
    assert_eq!(
        deeds.values().map(|of| &of[0].0.key).collect::<BTreeSet<_>>().len(),
        deeds.len(),
        "a key is shared"
    );
    for run in runs {
        each_was_done(run, deeds.range((run.as_str(), 0)..=(run.as_str(), u64::MAX)).map(|(_, of)| &**of));
    }
    deeds.values().map(|of| repeated(of)).sum()
}

/// Each execution of a run performed its effect, and no other execution did.
fn each_was_done<'a>(run: &str, executions: impl Iterator<Item = &'a [(&'a Deed, u32)]>) {
    let expected = expected(&run.into()).executions;
    let mut done = BTreeMap::new();
    for deeds in executions {
        let of = deeds.iter().map(|(deed, _)| (deed.step.as_str(), deed.what)).collect::<BTreeSet<_>>();
        assert_eq!(of.len(), 1, "an execution did different things: {deeds:?}");
        let attempts = deeds.iter().map(|(deed, _)| deed.attempt).collect::<BTreeSet<_>>();
        done.extend(of.into_iter().map(|of| (of, u32::try_from(attempts.len()).unwrap())));
    }
    let expected: BTreeMap<_, _> = expected.into_iter().collect();
    assert_eq!(done, expected, "what {run} did, and in how many attempts");
}

/// An execution repeats an effect only with the same key, and only in another process or after a pause of its run that
/// dropped it. Each deed with how often its run, or the parent of its run, had been unpaused.
fn repeated(deeds: &[(&Deed, u32)]) -> u64 {
    let keys = deeds.iter().map(|(deed, _)| &deed.key).collect::<BTreeSet<_>>();
    assert_eq!(keys.len(), 1, "a deed was repeated under another key: {deeds:?}");
    let once: BTreeSet<_> =
        deeds.iter().map(|(deed, unpaused)| (deed.process, deed.attempt, unpaused)).collect();
    assert_eq!(once.len(), deeds.len(), "a process has repeated a deed: {deeds:?}");
    let attempts = deeds.iter().map(|(deed, _)| deed.attempt).collect::<BTreeSet<_>>();
    (deeds.len() - attempts.len()) as u64
}
