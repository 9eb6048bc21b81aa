//! Checks of single rows, for tables built at run time. In a typed workflow the macros and the types refuse
//! the same mistakes. How rows fit together is the concern of the graph rules.

use std::collections::HashSet;
use std::sync::Arc;

use super::draft::{InputDraft, StepDraft, TableDraft};
use super::graph::Strictness;
use crate::spec::{InputKind, TableProblem};

impl TableDraft {
    /// Reports the problems of single rows, and marks the events that they make unclear.
    pub(super) fn check_rows(&mut self, strictness: Strictness) {
        let names = self.named().filter_map(|(what, name)| problem_of_name(what, name));
        let empty = self.steps.iter().filter_map(problem_of_empty_inputs);
        let mut problems: Vec<TableProblem> = names.chain(empty).collect();
        if strictness == Strictness::Everything {
            problems.extend(self.problems_of_uses());
            problems.extend(self.problems_of_roles());
            self.note_shown();
        }
        self.problems.extend(problems);
    }

    /// All names of the table, each with the kind of thing it names.
    fn named(&self) -> impl Iterator<Item = (&'static str, &Arc<str>)> {
        let workflow = std::iter::once(("the workflow", &self.name));
        // Events that only a step names are reported already.
        let events = self.events.iter().filter(|event| !event.unclear || event.roles.is_reply());
        let preconditions = self.steps.iter().filter_map(|step| step.precondition.as_ref());
        workflow
            .chain(events.map(|event| ("an event", &event.name)))
            .chain(self.steps.iter().map(|step| ("a step", &step.name)))
            .chain(preconditions.map(|precondition| ("a precondition", &precondition.name)))
    }

    /// S2: no step takes or emits a display-only event, and an input names each event once.
    fn problems_of_uses(&self) -> Vec<TableProblem> {
        let mut problems = Vec::new();
        for step in &self.steps {
            let asked = step.precondition.iter().flat_map(|precondition| &precondition.inputs);
            for input in step.inputs.iter().chain(asked) {
                problems.extend(self.problems_of_input(step, input));
            }
            let shown = step.outputs.iter().filter(|output| !self.events[output.event].roles.is_control());
            problems.extend(shown.map(|output| {
                let event = self.events[output.event].name.to_string();
                TableProblem::DisplayEmitted { step: step.name.to_string(), event }
            }));
        }
        // A precondition repeats inputs of its step, and so their problems.
        let mut distinct: Vec<TableProblem> = Vec::new();
        for problem in problems {
            if !distinct.contains(&problem) {
                distinct.push(problem);
            }
        }
        distinct
    }

    fn problems_of_input(&self, step: &StepDraft, input: &InputDraft) -> Vec<TableProblem> {
        let (mut problems, mut named) = (Vec::new(), HashSet::new());
        for event in &input.events {
            // Most inputs name one type.
            let is_first = input.events.len() == 1 || named.insert(*event);
            let (row, step) = (&self.events[*event], step.name.to_string());
            // An enum may hold one Rust type under two of its aliases; that is still one event.
            if row.rust.is_none() && !is_first {
                problems.push(TableProblem::TakenTwice { step, event: row.name.to_string() });
            } else if !row.roles.is_control() {
                problems.push(TableProblem::DisplayTaken { step, event: row.name.to_string() });
            }
        }
        problems
    }

    /// Marks display-only events that a step takes or emits.
    fn note_shown(&mut self) {
        let taken = self.all_inputs().flat_map(|input| &input.events).copied();
        let used: Vec<usize> = taken.chain(self.all_outputs().map(|output| output.event)).collect();
        for event in used {
            let row = &mut self.events[event];
            row.unclear |= !row.roles.is_control();
        }
    }

    fn problems_of_roles(&mut self) -> Vec<TableProblem> {
        let mut problems = Vec::new();
        for event in &mut self.events {
            if event.roles.is_start() && event.roles.is_stop() {
                problems.push(TableProblem::StartsAndStops { event: event.name.to_string() });
                event.unclear = true;
            }
        }
        problems
    }
}

fn problem_of_name(what: &'static str, name: &Arc<str>) -> Option<TableProblem> {
    if name.is_empty() {
        return Some(TableProblem::EmptyName { what });
    }
    let is_garbled = name.chars().any(|char| char.is_whitespace() || char.is_control());
    is_garbled.then(|| TableProblem::GarbledName { what, name: name.to_string() })
}

fn problem_of_empty_inputs(step: &StepDraft) -> Option<TableProblem> {
    let asked = step.precondition.iter().flat_map(|precondition| &precondition.inputs);
    let mut inputs = step.inputs.iter().chain(asked);
    // A fixed list of length 0 is reported with the graph.
    let is_empty = |input: &InputDraft| input.takes_nothing() && input.kind != InputKind::Fixed(0);
    inputs.any(is_empty).then(|| TableProblem::EmptyInput { step: step.name.to_string() })
}
