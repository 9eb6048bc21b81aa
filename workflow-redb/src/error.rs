//! Errors of files and of the work on them. The core's errors have these as their sources.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use workflow_core::RunId;
use workflow_core::errors::ContextError;
use workflow_core::store::{Position, StoreError};

/// A file that could not be opened as a store. Nothing of it was changed.
///
/// ```
/// use workflow_redb::{OpenError, RedbStore};
///
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("notes.txt");
/// std::fs::write(&path, "to do: everything").unwrap();
/// assert!(matches!(RedbStore::open(&path), Err(OpenError::NotRedb { .. })));
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "to do: everything");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file or its folder does not exist, and the file was not to be created.
    #[error("there is no file `{}`", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The file is open in this process or in another one.
    #[error("`{}` is in use: another process, or another handle in this one, has it open", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The process may read the file, but not write it.
    #[error("`{}` is read-only", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The process may not open the file.
    #[error("permission to open `{}` is denied", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no room for the file: on the disk, in a quota, or within the process's limit for files.
    #[error("there is no room for `{}`", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is no redb database: its first bytes differ.
    #[error("`{}` is no redb file", path.display())]
    NotRedb {
        /// The file.
        path: PathBuf,
    },
    /// The file is a redb database without the tables of a store.
    #[error("`{}` is a redb file of something else", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later version of this crate has written the file.
    #[error("`{}` has format {found}, and this version reads up to {supported}: upgrade workflow-redb", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The greatest supported version: [`format::VERSION`](crate::format::VERSION).
        supported: u32,
    },
    /// A redb that is too old has written the file.
    #[error("`{}` has the file format {version} of redb: it has to be upgraded with an old redb", path.display())]
    OldRedb {
        /// The file.
        path: PathBuf,
        /// The version of redb's file format.
        version: u8,
    },
    /// The file is damaged: truncated, overwritten in part, or changed by another program.
    #[error("`{}` is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// A sync of the file has failed, and the file could not be rewritten.
    ///
    /// Part of the file may be in memory only, so it has to be rewritten before further writes. The rewrite needs room
    /// for a second file in the same folder, and the right to create files there. The next opening or writing call
    /// tries again.
    #[error("`{}` has to be rewritten after a failed sync, and cannot be", path.display())]
    NotRewritten {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<OpenError>,
    },
    /// Another error of the file or the system.
    #[error("`{}` cannot be opened", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl OpenError {
    /// The error of the system for a file that is opened, for reading as well as writing if `writing`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path, source },
            io::ErrorKind::PermissionDenied if std::fs::File::open(&path).is_ok() => {
                Self::ReadOnly { path, source }
            }
            io::ErrorKind::PermissionDenied => Self::Denied { path, source },
            _ if is_full(&source) => Self::Full { path, source },
            // The file is shorter than its contents say.
            io::ErrorKind::UnexpectedEof => Self::Damaged { path, source: Arc::new(source) },
            _ => Self::Io { path, source },
        }
    }

    /// The error of redb for a file that is opened.
    pub(crate) fn redb(path: &Path, error: impl Into<redb::Error>) -> Self {
        let owned = || path.to_owned();
        match error.into() {
            redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => {
                Self::InUse { path: owned() }
            }
            redb::Error::UpgradeRequired(version) => Self::OldRedb { path: owned(), version },
            redb::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                Self::NotRedb { path: owned() }
            }
            redb::Error::Io(error) => Self::io(path, error),
            error => Self::damaged(path, error),
        }
    }

    pub(crate) fn damaged(path: &Path, source: impl Error + Send + Sync + 'static) -> Self {
        Self::Damaged { path: path.to_owned(), source: Arc::new(source) }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        match self {
            Self::NotFound { path }
            | Self::InUse { path }
            | Self::ReadOnly { path, .. }
            | Self::Denied { path, .. }
            | Self::Full { path, .. }
            | Self::NotRedb { path }
            | Self::Foreign { path }
            | Self::Newer { path, .. }
            | Self::OldRedb { path, .. }
            | Self::Damaged { path, .. }
            | Self::NotRewritten { path, .. }
            | Self::Io { path, .. } => path,
        }
    }
}

