//! The tables of a journal: of the process that began the run, and of each later one whose table was another.

use rustc_hash::FxHashMap;

use super::Replay;
use crate::table::{KeyHistory, KeyParts, RecordedTable, StepIndex, StepShape, TableShape};

impl Replay {
    /// The following records are written under this table. Of a table that cannot be read, no step waits.
    pub(super) fn written_under(&mut self, written: &RecordedTable) {
        let table = &self.host.table;
        if written.fingerprint() == table.recorded().fingerprint() {
            return self.state.lives.written_under(FxHashMap::default());
        }
        let shape = written.shape().ok();
        let rows = table.steps().iter().enumerate();
        let changed = rows.filter_map(|(row, step)| {
            // None of a step that is new runs.
            let of =
                |shape: &TableShape| shape.step(&step.name).map_or(Some(0), StepShape::scheduled_concurrency);
            let was = shape.as_ref().and_then(of);
            (was != step.scheduled_concurrency()).then_some((StepIndex::at(row), was))
        });
        let changed = changed.collect();
        self.state.lives.written_under(changed);
    }

    /// The parts of idempotency keys, of steps that had other inputs in earlier tables (S39).
    pub(super) fn key_parts(&self) -> FxHashMap<StepIndex, KeyParts> {
        let table = &self.host.table;
        let is_present =
            |(known, _): &(RecordedTable, bool)| known.fingerprint() == table.recorded().fingerprint();
        if self.tables.iter().all(is_present) {
            return FxHashMap::default();
        }
        let mut history = KeyHistory::of(&self.tables);
        if !self.tables.last().is_some_and(is_present) {
            let _ = history.continue_with(&table.shape(), true);
        }
        history.parts(table)
    }
}
