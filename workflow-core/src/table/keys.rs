//! Idempotency keys over the tables that a run has had (S39). An execution's key has the positions of its events, and
//! tables that add inputs to its step do not change it.
//!
//! ```text
//!  table of the start     pay(Claim, Reply)                parts: [Claim, Reply]
//!  a later one            pay(Reply, Claim, Audited)       parts: [Claim, Reply] [Audited]
//!  a later one            pay(Claim, Audited)              parts: [Claim, Audited], and the keys of `pay` have changed
//! ```
//!
//! The key is made of the first part. Executions that differ only in later parts have those too, as many as it takes: see
//! `RunState::key_positions`. Passive inputs are in no part (S58). A step whose keys a method makes has one part,
//! which nobody reads (S84).

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{DependencyTable, InputShape, RecordedTable, StepIndex, StepRow, StepShape, TableShape};
use crate::spec::InputKind;

/// The inputs that make the keys of each step, after the tables so far.
#[derive(Debug, Default)]
pub(crate) struct KeyHistory(HashMap<Arc<str>, StepKeys>);

/// The inputs that make the keys of one step.
#[derive(Debug)]
struct StepKeys {
    /// The method that makes the keys instead.
    method: Option<Arc<str>>,
    /// The inputs by the tables that added them, each with its place in the latest table. Of the first part all are there.
    parts: Vec<Vec<(InputShape, usize)>>,
}

/// The slots of a step whose events make a key, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyParts(Vec<Vec<usize>>);

impl KeyHistory {
    /// The history of these tables, oldest first: whether each leaves the keys of the one before. One that cannot be read is
    /// left out.
    pub(crate) fn of(tables: &[(RecordedTable, bool)]) -> Self {
        let mut history = Self::default();
        for (table, keeps) in tables {
            if let Ok(shape) = table.shape() {
                let _ = history.continue_with(&shape, *keeps);
            }
        }
        history
    }

    /// The next table of the run. Without `keeps` its steps have keys by this table alone, as earlier releases made them.
    /// Returns the steps that had other keys.
    pub(crate) fn continue_with(&mut self, table: &TableShape, keeps: bool) -> Vec<Arc<str>> {
        let mut changed = Vec::new();
        for step in &table.steps {
            let Some(known) = self.0.get_mut(&step.name) else {
                self.0.insert(Arc::clone(&step.name), StepKeys::of(step));
                continue;
            };
            if !keeps || !known.follow(step) {
                *known = StepKeys::of(step);
                changed.push(Arc::clone(&step.name));
            }
        }
        changed
    }

    /// The parts of the keys of each step, where they are not simply all slots in order. The table is the latest one.
    pub(crate) fn parts(&self, table: &DependencyTable) -> FxHashMap<StepIndex, KeyParts> {
        let rows = table.steps().iter().enumerate();
        let parts = rows.filter_map(|(row, step)| {
            let keys = self.0.get(&step.name).filter(|keys| !keys.is_plain())?;
            let slots = slots_with_events(step);
            let slot = |(_, place): &(InputShape, usize)| slots.get(*place).copied();
            let parts = keys.parts.iter().map(|part| part.iter().filter_map(slot).collect());
            Some((StepIndex::at(row), KeyParts(parts.collect())))
        });
        parts.collect()
    }
}

impl KeyParts {
    /// The slots of each part.
    pub(crate) fn slots(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        self.0.iter().map(Vec::as_slice)
    }
}

impl StepKeys {
    fn of(step: &StepShape) -> Self {
        let active = active(step).map(|(place, input)| (input.clone(), place));
        Self { method: step.key.clone(), parts: vec![active.collect()] }
    }

    /// Whether the key has all positions in the order of the step's parameters, or none.
    fn is_plain(&self) -> bool {
        let is_ordered = |part: &Vec<(InputShape, usize)>| part.is_sorted_by_key(|(_, place)| *place);
        self.method.is_some() || (self.parts.len() == 1 && self.parts.iter().all(is_ordered))
    }

    /// Follows the step into its next table. Returns whether that leaves the keys as they were; else nothing has changed.
    fn follow(&mut self, is: &StepShape) -> bool {
        if self.method != is.key {
            return false;
        }
        if self.method.is_some() {
            *self = Self::of(is);
            return true;
        }
        let mut added: Vec<(usize, &InputShape)> = active(is).collect();
        let matched = matched(self.parts.iter().flatten().map(|(input, _)| input), &mut added);
        let mut matched = matched.into_iter();
        let mut parts: Vec<Vec<Option<(InputShape, usize)>>> = Vec::new();
        for part in &self.parts {
            parts.push(matched.by_ref().take(part.len()).collect());
        }
        // Of later parts an input may be gone: the executions that it told apart are gone with it.
        if parts.first().is_some_and(|first| first.iter().any(Option::is_none)) {
            return false;
        }
        self.parts = parts.into_iter().map(|part| part.into_iter().flatten().collect()).collect();
        self.parts.push(added.into_iter().map(|(place, input)| (input.clone(), place)).collect());
        self.parts.retain(|part: &Vec<_>| !part.is_empty());
        true
    }
}

/// Whether the keys of a step are the same after a change of its inputs.
pub(super) fn stay(was: &StepShape, is: &StepShape) -> bool {
    StepKeys::of(was).follow(is)
}

