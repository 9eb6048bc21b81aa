//! The steps and ends of fan-outs without which no run can complete, if no step fails.
//!
//! The needed parts are found in three stages, by start event. First comes one way to a stop event: only what lies on it
//! can be needed. Then the search goes back from the stop event as long as there is a single way, where all is needed.
//! The rest is excluded, and allowed again by halves: a half that a stop event needs nothing of is settled at once, and
//! any other half is halved again. A half is settled as soon as the search is back on the way behind it.
//!
//! ```text
//!  Start ─▶ a ─▶ X ─▶ b ─▶ Y ─┬─▶ end ─▶ Stop      back from `Stop`: `end` is needed
//!                └─▶ c ─▶ Z ──┘                    `end` takes `Y` or `Z`: the way on it is `a`, `b`
//!                                                  without both: no stop; without `b`: a stop; without `a`: none
//! ```
//!
//! A run has one start event, so only what is needed after each start event that can lead to a stop event counts.

use std::collections::{HashMap, HashSet};

use super::search::{Cause, Links, Part, Search};
use crate::table::{DependencyTable, EventIndex, StepIndex};

/// The parts without which no run can complete.
pub(super) struct Needed {
    /// `None` if no run can complete at all.
    parts: Option<HashSet<Part>>,
}

impl Needed {
    pub(super) fn of(table: &DependencyTable, links: &Links) -> Self {
        let external = (0..table.events.len()).map(EventIndex::at);
        let external: Vec<EventIndex> =
            external.filter(|event| table.event(*event).roles.is_external()).collect();
        let mut search = Search::of(table, links, false);
        let mut parts: Option<HashSet<Part>> = None;
        for start in starts(table) {
            let outside: Vec<EventIndex> = external.iter().copied().chain([start]).collect();
            search.begin(outside.iter().copied());
            if search.stops() {
                let mut way = Way { table, links, outside: &outside, search: &mut search };
                parts = Some(way.needed(parts.as_ref()));
            }
            search.take_back(0);
            if parts.as_ref().is_some_and(HashSet::is_empty) {
                break;
            }
        }
        Self { parts }
    }

    /// Whether no run completes without the step, and one can with it.
    pub(super) fn step(&self, step: StepIndex) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.contains(&Part::Step(step)))
    }

    /// Whether no run completes without the end of this fan-out.
    pub(super) fn end(&self, gathered: EventIndex) -> bool {
        self.parts.as_ref().is_none_or(|parts| parts.contains(&Part::Event(gathered)))
    }
}

/// The start events.
pub(super) fn starts(table: &DependencyTable) -> impl Iterator<Item = EventIndex> + '_ {
    (0..table.events.len()).map(EventIndex::at).filter(|event| table.event(*event).roles.is_start())
}

/// The ways from one start event to stop events.
struct Way<'a, 's> {
    table: &'a DependencyTable,
    links: &'a Links,
    /// The events that come from outside: the external ones, and last the start event.
    outside: &'a [EventIndex],
    /// With all that can occur, at first.
    search: &'a mut Search<'s>,
}

impl Way<'_, '_> {
    /// The needed parts, of these if there are some.
    fn needed(&mut self, among: Option<&HashSet<Part>>) -> HashSet<Part> {
        let is_asked = |part: &Part| among.is_none_or(|among| among.contains(part));
        let mut needed: HashSet<Part> = self.single_way().into_iter().filter(is_asked).collect();
        let way = self.one_way();
        let open = way.parts.iter().copied().filter(|part| is_asked(part) && !needed.contains(part));
        let open: Vec<Part> = open.collect();
        self.search.take_back(0);
        self.search.exclude(&open);
        self.search.ask(way.led_to_by(&open, self.links));
        self.search.begin(self.outside.iter().copied());
        self.halve(&way, &open, &mut needed);
        self.search.ask_nothing();
        self.search.take_back(0);
        self.search.include(&open);
        needed
    }

    /// Goes back from the stop event where each event has one source.
    fn single_way(&self) -> Vec<Part> {
        let (mut needed, mut walked) = (Vec::new(), HashSet::new());
        let stops = self.search.occurred().filter(|event| self.table.event(*event).roles.is_stop());
        let mut events: Vec<EventIndex> = stops.collect();
        if events.len() > 1 {
            return needed;
        }
        while let Some(event) = events.pop() {
            if !walked.insert(Part::Event(event)) {
                continue;
            }
            needed.extend(self.end_of_fan_out(event));
            if matches!(self.search.cause(event), Cause::Outside) {
                continue;
            }
            let makers = self.links.makers(event).iter().filter(|step| self.search.runs(**step));
            let requests = self.links.requests(event).iter().filter(|request| self.search.occurs(**request));
            match (only(makers), only(requests)) {
                (Count::One(step), Count::None) if walked.insert(Part::Step(step)) => {
                    needed.push(Part::Step(step));
                    for need in self.links.needs(step) {
                        let met_by = self.links.met_by(*need).iter();
                        if let Count::One(event) = only(met_by.filter(|event| self.search.occurs(**event))) {
                            events.push(event);
                        }
                    }
                }
                (Count::None, Count::One(request)) => events.push(request),
                _ => {}
            }
        }
        needed
    }

