//! The most recent writes of all runs, in the order of their commits, and how they move to the table of their runs. The
//! format (`format`) explains why there are two tables.
//!
//! ```text
//! append ─▶ add: few callers, large, or 32 of the run? ── yes ─▶ settle the run's recent writes, insert into `records`
//!                      │ no
//!                      └▶ push into `recent`; the run's entry names its number
//! later     the oldest write goes: if the run's entry still names it, all of the run's recent writes settle first
//! ```
//!
//! Invariant: at any moment a run's journal is its records in `records`, followed by the writes in `recent` that its
//! entry names, in that order.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use redb::{ReadableTable, ReadableTableMetadata as _, TableHandle as _};
use workflow_core::RunId;
use workflow_core::store::Position;

use crate::error::Malformed;
use crate::format::{RECENT, RecentWrite, RunEntry, move_record_key, record_key, record_keys};
use crate::seal;
use crate::tables::{Bytes, ReadError, Tables, View, Writing, bytes_at};

/// How many writes of one run may be recent.
const MOST_OF_A_RUN: usize = 32;

/// How many writes may be recent in all.
const MOST: u64 = 16_384;

/// A larger write is never recent.
const LARGE: usize = 16 << 10;

/// How many of the oldest writes are released for each new one, while there are too many.
const RELEASED_EACH: usize = 2;

/// The numbers of a run's recent writes, as its entry has them.
type Numbers = [[u8; 8]];

/// Adds a write to the run's recent ones, whose numbers are `numbers`, or settles them all with it. Few callers in a
/// commit share no page, so their writes go to `records` at once. O(1) amortised over the writes of a run.
pub(crate) fn add(
    tables: &mut Tables<'_>,
    run: &str,
    numbers: &mut Vec<[u8; 8]>,
    batch: &[u8],
) -> Result<(), redb::Error> {
    if !tables.shared || batch.len() > LARGE || numbers.len() >= MOST_OF_A_RUN {
        // The run's earlier writes come first, so that its records have no gap.
        settle(tables, run, numbers)?;
        numbers.clear();
        tables.written += batch.len();
        insert_records(tables.records()?, batch)?;
    } else {
        numbers.push(push(tables, batch)?);
    }
    // Two for each new write: the table shrinks back to its bound without a commit that moves everything at once.
    for _ in 0..RELEASED_EACH {
        if tables.recent.len()? > MOST {
            release_oldest(tables)?;
        }
    }
    Ok(())
}

/// Appends a write to the recent ones. Returns its number.
fn push(tables: &mut Tables<'_>, batch: &[u8]) -> Result<[u8; 8], redb::Error> {
    let next = match tables.next_recent {
        Some(next) => next,
        None => next_number(&tables.recent)?,
    };
    tables.next_recent = Some(next.wrapping_add(1));
    let number = next.to_be_bytes();
    tables.written += batch.len();
    tables.recent.insert(&number[..], batch)?;
    Ok(number)
}

/// The number after the latest recent write.
fn next_number(recent: &Writing<'_>) -> Result<u64, redb::Error> {
    for entry in recent.range::<&[u8]>(..)?.rev() {
        // A key that is no number is skipped; a check reports it.
        if let Ok(last) = entry?.0.value().try_into() {
            return Ok(u64::from_be_bytes(last).wrapping_add(1));
        }
    }
    Ok(0)
}