/// The slot that each former input has now which makes keys, in the order of the former ones.
pub(crate) fn slots_of(was: &StepShape, is: &StepShape, row: &StepRow) -> Vec<Option<usize>> {
    let slots = slots_with_events(row);
    let mut left: Vec<(usize, &InputShape)> = active(is).collect();
    let found = matched(active(was).map(|(_, input)| input), &mut left);
    found.into_iter().map(|found| found.and_then(|(_, place)| slots.get(place).copied())).collect()
}

fn slots_with_events(row: &StepRow) -> Vec<usize> {
    let inputs = row.inputs.iter().enumerate().filter(|(_, input)| input.kind.takes_events());
    inputs.map(|(slot, _)| slot).collect()
}

/// The inputs whose events make keys, with their places.
fn active(step: &StepShape) -> impl Iterator<Item = (usize, &InputShape)> {
    step.inputs.iter().enumerate().filter(|(_, input)| !input.passive)
}

/// The present form of each former input, with its place. Takes it out of `left`.
fn matched<'a>(
    was: impl Iterator<Item = &'a InputShape>,
    left: &mut Vec<(usize, &InputShape)>,
) -> Vec<Option<(InputShape, usize)>> {
    let was: Vec<&InputShape> = was.collect();
    let mut found = vec![None; was.len()];
    // As the differences of two tables are found: equal inputs first.
    for alike in [InputShape::eq, InputShape::has_position_of] {
        for (found, was) in found.iter_mut().zip(&was).filter(|(found, _)| found.is_none()) {
            if let Some(at) = left.iter().position(|(_, is)| alike(was, is)) {
                let (place, is) = left.remove(at);
                *found = Some((is.clone(), place));
            }
        }
    }
    found
}

impl InputShape {
    /// Whether the other input is this one, and the same events have the same text in a key.
    fn has_position_of(&self, other: &Self) -> bool {
        let is_same = match (self.kind, other.kind) {
            (InputKind::One | InputKind::Reply, InputKind::One | InputKind::Reply) => true,
            (InputKind::Gather, InputKind::Gather) => {
                self.item == other.item || self.item.is_none() || other.item.is_none()
            }
            (was, is) => was == is,
        };
        is_same && self.is_alike(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Roles;
    use crate::table::{EventDef, InputDef, OutputDef, StepDef};

    fn table(inputs: impl IntoIterator<Item = InputDef>) -> DependencyTable {
        let pay = inputs.into_iter().fold(StepDef::new("pay"), StepDef::input);
        let table = DependencyTable::builder("claims").event(EventDef::new("A", Roles::NONE.start()));
        let table = ["B", "C", "D"]
            .into_iter()
            .fold(table, |table, name| table.event(EventDef::new(name, Roles::NONE.external())));
        let table = table.event(EventDef::new("Paid", Roles::NONE.stop()));
        table.step(pay.output(OutputDef::event("Paid"))).build_unchecked().unwrap()
    }

    /// The parts after these tables, and how often the keys changed.
    fn parts(tables: &[DependencyTable]) -> (Option<Vec<Vec<usize>>>, usize) {
        let mut history = KeyHistory::default();
        let changed = tables.iter().map(|table| history.continue_with(&table.shape(), true).len()).sum();
        let parts = history.parts(tables.last().unwrap());
        (parts.get(&StepIndex::at(0)).map(|KeyParts(parts)| parts.clone()), changed)
    }

    fn one(name: &str) -> InputDef {
        InputDef::one(name)
    }

    // S39
    #[test]
    fn inputs_that_later_tables_add_are_later_parts() {
        let first = || table([one("A"), one("B")]);
        assert_eq!(parts(&[first()]), (None, 0));
        assert_eq!(parts(&[first(), first()]), (None, 0));
        let second = || table([one("C").optional(), one("A"), one("B").optional()]);
        assert_eq!(parts(&[first(), second()]), (Some(vec![vec![1, 2], vec![0]]), 0));
        let third = table([one("D"), one("B"), one("A"), one("C").optional()]);
        assert_eq!(parts(&[first(), second(), third]), (Some(vec![vec![2, 1], vec![3], vec![0]]), 0));
        assert_eq!(parts(&[first(), second(), first()]), (None, 0), "and back");
    }

    // S39, S58
    #[test]
    fn passive_inputs_are_in_no_part() {
        let second = table([one("C").passive(), one("A"), one("B")]);
        let (found, changed) = parts(&[table([one("A"), one("B")]), second]);
        assert_eq!((found, changed), (None, 0));
    }

    // S39
    #[test]
    fn keys_change_with_an_input_that_is_gone_or_has_another_form() {
        let first = || table([one("A"), one("B")]);
        for second in [
            table([one("A")]),
            table([one("A"), one("C")]),
            table([one("A"), one("B").passive()]),
            table([one("A"), InputDef::list(["B"])]),
        ] {
            assert_eq!(parts(&[first(), second]), (None, 1));
        }
        let fixed = |count| table([InputDef::fixed(count, ["B"])]);
        assert_eq!(parts(&[fixed(2), fixed(3)]), (None, 1));
    }

    // S39
    #[test]
    fn a_table_of_an_earlier_release_begins_anew() {
        let mut history = KeyHistory::default();
        let (first, second) = (table([one("A")]), table([one("B").optional(), one("A")]));
        for (table, keeps) in [(&first, true), (&second, false)] {
            let _ = history.continue_with(&table.shape(), keeps);
        }
        assert!(history.parts(&second).is_empty());
    }
}
