//! A vector that never moves its values: it grows by pages, each twice the size of the one before. The first
//! `IN_PLACE` values stand in the vector itself, so that a short one needs no allocation.
//!
//! ```text
//!  front [0 1 2 3]   full [[4 5 6 7] [8 ... 15]]   last [16 17 .. ]
//!                                                        └ begins = 16, room = 16
//! ```
//!
//! Invariants: only `last` grows. `full` has the pages before it, each with all its values. `room` is 0 until
//! the first page exists.

use arrayvec::ArrayVec;

/// The number of values in the first page.
const FIRST: usize = 4;

/// A vector whose first `IN_PLACE` values need no allocation.
#[derive(Debug)]
pub(crate) struct Paged<T, const IN_PLACE: usize = 4> {
    front: ArrayVec<T, IN_PLACE>,
    /// The full pages, in order.
    full: Vec<Vec<T>>,
    /// The page that grows. Only a long vector has other pages.
    last: Vec<T>,
    /// The index of the first value of `last`.
    begins: usize,
    /// The most values in `last`, whatever capacity the allocator gave it; 0 before the first page.
    room: usize,
}

impl<T, const IN_PLACE: usize> Default for Paged<T, IN_PLACE> {
    fn default() -> Self {
        Self { front: ArrayVec::new(), full: Vec::new(), last: Vec::new(), begins: IN_PLACE, room: 0 }
    }
}

impl<T, const IN_PLACE: usize> Paged<T, IN_PLACE> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        if self.room == 0 { self.front.len() } else { self.begins + self.last.len() }
    }

    /// Appends a value. Amortised O(1).
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "every event and every execution passes here")]
    pub(crate) fn push(&mut self, value: T) {
        if self.last.len() < self.room { self.last.push(value) } else { self.push_further(value) }
    }

    /// Appends where `last` has no room: in `front` or on a new page.
    #[inline(never)]
    fn push_further(&mut self, value: T) {
        let Err(full) = self.front.try_push(value) else { return };
        if self.room > 0 {
            self.full.push(std::mem::take(&mut self.last));
        }
        self.turn_to_last();
        self.last.reserve_exact(self.room);
        self.last.push(full.element());
    }

    /// Makes the page behind the full ones the growing one.
    fn turn_to_last(&mut self) {
        self.begins = IN_PLACE + before(self.full.len());
        self.room = FIRST << self.full.len();
    }

    /// The value at this index. O(1).
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        match place.checked_sub(self.begins) {
            Some(offset) => self.last.get(offset),
            None => self.get_before(place),
        }
    }

    fn get_before(&self, place: usize) -> Option<&T> {
        let Some(place) = place.checked_sub(IN_PLACE) else { return self.front.get(place) };
        let (page, offset) = at(place);
        self.full.get(page)?.get(offset)
    }

    /// The value at this index. O(1).
    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        match place.checked_sub(self.begins) {
            Some(offset) => self.last.get_mut(offset),
            None => self.get_mut_before(place),
        }
    }

    fn get_mut_before(&mut self, place: usize) -> Option<&mut T> {
        let Some(place) = place.checked_sub(IN_PLACE) else { return self.front.get_mut(place) };
        let (page, offset) = at(place);
        self.full.get_mut(page)?.get_mut(offset)
    }

    /// Drops all values behind the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.begins > len
            && let Some(page) = self.full.pop()
        {
            self.last = page;
            self.turn_to_last();
        }
        self.last.truncate(len.saturating_sub(self.begins));
        if len < self.front.len() {
            self.front.truncate(len);
            (self.last, self.room) = (Vec::new(), 0);
        }
    }

    /// Takes all values, without spare capacity.
    pub(crate) fn into_boxed(self) -> Box<[T]> {
        self.front.into_iter().chain(self.full.into_iter().flatten()).chain(self.last).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.iter_from(0)
    }

    /// Iterates from this index on.
    pub(crate) fn iter_from(&self, place: usize) -> impl Iterator<Item = &T> {
        let front = self.front.get(place..).unwrap_or_default();
        let last = self.last.get(place.saturating_sub(self.begins)..).unwrap_or_default();
        let (page, offset) = at(place.saturating_sub(IN_PLACE));
        let begun = self.full.get(page).and_then(|page| page.get(offset..)).unwrap_or_default();
        let behind = self.full.get(page.saturating_add(1)..).unwrap_or_default().iter().flatten();
        front.iter().chain(begun).chain(behind).chain(last)
    }
}

