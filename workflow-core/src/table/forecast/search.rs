//! Which events can occur and which steps can run, if some steps and events are excluded. The question is asked many
//! times for one table, with few differences: so what a search has found can be taken back, and parts can be allowed
//! again.
//!
//! A step runs once each of its *needs* is met. A need is a required input, met by any of its events. A step whose
//! inputs are all optional has one need, met by any event that triggers it.

use std::collections::VecDeque;

use super::scopes::taken;
use crate::table::lists::Lists;
use crate::table::{DependencyTable, EventIndex, StepIndex};

/// The links between events and steps, in any scope. The rows of a table lie scattered, so they are walked once for all
/// that forecasts ask of them again and again.
pub(super) struct Links {
    /// By event, the needs that it meets.
    meets: Lists<usize>,
    /// By need, its step.
    step: Vec<StepIndex>,
    /// By need, the events that meet it.
    met_by: Lists<EventIndex>,
    /// By step, its needs.
    needs: Lists<usize>,
    /// By step, the events of its inputs that trigger, once for each input.
    takes: Lists<EventIndex>,
    /// By event, the steps that take it so.
    takers: Lists<StepIndex>,
    /// By step, the events that it emits in any scope, and those that complete its fan-outs.
    effects: Lists<EventIndex>,
    /// By step, the events that it adds to its own scope, its failure included.
    emits: Lists<EventIndex>,
    /// By event, the steps that it is an effect of.
    makers: Lists<StepIndex>,
    /// By event, the requests that it is the reply to.
    requests: Lists<EventIndex>,
}

impl Links {
    pub(super) fn of(table: &DependencyTable) -> Self {
        let (events, steps) = (table.events.len(), table.steps.len());
        let (mut step, mut met_by) = (Vec::new(), Vec::new());
        let (mut takes, mut effects, mut emits) = (Vec::new(), Vec::new(), Vec::new());
        for (place, row) in table.steps.iter().enumerate() {
            let index = StepIndex::at(place);
            takes.extend(taken(row).flat_map(|input| &input.events).map(|event| (index, *event)));
            for output in &row.outputs {
                let gathered = output.fan_out.map(|of| table.fan_out(of).gathered);
                effects
                    .extend([Some(output.event), gathered].into_iter().flatten().map(|event| (index, event)));
            }
            emits.extend(row.emits_in_its_scope(table).map(|event| (index, event)));
            // Events do not trigger clean-up (S11).
            if row.cleans_up() {
                continue;
            }
            let has_required = taken(row).any(|input| !input.optional);
            for input in taken(row).filter(|input| !input.optional || !has_required) {
                if has_required || step.last() != Some(&index) {
                    step.push(index);
                }
                let need = step.len() - 1;
                met_by.extend(input.events.iter().map(|event| (need, *event)));
            }
        }
        let replies = table.events.iter().enumerate();
        let replies = replies.filter_map(|(request, row)| Some((row.reply?.get(), EventIndex::at(request))));
        let by_step = |pairs: &[(StepIndex, EventIndex)]| {
            Lists::of(steps, pairs.iter().map(|(step, event)| (step.get(), *event)))
        };
        Self {
            meets: Lists::of(events, met_by.iter().map(|(need, event)| (event.get(), *need))),
            needs: Lists::of(steps, step.iter().enumerate().map(|(need, step)| (step.get(), need))),
            met_by: Lists::of(step.len(), met_by.iter().copied()),
            takers: Lists::of(events, takes.iter().map(|(step, event)| (event.get(), *step))),
            takes: by_step(&takes),
            emits: by_step(&emits),
            makers: Lists::of(events, effects.iter().map(|(step, event)| (event.get(), *step))),
            effects: by_step(&effects),
            requests: Lists::of(events, replies),
            step,
        }
    }

    /// The events that trigger the step, or would if it were no clean-up, once for each input.
    pub(super) fn takes(&self, step: StepIndex) -> &[EventIndex] {
        self.takes.row(step.get())
    }

    /// The steps that the event triggers.
    pub(super) fn triggered_by(&self, event: EventIndex) -> impl Iterator<Item = StepIndex> + '_ {
        // Clean-up has no needs.
        self.takers.row(event.get()).iter().copied().filter(|step| !self.needs(*step).is_empty())
    }

    /// The events that the step adds to its own scope.
    pub(super) fn emits(&self, step: StepIndex) -> &[EventIndex] {
        self.emits.row(step.get())
    }

    pub(super) fn needs(&self, step: StepIndex) -> &[usize] {
        self.needs.row(step.get())
    }

    pub(super) fn step_of(&self, need: usize) -> StepIndex {
        self.step[need]
    }

    pub(super) fn met_by(&self, need: usize) -> &[EventIndex] {
        self.met_by.row(need)
    }

    pub(super) fn makers(&self, event: EventIndex) -> &[StepIndex] {
        self.makers.row(event.get())
    }

    pub(super) fn requests(&self, event: EventIndex) -> &[EventIndex] {
        self.requests.row(event.get())
    }
}

