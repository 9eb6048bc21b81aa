//! Failing syncs on a disk that loses the pages of the failed sync, and the power cut that reveals the loss. The code
//! is the production code; only the files are a disk in memory.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use fastrand::Rng;
use futures::executor::block_on;
use redb::{BackendError, StorageBackend};
use workflow_core::store::{EventStore, Position, StoreError};

use super::*;
use crate::disk::Disk;
use crate::fixtures::{batch, record, text};
use crate::{RedbStore, WorkError};

/// A file on a disk in memory, and the holder of its lock.
#[derive(Debug, Clone, Default)]
struct Inode {
    number: u64,
    disk: Disk,
    owner: Arc<Mutex<Option<u64>>>,
}

/// A folder in memory. Clones are the same folder, as other processes see it.
#[derive(Debug, Clone, Default)]
struct Folder(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    rng: Rng,
    file: Inode,
    /// The file that has the name after a power cut.
    on_disk: Inode,
    copy: Option<Inode>,
    marked: bool,
    /// The number of syncs until one fails.
    until_failure: Option<usize>,
    failed: bool,
    /// The error of creating a copy, if that fails.
    refuses: Option<io::ErrorKind>,
    /// The error of making a mark, if that fails.
    refuses_mark: Option<io::ErrorKind>,
}

/// An open file. It holds its lock until it is closed.
#[derive(Debug)]
struct Open {
    folder: Folder,
    inode: Inode,
    handle: u64,
}

fn new_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

impl Inode {
    fn holding(image: Vec<u8>) -> Self {
        Self { number: new_number(), disk: Disk::holding(image), owner: Arc::default() }
    }
}

impl Folder {
    fn holding(image: Vec<u8>, seed: u64) -> Self {
        let file = Inode::holding(image);
        let rng = Rng::with_seed(seed);
        Self(Arc::new(Mutex::new(State { rng, on_disk: file.clone(), file, ..State::default() })))
    }

    /// A folder with a store that is on disk as a whole. In production, too, the store is created under another name.
    fn with_store(seed: u64) -> Self {
        let folder = Self::holding(Vec::new(), seed);
        drop(open(&folder).unwrap());
        let image = folder.state().file.disk.after_the_cut(&mut Rng::with_seed(0));
        Self::holding(image, seed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The folder after a power cut.
    fn after_the_cut(&self) -> Self {
        let mut state = self.state();
        let mut rng = state.rng.fork();
        let file = if rng.bool() { &state.on_disk } else { &state.file };
        let after = Self::holding(file.disk.after_the_cut(&mut rng), rng.u64(..));
        after.state().marked = state.marked && rng.bool();
        after
    }

    /// Counts a sync of a file or of the folder, and returns its error if it fails.
    fn failure(&self) -> Option<Rng> {
        let mut state = self.state();
        let left = state.until_failure.as_mut()?;
        *left -= 1;
        if *left > 0 {
            return None;
        }
        state.until_failure = None;
        state.failed = true;
        Some(state.rng.fork())
    }

    fn opened(&self, inode: &Inode) -> Open {
        Open { folder: self.clone(), inode: inode.clone(), handle: new_number() }
    }
}

impl Files for Folder {
    type File = Open;
    type Id = u64;

    fn open(&self) -> io::Result<(Open, u64)> {
        let inode = self.state().file.clone();
        Ok((self.opened(&inode), inode.number))
    }

    fn current(&self) -> io::Result<u64> {
        Ok(self.state().file.number)
    }

    fn is_marked(&self) -> io::Result<bool> {
        Ok(self.state().marked)
    }

    fn mark(&self) -> io::Result<()> {
        let mut state = self.state();
        state.marked = state.refuses_mark.is_none();
        state.refuses_mark.map_or(Ok(()), |refusal| Err(refusal.into()))
    }

    fn unmark(&self) -> io::Result<()> {
        self.state().marked = false;
        Ok(())
    }

    fn copy(&self) -> &Path {
        Path::new("copy")
    }

    fn create_copy(&self) -> io::Result<Open> {
        if let Some(refusal) = self.state().refuses {
            return Err(refusal.into());
        }
        let copy = Inode::holding(Vec::new());
        self.state().copy = Some(copy.clone());
        Ok(self.opened(&copy))
    }

    fn remove_copy(&self) -> io::Result<()> {
        self.state().copy = None;
        Ok(())
    }

    fn replace(&self) -> io::Result<()> {
        let mut state = self.state();
        state.file = state.copy.take().ok_or(io::ErrorKind::NotFound)?;
        drop(state);
        if self.failure().is_some() {
            return Err(io::Error::other("the folder could not be written"));
        }
        let mut state = self.state();
        state.on_disk = state.file.clone();
        Ok(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        drop(self.close());
    }
}

impl StorageBackend for Open {
    fn len(&self) -> io::Result<u64> {
        self.inode.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inode.disk.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.inode.disk.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        if let Some(rng) = self.folder.failure() {
            self.inode.disk.lose_next_sync(rng);
        }
        self.inode.disk.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inode.disk.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inode.owner.lock().unwrap().take_if(|owner| *owner == self.handle);
        Ok(())
    }

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        let mut owner = self.inode.owner.lock().unwrap();
        Ok(*owner.get_or_insert(self.handle) == self.handle)
    }

    fn unlock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn query_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        let owner = self.inode.owner.lock().unwrap();
        Ok(owner.is_some_and(|owner| owner != self.handle))
    }
}

const OPTIONS: Options = Options { cache: 1 << 20, create: true, verify: false };

/// The view of a process that starts now.
fn home(folder: &Folder) -> Arc<Home<Folder>> {
    Home::new("disk".into(), folder.clone())
}

fn open(folder: &Folder) -> Result<RedbStore, OpenError> {
    let home = home(folder);
    let database = home.open(OPTIONS)?;
    RedbStore::builder().start("disk".into(), None, database, Some(Box::new(move || home.open(OPTIONS))))
}

fn append(store: &RedbStore, at: u64) -> Result<(), StoreError> {
    block_on(store.append(&"a".into(), Position(at), batch(at..at + 2)))
}

/// How many records the run has. The test fails if they are not its first records.
fn end(store: &RedbStore) -> u64 {
    let there = block_on(store.read(&"a".into(), Position(0), 10_000)).unwrap();
    let expected: Vec<_> = (0..there.len() as u64).map(record).collect();
    assert_eq!(text(&there), text(&expected));
    there.len() as u64
}

/// The process that writes after the failed sync.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Next {
    /// The process of the failed sync.
    SameProcess,
    /// Another process. The first one could not rewrite the file.
    LaterProcess,
    /// A process for each append, so that the sync may fail at opening or closing.
    EachItsOwn,
}

