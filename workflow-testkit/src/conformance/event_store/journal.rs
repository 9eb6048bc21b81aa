//! One run of a store under test, with calls that fail the check where the store reports an error.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use workflow_core::store::{
    EventStore, Position, Record, RunQuery, RunSummary, StoreError, StoredRun, Write,
};
use workflow_core::{RunId, RunStatus};

use super::samples::{moment, notes, number};

/// More than any check writes, to detect a store whose pages never end.
const MOST: usize = 10_000;

/// The journal of a run. Usually it contains the note 0 at position 0, 1 at 1 and so on, and its summary records where
/// its latest batch ended. So misplaced records are noticed.
#[derive(Clone)]
pub(super) struct Journal {
    pub(super) store: Arc<dyn EventStore>,
    pub(super) run: RunId,
    /// Only this check uses the workflow.
    pub(super) workflow: Arc<str>,
}

impl Journal {
    /// A run that no other check uses.
    pub(super) fn new(store: &Arc<dyn EventStore>) -> Self {
        let run = RunId::generate();
        Self { store: Arc::clone(store), workflow: format!("Workflow of {run}").into(), run }
    }

    /// The same run through another handle.
    pub(super) fn by(&self, store: &Arc<dyn EventStore>) -> Self {
        Self { store: Arc::clone(store), ..self.clone() }
    }

    /// Another run of the same workflow.
    pub(super) fn of_run(&self, run: impl Into<RunId>) -> Self {
        Self { run: run.into(), ..self.clone() }
    }

    /// A run of the same workflow whose id starts with this run's id.
    pub(super) fn beside(&self, end: impl fmt::Display) -> Self {
        self.of_run(format!("{}{end}", self.run))
    }

    pub(super) fn of_workflow(&self, workflow: impl Into<Arc<str>>) -> Self {
        Self { workflow: workflow.into(), ..self.clone() }
    }

    /// The summary of a batch that ends at this position.
    pub(super) fn summary(&self, end: u64) -> RunSummary {
        RunSummary::running(Arc::clone(&self.workflow), moment(end))
    }

    /// Appends the notes with these numbers at a position.
    pub(super) async fn try_put(&self, at: u64, numbers: Range<u64>) -> Result<(), StoreError> {
        let run = self.summary(numbers.end);
        self.store.append(&self.run, Position(at), Write { records: notes(numbers), run }).await
    }

    /// Appends notes at their positions.
    pub(super) async fn put(&self, numbers: Range<u64>) {
        let put = self.try_put(numbers.start, numbers).await;
        put.unwrap_or_else(|error| self.reported("append", &error));
    }

    /// Appends any records with a summary.
    pub(super) async fn put_records(&self, at: u64, records: Vec<Record>, status: RunStatus) {
        let run = self.summary(at + records.len() as u64);
        let run = match status {
            RunStatus::Paused => run.paused(),
            RunStatus::CleaningUp => run.cleaning_up(),
            ended if ended.is_ended() => run.ended(ended),
            _ => run,
        };
        let put = self.store.append(&self.run, Position(at), Write { records, run }).await;
        put.unwrap_or_else(|error| self.reported("append", &error));
    }

    /// Appends the note of a position with this summary.
    pub(super) async fn put_summary(&self, at: u64, run: RunSummary) {
        let put = self.store.append(&self.run, Position(at), Write { records: notes(at..at + 1), run }).await;
        put.unwrap_or_else(|error| self.reported("append", &error));
    }

    /// One read.
    pub(super) async fn read(&self, from: u64, at_most: usize) -> Vec<Record> {
        let read = self.store.read(&self.run, Position(from), at_most).await;
        read.unwrap_or_else(|error| self.reported("read", &error))
    }

    /// The numbers of what one read returns.
    pub(super) async fn numbers(&self, from: u64, at_most: usize) -> Vec<u64> {
        self.read(from, at_most).await.iter().map(number).collect()
    }

