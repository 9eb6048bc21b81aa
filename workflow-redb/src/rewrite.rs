//! Opening a store's file for writing. If a sync of the file has failed, the file is rewritten first. `files` owns the
//! names on disk.
//!
//! After a failed sync, Linux counts the pages as clean although they are not on disk. The next sync does not write
//! them, and succeeds. So a file with a failed sync takes no further write:
//!
//! ```text
//! 1 sync fails       mark the file ─▶ report the failure to redb
//! 2 next open        lock the old file ─▶ copy its bytes ─▶ sync the copy ─▶ redb opens, locks and repairs the copy
//! 3 replace          rename the copy to the file's name ─▶ sync the folder ─▶ remove the mark ─▶ unlock the old file
//! ```
//!
//! The mark informs a later process, which would find only clean pages. The copy contains what the system shows of the
//! file: everything that earlier syncs put on disk, and any part of later writes. A power cut leaves the same, so
//! opening the copy repairs it as after a power cut.
//!
//! The rewriting process holds the lock of the old file until the copy is locked and has the name. Another process that
//! opened the old file before gets the lock afterwards. It then sees that the name leads to another file, and opens
//! that one.

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

/// How often others may replace the file while it is being opened.
const TURNS: usize = 8;

/// How many bytes are copied at a time.
const CHUNK: usize = 1 << 20;

/// A store's place on disk, and whether its file may show bytes that are not on disk.
#[derive(Debug)]
pub(crate) struct Home<F> {
    /// The path, for errors.
    path: PathBuf,
    files: F,
    /// Whether a sync has failed in this process since the last rewrite. It covers folders in which no mark can be
    /// made.
    unsynced: AtomicBool,
}

impl<F: Files> Home<F> {
    pub(crate) fn new(path: PathBuf, files: F) -> Arc<Self> {
        Arc::new(Self { path, files, unsynced: AtomicBool::new(false) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file for writing, and rewrites it first if a sync has failed.
    pub(crate) fn open(self: &Arc<Self>, options: Options) -> Result<Opened, OpenError> {
        // Each turn sees the file that has the name then. Another process may replace it in between.
        for _ in 0..TURNS {
            let opened = if self.is_unsynced()? { self.rewrite(options) } else { self.open_current(options) };
            if let Some(database) = opened? {
                return Ok(database);
            }
        }
        Err(OpenError::InUse { path: self.path.clone() })
    }

    /// Opens the file as it is. `None` if another process replaced it, or failed to sync it, before this one had the
    /// lock.
    fn open_current(self: &Arc<Self>, options: Options) -> Result<Option<Opened>, OpenError> {
        let (file, id) = self.files.open().map_err(|error| self.io(error))?;
        let database = file::open_backend(&self.path, self.watched(file), options)?;
        // The lock is held now. If the name leads to another file, the old one must not be used.
        let is_current = self.files.current().map_err(|error| self.io(error))? == id;
        Ok((is_current && !self.is_unsynced()?).then_some(database))
    }

    /// Rewrites the file and opens it. `None` if another process replaced it before this one had the lock.
    fn rewrite(self: &Arc<Self>, options: Options) -> Result<Option<Opened>, OpenError> {
        let (old, id) = self.files.open().map_err(|error| self.io(error))?;
        if !lock(&old).map_err(|error| self.io(error))? {
            return Err(OpenError::InUse { path: self.path.clone() });
        }
        if self.files.current().map_err(|error| self.io(error))? != id {
            return Ok(None);
        }
        // A mark may be possible by now. Without one, only this process knows of the failed sync.
        self.unsynced.store(true, Ordering::SeqCst);
        drop(self.files.mark());
        let database = self.replace(&old, options).map_err(|source| OpenError::NotRewritten {
            path: self.path.clone(),
            source: Box::new(source),
        })?;
        self.unsynced.store(false, Ordering::SeqCst);
        // A remaining mark only costs another rewrite.
        drop(self.files.unmark());
        // Unlocked last: a process that waits for this lock then finds the new file and no mark.
        drop(old.close());
        Ok(Some(database))
    }

    /// Replaces the file by a copy and opens it. The copy is locked before it has the name.
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
            // The next rewrite removes a remaining copy.
            drop(self.files.remove_copy());
        }
        replaced
    }

    /// Whether a sync of the file has failed, in any process, since the last rewrite.
    pub(crate) fn is_unsynced(&self) -> Result<bool, OpenError> {
        let is_marked = || self.files.is_marked().map_err(|error| self.io(error));
        Ok(self.unsynced.load(Ordering::SeqCst) || is_marked()?)
    }

    /// The file with its syncs watched.
    fn watched(self: &Arc<Self>, file: F::File) -> Watched<F> {
        Watched { home: Arc::clone(self), file }
    }

    fn io(&self, error: io::Error) -> OpenError {
        OpenError::io(&self.path, error)
    }

    /// Marks the file after a failed sync. Returns the error of the sync.
    fn sync_failed(&self, sync: io::Error) -> io::Error {
        self.unsynced.store(true, Ordering::SeqCst);
        match self.files.mark() {
            Ok(()) => sync,
            Err(mark) => io::Error::new(sync.kind(), Unmarked { mark, sync }),
        }
    }
}

impl Home<SystemFiles> {
    /// The store's file, with links resolved.
    pub(crate) fn file(&self) -> &Path {
        self.files.file()
    }
}

/// Locks the whole file, so that no redb has it open. Returns `false` if one has.
fn lock(file: &impl StorageBackend) -> io::Result<bool> {
    match file.try_lock_range(Bound::Unbounded, Bound::Unbounded) {
        Ok(locked) => Ok(locked),
        // Without locks in this file system, redb takes none either.
        Err(BackendError::Unsupported) => Ok(true),
        Err(BackendError::Io(error)) => Err(error),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}

/// Copies a file to an empty one and syncs that. Zeros take no room in the copy.
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

/// A store's file for redb. A failed sync is noted before redb learns of it. After that redb neither writes nor reads.
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
