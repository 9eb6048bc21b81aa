//! The relation between gathers and fan-outs (S48). A fixed-point iteration collects the events that can occur in the
//! branches' own scope of each fan-out.

use super::events::{Events, MOST};
use super::failures;
use super::plan::{Plan, PlannedInput, PlannedOutput, Take};

/// Per fan-out the events that its branches can hold in their own scope, the item among them.
pub(super) fn own_events(plan: &Plan) -> Vec<Events> {
    let types = plan.events.len() + plan.fan_outs().len() + failures::caught(plan).len();
    assert!(types <= MOST, "a plan has at most {MOST} event types, fan-outs and caught steps, not {types}");
    let items = plan.fan_outs().into_iter().map(|place| Events::from_iter([place.item]));
    let own: Vec<Events> = std::iter::once(sent(plan)).chain(items).collect();
    let emitted: Vec<Events> = (0..plan.steps.len()).map(|step| emitted_beside(plan, step)).collect();
    let mut scopes = Scopes { seen: own.clone(), own };
    loop {
        let grown = scopes.grown(plan, &emitted);
        if grown == scopes {
            return scopes.own.split_off(1);
        }
        scopes = grown;
    }
}

/// The root, and after it the branches of each fan-out.
#[derive(Clone, PartialEq, Eq)]
struct Scopes {
    /// Per scope the events that it can contain.
    own: Vec<Events>,
    /// Per scope the events that it can see: its own, and those that the scopes can see in which its fan-out can open.
    seen: Vec<Events>,
}

impl Scopes {
    /// One iteration: adds the replies to requests, and the events of all steps that can run.
    fn grown(&self, plan: &Plan, emitted: &[Events]) -> Self {
        let mut grown = self.clone();
        let places = plan.fan_outs();
        for (scope, own) in self.own.iter().enumerate() {
            grown.hold(scope, own.iter().filter_map(|event| plan.events.get(event)?.reply).collect());
        }
        for (number, step) in plan.steps.iter().enumerate() {
            let inputs = step.inputs.iter().map(|input| (input, taken(plan, &self.own[1..], number, input)));
            let inputs: Vec<(&PlannedInput, Events)> = inputs.collect();
            for scope in (0..self.own.len()).filter(|scope| self.can_run(&inputs, *scope)) {
                grown.hold(scope, emitted[number]);
                let opened = places.iter().enumerate().filter(|(_, place)| place.step == number);
                opened.for_each(|(fan_out, _)| grown.seen[fan_out + 1].add(self.seen[scope]));
            }
        }
        grown
    }

    fn hold(&mut self, scope: usize, events: Events) {
        self.own[scope].add(events);
        self.seen[scope].add(events);
    }

    /// Whether a step can run in a scope: an event of the scope itself triggers it, and the scope sees all its required
    /// inputs.
    fn can_run(&self, inputs: &[(&PlannedInput, Events)], scope: usize) -> bool {
        let (own, seen) = (self.own[scope], self.seen[scope]);
        inputs.iter().any(|(input, taken)| !input.passive && taken.meets(own))
            && inputs.iter().all(|(input, taken)| {
                // A step that gathers its own events has to begin without one.
                input.can_lack() || input.take == Take::Gather || taken.meets(seen)
            })
    }
}

/// The events from outside: those marked so, and those without any other source.
fn sent(plan: &Plan) -> Events {
    let is_emitted = |event: usize| {
        plan.steps.iter().flat_map(|step| &step.outputs).any(|output| match output {
            PlannedOutput::FanOut(item) => *item == event,
            output => beside(plan, output).contains(&Some(event)),
        })
    };
    let events = plan.events.iter().enumerate();
    let sent = events.filter(|(event, planned)| {
        let alone = !is_emitted(*event) && planned.replies_to.is_none() && !planned.failure;
        planned.start || planned.external || alone
    });
    sent.map(|(event, _)| event).collect()
}

/// The event types of a parameter; for a gather, the events of its fan-outs' completions.
pub(super) fn taken(plan: &Plan, own: &[Events], step: usize, input: &PlannedInput) -> Events {
    if input.take != Take::Gather {
        return failures::named(plan, step, input);
    }
    let places = plan.fan_outs();
    // S59: the named item decides alone.
    let fits = |(fan_out, events): &(usize, &Events)| match input.item {
        Some(item) => item == places[*fan_out].item,
        None => input.events.iter().any(|event| events.contains(*event)),
    };
    own.iter().enumerate().filter(fits).map(|(fan_out, _)| plan.gathered(fan_out)).collect()
}

/// The events that the gathers of one fan-out collect.
pub(super) fn collected(plan: &Plan, own: &[Events], fan_out: usize) -> Events {
    let inputs = plan.steps.iter().flat_map(|step| &step.inputs);
    let item = plan.fan_outs()[fan_out].item;
    let is_named = |input: &&PlannedInput| input.item.is_none_or(|named| named == item);
    let gathers = inputs.filter(|input| input.take == Take::Gather).filter(is_named);
    // S59: where the item is named, all events of the branch count.
    let events = gathers.flat_map(|input| input.events.iter().map(|event| (*event, input.item.is_some())));
    events
        .filter(|(event, is_named)| *is_named || own[fan_out].contains(*event))
        .map(|(event, _)| event)
        .collect()
}

/// The events of a step in its own scope: its outputs, the completions of its fan-outs, and its failure if caught.
/// Items of a fan-out are in the branches below.
fn emitted_beside(plan: &Plan, step: usize) -> Events {
    let events = plan.steps[step].outputs.iter().flat_map(|output| beside(plan, output)).flatten();
    let places = plan.fan_outs();
    let gathered = places.iter().enumerate().filter(|(_, place)| place.step == step);
    let gathered = gathered.map(|(fan_out, _)| plan.gathered(fan_out));
    events.chain(gathered).chain(plan.failed(step)).collect()
}

/// The event of an output in its step's scope, at once or later.
fn beside(plan: &Plan, output: &PlannedOutput) -> [Option<usize>; 2] {
    match *output {
        PlannedOutput::Events(event) | PlannedOutput::Timer(event) => [Some(event), None],
        PlannedOutput::Expiring(request) => [Some(request), plan.events[request].expired],
        PlannedOutput::FanOut(_) => [None, None],
    }
}
