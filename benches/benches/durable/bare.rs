//! redb itself, with the tables, keys and values of a store in a file and nothing around it.

use std::path::Path;

use redb::{Database, TableDefinition};
use workflow_core::Batch;

type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;

const RECORDS: Bytes = TableDefinition::new("workflow.records");
const RUNS: Bytes = TableDefinition::new("workflow.runs");
const OPEN: Bytes = TableDefinition::new("workflow.open");

/// A database that whoever calls commits to.
#[derive(Debug)]
pub(crate) struct Bare(Database);

/// A batch in bytes, made before the time counts.
#[derive(Debug)]
pub(crate) struct Prepared {
    run: String,
    position: u64,
    records: Vec<Vec<u8>>,
    entry: Vec<u8>,
}

impl Prepared {
    pub(crate) fn new(run: &str, position: u64, batch: &Batch) -> Self {
        let json = |record| serde_json::to_vec(record).expect("records are JSON");
        let records: Vec<Vec<u8>> = batch.records.iter().map(json).collect();
        let mut entry = (position + records.len() as u64).to_be_bytes().to_vec();
        // When it was written: any time is as long.
        entry.extend_from_slice(&position.to_be_bytes());
        entry.extend(serde_json::to_vec(&batch.run).expect("summaries are JSON"));
        Self { run: run.to_owned(), position, records, entry }
    }

    fn key(&self, position: u64) -> Vec<u8> {
        let length = u32::try_from(self.run.len()).expect("ids are short");
        [&length.to_be_bytes(), self.run.as_bytes(), &position.to_be_bytes()].concat()
    }
}

impl Bare {
    pub(crate) fn create(path: &Path) -> Self {
        let mut builder = Database::builder();
        Self(builder.set_cache_size(64 << 20).create(path).expect("a database can be made"))
    }

    /// Commits batches together, with one `fsync`.
    pub(crate) fn commit(&self, batches: &[Prepared]) -> Result<(), redb::Error> {
        let transaction = self.0.begin_write()?;
        {
            let mut records = transaction.open_table(RECORDS)?;
            let mut runs = transaction.open_table(RUNS)?;
            let mut open = transaction.open_table(OPEN)?;
            for batch in batches {
                let run = batch.run.as_bytes();
                for (position, record) in (batch.position..).zip(&batch.records) {
                    records.insert(&*batch.key(position), &**record)?;
                }
                runs.insert(run, &*batch.entry)?;
                if batch.position == 0 {
                    open.insert(run, &[][..])?;
                }
            }
        }
        Ok(transaction.commit()?)
    }
}
