//! Building a store: its options, their defaults, and the start of its thread.

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

/// The moment at which a writing call is answered.
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
    /// When the write is on disk (`fsync`). No answered write is lost, neither by a killed process nor by a power cut.
    /// Calls that wait at the same time share one `fsync`.
    #[default]
    Sync,
    /// When other calls see the write, and before it is on disk.
    ///
    /// It is on disk after this interval, when the store is closed, or after [`RedbStore::sync`].
    ///
    /// A killed process or a power cut **loses the writes that were answered within the last interval**, and those that
    /// were answered while the disk was busy with earlier ones. A failing disk loses all writes that were answered
    /// since its last success. Only the latest writes are ever lost: the file has the state of one moment, with each
    /// write as a whole. A run that loses its latest writes is resumed without them, so the side effects of its steps
    /// happen again.
    Buffered(Duration),
}

/// Builds a store.
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
///
/// // Reads the whole file and compares its checksums.
/// let store = RedbStore::builder().verify(true).queue(64).open(&path)?;
/// # drop(store);
///
/// // In memory, for a test, with your own dependency on `redb`. Errors show the name.
/// let memory = redb::backends::InMemoryBackend::new();
/// let store = RedbStore::builder().open_backend("in memory", memory)?;
/// # drop(store);
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

    /// Sets when a writing call is answered. Default: [`Durability::Sync`].
    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Sets how many writing calls may wait for their commit. Default: 1,024.
    ///
    /// Further calls wait before the queue. 0 counts as 1. One commit has up to 1,024 waiting calls and 16 MiB. A
    /// larger call is committed alone, and a call of more than 1 GiB is refused with
    /// [`WorkError::TooLarge`](crate::WorkError::TooLarge).
    pub fn queue(self, calls: usize) -> Self {
        Self { queue: calls, ..self }
    }

    /// Sets the most bytes of a writing call, so that a test can use a small limit.
    #[cfg(test)]
    pub(crate) fn max_job(self, bytes: usize) -> Self {
        Self { max_job: bytes, ..self }
    }

    /// Sets how many bytes of the file stay in memory. Default: 64 MiB.
    pub fn cache_bytes(self, bytes: usize) -> Self {
        Self { options: Options { cache: bytes, ..self.options }, ..self }
    }

    /// Sets whether a missing file is created. Default: yes.
    ///
    /// An empty file counts as missing.
    pub fn create(self, create: bool) -> Self {
        Self { options: Options { create, ..self.options }, ..self }
    }

    /// Sets whether opening reads the whole file and compares its checksums. Default: no.
    ///
    /// Otherwise damage is found when the damaged part is read. A file that was not closed is always verified.
    pub fn verify(self, verify: bool) -> Self {
        Self { options: Options { verify, ..self.options }, ..self }
    }

    /// Opens a file and starts the store's thread. Blocks.
    ///
    /// After a crash it takes as long as reading the file. The first opening of a file of format 1 by this version builds an
    /// index, which takes less than reading all records of the file, and 200 bytes of memory for each of at most 65,536 runs. Earlier
    /// versions cannot open the file then.
    ///
    /// # Errors
    /// See [`OpenError`]. The file is unchanged then.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<RedbStore, OpenError> {
        let path = path.as_ref().to_owned();
        let home = file::find(&path, self.options)?;
        let database = file::open(&home, self.options)?;
        // After an error the file exists, or its absence is an error.
        let options = Options { create: false, ..self.options };
        let file = Some(home.file().to_owned());
        self.start(path, file, database, Some(Box::new(move || file::open(&home, options))))
    }

    /// Opens a store in another backend: in memory, encrypted, or failing on purpose in a test.
    ///
    /// Errors show `name`. After an error of the backend the store is unusable: open the backend again. After a failed
    /// sync, open a copy of the backend's contents: on Linux the sync after a failed one succeeds without writing the
    /// lost pages. [`open`](Self::open) makes such a copy by itself.
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
