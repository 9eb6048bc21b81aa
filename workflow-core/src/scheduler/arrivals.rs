//! Arrivals: the events that can still come when nothing is left to do. These events decide whether a run
//! waits or is stalled (S30).
//!
//! Three sources can still deliver events: external events, replies to open requests, and fan-outs that wait
//! for such replies in their branches. Pending timers are no concern of this module: a run with one waits.
//!
//! The answer errs on one side. A sender may send anything as often as it wants, and a precondition may
//! answer yes. So the answer is never "stalled" for a run that could continue.
//!
//! Example: a step takes a `FixedList` of two notes, which are external, and has executed with them. A third
//! note cannot make it run again, so the run is stalled if nothing else can come.
//!
//! Invariant: the answer is a function of the board and the open groups, and changes neither. So the
//! scheduler may ask at every quiescence, and the run may ask for its listing at any time.
//!
//! ```text
//!  can_progress      a stop event can be sent?          the run can end
//!                    an arrival in its own scope?       mostly decides
//!                    an arrival in a branch below?      only where branches wait
//!                    a branch that is not open yet?     only with `concurrency`
//!                    none of these                      stalled
//! ```

use super::board::Board;
use super::group::{Group, Groups};
use super::{Entry, Scheduler};
use crate::id::{ScopeId, Seq};
use crate::spec::InputKind;
use crate::table::{EventIndex, InputRow, StepIndex};

/// An event that can come, and the scope that it would belong to.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    /// The root for an external event, the scope of the request for a reply, and the opener for a gather.
    scope: ScopeId,
    event: EventIndex,
}

/// Examines what can come to a run in which nothing is left to do.
#[derive(Clone, Copy)]
pub(super) struct Arrivals<'a> {
    /// Has the open requests, the executed combinations and the visible events.
    board: &'a Board,
    /// Each open group has a branch that waits, so its gather can still come.
    groups: &'a Groups,
}

impl<'a> Arrivals<'a> {
    pub(super) fn of(scheduler: &'a Scheduler) -> Self {
        Self { board: &scheduler.board, groups: &scheduler.groups }
    }

    /// Whether an event can come that makes a step run or ends the run. Mostly the first candidate does. If
    /// none does, the cost is one look per event that can come, step that takes it, and open branch that sees
    /// it. The cheap questions come first.
    pub(super) fn can_progress(self) -> bool {
        self.end_the_run()
            || self.all().any(|arrival| self.trigger(arrival, arrival.scope))
            || self.all().any(|arrival| self.trigger_below(arrival))
            || self.open_branches_that_run()
    }

    /// The external events that would make a step run or end the run. With open branches, all external events
    /// that any step takes. O(external events · steps that take them).
    pub(super) fn awaited_events(self) -> Vec<EventIndex> {
        let is_awaited = |event: &EventIndex| {
            let (row, arrival) =
                (self.board.table.event(*event), Arrival { scope: ScopeId::ROOT, event: *event });
            // With open branches the exact answer would cost a look at each of them. A listing may name too
            // many events, and must not leave one out.
            row.roles.is_stop()
                || (!self.groups.are_none() && !row.takers.is_empty())
                || self.trigger(arrival, ScopeId::ROOT)
        };
        self.external().filter(is_awaited).collect()
    }