/// A part of a table that a search can exclude.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Step(StepIndex),
    Event(EventIndex),
}

/// How an event came about in a search.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cause {
    Outside,
    Step(StepIndex),
    Request(EventIndex),
}

/// One change of a search, to be taken back.
#[derive(Debug, Clone, Copy)]
enum Change {
    Occurred(EventIndex),
    /// The excluded event would have occurred.
    Withheld(EventIndex),
    Met(usize),
    Allowed(Part),
}

/// The state of a search.
pub(super) struct Search<'a> {
    table: &'a DependencyTable,
    links: &'a Links,
    /// Whether steps fail.
    with_failures: bool,
    occurs: Vec<bool>,
    withheld: Vec<bool>,
    met: Vec<bool>,
    /// By step, how many of its needs are not met.
    unmet: Vec<usize>,
    excluded_steps: Vec<bool>,
    excluded_events: Vec<bool>,
    /// By event that occurs, how it came about; by need that is met, the first event that met it.
    causes: Vec<Cause>,
    first_met_by: Vec<EventIndex>,
    /// How many stop events occur.
    stops: usize,
    /// Whether the search ends as soon as it is settled.
    is_asked: bool,
    /// The needs that are asked for, and how many of them are not met.
    wanted: Vec<usize>,
    is_wanted: Vec<bool>,
    open: usize,
    /// The events whose consequences are to be found. Near ones come first, since a need that is asked for is mostly near
    /// to the parts that were allowed.
    pending: VecDeque<EventIndex>,
    changes: Vec<Change>,
}

impl<'a> Search<'a> {
    pub(super) fn of(table: &'a DependencyTable, links: &'a Links, with_failures: bool) -> Self {
        let (events, steps) = (table.events.len(), table.steps.len());
        Self {
            table,
            links,
            with_failures,
            occurs: vec![false; events],
            withheld: vec![false; events],
            met: vec![false; links.step.len()],
            unmet: (0..steps).map(|step| links.needs.row(step).len()).collect(),
            excluded_steps: vec![false; steps],
            excluded_events: vec![false; events],
            causes: vec![Cause::Outside; events],
            first_met_by: vec![EventIndex(0); links.step.len()],
            stops: 0,
            is_asked: false,
            wanted: Vec::new(),
            is_wanted: vec![false; links.step.len()],
            open: 0,
            pending: VecDeque::new(),
            changes: Vec::new(),
        }
    }

    /// Whether a stop event occurs.
    pub(super) fn stops(&self) -> bool {
        self.stops > 0
    }

    pub(super) fn occurs(&self, event: EventIndex) -> bool {
        self.occurs[event.get()]
    }

    /// Whether the step has run: it takes events, and all its needs are met.
    pub(super) fn runs(&self, step: StepIndex) -> bool {
        self.unmet[step.get()] == 0 && !self.links.needs(step).is_empty() && !self.excluded_steps[step.get()]
    }

    pub(super) fn cause(&self, event: EventIndex) -> Cause {
        self.causes[event.get()]
    }

    pub(super) fn first_met_by(&self, need: usize) -> EventIndex {
        self.first_met_by[need]
    }

    /// Events from outside occur, and their consequences.
    pub(super) fn begin(&mut self, events: impl IntoIterator<Item = EventIndex>) {
        for event in events {
            self.occur(event, Cause::Outside);
        }
        self.follow();
    }

    /// Excludes parts. Nothing may have been found.
    pub(super) fn exclude(&mut self, parts: &[Part]) {
        debug_assert!(self.changes.is_empty(), "parts are excluded before the search begins");
        for part in parts {
            self.set_excluded(*part, true);
        }
    }

    /// Includes parts that were excluded. Nothing may have been found.
    pub(super) fn include(&mut self, parts: &[Part]) {
        debug_assert!(self.changes.is_empty(), "what was found without these parts is taken back first");
        for part in parts {
            self.set_excluded(*part, false);
        }
    }

    /// Asks for these needs, and no longer for others. From here on the search ends once it
    /// [is settled](Self::is_settled), until [`ask_nothing`](Self::ask_nothing).
    pub(super) fn ask(&mut self, needs: impl IntoIterator<Item = usize>) {
        self.ask_nothing();
        self.is_asked = true;
        for need in needs {
            if !std::mem::replace(&mut self.is_wanted[need], true) {
                self.wanted.push(need);
                self.open += usize::from(!self.met[need]);
            }
        }
    }

