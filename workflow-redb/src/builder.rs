//! How a store is set up: what can be chosen, its defaults, and the thread that is started.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use redb::StorageBackend;

use crate::committer::{Committer, Reopen};
use crate::error::OpenError;
use crate::file::{self, Options};
use crate::opened::Opened;
use crate::queue::{MAX_JOB_BYTES, Queue};
use crate::shared::Shared;
use crate::store::RedbStore;

/// When a call that writes is answered.
///
/// ```
/// use std::time::Duration;
/// use workflow_redb::Durability;
///
/// assert_eq!(Durability::default(), Durability::Sync);
/// let quick = Durability::Buffered(Duration::from_millis(100));
/// # let _ = quick;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// When it is on disk (`fsync`). Nothing that was answered is lost, be it that the process is killed or that the
    /// power goes. Calls that wait at the same time share one `fsync`.
    #[default]
    Sync,
    /// When other calls see it, and before it is on disk, which it is after so long, when the store is closed, or after
    /// [`RedbStore::sync`].
    ///
    /// When the process is killed or the power goes, **what was answered within the last interval is lost**, and what
    /// was answered while the disk was still busy with what came before. When the disk fails, everything is lost that
    /// was answered since it last did not. What is lost are always the latest calls: the file is what it was at one
    /// moment, each batch whole. A run whose latest batches are lost is resumed as if they had not happened, so that
    /// what its steps did to the outside is done again.
    Buffered(Duration),
}

/// Sets up a store.
///
/// ```
/// use std::time::Duration;
/// use workflow_redb::{Durability, RedbStore};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("runs.redb");
/// let store = RedbStore::builder()
///     .durability(Durability::Buffered(Duration::from_millis(50)))
///     .cache_bytes(16 << 20)
///     .open(&path)?;
/// # drop(store);
/// let missing = RedbStore::builder().create(false).open(folder.path().join("missing.redb"));
/// assert!(missing.is_err());
/// # Ok::<(), workflow_redb::OpenError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing before `open`"]
pub struct RedbStoreBuilder {
    durability: Durability,
    queue: usize,
    max_job: usize,
    options: Options,
}

impl Default for RedbStoreBuilder {
    fn default() -> Self {
        let options = Options { cache: Self::CACHE, create: true, verify: false };
        Self { durability: Durability::default(), queue: Self::QUEUE, max_job: MAX_JOB_BYTES, options }
    }
}

impl RedbStoreBuilder {
    /// The default of [`cache_bytes`](Self::cache_bytes).
    pub(crate) const CACHE: usize = 64 << 20;

    /// The default of [`queue`](Self::queue).
    const QUEUE: usize = 1_024;

    /// Sets when a call that writes is answered. Default: [`Durability::Sync`].
    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Sets how many calls that write wait to be committed, at most; further ones wait before that. 0 is taken as 1.
    /// Default: 1,024.
    ///
    /// Of what waits, up to 1,024 calls and 16 MiB are committed together. A call of more bytes is committed alone, and one
    /// of more than 1 GiB is refused with [`WorkError::TooLarge`](crate::WorkError::TooLarge).
    pub fn queue(self, calls: usize) -> Self {
        Self { queue: calls, ..self }
    }

    /// Sets how many bytes a call that writes may have, so that a test need not have as many.
    #[cfg(test)]
    pub(crate) fn max_job(self, bytes: usize) -> Self {
        Self { max_job: bytes, ..self }
    }

    /// Sets how much of the file is kept in memory, at most. Default: 64 MiB.
    pub fn cache_bytes(self, bytes: usize) -> Self {
        Self { options: Options { cache: bytes, ..self.options }, ..self }
    }

    /// Sets whether a file that is not there is created. Default: yes.
    ///
    /// A file that is there and empty counts as one that is not.
    pub fn create(self, create: bool) -> Self {
        Self { options: Options { create, ..self.options }, ..self }
    }

    /// Sets whether the whole file is read and its checksums are compared when it is opened. Default: no.
    ///
    /// Without it damage is found when what is damaged is read. A file that was not closed is verified in any case.
    pub fn verify(self, verify: bool) -> Self {
        Self { options: Options { verify, ..self.options }, ..self }
    }

    /// Opens a file, and starts the store's thread. Blocks: after a crash for as long as it takes to read the file.
    ///
    /// # Errors
    /// See [`OpenError`]; the file was not changed then.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<RedbStore, OpenError> {
        let path = path.as_ref().to_owned();
        let home = file::find(&path, self.options)?;
        let database = file::open(&home, self.options)?;
        // After an error there is a file, or its being away is one.
        let options = Options { create: false, ..self.options };
        let file = Some(home.file().to_owned());
        self.start(path, file, database, Some(Box::new(move || file::open(&home, options))))
    }

    /// Keeps a store in something else than a file: in memory, encrypted, or failing on purpose in a test. It is named
    /// in errors by `name`.
    ///
    /// After an error of the backend the store cannot be used any more: open it again. After a failed sync, do so on a
    /// copy of what the backend holds: on Linux a sync that follows a failed one succeeds without writing what that one
    /// has not written. [`open`](Self::open) makes such a copy by itself.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_backend(
        &self,
        name: impl Into<PathBuf>,
        backend: impl StorageBackend,
    ) -> Result<RedbStore, OpenError> {
        let name = name.into();
        let database = file::open_backend(&name, backend, self.options)?;
        self.start(name, None, database, None)
    }

    pub(crate) fn start(
        &self,
        path: PathBuf,
        file: Option<PathBuf>,
        database: Opened,
        reopen: Option<Reopen>,
    ) -> Result<RedbStore, OpenError> {
        let name = Arc::from(&*path);
        let queue = Queue::new(self.queue, self.max_job, &name);
        let shared = Arc::new(Shared::new(name, file, queue, database));
        let committer = Committer {
            shared: Arc::clone(&shared),
            durability: self.durability,
            reopen,
            unsynced_since: None,
            lost: None,
        };
        let thread = thread::Builder::new().name("workflow-redb".to_owned()).spawn(|| committer.run());
        match thread {
            Ok(thread) => Ok(RedbStore::new(shared, thread)),
            Err(source) => Err(OpenError::Io { path, source }),
        }
    }
}
