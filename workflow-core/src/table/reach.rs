//! Matches gathers to fan-outs for the scheduler (S48), by finding the events that the branches of each
//! fan-out can have. `check::branches` finds the same for the graph rules.
//!
//! Example: `split(&Book) -> FanOut<Page>` and `read(&Page) -> Text`. The root can have `Book` and the end of
//! the fan-out. A branch can have `Page` and `Text` itself and sees `Book` too. So a `Gather<Text>` gets the
//! end of this fan-out as its event.

use std::collections::BTreeSet;

use super::{DependencyTable, EventIndex, FanOutIndex, FanOutRow, InputRow, StepRow};
use crate::spec::InputKind;

/// The events of each kind of scope: the root first, then the branches of each fan-out.
#[derive(Debug)]
struct Reach {
    /// The events that can be logged in the scope itself.
    own: Vec<Events>,
    /// The events that can be seen there: its own, and those of the scopes that can contain it.
    seen: Vec<Events>,
}

type Events = BTreeSet<EventIndex>;

impl DependencyTable {
    /// Grows the scopes and matches the gathers, until nothing changes.
    pub(super) fn match_gathers(&mut self) {
        let items = self.fan_outs.iter().map(|fan_out| Events::from([fan_out.item]));
        let own: Vec<Events> = std::iter::once(self.sent_from_outside()).chain(items).collect();
        let mut reach = Reach { seen: own.clone(), own };
        while self.grow_scopes(&mut reach) | self.grow_gathers(&reach) {}
        for (fan_out, own) in self.fan_outs.iter_mut().zip(reach.own.drain(1..)) {
            fan_out.own = own.into_iter().collect();
        }
        for fan_out in 0..self.fan_outs.len() {
            self.note_carried(FanOutIndex::at(fan_out));
        }
    }

    /// The events from outside. An event that no step emits can have no other source.
    fn sent_from_outside(&self) -> Events {
        let emitted: Events = self.steps.iter().flat_map(|step| &step.outputs).map(|row| row.event).collect();
        let events = (0..self.events.len()).map(EventIndex::at);
        let is_sent = |event: &EventIndex| {
            let row = self.event(*event);
            let internal = row.gathers.is_some() || row.fails.is_some() || row.roles.is_failure();
            let alone = !emitted.contains(event) && !row.roles.is_reply() && !internal;
            row.roles.is_start() || row.roles.is_external() || alone
        };
        events.filter(is_sent).collect()
    }

    /// Adds to each scope the outputs of the steps that can run in it, and lets branches see the scopes that
    /// open them. Returns whether anything is new.
    fn grow_scopes(&self, reach: &mut Reach) -> bool {
        let before = reach.size();
        for scope in 0..reach.own.len() {
            let running: Vec<&StepRow> = self.steps.iter().filter(|step| reach.runs(step, scope)).collect();
            let replies = reach.own[scope].iter().filter_map(|event| self.event(*event).reply);
            let emitted: Vec<EventIndex> =
                running.iter().flat_map(|step| step.emits_in_its_scope(self)).chain(replies).collect();
            reach.own[scope].extend(&emitted);
            reach.seen[scope].extend(&emitted);
            let opened = running.iter().flat_map(|step| &step.outputs).filter_map(|output| output.fan_out);
            for fan_out in opened.collect::<Vec<_>>() {
                // A branch sees all that the scope of its opener sees.
                let outer = reach.seen[scope].clone();
                reach.seen[fan_out.get() + 1].extend(outer);
            }
        }
        reach.size() > before
    }

    /// Matches each gather with the fan-outs of the item that it names (S59), or with all fan-outs whose branches can
    /// have its event. Returns whether a match is new.
    fn grow_gathers(&mut self, reach: &Reach) -> bool {
        let fan_outs = &self.fan_outs;
        let gathers = self.steps.iter_mut().flat_map(|step| &mut step.inputs);
        gathers.filter(|input| input.kind == InputKind::Gather).fold(false, |grew, input| {
            let fits = |place: usize, fan_out: &FanOutRow| match input.item {
                Some(item) => item == fan_out.item,
                None => input.gathered.iter().any(|event| reach.own[place + 1].contains(event)),
            };
            let fitting = fan_outs.iter().enumerate();
            let fitting = fitting.filter(|(place, fan_out)| fits(*place, fan_out));
            let gathered: Vec<EventIndex> = fitting.map(|(_, fan_out)| fan_out.gathered).collect();
            let grows = gathered.len() > input.events.len();
            input.events = gathered;
            grew | grows
        })
    }

    /// Stores the events that the gathers of this fan-out collect.
    fn note_carried(&mut self, index: FanOutIndex) {
        let gathered = self.fan_out(index).gathered;
        let inputs = self.steps.iter().flat_map(|step| &step.inputs);
        let takers =
            inputs.filter(|input| input.kind == InputKind::Gather && input.events.contains(&gathered));
        let mut carried: Vec<EventIndex> = takers.flat_map(|input| &input.gathered).copied().collect();
        carried.sort_unstable();
        carried.dedup();
        for event in &carried {
            self.events[event.get()].carried = true;
        }
        self.fan_outs[index.get()].carried = carried;
    }
}

impl Reach {
    fn size(&self) -> usize {
        self.own.iter().chain(&self.seen).map(BTreeSet::len).sum()
    }

    /// Whether the step can run in the scope: an event of the scope itself triggers it, and the scope sees
    /// all it requires. Gathers count as supplied. Otherwise a step that gathers what it emits itself, as a
    /// walk over a tree does, could never begin.
    fn runs(&self, step: &StepRow, scope: usize) -> bool {
        let is_there = |input: &InputRow, events: &Events| {
            input.triggers() && input.events.iter().any(|event| events.contains(event))
        };
        let waits = |input: &InputRow| {
            input.kind.takes_events() && input.kind != InputKind::Gather && !input.optional
        };
        let mut inputs = step.inputs.iter();
        inputs.clone().any(|input| is_there(input, &self.own[scope]))
            && inputs.all(|input| !waits(input) || is_there(input, &self.seen[scope]))
    }
}
