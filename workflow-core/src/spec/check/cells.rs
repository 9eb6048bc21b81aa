//! Sparse tables: which of many cells are set, in memory of the caller. The cells of a row, and those of a column, are
//! linked lists, so that a search visits only cells that are set.
//!
//! Invariant: cells are only added, so a number of a cell stays valid. There are more slots than cells, so a look-up
//! ends.
//!
//! Example: the cells (0, 2), (1, 2) and (1, 3) of a table of scopes and events. The list of column 2 is 1, 0; that of
//! row 1 is 2, 1. The caller stores where each list begins.

use super::rows::Rows;

/// No cell.
const NONE: u32 = u32::MAX;

/// A cell that is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    row: u32,
    column: u32,
    /// The next cell of the same row.
    in_row: u32,
    /// The next cell of the same column.
    in_column: u32,
    /// A number that belongs to the cell.
    note: u32,
}

impl Cell {
    pub(crate) const NONE: Self = Self { row: 0, column: 0, in_row: NONE, in_column: NONE, note: 0 };
}

/// A sparse table.
#[derive(Debug)]
pub(crate) struct Cells<'s> {
    rows: Rows<'s, Cell>,
    /// The number of a cell plus 1, by hash; 0 for an empty slot. A collision moves to the next slot.
    slots: &'s mut [u32],
}

impl<'s> Cells<'s> {
    /// Creates an empty table. The slots are 0, a power of two, and more than the cells.
    pub(crate) const fn in_memory(cells: &'s mut [Cell], slots: &'s mut [u32]) -> Self {
        Self { rows: Rows::in_memory(cells), slots }
    }

    /// The number of set cells.
    pub(crate) const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether a cell did not fit.
    pub(crate) const fn overflowed(&self) -> bool {
        self.rows.overflowed
    }

    pub(crate) const fn row(&self, cell: usize) -> usize {
        self.rows.get(cell).row as usize
    }

    pub(crate) const fn column(&self, cell: usize) -> usize {
        self.rows.get(cell).column as usize
    }

    /// The next cell of the same row.
    pub(crate) const fn next_in_row(&self, cell: usize) -> Option<usize> {
        number(self.rows.get(cell).in_row)
    }

    /// The next cell of the same column.
    pub(crate) const fn next_in_column(&self, cell: usize) -> Option<usize> {
        number(self.rows.get(cell).in_column)
    }

    pub(crate) const fn note(&self, cell: usize) -> usize {
        self.rows.get(cell).note as usize
    }

    pub(crate) const fn set_note(&mut self, cell: usize, note: usize) {
        self.rows.row(cell).note = short(note);
    }

    /// The number of the cell, if it is set.
    pub(crate) const fn find(&self, row: usize, column: usize) -> Option<usize> {
        let known = self.slots[self.slot(row, column)];
        if known == 0 { None } else { Some(known as usize - 1) }
    }

    pub(crate) const fn has(&self, row: usize, column: usize) -> bool {
        self.find(row, column).is_some()
    }

    /// Sets a cell that is not set. It becomes the first of its row and its column, in front of these cells.
    pub(crate) const fn add(
        &mut self,
        row: usize,
        column: usize,
        in_row: Option<usize>,
        in_column: Option<usize>,
    ) -> usize {
        let cell = Cell {
            row: short(row),
            column: short(column),
            in_row: optional(in_row),
            in_column: optional(in_column),
            note: 0,
        };
        let number = self.rows.push(cell);
        // A number that did not fit is 0 and belongs to another cell.
        if !self.rows.overflowed {
            let slot = self.slot(row, column);
            self.slots[slot] = short(number + 1);
        }
        number
    }

    /// The slot of the cell, or the empty one that it would get.
    const fn slot(&self, row: usize, column: usize) -> usize {
        let mixed = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ column as u64;
        let mixed = mixed.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 32;
        let mut slot = mixed as usize & (self.slots.len() - 1);
        loop {
            let known = self.slots[slot];
            if known == 0 {
                return slot;
            }
            let cell = self.rows.get(known as usize - 1);
            if cell.row as usize == row && cell.column as usize == column {
                return slot;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a table has fewer than 4 billion rows")]
const fn short(number: usize) -> u32 {
    number as u32
}

const fn optional(number: Option<usize>) -> u32 {
    match number {
        Some(number) => short(number),
        None => NONE,
    }
}

const fn number(optional: u32) -> Option<usize> {
    if optional == NONE { None } else { Some(optional as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_row_and_column_and_one_from_the_other() {
        let (mut memory, mut slots) = ([Cell::NONE; 4], [0; 8]);
        let mut cells = Cells::in_memory(&mut memory, &mut slots);
        let first = cells.add(0, 2, None, None);
        let second = cells.add(1, 2, None, Some(first));
        let third = cells.add(1, 3, Some(second), None);
        assert_eq!((cells.find(1, 2), cells.find(0, 3), cells.len()), (Some(second), None, 3));
        assert_eq!((cells.next_in_column(second), cells.next_in_row(third)), (Some(first), Some(second)));
        assert_eq!((cells.row(third), cells.column(third)), (1, 3));
    }

    #[test]
    fn a_cell_that_does_not_fit_is_noted_and_changes_no_other() {
        let (mut memory, mut slots) = ([Cell::NONE; 1], [0; 2]);
        let mut cells = Cells::in_memory(&mut memory, &mut slots);
        let first = cells.add(0, 2, None, None);
        cells.add(5, 7, None, None);
        assert!(cells.overflowed() && cells.find(0, 2) == Some(first) && !cells.has(5, 7));
    }
}
