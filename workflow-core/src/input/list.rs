//! `List<E>` and `FixedList<E, N>`: prefixes of the log, which they share. Taking a list clones one pointer
//! per scope and no event (S16).

use std::fmt;
use std::iter::Peekable;
use std::marker::PhantomData;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{EventInput, Slot, StepInput};
use crate::append_log::{AppendLog, Iter};
use crate::error::StepError;
use crate::event::AnyEvent;
use crate::id::Seq;
use crate::input::Pattern;
use crate::spec::InputSpec;

/// An event with its position.
#[derive(Debug, Clone)]
pub(crate) struct LogEntry {
    pub(crate) seq: Seq,
    pub(crate) event: AnyEvent,
}

/// The first `len` entries of the logs of some scopes. Outside of fan-outs there is one segment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefix {
    pub(crate) segments: SmallVec<[(Arc<AppendLog<LogEntry>>, usize); 1]>,
}

impl Prefix {
    pub(crate) fn len(&self) -> usize {
        self.segments.iter().map(|(_, len)| len).sum()
    }

    fn entries(&self) -> Entries<'_> {
        match &self.segments[..] {
            [(log, len)] => Entries::One(log.iter(*len)),
            segments => {
                Entries::Merged(segments.iter().map(|(log, len)| log.iter(*len).peekable()).collect())
            }
        }
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &AnyEvent> {
        self.entries().map(|entry| &entry.event)
    }

    fn get(&self, index: usize) -> Option<&LogEntry> {
        match &self.segments[..] {
            [(log, len)] => (index < *len).then(|| log.get(index)).flatten(),
            _ => self.entries().nth(index),
        }
    }
}

/// The entries of the segments, by position.
enum Entries<'a> {
    One(Iter<'a, LogEntry>),
    Merged(Vec<Peekable<Iter<'a, LogEntry>>>),
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a LogEntry;

    fn next(&mut self) -> Option<&'a LogEntry> {
        match self {
            Self::One(entries) => entries.next(),
            Self::Merged(heads) => next_of(heads),
        }
    }
}

fn next_of<'a>(heads: &mut [Peekable<Iter<'a, LogEntry>>]) -> Option<&'a LogEntry> {
    let seqs = heads.iter_mut().enumerate().filter_map(|(i, head)| Some((head.peek()?.seq, i)));
    let (_, first) = seqs.min()?;
    heads[first].next()
}

/// All events of a type up to the trigger of the step, in log order.
///
/// As an input it needs one event, and each arrival runs the step again, unless a precondition prevents it.
/// `P` is an event type, whose elements the iterator lends as `&E`, or an [`EventSet`](crate::EventSet),
/// whose elements the iterator makes. A clone shares the log.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Scored { points: u32 }
/// fn total(scores: &List<Scored>) -> u32 {
///     scores.iter().map(|score| score.points).sum()
/// }
/// ```
pub struct List<P> {
    prefix: Prefix,
    pattern: PhantomData<fn() -> P>,
}

impl<P> List<P> {
    fn of(prefix: &Prefix) -> Self {
        Self { prefix: prefix.clone(), pattern: PhantomData }
    }

    /// The list of a passive input, without events.
    pub(super) fn none() -> Self {
        Self::of(&Prefix::default())
    }

    /// The number of events. O(1) outside of fan-outs, O(depth) inside.
    pub fn len(&self) -> usize {
        self.prefix.len()
    }

    /// Whether the list has no events. A step gets such a list only from a [`Passive`](crate::Passive) input.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<P: Pattern> List<P> {
    /// The events, in log order.
    pub fn iter(&self) -> ListIter<'_, P> {
        ListIter { entries: self.prefix.entries(), left: self.len(), pattern: PhantomData }
    }

    /// The event at `index`. O(log n) outside of fan-outs, O(n) inside.
    pub fn get(&self, index: usize) -> Option<P::Item<'_>> {
        P::item(&self.prefix.get(index)?.event)
    }

    /// The oldest event.
    pub fn first(&self) -> Option<P::Item<'_>> {
        self.get(0)
    }

    /// The newest event.
    pub fn last(&self) -> Option<P::Item<'_>> {
        self.get(self.len().checked_sub(1)?)
    }
}

impl<P> Clone for List<P> {
    fn clone(&self) -> Self {
        Self::of(&self.prefix)
    }
}

impl<P> fmt::Debug for List<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "List({} events)", self.len())
    }
}

impl<'a, P: Pattern> IntoIterator for &'a List<P> {
    type Item = P::Item<'a>;
    type IntoIter = ListIter<'a, P>;

