//! What the handles of a store and its committer share: the database, whether it can be used, and the queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use redb::Database;
use tokio::runtime::Handle;

use crate::closing::Release;
use crate::error::WorkError;
use crate::opened::Opened;
use crate::queue::Queue;
use crate::tables::{Unread, View};

pub(crate) struct Shared {
    pub(crate) path: Arc<Path>,
    /// The file itself, where no link and no change of folder is in the way; none if it is kept in something else.
    pub(crate) file: Option<PathBuf>,
    pub(crate) queue: Queue,
    /// Tells when the committer has closed the database.
    pub(crate) release: Release,
    /// Whoever works with the database holds it to read; only the committer replaces it.
    state: RwLock<State>,
}

/// What can be done with the database.
pub(crate) enum State {
    Open(Opened),
    /// It had to be closed after an error, and could not be opened again yet.
    Failed(WorkError),
    Closed,
}

impl Shared {
    pub(crate) fn new(path: Arc<Path>, file: Option<PathBuf>, queue: Queue, database: Opened) -> Self {
        Self { path, file, queue, release: Release::default(), state: RwLock::new(State::Open(database)) }
    }

    /// Reads what the file has now, on a thread that may block.
    pub(crate) async fn read<T, E>(
        self: Arc<Self>,
        work: impl FnOnce(&View) -> Result<T, Unread<E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<WorkError> + Send + 'static,
    {
        // Outside of a runtime nobody else runs on this thread.
        let Ok(runtime) = Handle::try_current() else { return self.read_here(work) };
        let shared = Arc::clone(&self);
        let read = runtime.spawn_blocking(move || shared.read_here(work)).await;
        read.unwrap_or_else(|error| {
            let stopped = error.try_into_panic().map(|panic| WorkError::panicked(&self.path, &*panic));
            Err(stopped.unwrap_or_else(|_| self.queue.is_closed()).into())
        })
    }

    /// Reads what the file has now, on this thread. A panic is an error.
    pub(crate) fn read_here<T, E: From<WorkError>>(
        &self,
        work: impl FnOnce(&View) -> Result<T, Unread<E>>,
    ) -> Result<T, E> {
        let state = self.state();
        let database = state.database(self)?;
        let work = || work(&View::new(database)?);
        // A file that was changed from outside may make redb panic.
        let worked = catch_unwind(AssertUnwindSafe(work));
        let worked = worked.map_err(|panic| WorkError::panicked(&self.path, &*panic))?;
        worked.map_err(|unread| unread.named(&self.path))
    }

    /// Works with the database, which nobody replaces meanwhile. A panic is an error.
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

    /// Waits until nobody works with the database, and keeps everybody from it.
    pub(crate) fn alone(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(*self.state(), State::Open(_))
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        // Each state is put in place whole.
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
