//! The format of a store's file, byte by byte. This is version 3.
//!
//! A store is a [redb](https://docs.rs/redb) database (file format 3) with the tables below. Keys and values of all
//! of them are byte strings (`&[u8]` to redb), and keys are ordered byte by byte. Numbers are big-endian, so that their
//! order is that of their bytes. Texts are UTF-8. JSON is what `serde_json` writes of the type that is named.
//!
//! | table | key | value |
//! |---|---|---|
//! | `workflow.meta` | a name | see below |
//! | `workflow.records` | *length*, *run*, *position* | *sum*, JSON of the [`Record`] |
//! | `workflow.recent` | *number* | *length*, *run*, *position*, then for each record of a write *size*, *record* |
//! | `workflow.runs` | *run* | *sum*, *end*, *written*, *count*, as many *number*, JSON of the [`RunSummary`](workflow_core::store::RunSummary), with times as numbers |
//! | `workflow.open` | *run* | the engine that owns the run by its summary; 0 bytes if none does, or an earlier version wrote them |
//! | `workflow.index` | *group*, *length*, *name*, *started*, *run* | nothing: 0 bytes |
//! | `workflow.contexts` | *kind*, *length*, *scope*, *name* | JSON of the value |
//! | `workflow.inbox` | *length*, *run*, *order*, *id* | *sum*, JSON of the [`InboxMessage`](workflow_core::store::InboxMessage) |
//! | `workflow.inbox_ids` | *length*, *run*, *id* | *order* |
//! | `workflow.refused` | *number* | *sum*, JSON of the [`RefusedMessage`](workflow_core::store::RefusedMessage) |
//!
//! The parts follow each other without separators:
//!
//! | part | bytes | what |
//! |---|---|---|
//! | *length* | 4 | how many bytes the id of the run or the scope has, or the *name* |
//! | *run* | *length*, or the whole key | the run's id |
//! | *position* | 8 | how many records of the run are before it: 0, 1, 2 … without a gap |
//! | *end* | 8 | how many records the run has |
//! | *number* | 8 | one more than the number before it in its table; 0 for the first |
//! | *size* | 4 | how many bytes the record has |
//! | *record* | *size* | the record as `workflow.records` has it: *sum*, JSON |
//! | *sum* | 5 | 0x84, then the CRC-32 of the record's key in `workflow.records`, of the run's id, or of the message's key, and of what follows |
//! | *count* | 2 | how many writes of the run are only in `workflow.recent`: 0 to 32 |
//! | *written* | 8 | when its latest write was made: milliseconds since 1970 in UTC, by the clock of the machine |
//! | *group* | 1 | 0 for runs by state, 1 by workflow, 2 by thread |
//! | *started* | 12 | the start in the run's summary: seconds since 1970 in 8 bytes, nanoseconds in 4 |
//! | *order* | 8 | one more than that of the pending message before it of the run; 0 if none is pending |
//! | *id* | the rest | the id of the message |
//! | *kind* | 1 | 0 for the context of a run, 1 for that of a thread |
//! | *scope* | *length* | the run's or the thread's id |
//! | *name* | *length*, or the rest | of a group: `open`, the status of ended runs as in summaries, the workflow, or the thread; otherwise the key of the value in its context |
//!
//! `workflow.meta` has two keys:
//!
//! | key | value |
//! |---|---|
//! | `format` | 4 bytes: 3 if the file has ever had a message, otherwise 2 |
//! | `recovery` | `one-phase`: redb makes every commit in one phase, and checksums detect what a crash left |
//!
//! # Invariants between the tables
//! - Each run in `workflow.records` has an entry in `workflow.runs`. Its journal is its records in `workflow.records`,
//!   followed by the writes in `workflow.recent` that its entry names, in that order: as many records as its *end*
//!   says.
//! - A write in `workflow.recent` that its run's entry does not name is in `workflow.records` too, or its run was
//!   removed; a reader ignores it. A write without records marks the removal of a run: writes before it do not belong
//!   to a later run with the same id.
//! - `workflow.open` has exactly the runs whose summary is not of an ended run. Earlier versions read no value of it, and
//!   write 0 bytes with each changed summary, so a value that is there is right.
//! - `workflow.index` has a key of each run for its state and for its workflow, and one for its thread if the summary has
//!   one.
//! - `workflow.inbox_ids` has a key for each message in `workflow.inbox`, which has at most 100,000. `workflow.refused` has at
//!   most 1,000. The removal of a run removes its messages in the first two.
//! - A write, its summary and the changes of `workflow.open` and `workflow.index` are one transaction of redb.
//!
//! # Why there are two tables for records
//! A commit writes every page of the file that it changed. If each write went to the records of its run at once, writes
//! that many runs append at the same time would change a page for each run. In `workflow.recent` they share pages, in
//! the order in which they come. The store moves the writes of a run once there are 32 of them, so the run's page is
//! written once for all of them, or once 16,384 later writes have come. A write of more than 16 KiB has pages of its
//! own anyway: it goes to `workflow.records` at once, with the run's writes in `workflow.recent`. So does each of up to
//! three writes that are committed together.
//!
//! Apart from recent writes, the records of a run are one range of keys in their order; runs are ordered by the bytes
//! of their ids; a context is one range. Reading a page of any of them touches nothing else.
//!
//! Within a group of `workflow.index` the keys have the order of starts. A page of runs, newest first, is the end of the
//! range of a group, or of the ranges of all states merged. A state changes when a run begins, ends or is redriven, so
//! most writes change no key.
//!
//! # Checksums
//! redb compares the checksums of its pages only where a file is verified as a whole. The *sum* of a record is compared at
//! each reading of the record, and that of an entry at each reading of the run. So a flipped bit of a record is an error
//! at the next reading of its run. The end of the journal in the entry shows that no record is missing.
//!
//! # Versions
//! A reader looks at `format` first, and does not open a file with a greater version. New kinds of records in the core
//! do not change the version: a record is opaque to its store.
//!
//! Version 2 has no inbox. A file is of version 2, which earlier versions of this crate open, until it takes its first message;
//! the message brings the three tables of the inbox and version 3, in one transaction.
//!
//! Version 1 had neither *sum* nor `workflow.index`. A file of version 1 is read as it is. Opening it for writing builds the index and
//! sets version 2, in one transaction. Values without a *sum* stay until they are written again, moved or copied by a
//! [snapshot](crate::RedbStore::snapshot). They are told apart by their first byte: a record begins with `{`, an entry
//! with 0.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use redb::TableDefinition;
use workflow_core::store::{ContextScope, Position, Record};

