//! A store's file for reading only; the command line uses it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use workflow_core::RunId;
use workflow_core::store::{Position, Record, RefusedMessage, Retention, RunQuery, StoreError, StoredRun};

use crate::builder::RedbStoreBuilder;
use crate::check::{self, Problem, Report};
use crate::error::{OpenError, WorkError, of_journal};
use crate::file;
use crate::inbox::{self, PendingMessage};
use crate::journal;
use crate::listing;
use crate::opened::Opened;
use crate::retention::all_runs;
use crate::snapshot;
use crate::tables::{ReadError, View};

/// A store's file, opened for reading. Its calls block.
///
/// Several of them may have one file open, but no [`RedbStore`](crate::RedbStore) may. A file that a crash left
/// unclosed is repaired in memory: it is read as a whole when it is opened, and stays unchanged.
///
/// ```
/// use workflow_core::store::RunQuery;
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

    /// Lists runs, as [`EventStore::runs`](workflow_core::store::EventStore::runs). In a file of format 1, a page newest
    /// first reads every run.
    ///
    /// # Errors
    /// `Corrupt`, `Unavailable`.
    pub fn runs(&self, query: &RunQuery) -> Result<Vec<StoredRun>, StoreError> {
        self.read_with(|view| listing::runs(view, query))
    }

    /// One run; `None` if there is no such run.
    ///
    /// # Errors
    /// `Corrupt`, `Unavailable`.
    pub fn run(&self, run: &RunId) -> Result<Option<StoredRun>, StoreError> {
        self.read_with(|view| listing::run(view, run))
    }

    /// Reads records, as [`EventStore::read`](workflow_core::store::EventStore::read).
    ///
    /// # Errors
    /// `Corrupt`, `Unavailable`.
    pub fn read(&self, run: &RunId, from: Position, at_most: usize) -> Result<Vec<Record>, StoreError> {
        let read = self.read_with(|view| journal::read(view, run, from, at_most));
        read.map_err(|error| of_journal(error, run, from))
    }

    /// The pending messages of the inbox, as [`RedbStore::pending_messages`](crate::RedbStore::pending_messages).
    ///
    /// # Errors
    /// `Unavailable`.
    pub fn pending_messages(
        &self,
        run: Option<&RunId>,
        at_most: usize,
    ) -> Result<Vec<PendingMessage>, StoreError> {
        self.read_with(|view| inbox::listed(view, run, at_most))
    }

    /// The last refused messages, as [`RedbStore::refused_messages`](crate::RedbStore::refused_messages).
    ///
    /// # Errors
    /// `Unavailable`.
    pub fn refused_messages(&self) -> Result<Vec<RefusedMessage>, StoreError> {
        self.read_with(inbox::refused)
    }

    /// Which ended runs [`Engine::retain`](workflow_core::Engine::retain) would remove by these rules, beginning with the one
    /// that ended last. O(runs) time and memory.
    ///
    /// # Errors
    /// `Unavailable`.
    pub fn removable(&self, kept: &Retention) -> Result<Vec<StoredRun>, StoreError> {
        let runs = self.read_with(|view| all_runs(view).map_err(ReadError::<StoreError>::from))?;
        Ok(kept.choose(runs).into_iter().map(|(run, _)| run).collect())
    }

    /// Copies the contents to another file, as [`RedbStore::snapshot`](crate::RedbStore::snapshot). O(bytes).
    ///
    /// # Errors
    /// [`WorkError::Exists`] if the file exists, [`WorkError::Snapshot`] if it cannot be written, and the other errors
    /// of [`WorkError`].
    pub fn snapshot(&self, to: impl AsRef<Path>) -> Result<(), WorkError> {
        let write = |view: &View| snapshot::write(view, to.as_ref(), &self.path, Some(&self.path));
        self.read_with(|view| write(view).map_err(ReadError::Own))
    }

    /// Verifies the file. O(bytes).
    ///
    /// It compares the checksums of the pages, and checks that positions have no gaps, that summaries agree with
    /// journals, and that everything can be decoded.
    ///
    /// # Errors
    /// If the file cannot be read. Problems of the contents are in the report, and are no error.
    pub fn check(&mut self) -> Result<Report, WorkError> {
        if let Some(damage) = self.damage()? {
            return Ok(Report { problems: vec![damage], ..Report::default() });
        }
        self.read_with(|view| check::tables(view).map_err(ReadError::<WorkError>::from))
    }

    /// The damage of the file's pages, if redb finds any.
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
        work: impl FnOnce(&View) -> Result<T, ReadError<E>>,
    ) -> Result<T, E> {
        let work = || work(&View::new(&self.database)?);
        // redb may panic if another program has changed the file.
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
