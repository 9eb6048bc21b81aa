//! Sets of event types. A random workflow has few of them, and a model asks for them all the time.

/// Event types by number, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Events(u128);

impl Events {
    pub(crate) fn contains(self, event: usize) -> bool {
        self.0 >> event & 1 == 1
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..128).filter(move |event| self.contains(*event))
    }
}

impl FromIterator<usize> for Events {
    fn from_iter<I: IntoIterator<Item = usize>>(events: I) -> Self {
        Self(events.into_iter().fold(0, |bits, event| bits | 1 << event))
    }
}
