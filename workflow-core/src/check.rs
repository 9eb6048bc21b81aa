//! Checks in constant evaluation: what the compiler says of a workflow before it ever runs (S9, S48).
//!
//! A table explores its graph once, when it is made, and notes which of its steps there is something to say
//! of. Generated code then asks for each place that a message can stand at, which costs next to nothing as
//! long as there is none. The same rules are evaluated for tables built at run time; nothing here depends on
//! when.

use crate::event::{Event, EventType};
use crate::table::{StepSpec, TableSpec};
use crate::workflow::Workflow;

mod branches;
mod failures;
mod full;
mod graph;
mod loops;
mod mistake;
mod names;
mod number;
mod parted;
mod preconditions;
mod reach;
mod rows;
mod rules;
pub(crate) mod say;
mod stops;
mod stuck;
mod text;
mod whole;

pub(crate) use graph::{
    Event as GraphEvent, FanOut as GraphFanOut, Graph, Input as GraphInput, Member as GraphMember,
    Output as GraphOutput, Step as GraphStep,
};
pub(crate) use mistake::Mistake;
pub(crate) use names::{Names, near};
pub(crate) use rows::Rows;
pub(crate) use rules::Place;

use names::same;
use number::Space;
use text::Text;

/// Which steps of a table there is something to say of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Findings {
    /// A bit per step.
    steps: [u64; 8],
    /// Whether the graph is small enough to be explored by the compiler.
    pub(crate) complete: bool,
    /// Whether runs cannot begin.
    whole: bool,
    /// Whether runs cannot complete.
    end: bool,
}

impl Findings {
    /// Explores the graph of these steps. O(steps and what they take and emit), if nothing is wrong.
    pub(crate) const fn of(steps: &'static [StepSpec], output: &'static [EventType]) -> Self {
        let mut findings = Self { steps: [0; 8], complete: true, whole: false, end: false };
        let mut space = Space::EMPTY;
        let graph = explored(&mut space, steps, output);
        if graph.overflowed() {
            findings.complete = false;
            return findings;
        }
        let mut step = 0;
        while step < steps.len() {
            if graph.first_mistake_of(step).is_some() {
                findings.steps[step / 64] |= 1 << (step % 64);
            }
            step += 1;
        }
        findings.whole = graph.mistake(Place::Whole).is_some();
        findings.end = graph.mistake(Place::End).is_some();
        findings
    }

    const fn has(&self, step: usize) -> bool {
        step < 512 && self.steps[step / 64] & (1 << (step % 64)) != 0
    }
}

const fn explored<'s>(
    space: &'s mut Space<'static>,
    steps: &'static [StepSpec],
    output: &'static [EventType],
) -> Graph<'s, 'static> {
    let mut graph = space.graph();
    number::fill(&mut graph, steps, output);
    graph.explore();
    graph
}

const fn mistake(table: &TableSpec, place: Place) -> Option<Mistake<'static>> {
    let mut space = Space::EMPTY;
    let graph = explored(&mut space, table.steps, table.output);
    graph.own_mistake(place)
}

#[track_caller]
const fn report(mistake: Option<&Mistake<'static>>) {
    if let Some(mistake) = mistake {
        say(&mistake.text());
    }
}

#[track_caller]
const fn say(text: &Text) {
    panic!("{}", text.as_str());
}

/// Refuses what is wrong with a parameter of a step.
#[track_caller]
pub const fn input(table: &TableSpec, step: usize, input: usize) {
    if table.findings.has(step) {
        report(mistake(table, Place::Input(step, input)).as_ref());
    }
}

/// Refuses a step that nothing can run, and the first one of a loop without a way out.
#[track_caller]
pub const fn step(table: &TableSpec, step: usize) {
    if table.findings.has(step) {
        report(mistake(table, Place::Step(step)).as_ref());
    }
}

/// Refuses steps to catch for a step that takes no failures.
#[track_caller]
pub const fn catches(table: &TableSpec, step: usize) {
    if table.findings.has(step) {
        report(mistake(table, Place::Catches(step)).as_ref());
    }
}

/// Refuses a parameter of a precondition that its step cannot fill.
#[track_caller]
pub const fn precondition(table: &TableSpec, step: usize, input: usize) {
    if table.findings.has(step) {
        report(mistake(table, Place::Precondition(step, input)).as_ref());
    }
}

/// Refuses a precondition that is declared elsewhere if its step cannot fill all of its parameters.
#[track_caller]
pub const fn preconditions(table: &TableSpec, step: usize) {
    if let Some(asked) = &table.steps[step].precondition {
        let mut input = 0;
        while input < asked.inputs.len() {
            precondition(table, step, input);
            input += 1;
        }
    }
}

/// Refuses a stop event that the workflow's output cannot be made of, and a fan-out whose branches lead
/// nowhere.
#[track_caller]
pub const fn output(table: &TableSpec, step: usize) {
    if table.findings.has(step) {
        report(mistake(table, Place::Output(step)).as_ref());
    }
}

/// Refuses a workflow whose runs cannot begin.
#[track_caller]
pub const fn workflow(table: &TableSpec) {
    if table.findings.whole {
        report(mistake(table, Place::Whole).as_ref());
    }
}

/// Refuses a workflow whose runs nothing ends, or that says that they end with what does not end them.
#[track_caller]
pub const fn end(table: &TableSpec) {
    if table.findings.end {
        report(mistake(table, Place::End).as_ref());
    }
}

/// Refuses whatever is wrong with a table: for workflows whose table is known only once their parameters are.
#[track_caller]
pub const fn all(table: &TableSpec) {
    let mut at = 0;
    while at < table.steps.len() {
        if table.findings.has(at) {
            let mut space = Space::EMPTY;
            report(explored(&mut space, table.steps, table.output).first_mistake_of(at).as_ref());
        }
        at += 1;
    }
    workflow(table);
    end(table);
}

/// Refuses to compile if no step of `W` takes `E`.
#[track_caller]
pub(crate) const fn taken_from_outside<W: Workflow, E: Event>() {
    if takes(W::TABLE, E::NAME) {
        return;
    }
    let mut space = Space::EMPTY;
    let taken = explored(&mut space, W::TABLE.steps, W::TABLE.output).taken_like(E::ROLES);
    say(&say::not_taken(W::TABLE.name, E::NAME, &taken));
}

const fn takes(table: &TableSpec, event: &str) -> bool {
    let mut step = 0;
    while step < table.steps.len() {
        let inputs = table.steps[step].inputs;
        let mut input = 0;
        while input < inputs.len() {
            if inputs[input].kind.takes_events() && is_among(event, inputs[input].events) {
                return true;
            }
            input += 1;
        }
        step += 1;
    }
    false
}

const fn is_among(event: &str, events: &[EventType]) -> bool {
    let mut at = 0;
    while at < events.len() {
        if same(events[at].name, event) {
            return true;
        }
        at += 1;
    }
    false
}