/// Appends on a disk whose sync fails once, and cuts the power. Returns how many records were answered and how many are
/// there.
fn survives(failing: usize, next: Next, seed: u64) -> (u64, u64) {
    let folder = Folder::with_store(seed);
    folder.state().until_failure = Some(failing);
    folder.state().refuses = (next == Next::LaterProcess).then_some(io::ErrorKind::StorageFull);
    let (mut store, mut answered) = (None::<RedbStore>, 0);
    for _ in 0..40 {
        if folder.state().failed && store.is_none() {
            folder.state().refuses = None;
        }
        // The opening may fail.
        let Some(opened) = store.take().or_else(|| open(&folder).ok()) else { continue };
        match append(&opened, answered) {
            Ok(()) => answered += 2,
            // The write of the failed sync may be there or not.
            Err(StoreError::Conflict { found, .. }) => answered = found.0,
            Err(StoreError::Unavailable { .. }) if next != Next::SameProcess => continue,
            Err(StoreError::Unavailable { .. }) => answered = end(&opened),
            Err(error) => panic!("{error:?}"),
        }
        store = (next != Next::EachItsOwn).then_some(opened);
    }
    assert!(folder.state().failed, "sync {failing} was never made");
    assert!(answered > 40, "sync {failing}, {next:?}, seed {seed}: {answered}");
    let after = folder.after_the_cut();
    drop(store);
    let store = open(&after).unwrap();
    let report = block_on(store.check()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    (answered, end(&store))
}

#[test]
fn a_write_answered_after_a_failed_sync_survives_a_power_cut() {
    let mut lost = String::new();
    for (failing, seed) in (1..=20).flat_map(|failing| (0..5).map(move |seed| (failing, seed))) {
        for next in [Next::SameProcess, Next::LaterProcess, Next::EachItsOwn] {
            let (answered, there) = survives(failing, next, seed);
            if there < answered {
                let _ = writeln!(lost, "sync {failing}, {next:?}, seed {seed}: {there} of {answered}");
            }
        }
    }
    assert!(lost.is_empty(), "records are lost:\n{lost}");
}

#[test]
fn a_mark_is_made_before_the_failed_sync_is_answered_and_a_later_process_rewrites_first() {
    let folder = Folder::with_store(1);
    let store = open(&folder).unwrap();
    append(&store, 0).unwrap();
    folder.state().refuses = Some(io::ErrorKind::StorageFull);
    folder.state().until_failure = Some(1);
    append(&store, 2).unwrap_err();
    assert!(folder.state().marked);
    drop(store);

    let refused = open(&folder).unwrap_err();
    let OpenError::NotRewritten { source, .. } = &refused else { panic!("{refused:?}") };
    assert!(matches!(&**source, OpenError::Full { path, .. } if path == Path::new("copy")), "{source:?}");
    folder.state().refuses = None;
    let old = folder.state().file.number;
    let store = open(&folder).unwrap();
    assert_ne!(folder.state().file.number, old);
    assert!(!folder.state().marked);
    let end = end(&store);
    append(&store, end).unwrap();
}

#[test]
fn writes_are_refused_until_the_file_is_rewritten_and_each_tries_again() {
    let folder = Folder::with_store(2);
    let store = open(&folder).unwrap();
    append(&store, 0).unwrap();
    folder.state().refuses = Some(io::ErrorKind::PermissionDenied);
    folder.state().until_failure = Some(1);
    for _ in 0..3 {
        let error = append(&store, 2).unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    }
    let StoreError::Unavailable { source } = append(&store, 2).unwrap_err() else { panic!() };
    let Some(WorkError::NotReopened { source, .. }) = source.downcast_ref() else { panic!("{source:?}") };
    assert!(matches!(&**source, OpenError::NotRewritten { .. }), "{source:?}");
    folder.state().refuses = None;
    // The first call finds the end of the journal.
    drop(append(&store, 2));
    let end = end(&store);
    append(&store, end).unwrap();
}

#[test]
fn a_rewrite_that_failed_half_way_is_made_again() {
    // The syncs of the rewrite: of the copy, of its opening, of the folder.
    for failing in 1..=6 {
        let folder = Folder::with_store(failing);
        let store = open(&folder).unwrap();
        append(&store, 0).unwrap();
        drop(store);
        folder.state().marked = true;
        folder.state().until_failure = Some(usize::try_from(failing).unwrap());
        let opened = open(&folder);
        assert_eq!(opened.is_err(), folder.state().failed);
        assert_eq!(opened.is_err(), folder.state().marked);
        drop(opened);
        let store = open(&folder).unwrap();
        append(&store, 2).unwrap();
        assert!(!folder.state().marked && folder.state().copy.is_none());
        let after = folder.after_the_cut();
        assert_eq!(end(&open(&after).unwrap()), 4);
    }
}

#[test]
fn a_failed_compaction_rewrites_the_file_too() {
    let folder = Folder::with_store(3);
    let store = open(&folder).unwrap();
    append(&store, 0).unwrap();
    folder.state().until_failure = Some(1);
    block_on(store.compact()).unwrap_err();
    let end = end(&store);
    append(&store, end).unwrap();
    assert!(!folder.state().marked);
}

/// A process that opened the file before another one replaced it, and gets its lock afterwards.
#[test]
fn a_process_that_waited_for_a_replaced_file_opens_the_new_one() {
    let folder = Folder::with_store(4);
    let first = open(&folder).unwrap();
    append(&first, 0).unwrap();
    assert!(matches!(open(&folder), Err(OpenError::InUse { .. })));

    // The other process has the old file open, and locks it after the replacement.
    let late = home(&folder);
    let (old, id) = late.files.open().unwrap();
    folder.state().until_failure = Some(1);
    append(&first, 2).unwrap_err();
    let end_of_first = end(&first);
    append(&first, end_of_first).unwrap();
    assert!(lock(&old).unwrap(), "the old file is unlocked");
    assert!(late.files.current().unwrap() != id);
    drop(old);
    // The new file is locked.
    assert!(matches!(late.open(OPTIONS), Err(OpenError::InUse { .. })));
    drop(first);
    drop(late.open(OPTIONS).unwrap());
}

#[test]
fn the_mark_is_there_when_the_failed_sync_returns() {
    let folder = Folder::with_store(5);
    let home = home(&folder);
    let file = home.watched(home.files.open().unwrap().0);
    file.sync_data().unwrap();
    assert!(!folder.state().marked);
    folder.state().until_failure = Some(1);
    file.sync_data().unwrap_err();
    assert!(folder.state().marked);
}

#[test]
fn a_mark_that_cannot_be_made_is_reported_with_the_failed_sync_and_the_process_rewrites_all_the_same() {
    let folder = Folder::with_store(6);
    let store = open(&folder).unwrap();
    append(&store, 0).unwrap();
    folder.state().refuses_mark = Some(io::ErrorKind::PermissionDenied);
    folder.state().refuses = Some(io::ErrorKind::PermissionDenied);
    folder.state().until_failure = Some(1);
    let StoreError::Unavailable { source } = append(&store, 2).unwrap_err() else { panic!() };
    let reported = std::error::Error::source(&*source).unwrap().to_string();
    assert!(reported.contains("there is no mark"), "{reported}");
    folder.state().refuses = None;
    let old = folder.state().file.number;
    drop(append(&store, 2));
    assert_ne!(folder.state().file.number, old);
    let end = end(&store);
    append(&store, end).unwrap();
}
