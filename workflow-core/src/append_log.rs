//! An append-only log with one writer, of which any number of readers share prefixes without locks or copies.
//!
//! The log is a chain of blocks, each twice the size of the one before. A reader has the first block and a
//! length:
//!
//! ```text
//!  Appender ─ head ─▶ [0 1 2 3] ─ next ─▶ [4 5 6 7 8 9 10 11] ─ next ─▶ [12 ...    ]
//!           └ tail ───────────────────────────────────────────────────▶   tail_len
//!  reader (head, 6)   └────── sees 0 to 5 ─────┘
//! ```
//!
//! Invariants: slots are filled in order and never change, so all readers with the same length see the same
//! entries. Only the [`Appender`] fills slots and adds blocks.

use std::sync::{Arc, OnceLock};

const FIRST_BLOCK: usize = 4;

/// One block of the chain, with access to the blocks behind it.
///
/// The first `n` entries are the same for every reader with length `n`.
#[derive(Debug)]
pub(crate) struct AppendLog<T> {
    slots: Box<[OnceLock<T>]>,
    next: OnceLock<Arc<AppendLog<T>>>,
}

/// The only writer of a log.
#[derive(Debug)]
pub(crate) struct Appender<T> {
    head: Arc<AppendLog<T>>,
    tail: Arc<AppendLog<T>>,
    tail_len: usize,
    len: usize,
}

impl<T> AppendLog<T> {
    fn block(size: usize) -> Arc<Self> {
        let slots = std::iter::repeat_with(OnceLock::new).take(size).collect();
        Arc::new(Self { slots, next: OnceLock::new() })
    }

    /// The entry at `index`; `None` if it is not written yet. O(log index).
    pub(crate) fn get(&self, mut index: usize) -> Option<&T> {
        let mut block = self;
        while index >= block.slots.len() {
            index -= block.slots.len();
            block = block.next.get()?;
        }
        block.slots[index].get()
    }

    /// Iterates over the first `len` entries.
    pub(crate) fn iter(&self, len: usize) -> Iter<'_, T> {
        Iter { block: self, index: 0, left: len }
    }
}

/// The iterator of [`AppendLog::iter`].
#[derive(Debug)]
pub(crate) struct Iter<'a, T> {
    block: &'a AppendLog<T>,
    index: usize,
    left: usize,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.left = self.left.checked_sub(1)?;
        if self.index == self.block.slots.len() {
            self.block = self.block.next.get()?;
            self.index = 0;
        }
        self.index += 1;
        self.block.slots[self.index - 1].get()
    }
}

impl<T> Default for Appender<T> {
    fn default() -> Self {
        let head = AppendLog::block(FIRST_BLOCK);
        Self { tail: Arc::clone(&head), head, tail_len: 0, len: 0 }
    }
}

impl<T> Appender<T> {
    /// Appends an entry. Amortised O(1).
    pub(crate) fn push(&mut self, entry: T) {
        if self.tail_len == self.tail.slots.len() {
            self.grow();
        }
        // The slot is empty: `tail_len` counts the slots that this writer filled, and there is no other
        // writer.
        let _ = self.tail.slots[self.tail_len].set(entry);
        self.tail_len += 1;
        self.len += 1;
    }

    fn grow(&mut self) {
        let block = AppendLog::block(self.tail.slots.len() * 2);
        let _ = self.tail.next.set(Arc::clone(&block));
        self.tail = block;
        self.tail_len = 0;
    }

    /// The log. Readers share it together with a length.
    pub(crate) fn log(&self) -> &Arc<AppendLog<T>> {
        &self.head
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_stays_the_same_while_the_log_grows() {
        let mut appender = Appender::default();
        for n in 0..10 {
            appender.push(n);
        }
        let log = Arc::clone(appender.log());
        for n in 10..1_000 {
            appender.push(n);
        }
        assert_eq!(appender.len(), 1_000);
        assert_eq!(log.iter(10).copied().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        assert_eq!(log.iter(1_000).copied().collect::<Vec<_>>(), (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn an_entry_is_found_by_its_index_and_nothing_beyond_the_end() {
        let mut appender = Appender::default();
        for n in 0..100 {
            appender.push(n);
        }
        assert!((0..100).all(|n| appender.log().get(n) == Some(&n)));
        assert_eq!(appender.log().get(100), None);
        assert_eq!(appender.log().get(10_000), None);
    }
}