/// Settles and removes recent writes, the oldest first, until the transaction has written so many bytes. Returns whether
/// there are more.
pub(crate) fn settle_some(tables: &mut Tables<'_>, bytes: usize) -> Result<bool, redb::Error> {
    while tables.written < bytes {
        if !release_oldest(tables)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes the recent writes of a removed run, and records the removal: writes that were settled may still be there.
pub(crate) fn forget(tables: &mut Tables<'_>, run: &str, numbers: &Numbers) -> Result<(), redb::Error> {
    for number in numbers {
        if named(&tables.recent, run, *number)?.is_some() {
            tables.recent.remove(&number[..])?;
        }
    }
    push(tables, &record_key(run, Position(0)))?;
    Ok(())
}

/// Copies writes to the records of their run.
fn settle(tables: &mut Tables<'_>, run: &str, numbers: &Numbers) -> Result<(), redb::Error> {
    for number in numbers {
        // A missing write leaves a gap, and reading the run reports it.
        if let Some(batch) = named(&tables.recent, run, *number)? {
            tables.written += batch.len();
            insert_records(tables.records()?, &batch)?;
        }
    }
    Ok(())
}

/// The run's write with this number. `None` if it is another run's, which only damage causes.
fn named(
    recent: &impl ReadableTable<Bytes, Bytes>,
    run: &str,
    number: [u8; 8],
) -> Result<Option<Vec<u8>>, redb::Error> {
    let batch = bytes_at(recent, &number)?;
    Ok(batch.filter(|batch| RecentWrite::from_bytes(batch).is_some_and(|batch| batch.run == run)))
}

/// Inserts the records of a write where the records of its run are.
fn insert_records(records: &mut Writing<'_>, batch: &[u8]) -> Result<(), redb::Error> {
    let Some(batch) = RecentWrite::from_bytes(batch) else { return Ok(()) };
    let mut key = batch.key.to_vec();
    for (number, record) in batch.records().enumerate() {
        move_record_key(&mut key, batch.position.after(number));
        records.insert(&*key, &*seal::sealed(&key, record))?;
    }
    Ok(())
}

/// Removes the oldest write. If its run still needs it, all recent writes of the run are settled first. Returns `false`
/// if there is none.
fn release_oldest(tables: &mut Tables<'_>) -> Result<bool, redb::Error> {
    let Some(number) = tables.recent.first()?.map(|(number, _)| number.value().to_vec()) else {
        return Ok(false);
    };
    if let Some(batch) = bytes_at(&tables.recent, &number)? {
        release(tables, &number, &batch)?;
    }
    if tables.recent.remove(&*number)?.is_none() {
        // Only in a damaged table. Without the error, a caller's loop would never end.
        return Err(redb::Error::Corrupted(format!("the first key of `{}` is not found", RECENT.name())));
    }
    Ok(true)
}

/// Settles the writes of the oldest write's run, if the run's entry names that write.
fn release(tables: &mut Tables<'_>, number: &[u8], batch: &[u8]) -> Result<(), redb::Error> {
    let Some(run) = RecentWrite::from_bytes(batch).map(|batch| batch.run) else { return Ok(()) };
    let Some(entry) = bytes_at(&tables.runs, run.as_bytes())? else { return Ok(()) };
    match RunEntry::from_bytes(run, &entry) {
        Ok(entry) if entry.recent.iter().any(|recent| recent == number) => {
            settle(tables, run, entry.recent)?;
            tables.runs.insert(run.as_bytes(), &*RunEntry { recent: &[], ..entry }.to_bytes(run))?;
            Ok(())
        }
        Ok(_) => Ok(()),
        // An unreadable entry may have named it.
        Err(_) => {
            let found = scan(&tables.recent, run)?;
            insert_missing(tables.records()?, &found)
        }
    }
}

/// Settles the recent writes of a run in a copy of the store. Returns the run's entry for the copy.
pub(crate) fn settle_copy(
    view: &View,
    run: &str,
    entry: &[u8],
    records: &mut Writing<'_>,
) -> Result<Vec<u8>, redb::Error> {
    insert_missing(records, &recent_of(view, run)?.0)?;
    let settled = RunEntry::from_bytes(run, entry);
    let settled = settled.map(|entry| RunEntry { recent: &[], ..entry }.to_bytes(run));
    Ok(settled.unwrap_or_else(|_| entry.to_vec()))
}

/// Copies records to keys that have none.
fn insert_missing(records: &mut Writing<'_>, batches: &[Vec<u8>]) -> Result<(), redb::Error> {
    for batch in batches.iter().filter_map(|batch| RecentWrite::from_bytes(batch)) {
        let mut key = batch.key.to_vec();
        for (number, record) in batch.records().enumerate() {
            move_record_key(&mut key, batch.position.after(number));
            if records.get(&*key)?.is_none() {
                records.insert(&*key, &*seal::sealed(&key, record))?;
            }
        }
    }
    Ok(())
}

/// The end of a visit of a run's records.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Visited {
    /// The visitor broke it off.
    Some,
    /// All records were visited. By the run's entry the journal ends here; `None` without a readable entry.
    All { end: Option<Position> },
}

/// Passes the JSON of the records of a run to `each`, from a position on and in their order, until it breaks. A record
/// whose checksum differs is an error.
pub(crate) fn visit<E>(
    view: &View,
    run: &str,
    from: Position,
    mut each: impl FnMut(Position, Result<&[u8], Malformed>) -> Result<ControlFlow<()>, E>,
) -> Result<Visited, ReadError<E>> {
    let mut next = from;
    let keys = record_keys(run, from);
    for entry in view.records.range(&*keys.start..&*keys.end)? {
        let (key, record) = entry?;
        let Some(position) = position_in(key.value()) else { continue };
        let record = seal::record(key.value(), record.value());
        if each(position, record).map_err(ReadError::Own)?.is_break() {
            return Ok(Visited::Some);
        }
        next = position.after(1);
    }
    let (batches, end) = recent_of(view, run)?;
    for batch in batches {
        let Some(batch) = RecentWrite::from_bytes(&batch) else { continue };
        let mut key = batch.key.to_vec();
        for (number, record) in batch.records().enumerate() {
            let position = batch.position.after(number);
            if position < next {
                continue;
            }
            move_record_key(&mut key, position);
            if each(position, seal::record(&key, record)).map_err(ReadError::Own)?.is_break() {
                return Ok(Visited::Some);
            }
            next = position.after(1);
        }
    }
    Ok(Visited::All { end })
}

/// The JSON of the first and of the last record of a run, empty if its checksum differs, and the end of its journal.
/// O(recent writes of the run).
pub(crate) struct Ends {
    pub(crate) first: Vec<u8>,
    pub(crate) last: Vec<u8>,
    pub(crate) end: Position,
}

impl Ends {
    /// `None` if the run has no record.
    pub(crate) fn of(view: &View, run: &str) -> Result<Option<Self>, redb::Error> {
        let keys = record_keys(run, Position(0));
        let mut records = view.records.range(&*keys.start..&*keys.end)?;
        let first = records.next().transpose()?.map(|(key, record)| at(key.value(), record.value()));
        let last = records.next_back().transpose()?.map(|(key, record)| at(key.value(), record.value()));
        let (first, last) = (first.flatten(), last.flatten());
        let mut ends = first.map(|(position, first)| {
            let (position, last) = last.unwrap_or_else(|| (position, first.clone()));
            Self { first, last, end: position.after(1) }
        });
        for batch in recent_of(view, run)?.0 {
            let Some(batch) = RecentWrite::from_bytes(&batch) else { continue };
            let mut key = batch.key.to_vec();
            for (number, record) in batch.records().enumerate() {
                move_record_key(&mut key, batch.position.after(number));
                let last = seal::record(&key, record).unwrap_or_default().to_vec();
                let end = batch.position.after(number + 1);
                match &mut ends {
                    None => ends = Some(Self { first: last.clone(), last, end }),
                    Some(ends) if ends.end < end => (ends.last, ends.end) = (last, end),
                    Some(_) => {}
                }
            }
        }
        Ok(ends)
    }
}

fn at(key: &[u8], record: &[u8]) -> Option<(Position, Vec<u8>)> {
    Some((position_in(key)?, seal::record(key, record).unwrap_or_default().to_vec()))
}

/// The position in the key of a record.
fn position_in(key: &[u8]) -> Option<Position> {
    key.last_chunk().map(|position| Position(u64::from_be_bytes(*position)))
}

/// The recent writes of a run, in their order, and the end of its journal by its entry.
fn recent_of(view: &View, run: &str) -> Result<(Vec<Vec<u8>>, Option<Position>), redb::Error> {
    let Some(entry) = view.runs.get(run.as_bytes())? else { return Ok((Vec::new(), None)) };
    let Ok(entry) = RunEntry::from_bytes(run, entry.value()) else {
        return Ok((scan(&view.recent, run)?, None));
    };
    let batches = entry.recent.iter().map(|number| named(&view.recent, run, *number));
    Ok((batches.filter_map(Result::transpose).collect::<Result<_, _>>()?, Some(entry.end)))
}

/// The same for a run whose entry cannot be read. Looks at every recent write.
fn scan(recent: &impl ReadableTable<Bytes, Bytes>, run: &str) -> Result<Vec<Vec<u8>>, redb::Error> {
    let mut found = Vec::new();
    for entry in recent.range::<&[u8]>(..)? {
        let (_, bytes) = entry?;
        let Some(batch) = RecentWrite::from_bytes(bytes.value()).filter(|batch| batch.run == run) else {
            continue;
        };
        // Writes before it are of a removed run.
        if batch.is_removal() {
            found.clear();
        } else {
            found.push(bytes.value().to_vec());
        }
    }
    Ok(found)
}

/// A finding of the walk over all recent writes.
pub(crate) enum Finding<'a> {
    /// A key that is no number.
    BadKey(&'a [u8]),
    /// A write that cannot be read.
    BadBatch(u64),
    /// A run without an entry that was not removed.
    Forgotten(RunId),
}

/// Looks at all recent writes, for a check.
pub(crate) fn walk(view: &View, mut tell: impl FnMut(Finding<'_>)) -> Result<(), redb::Error> {
    let mut forgotten = BTreeSet::new();
    for entry in view.recent.range::<&[u8]>(..)? {
        let (key, bytes) = entry?;
        let Ok(number) = key.value().try_into().map(u64::from_be_bytes) else {
            tell(Finding::BadKey(key.value()));
            continue;
        };
        let Some(batch) = RecentWrite::from_bytes(bytes.value()).filter(RecentWrite::is_whole) else {
            tell(Finding::BadBatch(number));
            continue;
        };
        if batch.is_removal() {
            forgotten.remove(batch.run);
        } else if view.runs.get(batch.run.as_bytes())?.is_none() {
            forgotten.insert(batch.run.to_owned());
        }
    }
    for run in forgotten {
        tell(Finding::Forgotten(run.into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
