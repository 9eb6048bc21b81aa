//! The calls of an event store, as work on the tables. The committer decides when writes are committed.

use std::ops::{Bound, ControlFlow};
use std::time::SystemTime;

use redb::ReadableTable;
use serde_json::from_slice;
use workflow_core::RunId;
use workflow_core::store::{Position, Record, RunQuery, RunSummary, StoreError, StoredRun, Write};

use crate::error::Malformed;
use crate::format::{RunEntry, beginning_with, context_prefix, push_recent, record_key, record_keys};
use crate::recent::{self, Ends};
use crate::tables::{ReadError, Tables, View, bytes_at};

/// A page of records, or of values, ends once it has this many bytes.
pub(crate) const PAGE_BYTES: usize = 16 << 20;

/// A serialised write.
pub(crate) struct SerialisedWrite {
    run: RunId,
    expected: Position,
    /// In the form of `workflow.recent`.
    batch: Vec<u8>,
    records: usize,
    summary: Vec<u8>,
    ended: bool,
    /// How many bytes it adds to a commit.
    pub(crate) bytes: usize,
}

impl SerialisedWrite {
    /// Serialises a write.
    pub(crate) fn new(run: &RunId, expected: Position, batch: &Write) -> Result<Self, StoreError> {
        let mut serialised = record_key(run.as_str(), expected);
        for record in &batch.records {
            push_recent(&mut serialised, record).map_err(StoreError::unserialisable)?;
        }
        let summary = serde_json::to_vec(&batch.run).map_err(StoreError::unserialisable)?;
        let (records, keys) = (batch.records.len(), record_key(run.as_str(), expected).len());
        let bytes = serialised.len() + keys * records + summary.len();
        let ended = batch.run.status.is_ended();
        Ok(Self { run: run.clone(), expected, batch: serialised, records, summary, ended, bytes })
    }

    /// Appends the write, or returns its refusal. A refusal is no error of the transaction, which other writes share.
    pub(crate) fn append(&self, tables: &mut Tables<'_>) -> Result<Result<(), StoreError>, redb::Error> {
        let (run, expected) = (self.run.as_str().as_bytes(), self.expected);
        let (found, mut recent, is_listed) = match prior(tables, run, &self.summary)? {
            Prior::Missing => (Position(0), Vec::new(), false),
            Prior::Run { end, recent, is_same } => (end, recent, is_same),
            Prior::Malformed => {
                let malformed = Malformed("entry of 18 bytes and more");
                return Ok(Err(StoreError::corrupt(&self.run, expected, malformed)));
            }
        };
        if found != expected {
            return Ok(Err(StoreError::Conflict { expected, found }));
        }
        // A write without records changes only the summary.
        if self.records > 0 {
            recent::add(tables, self.run.as_str(), &mut recent, &self.batch)?;
        }
        let (end, written) = (found.after(self.records), SystemTime::now());
        let entry = RunEntry { end, written, recent: &recent, summary: &self.summary };
        tables.runs.insert(run, &*entry.to_bytes())?;
        // With an unchanged summary, the index has the run as it should be.
        if !is_listed && self.ended {
            tables.open()?.remove(run)?;
        } else if !is_listed {
            tables.open()?.insert(run, &[][..])?;
        }
        Ok(Ok(()))
    }
}

/// A run before a write.
enum Prior {
    Missing,
    Run {
        /// The end of its journal.
        end: Position,
        /// The numbers of its recent writes.
        recent: Vec<[u8; 8]>,
        /// Whether its summary equals the write's.
        is_same: bool,
    },
    /// Its entry cannot be read.
    Malformed,
}

/// Reads the run's entry before a write.
fn prior(tables: &Tables<'_>, run: &[u8], summary: &[u8]) -> Result<Prior, redb::Error> {
    let Some(entry) = tables.runs.get(run)? else { return Ok(Prior::Missing) };
    let found = RunEntry::from_bytes(entry.value()).map(|entry| Prior::Run {
        end: entry.end,
        recent: entry.recent.to_vec(),
        is_same: entry.summary == summary,
    });
    Ok(found.unwrap_or(Prior::Malformed))
}

/// Removes a run, if there is one.
pub(crate) fn remove(tables: &mut Tables<'_>, run: &RunId) -> Result<bool, redb::Error> {
    let (key, keys) = (run.as_str().as_bytes(), record_keys(run.as_str(), Position(0)));
    tables.records()?.retain_in(&*keys.start..&*keys.end, |_, _| false)?;
    tables.open()?.remove(key)?;
    let Some(entry) = tables.runs.remove(key)?.map(|entry| entry.value().to_vec()) else { return Ok(false) };
    let named = RunEntry::from_bytes(&entry).map_or(&[][..], |entry| entry.recent);
    recent::forget(tables, run.as_str(), named)?;
    Ok(true)
}

