//! The state of a scope by topic and by step of its table. A branch meets few of them and the root all
//! topics, so the state of a row begins when the scope first meets it.
//!
//! ```text
//!  root      topics 0 1 2 3 4 ...            all rows: a row is at its own index
//!  branch    topics 2 7                      rows met so far: found by binary search
//! ```
//!
//! Invariant: the states are ordered by row, and no row has two. After creation, `get_mut` alone adds rows.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::id::{ExecutionId, Seq};

/// The identity of a combination of bound events (S20).
pub(super) type BindingKey = SmallVec<[u64; 8]>;

/// The states of some rows of a table, ordered by row. The first `FEW` need no allocation.
#[derive(Debug)]
pub(super) struct RowStates<T, const FEW: usize>(SmallVec<[T; FEW]>);

/// The state of one row.
pub(super) trait OfRow {
    /// The state before anything happened.
    fn of(row: u32) -> Self;

    /// The row that the state belongs to.
    fn row(&self) -> u32;
}

/// A topic in one scope: events of this scope only.
#[derive(Debug)]
pub(super) struct TopicState {
    /// The row of the topic in the table.
    topic: u32,
    /// The number of the scope's own events of the topic.
    pub(super) count: u32,
    /// The position of the latest event; meaningless while `count` is 0.
    latest: Seq,
    /// The first positions, as many as the largest fixed list of the topic takes. Each branch may have such a
    /// state, so an absent vector takes no more room than a pointer.
    #[expect(clippy::box_collection, reason = "a vector takes three times the room of a pointer")]
    first: Option<Box<Vec<Seq>>>,
}

/// A step in one scope.
#[derive(Debug)]
pub(super) struct StepState {
    /// The row of the step in the table.
    step: u32,
    /// The number of executions; counted only for a step with `max_executions`.
    pub(super) executions: u32,
    /// The bound events that must not be bound again; `None` for a step without such events.
    used: Option<Box<UsedEvents>>,
}

/// The bound events of a step that must not be bound again in the same scope.
#[derive(Debug, Default)]
struct UsedEvents {
    /// The combinations it was executed with; stored only for a step that could meet one again (S20).
    combinations: FxHashSet<BindingKey>,
    /// The gathers it was executed with, and the executions that took them; stored only for a step that takes other
    /// events too (S48).
    gathers: FxHashMap<Seq, ExecutionId>,
}

impl<T, const FEW: usize> Default for RowStates<T, FEW> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T: OfRow, const FEW: usize> RowStates<T, FEW> {
    /// Creates the states of rows 0 to `rows`.
    pub(super) fn all(rows: usize) -> Self {
        Self((0..number(rows)).map(T::of).collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// Restores states that [`into_boxed`](Self::into_boxed) returned.
    pub(super) fn of(all: Box<[T]>) -> Self {
        Self(all.into_vec().into())
    }

    /// Takes all states, without room for more.
    pub(super) fn into_boxed(self) -> Box<[T]> {
        self.0.into_vec().into()
    }

    /// Drops all states.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn get(&self, row: usize) -> Option<&T> {
        self.0.get(self.place(row).ok()?)
    }

    /// The state of a row, which begins here if the row is new. O(rows seen) then, else O(log rows seen).
    #[inline]
    pub(super) fn get_mut(&mut self, row: usize) -> &mut T {
        let place = self.place(row).unwrap_or_else(|place| {
            self.0.insert(place, T::of(number(row)));
            place
        });
        &mut self.0[place]
    }

    /// The place of the row, or where to insert it. With all rows present, each is at its own index.
    #[inline]
    fn place(&self, row: usize) -> Result<usize, usize> {
        match self.0.get(row) {
            // The guess is right for the root, and for the first rows of a branch.
            Some(state) if state.row() == number(row) => Ok(row),
            _ => self.0.binary_search_by_key(&number(row), OfRow::row),
        }
    }
}

/// Tables have fewer than 4 billion rows.
#[expect(clippy::cast_possible_truncation, reason = "the index of a row is 32 bits wide")]
#[inline]
fn number(row: usize) -> u32 {
    row as u32
}

impl TopicState {
    /// Counts another event and returns the new count.
    #[inline]
    pub(super) fn count(&mut self, seq: Seq) -> u32 {
        self.latest = seq;
        self.count += 1;
        self.count
    }

    /// Stores the position of an event that a fixed list takes.
    pub(super) fn keep(&mut self, seq: Seq) {
        self.first.get_or_insert_default().push(seq);
    }

    /// The position of the latest event; `None` before the first.
    pub(super) fn latest(&self) -> Option<Seq> {
        (self.count > 0).then_some(self.latest)
    }

    /// The stored first positions, in order.
    pub(super) fn first(&self) -> &[Seq] {
        self.first.as_ref().map_or(&[], |first| first)
    }
}

impl OfRow for TopicState {
    fn of(topic: u32) -> Self {
        Self { topic, count: 0, latest: Seq(0), first: None }
    }

    fn row(&self) -> u32 {
        self.topic
    }
}

impl StepState {
    /// The state of the step in words, for snapshots.
    pub(super) fn snapshot(&self) -> String {
        let mut combinations: Vec<_> = self.used.iter().flat_map(|used| &used.combinations).collect();
        let mut gathers: Vec<_> = self.used.iter().flat_map(|used| &used.gathers).collect();
        combinations.sort_unstable();
        gathers.sort_unstable();
        format!("{} {} {combinations:?} {gathers:?}", self.step, self.executions)
    }

    pub(super) fn has_executed(&self, key: &BindingKey) -> bool {
        self.used.as_ref().is_some_and(|used| used.combinations.contains(key))
    }

    /// Stores a combination as executed.
    pub(super) fn record(&mut self, key: BindingKey) {
        self.used.get_or_insert_default().combinations.insert(key);
    }

    /// The execution that took the gather.
    pub(super) fn taker_of(&self, gather: Seq) -> Option<ExecutionId> {
        self.used.as_ref()?.gathers.get(&gather).copied()
    }

    /// Stores a gather as taken.
    pub(super) fn take_gather(&mut self, gather: Seq, by: ExecutionId) {
        self.used.get_or_insert_default().gathers.insert(gather, by);
    }
}

impl OfRow for StepState {
    fn of(step: u32) -> Self {
        Self { step, executions: 0, used: None }
    }

    fn row(&self) -> u32 {
        self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_in_any_order_of_first_use() {
        let mut seen = RowStates::<TopicState, 2>::default();
        for row in [7, 0, 3, 1, 9] {
            assert!(seen.get(row).is_none());
            assert_eq!(seen.get_mut(row).count(Seq(row as u64 + 1)), 1);
            assert_eq!(seen.get(row).and_then(TopicState::latest), Some(Seq(row as u64 + 1)));
        }
        assert_eq!(seen.get_mut(3).count(Seq(20)), 2);
        assert!([2, 4, 8, 10].into_iter().all(|row| seen.get(row).is_none()));
        assert_eq!(seen.0.iter().map(OfRow::row).collect::<Vec<_>>(), [0, 1, 3, 7, 9]);
    }

    #[test]
    fn a_full_set_of_rows_starts_empty() {
        let seen = RowStates::<TopicState, 2>::all(5);
        assert!((0..5).all(|row| seen.get(row).is_some_and(|state| state.latest().is_none())));
        assert!(seen.get(5).is_none());
    }
}
