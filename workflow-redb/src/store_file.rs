//! A file that is looked at and not used: nothing of it is changed. It is what the command line stands on.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use workflow_core::{Position, Record, RunId, RunQuery, StoreError, StoredRun};

use crate::builder::RedbStoreBuilder;
use crate::check::{self, Problem, Report};
use crate::error::{OpenError, WorkError, of_journal};
use crate::file;
use crate::journal;
use crate::opened::Opened;
use crate::tables::{Unread, View};

/// A store's file, opened to be read. Its calls block.
///
/// Several may have a file open at once, but not while a [`RedbStore`](crate::RedbStore) has it. A file that was not
/// closed, after a crash, is mended in memory: it is read whole when it is opened, and stays as it is.
///
/// ```
/// use workflow_core::RunQuery;
/// use workflow_redb::{RedbStore, StoreFile};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("runs.redb");
/// drop(RedbStore::open(&path)?);
/// let mut file = StoreFile::open(&path)?;
/// assert!(file.runs(&RunQuery::new())?.is_empty());
/// assert!(file.check()?.is_sound());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StoreFile {
    path: Arc<Path>,
    database: Opened,
}

impl StoreFile {
    /// Opens a file.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = Arc::from(path.as_ref());
        let database = file::open_to_read(&path, RedbStoreBuilder::CACHE)?;
        Ok(Self { path, database })
    }

    /// The runs that the query asks for: as [`EventStore::runs`](workflow_core::EventStore::runs).
    ///
    /// # Errors
    /// `Corrupt`, `Unavailable`.
    pub fn runs(&self, query: &RunQuery) -> Result<Vec<StoredRun>, StoreError> {
        self.read_with(|view| journal::runs(view, query))
    }

    /// One run; none if there is no such run.
    ///
    /// # Errors
    /// `Corrupt`, `Unavailable`.
    pub fn run(&self, run: &RunId) -> Result<Option<StoredRun>, StoreError> {
        self.read_with(|view| journal::run(view, run))
    }

    /// The records of a run from a position on: as [`EventStore::read`](workflow_core::EventStore::read).
    ///
    /// # Errors
    /// `Corrupt`, `Unavailable`.
    pub fn read(&self, run: &RunId, from: Position, at_most: usize) -> Result<Vec<Record>, StoreError> {
        let read = self.read_with(|view| journal::read(view, run, from, at_most));
        read.map_err(|error| of_journal(error, run, from))
    }

    /// Verifies the file: the checksums of its pages, that positions have no gaps, summaries agree with journals, and
    /// everything can be decoded. O(bytes).
    ///
    /// # Errors
    /// If the file cannot be read. What is wrong with it is no error, but in the report.
    pub fn check(&mut self) -> Result<Report, WorkError> {
        if let Some(damage) = self.damage()? {
            return Ok(Report { problems: vec![damage], ..Report::default() });
        }
        self.read_with(|view| check::tables(view).map_err(Unread::<WorkError>::from))
    }

    /// What redb says of its pages.
    fn damage(&mut self) -> Result<Option<Problem>, WorkError> {
        let verified = catch_unwind(AssertUnwindSafe(|| self.database.check_integrity()));
        let verified = verified.map_err(|panic| WorkError::panicked(&self.path, &*panic))?;
        let damage = |detail: String| Ok(Some(Problem::Damaged { detail }));
        match verified.map_err(redb::Error::from) {
            Ok(true) => Ok(None),
            Ok(false) => {
                damage("pages differ from what was committed; opening it as a store mends it".to_owned())
            }
            Err(redb::Error::Corrupted(detail)) => damage(detail),
            Err(error) => Err(WorkError::redb(&self.path, error)),
        }
    }

    fn read_with<T, E: From<WorkError>>(
        &self,
        work: impl FnOnce(&View) -> Result<T, Unread<E>>,
    ) -> Result<T, E> {
        let work = || work(&View::new(&self.database)?);
        // A file that was changed from outside may make redb panic.
        let worked = catch_unwind(AssertUnwindSafe(work));
        let worked = worked.map_err(|panic| WorkError::panicked(&self.path, &*panic))?;
        worked.map_err(|unread| unread.named(&self.path))
    }
}

impl fmt::Debug for StoreFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreFile").field("path", &self.path).finish_non_exhaustive()
    }
}