/// Removes a run with its context, if nothing was written to it since `seen`.
pub(crate) fn remove_seen(
    tables: &mut Tables<'_>,
    seen: &StoredRun,
    written: SystemTime,
) -> Result<bool, redb::Error> {
    let key = seen.id.as_str().as_bytes();
    let entry = bytes_at(&tables.runs, key)?;
    let found = entry.and_then(|entry| written_run(key, &entry));
    let is_as_seen = found.is_some_and(|(found, at)| found == *seen && at == written);
    if is_as_seen {
        remove(tables, &seen.id)?;
        let keys = beginning_with(context_prefix(&workflow_core::store::ContextScope::Run(seen.id.clone())));
        tables.contexts()?.retain_in(&*keys.start..&*keys.end, |_, _| false)?;
    }
    Ok(is_as_seen)
}

/// A page of a journal.
pub(crate) fn read(
    view: &View,
    run: &RunId,
    from: Position,
    at_most: usize,
) -> Result<Vec<Record>, ReadError<StoreError>> {
    let (mut records, mut bytes) = (Vec::new(), 0);
    recent::visit(view, run.as_str(), from, |position, record| {
        let expected = from.after(records.len());
        // A gap would shift every later record.
        if position != expected {
            return Err(StoreError::corrupt(run, expected, Malformed("record here")));
        }
        records.push(from_slice(record).map_err(|error| StoreError::corrupt(run, position, error))?);
        bytes += record.len();
        let is_full = records.len() >= at_most.max(1) || bytes >= PAGE_BYTES;
        Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(records)
}

/// A page of runs. Open runs have an index, so that ended ones cost nothing.
pub(crate) fn runs(view: &View, query: &RunQuery) -> Result<Vec<StoredRun>, ReadError<StoreError>> {
    let after = query.begins_after().map(|after| after.as_str().as_bytes());
    let range = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
    let table = if query.only_open() { &view.open } else { &view.runs };
    let (mut page, mut last) = (Vec::new(), after.map(<[u8]>::to_vec));
    for entry in table.range::<&[u8]>(range)? {
        let (key, value) = entry?;
        // A damaged table may have another order, and would send the caller back to the first page.
        if last.as_deref().is_some_and(|last| key.value() <= last) {
            continue;
        }
        last = Some(key.value().to_vec());
        let indexed = if query.only_open() { view.runs.get(key.value())? } else { None };
        // An index entry without a run is skipped; a check reports it.
        if query.only_open() && indexed.is_none() {
            continue;
        }
        let value = indexed.as_ref().map_or_else(|| value.value(), redb::AccessGuard::value);
        // A key that is no id is skipped; a check reports it.
        let Some(stored) = stored_run(view, key.value(), value)? else { continue };
        if query.admits(&stored.id, &stored.run) {
            page.push(stored);
        }
        if page.len() >= query.page() {
            break;
        }
    }
    Ok(page)
}

/// One run; `None` if there is no such run.
pub(crate) fn run(view: &View, run: &RunId) -> Result<Option<StoredRun>, ReadError<StoreError>> {
    let key = run.as_str().as_bytes();
    let Some(entry) = view.runs.get(key)? else { return Ok(None) };
    Ok(stored_run(view, key, entry.value())?)
}

/// A run by its entry, and the time of its latest write. A run with a damaged entry counts as open. `None` if the key
/// is no id.
pub(crate) fn written_run(key: &[u8], value: &[u8]) -> Option<(StoredRun, SystemTime)> {
    let id = std::str::from_utf8(key).ok()?;
    let entry = RunEntry::from_bytes(value);
    let summary = entry.as_ref().and_then(|entry| from_slice(entry.summary).ok());
    let run = summary.unwrap_or_else(|| RunSummary::running("", SystemTime::UNIX_EPOCH));
    let (end, written) =
        entry.map_or((Position(0), SystemTime::UNIX_EPOCH), |entry| (entry.end, entry.written));
    Some((StoredRun { id: id.into(), end, run }, written))
}

/// A run by its entry, or else by its journal; `None` if the key is no id.
fn stored_run(view: &View, key: &[u8], value: &[u8]) -> Result<Option<StoredRun>, redb::Error> {
    let Ok(id) = std::str::from_utf8(key) else { return Ok(None) };
    let entry = RunEntry::from_bytes(value);
    let summary = entry.as_ref().and_then(|entry| from_slice(entry.summary).ok());
    let told = match (&entry, summary) {
        (Some(entry), Some(run)) => StoredRun { id: id.into(), end: entry.end, run },
        _ => run_from_journal(view, id)?,
    };
    Ok(Some(told))
}

/// A run by its first and last record. Without readable ones it counts as open, so that it is not removed.
fn run_from_journal(view: &View, id: &str) -> Result<StoredRun, redb::Error> {
    let ends = Ends::of(view, id)?;
    let mut run = match ends.as_ref().map(|ends| from_slice(&ends.first)) {
        Some(Ok(Record::RunStarted { workflow, at, .. })) => RunSummary::running(workflow, at),
        _ => RunSummary::running("", SystemTime::UNIX_EPOCH),
    };
    if let Some(Ok(Record::RunEnded { status, .. })) = ends.as_ref().map(|ends| from_slice(&ends.last)) {
        run = run.ended(status);
    }
    Ok(StoredRun { id: id.into(), end: ends.map(|ends| ends.end).unwrap_or_default(), run })
}
