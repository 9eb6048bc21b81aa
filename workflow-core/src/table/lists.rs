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
    ///
    /// The pairs are walked twice and not collected: for large tables, new memory is most of the cost.
    pub(crate) fn of<I>(rows: usize, pairs: I) -> Self
    where
        I: IntoIterator<Item = (usize, T), IntoIter: Clone>,
    {
        let pairs = pairs.into_iter();
        // First the length of each list, two places behind, so that the sums are the starts one place behind.
        let mut starts = vec![0; rows + 2];
        let mut any = None;
        for (row, item) in pairs.clone() {
            starts[row + 2] += 1;
            any = Some(item);
        }
        for row in 2..starts.len() {
            starts[row] += starts[row - 1];
        }
        let mut items = any.map_or_else(Vec::new, |any| vec![any; starts[rows + 1]]);
        // Each pair lies at the next free place of its row, so each start becomes the end of its row.
        for (row, item) in pairs {
            let next = &mut starts[row + 1];
            items[*next] = item;
            *next += 1;
        }
        starts.truncate(rows + 1);
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
