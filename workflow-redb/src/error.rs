//! What can go wrong with a file and with the work on it. What a store's caller sees of it is wrapped in the core's
//! errors, whose source these are.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use workflow_core::{ContextError, Position, RunId, StoreError};

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
    /// There is no such file, and none was to be created; or its folder is missing.
    #[error("there is no file `{}`", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The file is open already, in this process or in another one.
    #[error("`{}` is in use: another process, or another handle in this one, has it open", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file may be read, but not written.
    #[error("`{}` is read-only", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What the system reported.
        source: io::Error,
    },
    /// The file may not be opened.
    #[error("permission to open `{}` is denied", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
        /// What the system reported.
        source: io::Error,
    },
    /// There is no room for the file: on the disk, in a quota, or within the size that a file of the process may have.
    #[error("there is no room for `{}`", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// What the system reported.
        source: io::Error,
    },
    /// The file is none of redb, the first bytes of which are always the same.
    #[error("`{}` is no redb file", path.display())]
    NotRedb {
        /// The file.
        path: PathBuf,
    },
    /// The file is one of redb, but not of a store: it has none of its tables.
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
        /// The greatest version that can be read: [`format::VERSION`](crate::format::VERSION).
        supported: u32,
    },
    /// The file was written by a redb that is too old.
    #[error("`{}` has the file format {version} of redb: it has to be upgraded with an old redb", path.display())]
    OldRedb {
        /// The file.
        path: PathBuf,
        /// The version of redb's file format.
        version: u8,
    },
    /// The file was damaged: truncated, overwritten in part, or changed by something else.
    #[error("`{}` is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// A sync of the file has failed, and the file could not be rewritten, which has to be done before anything is
    /// written to it: part of it may be in memory only. The rewrite needs room for a second file in the same folder, and
    /// the right to create files there. The next call that opens or writes tries again.
    #[error("`{}` has to be rewritten after a failed sync, and cannot be", path.display())]
    NotRewritten {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<OpenError>,
    },
    /// Something else went wrong with the file or the system.
    #[error("`{}` cannot be opened", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system reported.
        source: io::Error,
    },
}

impl OpenError {
    /// What the system says about a file that is opened, to be read as well as written if `writing`.
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
            // What was to be read is not there: the file is shorter than it says.
            io::ErrorKind::UnexpectedEof => Self::Damaged { path, source: Arc::new(source) },
            _ => Self::Io { path, source },
        }
    }

    /// What redb says about a file that is opened.
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

    /// The file that could not be opened.
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

/// Work on an open store that was not done.
///
/// It is the source of [`StoreError::Unavailable`](workflow_core::StoreError::Unavailable) and
/// [`ContextError::Unavailable`](workflow_core::ContextError::Unavailable), and where a journal was read in a damaged
/// file, of [`StoreError::Corrupt`](workflow_core::StoreError::Corrupt).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WorkError {
    /// There is no room for the file to grow: on the disk, in a quota, or within the size that a file of the process may
    /// have. What was asked for is not in the file; the store goes on when there is room.
    #[error("there is no room for `{}` to grow", path.display())]
    Full {
        /// The file.
        path: Arc<Path>,
        /// What redb reported.
        source: Arc<redb::Error>,
    },
    /// The file could not be read or written.
    #[error("`{}` cannot be read or written", path.display())]
    Storage {
        /// The file.
        path: Arc<Path>,
        /// What redb reported.
        source: Arc<redb::Error>,
    },
    /// The file could not be opened again after such an error. It is tried again with the next call that writes.
    #[error("`{}` cannot be used after an error", path.display())]
    NotReopened {
        /// The file.
        path: Arc<Path>,
        /// Why not.
        source: Arc<OpenError>,
    },
    /// The work panicked, in redb or in this crate. Nothing of it is in the file.
    #[error("work on `{}` panicked: {text}", path.display())]
    Panicked {
        /// The file.
        path: Arc<Path>,
        /// What the panic said.
        text: String,
    },
    /// A call has more bytes than the store takes at once: 1 GiB, keys included. Nothing was written, and no other call is
    /// concerned. It is the source of [`StoreError::Unserialisable`](workflow_core::StoreError::Unserialisable) for a
    /// batch.
    #[error("{bytes} bytes at once are more than the {limit} that `{}` takes", path.display())]
    TooLarge {
        /// The file.
        path: Arc<Path>,
        /// How many bytes the call has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// The store was closed, or the runtime was shut down before the call was done.
    #[error("`{}` was closed", path.display())]
    Closed {
        /// The file.
        path: Arc<Path>,
    },
    /// A snapshot could not be written, and is not there.
    #[error("a snapshot of `{}` cannot be written", path.display())]
    Snapshot {
        /// The store's file.
        path: Arc<Path>,
        /// Why not; it names the snapshot's file.
        source: Arc<OpenError>,
    },
    /// Where the snapshot was to be written there is a file already; it was left alone.
    #[error("there is a file `{}` already", path.display())]
    Exists {
        /// The snapshot's file.
        path: Arc<Path>,
    },
}

impl WorkError {
    /// What redb says about work on an open file.
    pub(crate) fn redb(path: &Arc<Path>, error: impl Into<redb::Error>) -> Self {
        let (path, source) = (Arc::clone(path), Arc::new(error.into()));
        match &*source {
            redb::Error::Io(error) if is_full(error) => Self::Full { path, source },
            _ => Self::Storage { path, source },
        }
    }

    /// Whether the file says what it cannot say unless it was damaged. Reading does not panic otherwise.
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
    /// Why the mark could not be made.
    pub(crate) mark: io::Error,
    /// What the sync reported.
    #[source]
    pub(crate) sync: io::Error,
}

/// A file that cannot be replaced under one of its names without staying under the others.
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

/// What a call comes to that reads the journal of a run from a position on: damage of the file is damage of the journal.
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

/// A panic of redb, which some kinds of damage lead to.
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

/// A value of a context that is not what was written.
#[derive(Debug, thiserror::Error)]
#[error("the value `{name}` of the context cannot be decoded")]
pub(crate) struct BadValue {
    pub(crate) name: String,
    pub(crate) source: serde_json::Error,
}

/// A key or an entry of a table that is not of the format.
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

    /// Whoever runs the tests may be allowed everything: what the system would say is made up.
    #[test]
    fn what_the_system_says_is_told_apart() {
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