/// A message that was not put into the inbox.
///
/// ```
/// use workflow_redb::InboxError;
///
/// let full = InboxError::Full { path: std::path::Path::new("runs.redb").into(), capacity: 100_000 };
/// assert_eq!(full.to_string(), "100000 messages are pending in `runs.redb`, and it takes no more: let an engine take some");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError {
    /// The inbox has no room.
    #[error("{capacity} messages are pending in `{}`, and it takes no more: let an engine take some", path.display())]
    Full {
        /// The file.
        path: Arc<Path>,
        /// The most pending messages of a file.
        capacity: u64,
    },
    /// The message has no JSON that could be read back: it is nested too deep.
    #[error("the message `{id}` cannot be stored")]
    Unserialisable {
        /// The id of the message.
        id: Arc<str>,
        /// The reason.
        source: Arc<serde_json::Error>,
    },
    /// The file could not be written.
    #[error(transparent)]
    Work(#[from] WorkError),
}

/// An error of work on an open store.
///
/// It is the source of [`StoreError::Unavailable`](workflow_core::store::StoreError::Unavailable) and
/// [`ContextError::Unavailable`](workflow_core::errors::ContextError::Unavailable), and of
/// [`StoreError::Corrupt`](workflow_core::store::StoreError::Corrupt) for a journal in a damaged file.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WorkError {
    /// The file has no room to grow: on the disk, in a quota, or within the process's limit for files.
    ///
    /// The write is not in the file. The store works again when there is room. Removing ended runs, and compacting the file
    /// then, need little.
    #[error("there is no room for `{}` to grow: make some, or remove ended runs and compact it", path.display())]
    Full {
        /// The file.
        path: Arc<Path>,
        /// redb's error.
        source: Arc<redb::Error>,
    },
    /// The file could not be read or written.
    #[error("`{}` cannot be read or written", path.display())]
    Storage {
        /// The file.
        path: Arc<Path>,
        /// redb's error.
        source: Arc<redb::Error>,
    },
    /// The file could not be opened again after an error. The next writing call tries again.
    #[error("`{}` cannot be used after an error", path.display())]
    NotReopened {
        /// The file.
        path: Arc<Path>,
        /// The reason.
        source: Arc<OpenError>,
    },
    /// The work panicked, in redb or in this crate. None of it is in the file.
    #[error("work on `{}` panicked: {text}", path.display())]
    Panicked {
        /// The file.
        path: Arc<Path>,
        /// The panic's text.
        text: String,
    },
    /// A call has more bytes than the store accepts at once: 1 GiB, keys included.
    ///
    /// Nothing was written, and no other call fails. It is the source of
    /// [`StoreError::Unserialisable`](workflow_core::store::StoreError::Unserialisable) for a write.
    #[error("{bytes} bytes at once are more than the {limit} that `{}` takes", path.display())]
    TooLarge {
        /// The file.
        path: Arc<Path>,
        /// The bytes of the call.
        bytes: usize,
        /// The most bytes of a call.
        limit: usize,
    },
    /// The store was closed, or the runtime was shut down before the call was done.
    #[error("`{}` was closed", path.display())]
    Closed {
        /// The file.
        path: Arc<Path>,
    },
    /// A snapshot could not be written. No file was left.
    #[error("a snapshot of `{}` cannot be written", path.display())]
    Snapshot {
        /// The store's file.
        path: Arc<Path>,
        /// The reason, which names the snapshot's file.
        source: Arc<OpenError>,
    },
    /// A file of the snapshot's name exists. It stays as it is.
    #[error("there is a file `{}` already", path.display())]
    Exists {
        /// The snapshot's file.
        path: Arc<Path>,
    },
}

impl WorkError {
    /// The error of redb for work on an open file.
    pub(crate) fn redb(path: &Arc<Path>, error: impl Into<redb::Error>) -> Self {
        let (path, source) = (Arc::clone(path), Arc::new(error.into()));
        match &*source {
            redb::Error::Io(error) if is_full(error) => Self::Full { path, source },
            _ => Self::Storage { path, source },
        }
    }

