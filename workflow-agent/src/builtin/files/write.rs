//! `write_file`: a file is replaced as a whole, or text is appended to it. It never writes through a link.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use super::WriteFile;
use super::access::{AccessError, Root, regular, relative};

/// Attempts to find a name for the temporary file that nothing has.
const NAMES: usize = 8;

pub(super) fn write(root: &Root, arguments: &WriteFile) -> Result<String, AccessError> {
    let WriteFile { path, text, append } = arguments;
    let (parent, name) = target(path)?;
    let folder = folder(root, parent).map_err(AccessError::io(path))?;
    // From here on the handle of the folder decides, so nothing that happens to the path leads elsewhere.
    let former = former(&folder, path, name)?;
    match former {
        Some(_) if *append => append_to(&folder, path, name, text)?,
        former => replace(&folder, name, text, former.as_ref()).map_err(AccessError::io(path))?,
    }
    let verb = if *append { "appended" } else { "wrote" };
    Ok(format!("{verb} {} bytes", text.len()))
}

/// The folder and the name in it.
fn target(path: &str) -> Result<(&Path, &OsStr), AccessError> {
    let inside = relative(path)?;
    let nothing = || AccessError::NoFile { path: path.to_owned() };
    if path.ends_with(std::path::is_separator) {
        return Err(nothing());
    }
    let name = inside.file_name().ok_or_else(nothing)?;
    Ok((inside.parent().unwrap_or(Path::new("")), name))
}

/// Opens the folder, and creates what is missing of its path.
fn folder(root: &Root, path: &Path) -> io::Result<Dir> {
    if path.as_os_str().is_empty() {
        return root.dir().try_clone();
    }
    match root.dir().open_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            root.dir().create_dir_all(path)?;
            root.dir().open_dir(path)
        }
        opened => opened,
    }
}

/// The file that stands there. Folders, links and special files are errors.
fn former(folder: &Dir, path: &str, name: &OsStr) -> Result<Option<Metadata>, AccessError> {
    match folder.symlink_metadata(name) {
        Ok(metadata) => regular(path, &metadata).map(|()| Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(AccessError::io(path)(error)),
    }
}

fn append_to(folder: &Dir, path: &str, name: &OsStr, text: &str) -> Result<(), AccessError> {
    let mut options = OpenOptions::new();
    options.append(true).nonblock(true).follow(FollowSymlinks::No);
    let mut file = folder.open_with(name, &options).map_err(AccessError::io(path))?;
    let metadata = file.metadata().map_err(AccessError::io(path))?;
    regular(path, &metadata)?;
    if is_shared(&metadata) {
        return Err(AccessError::Shared { path: path.to_owned() });
    }
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(AccessError::io(path))
}

/// Whether the file has further names, which may lie outside.
#[cfg(unix)]
fn is_shared(metadata: &Metadata) -> bool {
    cap_fs_ext::MetadataExt::nlink(metadata) > 1
}

/// Other systems do not tell.
#[cfg(not(unix))]
fn is_shared(_metadata: &Metadata) -> bool {
    false
}

/// Writes a temporary file and gives it the name, which replaces a link that came meanwhile instead of following it.
fn replace(folder: &Dir, name: &OsStr, text: &str, former: Option<&Metadata>) -> io::Result<()> {
    let (mut file, temporary) = create(folder)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| former.map_or(Ok(()), |former| take_over(&file, former)))
        .and_then(|()| file.sync_all())
        .and_then(|()| folder.rename(&temporary, folder, name));
    if written.is_err() {
        // The first error says more than a second one would.
        let _ = folder.remove_file(&temporary);
    }
    written
}

/// A new file that nothing else has opened.
fn create(folder: &Dir) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..NAMES {
        let name = PathBuf::from(format!(".{:016x}.tmp", RandomState::new().build_hasher().finish()));
        match folder.open_with(&name, &options) {
            Ok(file) => return Ok((file, name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

/// A script that was executable stays so. Special bits, such as setuid, do not survive a write.
#[cfg(unix)]
fn take_over(file: &File, former: &Metadata) -> io::Result<()> {
    use cap_std::fs::{Permissions, PermissionsExt as _};

    file.set_permissions(Permissions::from_mode(former.permissions().mode() & 0o777))
}

/// Other systems have no permission worth taking over.
#[cfg(not(unix))]
fn take_over(_file: &File, _former: &Metadata) -> io::Result<()> {
    Ok(())
}
