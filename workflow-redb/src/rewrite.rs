//! Opening a store's file for writing, and rewriting it first if one of its syncs has failed. The names are `files`'s.
//!
//! Once a sync has failed, Linux counts the pages as clean although they are not on disk. The next sync does not write
//! them, and succeeds. So a file whose sync failed takes no further write: its bytes go to a copy, and the copy, once it
//! is on disk, takes the file's name. The mark tells a later process, which finds only clean pages. It is made before the
//! failed sync returns, and is removed when the copy has the name on disk.
//!
//! The copy is of what the system shows of the file: all that earlier syncs have put on disk, and any part of what came
//! later. That is what a power cut leaves, so that opening the copy mends it as after one.
//!
//! Who rewrites has the old file locked until the copy is locked and has the name. Another process that has opened the old
//! file before gets its lock afterwards; it then sees that the name leads to another file, and opens that one.

use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{BackendError, StorageBackend};

use crate::error::{OpenError, Unmarked};
use crate::file::{self, Options};
use crate::files::{Files, SystemFiles};
use crate::opened::Opened;

/// How often the file may be replaced by others while it is opened.
const TURNS: usize = 8;

/// How much is copied at once.
const CHUNK: usize = 1 << 20;

/// Where a store is, and whether its file shows what is not on disk.
#[derive(Debug)]
pub(crate) struct Home<F> {
    /// As errors name it.
    path: PathBuf,
    files: F,
    /// Whether a sync has failed in this process since the file was rewritten. It holds where no mark can be made.
    unsynced: AtomicBool,
}

impl<F: Files> Home<F> {
    pub(crate) fn new(path: PathBuf, files: F) -> Arc<Self> {
        Arc::new(Self { path, files, unsynced: AtomicBool::new(false) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file for writing.
    pub(crate) fn open(self: &Arc<Self>, options: Options) -> Result<Opened, OpenError> {
        for _ in 0..TURNS {
            let opened = if self.is_unsynced()? { self.rewrite(options) } else { self.open_current(options) };
            if let Some(database) = opened? {
                return Ok(database);
            }
        }
        Err(OpenError::InUse { path: self.path.clone() })
    }

    /// None if another process has replaced the file, or has failed to sync it, before this one had the lock.
    fn open_current(self: &Arc<Self>, options: Options) -> Result<Option<Opened>, OpenError> {
        let (file, id) = self.files.open().map_err(|error| self.io(error))?;
        let database = file::open_backend(&self.path, self.watched(file), options)?;
        let is_current = self.files.current().map_err(|error| self.io(error))? == id;
        Ok((is_current && !self.is_unsynced()?).then_some(database))
    }

    /// Rewrites the file and opens it. None if another process has replaced it before this one had the lock.
    fn rewrite(self: &Arc<Self>, options: Options) -> Result<Option<Opened>, OpenError> {
        let (old, id) = self.files.open().map_err(|error| self.io(error))?;
        if !lock(&old).map_err(|error| self.io(error))? {
            return Err(OpenError::InUse { path: self.path.clone() });
        }
        if self.files.current().map_err(|error| self.io(error))? != id {
            return Ok(None);
        }
        // Where no mark could be made it may be possible by now. Without one, this process still knows.
        self.unsynced.store(true, Ordering::SeqCst);
        drop(self.files.mark());
        let database = self.replace(&old, options).map_err(|source| OpenError::NotRewritten {
            path: self.path.clone(),
            source: Box::new(source),
        })?;
        self.unsynced.store(false, Ordering::SeqCst);
        // A mark that stays costs another rewrite, and nothing else.
        drop(self.files.unmark());
        drop(old.close());
        Ok(Some(database))
    }

    /// Puts a copy in place of the file, and opens it: so it is locked before it has the name.
    fn replace(self: &Arc<Self>, old: &F::File, options: Options) -> Result<Opened, OpenError> {
        let of_copy = |error| OpenError::io(self.files.copy(), error);
        let replaced = (|| {
            let copy = self.files.create_copy().map_err(of_copy)?;
            copy_bytes(old, &copy).map_err(of_copy)?;
            let verified = Options { verify: true, ..options };
            let database = file::open_backend(&self.path, self.watched(copy), verified)?;
            self.files.replace().map_err(of_copy)?;
            Ok(database)
        })();
        if replaced.is_err() {
            // One that stays is removed by the next rewrite.
            drop(self.files.remove_copy());
        }
        replaced
    }

    /// Whether a sync of the file has failed, here or in another process, and nobody has rewritten it since.
    pub(crate) fn is_unsynced(&self) -> Result<bool, OpenError> {
        let is_marked = || self.files.is_marked().map_err(|error| self.io(error));
        Ok(self.unsynced.load(Ordering::SeqCst) || is_marked()?)
    }

    fn watched(self: &Arc<Self>, file: F::File) -> Watched<F> {
        Watched { home: Arc::clone(self), file }
    }

    fn io(&self, error: io::Error) -> OpenError {
        OpenError::io(&self.path, error)
    }

    /// Makes the mark after a failed sync, and says what the sync reported.
    fn sync_failed(&self, sync: io::Error) -> io::Error {
        self.unsynced.store(true, Ordering::SeqCst);
        match self.files.mark() {
            Ok(()) => sync,
            Err(mark) => io::Error::new(sync.kind(), Unmarked { mark, sync }),
        }
    }
}

impl Home<SystemFiles> {
    /// The store's file, whatever link leads to it.
    pub(crate) fn file(&self) -> &Path {
        self.files.file()
    }
}

/// Locks all of a file, so that no redb has it open. False if one has.
fn lock(file: &impl StorageBackend) -> io::Result<bool> {
    match file.try_lock_range(Bound::Unbounded, Bound::Unbounded) {
        Ok(locked) => Ok(locked),
        // Where there are no locks, redb takes none either.
        Err(BackendError::Unsupported) => Ok(true),
        Err(BackendError::Io(error)) => Err(error),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}

/// Copies a file to an empty one, and puts that on disk. What is zero takes no room in the copy.
fn copy_bytes(from: &impl StorageBackend, to: &impl StorageBackend) -> io::Result<()> {
    let length = from.len()?;
    to.set_len(length)?;
    let (mut chunk, mut at) = (vec![0; CHUNK], 0);
    while at < length {
        let left = usize::try_from(length - at).unwrap_or(CHUNK);
        let part = &mut chunk[..left.min(CHUNK)];
        from.read(at, part)?;
        if part.iter().any(|byte| *byte != 0) {
            to.write(at, part)?;
        }
        at += part.len() as u64;
    }
    to.sync_data()
}

/// A store's file as redb uses it: a sync that fails is noted before redb learns of it. After that redb neither writes
/// nor reads.
#[derive(Debug)]
struct Watched<F: Files> {
    home: Arc<Home<F>>,
    file: F::File,
}

impl<F: Files> StorageBackend for Watched<F> {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data().map_err(|error| self.home.sync_failed(error))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests;
