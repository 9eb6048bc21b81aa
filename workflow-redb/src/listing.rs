//! Listing runs: one, all by their ids, or the newest first. `index` says how runs are found by their start.
//!
//! ```text
//! one run            its entry
//! newest first       the groups of a thread, of states, or of a workflow, merged; then the entry of each run
//! of one thread      the group of the thread, put in the order of ids
//! any other query    the entries in their order, or those of open runs
//! ```
//!
//! A key of an index only leads to an entry. Whether the run is listed follows from its summary.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::from_slice;
use workflow_core::store::{Position, Record, RunQuery, RunSummary, StoreError, StoredRun};
use workflow_core::{RunId, RunStatus};

use crate::format::{IndexKey, RunEntry, beginning_with, index_group, index_time};
use crate::index::{Kind, OPEN_STATE, state, states};
use crate::recent::Ends;
use crate::tables::{ReadError, Reading, View};

/// A page of runs.
pub(crate) fn runs(view: &View, query: &RunQuery) -> Result<Vec<StoredRun>, ReadError<StoreError>> {
    let runs = match (query.of_run(), &view.index) {
        (Some(run), _) => query.choose(found(view, run)?.map(|found| found.stored)),
        (None, Some(index)) if query.is_newest_first() => newest(view, index, query)?,
        (None, Some(index)) if query.of_thread().is_some() => of_thread(view, index, query)?,
        // A file of format 1, opened for reading.
        (None, None) if query.is_newest_first() => query.choose(all(view, query)?),
        (None, _) => by_id(view, query)?,
    };
    Ok(runs)
}

/// One run; `None` if there is no such run.
pub(crate) fn run(view: &View, run: &RunId) -> Result<Option<StoredRun>, ReadError<StoreError>> {
    Ok(found(view, run)?.map(|found| found.stored))
}

/// A page in the order of ids. Open runs have an index, so that ended ones cost nothing.
fn by_id(view: &View, query: &RunQuery) -> Result<Vec<StoredRun>, redb::Error> {
    let mut page = Vec::new();
    each_by_id(view, query, |stored| {
        page.push(stored);
        page.len() < query.page()
    })?;
    Ok(page)
}

/// All runs that the query admits.
fn all(view: &View, query: &RunQuery) -> Result<Vec<StoredRun>, redb::Error> {
    let mut all = Vec::new();
    each_by_id(view, query, |stored| {
        all.push(stored);
        true
    })?;
    Ok(all)
}

/// Passes the runs that the query admits to `each` in the order of ids, as long as that returns `true`.
fn each_by_id(
    view: &View,
    query: &RunQuery,
    mut each: impl FnMut(StoredRun) -> bool,
) -> Result<(), redb::Error> {
    let Some((first, behind)) = query.id_range() else { return Ok(()) };
    let [first, behind] = [&first, &behind].map(|bound| bound.as_ref().map(|id| id.as_str().as_bytes()));
    let table = if query.only_open() { &view.open } else { &view.runs };
    let mut last = query.begins_after().map(|after| after.as_str().as_bytes().to_vec());
    for entry in table.range::<&[u8]>((first, behind))? {
        let (key, value) = entry?;
        // Most open runs have the engine as their owner that asks for those of others.
        if query.only_open() && is_excluded(query, value.value()) {
            continue;
        }
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
        let Some(Found { stored, .. }) = stored_run(view, key.value(), value)? else { continue };
        if query.admits(&stored.id, &stored.run) && !each(stored) {
            break;
        }
    }
    Ok(())
}

/// Whether the query excludes the owner that the index of open runs names.
fn is_excluded(query: &RunQuery, owner: &[u8]) -> bool {
    query.excluded_owners().iter().any(|excluded| excluded.as_str().as_bytes() == owner)
}

/// A page, newest first.
fn newest(view: &View, index: &Reading, query: &RunQuery) -> Result<Vec<StoredRun>, redb::Error> {
    let mut merged = Merged::of(index, groups(index, query)?, query)?;
    let (mut page, mut last) = (Vec::new(), None::<Vec<u8>>);
    while page.len() < query.page()
        && let Some(place) = merged.next()?
    {
        // Of a run in two groups, which only damage causes, the second key is skipped, as one of another order is.
        if last.as_ref().is_some_and(|last| place >= *last) {
            continue;
        }
        let stored = at_place(view, &place)?.filter(|stored| query.admits(&stored.id, &stored.run));
        page.extend(stored);
        last = Some(place);
    }
    Ok(page)
}

/// A page of one thread in the order of ids. O(runs of the thread).
fn of_thread(view: &View, index: &Reading, query: &RunQuery) -> Result<Vec<StoredRun>, redb::Error> {
    let mut merged = Merged::of(index, groups(index, query)?, query)?;
    let mut found = BTreeMap::new();
    while let Some(place) = merged.next()? {
        found.extend(at_place(view, &place)?.map(|stored| (stored.id.clone(), stored)));
    }
    Ok(query.choose(found.into_values()))
}

/// The groups that have every run of the query: the smallest ones, as far as the query alone shows it.
fn groups(index: &Reading, query: &RunQuery) -> Result<Vec<Vec<u8>>, redb::Error> {
    if let Some(thread) = query.of_thread() {
        return Ok(vec![index_group(Kind::Thread, thread.as_str())]);
    }
    let mut statuses = query.statuses();
    if query.only_incomplete_clean_up() && statuses.is_empty() {
        // Those of a redriven clean-up, and of an end. At no other end steps are unfinished.
        statuses = &[
            RunStatus::CleaningUp,
            RunStatus::Failed,
            RunStatus::Stalled,
            RunStatus::Cancelled,
            RunStatus::TimedOut,
        ];
    }
    if query.only_open() {
        let admits_any = statuses.is_empty() || statuses.iter().any(|status| !status.is_ended());
        return Ok(admits_any.then(|| index_group(Kind::State, OPEN_STATE)).into_iter().collect());
    }
    if !statuses.is_empty() {
        let mut groups: Vec<_> =
            statuses.iter().map(|status| index_group(Kind::State, &state(*status))).collect();
        groups.sort_unstable();
        groups.dedup();
        return Ok(groups);
    }
    if let Some(workflow) = query.of_workflow() {
        return Ok(vec![index_group(Kind::Workflow, workflow)]);
    }
    states(index)
}

