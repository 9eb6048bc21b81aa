//! Which gathers take which fan-outs (S48): found by growing, step by step, what can be emitted in the own
//! scope of each fan-out's branches, until nothing new is found.

use std::collections::BTreeSet;

use super::plan::{Plan, PlannedInput, PlannedOutput, Take};

/// Per fan-out the events that its branches can hold in their own scope, the item among them.
pub(crate) fn own_events(plan: &Plan) -> Vec<BTreeSet<usize>> {
    let mut own: Vec<BTreeSet<usize>> =
        plan.fan_outs().iter().map(|place| BTreeSet::from([place.item])).collect();
    let emitted: Vec<BTreeSet<usize>> =
        (0..plan.steps.len()).map(|step| emitted_beside(plan, step)).collect();
    loop {
        let grow_with = |events| grow(plan, &emitted, &own, events);
        let grown: Vec<BTreeSet<usize>> = own.iter().map(grow_with).collect();
        if grown == own {
            return own;
        }
        own = grown;
    }
}

/// The event types a parameter takes; for a gather the events that say that a fan-out is gathered.
pub(crate) fn taken(plan: &Plan, own: &[BTreeSet<usize>], input: &PlannedInput) -> Vec<usize> {
    if input.take != Take::Gather {
        return input.events.clone();
    }
    let fitting = own.iter().enumerate().filter(|(_, events)| events.contains(&input.events[0]));
    fitting.map(|(fan_out, _)| plan.gathered(fan_out)).collect()
}

/// The events that the gathers of one fan-out collect.
pub(crate) fn collected(plan: &Plan, own: &[BTreeSet<usize>], fan_out: usize) -> BTreeSet<usize> {
    let inputs = plan.steps.iter().flat_map(|step| &step.inputs);
    let gathers = inputs.filter(|input| input.take == Take::Gather);
    gathers.map(|input| input.events[0]).filter(|event| own[fan_out].contains(event)).collect()
}

fn grow(
    plan: &Plan,
    emitted: &[BTreeSet<usize>],
    own: &[BTreeSet<usize>],
    events: &BTreeSet<usize>,
) -> BTreeSet<usize> {
    let mut grown = events.clone();
    grown.extend(events.iter().filter_map(|event| plan.events.get(*event)?.reply));
    for (step, emitted) in plan.steps.iter().zip(emitted) {
        let mut taken = step.inputs.iter().flat_map(|input| taken(plan, own, input));
        if taken.any(|event| events.contains(&event)) {
            grown.extend(emitted);
        }
    }
    grown
}

/// What a step leaves in the scope it runs in: its events, and that its fan-outs are gathered. The items of
/// a fan-out lie in branches below.
fn emitted_beside(plan: &Plan, step: usize) -> BTreeSet<usize> {
    let events = plan.steps[step].outputs.iter().filter_map(|output| match output {
        PlannedOutput::Events(event) => Some(*event),
        PlannedOutput::FanOut(_) => None,
    });
    let places = plan.fan_outs();
    let gathered = places.iter().enumerate().filter(|(_, place)| place.step == step);
    events.chain(gathered.map(|(fan_out, _)| plan.gathered(fan_out))).collect()
}
