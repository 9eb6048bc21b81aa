//! A run's log in memory, and the lists that inputs take prefixes of.
//!
//! The log has each event with its sequence number, scope and cause. Sequence numbers begin at 1 and have no
//! gaps. A list has the events of one topic in one scope; taking a prefix of it costs O(1) (S16), because
//! readers share its storage. Branches of one fan-out have consecutive scopes and consecutive items, so they
//! are stored as the first branch and a count.
//!
//! ```text
//! seq      1      2       3       4       5       6
//! event    Begin  Page    Page    Note    Page    Read
//! scope    root   1       2       root    3       1          2 and 3 are items of one fan-out, 5 of another
//!
//! branches           scope 1, item 2, count 2; scope 3, item 5, count 1
//! lists of Page      scope 1: [2], scope 2: [3], scope 3: [5]
//! ```
//!
//! Invariants: the log has no gaps, and an entry never changes. A list has at least as many events as the
//! scheduler has counted of its topic in its scope, so the events of a binding are always there.
//!
//! Example, with the picture: `collect(List<Page>)` in scope 1 is bound to the first event of scope 1. The prefix is
//! a pointer to that list and the length 1. A later `Page` of scope 1 makes the list longer, and not the prefix.

#![expect(
    clippy::inline_always,
    reason = "every step goes through here: as one function its parts pass no values through memory"
)]

use std::time::Duration;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::append_log::Appender;
use crate::error::BranchFailure;
use crate::event::{AnyEvent, GatheredBranch};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::input::{LogEntry, Prefix, SlotValue, SlotValues};
use crate::paged::Paged;
use crate::report::BoundInput;
use crate::scheduler::{Binding, Bound, BranchSummary, Cause, Entry, ExecutionStart, Prefixes};
use crate::table::{DependencyTable, EventIndex, StepRow, TopicIndex};

/// One event in the log.
#[derive(Debug, Clone)]
pub(crate) struct LogRecord {
    /// The value, shared with lists, slots and records.
    pub(crate) event: AnyEvent,
    /// The row of its type in the table.
    pub(crate) index: EventIndex,
    /// The scope that the event belongs to, which may be closed by now.
    pub(crate) scope: ScopeId,
    /// The source of its batch; `Outside` for a gather.
    pub(crate) cause: Cause,
    /// The time of its batch, from the beginning of the run's clock.
    pub(crate) at: Duration,
}

/// The events of one run, its lists and its branches.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// The event with sequence number n is at n - 1.
    records: Paged<LogRecord>,
    /// Lists of the root scope, by topic.
    lists: Vec<Option<List>>,
    /// Lists of open branches. `free` removes those of a settled branch.
    lists_of_branches: FxHashMap<ScopeId, SmallVec<[(TopicIndex, List); 1]>>,
    /// All branches, in the order of their scopes, which is the order of their items in the log.
    branches: Vec<Branches>,
    /// How many branches `branches` stands for: the highest scope so far.
    branched: u32,
}

type List = Appender<LogEntry>;

/// Branches with consecutive scopes and consecutive items.
#[derive(Debug)]
struct Branches {
    /// The branch with the lowest scope and the first item.
    first: BranchRecord,
    /// How many branches follow each other, `first` included.
    count: u32,
}

/// The log of a suspended run, which has no branches.
#[derive(Debug)]
pub(super) struct SuspendedLog {
    records: Box<[LogRecord]>,
    lists: Box<[Option<List>]>,
}

/// Where a branch came from: its parent scope, its item, and the execution that opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BranchRecord {
    /// The scope of the branch.
    pub(crate) scope: ScopeId,
    /// The scope of the execution that opened it.
    pub(crate) parent: ScopeId,
    /// The first event of the branch.
    pub(crate) item: Seq,
    /// The execution that returned the fan-out.
    pub(crate) opener: ExecutionId,
}

impl Log {
    /// Whether the log fits [`SuspendedLog`]: it has no branches.
    pub(super) fn can_suspend(&self) -> bool {
        self.branches.is_empty() && self.lists_of_branches.is_empty()
    }

    pub(super) fn suspend(&mut self) -> SuspendedLog {
        let Self { records, lists, lists_of_branches: _, branches: _, branched: _ } = std::mem::take(self);
        SuspendedLog { records: records.into_boxed(), lists: lists.into() }
    }

