//! Sets of event types. A plan has few of them, and a model uses such sets constantly.

/// The maximum number of event types, including those of gathers.
pub(super) const MOST: usize = 128;

/// Event types by number, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Events(u128);

impl Events {
    pub(super) fn contains(self, event: usize) -> bool {
        self.0 >> event & 1 == 1
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..MOST).filter(move |event| self.contains(*event))
    }
}

impl FromIterator<usize> for Events {
    fn from_iter<I: IntoIterator<Item = usize>>(events: I) -> Self {
        Self(events.into_iter().fold(0, |bits, event| bits | 1 << event))
    }
}
