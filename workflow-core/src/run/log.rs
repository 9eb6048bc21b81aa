//! A run's log in memory: every event with its position, scope and cause, and the lists that inputs take
//! prefixes of.

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::append_log::Appender;
use crate::event::AnyEvent;
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::input::{LogEntry, Prefix, SlotValue, SlotValues};
use crate::scheduler::{Binding, Bound, Cause, Entry, Prefixes};
use crate::table::{DependencyTable, EventIndex, StepRow, TopicIndex};

/// One event of the log.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) event: AnyEvent,
    pub(super) index: EventIndex,
    pub(super) scope: ScopeId,
    pub(super) cause: Cause,
    /// When it entered the log, from the beginning of the run's clock.
    pub(super) at: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    /// The event at position n is at n - 1.
    records: Vec<Record>,
    lists: FxHashMap<(ScopeId, TopicIndex), Appender<LogEntry>>,
    /// Scope n is at n - 1: scopes are numbered in the order in which their items enter the log.
    branches: Vec<BranchRecord>,
}

/// Where a branch came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct BranchRecord {
    pub(super) scope: ScopeId,
    pub(super) parent: ScopeId,
    pub(super) item: Seq,
    pub(super) opener: ExecutionId,
}

impl Log {
    /// Makes room for so many events.
    pub(super) fn reserve(&mut self, events: usize) {
        self.records.reserve(events);
    }

    pub(super) fn append(
        &mut self,
        table: &DependencyTable,
        entry: Entry,
        event: AnyEvent,
        cause: Cause,
        at: Duration,
    ) {
        debug_assert_eq!(entry.seq.0, self.records.len() as u64 + 1, "positions have no gaps");
        for topic in &table.event(entry.event).topics {
            if table.topic(*topic).listed {
                let list = self.lists.entry((entry.scope, *topic)).or_default();
                list.push(LogEntry { seq: entry.seq, event: event.clone() });
            }
        }
        self.records.push(Record { event, index: entry.event, scope: entry.scope, cause, at });
    }

    /// The item of a branch is in the log.
    pub(super) fn branch(&mut self, branch: BranchRecord) {
        debug_assert_eq!(branch.scope.0 as usize, self.branches.len() + 1, "branches have no gaps");
        self.branches.push(branch);
    }

    pub(super) fn branches(&self) -> &[BranchRecord] {
        &self.branches
    }

    pub(super) fn get(&self, seq: Seq) -> Option<&Record> {
        self.records.get(usize::try_from(seq.0.checked_sub(1)?).ok()?)
    }

    /// Everything behind a position.
    pub(super) fn since(&self, seq: Seq) -> impl Iterator<Item = &Record> {
        self.records.iter().skip(usize::try_from(seq.0).unwrap_or(usize::MAX))
    }

    /// When the first event entered it, from the beginning of the run's clock.
    pub(super) fn began(&self) -> Duration {
        self.records.first().map_or(Duration::ZERO, |record| record.at)
    }

    pub(super) fn records(&self) -> impl Iterator<Item = (Seq, &Record)> {
        self.records.iter().enumerate().map(|(i, record)| (Seq(i as u64 + 1), record))
    }

    /// What the slots of a step hold, by what the scheduler bound them to.
    pub(super) fn slots(&self, step: &StepRow, binding: &Binding) -> SlotValues {
        let inputs = step.inputs.iter().map(|input| input.topic);
        binding.iter().zip(inputs).map(|(bound, topic)| self.slot(bound, topic)).collect()
    }

    fn slot(&self, bound: &Bound, topic: Option<TopicIndex>) -> SlotValue {
        match bound {
            Bound::Nothing => SlotValue::Empty,
            Bound::One(seq) => {
                self.get(*seq).map_or(SlotValue::Empty, |record| SlotValue::One(*seq, record.event.clone()))
            }
            Bound::List(prefixes) => SlotValue::List(self.prefix(prefixes, topic)),
        }
    }

    fn prefix(&self, prefixes: &Prefixes, topic: Option<TopicIndex>) -> Prefix {
        let list = |scope: ScopeId| topic.and_then(|topic| self.lists.get(&(scope, topic)));
        let segments = prefixes
            .iter()
            .filter_map(|(scope, len)| Some((std::sync::Arc::clone(list(scope)?.log()), len as usize)));
        Prefix { segments: segments.collect() }
    }

    /// Frees the lists of a settled scope; executions that hold prefixes keep theirs.
    pub(super) fn free(&mut self, scope: ScopeId, table: &DependencyTable) {
        for topic in 0..table.topics.len() {
            self.lists.remove(&(scope, TopicIndex::at(topic)));
        }
    }
}