    /// Asks for nothing: the search finds all that can occur.
    pub(super) fn ask_nothing(&mut self) {
        for need in self.wanted.drain(..) {
            self.is_wanted[need] = false;
        }
        self.open = 0;
        self.is_asked = false;
    }

    /// Whether all needs that are asked for are met, or a stop event occurs. If none is asked for, only the latter.
    pub(super) fn is_settled(&self) -> bool {
        self.stops() || (self.open == 0 && !self.wanted.is_empty())
    }

    /// Allows an excluded part again, and finds what follows from it.
    pub(super) fn allow(&mut self, part: Part) {
        self.set_excluded(part, false);
        self.changes.push(Change::Allowed(part));
        match part {
            Part::Step(step) if self.runs(step) => self.run(step),
            Part::Event(event) if self.withheld[event.get()] => {
                self.occur(event, self.causes[event.get()]);
            }
            _ => {}
        }
        self.follow();
    }

    /// Where the search stands, for [`take_back`](Self::take_back).
    pub(super) fn found(&self) -> usize {
        self.changes.len()
    }

    /// The events that occur, in the order in which they were found.
    pub(super) fn occurred(&self) -> impl DoubleEndedIterator<Item = EventIndex> + '_ {
        self.changes.iter().filter_map(|change| match change {
            Change::Occurred(event) => Some(*event),
            _ => None,
        })
    }

    /// The steps that ran since the search stood there.
    pub(super) fn ran_since(&self, found: usize) -> impl Iterator<Item = StepIndex> + '_ {
        let met = self.changes[found..].iter().filter_map(|change| match change {
            Change::Met(need) => Some(self.links.step[*need]),
            _ => None,
        });
        met.filter(|step| self.runs(*step))
    }

    /// Takes back what was found, and allowed, since the search stood there.
    pub(super) fn take_back(&mut self, found: usize) {
        self.pending.clear();
        while self.changes.len() > found
            && let Some(change) = self.changes.pop()
        {
            match change {
                Change::Occurred(event) => {
                    self.occurs[event.get()] = false;
                    self.stops -= usize::from(self.table.event(event).roles.is_stop());
                }
                Change::Withheld(event) => self.withheld[event.get()] = false,
                Change::Met(need) => {
                    self.met[need] = false;
                    self.open += usize::from(self.is_wanted[need]);
                    self.unmet[self.links.step[need].get()] += 1;
                }
                Change::Allowed(part) => self.set_excluded(part, true),
            }
        }
    }

    fn set_excluded(&mut self, part: Part, excluded: bool) {
        match part {
            Part::Step(step) => self.excluded_steps[step.get()] = excluded,
            Part::Event(event) => self.excluded_events[event.get()] = excluded,
        }
    }

    fn follow(&mut self) {
        while let Some(event) = self.pending.pop_front() {
            let links = self.links;
            if let Some(reply) = self.table.event(event).reply {
                self.occur(reply, Cause::Request(event));
            }
            for need in links.meets.row(event.get()) {
                self.meet(*need, event);
            }
            if self.is_asked && self.is_settled() {
                self.pending.clear();
            }
        }
    }

    fn meet(&mut self, need: usize, event: EventIndex) {
        if std::mem::replace(&mut self.met[need], true) {
            return;
        }
        let step = self.links.step[need];
        self.first_met_by[need] = event;
        self.unmet[step.get()] -= 1;
        self.open -= usize::from(self.is_wanted[need]);
        self.changes.push(Change::Met(need));
        if self.runs(step) {
            self.run(step);
        }
    }

    fn run(&mut self, step: StepIndex) {
        let links = self.links;
        let failed = self.table.step(step).failed.filter(|_| self.with_failures);
        for event in links.effects.row(step.get()).iter().copied().chain(failed) {
            self.occur(event, Cause::Step(step));
        }
    }

    fn occur(&mut self, event: EventIndex, cause: Cause) {
        let place = event.get();
        if self.occurs[place] {
            return;
        }
        if self.excluded_events[place] {
            if !std::mem::replace(&mut self.withheld[place], true) {
                self.causes[place] = cause;
                self.changes.push(Change::Withheld(event));
            }
            return;
        }
        self.occurs[place] = true;
        self.causes[place] = cause;
        self.stops += usize::from(self.table.event(event).roles.is_stop());
        self.changes.push(Change::Occurred(event));
        self.pending.push_back(event);
    }
}
