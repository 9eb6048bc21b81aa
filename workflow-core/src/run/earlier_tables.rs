//! The traces of a run's earlier tables, for a replay with the present one (S39, S53, S69).
//!
//! ```text
//! RunStarted(T1) ── a period ──▶ RunResumed(T2) ── a period ──▶ RunResumed(T3) ── a period ──▶ the present table
//!                  replay with T1                 replay with T2                 …
//! ```
//!
//! Each period is replayed with its own table, if that may matter. It leaves two things:
//! - The open executions that may have begun. In the present table they may need more, and so exist later or never. One with
//!   the same key may have begun then, and a run is refused without its step.
//! - The numbers of executions that its records name by nothing else. The present table could give these to others.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::Host;
use super::queued::is_queued;
use super::state::{BegunAs, BegunBefore, Replay, RunState};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::scheduler::{EvaluationKey, SchedulerLimits};
use crate::store::{JOURNAL_FORMAT, Record};
use crate::table::{DependencyTable, StepShape, TableShape, slots_of};

/// The traces of earlier tables.
#[derive(Default)]
pub(super) struct EarlierTables {
    begun: Vec<Begun>,
    numbers: Vec<Numbered>,
}

/// An open execution of which an attempt may have begun.
struct Begun {
    step: Arc<StepShape>,
    scope: ScopeId,
    /// Its positions in its idempotency key, and those of each of its inputs.
    positions: String,
    inputs: Vec<String>,
    /// Whether an attempt may have begun that the journal does not end, and that no caller of a redrive wants to be made again.
    is_open: bool,
    /// How many redrives the journal has before.
    redrives: usize,
}

/// The number of an execution, by the name of its step.
struct Numbered {
    step: Arc<str>,
    scope: ScopeId,
    trigger: Seq,
    execution: ExecutionId,
}

/// The records that one table wrote.
struct Period {
    table: TableShape,
    from: usize,
    until: usize,
}

impl EarlierTables {
    /// Of these records, for a replay with this table. Costs a look at each record, and a replay of the records up to the end
    /// of each period that may matter.
    pub(super) fn of(table: &DependencyTable, records: &[Record]) -> Self {
        let mut earlier = Self::default();
        let present = table.recorded();
        let tables = records.iter().enumerate().filter_map(|(place, record)| Some((place, record.table()?)));
        let mut tables = tables.peekable();
        let is_over = matches!(records.last(), Some(Record::RunEnded { .. }));
        let mut shape = None;
        while let Some((from, written)) = tables.next() {
            let until = tables.peek().map_or(records.len(), |(place, _)| *place);
            if is_over || written.fingerprint() == present.fingerprint() {
                continue;
            }
            if let Ok(table_of_period) = written.shape() {
                let shape = shape.get_or_insert_with(|| table.shape());
                let period = Period { table: table_of_period, from, until };
                earlier.add(&period, shape, records);
            }
        }
        earlier
    }

    fn add(&mut self, period: &Period, present: &TableShape, records: &[Record]) {
        let (own, records) = (&records[period.from..period.until], &records[..period.until]);
        let has_numbers = own.iter().any(|record| numbers_in(record).next().is_some());
        if !has_numbers && self.begun.is_empty() && (waits(records) || !differs(&period.table, present)) {
            return;
        }
        if is_queued(records) {
            return;
        }
        // A table that does not fit its own records leaves nothing.
        let Some((host, state)) = self.replayed(&period.table, records) else { return };
        let named = |execution: ExecutionId| {
            let start = state.start_of(execution)?;
            let step = Arc::clone(&host.table.step(start.step).name);
            Some(Numbered { step, scope: start.scope, trigger: start.trigger, execution })
        };
        let numbers: Vec<_> = own.iter().flat_map(numbers_in).filter_map(named).collect();
        self.numbers.extend(numbers);
        self.begun.retain(|begun| !begun.has_ended_in(&host, &state));
        let redrives = state.lives.redrives().iter().filter(|redrive| !redrive.clean_up).count();
        for execution in state.trace.running() {
            let earlier = state.lives.of(execution);
            if (!earlier.may_have_begun && state.trace.attempt(execution) < 2)
                || self.begun.iter().any(|known| known.is_it(&host, &state, execution))
            {
                continue;
            }
            let Some(start) = state.start_of(execution) else { continue };
            let Some(step) = period.table.step(&host.table.step(start.step).name) else { continue };
            self.begun.push(Begun {
                step: Arc::new(step.clone()),
                scope: start.scope,
                positions: state.positions(&start),
                inputs: state.positions_of_inputs(&start),
                is_open: earlier.may_have_begun && !(step.at_most_once && earlier.insisted),
                redrives,
            });
        }
    }

