//! The calls of an event store for one run, as work on the tables. The committer decides when writes are committed, and
//! `listing` lists runs.

use std::ops::ControlFlow;
use std::time::SystemTime;

use serde_json::from_slice;
use workflow_core::RunId;
use workflow_core::store::{Position, Record, RunSummary, StoreError, StoredRun, Write};

use crate::error::Malformed;
use crate::format::{
    RunEntry, beginning_with, context_prefix, move_record_key, push_recent, record_key, record_keys,
};
use crate::inbox;
use crate::index::{self, Indexed};
use crate::listing::written_run;
use crate::recent::{self, Visited};
use crate::summary;
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
    run_after: RunSummary,
    summary: Vec<u8>,
    /// How many bytes it adds to a commit.
    pub(crate) bytes: usize,
}

impl SerialisedWrite {
    /// Serialises a write.
    pub(crate) fn new(run: &RunId, expected: Position, batch: &Write) -> Result<Self, StoreError> {
        let mut key = record_key(run.as_str(), expected);
        let mut serialised = key.clone();
        for (number, record) in batch.records.iter().enumerate() {
            move_record_key(&mut key, expected.after(number));
            push_recent(&mut serialised, &key, record).map_err(StoreError::unserialisable)?;
        }
        let summary = summary::to_bytes(&batch.run).map_err(StoreError::unserialisable)?;
        let (records, run_after) = (batch.records.len(), batch.run.clone());
        let bytes = serialised.len() + key.len() * records + summary.len();
        Ok(Self { run: run.clone(), expected, batch: serialised, records, run_after, summary, bytes })
    }

    /// Appends the write, or returns its refusal. A refusal is no error of the transaction, which other writes share.
    pub(crate) fn append(&self, tables: &mut Tables<'_>) -> Result<Result<(), StoreError>, redb::Error> {
        let (run, expected) = (self.run.as_str(), self.expected);
        let before = bytes_at(&tables.runs, run.as_bytes())?;
        let entry = match before.as_deref().map(|entry| RunEntry::from_bytes(run, entry)).transpose() {
            Ok(entry) => entry,
            Err(malformed) => return Ok(Err(StoreError::corrupt(&self.run, expected, malformed))),
        };
        let found = entry.as_ref().map_or(Position(0), |entry| entry.end);
        if found != expected {
            return Ok(Err(StoreError::Conflict { expected, found }));
        }
        // A write without records changes only the summary.
        let mut recent = entry.as_ref().map(|entry| entry.recent.to_vec()).unwrap_or_default();
        if self.records > 0 {
            recent::add(tables, run, &mut recent, &self.batch)?;
        }
        let (end, written) = (found.after(self.records), SystemTime::now());
        let after = RunEntry { end, written, recent: &recent, summary: &self.summary };
        tables.runs.insert(run.as_bytes(), &*after.to_bytes(run))?;
        // With an unchanged summary, the indices have the run as they should.
        if entry.is_none_or(|entry| entry.summary != self.summary) {
            self.follow(tables, before.as_deref())?;
        }
        Ok(Ok(()))
    }

    /// Lets the indices follow the new summary.
    fn follow(&self, tables: &mut Tables<'_>, before: Option<&[u8]>) -> Result<(), redb::Error> {
        let run = self.run.as_str();
        if self.run_after.status.is_ended() {
            tables.open()?.remove(run.as_bytes())?;
        } else {
            let owner = self.run_after.owner.as_ref().map_or("", |owner| owner.as_str());
            tables.open()?.insert(run.as_bytes(), owner.as_bytes())?;
        }
        let before = before.and_then(|entry| Indexed::of_entry(run, entry));
        index::follow(tables.index()?, run, before.as_ref(), Some(&Indexed::of(&self.run_after)))
    }
}

/// Removes a run, if there is one, and the messages to it.
pub(crate) fn remove(tables: &mut Tables<'_>, run: &RunId) -> Result<bool, redb::Error> {
    let (key, keys) = (run.as_str().as_bytes(), record_keys(run.as_str(), Position(0)));
    tables.records()?.retain_in(&*keys.start..&*keys.end, |_, _| false)?;
    tables.open()?.remove(key)?;
    inbox::forget(tables, run.as_str())?;
    let Some(entry) = tables.runs.remove(key)?.map(|entry| entry.value().to_vec()) else { return Ok(false) };
    match Indexed::of_entry(run.as_str(), &entry) {
        Some(before) => index::follow(tables.index()?, run.as_str(), Some(&before), None)?,
        None => index::forget(tables.index()?, run.as_str())?,
    }
    let named = RunEntry::from_bytes(run.as_str(), &entry).map_or(&[][..], |entry| entry.recent);
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

/// A page of a journal. A missing or changed record is an error.
pub(crate) fn read(
    view: &View,
    run: &RunId,
    from: Position,
    at_most: usize,
) -> Result<Vec<Record>, ReadError<StoreError>> {
    let (mut records, mut bytes) = (Vec::new(), 0);
    let visited = recent::visit(view, run.as_str(), from, |position, record| {
        let expected = from.after(records.len());
        // A gap would shift every later record.
        if position != expected {
            return Err(StoreError::corrupt(run, expected, Malformed("record here")));
        }
        let record = record.map_err(|error| StoreError::corrupt(run, position, error))?;
        records.push(from_slice(record).map_err(|error| StoreError::corrupt(run, position, error))?);
        bytes += record.len();
        let is_full = records.len() >= at_most.max(1) || bytes >= PAGE_BYTES;
        Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if let Visited::All { end } = visited {
        check_end(view, run, from, records.len(), end)?;
    }
    Ok(records)
}

/// Checks that a journal ends where its run's entry says, after all its records from a position on were read.
fn check_end(
    view: &View,
    run: &RunId,
    from: Position,
    read: usize,
    end: Option<Position>,
) -> Result<(), ReadError<StoreError>> {
    let reached = from.after(read);
    let is_whole = match end {
        // From behind the end there is nothing to read.
        Some(end) => reached == end || read == 0 && from > end,
        // Without an entry and records, there is no such run. With an unreadable entry, the next page is the error.
        None => (read == 0) == view.runs.get(run.as_str().as_bytes())?.is_none(),
    };
    let missing = if end.is_none() { "readable entry" } else { "record here, or one too many" };
    if is_whole { Ok(()) } else { Err(ReadError::Own(StoreError::corrupt(run, reached, Malformed(missing)))) }
}