use crate::error::Malformed;
use crate::index::Kind;
use crate::seal;

/// The greatest version of the format that this crate reads, and the one of files with messages.
pub const VERSION: u32 = 3;

/// The version of files without messages.
pub(crate) const WITHOUT_INBOX: u32 = 2;

/// All tables have this type.
pub(crate) type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

pub(crate) const META: Definition = TableDefinition::new("workflow.meta");
pub(crate) const RECORDS: Definition = TableDefinition::new("workflow.records");
pub(crate) const RECENT: Definition = TableDefinition::new("workflow.recent");
pub(crate) const RUNS: Definition = TableDefinition::new("workflow.runs");
pub(crate) const OPEN: Definition = TableDefinition::new("workflow.open");
pub(crate) const INDEX: Definition = TableDefinition::new("workflow.index");
pub(crate) const CONTEXTS: Definition = TableDefinition::new("workflow.contexts");

pub(crate) const INBOX: Definition = TableDefinition::new("workflow.inbox");
pub(crate) const INBOX_IDS: Definition = TableDefinition::new("workflow.inbox_ids");
pub(crate) const REFUSED: Definition = TableDefinition::new("workflow.refused");

/// Every table of a store without messages.
pub(crate) const TABLES: [Definition; 7] = [META, RECORDS, RECENT, RUNS, OPEN, INDEX, CONTEXTS];

pub(crate) const FORMAT_KEY: &[u8] = b"format";
pub(crate) const RECOVERY_KEY: &[u8] = b"recovery";
pub(crate) const RECOVERY: &[u8] = b"one-phase";