    pub(super) fn restore(SuspendedLog { records, lists }: SuspendedLog) -> Self {
        Self { records: records.into_iter().collect(), lists: lists.into(), ..Self::default() }
    }

    /// Appends an event, and adds it to the lists of its topics in its scope. O(topics of the event).
    #[inline(always)]
    pub(super) fn append(
        &mut self,
        table: &DependencyTable,
        entry: Entry,
        event: AnyEvent,
        cause: Cause,
        at: Duration,
    ) {
        debug_assert_eq!(entry.seq.0, self.records.len() as u64 + 1, "positions have no gaps");
        let row = table.event(entry.event);
        // Most types are in no list, and the table knows which.
        if row.listed {
            for topic in row.topics.iter().filter(|topic| table.topic(**topic).listed) {
                let list = self.list_mut(entry.scope, *topic);
                list.push(LogEntry { seq: entry.seq, event: event.clone() });
            }
        }
        self.records.push(LogRecord { event, index: entry.event, scope: entry.scope, cause, at });
    }

    /// The list of a topic in a scope; adds it if it is missing.
    fn list_mut(&mut self, scope: ScopeId, topic: TopicIndex) -> &mut List {
        if scope != ScopeId::ROOT {
            return list_of(self.lists_of_branches.entry(scope).or_default(), topic);
        }
        if self.lists.len() <= topic.get() {
            self.lists.resize_with(topic.get() + 1, || None);
        }
        self.lists[topic.get()].get_or_insert_default()
    }

    /// The list of a topic in a scope, if an event has entered it.
    fn list(&self, scope: ScopeId, topic: TopicIndex) -> Option<&List> {
        if scope == ScopeId::ROOT {
            return self.lists.get(topic.get())?.as_ref();
        }
        let lists = self.lists_of_branches.get(&scope)?;
        lists.iter().find_map(|(of, list)| (*of == topic).then_some(list))
    }

    /// Notes the branch whose item enters the log next. The branches of one fan-out extend one range, since scopes and
    /// items are numbered together.
    pub(super) fn branch(&mut self, branch: BranchRecord) {
        debug_assert_eq!(branch.scope.0, self.branched + 1, "branches have no gaps");
        self.branched += 1;
        match self.branches.last_mut() {
            Some(last) if last.at(last.count) == branch => last.count += 1,
            _ => self.branches.push(Branches { first: branch, count: 1 }),
        }
    }

    /// All branches, by their scopes.
    pub(crate) fn branches(&self) -> impl Iterator<Item = BranchRecord> {
        self.branches.iter().flat_map(|branches| (0..branches.count).map(|place| branches.at(place)))
    }

    /// The branch of a scope; `None` for the root. O(log branches).
    pub(super) fn branch_of(&self, scope: ScopeId) -> Option<BranchRecord> {
        let until = self.branches.partition_point(|branches| branches.first.scope <= scope);
        let branches = self.branches.get(until.checked_sub(1)?)?;
        let place = scope.0.checked_sub(branches.first.scope.0)?;
        (place < branches.count).then(|| branches.at(place))
    }

    /// The place of a branch in its fan-out, from 0. O(log branches).
    pub(super) fn place_of(&self, scope: ScopeId) -> Option<u32> {
        let item = self.branch_of(scope)?.item;
        let until = self.branches.partition_point(|branches| branches.first.scope <= scope);
        let first = self.branches.get(until.checked_sub(1)?)?.first.item;
        let index = self.get(item)?.index;
        // Fan-outs of one batch follow each other, each with items of a type of its own.
        let (mut low, mut high) = (first.0, item.0);
        while low < high {
            let middle = low.midpoint(high);
            match self.get(Seq(middle)) {
                Some(of_it) if of_it.index == index => high = middle,
                _ => low = middle + 1,
            }
        }
        u32::try_from(item.0 - low).ok()
    }

    /// How many branches the run has opened.
    pub(crate) fn branched(&self) -> u32 {
        self.branched
    }

    /// The entry with this sequence number.
    #[inline]
    pub(crate) fn get(&self, seq: Seq) -> Option<&LogRecord> {
        self.records.get(usize::try_from(seq.0.checked_sub(1)?).ok()?)
    }

