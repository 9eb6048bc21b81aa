//! redb itself, with the tables, keys and values of a store in a file and nothing around it.

use std::path::Path;

use redb::{Database, TableDefinition};
use serde::Serialize;
use workflow_core::store::Write;

type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;

const RECORDS: Bytes = TableDefinition::new("workflow.records");
const RECENT: Bytes = TableDefinition::new("workflow.recent");
const RUNS: Bytes = TableDefinition::new("workflow.runs");
const OPEN: Bytes = TableDefinition::new("workflow.open");

/// The number of batch numbers in an entry: half of the maximum.
const NUMBERS: u16 = 16;

/// A database that the caller commits to.
#[derive(Debug)]
pub struct Bare {
    database: Database,
    /// The number of batches stored next to those of other runs.
    batches: u64,
}

/// A batch in bytes, prepared before the measurement.
#[derive(Debug)]
pub struct Prepared {
    run: String,
    is_first: bool,
    records: Records,
    entry: Vec<u8>,
}

/// The records of a batch.
#[derive(Debug)]
enum Records {
    /// Next to those of other runs, as in a shared commit.
    Shared(Vec<u8>),
    /// By their keys, next to those of the same run.
    Alone(Vec<(Vec<u8>, Vec<u8>)>),
}

impl Prepared {
    /// The batch of a run at a position, as a store writes it in a commit of its own.
    ///
    /// # Panics
    /// If it is not JSON.
    pub fn alone(run: &str, position: u64, batch: &Write) -> Self {
        let keyed = |(position, record)| (key(run, position), json(record));
        let records = (position..).zip(&batch.records).map(keyed).collect();
        Self::new(run, position, batch, Records::Alone(records), 0)
    }

    /// The same in a commit that many runs share.
    ///
    /// # Panics
    /// If it is not JSON.
    pub fn shared(run: &str, position: u64, batch: &Write) -> Self {
        let mut bytes = key(run, position);
        for record in batch.records.iter().map(json) {
            bytes.extend_from_slice(&length(&record));
            bytes.extend(record);
        }
        Self::new(run, position, batch, Records::Shared(bytes), NUMBERS)
    }

    fn new(run: &str, position: u64, batch: &Write, records: Records, numbers: u16) -> Self {
        let mut entry = (position + batch.records.len() as u64).to_be_bytes().to_vec();
        // The time of the write: all times have the same length.
        entry.extend_from_slice(&position.to_be_bytes());
        entry.extend_from_slice(&numbers.to_be_bytes());
        entry.resize(entry.len() + 8 * usize::from(numbers), 0);
        entry.extend(json(&batch.run));
        Self { run: run.to_owned(), is_first: position == 0, records, entry }
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("records and summaries are JSON")
}

fn key(run: &str, position: u64) -> Vec<u8> {
    [&length(run.as_bytes()), run.as_bytes(), &position.to_be_bytes()].concat()
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("it is short").to_be_bytes()
}

impl Bare {
    /// A new file.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn create(path: &Path) -> Self {
        let mut builder = Database::builder();
        let database = builder.set_cache_size(64 << 20).create(path).expect("a database can be made");
        Self { database, batches: 0 }
    }

    /// Commits batches together, with one `fsync`.
    ///
    /// # Errors
    /// The figures that redb reports.
    pub fn commit(&mut self, batches: &[Prepared]) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut records = transaction.open_table(RECORDS)?;
            let mut recent = transaction.open_table(RECENT)?;
            let mut runs = transaction.open_table(RUNS)?;
            for batch in batches {
                let run = batch.run.as_bytes();
                match &batch.records {
                    Records::Shared(bytes) => {
                        recent.insert(&self.batches.to_be_bytes()[..], &**bytes)?;
                        self.batches += 1;
                    }
                    Records::Alone(keyed) => {
                        for (key, record) in keyed {
                            records.insert(&**key, &**record)?;
                        }
                    }
                }
                runs.insert(run, &*batch.entry)?;
                if batch.is_first {
                    transaction.open_table(OPEN)?.insert(run, &[][..])?;
                }
            }
        }
        Ok(transaction.commit()?)
    }
}
