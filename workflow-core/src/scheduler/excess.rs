//! Batches beyond a limit of the run (S76): found before anything of them has a position, so that no branch opens that
//! cannot have its execution.
//!
//! ```text
//!  60,000 items, 40,000 executions left       the run ends
//!  the same with `until(100)`                 100 have to settle: the batch enters
//!  the same, but a precondition decides       nobody knows how many run: the batch enters
//! ```
//!
//! A batch with a stop event leads to no execution. Otherwise the items that are certain to make a step run are counted,
//! and only where all of them together are more than are left: the common case is a sum.

use super::board::Board;
use super::{Emission, End};
use crate::error::Excess;
use crate::id::{ExecutionId, ScopeId};
use crate::spec::InputKind;
use crate::table::{EventIndex, StepIndex};

impl Board {
    /// The end of the run, if the batch of this execution is beyond one of its limits.
    pub(super) fn excess(
        &self,
        (execution, scope): (ExecutionId, ScopeId),
        emissions: &[Emission],
    ) -> Option<End> {
        // The common case. One event alone ends the run where it is numbered, with an error about the whole log.
        if let [Emission::Event(_)] = emissions {
            return None;
        }
        let (mut events, mut items) = (0, 0);
        for emission in emissions {
            match emission {
                Emission::Event(_) | Emission::Expiring(_) => events += 1,
                Emission::FanOut { items: more, .. } => {
                    events += u64::from(*more);
                    items += u64::from(*more);
                }
                Emission::Timer(_) => {}
            }
        }
        let limits = self.progress.limits;
        let excess = |amount, left| {
            let step = self.executions.get(execution).map(|execution| self.table.step(execution.step));
            let step = step.map_or_else(|| "".into(), |step| step.name.clone());
            Box::new(Excess { step, execution, amount, left })
        };
        let room = limits.events.saturating_sub(self.progress.last_seq().0);
        if events > room && events > 1 {
            return Some(End::TooManyEvents(excess(events, room)));
        }
        let left = limits.executions.saturating_sub(self.executions.count());
        if items <= left {
            return None;
        }
        let due = self.certain_executions(scope, emissions);
        (due > left).then(|| End::TooManyItems(excess(due, left)))
    }

    /// The executions to which the items of the batch lead in any case.
    #[cold]
    fn certain_executions(&self, scope: ScopeId, emissions: &[Emission]) -> u64 {
        let mut due = 0;
        for emission in emissions {
            match *emission {
                Emission::Event(event) | Emission::Expiring(event)
                    if self.table.event(event).roles.is_stop() =>
                {
                    return 0;
                }
                Emission::FanOut { fan_out, items, terms } if items > 0 => {
                    let item = self.table.fan_out(fan_out).item;
                    let event = self.table.event(item);
                    if event.roles.is_stop() {
                        return 0;
                    }
                    if event.takers.iter().any(|step| self.is_certain(*step, item, scope)) {
                        due += u64::from(terms.until.map_or(items, |enough| items.min(enough.get())));
                    }
                }
                _ => {}
            }
        }
        due
    }

    /// Whether an item makes the step run, in a branch of this scope: no precondition is asked, and what else the step
    /// requires is there. A fixed list may be full without the item, and a gather taken, so no step with one is certain.
    fn is_certain(&self, step: StepIndex, item: EventIndex, scope: ScopeId) -> bool {
        let (row, topics) = (self.table.step(step), &self.table.event(item).topics);
        let fires_once = |kind| matches!(kind, InputKind::Fixed(_) | InputKind::Gather);
        row.precondition.is_none()
            && !row.inputs.iter().any(|input| fires_once(input.kind))
            && row.inputs.iter().filter_map(|input| input.condition).all(|condition| {
                let own = u32::from(topics.contains(&condition.topic));
                self.scopes.visible(scope, condition.topic).saturating_add(own) >= condition.least
            })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::id::Seq;
    use crate::scheduler::fixtures::{self, event, step};
    use crate::scheduler::{FanOutTerms, Inputs, SchedulerLimits};
    use crate::table::FanOutIndex;

    /// A board with one execution of `open`.
    fn board(limits: SchedulerLimits) -> Board {
        let mut board = fixtures::board(limits);
        let _ = board.create((step(&board, "open"), ScopeId::ROOT, Seq(1)), Inputs::TRIGGER);
        board
    }

    fn executions(most: u64) -> Board {
        board(SchedulerLimits { executions: most, ..SchedulerLimits::default() })
    }

    fn fan_out(items: u32, until: u32) -> Emission {
        let terms = FanOutTerms { until: NonZeroU32::new(until), ..FanOutTerms::default() };
        Emission::FanOut { fan_out: FanOutIndex::at(0), items, terms }
    }

    fn excess_of(board: &Board, emissions: &[Emission]) -> Option<End> {
        board.excess((ExecutionId(1), ScopeId::ROOT), emissions)
    }

    fn excess(amount: u64, left: u64) -> Excess {
        Excess { step: "open".into(), execution: ExecutionId(1), amount, left }
    }

    fn too_many_items(amount: u64, left: u64) -> End {
        End::TooManyItems(Box::new(excess(amount, left)))
    }

    // S76
    #[test]
    fn items_beyond_the_executions_that_are_left_are_counted_over_the_whole_batch() {
        let board = executions(6);
        assert_eq!(excess_of(&board, &[fan_out(5, 0)]), None);
        assert_eq!(excess_of(&board, &[fan_out(6, 0)]), Some(too_many_items(6, 5)));
        let two = [fan_out(3, 0), fan_out(3, 0)];
        assert_eq!(excess_of(&board, &two), Some(too_many_items(6, 5)));
    }

    // S50, S76
    #[test]
    fn of_a_fan_out_with_enough_branches_those_count_that_have_to_settle() {
        let board = executions(6);
        assert_eq!(excess_of(&board, &[fan_out(100, 5)]), None);
        assert_eq!(excess_of(&board, &[fan_out(100, 6)]), Some(too_many_items(6, 5)));
        assert_eq!(excess_of(&board, &[fan_out(6, 100)]), Some(too_many_items(6, 5)));
    }

    // S28, S76
    #[test]
    fn a_batch_that_ends_the_run_needs_no_executions() {
        let board = executions(2);
        let done = event(&board, "Done");
        assert_eq!(excess_of(&board, &[fan_out(9, 0), Emission::Event(done)]), None);
    }

    // S76
    #[test]
    fn events_beyond_the_room_of_the_log_are_counted_before_any_is_numbered() {
        let board = board(SchedulerLimits { events: 3, ..SchedulerLimits::default() });
        let note = Emission::Event(event(&board, "Note"));
        assert_eq!(excess_of(&board, &[note.clone(), fan_out(2, 0)]), None);
        assert_eq!(
            excess_of(&board, &[note, fan_out(3, 0)]),
            Some(End::TooManyEvents(Box::new(excess(4, 3))))
        );
    }
}
