//! Checks of the graph in constant evaluation: the compiler refuses a workflow that could never work (S9, S48).
//!
//! This module owns the rules about the graph of steps and events, the search that they need, and their
//! messages. The checks know nothing of runs, values or macros. The same code checks tables that are built at
//! run time.
//!
//! ```text
//!  const table ─ number::fill ─▶ graph in fixed memory ◀─ table built at run time
//!                                   │ explore: failures, gathers, faults, reach,
//!                                   │          deadlocks, disjoint inputs, capacities, loops
//!                                   ▼
//!                               Findings: one bit per faulty step
//!                                   │ generated code asks per place of the source
//!                                   ▼
//!                               message, at the span of the faulty parameter
//! ```
//!
//! A table explores its graph once, when the compiler makes it, and stores one bit per step in `Findings`.
//! Generated code then asks about each place in the source that can have a message. Such a question costs
//! next to nothing while the bit of the step is 0. Otherwise it explores the graph again to make the message.
//!
//! Invariant: one mistake, one message. The search takes a mistake that has its own message as repaired, so
//! that steps behind it are not reported again.
//!
//! Example: in a workflow whose step `ship` takes `Paid`, which no step emits, `explore` gives the parameter
//! `Fault::Unproduced`. [`input`] then panics in constant evaluation: "nothing produces `Paid`, which step
//! `ship` requires: …".

use super::{StepSpec, TableSpec};
use crate::event::{Event, EventType};

mod branches;
mod cells;
mod failures;
mod list_capacity;
mod graph;
mod loops;
mod mistake;
mod names;
mod nodes;
mod number;
mod order;
mod disjoint;
mod preconditions;
mod reach;
mod rows;
mod rules;
mod scopes;
pub(crate) mod messages;
mod output_rules;
mod deadlock;
mod text;
mod whole;

pub(crate) use cells::{Cell, Cells};
pub(crate) use graph::{
    FanOut as GraphFanOut, Input as GraphInput, Member as GraphMember, Output as GraphOutput, RuleGraph,
};
pub(crate) use mistake::Mistake;
pub(crate) use names::{Names, near};
pub(crate) use nodes::{Event as GraphEvent, Step as GraphStep};
pub(crate) use rows::Rows;
pub(crate) use rules::SourcePlace;
pub(crate) use scopes::{Scopes, Wait};

use names::same;
use number::Space;
use text::Text;

/// The result of exploring a table: the steps that have a mistake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Findings {
    /// One bit per step, set where the step has a mistake.
    steps: [u64; 8],
    /// Whether the graph fits the compiler's fixed memory. Otherwise nothing was explored.
    pub(crate) complete: bool,
    /// Whether no run can begin. Not set where a step has a mistake.
    /// Asked at the workflow's type.
    whole: bool,
    /// Whether no run can complete.
    /// Asked at the declared output, or at the workflow's type without one.
    end: bool,
}

impl Findings {
    /// Explores the graph of these steps. O(size of the table) if nothing is wrong.
    pub(crate) const fn of(steps: &'static [StepSpec], output: &'static [EventType]) -> Self {
        let mut findings = Self { steps: [0; 8], complete: true, whole: false, end: false };
        // The memory lives only here: a table stores the findings, and not the graph.
        let mut space = Space::EMPTY;
        let graph = explored(&mut space, steps, output);
        // Rows of a graph that overflowed may have wrong numbers, so no rule may look at them.
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
        // These two rules look at the mistakes of steps themselves, and say nothing in doubt.
        findings.whole = graph.mistake(SourcePlace::Whole).is_some();
        findings.end = graph.mistake(SourcePlace::End).is_some();
        findings
    }

    /// Steps beyond the bits exist only in a table that does not fit, which was not explored.
    const fn has(&self, step: usize) -> bool {
        step < 512 && self.steps[step / 64] & (1 << (step % 64)) != 0
    }
}

