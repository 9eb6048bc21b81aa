//! Which gathers take which fan-outs (S48): found by growing, step by step, what can be emitted in the own
//! scope of each fan-out's branches, until nothing new is found.

use std::collections::BTreeSet;

use super::plan::{Plan, PlannedInput, PlannedOutput, Take};

/// Per fan-out the events that its branches can hold in their own scope, the item among them.
pub(crate) fn own_events(plan: &Plan) -> Vec<BTreeSet<usize>> {
    let items = plan.fan_outs().into_iter().map(|place| BTreeSet::from([place.item]));
    let mut scopes: Vec<BTreeSet<usize>> = std::iter::once(sent(plan)).chain(items).collect();
    loop {
        let seen = seen(plan, &scopes);
        let grown: Vec<BTreeSet<usize>> =
            (0..scopes.len()).map(|scope| grow(plan, &scopes, &seen, scope)).collect();
        if grown == scopes {
            return scopes.split_off(1);
        }
        scopes = grown;
    }
}

/// What the outside can send: what is marked so, and what nobody else could supply.
fn sent(plan: &Plan) -> BTreeSet<usize> {
    let is_emitted = |event: usize| {
        plan.steps.iter().flat_map(|step| &step.outputs).any(|output| match output {
            PlannedOutput::Events(emitted) => *emitted == event,
            PlannedOutput::FanOut(item) => *item == event,
        })
    };
    let events = plan.events.iter().enumerate();
    let sent = events.filter(|(event, planned)| {
        planned.start || planned.external || (!is_emitted(*event) && planned.replies_to.is_none())
    });
    sent.map(|(event, _)| event).collect()
}

/// What each scope sees: what it holds, and what the scopes see in which a step can open it. Found by asking
/// again until no answer changes.
fn seen(plan: &Plan, scopes: &[BTreeSet<usize>]) -> Vec<BTreeSet<usize>> {
    let mut seen = scopes.to_vec();
    loop {
        let mut grown = seen.clone();
        for (fan_out, place) in plan.fan_outs().iter().enumerate() {
            for scope in 0..scopes.len() {
                if can_run(plan, scopes, &seen, place.step, scope) {
                    grown[fan_out + 1].extend(&seen[scope]);
                }
            }
        }
        if grown == seen {
            return seen;
        }
        seen = grown;
    }
}

/// Whether a step can run in a scope: something of the scope's own triggers it, and it sees all it requires.
fn can_run(
    plan: &Plan,
    scopes: &[BTreeSet<usize>],
    seen: &[BTreeSet<usize>],
    step: usize,
    scope: usize,
) -> bool {
    let inputs = &plan.steps[step].inputs;
    let is_in = |input: &PlannedInput, events: &BTreeSet<usize>| {
        taken(plan, &scopes[1..], input).iter().any(|event| events.contains(event))
    };
    inputs.iter().any(|input| is_in(input, &scopes[scope]))
        && inputs.iter().all(|input| {
            // A step that gathers what it emits itself has to begin somewhere.
            input.optional || input.take == Take::Gather || is_in(input, &seen[scope])
        })
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

fn grow(plan: &Plan, scopes: &[BTreeSet<usize>], seen: &[BTreeSet<usize>], scope: usize) -> BTreeSet<usize> {
    let mut grown = scopes[scope].clone();
    grown.extend(scopes[scope].iter().filter_map(|event| plan.events.get(*event)?.reply));
    for step in (0..plan.steps.len()).filter(|step| can_run(plan, scopes, seen, *step, scope)) {
        grown.extend(emitted_beside(plan, step));
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
