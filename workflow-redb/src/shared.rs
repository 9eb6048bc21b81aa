//! The part that a store's handles and its committer share: the database, its state, and the queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use redb::Database;
use tokio::runtime::Handle;

use crate::closing::Release;
use crate::error::WorkError;
use crate::opened::Opened;
use crate::queue::Queue;
use crate::tables::{ReadError, View};

pub(crate) struct Shared {
    pub(crate) path: Arc<Path>,
    /// The file, with links resolved and independent of the current folder; `None` for another backend.
    pub(crate) file: Option<PathBuf>,
    pub(crate) queue: Queue,
    /// Notified when the committer has closed the database.
    pub(crate) release: Release,
    /// Read-locked by users of the database. Only the committer replaces it.
    state: RwLock<State>,
}

/// The state of the database.
pub(crate) enum State {
    Open(Opened),
    /// Closed after an error, and not opened again yet.
    Failed(WorkError),
    Closed,
}

impl Shared {
    pub(crate) fn new(path: Arc<Path>, file: Option<PathBuf>, queue: Queue, database: Opened) -> Self {
        Self { path, file, queue, release: Release::default(), state: RwLock::new(State::Open(database)) }
    }

    /// Reads the current state of the file, on a thread that may block.
    pub(crate) async fn read<T, E>(
        self: Arc<Self>,
        work: impl FnOnce(&View) -> Result<T, ReadError<E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<WorkError> + Send + 'static,
    {
        // Outside of a runtime no other task needs this thread.
        let Ok(runtime) = Handle::try_current() else { return self.read_here(work) };
        let shared = Arc::clone(&self);
        let read = runtime.spawn_blocking(move || shared.read_here(work)).await;
        read.unwrap_or_else(|error| {
            let stopped = error.try_into_panic().map(|panic| WorkError::panicked(&self.path, &*panic));
            Err(stopped.unwrap_or_else(|_| self.queue.is_closed()).into())
        })
    }

    /// Reads the current state of the file, on this thread. A panic is an error.
    pub(crate) fn read_here<T, E: From<WorkError>>(
        &self,
        work: impl FnOnce(&View) -> Result<T, ReadError<E>>,
    ) -> Result<T, E> {
        let state = self.state();
        let database = state.database(self)?;
        let work = || work(&View::new(database)?);
        // redb may panic if another program has changed the file.
        let worked = catch_unwind(AssertUnwindSafe(work));
        let worked = worked.map_err(|panic| WorkError::panicked(&self.path, &*panic))?;
        worked.map_err(|unread| unread.named(&self.path))
    }

    /// Uses the database, which nothing replaces meanwhile. A panic is an error.
    pub(crate) fn with_database<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, WorkError> {
        let state = self.state();
        let database = state.database(self)?;
        let worked = catch_unwind(AssertUnwindSafe(|| work(database)));
        let worked = worked.map_err(|panic| WorkError::panicked(&self.path, &*panic))?;
        worked.map_err(|error| WorkError::redb(&self.path, error))
    }

    /// Waits until no thread uses the database, and excludes them all.
    pub(crate) fn alone(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(*self.state(), State::Open(_))
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        // Each state is written as a whole, so a poisoned lock is usable.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn database(&self, shared: &Shared) -> Result<&Database, WorkError> {
        match self {
            Self::Open(database) => Ok(database),
            Self::Failed(error) => Err(error.clone()),
            Self::Closed => Err(shared.queue.is_closed()),
        }
    }

    pub(crate) fn database_mut(&mut self, shared: &Shared) -> Result<&mut Database, WorkError> {
        match self {
            Self::Open(database) => Ok(database),
            Self::Failed(error) => Err(error.clone()),
            Self::Closed => Err(shared.queue.is_closed()),
        }
    }
}
