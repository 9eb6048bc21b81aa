//! A disk in memory whose power can be cut: what no sync has covered is lost, all of it or any part. It can also be held,
//! to decide what waits for a commit, and be full.

use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use fastrand::Rng;
use redb::StorageBackend;

/// What a disk writes at once; a write may be torn between two.
const SECTOR: usize = 512;

/// What the system keeps in memory of a file, or does not.
const PAGE: usize = 4096;

/// How long a test waits for a write that has to come: only one that never comes, not a machine that is busy, takes so
/// long.
const PATIENCE: Duration = Duration::from_mins(10);

/// Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Arc<(Mutex<Platter>, Condvar)>);

#[derive(Debug, Default)]
struct Platter {
    /// What is read.
    live: Vec<u8>,
    /// What is there whatever happens.
    synced: Vec<u8>,
    /// What was written since the last sync, in its order.
    unsynced: Vec<Change>,
    syncs: usize,
    /// So many writes and syncs before the power goes; none if it does not.
    left: Option<usize>,
    fails: Option<io::ErrorKind>,
    /// What the next sync loses, if it fails.
    loses: Option<Rng>,
    held: bool,
    /// Whether somebody waits for it to be let go.
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
                // Written behind an end that was never moved there: a disk has it, a file does not.
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
    /// Puts any part of what was not synced on disk, and counts the rest as if it were there.
    fn lose(&mut self, mut rng: Rng) {
        let written = mem::take(&mut self.unsynced);
        self.synced = after(&self.synced, &written, &mut rng);
        // What the system does not need in memory is read from the disk.
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

/// An image with any part of what was written to it.
fn after(image: &[u8], written: &[Change], rng: &mut Rng) -> Vec<u8> {
    let mut image = image.to_vec();
    // All, none, most, few: each kind of cut is met.
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

    /// Cuts the power after so many writes and syncs.
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

    /// Lets the next sync fail as one of Linux does: what it was to put on disk is read as it was written, or not any
    /// more, and no later sync puts it on disk.
    pub(crate) fn lose_next_sync(&self, rng: Rng) {
        self.platter().loses = Some(rng);
    }

    pub(crate) fn syncs(&self) -> usize {
        self.platter().syncs
    }

    /// What is on the disk after the power was cut: what was synced, and any part of the rest.
    pub(crate) fn after_the_cut(&self, rng: &mut Rng) -> Vec<u8> {
        let platter = self.platter();
        after(&platter.synced, &platter.unsynced, rng)
    }

    /// Lets the next write wait. Who waits for a commit then waits with it.
    pub(crate) fn hold(&self) {
        self.platter().held = true;
    }

    /// Returns when somebody waits to write. That nobody ever does fails the test.
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