const RUN_KIND: u8 = 0;
const THREAD_KIND: u8 = 1;

/// The key of a record.
pub(crate) fn record_key(run: &str, position: Position) -> Vec<u8> {
    let mut key = Vec::with_capacity(4 + run.len() + 8);
    push_id(&mut key, run);
    key.extend_from_slice(&position.0.to_be_bytes());
    key
}

/// Changes the key of a record to that of another position of the same run.
pub(crate) fn move_record_key(key: &mut [u8], position: Position) {
    if let Some(end) = key.last_chunk_mut() {
        *end = position.0.to_be_bytes();
    }
}

/// The keys of a run's records from a position on, without the very last one: no journal is that long.
pub(crate) fn record_keys(run: &str, from: Position) -> Range<Vec<u8>> {
    record_key(run, from)..record_key(run, Position(u64::MAX))
}

/// The run and the position of a record's key; `None` if it is no such key.
pub(crate) fn parse_record_key(key: &[u8]) -> Option<(&str, Position)> {
    let (run, rest) = split_id(key)?;
    Some((run, Position(u64::from_be_bytes(rest.try_into().ok()?))))
}

/// The common prefix of a context's keys.
pub(crate) fn context_prefix(scope: &ContextScope) -> Vec<u8> {
    let (kind, id) = match scope {
        ContextScope::Run(run) => (RUN_KIND, run.as_str()),
        ContextScope::Thread(thread) => (THREAD_KIND, thread.as_str()),
    };
    let mut key = vec![kind];
    push_id(&mut key, id);
    key
}

/// The key of a value in a context.
pub(crate) fn context_key(scope: &ContextScope, name: &str) -> Vec<u8> {
    let mut key = context_prefix(scope);
    key.extend_from_slice(name.as_bytes());
    key
}

/// The context and the name of a value's key; `None` if it is no such key.
pub(crate) fn parse_context_key(key: &[u8]) -> Option<(ContextScope, &str)> {
    let (kind, rest) = key.split_first()?;
    let (id, name) = split_id(rest)?;
    let scope = match *kind {
        RUN_KIND => ContextScope::Run(id.into()),
        THREAD_KIND => ContextScope::Thread(id.into()),
        _ => return None,
    };
    Some((scope, std::str::from_utf8(name).ok()?))
}

/// The common prefix of a run's keys in the inbox and in its index of ids.
pub(crate) fn inbox_prefix(run: &str) -> Vec<u8> {
    let mut key = Vec::new();
    push_id(&mut key, run);
    key
}

/// The key of a pending message.
pub(crate) fn inbox_key(run: &str, order: u64, id: &str) -> Vec<u8> {
    [&inbox_prefix(run), &order.to_be_bytes()[..], id.as_bytes()].concat()
}

/// The key of a message in the index of ids.
pub(crate) fn inbox_id_key(run: &str, id: &str) -> Vec<u8> {
    [&inbox_prefix(run), id.as_bytes()].concat()
}

/// The parts of the key of a pending message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InboxKey<'a> {
    pub(crate) run: &'a str,
    pub(crate) order: u64,
    pub(crate) id: &'a str,
}

/// `None` if it is no key of a pending message.
pub(crate) fn parse_inbox_key(key: &[u8]) -> Option<InboxKey<'_>> {
    let (run, rest) = split_id(key)?;
    let (order, id) = rest.split_first_chunk::<8>()?;
    Some(InboxKey { run, order: u64::from_be_bytes(*order), id: std::str::from_utf8(id).ok()? })
}

/// The run and the id of a key in the index of ids; `None` if it is no such key.
pub(crate) fn parse_inbox_id_key(key: &[u8]) -> Option<(&str, &str)> {
    let (run, id) = split_id(key)?;
    Some((run, std::str::from_utf8(id).ok()?))
}

/// How many bytes of a key the start of a run has.
pub(crate) const TIME: usize = 12;

/// The common prefix of a group's keys in the index.
pub(crate) fn index_group(kind: Kind, name: &str) -> Vec<u8> {
    let mut key = vec![kind as u8];
    push_id(&mut key, name);
    key
}

