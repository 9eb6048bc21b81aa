//! The upper bounds of forecasts: the most executions and events of a scope.
//!
//! A step runs at most once per trigger and scope, so the events it takes bound its executions. The
//! executions of the emitting steps bound these events in turn. In a circle of steps only `max_executions`
//! sets a bound.
//!
//! Example: a start event occurs once, so `plan(&Goal) -> Vec<Task>` runs once. The step may emit any number
//! of tasks, so `work(&Task) -> Done` has no bound per run, and its forecast is per `Task`. With
//! `max_executions` of 3, the bound is 3.

use std::collections::HashMap;

use super::certain::Without;
use crate::spec::InputKind;
use crate::table::{DependencyTable, EventIndex, FanOutIndex, InputRow, StepIndex, StepRow};

/// The root, or the branches of a fan-out.
pub(super) type ScopeKind = Option<FanOutIndex>;

/// An upper bound; `None` for no bound.
type Most = Option<u64>;

/// Computes bounds on demand and stores them.
pub(super) struct Counts<'a> {
    table: &'a DependencyTable,
    /// By event, whether the root can have it.
    root: Vec<bool>,
    /// By start event and event, whether any scope of such a run can have it.
    there: Vec<Vec<bool>>,
    /// The bounds computed so far. While a bound is being computed, the entry has the limit that the step
    /// itself declares.
    known: HashMap<(ScopeKind, StepIndex), Most>,
    /// The depth of nested computations.
    depth: usize,
}

/// The deepest nesting. Beyond it the answer is "no bound", since the table of a journal may have any size.
const DEEPEST: usize = 256;

impl<'a> Counts<'a> {
    pub(super) fn of(table: &'a DependencyTable) -> Self {
        let there = table.starts().map(|start| table.there(start, &Without::NOTHING)).collect();
        let root = vec![false; table.events.len()];
        let mut counts = Self { table, root, there, known: HashMap::new(), depth: 0 };
        let given = |event: &EventIndex| {
            let roles = table.event(*event).roles;
            roles.is_start() || roles.is_external()
        };
        let mut new: Vec<EventIndex> = counts.events().filter(given).collect();
        while let Some(event) = new.pop() {
            if !std::mem::replace(&mut counts.root[event.get()], true) {
                let takers = table.event(event).takers.iter();
                new.extend(takers.flat_map(|step| table.step(*step).emits_in_its_scope(table)));
                new.extend(table.event(event).reply);
            }
        }
        counts
    }

    fn events(&self) -> impl Iterator<Item = EventIndex> + use<> {
        (0..self.table.events.len()).map(EventIndex::at)
    }

    /// Whether this scope itself can have the event.
    fn has(&self, place: ScopeKind, event: EventIndex) -> bool {
        match place {
            None => self.root[event.get()],
            Some(fan_out) => self.table.fan_out(fan_out).own.contains(&event),
        }
    }

    /// The fan-outs in whose branches the step can run.
    pub(super) fn branches_running(&mut self, step: StepIndex) -> Vec<FanOutIndex> {
        let fan_outs = (0..self.table.fan_outs.len()).map(FanOutIndex::at);
        fan_outs.filter(|fan_out| self.runs(Some(*fan_out), step) != Some(0)).collect()
    }

    /// The most executions of the step in this scope.
    pub(super) fn runs(&mut self, place: ScopeKind, step: StepIndex) -> Most {
        if let Some(known) = self.known.get(&(place, step)) {
            return *known;
        }
        let row = self.table.step(step);
        let limit = row.policy.max_executions.map(u64::from);
        // In a circle of steps the inner question finds this entry and stops there.
        self.known.insert((place, step), limit);
        let can_run = self.there.iter().any(|there| self.table.is_ready(step, there));
        let most = if can_run && self.can_run(place, row) {
            self.deeper(|counts| counts.triggers(place, row))
        } else {
            Some(0)
        };
        let most = lower(most, limit);
        self.known.insert((place, step), most);
        most
    }

    /// Computes one bound for another, up to the greatest depth.
    fn deeper(&mut self, count: impl FnOnce(&mut Self) -> Most) -> Most {
        if self.depth == DEEPEST {
            return None;
        }
        self.depth += 1;
        let most = count(self);
        self.depth -= 1;
        most
    }

    /// Whether an event of this scope itself triggers the step, and the scope sees the rest.
    fn can_run(&self, place: ScopeKind, step: &StepRow) -> bool {
        let scopes = self.seen_from(place);
        let sees = |event: &EventIndex| scopes.iter().any(|scope| self.has(*scope, *event));
        let mut required = taken(step).filter(|input| !input.optional);
        taken(step).flat_map(|input| &input.events).any(|event| self.has(place, *event))
            && required.all(|input| input.events.iter().any(sees))
    }

    /// The scope and those around it.
    fn seen_from(&self, place: ScopeKind) -> Vec<ScopeKind> {
        let mut seen = vec![place];
        let mut at = 0;
        while at < seen.len() {
            if let Some(fan_out) = seen[at] {
                let opener = self.table.step(self.table.fan_out(fan_out).step);
                let around = (0..self.table.fan_outs.len()).map(|place| Some(FanOutIndex::at(place)));
                for around in around.chain([None]) {
                    let opens = taken(opener).flat_map(|input| &input.events);
                    if !seen.contains(&around) && opens.into_iter().any(|event| self.has(around, *event)) {
                        seen.push(around);
                    }
                }
            }
            at += 1;
        }
        seen
    }

