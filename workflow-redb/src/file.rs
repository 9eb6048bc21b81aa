//! Opening and creating files. A file is identified before it is changed, and a new file appears as a whole or not at
//! all.

use std::fs::{self, File, Metadata};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, StorageBackend, TableHandle};

use crate::closing;
use crate::error::{Malformed, OpenError, Panic};
use crate::files::{self, SystemFiles, sync_folder};
use crate::format::{FORMAT_KEY, META, RECOVERY, RECOVERY_KEY, TABLES, VERSION, WITHOUT_INBOX};
use crate::opened::Opened;
use crate::overlay::Overlay;
use crate::rewrite::Home;
use crate::upgrade::upgrade;

/// Options for opening a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// How many bytes of the file stay in memory.
    pub(crate) cache: usize,
    /// Whether a missing file is created.
    pub(crate) create: bool,
    /// Whether the whole file is read and verified first.
    pub(crate) verify: bool,
}

/// Finds the file of a store, and creates a missing one.
pub(crate) fn find(path: &Path, options: Options) -> Result<Arc<Home<SystemFiles>>, OpenError> {
    let is_there = fs::exists(path).map_err(|error| OpenError::io(path, error))?;
    if !is_there && options.create {
        create(path, None, options.cache, |_| Ok(()))?;
    }
    let files = SystemFiles::of(path).map_err(|error| OpenError::io(path, error))?;
    Ok(Home::new(path.to_owned(), files))
}

/// Opens a file for writing.
pub(crate) fn open(home: &Arc<Home<SystemFiles>>, options: Options) -> Result<Opened, OpenError> {
    let path = home.path();
    if length(path)? == 0 && !options.create {
        return Err(OpenError::NotRedb { path: path.to_owned() });
    }
    once_closed(home.file(), || {
        // Opening writes at once, so the file is identified before. A rewrite changes only a copy.
        if length(path)? > 0 && !home.is_unsynced()? {
            drop(probe(path, options.cache)?);
        }
        home.open(options)
    })
}

/// Opens a file that stays unchanged, whatever is done with the database.
pub(crate) fn open_to_read(path: &Path, cache: usize) -> Result<Opened, OpenError> {
    // A missing file is not a closing one.
    let file = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match once_closed(&file, || probe(path, cache))? {
        (database, Contents::Store { .. }) => Ok(database),
        (_, Contents::Empty) => Err(OpenError::Foreign { path: path.to_owned() }),
    }
}

/// Opens a file. If a dropped store of this process still holds it, waits for the release.
fn once_closed<T>(file: &Path, open: impl Fn() -> Result<T, OpenError>) -> Result<T, OpenError> {
    match open() {
        Err(OpenError::InUse { .. }) if closing::wait_for(file) => open(),
        opened => opened,
    }
}

/// Opens a file without changing it, and identifies it.
fn probe(path: &Path, cache: usize) -> Result<(Opened, Contents), OpenError> {
    if length(path)? == 0 {
        return Err(OpenError::NotRedb { path: path.to_owned() });
    }
    let file = File::open(path).map_err(|error| OpenError::io(path, error))?;
    let backend = FileBackend::new(file).map_err(|error| OpenError::redb(path, error))?;
    let overlay = Overlay::new(backend).map_err(|error| OpenError::io(path, error))?;
    let database = open_redb(path, overlay, Options { cache, create: false, verify: false })?;
    let found = identify(path, &database)?;
    Ok((database, found))
}

/// Opens a backend, and initialises an empty one as a store.
pub(crate) fn open_backend(
    path: &Path,
    backend: impl StorageBackend,
    options: Options,
) -> Result<Opened, OpenError> {
    let database = open_redb(path, backend, options)?;
    match identify(path, &database)? {
        Contents::Empty => change(path, &database, initialise)?,
        Contents::Store { format } if format < WITHOUT_INBOX => change(path, &database, upgrade)?,
        Contents::Store { .. } => {}
    }
    Ok(database)
}

fn open_redb(path: &Path, backend: impl StorageBackend, options: Options) -> Result<Opened, OpenError> {
    let mut builder = Database::builder();
    builder.set_cache_size(options.cache).set_check_integrity_on_open(options.verify);
    // redb may panic if another program has changed the file.
    let opened = catch_unwind(AssertUnwindSafe(|| builder.create_with_backend(backend)));
    let opened = opened.map_err(|panic| OpenError::damaged(path, Panic::new(&*panic)))?;
    opened.map(Opened::new).map_err(|error| OpenError::redb(path, error))
}

/// The length of a regular file. An error for any other.
fn length(path: &Path) -> Result<u64, OpenError> {
    let metadata = fs::metadata(path).map_err(|error| OpenError::io(path, error))?;
    if metadata.is_file() {
        return Ok(metadata.len());
    }
    let source = io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
    Err(OpenError::Io { path: path.to_owned(), source })
}

