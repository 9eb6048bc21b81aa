//! The events of branches and the fan-outs of gathers, compared with a search that looks at every step in every scope, again
//! and again, until nothing is new.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::{ProptestConfig, any, proptest};

use crate::spec::InputKind;
use crate::table::{DependencyTable, EventIndex, InputRow, StepRow, random};

type Events = BTreeSet<EventIndex>;

/// The events of each kind of scope: the root first, then the branches of each fan-out.
struct Naive<'a> {
    table: &'a DependencyTable,
    /// The events that can be logged in the scope itself.
    own: Vec<Events>,
    /// The events that can be seen there: its own, and those of the scopes that can contain it.
    seen: Vec<Events>,
    /// By step and place, the ends of the fan-outs that a gather fits.
    gathers: BTreeMap<(usize, usize), Events>,
}

impl<'a> Naive<'a> {
    fn of(table: &'a DependencyTable) -> Self {
        let items = table.fan_outs.iter().map(|fan_out| Events::from([fan_out.item]));
        let own: Vec<Events> = std::iter::once(sent_from_outside(table)).chain(items).collect();
        let mut naive = Self { table, seen: own.clone(), own, gathers: BTreeMap::new() };
        while naive.grow_scopes() | naive.grow_gathers() {}
        naive
    }

    fn size(&self) -> usize {
        self.own.iter().chain(&self.seen).chain(self.gathers.values()).map(BTreeSet::len).sum()
    }

    /// Adds to each scope the outputs of the steps that can run in it, and lets branches see the scopes that
    /// open them. Returns whether anything is new.
    fn grow_scopes(&mut self) -> bool {
        let before = self.size();
        for scope in 0..self.own.len() {
            let steps = self.table.steps.iter().enumerate();
            let running: Vec<&StepRow> =
                steps.filter(|(index, step)| self.runs(*index, step, scope)).map(|(_, step)| step).collect();
            let replies = self.own[scope].iter().filter_map(|event| self.table.event(*event).reply);
            let emitted = running.iter().flat_map(|step| step.emits_in_its_scope(self.table));
            let emitted: Vec<EventIndex> = emitted.chain(replies).collect();
            self.own[scope].extend(&emitted);
            self.seen[scope].extend(&emitted);
            let opened = running.iter().flat_map(|step| &step.outputs).filter_map(|output| output.fan_out);
            for fan_out in opened.collect::<Vec<_>>() {
                let outer = self.seen[scope].clone();
                self.seen[fan_out.get() + 1].extend(outer);
            }
        }
        self.size() > before
    }

    fn grow_gathers(&mut self) -> bool {
        let before = self.size();
        for (step, row) in self.table.steps.iter().enumerate() {
            let gathers = row.inputs.iter().enumerate();
            for (place, input) in gathers.filter(|(_, input)| input.kind == InputKind::Gather) {
                for (fan_out, of) in self.table.fan_outs.iter().enumerate() {
                    let fits = match input.item {
                        Some(item) => item == of.item,
                        None => input.gathered.iter().any(|event| self.own[fan_out + 1].contains(event)),
                    };
                    if fits {
                        self.gathers.entry((step, place)).or_default().insert(of.gathered);
                    }
                }
            }
        }
        self.size() > before
    }

    /// Whether the step can run in the scope: an event of the scope itself triggers it, and the scope sees
    /// all it requires. Gathers count as supplied.
    fn runs(&self, index: usize, step: &StepRow, scope: usize) -> bool {
        let is_there = |place: usize, input: &InputRow, events: &Events| {
            let gathered = self.gathers.get(&(index, place));
            let taken = if input.kind == InputKind::Gather {
                gathered.into_iter().flatten().collect::<Vec<_>>()
            } else {
                input.events.iter().collect()
            };
            input.triggers() && taken.into_iter().any(|event| events.contains(event))
        };
        let waits = |input: &InputRow| {
            input.kind.takes_events() && input.kind != InputKind::Gather && !input.optional
        };
        let mut inputs = step.inputs.iter().enumerate();
        inputs.clone().any(|(place, input)| is_there(place, input, &self.own[scope]))
            && inputs.all(|(place, input)| !waits(input) || is_there(place, input, &self.seen[scope]))
    }
}

/// The events from outside. An event that no step emits can have no other source.
fn sent_from_outside(table: &DependencyTable) -> Events {
    let emitted: Events = table.steps.iter().flat_map(|step| &step.outputs).map(|row| row.event).collect();
    let events = (0..table.events.len()).map(EventIndex::at);
    let is_sent = |event: &EventIndex| {
        let row = table.event(*event);
        let internal = row.gathers.is_some() || row.fails.is_some() || row.roles.is_failure();
        let alone = !emitted.contains(event) && !row.roles.is_reply() && !internal;
        row.roles.is_start() || row.roles.is_external() || alone
    };
    events.filter(is_sent).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn branches_and_gathers_are_those_of_a_naive_search(seed in any::<u64>()) {
        if let Ok(table) = random::table(seed, 14).build_unchecked() {
            let naive = Naive::of(&table);
            for (fan_out, own) in table.fan_outs.iter().zip(&naive.own[1..]) {
                assert_eq!(fan_out.own, own.iter().copied().collect::<Vec<_>>());
            }
            for (step, row) in table.steps.iter().enumerate() {
                let gathers = row.inputs.iter().enumerate();
                for (place, input) in gathers.filter(|(_, input)| input.kind == InputKind::Gather) {
                    let fitting: Vec<EventIndex> =
                        naive.gathers.get(&(step, place)).into_iter().flatten().copied().collect();
                    assert_eq!(input.events[..], fitting[..]);
                }
            }
        }
    }
}
