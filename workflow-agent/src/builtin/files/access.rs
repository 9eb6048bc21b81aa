//! The way from the path that a model wrote to a file inside of the folder, and the errors on it. The confinement itself
//! is that of `cap-std`: every path is opened beneath the folder's handle.

use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use crate::tool::ToolError;

/// The longest path in bytes, as on Linux.
const LONGEST_PATH: usize = 4096;

/// The handle of the folder.
#[derive(Debug, Clone)]
pub(super) struct Root(Arc<Dir>);

impl Root {
    pub(super) fn new(dir: Dir) -> Self {
        Self(Arc::new(dir))
    }

    pub(super) fn dir(&self) -> &Dir {
        &self.0
    }

    /// Opens a regular file for reading.
    pub(super) fn open(&self, path: &str) -> Result<(File, Metadata), AccessError> {
        let inside = relative(path)?;
        // Opening a device can have effects, so it is looked at first; whether it still is a file is checked afterwards.
        let metadata = self.0.metadata(inside).map_err(AccessError::io(path))?;
        regular(path, &metadata)?;
        // Without `nonblock` a pipe that took the place of the file would wait for its other end.
        let file = self.0.open_with(inside, OpenOptions::new().read(true).nonblock(true));
        let file = file.map_err(AccessError::io(path))?;
        let metadata = file.metadata().map_err(AccessError::io(path))?;
        regular(path, &metadata)?;
        Ok((file, metadata))
    }
}

/// Refuses what can never be a path inside. Whether `..` and links stay inside shows itself when the path is opened.
pub(super) fn relative(path: &str) -> Result<&Path, AccessError> {
    if path.is_empty() || path.len() > LONGEST_PATH || path.contains('\0') {
        return Err(AccessError::NoPath);
    }
    let inside = Path::new(path);
    if inside.has_root() || inside.is_absolute() {
        return Err(AccessError::Absolute { path: path.to_owned() });
    }
    Ok(inside)
}

/// Refuses everything but regular files.
pub(super) fn regular(path: &str, metadata: &Metadata) -> Result<(), AccessError> {
    match metadata.file_type() {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_dir() => Err(AccessError::Folder { path: path.to_owned() }),
        kind if kind.is_symlink() => Err(AccessError::Link { path: path.to_owned() }),
        _ => Err(AccessError::Special { path: path.to_owned() }),
    }
}

/// Runs file operations where they may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AccessError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result?),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(cancelled) => Err(ToolError::new(cancelled)),
        },
    }
}

/// Why a file cannot be reached. The model reads it.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccessError {
    #[error("the path is empty, has a zero byte, or has more than {LONGEST_PATH} bytes")]
    NoPath,
    #[error("`{path}` is absolute; write a path relative to the folder of the files")]
    Absolute { path: String },
    #[error("`{path}` is a folder; list it with `list_files`")]
    Folder { path: String },
    #[error("`{path}` names no file")]
    NoFile { path: String },
    #[error("`{path}` is a symbolic link; write to the file that it names")]
    Link { path: String },
    #[error("`{path}` is no regular file")]
    Special { path: String },
    #[error("`{path}` is one of several names of its file, and appending would change it under all of them")]
    Shared { path: String },
    #[error("`{path}` has {lines} lines, so line {from} cannot be read")]
    NoLine { path: String, lines: usize, from: usize },
    #[error("`{path}` cannot be used")]
    Io { path: String, source: io::Error },
}

impl AccessError {
    pub(super) fn io(path: &str) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::Io { path: path.to_owned(), source }
    }
}