/// The contents of a database that is no foreign one.
#[derive(PartialEq, Eq)]
enum Contents {
    Store {
        format: u32,
    },
    /// A database without tables.
    Empty,
}

/// Identifies a database.
fn identify(path: &Path, database: &Database) -> Result<Contents, OpenError> {
    let read = catch_unwind(AssertUnwindSafe(|| read_meta(database)));
    let read = read.map_err(|panic| OpenError::damaged(path, Panic::new(&*panic)))?;
    let (tables, format, recovery) = read.map_err(|error| OpenError::redb(path, error))?;
    let path = path.to_owned();
    let Some(format) = format else {
        return if tables == 0 { Ok(Contents::Empty) } else { Err(OpenError::Foreign { path }) };
    };
    let Some(found) = format.try_into().ok().map(u32::from_be_bytes) else {
        return Err(OpenError::damaged(&path, Malformed("version in 4 bytes")));
    };
    if found > VERSION {
        return Err(OpenError::Newer { path, found, supported: VERSION });
    }
    if recovery.as_deref() != Some(RECOVERY) {
        return Err(OpenError::damaged(&path, Malformed("mode of recovery that a store has")));
    }
    Ok(Contents::Store { format: found })
}

/// The number of tables, and the format and the recovery mode of the meta table.
type Meta = (usize, Option<Vec<u8>>, Option<Vec<u8>>);

fn read_meta(database: &Database) -> Result<Meta, redb::Error> {
    let transaction = database.begin_read()?;
    let names: Vec<String> = transaction.list_tables()?.map(|table| table.name().to_owned()).collect();
    let tables = names.len() + transaction.list_multimap_tables()?.count();
    if !names.iter().any(|name| name == META.name()) {
        return Ok((tables, None, None));
    }
    let meta = match transaction.open_table(META) {
        // Another program's table of this name.
        Err(redb::TableError::TableTypeMismatch { .. }) => return Ok((tables, None, None)),
        meta => meta?,
    };
    let format = meta.get(FORMAT_KEY)?.map(|value| value.value().to_vec());
    let recovery = meta.get(RECOVERY_KEY)?.map(|value| value.value().to_vec());
    Ok((tables, format, recovery))
}

/// Creates the tables of an empty store, with format and recovery mode.
fn initialise(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    for table in TABLES {
        transaction.open_table(table)?;
    }
    let mut meta = transaction.open_table(META)?;
    meta.insert(FORMAT_KEY, &WITHOUT_INBOX.to_be_bytes()[..])?;
    meta.insert(RECOVERY_KEY, RECOVERY)?;
    drop(meta);
    Ok(transaction.commit()?)
}

/// Changes a database that may be damaged.
fn change(
    path: &Path,
    database: &Database,
    change: impl FnOnce(&Database) -> Result<(), redb::Error>,
) -> Result<(), OpenError> {
    let changed = catch_unwind(AssertUnwindSafe(|| change(database)));
    let changed = changed.map_err(|panic| OpenError::damaged(path, Panic::new(&*panic)))?;
    changed.map_err(|error| OpenError::redb(path, error))
}

/// Creates a file with an empty store and fills it. The file gets its name when it is complete and on disk. An existing
/// file stays as it is, and is no error.
///
/// The file has mode and owner of `like`, or else the system's defaults.
pub(crate) fn create(
    path: &Path,
    like: Option<&Metadata>,
    cache: usize,
    fill: impl FnOnce(&Database) -> Result<(), OpenError>,
) -> Result<Created, OpenError> {
    let unfinished = Unfinished::beside(path);
    let new = files::create(&unfinished.0, like).map_err(|error| OpenError::io(path, error))?;
    let backend = FileBackend::new(new).map_err(|error| OpenError::redb(path, error))?;
    let database = open_backend(path, backend, Options { cache, create: true, verify: false })?;
    fill(&database)?;
    database.close(path)?;
    let linked = link(&unfinished.0, path).map_err(|error| OpenError::io(path, error))?;
    sync_folder(path).map_err(|error| OpenError::io(path, error))?;
    Ok(linked)
}

/// Whether a file was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Created {
    Created,
    WasThere,
}

/// A file that is being written, under a temporary name. It does not outlive this value.
struct Unfinished(PathBuf);

impl Unfinished {
    fn beside(path: &Path) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut name = path.as_os_str().to_owned();
        // Removes the leftover of an earlier process with the same number.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        name.push(format!(".unfinished-{}-{now}-{number}", std::process::id()));
        Self(name.into())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It may have its name already.
        drop(fs::remove_file(&self.0));
    }
}

/// Gives a file its name, unless another file has it.
fn link(unfinished: &Path, path: &Path) -> io::Result<Created> {
    match fs::hard_link(unfinished, path) {
        Ok(()) => Ok(Created::Created),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Created::WasThere),
        // Without links in this file system: looked up first, then renamed.
        Err(_) if fs::exists(path)? => Ok(Created::WasThere),
        Err(_) => fs::rename(unfinished, path).map(|()| Created::Created),
    }
}
