//! A file that stays unchanged, whatever is done with the database in it. Writes of redb, which repairs an unclosed
//! file, stay in memory. The file is locked for reading.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

/// The size of a block in memory.
const BLOCK: usize = 4096;

/// The size of a block, as an offset.
const BLOCK_BYTES: u64 = BLOCK as u64;

/// A file for reading, under blocks in memory that redb has written.
#[derive(Debug)]
pub(crate) struct Overlay {
    file: FileBackend,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    length: u64,
    /// Up to here, unwritten blocks come from the file.
    in_file: u64,
    /// The written blocks, by number.
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl Overlay {
    pub(crate) fn new(file: FileBackend) -> io::Result<Self> {
        let length = file.len()?;
        Ok(Self { file, state: Mutex::new(State { length, in_file: length, blocks: BTreeMap::new() }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a range of the file, with zeros behind its end.
    fn read_file(&self, in_file: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = usize::try_from(in_file.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
        let (there, rest) = out.split_at_mut(there);
        rest.fill(0);
        if there.is_empty() { Ok(()) } else { self.file.read(offset, there) }
    }
}

/// The blocks of a range: the number of each, the offset of the range in it, and the part of the range.
fn blocks_of(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset + done as u64;
        let within = usize::try_from(at % BLOCK_BYTES).unwrap_or_default();
        let part = done..length.min(done + BLOCK - within);
        done = part.end;
        Some((at / BLOCK_BYTES, within, part))
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > state.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_file(state.in_file, offset, out)?;
        if state.blocks.is_empty() {
            return Ok(());
        }
        for (number, within, part) in blocks_of(offset, out.len()) {
            if let Some(block) = state.blocks.get(&number) {
                let length = part.len();
                out[part].copy_from_slice(&block[within..within + length]);
            }
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.state();
        if length < state.length {
            state.in_file = state.in_file.min(length);
            state.blocks.split_off(&length.div_ceil(BLOCK_BYTES));
            // A range that is cut off reads as zeros if the file grows again.
            let within = usize::try_from(length % BLOCK_BYTES).unwrap_or_default();
            if let Some(last) = state.blocks.get_mut(&(length / BLOCK_BYTES)) {
                last[within..].fill(0);
            }
        }
        state.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        for (number, within, part) in blocks_of(offset, data.len()) {
            if !state.blocks.contains_key(&number) {
                let mut block = vec![0; BLOCK].into_boxed_slice();
                self.read_file(state.in_file, number * BLOCK_BYTES, &mut block)?;
                state.blocks.insert(number, block);
            }
            if let Some(block) = state.blocks.get_mut(&number) {
                block[within..within + part.len()].copy_from_slice(&data[part]);
            }
        }
        state.length = state.length.max(offset + data.len() as u64);
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    // A writer locks the same ranges exclusively, so any of these locks keeps it out.

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
