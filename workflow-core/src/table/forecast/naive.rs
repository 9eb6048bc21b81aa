//! Forecasts as plainly as possible, for comparison: bounds are computed step by step on demand, and the needs of a run
//! by leaving out one step after the other. Costs the square of the table, and more.

use std::collections::HashMap;
use std::sync::Arc;

use super::Forecast;
use crate::spec::InputKind;
use crate::table::{DependencyTable, EventIndex, FanOutIndex, InputRow, StepIndex, StepRow};

/// The forecast of the step.
pub(super) fn forecast(table: &DependencyTable, step: StepIndex) -> Forecast {
    Naive(table).forecast(step)
}

/// A table of which everything is derived anew for each question.
struct Naive<'a>(&'a DependencyTable);

impl Naive<'_> {
    fn forecast(&self, step: StepIndex) -> Forecast {
        // S31: clean-up runs at most once, and no run that completes needs it.
        if self.0.step(step).cleans_up() {
            return Forecast { least: 0, greatest: Some(1), per: None };
        }
        let mut counts = Counts::of(self.0);
        let branches = counts.branches_running(step);
        match (counts.runs(None, step), &branches[..]) {
            (greatest @ Some(_), []) => Forecast { least: self.least(step, greatest), greatest, per: None },
            (None, []) => self.per_arrival(step, &mut counts),
            (Some(0), [fan_out]) => {
                let greatest = counts.runs(Some(*fan_out), step);
                let per = greatest.map(|_| Arc::clone(&self.0.event(self.0.fan_out(*fan_out).item).name));
                let least =
                    u64::from(per.is_some() && self.runs_in_every_branch(*fan_out, step, &mut counts));
                Forecast { least, greatest, per }
            }
            _ => Forecast { least: self.least(step, None), greatest: None, per: None },
        }
    }

    /// 1 if no run completes without the step, else 0.
    fn least(&self, step: StepIndex, greatest: Option<u64>) -> u64 {
        u64::from(greatest != Some(0) && self.is_needed(step))
    }

    /// The forecast of a step in the root whose number depends on arrivals, perhaps of one event type only.
    fn per_arrival(&self, step: StepIndex, counts: &mut Counts<'_>) -> Forecast {
        let per = counts.only_unbounded(step).map(|event| Arc::clone(&self.0.event(event).name));
        match per {
            Some(per) => Forecast { least: 0, greatest: Some(1), per: Some(per) },
            None => Forecast { least: self.least(step, None), greatest: None, per: None },
        }
    }
}

/// The parts of a table that the search treats as absent.
struct Without {
    /// This step never runs.
    step: Option<StepIndex>,
    /// This event never occurs.
    event: Option<EventIndex>,
    /// No step fails.
    failures: bool,
}

impl Without {
    const NOTHING: Self = Self { step: None, event: None, failures: false };
    const FAILURES: Self = Self { failures: true, ..Self::NOTHING };
}

