//! A list per row, for many rows: all lists lie in one allocation. And a set of rows that is emptied at no cost.

/// A list per row. The lists do not change.
#[derive(Debug)]
pub(crate) struct Lists<T> {
    /// The start of each list in `items`, and the end of the last one.
    starts: Vec<usize>,
    items: Vec<T>,
}

impl<T: Copy> Lists<T> {
    /// The lists of this many rows, from pairs of a row and an item. A list has its items in the order of the pairs.
    pub(crate) fn of(rows: usize, pairs: impl IntoIterator<Item = (usize, T)>) -> Self {
        let pairs: Vec<(usize, T)> = pairs.into_iter().collect();
        let mut starts = vec![0; rows + 1];
        for (row, _) in &pairs {
            starts[row + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        // Each pair lies at the next free place of its row.
        let mut next = starts.clone();
        let mut items: Vec<T> = pairs.iter().map(|(_, item)| *item).collect();
        for (row, item) in pairs {
            items[next[row]] = item;
            next[row] += 1;
        }
        Self { starts, items }
    }

    /// The list of the row.
    pub(crate) fn row(&self, row: usize) -> &[T] {
        &self.items[self.range(row)]
    }

    /// The places of the row's items among those of all rows.
    pub(crate) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    /// The number of all items.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }
}

/// A set of rows.
#[derive(Debug)]
pub(crate) struct Marks {
    /// The round in which the row was last marked. A row is in the set if that is the current one.
    rounds: Vec<usize>,
    round: usize,
}

impl Marks {
    /// The empty set among this many rows.
    pub(crate) fn of(rows: usize) -> Self {
        Self { rounds: vec![0; rows], round: 1 }
    }

    pub(crate) fn clear(&mut self) {
        self.round += 1;
    }

    /// Adds a row. Returns whether it is new.
    pub(crate) fn insert(&mut self, row: usize) -> bool {
        std::mem::replace(&mut self.rounds[row], self.round) != self.round
    }

    /// Adds all these rows.
    pub(crate) fn extend(&mut self, rows: impl IntoIterator<Item = usize>) {
        for row in rows {
            self.rounds[row] = self.round;
        }
    }

    pub(crate) fn has(&self, row: usize) -> bool {
        self.rounds[row] == self.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_its_items_in_the_order_of_the_pairs() {
        let lists = Lists::of(4, [(2, 'a'), (0, 'b'), (2, 'c'), (0, 'd'), (3, 'e')]);
        let rows: Vec<&[char]> = (0..4).map(|row| lists.row(row)).collect();
        assert_eq!(rows, [&['b', 'd'][..], &[], &['a', 'c'], &['e']]);
        assert_eq!((lists.range(2), lists.len()), (2..4, 5));
    }

    #[test]
    fn a_set_that_was_emptied_has_no_row() {
        let mut marks = Marks::of(2);
        assert!(marks.insert(1) && !marks.insert(1) && marks.has(1) && !marks.has(0));
        marks.clear();
        assert!(!marks.has(1) && marks.insert(1));
    }
}