impl<T, const IN_PLACE: usize> FromIterator<T> for Paged<T, IN_PLACE> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut paged = Self::default();
        values.into_iter().for_each(|value| paged.push(value));
        paged
    }
}

/// The number of values in the first `pages` pages.
fn before(pages: usize) -> usize {
    (FIRST << pages) - FIRST
}

/// The page and the offset of an index behind `front`.
fn at(place: usize) -> (usize, usize) {
    let shifted = place.saturating_add(FIRST);
    let page = (shifted / FIRST).ilog2() as usize;
    (page, shifted - (FIRST << page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_at_their_indexes_and_nothing_is_behind_them() {
        let mut paged: Paged<usize> = Paged::default();
        for n in 0..1_000 {
            assert_eq!(paged.get(n), None);
            paged.push(n);
            assert_eq!((paged.len(), paged.get(n)), (n + 1, Some(&n)));
        }
        assert!((0..1_000).all(|n| paged.get_mut(n) == Some(&mut { n })));
        assert_eq!(paged.get(usize::MAX), None);
    }

    #[test]
    fn truncation_drops_the_values_behind() {
        for len in [0, 1, 3, 4, 5, 7, 8, 9, 11, 12, 15, 16, 17, 99, 100, 1_000] {
            let mut paged: Paged<usize> = (0..100).collect();
            paged.truncate(len);
            assert_eq!(paged.iter().copied().collect::<Vec<_>>(), (0..len.min(100)).collect::<Vec<_>>());
            paged.push(7);
            assert_eq!((paged.len(), paged.get(len.min(100))), (len.min(100) + 1, Some(&7)));
        }
    }

    #[test]
    fn values_come_in_order_from_any_index() {
        let mut paged: Paged<usize> = Paged::default();
        (0..100).for_each(|n| paged.push(n));
        assert_eq!(
            paged.iter().copied().collect::<Paged<usize>>().into_boxed()[..],
            (0..100).collect::<Vec<_>>()
        );
        for from in [0, 1, 3, 4, 5, 7, 8, 9, 11, 12, 15, 16, 99, 100, 1_000, usize::MAX] {
            let found: Vec<usize> = paged.iter_from(from).copied().collect();
            assert_eq!(found, (from..100).collect::<Vec<_>>(), "{from}");
        }
        assert_eq!(paged.iter().count(), 100);
    }

    #[test]
    fn values_never_move() {
        let mut paged: Paged<i32> = Paged::default();
        paged.push(0);
        let first: *const i32 = paged.get(0).unwrap();
        (1..1_000).for_each(|n| paged.push(n));
        assert!(std::ptr::eq(first, paged.get(0).unwrap()));
    }

    #[test]
    fn a_vector_without_values_in_place_works_alike() {
        let mut paged = Paged::<usize, 0>::default();
        for n in 0..100 {
            paged.push(n);
            assert_eq!((paged.len(), paged.get(n), paged.get(n + 1)), (n + 1, Some(&n), None));
        }
        for len in [50, 12, 4, 3, 0] {
            paged.truncate(len);
            assert_eq!((paged.len(), paged.iter().count(), paged.get(len)), (len, len, None));
        }
        paged.push(7);
        assert_eq!((paged.len(), paged.get(0)), (1, Some(&7)));
    }
}