    /// The most evaluations that lead to an execution: one per event and one per fixed list, without those at
    /// which a required input is still missing.
    fn triggers(&mut self, place: ScopeKind, step: &StepRow) -> Most {
        if place.is_none() && self.waits_for_ever(step) {
            return Some(0);
        }
        let scopes = self.seen_from(place);
        let mut triggers = Some(fixed(step));
        for event in retriggering(step) {
            for scope in &scopes {
                triggers = sum(triggers, self.count(*scope, event));
            }
        }
        triggers.map(|triggers| triggers.saturating_sub(unready(step)))
    }

    /// Whether the step requires a fixed list longer than the root's number of events. Branches are not
    /// examined: a branch can lie in others of the same fan-out and see the events of all of them.
    fn waits_for_ever(&mut self, step: &StepRow) -> bool {
        taken(step).filter(|input| !input.optional).any(|input| {
            let InputKind::Fixed(least) = input.kind else { return false };
            let counts = input.events.iter().map(|event| self.count(None, *event));
            counts.fold(Some(0), sum).is_some_and(|most| most < u64::from(least))
        })
    }

    /// The most events of the type that this scope itself can have.
    fn count(&mut self, place: ScopeKind, event: EventIndex) -> Most {
        if !self.has(place, event) {
            return Some(0);
        }
        let row = self.table.event(event);
        if place.is_none() && row.roles.is_external() {
            return None;
        }
        let given = match place {
            None => row.roles.is_start(),
            Some(fan_out) => self.table.fan_out(fan_out).item == event,
        };
        let replies = self
            .request_of(event)
            .map_or(Some(0), |request| self.deeper(|counts| counts.count(place, request)));
        sum(sum(Some(u64::from(given)), replies), self.emitted(place, event))
    }

    fn request_of(&self, reply: EventIndex) -> Option<EventIndex> {
        self.events().find(|event| self.table.event(*event).reply == Some(reply))
    }

    /// The most events of the type that steps of this scope emit in it, failures and ends of fan-outs
    /// included.
    fn emitted(&mut self, place: ScopeKind, event: EventIndex) -> Most {
        let failing = self.table.event(event).fails;
        // S60: an execution fails once, or each fan-out that it opened does.
        let fan_outs = |step: StepIndex| {
            let outputs = self.table.step(step).outputs.iter();
            outputs.filter(|output| output.fan_out.is_some()).count().max(1) as u64
        };
        let times = failing.map_or(1, fan_outs);
        let mut most = failing.map_or(Some(0), |step| self.runs(place, step)?.checked_mul(times));
        for step in (0..self.table.steps.len()).map(StepIndex::at) {
            let row = self.table.step(step);
            for output in &row.outputs {
                let emitted = output.fan_out.map_or(output.event, |of| self.table.fan_out(of).gathered);
                if emitted == event {
                    let runs = self.runs(place, step);
                    let each = if output.many && runs != Some(0) { None } else { runs };
                    most = sum(most, each);
                }
            }
        }
        most
    }

    /// The one unbounded event type that the step, in the root, runs once per event of; `None` if there is no
    /// such single type.
    pub(super) fn only_unbounded(&mut self, step: StepIndex) -> Option<EventIndex> {
        let row = self.table.step(step);
        let (mut bounded, mut unbounded) = (fixed(row), None);
        for event in retriggering(row) {
            match (self.count(None, event), unbounded) {
                (Some(count), _) => bounded = bounded.saturating_add(count),
                (None, None) => unbounded = Some(event),
                (None, Some(_)) => return None,
            }
        }
        unbounded.filter(|event| bounded <= unready(row) && self.table.event(*event).gathers.is_none())
    }
}

/// The inputs that trigger the step.
pub(super) fn taken(step: &StepRow) -> impl Iterator<Item = &InputRow> {
    step.inputs.iter().filter(|input| input.triggers())
}

/// The executions that fixed lists trigger: one when they are complete, and for an optional list one before.
fn fixed(step: &StepRow) -> u64 {
    let fixed = taken(step).filter(|input| matches!(input.kind, InputKind::Fixed(_)));
    fixed.map(|input| 1 + u64::from(input.optional)).sum()
}

/// The event types of which each event can run the step again.
fn retriggering(step: &StepRow) -> Vec<EventIndex> {
    let inputs = taken(step).filter(|input| !matches!(input.kind, InputKind::Fixed(_)));
    let mut events: Vec<EventIndex> = inputs.flat_map(|input| input.events.iter().copied()).collect();
    events.sort_unstable();
    events.dedup();
    events
}

/// The number of evaluations that find the step unready. Before its first run every other required input has
/// had an event. These events differ where the inputs have no type in common.
fn unready(step: &StepRow) -> u64 {
    let mut seen: Vec<EventIndex> = Vec::new();
    let mut distinct = 0_u64;
    for input in taken(step).filter(|input| !input.optional) {
        if input.events.iter().all(|event| !seen.contains(event)) {
            seen.extend(&input.events);
            distinct += 1;
        }
    }
    distinct.saturating_sub(1)
}

fn sum(one: Most, other: Most) -> Most {
    one?.checked_add(other?)
}

fn lower(one: Most, other: Most) -> Most {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