impl Naive<'_> {
    /// Whether no stop event can occur without the step, if no step fails.
    fn is_needed(&self, step: StepIndex) -> bool {
        self.can_stop(&Without::FAILURES)
            && !self.can_stop(&Without { step: Some(step), ..Without::FAILURES })
    }

    /// Whether some start event can lead to a stop event in a table without these parts.
    fn can_stop(&self, without: &Without) -> bool {
        self.starts().any(|start| {
            let there = self.there(start, without);
            self.0.events.iter().zip(there).any(|(event, is_there)| is_there && event.roles.is_stop())
        })
    }

    /// The start events.
    fn starts(&self) -> impl Iterator<Item = EventIndex> + '_ {
        (0..self.0.events.len()).map(EventIndex::at).filter(|event| self.0.event(*event).roles.is_start())
    }

    /// For each event, whether any scope can have it in a run with this start event.
    fn there(&self, start: EventIndex, without: &Without) -> Vec<bool> {
        let mut there = vec![false; self.0.events.len()];
        let mut ran = vec![false; self.0.steps.len()];
        let given = |event: &EventIndex| *event == start || self.0.event(*event).roles.is_external();
        let mut new: Vec<EventIndex> = (0..self.0.events.len()).map(EventIndex::at).filter(given).collect();
        while let Some(event) = new.pop() {
            if without.event == Some(event) || std::mem::replace(&mut there[event.get()], true) {
                continue;
            }
            new.extend(self.0.event(event).reply);
            for step in &self.0.event(event).takers {
                if without.step != Some(*step) && !ran[step.get()] && self.is_ready(*step, &there) {
                    ran[step.get()] = true;
                    new.extend(self.brings_about(*step));
                    new.extend(self.0.step(*step).failed.filter(|_| !without.failures));
                }
            }
        }
        there
    }

    /// Whether every required input has an event that can occur.
    fn is_ready(&self, step: StepIndex, there: &[bool]) -> bool {
        let mut required = taken(self.0.step(step)).filter(|input| !input.optional);
        required.all(|input| input.events.iter().any(|event| there[event.get()]))
    }

    /// The events that the step emits in any scope, and those that complete its fan-outs.
    fn brings_about(&self, step: StepIndex) -> impl Iterator<Item = EventIndex> + '_ {
        let gathered = |fan_out| self.0.fan_out(fan_out).gathered;
        let outputs = &self.0.step(step).outputs;
        outputs.iter().flat_map(move |output| [Some(output.event), output.fan_out.map(gathered)]).flatten()
    }

    /// Whether the step runs in every branch before the run completes. That holds if the fan-out opens once,
    /// no run completes before it is gathered, and nothing keeps the step from running in a branch.
    fn runs_in_every_branch(&self, fan_out: FanOutIndex, step: StepIndex, counts: &mut Counts<'_>) -> bool {
        let row = self.0.fan_out(fan_out);
        let opens_once =
            counts.runs(None, row.step) == Some(1) && counts.branches_running(row.step).is_empty();
        opens_once
            && self.is_item_only(fan_out)
            && !self.can_stop(&Without { event: Some(row.gathered), ..Without::FAILURES })
            && self.is_certain(fan_out, step)
    }

    /// Whether each event of the item's type opens a branch of this fan-out.
    fn is_item_only(&self, fan_out: FanOutIndex) -> bool {
        let item = self.0.fan_out(fan_out).item;
        let roles = self.0.event(item).roles;
        let outputs = self.0.steps.iter().flat_map(|step| &step.outputs);
        let others = outputs.filter(|output| output.event == item && output.fan_out != Some(fan_out));
        let many = self
            .0
            .steps
            .iter()
            .flat_map(|step| &step.outputs)
            .any(|output| output.fan_out == Some(fan_out) && output.many);
        !roles.is_start() && !roles.is_external() && others.count() == 0 && !many
    }

    /// Whether the step runs in every branch whose steps all succeed. A step that depends on itself is not
    /// certain.
    fn is_certain(&self, fan_out: FanOutIndex, step: StepIndex) -> bool {
        let mut certain = vec![false; self.0.steps.len()];
        while self.find_certain(fan_out, &mut certain) {}
        certain[step.get()]
    }

    /// Adds the steps that are certain because others are. Returns whether it found any.
    fn find_certain(&self, fan_out: FanOutIndex, certain: &mut [bool]) -> bool {
        let mut found = false;
        for step in 0..certain.len() {
            if !certain[step] && self.follows(fan_out, &self.0.steps[step], certain) {
                (certain[step], found) = (true, true);
            }
        }
        found
    }

    /// Whether the step is certain, given the steps that are certain so far.
    fn follows(&self, fan_out: FanOutIndex, step: &StepRow, certain: &[bool]) -> bool {
        let opener = self.0.step(self.0.fan_out(fan_out).step);
        let comes =
            |event: &EventIndex| requires(opener, *event) || self.is_certain_event(fan_out, *event, certain);
        step.precondition.is_none()
            && taken(step).filter(|input| !input.optional).all(|input| {
                let plain = matches!(input.kind, InputKind::One | InputKind::List);
                plain && input.events.iter().any(comes)
            })
            && self.is_triggered_there(fan_out, step)
    }

    /// Whether an event of the branch itself is among the step's required inputs.
    fn is_triggered_there(&self, fan_out: FanOutIndex, step: &StepRow) -> bool {
        let own = &self.0.fan_out(fan_out).own;
        let mut required = taken(step).filter(|input| !input.optional);
        required.any(|input| input.events.iter().any(|event| own.contains(event)))
    }

    /// Whether every branch has the event: it is the item, or a certain step always emits it.
    fn is_certain_event(&self, fan_out: FanOutIndex, event: EventIndex, certain: &[bool]) -> bool {
        let emits = |step: &StepRow| {
            step.outputs
                .iter()
                .any(|output| output.event == event && output.least > 0 && output.fan_out.is_none())
        };
        let mut steps = self.0.steps.iter().zip(certain);
        self.0.fan_out(fan_out).item == event || steps.any(|(step, is_certain)| *is_certain && emits(step))
    }
}

/// Whether the step cannot run without the event.
fn requires(step: &StepRow, event: EventIndex) -> bool {
    let plain = taken(step).filter(|input| matches!(input.kind, InputKind::One | InputKind::List));
    plain.filter(|input| !input.optional).any(|input| input.events[..] == [event])
}

/// The root, or the branches of a fan-out.
type ScopeKind = Option<FanOutIndex>;

/// An upper bound; `None` for no bound.
type Most = Option<u64>;

/// Computes bounds on demand and stores them.
struct Counts<'a> {
    table: &'a DependencyTable,
    /// By event, whether the root can have it.
    root: Vec<bool>,
    /// By start event and event, whether any scope of such a run can have it.
    there: Vec<Vec<bool>>,
    /// The bounds computed so far. While a bound is being computed, the entry has the limit that the step
    /// itself declares.
    known: HashMap<(ScopeKind, StepIndex), Most>,
}

impl<'a> Counts<'a> {
    fn of(table: &'a DependencyTable) -> Self {
        let there = Naive(table).starts().map(|start| Naive(table).there(start, &Without::NOTHING)).collect();
        let root = vec![false; table.events.len()];
        let mut counts = Self { table, root, there, known: HashMap::new() };
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
    fn branches_running(&mut self, step: StepIndex) -> Vec<FanOutIndex> {
        let fan_outs = (0..self.table.fan_outs.len()).map(FanOutIndex::at);
        fan_outs.filter(|fan_out| self.runs(Some(*fan_out), step) != Some(0)).collect()
    }

    /// The most executions of the step in this scope.
    fn runs(&mut self, place: ScopeKind, step: StepIndex) -> Most {
        if let Some(known) = self.known.get(&(place, step)) {
            return *known;
        }
        let row = self.table.step(step);
        let limit = row.policy.max_executions.map(u64::from);
        // In a circle of steps the inner question finds this entry and stops there.
        self.known.insert((place, step), limit);
        let can_run = self.there.iter().any(|there| Naive(self.table).is_ready(step, there));
        let most = if can_run && self.can_run(place, row) { self.triggers(place, row) } else { Some(0) };
        let most = lower(most, limit);
        self.known.insert((place, step), most);
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
        let replies = self.request_of(event).map_or(Some(0), |request| self.count(place, request));
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
    fn only_unbounded(&mut self, step: StepIndex) -> Option<EventIndex> {
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
fn taken(step: &StepRow) -> impl Iterator<Item = &InputRow> {
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
