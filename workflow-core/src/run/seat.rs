//! A run's place among the engine's running ones: steps and preconditions run only while it has one, and what enters the
//! log needs none. A run that nothing bounds has no seat at all.

use std::fmt;
use std::task::{Context, Poll};

use futures::future::BoxFuture;

use super::drive::Run;
use super::places::{Gate, Place, Places};
use crate::scheduler::Wanted;

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

    /// Leaves the place to another.
    pub(super) fn leave(&mut self) {
        (self.place, self.wait) = (None, None);
    }

    /// Where the run waits for a place, if it does.
    pub(super) fn gate(&self) -> Option<&Gate> {
        self.wait.as_ref().and_then(|_| self.places.gate())
    }
}

impl Run {
    /// Whether that takes a place, which the run has not got.
    pub(super) fn wants_place(&self, wanted: &Wanted) -> bool {
        Self::begins(wanted) && self.seat.as_ref().is_some_and(|seat| seat.place.is_none())
    }

    /// Takes a place, if there is one now; else the run is woken when it is its turn.
    pub(super) fn has_place(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(seat) = self.seat.as_mut().filter(|seat| seat.place.is_none()) else { return true };
        let wait = seat.wait.get_or_insert_with(|| Box::pin(seat.places.clone().take()));
        let Poll::Ready(place) = wait.as_mut().poll(cx) else {
            // Others have the time meanwhile.
            self.stop_counting_time();
            return false;
        };
        (seat.place, seat.wait) = (Some(place), None);
        self.count_time();
        true
    }

    /// A run that waits, or has ended, gives its place among the engine's running ones to another.
    pub(super) fn leave_place(&mut self) {
        if let Some(seat) = &mut self.seat {
            seat.leave();
        }
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("place", &self.place).finish_non_exhaustive()
    }
}