    /// One way to a stop event.
    fn one_way(&self) -> OneWay {
        let stop = self.search.occurred().find(|event| self.table.event(*event).roles.is_stop());
        let (mut on_way, mut feeds) = (HashSet::new(), HashMap::<Part, Vec<usize>>::new());
        let mut events: Vec<EventIndex> = stop.into_iter().collect();
        while let Some(event) = events.pop() {
            if !on_way.insert(Part::Event(event)) {
                continue;
            }
            match self.search.cause(event) {
                Cause::Outside => {}
                Cause::Request(request) => events.push(request),
                Cause::Step(maker) => {
                    if !on_way.insert(Part::Step(maker)) {
                        continue;
                    }
                    for need in self.links.needs(maker) {
                        let event = self.search.first_met_by(*need);
                        for part in self.sources(event) {
                            feeds.entry(part).or_default().push(*need);
                        }
                        events.push(event);
                    }
                }
            }
        }
        let mut parts = Vec::new();
        for event in self.search.occurred() {
            if !on_way.contains(&Part::Event(event)) {
                continue;
            }
            if let Cause::Step(maker) = self.search.cause(event)
                && on_way.remove(&Part::Step(maker))
            {
                parts.push(Part::Step(maker));
            }
            parts.extend(self.end_of_fan_out(event));
        }
        OneWay { parts, feeds, last: stop.map(|stop| self.sources(stop)).unwrap_or_default() }
    }

    /// The parts that this event of the way comes from directly.
    fn sources(&self, event: EventIndex) -> Vec<Part> {
        let mut sources: Vec<Part> = self.end_of_fan_out(event).into_iter().collect();
        let mut at = event;
        while let Cause::Request(request) = self.search.cause(at) {
            at = request;
        }
        if let Cause::Step(step) = self.search.cause(at) {
            sources.push(Part::Step(step));
        }
        sources
    }

    fn end_of_fan_out(&self, event: EventIndex) -> Option<Part> {
        self.table.event(event).gathers.map(|_| Part::Event(event))
    }

    /// Adds the needed parts of these, all of which are excluded.
    fn halve(&mut self, way: &OneWay, parts: &[Part], needed: &mut HashSet<Part>) {
        if self.search.is_settled() || parts.is_empty() {
            return;
        }
        if let [part] = parts {
            needed.insert(*part);
            return;
        }
        let (one, other) = parts.split_at(parts.len() / 2);
        for (allowed, asked) in [(other, one), (one, other)] {
            let found = self.search.found();
            self.search.ask(way.led_to_by(asked, self.links));
            for part in allowed {
                // More can only lead to more.
                if !self.search.is_settled() {
                    self.search.allow(*part);
                }
            }
            self.halve(way, asked, needed);
            self.search.take_back(found);
        }
    }
}

/// One way to a stop event.
struct OneWay {
    /// Its parts, in the order in which the search found them.
    parts: Vec<Part>,
    /// By part, the needs of the way's steps that it met.
    feeds: HashMap<Part, Vec<usize>>,
    /// The parts that the stop event comes from.
    last: Vec<Part>,
}

impl OneWay {
    /// The needs by which these parts lead to the rest of the way. Once all of them are met without these parts, the rest
    /// of the way follows, and need not be searched. None if the parts include the last one.
    fn led_to_by(&self, parts: &[Part], links: &Links) -> Vec<usize> {
        let these: HashSet<Part> = parts.iter().copied().collect();
        if self.last.iter().any(|last| these.contains(last)) {
            return Vec::new();
        }
        let needs = parts.iter().flat_map(|part| self.feeds.get(part).into_iter().flatten()).copied();
        needs.filter(|need| !these.contains(&Part::Step(links.step_of(*need)))).collect()
    }
}

enum Count<T> {
    None,
    One(T),
    Several,
}

/// The only item, however often it comes.
fn only<'a, T: Copy + PartialEq + 'a>(items: impl Iterator<Item = &'a T>) -> Count<T> {
    items.fold(Count::None, |count, item| match count {
        Count::None => Count::One(*item),
        Count::One(first) if first == *item => Count::One(first),
        _ => Count::Several,
    })
}