/// The runs of some groups, the latest start first. A place is the part of a key behind its group: start and run.
struct Merged<'i> {
    groups: Vec<Group<'i>>,
}

struct Group<'i> {
    /// The keys before `place`.
    rest: redb::Range<'i, &'static [u8], &'static [u8]>,
    /// How many bytes of each key name the group.
    prefix: usize,
    /// The latest place that was not returned.
    place: Option<Vec<u8>>,
}

impl<'i> Merged<'i> {
    fn of(index: &'i Reading, groups: Vec<Vec<u8>>, query: &RunQuery) -> Result<Self, redb::Error> {
        let before = query.begins_before();
        let groups = groups.into_iter().map(|group| {
            let prefix = group.len();
            let keys = beginning_with(group);
            let end = match before {
                Some((started, run)) => {
                    [&keys.start, &index_time(started)[..], run.as_str().as_bytes()].concat()
                }
                None => keys.end,
            };
            let mut group = Group { rest: index.range(&*keys.start..&*end)?, prefix, place: None };
            group.next()?;
            Ok(group)
        });
        Ok(Self { groups: groups.collect::<Result<_, redb::Error>>()? })
    }

    /// The next place.
    fn next(&mut self) -> Result<Option<Vec<u8>>, redb::Error> {
        let latest = self.groups.iter_mut().max_by(|one, other| one.place.cmp(&other.place));
        latest.map_or(Ok(None), Group::next)
    }
}

impl Group<'_> {
    /// Returns the place, and moves to the one before it.
    fn next(&mut self) -> Result<Option<Vec<u8>>, redb::Error> {
        let key = self.rest.next_back().transpose()?;
        let before = key.and_then(|(key, _)| key.value().get(self.prefix..).map(<[u8]>::to_vec));
        Ok(std::mem::replace(&mut self.place, before))
    }
}

/// The run at a place of the index; `None` if no run is there. Its start is that of the place: a key that the summary
/// contradicts leads to no run, and an unreadable summary has no other start.
fn at_place(view: &View, place: &[u8]) -> Result<Option<StoredRun>, redb::Error> {
    let Some(IndexKey { started, run }) = IndexKey::behind_group(place) else { return Ok(None) };
    let Some(Found { mut stored, is_by_summary }) = found(view, &run.into())? else { return Ok(None) };
    if is_by_summary && stored.run.started != started {
        return Ok(None);
    }
    stored.run.started = started;
    Ok(Some(stored))
}

/// A run by its entry, and the time of its latest write. A run with a damaged entry counts as open. `None` if the key
/// is no id.
pub(crate) fn written_run(key: &[u8], value: &[u8]) -> Option<(StoredRun, SystemTime)> {
    let id = std::str::from_utf8(key).ok()?;
    let entry = RunEntry::from_bytes(id, value).ok();
    let summary = entry.as_ref().and_then(|entry| from_slice(entry.summary).ok());
    let run = summary.unwrap_or_else(|| RunSummary::running("", SystemTime::UNIX_EPOCH));
    let (end, written) =
        entry.map_or((Position(0), SystemTime::UNIX_EPOCH), |entry| (entry.end, entry.written));
    Some((StoredRun { id: id.into(), end, run }, written))
}

/// A run, and whether its summary could be read.
struct Found {
    stored: StoredRun,
    is_by_summary: bool,
}

/// One run by its id.
fn found(view: &View, run: &RunId) -> Result<Option<Found>, redb::Error> {
    let key = run.as_str().as_bytes();
    let Some(entry) = view.runs.get(key)? else { return Ok(None) };
    stored_run(view, key, entry.value())
}

/// A run by its entry, or else by its journal; `None` if the key is no id.
fn stored_run(view: &View, key: &[u8], value: &[u8]) -> Result<Option<Found>, redb::Error> {
    let Ok(id) = std::str::from_utf8(key) else { return Ok(None) };
    let entry = RunEntry::from_bytes(id, value).ok();
    let summary = entry.as_ref().and_then(|entry| from_slice(entry.summary).ok());
    let (stored, is_by_summary) = match (&entry, summary) {
        (Some(entry), Some(run)) => (StoredRun { id: id.into(), end: entry.end, run }, true),
        _ => (run_from_journal(view, id)?, false),
    };
    Ok(Some(Found { stored, is_by_summary }))
}

/// A run by its first and last record. Without readable ones it counts as open, so that it is not removed.
fn run_from_journal(view: &View, id: &str) -> Result<StoredRun, redb::Error> {
    let ends = Ends::of(view, id)?;
    let begun = ends.as_ref().and_then(|ends| from_slice(&ends.first).ok());
    let mut run = begun.as_ref().and_then(RunSummary::begun_by);
    let last = ends.as_ref().and_then(|ends| from_slice(&ends.last).ok());
    if let (Some(run), Some(Record::RunEnded { status, at, .. })) = (&mut run, last) {
        *run = run.clone().ended(status);
        run.ended = Some(at);
    }
    let run = run.unwrap_or_else(|| RunSummary::running("", SystemTime::UNIX_EPOCH));
    Ok(StoredRun { id: id.into(), end: ends.map(|ends| ends.end).unwrap_or_default(), run })
}
