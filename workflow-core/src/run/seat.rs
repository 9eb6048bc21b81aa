//! The permit of one run among the engine's running ones. Steps and preconditions need it; events enter the
//! log without it. A run without limits has none.

use std::fmt;
use std::task::{Context, Poll};

use futures::future::BoxFuture;

use super::admission::Admit;
use super::places::{Gate, Place, Places};

/// The permit of a run, or its wait for one.
pub(super) struct Seat {
    places: Places,
    place: Option<Place>,
    /// The wait for a permit, while the run is queued.
    wait: Option<BoxFuture<'static, Place>>,
}

impl Seat {
    pub(super) fn new(places: Places, place: Option<Place>) -> Box<Self> {
        Box::new(Self { places, place, wait: None })
    }

    /// Whether the run has its permit.
    pub(super) fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// Gives the permit to another run, and stops waiting for one.
    pub(super) fn give_up_permit(&mut self) {
        (self.place, self.wait) = (None, None);
    }

    /// Takes a permit, unless the run has one. The waker wakes the run when it is its turn.
    pub(super) fn admit(&mut self, cx: &mut Context<'_>) -> Admit {
        if self.place.is_some() {
            return Admit::Now;
        }
        let wait = self.wait.get_or_insert_with(|| Box::pin(self.places.clone().take()));
        let Poll::Ready(place) = wait.as_mut().poll(cx) else { return Admit::Waits };
        (self.place, self.wait) = (Some(place), None);
        Admit::Took
    }

    /// The limit at which the run waits, if it does.
    pub(super) fn gate(&self) -> Option<&Gate> {
        self.wait.as_ref().and_then(|_| self.places.gate())
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("place", &self.place).finish_non_exhaustive()
    }
}