    /// Whether the error proves that the file is damaged. Reading an undamaged file does not panic.
    fn is_of_damage(&self) -> bool {
        match self {
            Self::Panicked { .. } => true,
            Self::Storage { source, .. } => matches!(**source, redb::Error::Corrupted(_)),
            _ => false,
        }
    }

    pub(crate) fn panicked(path: &Arc<Path>, panic: &(dyn Any + Send)) -> Self {
        Self::Panicked { path: Arc::clone(path), text: panic_text(panic).to_owned() }
    }
}

/// A failed sync without a mark.
#[derive(Debug, thiserror::Error)]
#[error(
    "a sync failed, and there is no mark of that beside the file ({mark}): a later process would not know it"
)]
pub(crate) struct Unmarked {
    /// The error of making the mark.
    pub(crate) mark: io::Error,
    /// The error of the sync.
    #[source]
    pub(crate) sync: io::Error,
}

/// A file that cannot be replaced under all of its names at once.
#[derive(Debug, thiserror::Error)]
#[error("the file has {names} names (hard links): remove those that are not the store's")]
#[cfg(unix)]
pub(crate) struct SeveralNames {
    pub(crate) names: u64,
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The error of reading a journal from a position on: damage of the file is damage of the journal.
pub(crate) fn of_journal(error: StoreError, run: &RunId, from: Position) -> StoreError {
    match error {
        StoreError::Unavailable { source }
            if source.downcast_ref::<WorkError>().is_some_and(WorkError::is_of_damage) =>
        {
            StoreError::Corrupt { run: run.clone(), position: from, source }
        }
        error => error,
    }
}

impl From<WorkError> for StoreError {
    fn from(error: WorkError) -> Self {
        Self::unavailable(error)
    }
}

impl From<WorkError> for ContextError {
    fn from(error: WorkError) -> Self {
        Self::unavailable(error)
    }
}

/// A panic of redb, which some damage causes.
#[derive(Debug, thiserror::Error)]
#[error("reading it panicked: {0}")]
pub(crate) struct Panic(String);

impl Panic {
    pub(crate) fn new(panic: &(dyn Any + Send)) -> Self {
        Self(panic_text(panic).to_owned())
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text")
}

/// A value of a context that cannot be decoded.
#[derive(Debug, thiserror::Error)]
#[error("the value `{name}` of the context cannot be decoded")]
pub(crate) struct BadValue {
    pub(crate) name: String,
    pub(crate) source: serde_json::Error,
}

/// A key or an entry that violates the format.
#[derive(Debug)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it has no {}", self.0)
    }
}

impl Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made-up errors of the system, because the tests may run with every permission.
    #[test]
    fn errors_of_the_system_are_distinguished() {
        let (there, away) = (Path::new(env!("CARGO_MANIFEST_PATH")), Path::new("/missing"));
        let opened = |path, kind: io::ErrorKind| OpenError::io(path, kind.into());
        assert!(matches!(opened(there, io::ErrorKind::PermissionDenied), OpenError::ReadOnly { .. }));
        assert!(matches!(opened(away, io::ErrorKind::PermissionDenied), OpenError::Denied { .. }));
        assert!(matches!(opened(there, io::ErrorKind::ReadOnlyFilesystem), OpenError::ReadOnly { .. }));
        assert!(matches!(opened(there, io::ErrorKind::StorageFull), OpenError::Full { .. }));
        assert!(matches!(opened(there, io::ErrorKind::FileTooLarge), OpenError::Full { .. }));
        assert!(matches!(opened(there, io::ErrorKind::UnexpectedEof), OpenError::Damaged { .. }));
        assert!(matches!(opened(away, io::ErrorKind::NotFound), OpenError::NotFound { .. }));
        assert!(matches!(opened(there, io::ErrorKind::Other), OpenError::Io { .. }));
    }
}
