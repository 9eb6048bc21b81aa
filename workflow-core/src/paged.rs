//! A vector that never moves what is in it: it grows by pages, each twice the size of the one before.

/// How many the first page holds.
const FIRST: usize = 4;

/// Values by their places, from 0.
#[derive(Debug)]
pub(crate) struct Paged<T> {
    /// The pages that are full.
    full: Vec<Vec<T>>,
    /// The page behind them. Few have another.
    last: Vec<T>,
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self { full: Vec::new(), last: Vec::new() }
    }
}

impl<T> Paged<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        before(self.full.len()) + self.last.len()
    }

    /// Amortised O(1).
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        // Whatever room the allocator has given it: places are reckoned by this.
        if self.last.len() == FIRST << self.full.len() {
            self.turn_page();
        }
        self.last.push(value);
    }

    #[cold]
    fn turn_page(&mut self) {
        let full = std::mem::take(&mut self.last);
        self.full.push(full);
        self.last.reserve_exact(FIRST << self.full.len());
    }

    /// O(1).
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        let (page, offset) = at(place);
        if page == self.full.len() { self.last.get(offset) } else { self.full.get(page)?.get(offset) }
    }

    /// O(1).
    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let (page, offset) = at(place);
        if page == self.full.len() {
            self.last.get_mut(offset)
        } else {
            self.full.get_mut(page)?.get_mut(offset)
        }
    }

    /// Keeps the first so many.
    pub(crate) fn truncate(&mut self, len: usize) {
        while before(self.full.len()) > len
            && let Some(page) = self.full.pop()
        {
            self.last = page;
        }
        self.last.truncate(len - before(self.full.len()));
    }

    /// All of them, without room for more.
    pub(crate) fn into_boxed(self) -> Box<[T]> {
        self.full.into_iter().flatten().chain(self.last).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.iter_from(0)
    }

    /// Those at this place and behind it.
    pub(crate) fn iter_from(&self, place: usize) -> impl Iterator<Item = &T> {
        let (page, offset) = at(place);
        let behind = |page: usize| self.full.get(page..).unwrap_or_default().iter().flatten();
        let first = self.full.get(page).and_then(|page| page.get(offset..)).unwrap_or_default();
        let last = if page < self.full.len() { 0 } else { place.saturating_sub(before(self.full.len())) };
        let last = self.last.get(last..).unwrap_or_default();
        first.iter().chain(behind(page.saturating_add(1))).chain(last)
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
