//! Matches gathers to fan-outs for the scheduler (S48), as the graph rules did.
//!
//! Example: `split(&Book) -> FanOut<Page>` and `read(&Page) -> Text`. The root can have `Book` and the end of
//! the fan-out. A branch can have `Page` and `Text` itself and sees `Book` too. So a `Gather<Text>` gets the
//! end of this fan-out as its event.

use super::graph::{BranchEvent, Branches};
use super::{DependencyTable, EventIndex};

impl DependencyTable {
    /// Gives gathers the ends of the fan-outs that they fit as events, and fan-outs the events of their branches.
    pub(super) fn match_gathers(&mut self, branches: &Branches) {
        for (fan_out, event) in &branches.own {
            let event = self.event_of_branch(*event);
            self.fan_outs[*fan_out].own.extend(event);
        }
        for ((step, input), fan_out) in &branches.gathers {
            let row = &mut self.fan_outs[*fan_out];
            let input = &mut self.steps[*step].inputs[*input];
            input.events.push(row.gathered);
            row.carried.extend(&input.gathered);
            for event in &input.gathered {
                self.events[event.get()].carried = true;
            }
        }
        for row in &mut self.fan_outs {
            for events in [&mut row.own, &mut row.carried] {
                events.sort_unstable();
                events.dedup();
            }
        }
    }

    fn event_of_branch(&self, event: BranchEvent) -> Option<EventIndex> {
        match event {
            BranchEvent::Declared(place) => Some(EventIndex::at(place)),
            BranchEvent::EndOf(fan_out) => Some(self.fan_outs[fan_out].gathered),
            BranchEvent::FailureOf(step) => self.steps[step].failed,
        }
    }
}

#[cfg(test)]
mod tests;