    fn into_iter(self) -> ListIter<'a, P> {
        self.iter()
    }
}

/// Iterates over the events of a [`List`] or [`FixedList`].
pub struct ListIter<'a, P> {
    entries: Entries<'a>,
    left: usize,
    pattern: PhantomData<fn() -> P>,
}

impl<P> fmt::Debug for ListIter<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListIter({} left)", self.left)
    }
}

impl<'a, P: Pattern> Iterator for ListIter<'a, P> {
    type Item = P::Item<'a>;

    fn next(&mut self) -> Option<P::Item<'a>> {
        let item = P::item(&self.entries.next()?.event);
        self.left = self.left.saturating_sub(1);
        item
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<P: Pattern> ExactSizeIterator for ListIter<'_, P> {}

/// Exactly the first `N` events of a type.
///
/// As an input it triggers once, when the log has the `N`-th event. Later events of the type neither change
/// the list nor run the step again. The run's report counts them as surplus.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Scored { points: u32 }
/// fn best(scores: &FixedList<Scored, 3>) -> u32 {
///     scores.to_array().map(|score| score.points).into_iter().max().unwrap_or(0)
/// }
/// ```
pub struct FixedList<P, const N: usize> {
    list: List<P>,
}

impl<P: Pattern, const N: usize> FixedList<P, N> {
    /// The number of events: always `N`.
    pub const fn len(&self) -> usize {
        N
    }

    /// Always false, since a fixed list of length 0 does not compile.
    pub const fn is_empty(&self) -> bool {
        N == 0
    }

    /// The events, in log order.
    pub fn iter(&self) -> ListIter<'_, P> {
        self.list.iter()
    }

    /// The event at `index`.
    pub fn get(&self, index: usize) -> Option<P::Item<'_>> {
        self.list.get(index)
    }

    /// All `N` events as an array, in log order.
    ///
    /// # Panics
    /// Never: the library binds a fixed list only with exactly `N` events.
    pub fn to_array(&self) -> [P::Item<'_>; N] {
        let mut items = self.iter();
        std::array::from_fn(|_| items.next().expect("a fixed list is bound with exactly N events"))
    }
}

impl<P, const N: usize> Clone for FixedList<P, N> {
    fn clone(&self) -> Self {
        Self { list: self.list.clone() }
    }
}

impl<P, const N: usize> fmt::Debug for FixedList<P, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FixedList({N} events)")
    }
}

impl<'a, P: Pattern, const N: usize> IntoIterator for &'a FixedList<P, N> {
    type Item = P::Item<'a>;
    type IntoIter = ListIter<'a, P>;

    fn into_iter(self) -> ListIter<'a, P> {
        self.iter()
    }
}

impl<P: Pattern> StepInput for List<P> {
    const SPEC: InputSpec = InputSpec::list(P::EVENTS);
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        slot.prefix().map(Self::of)
    }
}

impl<P: Pattern> StepInput for &List<P> {
    const SPEC: InputSpec = InputSpec::list(P::EVENTS);
    type Item<'a> = &'a List<P>;

    fn fill(slot: Slot<'_>) -> Result<&List<P>, StepError> {
        let list = slot.prefix().map(List::of)?;
        Ok(slot.keep(list))
    }
}

impl<P: Pattern, const N: usize> FixedList<P, N> {
    fn bound(slot: &Slot<'_>) -> Result<Self, StepError> {
        let list = List::of(slot.prefix()?);
        if list.len() == N { Ok(Self { list }) } else { Err(slot.mismatch()) }
    }
}

impl<P: Pattern, const N: usize> StepInput for FixedList<P, N> {
    const SPEC: InputSpec = InputSpec::fixed(P::EVENTS, N);
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Self::bound(&slot)
    }
}

impl<P: Pattern, const N: usize> StepInput for &FixedList<P, N> {
    const SPEC: InputSpec = InputSpec::fixed(P::EVENTS, N);
    type Item<'a> = &'a FixedList<P, N>;

    fn fill(slot: Slot<'_>) -> Result<&FixedList<P, N>, StepError> {
        let list = FixedList::bound(&slot)?;
        Ok(slot.keep(list))
    }
}

impl<P: Pattern> EventInput for List<P> {}
impl<P: Pattern> EventInput for &List<P> {}
impl<P: Pattern, const N: usize> EventInput for FixedList<P, N> {}
impl<P: Pattern, const N: usize> EventInput for &FixedList<P, N> {}
