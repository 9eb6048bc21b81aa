//! An in-memory disk with simulated power cuts: they lose any part of what no sync has covered. The disk can also
//! block, to decide what waits for a commit, and be full.

use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use fastrand::Rng;
use redb::StorageBackend;

/// The atomic unit of a disk; a write may be torn between two.
const SECTOR: usize = 512;

/// The unit of the system's page cache.
const PAGE: usize = 4096;

/// The time limit for an expected write: only a missing one takes so long, on any machine.
const PATIENCE: Duration = Duration::from_mins(10);

/// Clones share one disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Arc<(Mutex<Platter>, Condvar)>);

#[derive(Debug, Default)]
struct Platter {
    /// The content that reads see.
    live: Vec<u8>,
    /// The content that survives a power cut.
    synced: Vec<u8>,
    /// The writes since the last sync, in order.
    unsynced: Vec<Change>,
    syncs: usize,
    /// The number of writes and syncs before the power goes; `None` if it does not.
    left: Option<usize>,
    fails: Option<io::ErrorKind>,
    /// The randomness of the next sync's loss, if it fails.
    loses: Option<Rng>,
    held: bool,
    /// Whether a write waits for the disk to be released.
    waits: bool,
}

#[derive(Debug)]
enum Change {
    Write { offset: usize, data: Vec<u8> },
    Length(usize),
}

impl Change {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Length(length) => image.resize(*length, 0),
            Self::Write { offset, data } => {
                // A write beyond an end that was never extended: a disk keeps it, a file does not.
                let end = image.len().min(offset + data.len());
                if *offset < end {
                    image[*offset..end].copy_from_slice(&data[..end - offset]);
                }
            }
        }
    }

    /// Parts that a disk may have written without the others.
    fn sectors(&self) -> Vec<Self> {
        let Self::Write { offset, data } = self else { return Vec::new() };
        let sectors = data.chunks(SECTOR).zip((*offset..).step_by(SECTOR));
        sectors.map(|(data, offset)| Self::Write { offset, data: data.to_vec() }).collect()
    }
}

impl Platter {
    /// Puts a random part of the unsynced writes on disk, and treats the rest as synced.
    fn lose(&mut self, mut rng: Rng) {
        let written = mem::take(&mut self.unsynced);
        self.synced = after(&self.synced, &written, &mut rng);
        // Pages evicted from the cache are read from the disk.
        let evicted = [0.0, 0.0, 0.3, 1.0][rng.usize(..4)];
        let pages = self.live.chunks_mut(PAGE).zip((0..).step_by(PAGE));
        for (page, at) in pages.filter(|_| rng.f64() < evicted) {
            let there = self.synced.get(at..).unwrap_or_default();
            let there = &there[..there.len().min(page.len())];
            page[..there.len()].copy_from_slice(there);
            page[there.len()..].fill(0);
        }
    }
}

/// An image with a random part of the writes to it.
fn after(image: &[u8], written: &[Change], rng: &mut Rng) -> Vec<u8> {
    let mut image = image.to_vec();
    // All, none, most, few: covers each kind of cut.
    let chance = [0.0, 0.1, 0.5, 0.9, 1.0][rng.usize(..5)];
    for change in written {
        if rng.f64() < chance {
            change.apply(&mut image);
        } else if rng.f64() < 0.2 {
            for sector in change.sectors() {
                if rng.bool() {
                    sector.apply(&mut image);
                }
            }
        }
    }
    image
}

impl Disk {
    pub(crate) fn holding(image: Vec<u8>) -> Self {
        let disk = Self::default();
        *disk.platter() = Platter { live: image.clone(), synced: image, ..Platter::default() };
        disk
    }

    /// Cuts the power after this many writes and syncs.
    pub(crate) fn cut_after(&self, changes: usize) {
        self.platter().left = Some(changes);
    }

    pub(crate) fn is_off(&self) -> bool {
        self.platter().left == Some(0)
    }

    /// Lets every write fail.
    pub(crate) fn fail(&self, kind: impl Into<Option<io::ErrorKind>>) {
        self.platter().fails = kind.into();
    }

    /// Makes the next sync fail as on Linux: reads see its data as written, or not, and no later sync puts the data on
    /// disk.
    pub(crate) fn lose_next_sync(&self, rng: Rng) {
        self.platter().loses = Some(rng);
    }

    pub(crate) fn syncs(&self) -> usize {
        self.platter().syncs
    }

    /// The disk after a power cut: everything synced, and a random part of the rest.
    pub(crate) fn after_the_cut(&self, rng: &mut Rng) -> Vec<u8> {
        let platter = self.platter();
        after(&platter.synced, &platter.unsynced, rng)
    }

    /// Blocks the next write, and with it all callers that wait for its commit.
    pub(crate) fn hold(&self) {
        self.platter().held = true;
    }

    /// Returns when a write waits; fails the test if none ever does.
    pub(crate) fn until_held(&self) {
        let (platter, wake) = &*self.0;
        let is_late = |platter: &mut Platter| !platter.waits;
        let waited = wake.wait_timeout_while(platter.lock().unwrap(), PATIENCE, is_late).unwrap();
        let nobody_came = waited.1.timed_out();
        drop(waited);
        if nobody_came {
            self.let_go();
            panic!("what was to be committed is not written");
        }
    }

    pub(crate) fn let_go(&self) {
        self.platter().held = false;
        self.0.1.notify_all();
    }

    fn platter(&self) -> std::sync::MutexGuard<'_, Platter> {
        self.0.0.lock().unwrap()
    }

    /// Changes something, unless the disk is held, full or off.
    fn change(&self, change: impl FnOnce(&mut Platter)) -> io::Result<()> {
        let (platter, wake) = &*self.0;
        let mut platter = platter.lock().unwrap();
        platter.waits = platter.held;
        wake.notify_all();
        let mut platter = wake.wait_while(platter, |platter| platter.held).unwrap();
        platter.waits = false;
        if let Some(kind) = platter.fails {
            return Err(kind.into());
        }
        match &mut platter.left {
            Some(0) => return Err(io::Error::other("the power was cut")),
            Some(left) => *left -= 1,
            None => {}
        }
        if platter.left != Some(0) {
            change(&mut platter);
            return Ok(());
        }
        Err(io::Error::other("the power was cut"))
    }

    fn write_change(&self, change: Change) -> io::Result<()> {
        self.change(|platter| {
            change.apply(&mut platter.live);
            platter.unsynced.push(change);
        })
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.platter().live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let platter = self.platter();
        let offset = usize::try_from(offset).unwrap();
        let there = platter.live.get(offset..offset + out.len());
        out.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.write_change(Change::Length(usize::try_from(length).unwrap()))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.platter();
        if let Some(rng) = platter.loses.take() {
            platter.lose(rng);
            return Err(io::Error::other("a block could not be written"));
        }
        drop(platter);
        self.change(|platter| {
            let Platter { synced, unsynced, .. } = platter;
            unsynced.drain(..).for_each(|change| change.apply(synced));
            platter.syncs += 1;
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (offset, data) = (usize::try_from(offset).unwrap(), data.to_vec());
        self.write_change(Change::Write { offset, data })
    }
}
