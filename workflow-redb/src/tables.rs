//! The opened tables of a file, for reading and for writing. `format` defines their contents.

use std::convert::Infallible;

use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, Table, WriteTransaction,
};

use crate::error::WorkError;
use crate::format::{
    CONTEXTS, Definition, FORMAT_KEY, INBOX, INBOX_IDS, INDEX, META, OPEN, RECENT, RECORDS, REFUSED, RUNS,
    VERSION,
};

pub(crate) type Bytes = &'static [u8];

/// A table open for writing.
pub(crate) type Writing<'t> = Table<'t, Bytes, Bytes>;

/// A table open for reading.
pub(crate) type Reading = ReadOnlyTable<Bytes, Bytes>;

/// The tables of a write transaction. Every append needs two of them; the others are opened at their first use.
pub(crate) struct Tables<'t> {
    transaction: &'t WriteTransaction,
    pub(crate) recent: Writing<'t>,
    pub(crate) runs: Writing<'t>,
    records: Option<Writing<'t>>,
    /// Whether so many calls share the commit that writes go to `recent`.
    pub(crate) shared: bool,
    /// How many bytes of writes the transaction has written, including the ones that it only moved.
    pub(crate) written: usize,
    /// The number of the next recent write, once it is known.
    pub(crate) next_recent: Option<u64>,
    open: Option<Writing<'t>>,
    index: Option<Writing<'t>>,
    contexts: Option<Writing<'t>>,
    inbox: Option<InboxTables<'t>>,
}

/// The tables of the inbox. A file without messages has none of them.
pub(crate) struct InboxTables<'t> {
    pub(crate) pending: Writing<'t>,
    pub(crate) ids: Writing<'t>,
    pub(crate) refused: Writing<'t>,
}

impl<'t> Tables<'t> {
    pub(crate) fn new(transaction: &'t WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            recent: transaction.open_table(RECENT)?,
            runs: transaction.open_table(RUNS)?,
            records: None,
            shared: false,
            written: 0,
            next_recent: None,
            open: None,
            index: None,
            contexts: None,
            inbox: None,
            transaction,
        })
    }

    pub(crate) fn records(&mut self) -> Result<&mut Writing<'t>, redb::Error> {
        opened(&mut self.records, self.transaction, RECORDS)
    }

    pub(crate) fn open(&mut self) -> Result<&mut Writing<'t>, redb::Error> {
        opened(&mut self.open, self.transaction, OPEN)
    }

    pub(crate) fn index(&mut self) -> Result<&mut Writing<'t>, redb::Error> {
        opened(&mut self.index, self.transaction, INDEX)
    }

    pub(crate) fn contexts(&mut self) -> Result<&mut Writing<'t>, redb::Error> {
        opened(&mut self.contexts, self.transaction, CONTEXTS)
    }

    /// The inbox. A file without one gets it, and the format that has it.
    pub(crate) fn inbox(&mut self) -> Result<&mut InboxTables<'t>, redb::Error> {
        if !self.has_inbox()? {
            self.transaction.open_table(META)?.insert(FORMAT_KEY, &VERSION.to_be_bytes()[..])?;
        }
        match &mut self.inbox {
            Some(inbox) => Ok(inbox),
            inbox => Ok(inbox.insert(InboxTables {
                pending: self.transaction.open_table(INBOX)?,
                ids: self.transaction.open_table(INBOX_IDS)?,
                refused: self.transaction.open_table(REFUSED)?,
            })),
        }
    }

    /// The inbox, if the file has one.
    pub(crate) fn inbox_if_there(&mut self) -> Result<Option<&mut InboxTables<'t>>, redb::Error> {
        if self.has_inbox()? { self.inbox().map(Some) } else { Ok(None) }
    }

    fn has_inbox(&self) -> Result<bool, redb::Error> {
        let is_present = |format: &[u8]| *format == VERSION.to_be_bytes();
        Ok(self.inbox.is_some()
            || self
                .transaction
                .open_table(META)?
                .get(FORMAT_KEY)?
                .is_some_and(|format| is_present(format.value())))
    }
}

fn opened<'a, 't>(
    table: &'a mut Option<Writing<'t>>,
    transaction: &'t WriteTransaction,
    definition: Definition,
) -> Result<&'a mut Writing<'t>, redb::Error> {
    match table {
        Some(table) => Ok(table),
        None => Ok(table.insert(transaction.open_table(definition)?)),
    }
}

/// The tables at one moment.
pub(crate) struct View {
    transaction: ReadTransaction,
    pub(crate) records: Reading,
    pub(crate) recent: Reading,
    pub(crate) runs: Reading,
    pub(crate) open: Reading,
    /// `None` in a file of format 1 that is open for reading.
    pub(crate) index: Option<Reading>,
    pub(crate) contexts: Reading,
}

impl View {
    pub(crate) fn new(database: &Database) -> Result<Self, redb::Error> {
        Self::of(database.begin_read()?)
    }

    pub(crate) fn of(transaction: ReadTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            records: transaction.open_table(RECORDS)?,
            recent: transaction.open_table(RECENT)?,
            runs: transaction.open_table(RUNS)?,
            open: transaction.open_table(OPEN)?,
            index: if_there(&transaction, INDEX)?,
            contexts: transaction.open_table(CONTEXTS)?,
            transaction,
        })
    }

    /// The inbox; `None` in a file that has had no message.
    pub(crate) fn inbox(&self) -> Result<Option<InboxView>, redb::Error> {
        let table = |definition| if_there(&self.transaction, definition);
        Ok(match (table(INBOX)?, table(INBOX_IDS)?, table(REFUSED)?) {
            (Some(pending), Some(ids), Some(refused)) => Some(InboxView { pending, ids, refused }),
            _ => None,
        })
    }
}

fn if_there(transaction: &ReadTransaction, definition: Definition) -> Result<Option<Reading>, redb::Error> {
    match transaction.open_table(definition) {
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        table => Ok(Some(table?)),
    }
}

/// The tables of the inbox at one moment.
pub(crate) struct InboxView {
    pub(crate) pending: Reading,
    pub(crate) ids: Reading,
    pub(crate) refused: Reading,
}

/// The bytes at a key.
pub(crate) fn bytes_at(
    table: &impl ReadableTable<Bytes, Bytes>,
    key: &[u8],
) -> Result<Option<Vec<u8>>, redb::Error> {
    Ok(table.get(key)?.map(|value| value.value().to_vec()))
}

/// The error of a reading call, without the file's name: its own error, or one of redb.
pub(crate) enum ReadError<E> {
    Redb(redb::Error),
    Own(E),
}

impl<E, R: Into<redb::Error>> From<R> for ReadError<E> {
    fn from(error: R) -> Self {
        Self::Redb(error.into())
    }
}

impl<E: From<WorkError>> ReadError<E> {
    pub(crate) fn named(self, path: &std::sync::Arc<std::path::Path>) -> E {
        match self {
            Self::Redb(error) => WorkError::redb(path, error).into(),
            Self::Own(error) => error,
        }
    }
}

impl ReadError<Infallible> {
    /// The error of a call without errors of its own.
    pub(crate) fn of_redb(self) -> redb::Error {
        match self {
            Self::Redb(error) => error,
            Self::Own(never) => match never {},
        }
    }
}