/// The start of a run in a key. A time before 1970, which no summary has, counts as 1970.
pub(crate) fn index_time(started: SystemTime) -> [u8; TIME] {
    let since = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut bytes = [0; TIME];
    bytes[..8].copy_from_slice(&since.as_secs().to_be_bytes());
    bytes[8..].copy_from_slice(&since.subsec_nanos().to_be_bytes());
    bytes
}

/// The parts of a key in the index that a listing needs.
pub(crate) struct IndexKey<'a> {
    pub(crate) started: SystemTime,
    pub(crate) run: &'a str,
}

impl<'a> IndexKey<'a> {
    /// Reads what follows the prefix of a group; `None` if it is no such key.
    pub(crate) fn behind_group(rest: &'a [u8]) -> Option<Self> {
        let (seconds, rest) = rest.split_first_chunk::<8>()?;
        let (nanos, run) = rest.split_first_chunk::<4>()?;
        let nanos = u32::from_be_bytes(*nanos);
        let since = Duration::new(u64::from_be_bytes(*seconds), (nanos < 1_000_000_000).then_some(nanos)?);
        let started = SystemTime::UNIX_EPOCH.checked_add(since)?;
        Some(Self { started, run: std::str::from_utf8(run).ok()? })
    }
}

/// The start and the run of a key in the index; `None` if it is no such key.
pub(crate) fn parse_index_key(key: &[u8]) -> Option<IndexKey<'_>> {
    let (kind, rest) = key.split_first()?;
    let (_, rest) = split_id(rest).filter(|_| *kind <= Kind::Thread as u8)?;
    IndexKey::behind_group(rest)
}

/// All keys with this prefix, which has a byte below 255.
pub(crate) fn beginning_with(prefix: Vec<u8>) -> Range<Vec<u8>> {
    let mut end = prefix.clone();
    while end.pop_if(|last| *last == u8::MAX).is_some() {}
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    prefix..end
}

/// A longer id exceeds the size of a write, so its clamped length never reaches the file.
fn push_id(key: &mut Vec<u8>, id: &str) {
    let length = u32::try_from(id.len()).unwrap_or(u32::MAX);
    key.extend_from_slice(&length.to_be_bytes());
    key.extend_from_slice(id.as_bytes());
}

fn split_id(key: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = key.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (id, rest) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(id).ok()?, rest))
}

/// The entry of a run in `workflow.runs`.
pub(crate) struct RunEntry<'a> {
    pub(crate) end: Position,
    pub(crate) written: SystemTime,
    /// The numbers of its writes that are only in `workflow.recent`, big-endian, in their order.
    pub(crate) recent: &'a [[u8; 8]],
    /// JSON of the summary.
    pub(crate) summary: &'a [u8],
}

impl<'a> RunEntry<'a> {
    /// The entry of this run, with its checksum.
    pub(crate) fn to_bytes(&self, run: &str) -> Vec<u8> {
        let since = self.written.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let mut bytes = Vec::with_capacity(23 + 8 * self.recent.len() + self.summary.len());
        let sum = seal::reserve(&mut bytes);
        bytes.extend_from_slice(&self.end.0.to_be_bytes());
        bytes.extend_from_slice(&millis.to_be_bytes());
        // At most 32.
        let count = u16::try_from(self.recent.len()).unwrap_or(u16::MAX);
        bytes.extend_from_slice(&count.to_be_bytes());
        bytes.extend_from_slice(self.recent.as_flattened());
        bytes.extend_from_slice(self.summary);
        seal::fill(&mut bytes, sum, run.as_bytes());
        bytes
    }