/// Fills and explores a graph in this memory.
const fn explored<'s>(
    space: &'s mut Space<'static>,
    steps: &'static [StepSpec],
    output: &'static [EventType],
) -> RuleGraph<'s, 'static> {
    let mut graph = space.graph();
    number::fill(&mut graph, steps, output);
    graph.explore();
    graph
}

/// The mistake at a place, found by exploring the graph again. Called only where the findings have a mistake, so a
/// sound workflow explores its graph once.
const fn mistake(table: &TableSpec, place: SourcePlace) -> Option<Mistake<'static>> {
    let mut space = Space::EMPTY;
    let graph = explored(&mut space, table.steps, table.output);
    graph.own_mistake(place)
}

/// Stops the compilation with the message of a mistake, if there is one.
/// The message stands where generated code calls: `track_caller` passes the place on through each function
/// here.
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

/// Refuses a parameter of a step that has a mistake.
#[track_caller]
pub const fn input(table: &TableSpec, step: usize, input: usize) {
    if table.findings.has(step) {
        report(mistake(table, SourcePlace::Input(step, input)).as_ref());
    }
}

/// Refuses a step that can never run, and the first step of an endless loop.
#[track_caller]
pub const fn step(table: &TableSpec, step: usize) {
    if table.findings.has(step) {
        report(mistake(table, SourcePlace::Step(step)).as_ref());
    }
}

/// Refuses `catches` on a step that takes no failures.
#[track_caller]
pub const fn catches(table: &TableSpec, step: usize) {
    if table.findings.has(step) {
        report(mistake(table, SourcePlace::Catches(step)).as_ref());
    }
}

/// Refuses a parameter of a precondition that the inputs of its step do not cover.
#[track_caller]
pub const fn precondition(table: &TableSpec, step: usize, input: usize) {
    if table.findings.has(step) {
        report(mistake(table, SourcePlace::Precondition(step, input)).as_ref());
    }
}

/// Refuses a precondition declared elsewhere, if the inputs of its step do not cover its parameters.
/// Generated code does not know the parameters then, so their messages stand at the name of the precondition.
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

/// Refuses a stop event that the workflow's output cannot hold, and a fan-out whose branches lead nowhere.
#[track_caller]
pub const fn output(table: &TableSpec, step: usize) {
    if table.findings.has(step) {
        report(mistake(table, SourcePlace::Output(step)).as_ref());
    }
}

/// Refuses a workflow whose runs can never begin.
#[track_caller]
pub const fn workflow(table: &TableSpec) {
    if table.findings.whole {
        report(mistake(table, SourcePlace::Whole).as_ref());
    }
}

/// Refuses a workflow whose runs nothing ends, or that says that they end with what does not end them.
#[track_caller]
pub const fn end(table: &TableSpec) {
    if table.findings.end {
        report(mistake(table, SourcePlace::End).as_ref());
    }
}

/// Refuses every mistake of a table, for a workflow whose table depends on type parameters. One message stands for all:
/// constant evaluation stops at the first.
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

/// Refuses to compile an event sent to a run if no step of the table takes `E`, and `E` ends no run of it.
#[track_caller]
pub(crate) const fn taken_from_outside<E: Event>(table: &'static TableSpec) {
    if takes(table, E::NAME) || (E::ROLES.is_stop() && is_among(E::NAME, table.output)) {
        return;
    }
    let mut space = Space::EMPTY;
    // Explored only for a stop event that the output does not declare, and for the message: the links say which
    // events steps take.
    let graph = explored(&mut space, table.steps, table.output);
    if graph.ends_with(E::NAME) {
        return;
    }
    if E::ROLES.is_stop() {
        say(&messages::ends_no_run(table.name, E::NAME));
    }
    say(&messages::not_taken(table.name, E::NAME, &graph.taken_like(E::ROLES)));
}

/// Whether a step of the table takes the event.
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

/// Whether one of the types has this wire name, by which types are told apart here.
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
