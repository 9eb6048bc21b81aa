//! Bringing a file of format 1 to format 2: the index of starts is built. Records and entries stay as they are.

use redb::{Database, ReadableTable};

use crate::format::{FORMAT_KEY, INDEX, META, RUNS, WITHOUT_INBOX};
use crate::index::Indexed;
use crate::tables::{Bytes, Writing};

/// How many runs are put into the order of the index at a time, which bounds the memory.
const AT_ONCE: usize = 1 << 16;

/// Builds the index and sets the version, in one transaction. O(runs · log runs).
pub(crate) fn upgrade(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let runs = transaction.open_table(RUNS)?;
        let mut index = transaction.open_table(INDEX)?;
        build(&runs, &mut index)?;
        transaction.open_table(META)?.insert(FORMAT_KEY, &WITHOUT_INBOX.to_be_bytes()[..])?;
    }
    Ok(transaction.commit()?)
}

fn build(runs: &impl ReadableTable<Bytes, Bytes>, index: &mut Writing<'_>) -> Result<(), redb::Error> {
    let (mut keys, mut count) = (Vec::new(), 0);
    for entry in runs.range::<&[u8]>(..)? {
        let (key, value) = entry?;
        // A run without a readable summary is in no group; a check reports it.
        if let Ok(run) = std::str::from_utf8(key.value())
            && let Some(indexed) = Indexed::of_entry(run, value.value())
        {
            keys.extend(indexed.keys(run));
        }
        count += 1;
        if count % AT_ONCE == 0 {
            insert(&mut keys, index)?;
        }
    }
    insert(&mut keys, index)
}

/// Inserts keys in their order, which changes each page of the index once.
fn insert(keys: &mut Vec<Vec<u8>>, index: &mut Writing<'_>) -> Result<(), redb::Error> {
    keys.sort_unstable();
    for key in keys.drain(..) {
        index.insert(&*key, &[][..])?;
    }
    Ok(())
}
