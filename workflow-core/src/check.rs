//! Checks in constant evaluation: what the compiler says of a workflow before it ever runs.

use crate::event::Event;
use crate::table::TableSpec;
use crate::workflow::Workflow;

/// Refuses to compile if no step of `W` takes `E` by itself.
pub(crate) const fn taken_from_outside<W: Workflow, E: Event>() {
    assert!(
        takes(W::TABLE, E::NAME),
        "no step of this workflow takes this event: give a step a parameter of its type, or send another event"
    );
}

const fn takes(table: &TableSpec, event: &str) -> bool {
    let mut step = 0;
    while step < table.steps.len() {
        let inputs = table.steps[step].inputs;
        let mut input = 0;
        while input < inputs.len() {
            if inputs[input].kind.takes_events() && names(inputs[input].events, event) {
                return true;
            }
            input += 1;
        }
        step += 1;
    }
    false
}

const fn names(events: &[crate::event::EventType], event: &str) -> bool {
    let mut at = 0;
    while at < events.len() {
        if same(events[at].name, event) {
            return true;
        }
        at += 1;
    }
    false
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[track_caller]
pub const fn input(_: &TableSpec, _: usize, _: usize) {}
#[track_caller]
pub const fn step(_: &TableSpec, _: usize) {}
#[track_caller]
pub const fn precondition(_: &TableSpec, _: usize, _: usize) {}
#[track_caller]
pub const fn preconditions(_: &TableSpec, _: usize) {}
#[track_caller]
pub const fn output(_: &TableSpec, _: usize) {}
#[track_caller]
pub const fn workflow(_: &TableSpec) {}
#[track_caller]
pub const fn only_stop(_: &TableSpec, _: usize) {}
