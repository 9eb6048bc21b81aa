//! The names of a store's files: its own, the mark of a failed sync, and the copy of a rewrite. `rewrite` decides when
//! they change.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use redb::StorageBackend;
use redb::backends::FileBackend;
use same_file::Handle;

/// The operations of a store on its folder. A trait, so that tests can cut the power of a folder in memory.
pub(crate) trait Files: fmt::Debug + Send + Sync + 'static {
    /// An open file.
    type File: StorageBackend;

    /// The identity of a file, independent of its names. No other file has it while this value lives.
    type Id: PartialEq;

    /// Opens the store's file.
    fn open(&self) -> io::Result<(Self::File, Self::Id)>;

    /// The file that the store's name leads to now.
    fn current(&self) -> io::Result<Self::Id>;

    fn is_marked(&self) -> io::Result<bool>;

    /// Makes the mark. Other processes see it at once. A power cut may undo it.
    fn mark(&self) -> io::Result<()>;

    fn unmark(&self) -> io::Result<()>;

    /// The copy's name, for errors.
    fn copy(&self) -> &Path;

    /// Creates an empty copy with mode and owner of the store's file. Removes the leftover of an earlier process.
    fn create_copy(&self) -> io::Result<Self::File>;

    fn remove_copy(&self) -> io::Result<()>;

    /// Gives the copy the name of the store's file, and syncs the folder.
    fn replace(&self) -> io::Result<()>;
}

/// A file of the system, and the names beside it.
#[derive(Debug)]
pub(crate) struct SystemFiles {
    file: PathBuf,
    mark: PathBuf,
    copy: PathBuf,
}

impl SystemFiles {
    /// The names for an existing file. For a symbolic link they are beside its target.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let file = fs::canonicalize(path)?;
        let (mark, copy) = (beside(&file, "unsynced"), beside(&file, "rewrite"));
        Ok(Self { file, mark, copy })
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }
}

fn beside(file: &Path, what: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

impl Files for SystemFiles {
    type File = FileBackend;
    type Id = Handle;

    fn open(&self) -> io::Result<(FileBackend, Handle)> {
        let file = File::options().read(true).write(true).open(&self.file)?;
        let id = Handle::from_file(file.try_clone()?)?;
        Ok((backend(file)?, id))
    }

    fn current(&self) -> io::Result<Handle> {
        Handle::from_path(&self.file)
    }

    fn is_marked(&self) -> io::Result<bool> {
        fs::exists(&self.mark)
    }

    fn mark(&self) -> io::Result<()> {
        match File::options().write(true).create_new(true).open(&self.mark) {
            Ok(mut mark) => {
                // The name is the mark. The text is for people, and a full disk may refuse it.
                drop(mark.write_all(EXPLANATION));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn unmark(&self) -> io::Result<()> {
        removed(&self.mark)
    }

    fn copy(&self) -> &Path {
        &self.copy
    }

    fn create_copy(&self) -> io::Result<FileBackend> {
        let original = fs::metadata(&self.file)?;
        has_one_name(&original)?;
        removed(&self.copy)?;
        backend(create(&self.copy, Some(&original))?)
    }

    fn remove_copy(&self) -> io::Result<()> {
        removed(&self.copy)
    }

    fn replace(&self) -> io::Result<()> {
        fs::rename(&self.copy, &self.file)?;
        sync_folder(&self.file)
    }
}

const EXPLANATION: &[u8] =
    b"The system reported that it could not put the file beside on disk. Part of that file may be \
    in memory only. workflow-redb writes the file anew when it opens it next, and then removes this mark.\n";

fn backend(file: File) -> io::Result<FileBackend> {
    FileBackend::new(file).map_err(io::Error::other)
}

fn removed(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates a missing file for reading and writing. It has mode and owner of `like`, as far as the process may set them,
/// and at no time more permissions than `like`.
pub(crate) fn create(path: &Path, like: Option<&Metadata>) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    let Some(like) = like else { return options.open(path) };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    if let Err(error) = resemble(&file, like) {
        drop(fs::remove_file(path));
        return Err(error);
    }
    Ok(file)
}

#[cfg(unix)]
fn resemble(file: &File, like: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};

    let created = file.metadata()?;
    if created.uid() != like.uid() {
        // Only a privileged process may do that. Another one becomes the owner.
        drop(fchown(file, Some(like.uid()), None));
    }
    let has_group = created.gid() == like.gid() || fchown(file, None, Some(like.gid())).is_ok();
    // The permissions of one group are not for another.
    let mode = if has_group { like.mode() & 0o777 } else { like.mode() & 0o707 };
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn resemble(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// The error of a file with several names: after a rewrite, each name would lead to a store of its own.
#[cfg(unix)]
fn has_one_name(file: &Metadata) -> io::Result<()> {
    let names = std::os::unix::fs::MetadataExt::nlink(file);
    if names <= 1 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, crate::error::SeveralNames { names }))
}

#[cfg(not(unix))]
fn has_one_name(_: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Syncs the folder of a file, so that its names are on disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Only Unix can open a folder.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