    /// `count` entries from this sequence number on, with their types.
    pub(crate) fn indexes(&self, from: Seq, count: u64) -> impl Iterator<Item = (Seq, EventIndex)> {
        let seqs = (from.0..).map(Seq).take(usize::try_from(count).unwrap_or(usize::MAX));
        seqs.map_while(|seq| Some((seq, self.get(seq)?.index)))
    }

    /// The entries behind this sequence number.
    pub(crate) fn since(&self, seq: Seq) -> impl Iterator<Item = &LogRecord> {
        self.records.iter_from(usize::try_from(seq.0).unwrap_or(usize::MAX))
    }

    /// When the first event entered the log, from the beginning of the run's clock.
    pub(crate) fn began(&self) -> Duration {
        self.records.get(0).map_or(Duration::ZERO, |record| record.at)
    }

    /// All entries, in order.
    pub(crate) fn records(&self) -> impl Iterator<Item = (Seq, &LogRecord)> {
        self.records.iter().enumerate().map(|(i, record)| (Seq(i as u64 + 1), record))
    }

    /// The slot values of an execution.
    #[inline]
    pub(crate) fn slots_of(&self, step: &StepRow, start: &ExecutionStart) -> SlotValues {
        if let Some(binding) = start.inputs.others() {
            return (0..step.inputs.len()).map(|slot| self.slot_of(step, binding, slot)).collect();
        }
        // No other binding: every input that takes events is bound to the trigger.
        let triggered = |topic: Option<TopicIndex>| match topic {
            Some(_) => self.one(start.trigger),
            None => SlotValue::Injected,
        };
        match &step.inputs[..] {
            // Nearly every step has one input: its slots need no loop and no allocation.
            [input] => SlotValues::from_buf_and_len([triggered(input.topic), SlotValue::Empty], 1),
            inputs => inputs.iter().map(|input| triggered(input.topic)).collect(),
        }
    }

    /// A branch as a gather has it; `None` if its item is in no log.
    pub(super) fn gathered(
        &self,
        branch: &BranchSummary,
        failure: Option<BranchFailure>,
    ) -> Option<GatheredBranch> {
        let event = |seq: Seq| self.get(seq).map(|record| record.event.clone());
        let events = branch.events.iter().filter_map(|(_, seq)| event(*seq)).collect();
        let (item, failure) = (event(branch.item)?, failure.map(Box::new));
        Some(GatheredBranch { scope: branch.scope, item, events, failure, end: branch.end })
    }

    /// The value of a slot that is bound to one event.
    #[inline]
    fn one(&self, seq: Seq) -> SlotValue {
        self.get(seq).map_or(SlotValue::Empty, |record| SlotValue::One(seq, record.event.clone()))
    }

    /// The value of one slot, by the scheduler's binding.
    pub(crate) fn slot_of(&self, step: &StepRow, binding: &Binding, slot: usize) -> SlotValue {
        self.slot(&binding[slot], step.inputs[slot].topic)
    }

    /// The value of a slot with this binding.
    fn slot(&self, bound: &Bound, topic: Option<TopicIndex>) -> SlotValue {
        match bound {
            Bound::Nothing if topic.is_none() => SlotValue::Injected,
            Bound::Nothing => SlotValue::Empty,
            Bound::One(seq) => self.one(*seq),
            Bound::List(prefixes) => SlotValue::List(self.prefix(prefixes, topic)),
        }
    }

    /// The prefix of a list input: one segment for each scope. The list merges the segments by position, so their
    /// order does not matter.
    fn prefix(&self, prefixes: &Prefixes, topic: Option<TopicIndex>) -> Prefix {
        let mut prefix = Prefix::default();
        // A loop rather than `collect`, which does more for the one segment that most lists have.
        for (scope, len) in prefixes.iter() {
            if let Some(list) = topic.and_then(|topic| self.list(scope, topic)) {
                prefix.segments.push((std::sync::Arc::clone(list.log()), len as usize));
            }
        }
        prefix
    }

    /// Removes the entries from this sequence number on. The lists keep them: the run has ended, and no step
    /// takes a list. The branches of a range come from one batch, so a range goes as a whole. `branched` stays: only a
    /// replay asks for it.
    pub(super) fn retract(&mut self, from: Seq) {
        self.records.truncate(usize::try_from(from.0.saturating_sub(1)).unwrap_or(usize::MAX));
        while self.branches.last().is_some_and(|last| last.first.item >= from) {
            self.branches.pop();
        }
    }

