//! The journals of an engine: it begins, lists and reads them here. The engine's lease in the store is here too;
//! `owner` uses it to find the owners of runs. `removal` removes journals.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::config::ConfigType;
use crate::id::RunId;
use crate::lease::{Lease, LeaseOwner};
use crate::outcome::ResumeError;
use crate::run::{Host, Journal, RunOptions, RunShared};
use crate::store::{
    EventStore, JOURNAL_FORMAT, Position, Record, RunQuery, RunSummary, StoreError, StoredRun,
};

/// How many records one call asks for.
const PAGE: usize = 8_192;

/// The store of an engine, if it has one, and the engine's lease in it, if it takes leases.
pub(super) struct Journals {
    store: Option<Arc<dyn EventStore>>,
    lease: Option<LeaseOwner>,
}

impl Journals {
    pub(super) fn new(store: Option<Arc<dyn EventStore>>, lease: Option<LeaseOwner>) -> Self {
        Self { store, lease }
    }

    /// Whether runs have journals.
    pub(super) fn are_kept(&self) -> bool {
        self.store.is_some()
    }

    pub(super) fn lease(&self) -> Option<&Arc<Lease>> {
        self.lease.as_ref().map(|LeaseOwner(lease)| lease)
    }

    /// The store, or an error for an engine without one.
    pub(super) fn store(&self) -> Result<&Arc<dyn EventStore>, StoreError> {
        self.store.as_ref().ok_or(StoreError::NoStore)
    }

    /// The whole journal of a run.
    pub(super) async fn read(&self, run: &RunId) -> Result<Vec<Record>, StoreError> {
        read_all(&**self.store()?, run).await
    }

    /// The run whose execution waits for this one, by the first record of its journal; `None` if it is no such child.
    pub(super) async fn awaiting_parent(&self, id: &RunId) -> Result<Option<RunId>, ResumeError> {
        // The id of a child has a slash.
        let Some(store) = self.store().ok().filter(|_| id.as_str().contains('/')) else { return Ok(None) };
        let first = store.read(id, Position(0), 1).await.map_err(ResumeError::Store)?;
        check_format(id, Position(0), &first).map_err(ResumeError::Store)?;
        Ok(match first.into_iter().next() {
            Some(Record::RunStarted { parent: Some(parent), awaited: true, .. }) => Some(parent.run),
            _ => None,
        })
    }

    /// The run's entry in the store's list. One call of the store.
    pub(super) async fn listed(&self, id: &RunId) -> Result<Option<StoredRun>, StoreError> {
        Ok(self.store()?.runs(&RunQuery::new().run(id.clone())).await?.pop())
    }

    /// Whether the store lists the run as ended.
    pub(super) async fn is_listed_as_ended(&self, run: &RunId) -> Result<bool, StoreError> {
        Ok(self.listed(run).await?.is_some_and(|stored| stored.run.status.is_ended()))
    }

    /// The start's layers of configuration that the workflow takes, by the names of their types, for the journal.
    pub(super) fn layers(&self, host: &Host, options: &RunOptions) -> BTreeMap<String, Value> {
        if !self.are_kept() || options.configs.is_empty() {
            return BTreeMap::new();
        }
        let layer = |config: ConfigType| {
            let layer = options.configs.get(&config.type_id())?.layer.as_ref().ok()?;
            Some((config.type_name().to_owned(), layer.clone()))
        };
        host.table.configs().filter_map(layer).collect()
    }

    /// The journal of a new run, with its first record queued; `None` without a store.
    pub(super) fn begin(&self, run: &RunShared, configs: BTreeMap<String, Value>) -> Option<Journal> {
        let store = Arc::clone(self.store.as_ref()?);
        let first = Record::RunStarted {
            format: JOURNAL_FORMAT,
            workflow: Arc::clone(&run.table.name),
            table: run.table.recorded().clone(),
            thread: run.thread().clone(),
            metadata: run.metadata().clone(),
            parent: run.parent().cloned(),
            awaited: run.parent_link().is_some_and(|link| link.awaited),
            private_thread: run.has_private_thread(),
            timeout: run.timeout,
            deadline: run.deadline(),
            configs,
            trace_parent: run.trace_parent(),
            queued: false,
            at: run.common.clock.now(),
        };
        let summary = RunSummary::begun_by(&first)?;
        Some(Journal::begin(store, first, summary))
    }
}

/// The runs of a store, page by page, in the order of the query.
pub(super) struct Pages<'a> {
    store: &'a dyn EventStore,
    query: RunQuery,
    is_over: bool,
}

impl<'a> Pages<'a> {
    pub(super) fn of(store: &'a dyn EventStore, query: RunQuery) -> Self {
        Self { store, query, is_over: false }
    }

    /// The runs whose ids begin as those of the run's children do.
    pub(super) fn below(store: &'a dyn EventStore, run: &RunId, query: RunQuery) -> Self {
        Self::of(store, query.below(run.clone()))
    }

    /// The next page, or `None` after the last. After an error the next call asks for the same page.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<StoredRun>>, StoreError> {
        if self.is_over {
            return Ok(None);
        }
        let page = self.store.runs(&self.query).await?;
        self.is_over = page.len() != self.query.page();
        let Some(last) = page.last() else {
            self.is_over = true;
            return Ok(None);
        };
        self.query = std::mem::take(&mut self.query).behind(last);
        Ok(Some(page))
    }
}

