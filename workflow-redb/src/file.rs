//! Opening and creating files: whose file it is, before anything of it is changed, and new ones that are there as a
//! whole or not at all.

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
use crate::format::{FORMAT_KEY, META, RECOVERY, RECOVERY_KEY, TABLES, VERSION};
use crate::opened::Opened;
use crate::overlay::Overlay;
use crate::rewrite::Home;

/// How a file is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// So many bytes of it are kept in memory.
    pub(crate) cache: usize,
    /// Whether it is created if it is not there.
    pub(crate) create: bool,
    /// Whether all of it is read and verified first.
    pub(crate) verify: bool,
}

/// Finds the file of a store, and creates it if it is not there.
pub(crate) fn find(path: &Path, options: Options) -> Result<Arc<Home<SystemFiles>>, OpenError> {
    let is_there = fs::exists(path).map_err(|error| OpenError::io(path, error))?;
    if !is_there && options.create {
        create(path, None, options.cache, |_| Ok(()))?;
    }
    let files = SystemFiles::of(path).map_err(|error| OpenError::io(path, error))?;
    Ok(Home::new(path.to_owned(), files))
}

/// Opens a file to be written.
pub(crate) fn open(home: &Arc<Home<SystemFiles>>, options: Options) -> Result<Opened, OpenError> {
    let path = home.path();
    if length(path)? == 0 && !options.create {
        return Err(OpenError::NotRedb { path: path.to_owned() });
    }
    once_closed(home.file(), || {
        // Opening writes at once, so that whose file it is must be known before. A rewrite changes a copy.
        if length(path)? > 0 && !home.is_unsynced()? {
            drop(probe(path, options.cache)?);
        }
        home.open(options)
    })
}

/// Opens a file that is not changed by it, nor by anything that is done with the database.
pub(crate) fn open_to_read(path: &Path, cache: usize) -> Result<Opened, OpenError> {
    // A file that is not there is none that is closing.
    let file = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match once_closed(&file, || probe(path, cache))? {
        (database, Found::Store) => Ok(database),
        (_, Found::Nothing) => Err(OpenError::Foreign { path: path.to_owned() }),
    }
}

/// Opens a file. If a store of this process that was dropped still has it, waits until it has not.
fn once_closed<T>(file: &Path, open: impl Fn() -> Result<T, OpenError>) -> Result<T, OpenError> {
    match open() {
        Err(OpenError::InUse { .. }) if closing::wait_for(file) => open(),
        opened => opened,
    }
}