    /// An error if the checksum differs, or if there are too few bytes.
    pub(crate) fn from_bytes(run: &str, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let bytes = seal::entry(run.as_bytes(), bytes)?;
        Self::parse(bytes).ok_or(Malformed("entry of 18 bytes and more"))
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (end, rest) = bytes.split_first_chunk::<8>()?;
        let (millis, rest) = rest.split_first_chunk::<8>()?;
        let (count, rest) = rest.split_first_chunk::<2>()?;
        let (numbers, summary) = rest.split_at_checked(8 * usize::from(u16::from_be_bytes(*count)))?;
        let since = Duration::from_millis(u64::from_be_bytes(*millis));
        let written = SystemTime::UNIX_EPOCH.checked_add(since)?;
        let recent = numbers.as_chunks().0;
        Some(Self { end: Position(u64::from_be_bytes(*end)), written, recent, summary })
    }
}

/// Adds the record of this key to a write in the form of `workflow.recent`, which begins with the key of its first record.
pub(crate) fn push_recent(batch: &mut Vec<u8>, key: &[u8], record: &Record) -> serde_json::Result<()> {
    let at = batch.len();
    batch.extend_from_slice(&[0; 4]);
    let sum = seal::reserve(batch);
    serde_json::to_writer(&mut *batch, record)?;
    seal::fill(batch, sum, key);
    // A write that is too long for its lengths is refused for its size.
    let size = u32::try_from(batch.len() - at - 4).unwrap_or(u32::MAX);
    batch[at..at + 4].copy_from_slice(&size.to_be_bytes());
    Ok(())
}

/// A write in the form of `workflow.recent`.
pub(crate) struct RecentWrite<'a> {
    /// The key of its first record.
    pub(crate) key: &'a [u8],
    pub(crate) run: &'a str,
    pub(crate) position: Position,
    records: &'a [u8],
}

impl<'a> RecentWrite<'a> {
    /// `None` if its run cannot be read.
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (length, _) = bytes.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (key, records) = bytes.split_at_checked(length.checked_add(4 + 8)?)?;
        let (run, position) = parse_record_key(key)?;
        Some(Self { key, run, position, records })
    }

    /// Whether it marks the removal of its run.
    pub(crate) fn is_removal(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether its records use all of its bytes.
    pub(crate) fn is_whole(&self) -> bool {
        self.records().map(|record| 4 + record.len()).sum::<usize>() == self.records.len()
    }

    /// Its records as `workflow.records` has them, in their order.
    pub(crate) fn records(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.records;
        std::iter::from_fn(move || {
            let (size, behind) = rest.split_first_chunk::<4>()?;
            let (record, behind) =
                behind.split_at_checked(usize::try_from(u32::from_be_bytes(*size)).ok()?)?;
            rest = behind;
            Some(record)
        })
    }
}

#[cfg(test)]
mod tests {
    use workflow_core::RunStatus;

    use super::*;

    #[test]
    fn a_key_is_read_back_into_its_parts() {
        for run in ["", "a", "a\0\0\0\0\0\0\0\0", "日本"] {
            let key = record_key(run, Position(7));
            assert_eq!(parse_record_key(&key), Some((run, Position(7))));
        }
        let scope = ContextScope::Thread("user-4".into());
        assert_eq!(parse_context_key(&context_key(&scope, "k")), Some((scope, "k")));
    }

    #[test]
    fn the_bytes_of_a_key_are_those_of_the_format() {
        assert_eq!(record_key("ab", Position(258)), b"\0\0\0\x02ab\0\0\0\0\0\0\x01\x02");
        assert_eq!(context_key(&ContextScope::Run("ab".into()), "k"), b"\0\0\0\0\x02abk");
        assert_eq!(context_key(&ContextScope::Thread("ab".into()), ""), b"\x01\0\0\0\x02ab");
    }

    #[test]
    fn the_bytes_of_a_key_in_the_index_are_those_of_the_format() {
        let started = SystemTime::UNIX_EPOCH + Duration::new(258, 3);
        let group = index_group(Kind::Thread, "ab");
        let key = [&group, &index_time(started)[..], b"run"].concat();
        assert_eq!(key, b"\x02\0\0\0\x02ab\0\0\0\0\0\0\x01\x02\0\0\0\x03run");
        let parsed = parse_index_key(&key).unwrap();
        assert_eq!((parsed.started, parsed.run), (started, "run"));
        assert_eq!([Kind::State, Kind::Workflow, Kind::Thread].map(|kind| kind as u8), [0, 1, 2]);
    }

