//! Lists in borrowed memory, since constant evaluation cannot allocate.
//!
//! Invariants: the rows from 0 to `len` are set. A row behind them is never read: `get` and `row` stay within
//! the memory, and callers within `len`.
//!
//! Example: a list with memory for 2 rows gets 3. The third `push` returns 0 and sets `overflowed`. The graph
//! looks at that flag before any rule is evaluated.

/// A list with a fixed capacity in borrowed memory.
#[derive(Debug)]
pub(crate) struct Rows<'s, T> {
    /// The memory of the caller, whose length is the capacity.
    memory: &'s mut [T],
    /// The number of rows.
    len: usize,
    /// Whether a row did not fit. Then the graph is incomplete, and no rule is evaluated on it.
    pub(crate) overflowed: bool,
}

impl<'s, T: Copy> Rows<'s, T> {
    /// Creates an empty list whose capacity is the length of the memory.
    pub(crate) const fn in_memory(memory: &'s mut [T]) -> Self {
        Self { memory, len: 0, overflowed: false }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The row with this number.
    pub(crate) const fn get(&self, at: usize) -> &T {
        &self.memory[at]
    }

    /// The same, to change it.
    pub(crate) const fn row(&mut self, at: usize) -> &mut T {
        &mut self.memory[at]
    }

    /// Appends a row and returns its number; 0 if the list is full.
    pub(crate) const fn push(&mut self, row: T) -> usize {
        if self.len == self.memory.len() {
            self.overflowed = true;
            return 0;
        }
        self.memory[self.len] = row;
        self.len += 1;
        self.len - 1
    }

    /// Takes the last row; `None` if the list is empty.
    pub(crate) const fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        Some(self.memory[self.len])
    }
}
