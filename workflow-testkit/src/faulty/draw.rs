//! Draws faults from a seed.

use super::{Fault, StoreCall};
use crate::random::Random;

pub(super) struct Draw {
    random: Random,
    pub(super) one_in: u64,
    /// The faults to draw from.
    pub(super) faults: Vec<Fault>,
}

impl Draw {
    pub(super) fn of(seed: u64) -> Self {
        let faults = [Fault::Refused, Fault::AnswerLost, Fault::Conflict, Fault::Late(1), Fault::Late(20)];
        Self { random: Random::of(seed), one_in: 10, faults: faults.to_vec() }
    }

    /// The fault of a call, if any.
    pub(super) fn fault(&mut self, call: StoreCall) -> Option<Fault> {
        // Both draws happen in any case, so that each call uses the same amount of the seed.
        let (chance, place) = (self.random.next(), self.random.next());
        let faults: Vec<Fault> = self.faults.iter().copied().filter(|fault| fault.is_of(call)).collect();
        // The bias is that of a modulus far below 2^64.
        if faults.is_empty() || !chance.is_multiple_of(self.one_in) {
            return None;
        }
        usize::try_from(place % (faults.len() as u64)).ok().and_then(|place| faults.get(place)).copied()
    }
}