/// Opens a file without changing it, and tells whose it is.
fn probe(path: &Path, cache: usize) -> Result<(Opened, Found), OpenError> {
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

/// Opens what a store is kept in, and makes a store of it if it has nothing yet.
pub(crate) fn open_backend(
    path: &Path,
    backend: impl StorageBackend,
    options: Options,
) -> Result<Opened, OpenError> {
    let database = open_redb(path, backend, options)?;
    if identify(path, &database)? == Found::Nothing {
        initialise(path, &database)?;
    }
    Ok(database)
}

fn open_redb(path: &Path, backend: impl StorageBackend, options: Options) -> Result<Opened, OpenError> {
    let mut builder = Database::builder();
    builder.set_cache_size(options.cache).set_check_integrity_on_open(options.verify);
    // A file that was changed from outside may make redb panic.
    let opened = catch_unwind(AssertUnwindSafe(|| builder.create_with_backend(backend)));
    let opened = opened.map_err(|panic| OpenError::damaged(path, Panic::new(&*panic)))?;
    opened.map(Opened::new).map_err(|error| OpenError::redb(path, error))
}

fn length(path: &Path) -> Result<u64, OpenError> {
    let metadata = fs::metadata(path).map_err(|error| OpenError::io(path, error))?;
    if metadata.is_file() {
        return Ok(metadata.len());
    }
    let source = io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
    Err(OpenError::Io { path: path.to_owned(), source })
}

#[derive(PartialEq, Eq)]
enum Found {
    Store,
    /// A database without tables.
    Nothing,
}

/// Tells whose database it is.
fn identify(path: &Path, database: &Database) -> Result<Found, OpenError> {
    let read = catch_unwind(AssertUnwindSafe(|| read_meta(database)));
    let read = read.map_err(|panic| OpenError::damaged(path, Panic::new(&*panic)))?;
    let (tables, format, recovery) = read.map_err(|error| OpenError::redb(path, error))?;
    let path = path.to_owned();
    let Some(format) = format else {
        return if tables == 0 { Ok(Found::Nothing) } else { Err(OpenError::Foreign { path }) };
    };
    let Some(found) = format.try_into().ok().map(u32::from_be_bytes) else {
        return Err(OpenError::damaged(&path, Malformed("version in 4 bytes")));
    };
    if found > VERSION {
        return Err(OpenError::Newer { path, found, supported: VERSION });
    }
    if recovery.as_deref() != Some(RECOVERY) {
        return Err(OpenError::damaged(&path, Malformed("mode of recovery that version 1 has")));
    }
    Ok(Found::Store)
}

/// How many tables there are, and what the meta table has of format and recovery.
type Meta = (usize, Option<Vec<u8>>, Option<Vec<u8>>);

fn read_meta(database: &Database) -> Result<Meta, redb::Error> {
    let transaction = database.begin_read()?;
    let names: Vec<String> = transaction.list_tables()?.map(|table| table.name().to_owned()).collect();
    let tables = names.len() + transaction.list_multimap_tables()?.count();
    if !names.iter().any(|name| name == META.name()) {
        return Ok((tables, None, None));
    }
    let meta = match transaction.open_table(META) {
        // A table of this name that is another's.
        Err(redb::TableError::TableTypeMismatch { .. }) => return Ok((tables, None, None)),
        meta => meta?,
    };
    let format = meta.get(FORMAT_KEY)?.map(|value| value.value().to_vec());
    let recovery = meta.get(RECOVERY_KEY)?.map(|value| value.value().to_vec());
    Ok((tables, format, recovery))
}

fn initialise(path: &Path, database: &Database) -> Result<(), OpenError> {
    let initialise = || {
        let transaction = database.begin_write()?;
        for table in TABLES {
            transaction.open_table(table)?;
        }
        let mut meta = transaction.open_table(META)?;
        meta.insert(FORMAT_KEY, &VERSION.to_be_bytes()[..])?;
        meta.insert(RECOVERY_KEY, RECOVERY)?;
        drop(meta);
        Ok::<_, redb::Error>(transaction.commit()?)
    };
    // One without tables may be damaged too.
    let initialised = catch_unwind(AssertUnwindSafe(initialise));
    let initialised = initialised.map_err(|panic| OpenError::damaged(path, Panic::new(&*panic)))?;
    initialised.map_err(|error| OpenError::redb(path, error))
}

/// Creates a file with an empty store that is then filled. It appears under its name when it is whole and on disk; one
/// that is there is left alone, and it is no error.
///
/// It has mode and owner of `like`, or else what the system gives a new file.
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

/// A file that is being written, under a name that nobody looks for. It does not outlive this value.
struct Unfinished(PathBuf);

impl Unfinished {
    fn beside(path: &Path) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut name = path.as_os_str().to_owned();
        // What a process of the same number has left behind must be in nobody's way.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        name.push(format!(".unfinished-{}-{now}-{number}", std::process::id()));
        Self(name.into())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It may have got its name already.
        drop(fs::remove_file(&self.0));
    }
}

/// Gives a file its name, unless another has it.
fn link(unfinished: &Path, path: &Path) -> io::Result<Created> {
    match fs::hard_link(unfinished, path) {
        Ok(()) => Ok(Created::Created),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Created::WasThere),
        // A file system without links: looked for, then renamed.
        Err(_) if fs::exists(path)? => Ok(Created::WasThere),
        Err(_) => fs::rename(unfinished, path).map(|()| Created::Created),
    }
}
