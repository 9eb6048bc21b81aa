//! The relation between failing and catching steps (S29).

use super::events::Events;
use super::plan::{Plan, PlannedInput, Take};

/// The steps whose failure some step takes, in declaration order.
pub(super) fn caught(plan: &Plan) -> Vec<usize> {
    let caught: Vec<Vec<usize>> = (0..plan.steps.len()).map(|step| caught_by(plan, step)).collect();
    (0..plan.steps.len()).filter(|step| caught.iter().flatten().any(|other| other == step)).collect()
}

/// The steps whose failures this step takes: those it names, or all that take none.
fn caught_by(plan: &Plan, step: usize) -> Vec<usize> {
    let planned = &plan.steps[step];
    if !takes_failures(plan, step) || planned.on_end.is_some() {
        return Vec::new();
    }
    if !planned.catches.is_empty() {
        return planned.catches.clone();
    }
    let is_caught = |other: &usize| plan.steps[*other].on_end.is_none() && !takes_failures(plan, *other);
    (0..plan.steps.len()).filter(is_caught).collect()
}

fn takes_failures(plan: &Plan, step: usize) -> bool {
    let inputs = plan.steps[step].inputs.iter();
    let inputs = inputs.filter(|input| input.take != Take::Gather && !input.passive);
    inputs.flat_map(|input| &input.events).any(|event| is_failure(plan, *event))
}

fn is_failure(plan: &Plan, event: usize) -> bool {
    plan.events.get(event).is_some_and(|planned| planned.failure)
}

/// The event types of a parameter; failures become those of the steps that its step catches.
pub(super) fn named(plan: &Plan, step: usize, input: &PlannedInput) -> Events {
    let failed: Vec<usize> =
        caught_by(plan, step).into_iter().filter_map(|caught| plan.failed(caught)).collect();
    let expands = |event: usize| is_failure(plan, event) && !failed.is_empty();
    let named =
        input.events.iter().flat_map(|event| if expands(*event) { failed.clone() } else { vec![*event] });
    named.collect()
}