    /// All records, read in pages of this size.
    pub(super) async fn all(&self, at_a_time: usize) -> Vec<Record> {
        let mut all = Vec::new();
        loop {
            let page = self.read(all.len() as u64, at_a_time).await;
            if page.is_empty() {
                return all;
            }
            all.extend(page);
            assert!(all.len() <= MOST, "reading on comes to the end, but of {} there is ever more", self.run);
        }
    }

    /// One page of runs.
    pub(super) async fn runs(&self, query: &RunQuery) -> Vec<StoredRun> {
        self.store.runs(query).await.unwrap_or_else(|error| self.reported("runs", &error))
    }

    /// All pages of runs from this one on.
    pub(super) async fn all_runs(&self, mut query: RunQuery) -> Vec<StoredRun> {
        let mut all = Vec::new();
        loop {
            let page = self.runs(&query).await;
            let last = page.last().map(|last| (last.run.started, last.id.clone()));
            let is_last = page.len() < query.page();
            all.extend(page);
            query = match last {
                Some((started, last)) if !is_last && query.is_newest_first() => {
                    query.older_than(started, last)
                }
                Some((_, last)) if !is_last => query.after(last),
                _ => return all,
            };
            assert!(all.len() <= MOST, "paging through the runs comes to the end, but there are ever more");
        }
    }

    /// The run as the store lists it.
    pub(super) async fn listed(&self) -> Option<StoredRun> {
        let all = self.all_runs(self.query()).await;
        let mut own = all.into_iter().filter(|stored| stored.id == self.run);
        let listed = own.next();
        assert_eq!(own.next(), None, "a run is listed once");
        listed
    }

    /// The runs of this check.
    pub(super) fn query(&self) -> RunQuery {
        RunQuery::new().workflow(Arc::clone(&self.workflow))
    }

    pub(super) async fn remove(&self) -> bool {
        self.store.remove(&self.run).await.unwrap_or_else(|error| self.reported("remove", &error))
    }

    /// The expected listing of the run when its journal ends at this position.
    pub(super) fn stored(&self, end: u64) -> StoredRun {
        StoredRun { id: self.run.clone(), end: Position(end), run: self.summary(end) }
    }

    /// Asserts that the journal holds the notes up to this position, in its records and its listing. At 0 there is no
    /// run.
    pub(super) async fn assert_ends_at(&self, end: u64, demand: &str) {
        let numbers: Vec<u64> = self.all(100).await.iter().map(number).collect();
        assert_eq!(numbers, (0..end).collect::<Vec<_>>(), "{demand}: the journal of {:?}", self.run);
        let expected = (end > 0).then(|| self.stored(end));
        assert_eq!(self.listed().await, expected, "{demand}: {:?} as it is listed", self.run);
        if end == 0 {
            let is_listed = self.first_of_its_kind().await.is_some_and(|first| first.id == self.run);
            assert!(!is_listed, "{demand}: {:?} is listed, if of another workflow", self.run);
        }
    }

    /// The first run of any workflow from this run's id on: the run itself if it exists, unless an id of another test
    /// differs only in its last letter.
    async fn first_of_its_kind(&self) -> Option<StoredRun> {
        let mut before = self.run.as_str().to_owned();
        let query = RunQuery::new().at_most(1);
        let query = if before.pop().is_some() { query.after(before) } else { query };
        self.runs(&query).await.pop()
    }

    pub(super) fn reported(&self, call: &str, error: &StoreError) -> ! {
        panic!("`{call}` has no reason to fail here, but reported for {:?}: {error}", self.run)
    }
}

/// Asserts that an append found the journal's end elsewhere than expected.
pub(super) fn assert_conflict(returned: &Result<(), StoreError>, at: u64, end: u64, demand: &str) {
    let (at, end) = (Position(at), Position(end));
    match returned {
        Err(StoreError::Conflict { expected, found }) => {
            let names = "a conflict names what was expected and what was found";
            assert_eq!((*expected, *found), (at, end), "{demand}: {names}");
        }
        other => panic!("{demand}: at {at} of a journal that ends at {end} it returned {other:?}"),
    }
}
