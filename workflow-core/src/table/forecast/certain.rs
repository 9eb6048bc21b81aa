//! The steps that run in every branch of a fan-out whose steps all succeed.
//!
//! A step is certain if nothing decides against it, and all events that it requires come for certain: the item, those
//! that the step that opened the branch required, or those that a certain step always emits. A step that depends on itself is not certain.

use std::collections::{HashMap, HashSet};

use super::scopes::taken;
use crate::spec::InputKind;
use crate::table::{DependencyTable, EventIndex, FanOutIndex, FanOutRow, OutputRow, StepIndex, StepRow};

impl DependencyTable {
    /// The steps that run in every branch of this fan-out whose steps all succeed.
    pub(super) fn certain_steps(&self, fan_out: FanOutIndex) -> HashSet<StepIndex> {
        let row = self.fan_out(fan_out);
        let mut branch = Branch { given: self.given(row), waiting: HashMap::new(), unmet: HashMap::new() };
        let takers: HashSet<StepIndex> =
            row.own.iter().flat_map(|event| &self.event(*event).takers).copied().collect();
        let mut certain: HashSet<StepIndex> = HashSet::new();
        let mut new: Vec<StepIndex> =
            takers.into_iter().filter(|step| branch.wait(row, *step, self.step(*step))).collect();
        while let Some(step) = new.pop() {
            if !certain.insert(step) {
                continue;
            }
            let always = |output: &&OutputRow| output.least > 0 && output.fan_out.is_none();
            for output in self.step(step).outputs.iter().filter(always) {
                new.extend(branch.comes(output.event));
            }
        }
        certain
    }

    /// The events that each branch sees: its item, and those that the step that opens it requires.
    fn given(&self, row: &FanOutRow) -> HashSet<EventIndex> {
        let plain = taken(self.step(row.step)).filter(|input| is_plain(input.kind) && !input.optional);
        let required = plain.filter_map(|input| match input.events[..] {
            [event] => Some(event),
            _ => None,
        });
        required.chain([row.item]).collect()
    }
}

/// The certain parts of a branch so far.
struct Branch {
    given: HashSet<EventIndex>,
    /// By event, the inputs that need it or another event: their steps, and their places.
    waiting: HashMap<EventIndex, Vec<(StepIndex, usize)>>,
    /// The places of the inputs that a step still needs.
    unmet: HashMap<StepIndex, HashSet<usize>>,
}

impl Branch {
    /// Lets the step wait for the inputs that are not certain yet. Returns whether there is none.
    fn wait(&mut self, branch: &FanOutRow, index: StepIndex, step: &StepRow) -> bool {
        let required = || step.inputs.iter().enumerate().filter(|(_, row)| row.triggers() && !row.optional);
        let is_sure = step.precondition.is_none() && required().all(|(_, input)| is_plain(input.kind));
        let is_of_branch = required().any(|(_, input)| input.events.iter().any(|event| branch.has(*event)));
        if !is_sure || !is_of_branch {
            return false;
        }
        let is_given = |event: &EventIndex| self.given.contains(event);
        let open = required().filter(|(_, input)| !input.events.iter().any(is_given));
        let open: Vec<usize> = open.map(|(place, _)| place).collect();
        for place in &open {
            for event in &step.inputs[*place].events {
                self.waiting.entry(*event).or_default().push((index, *place));
            }
        }
        let is_certain = open.is_empty();
        self.unmet.insert(index, open.into_iter().collect());
        is_certain
    }

    /// Notes that the event comes for certain. Returns the steps that are certain now.
    fn comes(&mut self, event: EventIndex) -> Vec<StepIndex> {
        let waiting = self.waiting.remove(&event).unwrap_or_default();
        let unmet = &mut self.unmet;
        let met = waiting.into_iter().filter(|(step, place)| {
            unmet.get_mut(step).is_some_and(|places| places.remove(place) && places.is_empty())
        });
        met.map(|(step, _)| step).collect()
    }
}

fn is_plain(kind: InputKind) -> bool {
    matches!(kind, InputKind::One | InputKind::List)
}
