//! Finds the differences between two shapes. Steps and events are matched by name. Inputs and outputs have no
//! names and are matched by their events.
//!
//! Matching prefers equality: the inputs `[A, List<B>]` and `[List<B>, Option<A>]` differ in `A` alone, which
//! became optional.

use std::sync::Arc;

use super::TableDifference;
use crate::table::keys;
use crate::table::{EventShape, InputShape, OutputShape, StepShape, TableShape};

impl TableShape {
    /// The differences between this table, the old one, and the one that replaces it: `old.differences(&new)`.
    /// Steps come first, in the order of this table.
    ///
    /// The order of rows makes no difference, nor do the inputs of preconditions. O(rows²).
    pub fn differences(&self, now: &Self) -> Vec<TableDifference> {
        let mut differences = Vec::new();
        for was in &self.steps {
            match now.step(&was.name) {
                Some(is) => {
                    step(was, is, &mut differences);
                    // Added and removed steps have their own difference.
                    let is_in_both = |name: &str| self.step(name).is_some() && now.step(name).is_some();
                    catches(was, is, is_in_both, &mut differences);
                }
                None => differences.push(TableDifference::StepRemoved { step: Arc::clone(&was.name) }),
            }
        }
        let new = now.steps.iter().filter(|step| self.step(&step.name).is_none());
        differences.extend(new.map(|step| TableDifference::StepAdded { step: Arc::clone(&step.name) }));
        for was in &self.events {
            match now.event(&was.name) {
                Some(is) => event(was, is, &mut differences),
                None => differences.push(TableDifference::EventRemoved { event: Arc::clone(&was.name) }),
            }
        }
        let new = now.events.iter().filter(|event| self.event(&event.name).is_none());
        differences.extend(new.map(|event| TableDifference::EventAdded { event: Arc::clone(&event.name) }));
        differences
    }
}

fn event(was: &EventShape, is: &EventShape, differences: &mut Vec<TableDifference>) {
    let event = &was.name;
    if was.roles != is.roles {
        let (was, is) = (was.roles, is.roles);
        differences.push(TableDifference::RolesChanged { event: Arc::clone(event), was, is });
    }
    if was.version != is.version {
        let (was, is) = (was.version, is.version);
        differences.push(TableDifference::VersionChanged { event: Arc::clone(event), was, is });
    }
}

fn step(was: &StepShape, is: &StepShape, differences: &mut Vec<TableDifference>) {
    inputs(was, is, differences);
    outputs(was, is, differences);
    preconditions(was, is, differences);
    limits(was, is, differences);
}

fn inputs(was: &StepShape, is: &StepShape, differences: &mut Vec<TableDifference>) {
    let step = || Arc::clone(&was.name);
    let Pairs { changed, removed, added } = pair(&was.inputs, &is.inputs, InputShape::is_alike);
    differences.extend(changed.into_iter().map(|(was, is)| TableDifference::InputChanged {
        step: step(),
        was: was.clone(),
        is: is.clone(),
    }));
    let removed = removed.into_iter().cloned();
    differences.extend(removed.map(|input| TableDifference::InputRemoved { step: step(), input }));
    let added = added.into_iter().cloned();
    differences.extend(added.map(|input| TableDifference::InputAdded { step: step(), input }));
    if was.key != is.key || (is.key.is_none() && !keys::stay(was, is)) {
        differences.push(TableDifference::KeysChanged { step: step() });
    }
}

fn outputs(was: &StepShape, is: &StepShape, differences: &mut Vec<TableDifference>) {
    let step = || Arc::clone(&was.name);
    let alike = |was: &OutputShape, is: &OutputShape| was.event == is.event;
    let Pairs { changed, removed, added } = pair(&was.outputs, &is.outputs, alike);
    differences.extend(changed.into_iter().map(|(was, is)| TableDifference::OutputChanged {
        step: step(),
        was: was.clone(),
        is: is.clone(),
    }));
    let removed = removed.into_iter().cloned();
    differences.extend(removed.map(|output| TableDifference::OutputRemoved { step: step(), output }));
    let added = added.into_iter().cloned();
    differences.extend(added.map(|output| TableDifference::OutputAdded { step: step(), output }));
}

fn preconditions(was: &StepShape, is: &StepShape, differences: &mut Vec<TableDifference>) {
    let step = Arc::clone(&was.name);
    match (&was.precondition, &is.precondition) {
        (None, Some(is)) => {
            let precondition = Arc::clone(&is.name);
            differences.push(TableDifference::PreconditionAdded { step, precondition });
        }
        (Some(was), None) => {
            let precondition = Arc::clone(&was.name);
            differences.push(TableDifference::PreconditionRemoved { step, precondition });
        }
        // The name and the inputs of a precondition are not compared.
        (None, None) | (Some(_), Some(_)) => {}
    }
}

fn catches(
    was: &StepShape,
    is: &StepShape,
    is_in_both: impl Fn(&str) -> bool,
    differences: &mut Vec<TableDifference>,
) {
    let step = || Arc::clone(&was.name);
    let removed = was.catches.iter().filter(|caught| is_in_both(caught) && !is.catches.contains(caught));
    let removed = removed.cloned();
    differences.extend(removed.map(|caught| TableDifference::CatchRemoved { step: step(), caught }));
    let added = is.catches.iter().filter(|caught| is_in_both(caught) && !was.catches.contains(caught));
    let added = added.cloned();
    differences.extend(added.map(|caught| TableDifference::CatchAdded { step: step(), caught }));
}

fn limits(was: &StepShape, is: &StepShape, differences: &mut Vec<TableDifference>) {
    let step = || Arc::clone(&was.name);
    if was.max_executions != is.max_executions {
        let (was, is) = (was.max_executions, is.max_executions);
        differences.push(TableDifference::MaxExecutionsChanged { step: step(), was, is });
    }
    if was.concurrency != is.concurrency {
        let (was, is) = (was.concurrency, is.concurrency);
        differences.push(TableDifference::ConcurrencyChanged { step: step(), was, is });
    }
    if was.limit != is.limit {
        let (was, is) = (was.limit.clone(), is.limit.clone());
        differences.push(TableDifference::LimitChanged { step: step(), was, is });
    }
    if was.continue_on_error != is.continue_on_error {
        differences.push(TableDifference::OnErrorChanged { step: step(), continues: is.continue_on_error });
    }
    if was.at_most_once != is.at_most_once {
        differences.push(TableDifference::AtMostOnceChanged { step: step(), is: is.at_most_once });
    }
    if was.on_end != is.on_end {
        let (was, is) = (was.on_end, is.on_end);
        differences.push(TableDifference::OnEndChanged { step: step(), was, is });
    }
}

/// The result of matching two lists.
struct Pairs<'a, T> {
    changed: Vec<(&'a T, &'a T)>,
    removed: Vec<&'a T>,
    added: Vec<&'a T>,
}

/// Matches equal items first, then similar ones, each with the first one that is left.
fn pair<'a, T: PartialEq>(was: &'a [T], is: &'a [T], alike: impl Fn(&T, &T) -> bool) -> Pairs<'a, T> {
    let mut added: Vec<&T> = is.iter().collect();
    let mut left: Vec<&T> = Vec::new();
    for old in was {
        match added.iter().position(|new| *new == old) {
            Some(place) => drop(added.remove(place)),
            None => left.push(old),
        }
    }
    let (mut changed, mut removed) = (Vec::new(), Vec::new());
    for old in left {
        match added.iter().position(|new| alike(old, new)) {
            Some(place) => changed.push((old, added.remove(place))),
            None => removed.push(old),
        }
    }
    Pairs { changed, removed, added }
}
