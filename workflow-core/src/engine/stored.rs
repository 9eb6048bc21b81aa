//! The runs that an engine's store has: beginning their journals, listing and reading them. How they are removed is in
//! `removal`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use super::{Engine, Inner};
use crate::config::ConfigType;
use crate::error::{RunError, SendError, StartError};
use crate::id::RunId;
use crate::run::{Host, Journal, RunOptions, RunShared};
use crate::store::{
    EventStore, JOURNAL_FORMAT, Position, Record, RunQuery, RunSummary, StoreError, StoredRun,
};

/// How many records are asked for at a time.
const PAGE: usize = 8_192;

impl Engine {
    /// The runs that the engine's store has, a page at a time, whether they go on or have ended.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and what the store reports.
    pub async fn runs(&self, query: &RunQuery) -> Result<Vec<StoredRun>, StoreError> {
        self.inner.store()?.runs(query).await
    }

    /// Everything that the engine's store has of a run, in its order; nothing of a run that it does not have.
    /// O(records) time and memory.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and what the store reports.
    pub async fn history(&self, run: &RunId) -> Result<Vec<Record>, StoreError> {
        read_all(&**self.inner.store()?, run).await
    }
}

impl Inner {
    pub(super) fn store(&self) -> Result<&Arc<dyn EventStore>, StoreError> {
        self.store.as_ref().ok_or(StoreError::NoStore)
    }

    /// The journal of a run that begins, if there is a store.
    pub(super) fn journal(&self, run: &RunShared, configs: BTreeMap<String, Value>) -> Option<Journal> {
        let store = Arc::clone(self.store.as_ref()?);
        let (workflow, at) = (Arc::clone(&run.table.name), run.common.clock.now());
        let summary = RunSummary::running(Arc::clone(&workflow), at);
        let first = Record::RunStarted {
            format: JOURNAL_FORMAT,
            workflow,
            table: run.table.recorded().clone(),
            thread: run.thread().clone(),
            metadata: run.metadata().clone(),
            parent: run.parent().cloned(),
            awaited: run.birth().is_some_and(|birth| birth.awaited),
            private_thread: run.has_private_thread(),
            timeout: run.timeout,
            configs,
            at,
        };
        Some(Journal::begin(store, first, summary))
    }

    /// The layers of configuration that a run is started with and its workflow takes, by the names of their types; for
    /// its journal.
    pub(super) fn layers(&self, host: &Host, options: &RunOptions) -> BTreeMap<String, Value> {
        if self.store.is_none() || options.configs.is_empty() {
            return BTreeMap::new();
        }
        let layer = |config: ConfigType| {
            let layer = options.configs.get(&config.type_id())?.as_ref().ok()?;
            Some((config.type_name().to_owned(), layer.clone()))
        };
        host.table.configs().filter_map(layer).collect()
    }
}

/// The whole journal of a run, if it has a format that is known here.
pub(super) async fn read_all(store: &dyn EventStore, run: &RunId) -> Result<Vec<Record>, StoreError> {
    // Put together at the end: a sequence that grows would be copied again and again.
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

/// Whether what the records say of their format is known here.
fn check_format(run: &RunId, from: Position, records: &[Record]) -> Result<(), StoreError> {
    let mut formats =
        records.iter().enumerate().filter_map(|(place, record)| Some((place, record.format()?)));
    let newer = formats.find(|(_, format)| *format > JOURNAL_FORMAT);
    newer.map_or(Ok(()), |(place, format)| {
        let (run, position) = (run.clone(), from.after(place));
        Err(StoreError::NewerFormat { run, position, format, known: JOURNAL_FORMAT })
    })
}

/// Why a page of a journal cannot be read: what is no record here may be one of a later format, which is said by a record
/// before it.
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

/// Waits until the store has the beginning of a run.
pub(crate) async fn begun(
    run: &RunShared,
    written: oneshot::Receiver<Result<(), SendError>>,
) -> Result<(), StartError> {
    if let Ok(Ok(())) = written.await {
        return Ok(());
    }
    match run.outcome().await {
        Err(RunError::Conflict { run }) => Err(StartError::DuplicateRun { run }),
        Err(RunError::Store { source }) => Err(StartError::Store(source)),
        Err(error @ RunError::Abandoned) => Err(StartError::Store(StoreError::unavailable(error))),
        // It was cancelled at once, which its handle says.
        _ => Ok(()),
    }
}
