//! The batches that were committed last, in the order in which they came, and how they come to where the records of
//! their runs are. Why there are two places is told with the format.

use std::ops::ControlFlow;

use redb::{ReadableTable as _, ReadableTableMetadata as _};
use workflow_core::Position;

use crate::format::{RecentBatch, RunEntry, move_record_key, record_keys};
use crate::tables::{Tables, Unread, View, bytes_at};

/// How many batches of one run may wait to be moved.
const MOST_OF_A_RUN: usize = 32;

/// How many batches there may be in all.
const MOST: u64 = 16_384;

/// A batch of more bytes is not put among the recent ones.
const LARGE: usize = 16 << 10;

/// How many of the oldest batches go for each that comes, while there are too many.
const RELEASED_EACH: usize = 2;

/// Adds a batch to those of its run that are recent, whose numbers these are, or moves them all. O(1) amortised over the
/// batches of a run.
pub(crate) fn add(
    tables: &mut Tables<'_>,
    numbers: &mut Vec<[u8; 8]>,
    batch: &[u8],
) -> Result<(), redb::Error> {
    if batch.len() > LARGE || numbers.len() >= MOST_OF_A_RUN {
        settle(tables, numbers)?;
        numbers.clear();
        insert_records(tables, batch)?;
    } else {
        let last = tables.recent.last()?.and_then(|(key, _)| key.value().try_into().ok());
        let number = last.map_or(0, |last| u64::from_be_bytes(last) + 1).to_be_bytes();
        tables.recent.insert(&number[..], batch)?;
        numbers.push(number);
    }
    for _ in 0..RELEASED_EACH {
        if tables.recent.len()? > MOST {
            release_oldest(tables)?;
        }
    }
    Ok(())
}

/// Moves all there are.
pub(crate) fn settle_all(tables: &mut Tables<'_>) -> Result<(), redb::Error> {
    while release_oldest(tables)? {}
    Ok(())
}

/// Removes the batches of a run that is removed.
pub(crate) fn forget(tables: &mut Tables<'_>, numbers: &[[u8; 8]]) -> Result<(), redb::Error> {
    for number in numbers {
        tables.recent.remove(&number[..])?;
    }
    Ok(())
}

/// Copies batches to where the records of their run are.
fn settle(tables: &mut Tables<'_>, numbers: &[[u8; 8]]) -> Result<(), redb::Error> {
    for number in numbers {
        // One that is missing is a gap, which who reads it is told of.
        if let Some(batch) = bytes_at(&tables.recent, number)? {
            insert_records(tables, &batch)?;
        }
    }
    Ok(())
}

fn insert_records(tables: &mut Tables<'_>, batch: &[u8]) -> Result<(), redb::Error> {
    let Some(batch) = RecentBatch::from_bytes(batch) else { return Ok(()) };
    let mut key = batch.key.to_vec();
    for (number, record) in batch.records().enumerate() {
        move_record_key(&mut key, batch.position.after(number));
        tables.records()?.insert(&*key, record)?;
    }
    Ok(())
}

/// Removes the oldest batch. If its run still needs it, all recent ones of the run are moved before. False if there is
/// none.
fn release_oldest(tables: &mut Tables<'_>) -> Result<bool, redb::Error> {
    let Some(number) = tables.recent.first()?.map(|(number, _)| number.value().to_vec()) else {
        return Ok(false);
    };
    if let Some(batch) = bytes_at(&tables.recent, &number)? {
        release(tables, &number, &batch)?;
    }
    tables.recent.remove(&*number)?;
    Ok(true)
}

fn release(tables: &mut Tables<'_>, number: &[u8], batch: &[u8]) -> Result<(), redb::Error> {
    let Some(run) = RecentBatch::from_bytes(batch).map(|batch| batch.run.as_bytes()) else { return Ok(()) };
    let Some(entry) = bytes_at(&tables.runs, run)? else { return Ok(()) };
    match RunEntry::from_bytes(&entry) {
        Some(entry) if entry.recent.iter().any(|recent| recent == number) => {
            settle(tables, entry.recent)?;
            tables.runs.insert(run, &*RunEntry { recent: &[], ..entry }.to_bytes())?;
            Ok(())
        }
        Some(_) => Ok(()),
        // An entry that cannot be read may have named it.
        None => insert_records(tables, batch),
    }
}

/// Shows the records of a run from a position on, in their order, until told to stop.
pub(crate) fn visit<E>(
    view: &View,
    run: &str,
    from: Position,
    mut each: impl FnMut(Position, &[u8]) -> Result<ControlFlow<()>, E>,
) -> Result<(), Unread<E>> {
    let mut next = from;
    let keys = record_keys(run, from);
    for entry in view.records.range(&*keys.start..&*keys.end)? {
        let (key, record) = entry?;
        let Some(position) = key.value().last_chunk() else { continue };
        let position = Position(u64::from_be_bytes(*position));
        if each(position, record.value()).map_err(Unread::Own)?.is_break() {
            return Ok(());
        }
        next = position.after(1);
    }
    for batch in recent_of(view, run)? {
        let Some(batch) = RecentBatch::from_bytes(&batch) else { continue };
        for (number, record) in batch.records().enumerate() {
            let position = batch.position.after(number);
            if position < next {
                continue;
            }
            if each(position, record).map_err(Unread::Own)?.is_break() {
                return Ok(());
            }
            next = position.after(1);
        }
    }
    Ok(())
}

/// The batches of a run that are recent, in their order.
fn recent_of(view: &View, run: &str) -> Result<Vec<Vec<u8>>, redb::Error> {
    let Some(entry) = view.runs.get(run.as_bytes())? else { return Ok(Vec::new()) };
    let Some(entry) = RunEntry::from_bytes(entry.value()) else { return found_recent(view, run) };
    let batches = entry.recent.iter().map(|number| bytes_at(&view.recent, number));
    batches.filter_map(Result::transpose).collect()
}

/// The same for a run whose entry cannot be read: every batch is looked at.
fn found_recent(view: &View, run: &str) -> Result<Vec<Vec<u8>>, redb::Error> {
    let mut found = Vec::new();
    for entry in view.recent.range::<&[u8]>(..)? {
        let (_, batch) = entry?;
        if RecentBatch::from_bytes(batch.value()).is_some_and(|batch| batch.run == run) {
            found.push(batch.value().to_vec());
        }
    }
    Ok(found)
}
