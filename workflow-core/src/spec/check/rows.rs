//! Lists in borrowed memory: constant evaluation has no other.

/// Rows in borrowed memory.
#[derive(Debug)]
pub(crate) struct Rows<'s, T> {
    memory: &'s mut [T],
    len: usize,
    /// Whether there was no room for a row. Nothing can be said of a graph that is incomplete.
    pub(crate) overflowed: bool,
}

impl<'s, T: Copy> Rows<'s, T> {
    /// No rows yet, with room for as many as the memory holds.
    pub(crate) const fn in_memory(memory: &'s mut [T]) -> Self {
        Self { memory, len: 0, overflowed: false }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn get(&self, at: usize) -> &T {
        &self.memory[at]
    }

    pub(crate) const fn row(&mut self, at: usize) -> &mut T {
        &mut self.memory[at]
    }

    /// Adds a row and says where.
    pub(crate) const fn push(&mut self, row: T) -> usize {
        if self.len == self.memory.len() {
            self.overflowed = true;
            return 0;
        }
        self.memory[self.len] = row;
        self.len += 1;
        self.len - 1
    }

    pub(crate) const fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        Some(self.memory[self.len])
    }
}