    /// The external event types of the table.
    fn external(&self) -> impl Iterator<Item = EventIndex> + use<'a> {
        let events = self.board.table.events.iter().enumerate();
        events.filter(|(_, row)| row.roles.is_external()).map(|(i, _)| EventIndex::at(i))
    }

    /// Whether some external event is a stop event, which can always end the run.
    fn end_the_run(&self) -> bool {
        self.external().any(|event| self.board.table.event(event).roles.is_stop())
    }

    /// Everything that can come: external events, replies to open requests, and gathers of fan-outs whose
    /// branches wait for such replies.
    fn all(&self) -> impl Iterator<Item = Arrival> + use<'a> {
        let Self { board: Board { table, awaited, .. }, groups } = *self;
        let external = self.external().map(|event| Arrival { scope: ScopeId::ROOT, event });
        let replies = awaited.requests().map(|(_, open)| Arrival { scope: open.scope, event: open.reply });
        let gathered = |group: &Group| table.fan_out(group.fan_out).gathered;
        let gathers = groups.iter().map(move |group| Arrival { scope: group.opener, event: gathered(group) });
        external.chain(replies).chain(gathers)
    }

    /// Whether one of these events can still come in sight of the scope.
    /// Not only the event itself counts, but every scope from which the given scope could see it.
    fn come(&self, scope: ScopeId, events: &[EventIndex]) -> bool {
        let Self { board: Board { table, awaited, scopes, .. }, groups } = *self;
        let mut seen = scopes.chain(scope).map(|(id, _)| id);
        seen.any(|scope| {
            events.iter().any(|event| {
                let row = table.event(*event);
                scope == ScopeId::ROOT && row.roles.is_external()
                    || row.gathers.is_some_and(|fan_out| groups.are_open(scope, fan_out))
                    || row.roles.is_reply() && awaited.awaits(scope, *event)
            })
        })
    }

    /// Whether the event would make a step run in this scope, which is the scope of the event or a branch below.
    fn trigger(&self, arrival: Arrival, scope: ScopeId) -> bool {
        let takers = &self.board.table.event(arrival.event).takers;
        takers.iter().any(|step| self.make_run(*step, arrival, scope))
    }

    /// Whether the event would make a step run in an open branch below its scope (S46).
    fn trigger_below(&self, arrival: Arrival) -> bool {
        let mut below = Vec::new();
        if !self.board.table.event(arrival.event).takers.is_empty() {
            self.board.scopes.below(arrival.scope, &mut below);
        }
        below.into_iter().any(|scope| self.trigger(arrival, scope))
    }

    /// Whether a step would run in a branch that opens once others are settled (S50).
    /// Such a branch opens only when another one settles, which a reply can cause even if no step takes the
    /// reply.
    fn open_branches_that_run(&self) -> bool {
        let mut groups = self.groups.iter().filter(|group| group.has_unopened());
        groups.any(|group| {
            let item = self.board.table.fan_out(group.fan_out).item;
            let takers = &self.board.table.event(item).takers;
            takers.iter().any(|step| self.make_run_in_new_branch(*step, item, group.opener))
        })
    }

    /// Whether the item makes the step run in a branch that is opened below `opener`.
    fn make_run_in_new_branch(&self, step: StepIndex, item: EventIndex, opener: ScopeId) -> bool {
        let inputs = &self.board.table.step(step).inputs;
        // A fixed list is new in a new branch, whose item may be older than what fills the list further out.
        inputs.iter().all(|input| self.supply(input, item, opener))
            && inputs.iter().any(|input| input.triggers() && input.events.contains(&item))
    }

    /// Whether the event would make the step run in the scope: the limit allows it, every input is there or
    /// can come, and the combination is new, or was never executed.
    fn make_run(&self, step: StepIndex, arrival: Arrival, scope: ScopeId) -> bool {
        let row = self.board.table.step(step);
        let Some(own) = self.board.scopes.get(scope) else { return false };
        let may_run = row.policy.max_executions.is_none_or(|most| own.executions(step) < most);
        // A step that nothing new is bound to runs only for a combination that was left over. Any other has a
        // new combination, and in a branch the combination must include an event of that branch (S46).
        let triggering = || row.inputs.iter().filter(|input| input.triggers());
        may_run
            && row.inputs.iter().all(|input| self.supply(input, arrival.event, scope))
            && (!row.joins_gather || self.supply_gathers(step, arrival.event, scope))
            && if triggering().any(|input| self.is_handed(input, arrival.event, scope)) {
                // A combination with a new event was not executed yet. An event of this very scope is its own.
                arrival.scope == scope || triggering().any(|input| self.binds_own(input, arrival, scope))
            } else {
                self.is_left_over(step, arrival, scope)
            }
    }

    /// Whether the input has its events when this one comes, or can still get them.
    fn supply(&self, input: &InputRow, event: EventIndex, scope: ScopeId) -> bool {
        let Some(condition) = input.condition else { return true };
        input.events.contains(&event)
            || self.board.scopes.visible(scope, condition.topic) >= condition.least
            || self.come(scope, &input.events)
    }

    /// S48: whether each required gather of the step is one that it did not take in this scope, or can still come.
    fn supply_gathers(&self, step: StepIndex, event: EventIndex, scope: ScopeId) -> bool {
        let Some(own) = self.board.scopes.get(scope) else { return false };
        let mut gathers = self.board.table.step(step).inputs.iter().filter(|input| {
            input.kind == InputKind::Gather && !input.optional && !input.events.contains(&event)
        });
        gathers.all(|input| {
            let latest = input.topic.and_then(|topic| self.board.scopes.latest(scope, topic));
            latest.is_none_or(|gather| own.taker_of(step, gather).is_none())
                || self.come(scope, &input.events)
        })
    }

    /// Whether the event changes what the input is bound to: a full fixed list ignores it (S17).
    fn is_handed(&self, input: &InputRow, event: EventIndex, scope: ScopeId) -> bool {
        let Some(topic) = input.topic.filter(|_| input.events.contains(&event)) else { return false };
        match input.kind {
            InputKind::Fixed(count) => self.board.scopes.visible(scope, topic) < count,
            _ => true,
        }
    }

    /// S46: whether the input binds an event of the branch beside an arrival of an outer scope.
    fn binds_own(&self, input: &InputRow, arrival: Arrival, scope: ScopeId) -> bool {
        let own = self.board.scopes.get(scope).zip(input.topic);
        let has_own = own.is_some_and(|(own, topic)| own.count_of(topic) > 0);
        let is_list = matches!(input.kind, InputKind::List | InputKind::Fixed(_));
        has_own && (is_list || !input.events.contains(&arrival.event))
    }

    /// Whether the combination is old and was never executed (S20), because its precondition said no.
    fn is_left_over(&self, step: StepIndex, arrival: Arrival, scope: ScopeId) -> bool {
        // No parameter is bound to this position: only full fixed lists take the event, and they ignore it.
        let trigger = Entry { seq: Seq(u64::MAX), scope: arrival.scope, event: arrival.event };
        let binder = self.board.binder(trigger, scope);
        let binding = binder.bind(step);
        let is_new = || self.board.obstacle(step, scope, &binding).is_none();
        binder.is_ready(step) && binder.binds_own(step, &binding) && is_new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::SchedulerLimits;
    use crate::scheduler::fixtures::{self, entry, step};

    fn counted(board: &mut Board, name: &str) -> Entry {
        let entry = entry(board, name);
        assert!(board.count(entry));
        entry
    }

    // S30
    #[test]
    fn an_external_event_is_awaited_as_long_as_it_would_make_a_step_run() {
        let (mut board, groups) = (fixtures::board(SchedulerLimits::default()), Groups::default());
        let (note, pair) = (fixtures::event(&board, "Note"), step(&board, "pair"));
        assert_eq!(Arrivals { board: &board, groups: &groups }.awaited_events(), [note]);

        counted(&mut board, "Note");
        let last = counted(&mut board, "Note");
        let binding = board.binder(last, ScopeId::ROOT).bind(pair);
        board.create_with(binding, (pair, ScopeId::ROOT, last.seq));
        let arrivals = Arrivals { board: &board, groups: &groups };
        assert!(arrivals.awaited_events().is_empty() && !arrivals.can_progress(), "the list is full");

        counted(&mut board, "Item");
        let arrivals = Arrivals { board: &board, groups: &groups };
        assert!(arrivals.can_progress(), "the item is packed with the next note");
        assert_eq!(arrivals.awaited_events(), [note]);
    }
}