    /// The state behind these records, as the next process finds it.
    fn replayed(&self, written: &TableShape, records: &[Record]) -> Option<(Arc<Host>, RunState)> {
        let (first, last) = (records.first()?.at(), records.last()?.at());
        let host = Arc::new(Host::of_table(Arc::new(DependencyTable::from_shape(written).ok()?)));
        let state = RunState::new(&host.table, SchedulerLimits::NONE);
        let mut replay = Replay::new(Arc::clone(&host), state, first);
        replay.recall(records, self);
        replay.take(records).ok()?;
        let (format, table, stable_keys, configs, at) = (JOURNAL_FORMAT, None, false, BTreeMap::new(), last);
        replay.take(&[Record::RunResumed { format, table, stable_keys, configs, at }]).ok()?;
        Some((host, replay.finish().state))
    }

    /// The steps with an open execution that may have begun.
    pub(super) fn begun_steps(&self) -> impl Iterator<Item = &Arc<str>> {
        self.begun.iter().map(|begun| &begun.step.name)
    }

    /// The executions that may have begun, as a state with the present table finds them.
    pub(super) fn begun(&self, table: &DependencyTable, redrives: usize) -> Vec<BegunBefore> {
        if self.begun.is_empty() {
            return Vec::new();
        }
        let shape = table.shape();
        let begun = self.begun.iter().filter(|begun| begun.is_open).filter_map(|begun| {
            let step = table.step_named(&begun.step.name)?;
            let row = table.step(step);
            // A clean-up step runs once for each end.
            if row.cleans_up() && begun.redrives != redrives {
                return None;
            }
            let by = if begun.step.key.is_some() {
                let slots = slots_of(&begun.step, shape.step(&begun.step.name)?, row);
                let slots = slots.into_iter().zip(&begun.inputs);
                BegunAs::Inputs(slots.filter_map(|(slot, text)| Some((slot?, text.clone()))).collect())
            } else {
                BegunAs::Key(begun.positions.clone())
            };
            Some(BegunBefore { step, scope: begun.scope, by })
        });
        begun.collect()
    }

    /// The numbers that no record names with the step of the execution.
    pub(super) fn numbers<'a>(
        &'a self,
        table: &'a DependencyTable,
        named: &'a HashSet<ExecutionId>,
    ) -> impl Iterator<Item = (EvaluationKey, ExecutionId)> + 'a {
        let numbers = self.numbers.iter().filter(|numbered| !named.contains(&numbered.execution));
        numbers.filter_map(|Numbered { step, scope, trigger, execution }| {
            let step = table.step_named(step).filter(|step| !table.step(*step).cleans_up())?;
            Some(((step, *scope, *trigger), *execution))
        })
    }
}

impl Begun {
    /// Whether this is the execution of a later period.
    fn is_it(&self, host: &Host, state: &RunState, execution: ExecutionId) -> bool {
        state.start_of(execution).is_some_and(|start| {
            host.table.step(start.step).name == self.step.name
                && start.scope == self.scope
                && state.positions(&start) == self.positions
        })
    }

    /// Whether the execution has ended in a later period.
    fn has_ended_in(&self, host: &Host, state: &RunState) -> bool {
        let ended = state.trace.numbered().map(|(execution, _)| execution);
        let mut ended = ended.filter(|execution| !state.scheduler.is_running(*execution));
        ended.any(|execution| self.is_it(host, state, execution))
    }
}

/// The executions that a record names by their numbers alone.
fn numbers_in(record: &Record) -> impl Iterator<Item = ExecutionId> {
    let (one, other): (&[ExecutionId], &[ExecutionId]) = match record {
        Record::RunDetached { dropped, .. } => (dropped, &[]),
        Record::RunPaused { running, dropped, .. } => (running, dropped),
        _ => (&[], &[]),
    };
    one.iter().chain(other).copied()
}

/// Whether the run waits behind these records, so that no execution is open. One that was ever paused may rest in a pause.
fn waits(records: &[Record]) -> bool {
    let is_idle = |record: &&Record| match record {
        Record::RunKept { .. } => true,
        Record::RunDetached { dropped, .. } => dropped.is_empty(),
        _ => false,
    };
    matches!(records.iter().rfind(|record| !is_idle(record)), Some(Record::RunWaiting { .. }))
        && !records.iter().any(|record| matches!(record, Record::RunPaused { .. }))
}

/// Whether executions of a step of the first table may begin later by the second one, or not at all.
fn differs(was: &TableShape, is: &TableShape) -> bool {
    was.steps.iter().any(|was| {
        is.step(&was.name).is_none_or(|is| {
            (&was.inputs, &was.precondition, &was.key, &was.on_end)
                != (&is.inputs, &is.precondition, &is.key, &is.on_end)
        })
    })
}