    /// Frees the lists of a settled scope. Executions that hold prefixes still read them.
    pub(super) fn free(&mut self, scope: ScopeId) {
        if !self.lists_of_branches.is_empty() {
            self.lists_of_branches.remove(&scope);
        }
    }
}

impl Branches {
    fn at(&self, place: u32) -> BranchRecord {
        let BranchRecord { scope, item, .. } = self.first;
        let (scope, item) = (ScopeId(scope.0 + place), Seq(item.0 + u64::from(place)));
        BranchRecord { scope, item, ..self.first }
    }
}

/// The list of a topic in a branch; adds it if it is missing.
fn list_of(lists: &mut SmallVec<[(TopicIndex, List); 1]>, topic: TopicIndex) -> &mut List {
    let place = lists.iter().position(|(of, _)| *of == topic).unwrap_or_else(|| {
        lists.push((topic, List::default()));
        lists.len() - 1
    });
    &mut lists[place].1
}

/// The binding of a parameter, for reports.
pub(crate) fn bound_input(bound: &Bound) -> BoundInput {
    match bound {
        Bound::Nothing => BoundInput::Nothing,
        Bound::One(seq) => BoundInput::One(*seq),
        Bound::List(prefixes) => BoundInput::List(prefixes.iter().map(|(_, count)| count).sum()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{Gathered, Roles};
    use crate::table::{EventDef, InputDef, StepDef};

    fn filled(scopes: &[u32]) -> Log {
        let table = DependencyTable::builder("one")
            .event(EventDef::new("E", Roles::NONE.start()))
            .step(StepDef::new("take").input(InputDef::list(["E"])))
            .build_unchecked()
            .expect("the table is sound");
        let mut log = Log::default();
        for (scope, seq) in scopes.iter().zip(1..) {
            let entry = Entry { seq: Seq(seq), scope: ScopeId(*scope), event: EventIndex::at(0) };
            let event = AnyEvent::from_erased(Arc::new(Gathered::new(Vec::new())));
            log.append(&table, entry, event, Cause::Outside, Duration::from_secs(seq));
        }
        log
    }

    fn branch(scope: u32, item: u64) -> BranchRecord {
        BranchRecord { scope: ScopeId(scope), parent: ScopeId::ROOT, item: Seq(item), opener: ExecutionId(1) }
    }

    #[test]
    fn an_event_is_found_at_its_position() {
        let log = filled(&[0, 0]);
        assert!(log.get(Seq(0)).is_none() && log.get(Seq(3)).is_none());
        assert!(log.get(Seq(2)).is_some_and(|record| record.at == Duration::from_secs(2)));
        assert_eq!((log.began(), log.since(Seq(1)).count()), (Duration::from_secs(1), 1));
    }

    #[test]
    fn branches_whose_items_follow_each_other_are_stored_once() {
        let mut log = filled(&[0, 1, 2, 0, 3]);
        let branches = [branch(1, 2), branch(2, 3), branch(3, 5)];
        for branch in branches {
            log.branch(branch);
        }
        assert!(log.branches().eq(branches));
        assert_eq!((log.branches.len(), log.branched()), (2, 3));
    }

    #[test]
    fn retracted_events_and_branches_are_in_no_log() {
        let mut log = filled(&[0, 1, 0, 2]);
        log.branch(branch(1, 2));
        log.branch(branch(2, 4));
        log.retract(Seq(4));
        assert!(log.get(Seq(3)).is_some() && log.get(Seq(4)).is_none());
        assert!(log.branches().eq([branch(1, 2)]));
    }

    #[test]
    fn each_scope_has_lists_of_its_own_until_it_is_freed() {
        let mut log = filled(&[0, 1, 0]);
        let taken = |log: &Log| {
            let prefixes: Prefixes = [(ScopeId::ROOT, 1), (ScopeId(1), 1)].into_iter().collect();
            let SlotValue::List(prefix) = log.slot(&Bound::List(prefixes), Some(TopicIndex::at(0))) else {
                return 0;
            };
            prefix.segments.len()
        };
        assert_eq!(taken(&log), 2);
        log.free(ScopeId(1));
        assert_eq!(taken(&log), 1);
    }
}
