//! Faults that tests plant in a state.

use super::{Applied, RunState};
use crate::event::AnyEvent;
use crate::scheduler::Cause;
use crate::table::EventIndex;

impl RunState {
    /// Lets an event in before everything that follows from the batches so far is complete.
    pub(in crate::run) fn receive_early(&mut self, event: AnyEvent, index: EventIndex) -> Applied {
        match self.scheduler.receive_now(index) {
            Some(entered) => self.enter_one(Cause::Outside, entered, event),
            None => Applied::Refused,
        }
    }
}
