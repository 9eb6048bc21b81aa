//! The positions that an execution has in its idempotency key, in a run whose tables had other inputs before (S39).
//!
//! ```text
//!  the step's parts    events of the execution      earlier executions    positions
//!  [A, B] [C]          5, 6 and none                none                  5.6
//!  [A, B] [C]          5, 6 and 7                   5, 6 and none         5.6+7
//! ```
//!
//! Invariants: an execution has as many parts as tell it from those that the scheduler started before, which a replay
//! starts in the same order. So a key never changes, and no two are the same.

use super::RunState;
use super::lives::{BegunAs, BegunBefore};
use crate::input::{Bound, SlotValue, binding_text};
use crate::run::earlier_tables::EarlierTables;
use crate::scheduler::ExecutionStart;

impl RunState {
    /// The positions of an execution in its idempotency key; `None` if they are those of all its inputs, in order.
    /// O(executions).
    #[cold]
    pub(in crate::run) fn key_positions(&self, start: &ExecutionStart) -> Option<String> {
        let parts = self.lives.key_parts(start.step)?;
        let row = self.table().step(start.step);
        let bound = |slots: &[SlotValue], part: &[usize]| -> Vec<Bound> {
            part.iter().filter_map(|slot| Bound::of(slots.get(*slot)?)).collect()
        };
        let own = self.log.slots_of(row, start);
        // A clean-up step runs once per end, and its key tells the ends apart (S31).
        let tells_apart = parts.slots().len() > 1 && row.on_end.is_none();
        let mut like: Vec<_> = if tells_apart { self.started_before(start).collect() } else { Vec::new() };
        let mut positions = String::new();
        for part in parts.slots() {
            let of_own = bound(&own, part);
            if !positions.is_empty() {
                positions.push('+');
            }
            positions.push_str(&binding_text(&of_own));
            like.retain(|other| bound(&self.log.slots_of(row, other), part) == of_own);
            if like.is_empty() {
                break;
            }
        }
        Some(positions)
    }

    /// The positions of an execution in its idempotency key, as those are written.
    pub(in crate::run) fn positions(&self, start: &ExecutionStart) -> String {
        self.key_positions(start).unwrap_or_else(|| self.positions_of_inputs(start).join("."))
    }

    /// The positions that each input of an execution bound, of those that make keys.
    pub(in crate::run) fn positions_of_inputs(&self, start: &ExecutionStart) -> Vec<String> {
        let row = self.table().step(start.step);
        let slots = self.log.slots_of(row, start);
        let active = slots.iter().zip(&row.inputs).filter(|(_, input)| !input.is_passive());
        active.filter_map(|(slot, _)| Some(binding_text(&[Bound::of(slot)?]))).collect()
    }

    /// Notes the executions that may have begun under earlier tables.
    pub(in crate::run) fn know_begun(&mut self, earlier: &EarlierTables) {
        let redrives = self.lives.redrives().iter().filter(|redrive| !redrive.clean_up).count();
        self.lives.set_begun_before(earlier.begun(self.table(), redrives));
    }

    /// A life begins, in which these executions may be open.
    pub(super) fn mark_begun(&mut self) {
        if self.lives.begun_before().is_empty() {
            return;
        }
        for start in self.trace.running().into_iter().filter_map(|id| self.start_of(id)).collect::<Vec<_>>() {
            self.has_run_before(&start);
        }
        self.change_effects(|state, begins| {
            let execution = begins.execution();
            let again = execution.is_some_and(|execution| state.lives.of(execution).may_have_begun);
            Some(if again { begins.again() } else { begins })
        });
    }

    /// Whether an attempt of an execution may have begun before: in an earlier life, or under a table in which its step was
    /// different.
    #[cold]
    #[inline(never)]
    pub(super) fn has_run_before(&mut self, start: &ExecutionStart) -> bool {
        if self.lives.of(start.execution).may_have_begun {
            return true;
        }
        let of_step = |begun: &&BegunBefore| (begun.step, begun.scope) == (start.step, start.scope);
        let mut begun = self.lives.begun_before().iter().filter(of_step);
        if !begun.any(|begun| self.is_begun_as(&begun.by, start)) {
            return false;
        }
        self.lives.lose(start.execution);
        true
    }

    fn is_begun_as(&self, by: &BegunAs, start: &ExecutionStart) -> bool {
        match by {
            BegunAs::Key(positions) => self.positions(start) == *positions,
            BegunAs::Inputs(inputs) => {
                let slots = self.log.slots_of(self.table().step(start.step), start);
                let text = |slot: usize| Some(binding_text(&[Bound::of(slots.get(slot)?)?]));
                inputs.iter().all(|(slot, known)| text(*slot).is_some_and(|text| text == *known))
            }
        }
    }

    /// The executions of the same step and scope that the scheduler started before.
    fn started_before<'a>(&'a self, start: &'a ExecutionStart) -> impl Iterator<Item = ExecutionStart> + 'a {
        let order = self.trace.entry(start.execution).map_or(0, |entry| entry.order);
        let before = self.trace.numbered().filter(move |(_, entry)| entry.order < order);
        let before = before.filter_map(|(execution, _)| self.start_of(execution));
        before.filter(|other| (other.step, other.scope) == (start.step, start.scope))
    }
}
