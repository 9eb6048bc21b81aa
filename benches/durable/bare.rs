//! redb itself, with the tables, keys and values of a store in a file and nothing around it.

use std::path::Path;

use redb::{Database, TableDefinition};
use workflow_core::Batch;

type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;

const RECORDS: Bytes = TableDefinition::new("workflow.records");
const RECENT: Bytes = TableDefinition::new("workflow.recent");
const RUNS: Bytes = TableDefinition::new("workflow.runs");
const OPEN: Bytes = TableDefinition::new("workflow.open");

/// How many numbers of batches an entry has: half of what it may have.
const NUMBERS: u16 = 16;

/// From how many batches on a store puts those of a commit beside each other.
const SHARED: usize = 4;

/// A database that whoever calls commits to.
#[derive(Debug)]
pub struct Bare {
    database: Database,
    /// How many batches it has.
    batches: u64,
}

/// A batch in bytes, made before the time counts.
#[derive(Debug)]
pub struct Prepared {
    run: String,
    is_first: bool,
    /// The batch as it is beside those of other runs.
    batch: Vec<u8>,
    /// Its records, by their keys, as they are beside those of the same run.
    records: Vec<(Vec<u8>, Vec<u8>)>,
    entry: Vec<u8>,
}

impl Prepared {
    /// The batch of a run at a position, as a store would write it.
    ///
    /// # Panics
    /// If it is not JSON.
    pub fn new(run: &str, position: u64, batch: &Batch) -> Self {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("it is short").to_be_bytes();
        let json = |record| serde_json::to_vec(record).expect("records are JSON");
        let mut bytes = [&length(run.as_bytes()), run.as_bytes(), &position.to_be_bytes()].concat();
        let mut records = Vec::new();
        for (position, record) in (position..).zip(batch.records.iter().map(json)) {
            bytes.extend_from_slice(&length(&record));
            bytes.extend_from_slice(&record);
            let key = [&length(run.as_bytes()), run.as_bytes(), &position.to_be_bytes()].concat();
            records.push((key, record));
        }
        let mut entry = (position + batch.records.len() as u64).to_be_bytes().to_vec();
        // When it was written: any time is as long.
        entry.extend_from_slice(&position.to_be_bytes());
        entry.extend_from_slice(&NUMBERS.to_be_bytes());
        entry.resize(entry.len() + 8 * usize::from(NUMBERS), 0);
        entry.extend(serde_json::to_vec(&batch.run).expect("summaries are JSON"));
        Self { run: run.to_owned(), is_first: position == 0, batch: bytes, records, entry }
    }
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
    /// What redb reports.
    pub fn commit(&mut self, batches: &[Prepared]) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut records = transaction.open_table(RECORDS)?;
            let mut recent = transaction.open_table(RECENT)?;
            let mut runs = transaction.open_table(RUNS)?;
            for batch in batches {
                let run = batch.run.as_bytes();
                if batches.len() >= SHARED {
                    recent.insert(&self.batches.to_be_bytes()[..], &*batch.batch)?;
                    self.batches += 1;
                } else {
                    for (key, record) in &batch.records {
                        records.insert(&**key, &**record)?;
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
