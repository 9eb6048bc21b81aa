//! The handles of a store, their calls to the committer, and the event store.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::oneshot;
use workflow_core::RunId;
use workflow_core::store::{
    ContextStore, EngineId, EventStore, Inbox, Leases, Position, Record, Retention, RunQuery, StoreError,
    StoreFuture, StoredRun, Write,
};

use crate::builder::RedbStoreBuilder;
use crate::check::{self, Report};
use crate::closing;
use crate::error::{OpenError, WorkError, of_journal};
use crate::journal::{self, SerialisedWrite};
use crate::listing;
use crate::queue::Task;
use crate::retention;
use crate::shared::Shared;
use crate::tables::{ReadError, Tables};

/// Journals, contexts and an inbox in one file.
///
/// Clones are handles on the same store, and cost a pointer. Calls in flight are handles too.
///
/// The drop of the last handle writes pending calls, closes the file and ends the store's thread. It waits for that at
/// most a minute, in an async task too, so that the file can be opened again at once. The store's own thread may drop
/// the last handle, with a task that it wakes; then the drop does not wait, and the next opening in this process does.
///
/// ```
/// use workflow_core::store::{EventStore, RunQuery};
/// use workflow_redb::RedbStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("runs.redb");
/// let store = RedbStore::open(&path)?;
/// assert!(store.runs(&RunQuery::new()).await?.is_empty());
///
/// let second = RedbStore::open(&path);
/// assert!(second.unwrap_err().to_string().ends_with("has it open"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedbStore {
    inner: Arc<Inner>,
}

/// The part of a store that ends with its last handle.
struct Inner {
    shared: Arc<Shared>,
    committer: Mutex<Option<JoinHandle<()>>>,
    /// In memory, because no other process has the file open.
    leases: Leases,
}

impl RedbStore {
    /// Opens or creates a file with the defaults of [`builder`](Self::builder). Blocks.
    ///
    /// # Errors
    /// See [`OpenError`]. The file is unchanged then.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::builder().open(path)
    }

    /// Returns a builder of a store.
    pub fn builder() -> RedbStoreBuilder {
        RedbStoreBuilder::default()
    }

    pub(crate) fn new(shared: Arc<Shared>, committer: JoinHandle<()>) -> Self {
        Self {
            inner: Arc::new(Inner {
                shared,
                committer: Mutex::new(Some(committer)),
                leases: Leases::default(),
            }),
        }
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.inner.shared)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.inner.shared.path
    }

    /// Waits until all answered writes are on disk.
    ///
    /// With [`Durability::Sync`](crate::Durability::Sync) they are already.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = workflow_redb::RedbStore::open(folder.path().join("runs.redb"))?;
    /// store.sync().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`WorkError`]. Some of the writes may be lost then.
    pub async fn sync(&self) -> Result<(), WorkError> {
        let (reply, answer) = oneshot::channel();
        let queue = &self.inner.shared.queue;
        queue.put(Task::Sync(reply), 0).await?;
        answer.await.unwrap_or_else(|_| Err(queue.is_closed()))
    }

    /// Shrinks the file to the room that it uses. Returns whether the file is smaller.
    ///
    /// Without it, later writes reuse the room, for example of removed runs. Other calls wait meanwhile, for about as
    /// long as it takes to read and write the file. A crash during it loses nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = workflow_redb::RedbStore::open(folder.path().join("runs.redb"))?;
    /// while store.compact().await? {}
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`WorkError`]. Nothing is lost.
    pub async fn compact(&self) -> Result<bool, WorkError> {
        let (reply, answer) = oneshot::channel();
        let queue = &self.inner.shared.queue;
        queue.put(Task::Compact(reply), 0).await?;
        answer.await.unwrap_or_else(|_| Err(queue.is_closed()))
    }

    /// Verifies the store's current contents while it is in use. O(bytes).
    ///
    /// It checks that positions have no gaps, that summaries agree with journals, and that everything can be decoded.
    /// Only [`StoreFile::check`](crate::StoreFile::check) compares the checksums of the file, while no store has it
    /// open.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = workflow_redb::RedbStore::open(folder.path().join("runs.redb"))?;
    /// assert!(store.check().await?.is_sound());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`WorkError`]. Problems of the contents are in the report, and are no error.
    pub async fn check(&self) -> Result<Report, WorkError> {
        self.shared().read(|view| check::tables(view).map_err(ReadError::<WorkError>::from)).await
    }
}

impl EventStore for RedbStore {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let written = match SerialisedWrite::new(run, expected, &batch) {
            Ok(written) => written,
            Err(error) => return StoreFuture::ready(Err(error)),
        };
        if let Err(error) = self.inner.shared.queue.admit(written.bytes) {
            return StoreFuture::ready(Err(StoreError::unserialisable(error)));
        }
        let store = self.clone();
        StoreFuture::new(async move {
            let work = store.inner.shared.queue.commit(written.bytes, move |tables| written.append(tables));
            work.await?
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        let (store, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            let of = run.clone();
            let read = store.shared().read(move |view| journal::read(view, &of, from, at_most)).await;
            read.map_err(|error| of_journal(error, &run, from))
        })
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        let (store, query) = (self.clone(), query.clone());
        StoreFuture::new(async move { store.shared().read(move |view| listing::runs(view, &query)).await })
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        let (store, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            let work = move |tables: &mut Tables<'_>| journal::remove(tables, &run);
            Ok(store.inner.shared.queue.commit(0, work).await?)
        })
    }

    /// Removes the runs' contexts too. Other calls run in between. Later writes reuse the room, or
    /// [`compact`](RedbStore::compact) frees it. O(runs) time, and O(removed bytes).
    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        // The handle keeps the committer alive until it is done.
        let (store, kept) = (self.clone(), kept.clone());
        StoreFuture::new(async move { retention::retain(store.shared(), kept).await })
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        StoreFuture::ready(Ok(self.inner.leases.renew(engine, duration)))
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        Some(Arc::new(self.clone()))
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(self.clone()))
    }
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let committer = self.committer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(committer) = committer else { return };
        let (release, closer) = (self.shared.release.clone(), committer.thread().id());
        if let Some(file) = &self.shared.file {
            closing::note(file.clone(), closer, release.clone());
        }
        self.shared.queue.close();
        // The store's thread may drop the last handle, with a task that it woke. It then ends by itself.
        if closer != thread::current().id() && release.wait(closing::AT_MOST) {
            // The thread does not panic, and a drop could not report it.
            drop(committer.join());
        }
    }
}
