//! A vector that never moves what is in it: it grows by pages, each twice the size of the one before.

use smallvec::SmallVec;

/// How many the first page holds.
const FIRST: usize = 4;

/// Values by their places, from 0.
#[derive(Debug)]
pub(crate) struct Paged<T> {
    /// Few grow beyond the first.
    pages: SmallVec<[Vec<T>; 1]>,
    /// How many more fit into the last page.
    room: usize,
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self { pages: SmallVec::new(), room: 0 }
    }
}

impl<T> Paged<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        before(self.pages.len()) - self.room
    }

    /// Amortised O(1).
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        match self.pages.last_mut() {
            Some(page) if self.room > 0 => {
                self.room -= 1;
                page.push(value);
            }
            _ => self.push_page(value),
        }
    }

    #[cold]
    fn push_page(&mut self, value: T) {
        // Whatever room the allocator gives it: places are reckoned by this.
        let full = FIRST << self.pages.len();
        let mut page = Vec::new();
        page.reserve_exact(full);
        page.push(value);
        self.pages.push(page);
        self.room = full - 1;
    }

    /// O(1).
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        let (page, offset) = at(place);
        self.pages.get(page)?.get(offset)
    }

    /// O(1).
    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let (page, offset) = at(place);
        self.pages.get_mut(page)?.get_mut(offset)
    }

    /// Keeps the first so many.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.len() > len {
            let more = self.len() - len;
            let Some(page) = self.pages.last_mut() else { return };
            if page.len() <= more {
                self.pages.pop();
                self.room = 0;
            } else {
                page.truncate(page.len() - more);
                self.room += more;
            }
        }
    }

    /// All of them, without room for more.
    pub(crate) fn into_boxed(self) -> Box<[T]> {
        self.pages.into_iter().flatten().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.iter_from(0)
    }

    /// Those at this place and behind it.
    pub(crate) fn iter_from(&self, place: usize) -> impl Iterator<Item = &T> {
        let (page, offset) = at(place);
        let first = self.pages.get(page).and_then(|page| page.get(offset..)).unwrap_or_default();
        first.iter().chain(self.pages.iter().skip(page + 1).flatten())
    }
}

impl<T> FromIterator<T> for Paged<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut paged = Self::default();
        values.into_iter().for_each(|value| paged.push(value));
        paged
    }
}

/// How many so many pages hold: `FIRST` less than the next one.
#[inline]
fn before(pages: usize) -> usize {
    (FIRST << pages) - FIRST
}

/// The page of a place, and the place in it.
#[inline]
fn at(place: usize) -> (usize, usize) {
    let shifted = place.saturating_add(FIRST);
    let page = (shifted / FIRST).ilog2() as usize;
    (page, shifted - (FIRST << page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_at_their_places_and_nothing_is_behind_them() {
        let mut paged = Paged::default();
        for n in 0..1_000 {
            assert_eq!(paged.get(n), None);
            paged.push(n);
            assert_eq!((paged.len(), paged.get(n)), (n + 1, Some(&n)));
        }
        assert!((0..1_000).all(|n| paged.get_mut(n) == Some(&mut { n })));
        assert_eq!(paged.get(usize::MAX), None);
    }

    #[test]
    fn the_first_so_many_stay() {
        for len in [0, 1, 4, 5, 11, 12, 99, 100, 1_000] {
            let mut paged: Paged<usize> = (0..100).collect();
            paged.truncate(len);
            assert_eq!(paged.iter().copied().collect::<Vec<_>>(), (0..len.min(100)).collect::<Vec<_>>());
            paged.push(7);
            assert_eq!((paged.len(), paged.get(len.min(100))), (len.min(100) + 1, Some(&7)));
        }
    }

    #[test]
    fn they_are_told_in_order_from_any_place() {
        let mut paged = Paged::default();
        (0..100).for_each(|n| paged.push(n));
        assert_eq!(
            paged.iter().copied().collect::<Paged<usize>>().into_boxed()[..],
            (0..100).collect::<Vec<_>>()
        );
        for from in [0, 1, 3, 4, 5, 11, 12, 99, 100, 1_000] {
            let told: Vec<usize> = paged.iter_from(from).copied().collect();
            assert_eq!(told, (from..100).collect::<Vec<_>>(), "{from}");
        }
        assert_eq!(paged.iter().count(), 100);
    }

    #[test]
    fn what_is_in_it_stays_where_it_is() {
        let mut paged = Paged::default();
        paged.push(0);
        let first: *const i32 = paged.get(0).unwrap();
        (1..1_000).for_each(|n| paged.push(n));
        assert!(std::ptr::eq(first, paged.get(0).unwrap()));
    }
}