    #[test]
    fn the_bytes_of_a_recent_batch_and_of_an_entry_are_those_of_the_format() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(258);
        let ended = Record::RunEnded {
            status: RunStatus::Completed,
            step: None,
            error: None,
            deadline: None,
            origin: None,
            at,
        };
        let mut batch = record_key("ab", Position(7));
        let json = serde_json::to_vec(&ended).unwrap();
        let [one, other] = [7, 8].map(|position| {
            let key = record_key("ab", Position(position));
            push_recent(&mut batch, &key, &ended).unwrap();
            seal::sealed(&key, &json).into_owned()
        });
        let size = u32::try_from(5 + json.len()).unwrap().to_be_bytes();
        let key = b"\0\0\0\x02ab\0\0\0\0\0\0\0\x07";
        assert_eq!(batch, [&key[..], &size, &one, &size, &other].concat());
        let read = RecentWrite::from_bytes(&batch).unwrap();
        assert_eq!((read.key, read.run, read.position), (&key[..], "ab", Position(7)));
        assert_eq!(read.records().collect::<Vec<_>>(), [&one[..], &other]);
        assert!(read.is_whole() && !read.is_removal());
        assert!(!RecentWrite::from_bytes(&batch[..batch.len() - 1]).unwrap().is_whole());

        let recent = [[0, 0, 0, 0, 0, 0, 0, 3], [0, 0, 0, 0, 0, 0, 1, 2]];
        let entry = RunEntry { end: Position(9), written: at, recent: &recent, summary: b"{}" };
        let bytes = entry.to_bytes("ab");
        let unsealed =
            b"\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\x01\x02\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\x01\x02{}";
        let sum = crc32fast::hash(&[&b"ab"[..], unsealed].concat()).to_be_bytes();
        assert_eq!(bytes, [&b"\x84"[..], &sum, unsealed].concat());
        for bytes in [&bytes[..], unsealed] {
            let read = RunEntry::from_bytes("ab", bytes).unwrap();
            assert_eq!(
                (read.end, read.written, read.recent, read.summary),
                (Position(9), at, &recent[..], &b"{}"[..])
            );
        }
        assert!(RunEntry::from_bytes("ac", &bytes).is_err());
    }

    #[test]
    fn a_key_that_was_moved_is_that_of_its_position() {
        let mut key = record_key("ab", Position(0));
        for position in [1, 258, u64::MAX] {
            move_record_key(&mut key, Position(position));
            assert_eq!(key, record_key("ab", Position(position)));
        }
    }

    #[test]
    fn other_bytes_are_no_key() {
        assert_eq!(parse_record_key(b""), None);
        assert_eq!(parse_record_key(b"\0\0\0\x09ab\0\0\0\0\0\0\0\0"), None);
        assert_eq!(parse_record_key(b"\0\0\0\x01\xff\0\0\0\0\0\0\0\0"), None);
        assert_eq!(parse_context_key(b"\x02\0\0\0\0"), None);
        assert_eq!(parse_inbox_key(b"\0\0\0\x01a\0\0\0\0\0\0\0"), None);
        assert_eq!(parse_inbox_id_key(b"\0\0\0\x01a\xff"), None);
        assert!(RunEntry::from_bytes("", &[0; 17]).is_err());
        assert!(RunEntry::from_bytes("", &[1; 18]).is_err());
        assert!(parse_index_key(b"\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0").is_none());
        assert!(parse_index_key(b"\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\0\0\0").is_none());
        assert!(parse_index_key(b"\0\0\0\0\x01a\0\0\0\0").is_none());
        assert!(RecentWrite::from_bytes(b"\xff\xff\xff\xff").is_none());
    }

    #[test]
    fn the_keys_that_begin_with_a_prefix_end_before_the_next_prefix() {
        assert_eq!(beginning_with(vec![0, 1]), vec![0, 1]..vec![0, 2]);
        assert_eq!(beginning_with(vec![0, 255]), vec![0, 255]..vec![1]);
    }
}
