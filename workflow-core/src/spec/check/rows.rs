//! Lists in borrowed memory, since constant evaluation cannot allocate.

/// A list with a fixed capacity in borrowed memory.
#[derive(Debug)]
pub(crate) struct Rows<'s, T> {
    memory: &'s mut [T],
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

    pub(crate) const fn get(&self, at: usize) -> &T {
        &self.memory[at]
    }

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

    pub(crate) const fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        Some(self.memory[self.len])
    }
}
