//! The most executions and events that a scope can have.
//!
//! A step runs at most once per trigger and scope, so its executions are bounded by the events it takes, and
//! those by the executions of the steps that emit them. Where that goes round in a circle, only
//! `max_executions` sets a bound.

use std::collections::HashMap;

use super::certain::Without;
use crate::spec::InputKind;
use crate::table::{DependencyTable, EventIndex, FanOutIndex, InputRow, StepIndex, StepRow};

/// The root, or a branch of a fan-out.
pub(super) type Place = Option<FanOutIndex>;

/// At most so many; `None` if there is no bound.
type Most = Option<u64>;

pub(super) struct Counts<'a> {
    table: &'a DependencyTable,
    /// The events that the root scope can have.
    root: Vec<bool>,
    /// For each start event, the events that the scopes of its runs can have.
    there: Vec<Vec<bool>>,
    /// What is known of a step in a place. While it is being found out, only the limit that the step sets
    /// itself.
    known: HashMap<(Place, StepIndex), Most>,
    /// How many counts are under way, each for the one before.
    depth: usize,
}

/// What takes more counts than this, each for the one before, has no bound that is looked for: a table that comes from a
/// journal may be of any size.
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

    /// Whether the place itself can have the event.
    fn has(&self, place: Place, event: EventIndex) -> bool {
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

    /// How often the step can run in the place.
    pub(super) fn runs(&mut self, place: Place, step: StepIndex) -> Most {
        if let Some(known) = self.known.get(&(place, step)) {
            return *known;
        }
        let row = self.table.step(step);
        let limit = row.policy.max_executions.map(u64::from);
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

    fn deeper(&mut self, count: impl FnOnce(&mut Self) -> Most) -> Most {
        if self.depth == DEEPEST {
            return None;
        }
        self.depth += 1;
        let most = count(self);
        self.depth -= 1;
        most
    }

    /// Whether the place has something of its own that triggers the step, and can see the rest.
    fn can_run(&self, place: Place, step: &StepRow) -> bool {
        let scopes = self.seen_from(place);
        let sees = |event: &EventIndex| scopes.iter().any(|scope| self.has(*scope, *event));
        let mut required = taken(step).filter(|input| !input.optional);
        taken(step).flat_map(|input| &input.events).any(|event| self.has(place, *event))
            && required.all(|input| input.events.iter().any(sees))
    }

    /// The place and those around it.
    fn seen_from(&self, place: Place) -> Vec<Place> {
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

    /// How many evaluations can lead to an execution: one per event, one per fixed list, and of the first
    /// ones none before every required input is there.
    fn triggers(&mut self, place: Place, step: &StepRow) -> Most {
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

    /// Whether the step requires a fixed list of more events than the root scope can have. Of branches that is
    /// not asked: one can lie in others like it, and sees the events of them all.
    fn waits_for_ever(&mut self, step: &StepRow) -> bool {
        taken(step).filter(|input| !input.optional).any(|input| {
            let InputKind::Fixed(least) = input.kind else { return false };
            let counts = input.events.iter().map(|event| self.count(None, *event));
            counts.fold(Some(0), sum).is_some_and(|most| most < u64::from(least))
        })
    }

    /// How many events of the type the place itself can have.
    fn count(&mut self, place: Place, event: EventIndex) -> Most {
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

    fn emitted(&mut self, place: Place, event: EventIndex) -> Most {
        let failing = self.table.event(event).fails;
        let mut most = failing.map_or(Some(0), |step| self.runs(place, step));
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

    /// The one event type without a bound that the step runs once per event of, in the root scope.
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

/// The parameters that take events.
pub(super) fn taken(step: &StepRow) -> impl Iterator<Item = &InputRow> {
    step.inputs.iter().filter(|input| input.kind.takes_events())
}

/// How often fixed lists can run the step: when they are complete, and one that is optional also before.
fn fixed(step: &StepRow) -> u64 {
    let fixed = taken(step).filter(|input| matches!(input.kind, InputKind::Fixed(_)));
    fixed.map(|input| 1 + u64::from(input.optional)).sum()
}

/// The event types each event of which can run the step again.
fn retriggering(step: &StepRow) -> Vec<EventIndex> {
    let inputs = taken(step).filter(|input| !matches!(input.kind, InputKind::Fixed(_)));
    let mut events: Vec<EventIndex> = inputs.flat_map(|input| input.events.iter().copied()).collect();
    events.sort_unstable();
    events.dedup();
    events
}

/// How many evaluations find the step unready: when it first runs, every other required input has had an
/// event, and these are different events as far as the inputs have no type in common.
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
