//! A run's place among the engine's running ones: steps and preconditions run only while it has one, and what enters the
//! log needs none. A run that nothing bounds has no seat at all.

use std::fmt;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::admission::Admit;
use super::places::{Gate, Place, Places};

pub(super) struct Seat {
    places: Places,
    place: Option<Place>,
    /// The wait for one.
    wait: Option<BoxFuture<'static, Place>>,
}

impl Seat {
    pub(super) fn new(places: Places, place: Option<Place>) -> Box<Self> {
        Box::new(Self { places, place, wait: None })
    }

    /// Whether the run has its place.
    pub(super) fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// Leaves the place to another.
    pub(super) fn give_up_permit(&mut self) {
        (self.place, self.wait) = (None, None);
    }

    /// Takes a place, unless the run has one; else the run is woken when it is its turn.
    pub(super) fn admit(&mut self, cx: &mut Context<'_>) -> Admit {
        if self.place.is_some() {
            return Admit::Now;
        }
        let wait = self.wait.get_or_insert_with(|| Box::pin(self.places.clone().take()));
        let Poll::Ready(place) = wait.as_mut().poll(cx) else { return Admit::Waits };
        (self.place, self.wait) = (Some(place), None);
        Admit::Took
    }

    /// Where the run waits for a place, if it does.
    pub(super) fn gate(&self) -> Option<&Gate> {
        self.wait.as_ref().and_then(|_| self.places.gate())
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("place", &self.place).finish_non_exhaustive()
    }
}