/// The whole journal of a run. An error if a record has a format that this version does not know.
pub(super) async fn read_all(store: &dyn EventStore, run: &RunId) -> Result<Vec<Record>, StoreError> {
    // Joined at the end, because a growing vector would copy its records again and again.
    let (mut pages, mut end) = (Vec::new(), Position::default());
    loop {
        let page = match store.read(run, end, PAGE).await {
            Ok(page) => page,
            Err(error) => return Err(explained(store, run, end, error).await),
        };
        check_format(run, end, &page)?;
        if page.is_empty() {
            return Ok(joined(pages));
        }
        end = end.after(page.len());
        pages.push(page);
    }
}

/// One vector of all pages.
fn joined(mut pages: Vec<Vec<Record>>) -> Vec<Record> {
    if pages.len() < 2 {
        return pages.pop().unwrap_or_default();
    }
    let mut records = Vec::with_capacity(pages.iter().map(Vec::len).sum());
    for page in pages {
        records.extend(page);
    }
    records
}

/// An error if a record has a format that this version does not know.
fn check_format(run: &RunId, from: Position, records: &[Record]) -> Result<(), StoreError> {
    let mut formats =
        records.iter().enumerate().filter_map(|(index, record)| Some((index, record.format()?)));
    let newer = formats.find(|(_, format)| *format > JOURNAL_FORMAT);
    newer.map_or(Ok(()), |(index, format)| {
        let (run, position) = (run.clone(), from.after(index));
        Err(StoreError::NewerFormat { run, position, format, known: JOURNAL_FORMAT })
    })
}

/// The error of a page that cannot be read. If an earlier record of the page names a later format, that is the cause.
async fn explained(store: &dyn EventStore, run: &RunId, from: Position, error: StoreError) -> StoreError {
    let StoreError::Corrupt { position, .. } = &error else { return error };
    let before = usize::try_from(position.0.saturating_sub(from.0)).unwrap_or(PAGE).min(PAGE);
    if before == 0 {
        return error;
    }
    match store.read(run, from, before).await {
        Ok(page) => check_format(run, from, &page).err().unwrap_or(error),
        Err(_) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Began, Greeting, Manners, Written, greeter, now};
    use super::*;

    /// A store with these runs, the last one ended.
    fn written(runs: &[&str]) -> Written {
        let written = Written::default();
        for run in runs {
            written.begin(run, Began::default());
        }
        written.end(runs[runs.len() - 1]);
        written
    }

    fn pages(mut pages: Pages<'_>) -> Vec<Vec<String>> {
        let ids = |page: Vec<StoredRun>| page.iter().map(|run| run.id.to_string()).collect();
        std::iter::from_fn(|| now(pages.next()).unwrap()).map(ids).collect()
    }

    #[test]
    fn runs_are_listed_page_by_page() {
        let written = written(&["a", "b", "c"]);
        assert_eq!(pages(Pages::of(written.store(), RunQuery::new())), [["a", "b", "c"]]);
        let of_two = pages(Pages::of(written.store(), RunQuery::new().at_most(2)));
        assert_eq!(of_two, [vec!["a", "b"], vec!["c"]]);
        assert_eq!(pages(Pages::of(written.store(), RunQuery::new().open())), [["a", "b"]]);
    }

    #[test]
    fn the_runs_below_one_end_where_its_prefix_does() {
        let written = written(&["a", "a-b", "a/x", "a/y", "a/z", "a0", "b", "b/x"]);
        let below = |run: &str, query| pages(Pages::below(written.store(), &run.into(), query));
        assert_eq!(below("a", RunQuery::new()), [["a/x", "a/y", "a/z"]]);
        assert_eq!(below("a", RunQuery::new().at_most(2)), [vec!["a/x", "a/y"], vec!["a/z"]]);
        assert!(below("c", RunQuery::new()).is_empty());
    }

    #[test]
    fn one_run_is_found_among_its_neighbours() {
        let journals = written(&["a", "a/x", "b"]).journals();
        assert_eq!(now(journals.listed(&"a/x".into())).unwrap().map(|run| run.id), Some("a/x".into()));
        assert!(now(journals.listed(&"a/w".into())).unwrap().is_none());
        let ended = ["a", "b", "c"].map(|run| now(journals.is_listed_as_ended(&run.into())).unwrap());
        assert_eq!(ended, [false, true, false]);
        assert_eq!(now(journals.read(&"b".into())).unwrap().len(), 3);
    }

    #[test]
    fn journals_of_an_engine_without_a_store_are_an_error() {
        let journals = Journals::new(None, None);
        assert!(!journals.are_kept());
        assert!(matches!(now(journals.read(&"a".into())), Err(StoreError::NoStore)));
        assert!(matches!(now(journals.listed(&"a".into())), Err(StoreError::NoStore)));
    }

    #[test]
    fn only_the_layers_that_the_workflow_takes_are_recorded() {
        let options = RunOptions::new().config::<Manners>(serde_json::json!({ "polite": true }));
        let options = options.config::<Greeting>(serde_json::json!(1));
        let recorded = Written::default().journals().layers(&greeter(), &options);
        let manners = ConfigType::of::<Manners>().type_name().to_owned();
        assert_eq!(recorded, [(manners, serde_json::json!({ "polite": true }))].into());
        assert!(Journals::new(None, None).layers(&greeter(), &options).is_empty());
    }
}
