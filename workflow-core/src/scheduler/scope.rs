//! The tree of scopes (S44): what readiness and binding need, per scope. A run without fan-outs is its root
//! alone.
//!
//! ```text
//!  root (0)    topics, satisfied mask, executed combinations, pending work
//!   ├─ branch 1 ─ beside ─ branch 2     siblings: the open branches of one fan-out
//!   │    └─ branch 4                    children: per fan-out the first and the last sibling
//!   └─ branch 3                         another fan-out
//! ```
//!
//! The tree knows the events of each scope and the amount of its pending work. The tree knows neither the
//! kind of the work nor when a fan-out is gathered.
//!
//! Invariants: a step sees the events of its scope and of its ancestors, which [`chain`](Scopes::chain)
//! walks. `pending` is 0 exactly if nothing is left in a scope or below it; a branch reaches `settling` when
//! that happens. Closed branches lose their state, and their number is never used again. [`busy`] says which
//! branches only wait.
//!
//! An example of pending work, of branch 1 with its item:
//!
//! | what happens | `pending` of branch 1 |
//! | --- | --- |
//! | the item is logged | 1: an event to evaluate |
//! | its evaluation creates an execution | 2, and 1 when the event is done |
//! | the execution commits a request | 3: the count of the execution passes to the batch, event and request count |
//! | batch and event are done | 1: the open request |
//! | the reply arrives and is evaluated; nothing runs | 0: the branch is queued in `settling` |

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap};

use smallvec::SmallVec;

use super::GroupId;
use super::row_states::{BindingKey, RowStates, StepState, TopicState};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::paged::Paged;
use crate::table::{DependencyTable, EventIndex, Mask, StepIndex, StepRow, TopicIndex};

mod busy;
mod reopen;
mod suspended;

/// The scopes of a run: the root and the open branches.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    /// The scope of the run, which never closes.
    root: Scope,
    /// The open branches, between them the free entries of closed ones.
    branches: Paged<Scope, 0>,
    /// The indexes of the free entries.
    free: Vec<u32>,
    /// The index of branch n, at n - 1; `CLOSED` if it is not open. Branches are numbered without gaps, so a
    /// vector serves as the map.
    places: Vec<u32>,
    /// The number of the next scope. Numbers are reserved in the order of items, before branches open.
    next: u32,
    /// The number of sweeps so far. Equal to the length of the history of sweeps.
    sweeps: u32,
    /// Branches without pending work, to be settled in order once every event is evaluated (S47). A branch
    /// may be in here twice.
    settling: BinaryHeap<Reverse<ScopeId>>,
    /// Fan-outs that may have room for another branch, since one of theirs only waits (S50). A fan-out may be in here
    /// twice, or without room.
    with_room: BinaryHeap<Reverse<GroupId>>,
}

/// Marks a branch that is not open, in `places`.
const CLOSED: u32 = u32::MAX;

/// The most free entries whose memory stays when no branch is open.
const KEPT: usize = 64;

/// One scope. A run may have very many, so a branch in which little happens needs no further allocation.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// The scope that opened this branch; `None` for the root.
    pub(super) parent: Option<ScopeId>,
    /// The fan-out of a branch, and the place of the branch in it; `None` for the root.
    pub(super) branch: Option<(GroupId, u32)>,
    /// The conditions that this scope's own events satisfy. Bits are only added.
    pub(super) satisfied: Mask,
    /// The scope's own events by topic: how many, the latest, and the first.
    topics: RowStates<TopicState, 2>,
    /// By step, what this scope must remember of executions (S19, S20). Steps without such rules have no
    /// entry.
    steps: RowStates<StepState, 1>,
    /// The open branches directly below, by fan-out. Fan-outs and items are numbered together, so the order
    /// is that of the items in the log.
    children: BTreeMap<GroupId, Siblings>,
    /// The neighbouring open branches of the same fan-out.
    beside: Beside,
    /// The amount of pending work, which keeps a branch from being settled (S47): events to evaluate,
    /// candidates, executions, batches, open requests, pending timers, and open fan-outs.
    pub(super) pending: u32,
    /// How much of `pending` only waits: open requests, pending timers, and fan-outs whose branches all only wait. 0
    /// unless `bounded`.
    waits: u32,
    /// Whether it matters that the branch only waits: the bound of its fan-out, or of one further out, leaves out such
    /// branches.
    bounded: bool,
    /// The branch's own events that some gather of the table may take, in order. Empty in the root.
    pub(super) carried: SmallVec<[(EventIndex, Seq); 1]>,
    /// The failed executions of this branch that no step caught, with those that climbed into it. Empty in the root,
    /// where such a failure ends the run.
    pub(super) failures: Vec<ExecutionId>,
    /// The number of sweeps when the scope opened. The branch is part of the sweeps from this number on.
    opened: u32,
    /// The number of sweeps after the latest sweep of an event of this scope; 0 before the first.
    swept: u32,
}

/// The open branches of one fan-out: the first and the last.
#[derive(Debug)]
struct Siblings {
    /// The oldest open one. Changes when it closes.
    first: ScopeId,
    /// The newest, behind which the next branch of the fan-out is linked.
    last: ScopeId,
    /// The number of open ones that do not only wait. Counted only where the branches are `bounded`.
    busy: u32,
    /// Whether further branches open as soon as enough of the open ones only wait.
    opens_more: bool,
}

/// The neighbours of a branch in the list of its siblings.
#[derive(Debug, Default)]
struct Beside {
    /// The one that opened before; `None` for the first.
    before: Option<ScopeId>,
    /// The one that opened next; `None` for the last.
    after: Option<ScopeId>,
}

/// What a closed branch leaves behind.
#[derive(Debug)]
pub(super) struct ClosedBranch {
    /// The scope that opened it.
    pub(super) parent: ScopeId,
    /// Its fan-out, and its place in it.
    pub(super) branch: (GroupId, u32),
    /// Its own events that some gather of the table may take, in order.
    pub(super) carried: SmallVec<[(EventIndex, Seq); 1]>,
    /// Its failed executions that no step caught.
    pub(super) failures: Vec<ExecutionId>,
}

impl ClosedBranch {
    /// The same of a branch whose state is kept; `None` for the root.
    pub(super) fn of(scope: &Scope) -> Option<Self> {
        let (parent, branch) = scope.parent.zip(scope.branch)?;
        Some(Self { parent, branch, carried: scope.carried.clone(), failures: scope.failures.clone() })
    }
}

/// How a branch stands among its siblings when it opens.
#[derive(Default)]
struct Linked {
    /// The sibling that opened before.
    before: Option<ScopeId>,
    /// Whether the others only waited until now.
    waited: bool,
    /// Whether its parent is [`bounded`](Scope::bounded).
    bounded: bool,
}

impl Scope {
    fn root(table: &DependencyTable) -> Self {
        Self { topics: RowStates::all(table.topics.len()), ..Self::default() }
    }

    /// Takes the results of a branch and makes its entry that of a scope in which nothing has happened. In place, since
    /// a scope is large and branches come by the thousand.
    fn clear(&mut self) -> (SmallVec<[(EventIndex, Seq); 1]>, Vec<ExecutionId>) {
        // All fields are named, so that a new one cannot be forgotten here.
        let Self {
            parent,
            branch,
            satisfied,
            topics,
            steps,
            children,
            beside,
            pending,
            waits,
            bounded,
            carried,
            failures,
            opened,
            swept,
        } = self;
        (*parent, *branch, *beside) = (None, None, Beside::default());
        (*pending, *waits, *bounded, *opened, *swept) = (0, 0, false, 0, 0);
        satisfied.clear();
        topics.clear();
        steps.clear();
        if !children.is_empty() {
            children.clear();
        }
        (std::mem::take(carried), std::mem::take(failures))
    }

    /// The state of the scope in words, for snapshots.
    pub(super) fn snapshot(&self) -> String {
        let Self { parent, branch, satisfied, topics, steps, pending, waits, carried, failures, .. } = self;
        let steps = steps.iter().map(super::row_states::StepState::snapshot).collect::<Vec<_>>();
        format!(
            "parent {parent:?} branch {branch:?} satisfied {satisfied:?} topics {topics:?} steps {steps:?} pending \
             {pending} waits {waits} carried {carried:?} failures {failures:?}"
        )
    }

    /// The number of sweeps before it opened.
    pub(super) fn opened(&self) -> u32 {
        self.opened
    }

    /// Whether no branch below is open.
    #[inline]
    pub(super) fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// The number of the scope's own events of the topic.
    pub(super) fn count_of(&self, topic: TopicIndex) -> u32 {
        self.topics.get(topic.get()).map_or(0, |state| state.count)
    }

    /// The scope's latest own event of the topic.
    pub(super) fn latest(&self, topic: TopicIndex) -> Option<Seq> {
        self.topics.get(topic.get()).and_then(TopicState::latest)
    }

    /// The scope's first own events of the topic, as many as the largest fixed list takes.
    pub(super) fn first(&self, topic: TopicIndex) -> &[Seq] {
        self.topics.get(topic.get()).map_or(&[], TopicState::first)
    }

    /// The number of executions of the step here; counted only for a step with `max_executions`.
    pub(super) fn executions(&self, step: StepIndex) -> u32 {
        self.steps.get(step.get()).map_or(0, |state| state.executions)
    }

    pub(super) fn has_executed(&self, step: StepIndex, key: &BindingKey) -> bool {
        self.steps.get(step.get()).is_some_and(|state| state.has_executed(key))
    }

    /// The execution of the step here that took the gather (S48).
    pub(super) fn taker_of(&self, step: StepIndex, gather: Seq) -> Option<ExecutionId> {
        self.steps.get(step.get())?.taker_of(gather)
    }

    /// Counts an execution of the step in this scope.
    #[inline]
    pub(super) fn executed(&mut self, step: StepIndex, row: &StepRow) {
        if row.policy.max_executions.is_some() {
            self.steps.get_mut(step.get()).executions += 1;
        }
    }

    /// Makes an event of this scope visible.
    #[inline]
    pub(super) fn count(&mut self, table: &DependencyTable, event: EventIndex, seq: Seq) {
        let row = table.event(event);
        for topic in &row.topics {
            self.count_topic(table, *topic, seq);
        }
        // The root settles in no gather, so it carries nothing.
        if row.carried && self.branch.is_some() {
            self.carried.push((event, seq));
        }
    }

    /// Counts an event of the topic, stores its position for fixed lists, and satisfies the conditions that
    /// this number of events fulfils.
    #[inline]
    fn count_topic(&mut self, table: &DependencyTable, index: TopicIndex, seq: Seq) {
        let row = table.topic(index);
        let state = self.topics.get_mut(index.get());
        let count = state.count(seq);
        // Later events change nothing here, which keeps frequent topics cheap.
        if count > row.most {
            return;
        }
        // `most` is the greatest number that a condition or a fixed list of the topic asks for.
        if row.fixed.iter().any(|(_, wanted)| count <= *wanted) {
            state.keep(seq);
        }
        for condition in &row.conditions {
            if condition.least == count {
                self.satisfied.set(condition.bit);
            }
        }
    }
}

impl Scopes {
    #[inline]
    pub(super) fn new(table: &DependencyTable) -> Self {
        Self { root: Scope::root(table), next: 1, ..Self::default() }
    }

    /// Numbers a scope that opens later.
    pub(super) fn reserve(&mut self) -> ScopeId {
        let id = ScopeId(self.next);
        self.next += 1;
        id
    }

    /// Opens a branch, whose number was reserved. The branches of one fan-out open in their order, so a new branch is
    /// the last of its siblings. The branch has no pending work yet: the caller logs its item next. `leaves_out` says
    /// whether the bound of its fan-out leaves out branches that only wait.
    pub(super) fn open(&mut self, id: ScopeId, parent: ScopeId, branch: (GroupId, u32), leaves_out: bool) {
        let linked = self.get_mut(parent).map(|scope| scope.link_child(id, branch.0));
        let Linked { before, waited, bounded } = linked.unwrap_or_default();
        let bounded = leaves_out || bounded;
        if waited {
            self.pass_on(parent, false);
        }
        if let Some(before) = before.and_then(|before| self.get_mut(before)) {
            before.beside.after = Some(id);
        }
        let beside = Beside { before, after: None };
        let opened = self.sweeps;
        let (parent, branch) = (Some(parent), Some(branch));
        // Entries are reused, so memory follows the number of branches that are open together.
        let reused = self.free.pop();
        let place = if let Some((place, cleared)) =
            reused.and_then(|place| Some((place, self.branches.get_mut(place as usize)?)))
        {
            (cleared.parent, cleared.branch, cleared.beside) = (parent, branch, beside);
            (cleared.bounded, cleared.opened) = (bounded, opened);
            place
        } else {
            let place = u32::try_from(self.branches.len()).expect("a run has fewer than 4 billion branches");
            self.branches.push(Scope { parent, branch, beside, bounded, opened, ..Scope::default() });
            place
        };
        let at = index_of(id);
        if self.places.len() <= at {
            self.places.resize(at + 1, CLOSED);
        }
        self.places[at] = place;
    }

    /// Closes a branch and returns what it leaves behind; `None` if it is not open. Its open branches must be closed
    /// already.
    pub(super) fn close(&mut self, id: ScopeId) -> Option<ClosedBranch> {
        let place = self.place(id)?;
        let scope = self.branches.get_mut(place)?;
        let (parent, branch) = scope.parent.zip(scope.branch)?;
        let (beside, waits) = (std::mem::take(&mut scope.beside), scope.bounded.then(|| scope.only_waits()));
        let (carried, failures) = scope.clear();
        self.leave(id, (parent, branch.0), &beside, waits);
        Some(ClosedBranch { parent, branch, carried, failures })
    }

    /// Frees the entry of a branch and takes it out of its fan-out. `waits` says whether it only waited, if that matters.
    fn leave(
        &mut self,
        id: ScopeId,
        (parent, group): (ScopeId, GroupId),
        beside: &Beside,
        waits: Option<bool>,
    ) {
        // From here on the number leads nowhere: late results for the branch find no scope.
        let at = std::mem::replace(&mut self.places[index_of(id)], CLOSED);
        self.free.push(at);
        if let Some(waits) = waits {
            self.leave_busy(parent, group, waits);
        }
        self.unlink(parent, group, beside);
        // No branch is open: a run that had very many gives their memory back.
        if self.free.len() == self.branches.len() && self.free.len() > KEPT {
            (self.branches, self.free) = (Paged::default(), Vec::new());
        }
    }

    /// Removes a branch from the list of its siblings.
    fn unlink(&mut self, parent: ScopeId, group: GroupId, beside: &Beside) {
        let Beside { before, after } = *beside;
        if let Some(before) = before.and_then(|before| self.get_mut(before)) {
            before.beside.after = after;
        }
        if let Some(after) = after.and_then(|after| self.get_mut(after)) {
            after.beside.before = before;
        }
        let Some(parent) = self.get_mut(parent) else { return };
        // The parent knows the ends of the list only, and a closed end moves to its neighbour.
        match (before, after) {
            (None, None) => drop(parent.children.remove(&group)),
            (None, Some(first)) => parent.siblings(group, |siblings| siblings.first = first),
            (Some(last), None) => parent.siblings(group, |siblings| siblings.last = last),
            (Some(_), Some(_)) => {}
        }
    }

    /// The index of an open branch in `branches`.
    fn place(&self, id: ScopeId) -> Option<usize> {
        let place = *self.places.get(index_of(id))?;
        (place != CLOSED).then_some(place as usize)
    }

    /// The root, which is open as long as the run.
    pub(super) fn root(&self) -> &Scope {
        &self.root
    }

    /// The scope, if it is the root or an open branch. O(1).
    #[inline]
    pub(super) fn get(&self, id: ScopeId) -> Option<&Scope> {
        if id == ScopeId::ROOT { Some(&self.root) } else { self.branches.get(self.place(id)?) }
    }

    /// The same, to change it.
    #[inline]
    pub(super) fn get_mut(&mut self, id: ScopeId) -> Option<&mut Scope> {
        if id == ScopeId::ROOT { Some(&mut self.root) } else { self.branches.get_mut(self.place(id)?) }
    }

    /// The scope and its ancestors, innermost first.
    pub(super) fn chain(&self, id: ScopeId) -> impl Iterator<Item = (ScopeId, &Scope)> {
        let first = self.get(id).map(|scope| (id, scope));
        std::iter::successors(first, |(_, scope)| {
            let parent = scope.parent?;
            Some((parent, self.get(parent)?))
        })
    }

    /// Appends the open branches below a scope, each before those below it, in order (S46).
    pub(super) fn below(&self, id: ScopeId, into: &mut Vec<ScopeId>) {
        let Some(scope) = self.get(id).filter(|scope| !scope.is_leaf()) else { return };
        // A list rather than recursion, since branches can nest deeply.
        let mut left: Vec<ScopeId> = scope.first_children().collect();
        while let Some(child) = left.pop() {
            into.push(child);
            if let Some(scope) = self.get(child) {
                // The list is a stack: children are pushed last, so they come before the next sibling.
                left.extend(scope.beside.after);
                left.extend(scope.first_children());
            }
        }
    }

    /// Puts branches in the order of evaluation, each once.
    pub(super) fn sort(&self, branches: &mut Vec<ScopeId>) {
        branches.sort_unstable();
        branches.dedup();
        let is_nested = |id: &ScopeId| self.get(*id).is_some_and(|scope| scope.parent != Some(ScopeId::ROOT));
        // Directly below the root the numbers are the order. A nested branch comes right after its parent,
        // which its path says.
        if branches.iter().any(is_nested) {
            branches.sort_by_cached_key(|id| {
                let mut path: SmallVec<[ScopeId; 4]> = self.chain(*id).map(|(id, _)| id).collect();
                path.reverse();
                path
            });
        }
    }

    /// Counts a sweep of an event of this scope. The evaluation calls it once per sweep, before the sweep's verdicts.
    pub(super) fn sweep(&mut self, id: ScopeId) {
        self.sweeps += 1;
        let sweeps = self.sweeps;
        if let Some(scope) = self.get_mut(id) {
            scope.swept = sweeps;
        }
    }

    /// The number of sweeps before the branch opened and now, if the branch was in one of them.
    pub(super) fn swept(&self, id: ScopeId) -> Option<[u32; 2]> {
        let opened = self.get(id)?.opened;
        // Only an event of an ancestor is swept through the branch, and only since the branch opened.
        let is_swept = opened < self.sweeps && self.chain(id).skip(1).any(|(_, scope)| scope.swept > opened);
        is_swept.then_some([opened, self.sweeps])
    }

    /// The latest event of a topic, of the innermost scope that has one (S45).
    pub(super) fn latest(&self, id: ScopeId, topic: TopicIndex) -> Option<Seq> {
        self.chain(id).find_map(|(_, scope)| scope.latest(topic))
    }

    /// The number of events of a topic that the scope sees.
    pub(super) fn visible(&self, id: ScopeId, topic: TopicIndex) -> u32 {
        self.chain(id).map(|(_, scope)| scope.count_of(topic)).sum()
    }

    /// Adds pending work to a scope, which keeps it from being settled (S47), until
    /// [`remove_pending`](Self::remove_pending).
    #[inline]
    pub(super) fn add_pending(&mut self, id: ScopeId) {
        let Some(scope) = self.get_mut(id) else { return };
        let waited = scope.only_waits();
        scope.pending += 1;
        if waited {
            self.note_busy(id);
        }
    }

    /// Removes pending work from a scope. A branch without any is queued to be settled. A closed scope is ignored: its
    /// work was dropped with it.
    #[inline]
    pub(super) fn remove_pending(&mut self, id: ScopeId) {
        let Some(scope) = self.get_mut(id) else { return };
        scope.pending -= 1;
        if scope.pending == 0 && scope.branch.is_some() {
            self.settling.push(Reverse(id));
        } else if scope.only_waits() {
            self.note_waiting(id);
        }
    }

    /// Whether no branch waits to be settled, and no fan-out for room.
    #[inline]
    pub(super) fn are_settled(&self) -> bool {
        self.settling.is_empty() && self.with_room.is_empty()
    }

    /// The next branch to look at, and whether no work is left in it.
    /// The scope may have closed or got new work since it was queued, so the caller checks.
    #[inline]
    pub(super) fn next_to_settle(&mut self) -> Option<(ScopeId, bool)> {
        let Reverse(id) = self.settling.pop()?;
        Some((id, self.get(id).is_some_and(|scope| scope.pending == 0)))
    }

    /// The state of a step in a scope, which begins here if it is new.
    pub(super) fn step_mut(&mut self, id: ScopeId, step: StepIndex) -> Option<&mut StepState> {
        self.get_mut(id).map(|scope| scope.steps.get_mut(step.get()))
    }
}

impl Scope {
    /// Adds an open branch behind the others of its fan-out. Its item is evaluated next, so it is busy.
    fn link_child(&mut self, id: ScopeId, group: GroupId) -> Linked {
        let bounded = self.bounded;
        match self.children.entry(group) {
            Entry::Vacant(none) => {
                none.insert(Siblings { first: id, last: id, busy: 1, opens_more: false });
                Linked { before: None, waited: false, bounded }
            }
            Entry::Occupied(mut siblings) => {
                let siblings = siblings.get_mut();
                let waited = siblings.only_wait();
                siblings.busy += 1;
                let before = std::mem::replace(&mut siblings.last, id);
                Linked { before: Some(before), waited, bounded }
            }
        }
    }

    /// The fan-outs directly below with open branches.
    pub(super) fn fan_outs(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.children.keys().copied()
    }

    /// The first open branch of each fan-out directly below, the last fan-out first.
    fn first_children(&self) -> impl Iterator<Item = ScopeId> {
        self.children.values().rev().map(|siblings| siblings.first)
    }

    /// Changes the ends of the list of one fan-out, if any branch of it is open.
    fn siblings(&mut self, group: GroupId, change: impl FnOnce(&mut Siblings)) {
        self.children.entry(group).and_modify(change);
    }
}

/// The index in `places`; out of range for the root.
fn index_of(id: ScopeId) -> usize {
    (id.0 as usize).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(groups: &[(u32, &[u32])]) -> Scopes {
        let mut scopes = Scopes::default();
        for (group, ids) in groups {
            for (id, place) in ids.iter().zip(0..) {
                scopes.open(ScopeId(*id), ScopeId::ROOT, (GroupId::of(*group), place), false);
            }
        }
        scopes
    }

    fn below_root(scopes: &Scopes) -> Vec<u32> {
        let mut below = Vec::new();
        scopes.below(ScopeId::ROOT, &mut below);
        below.into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn open_branches_are_listed_by_number_in_any_order_of_opening_and_closing() {
        let mut scopes = opened(&[(2, &[5, 6]), (1, &[1, 2, 3, 4])]);
        assert_eq!(below_root(&scopes), [1, 2, 3, 4, 5, 6]);
        for (closed, left) in [
            (3, &[1, 2, 4, 5, 6][..]),
            (1, &[2, 4, 5, 6]),
            (6, &[2, 4, 5]),
            (5, &[2, 4]),
            (4, &[2]),
            (2, &[]),
        ] {
            assert!(scopes.close(ScopeId(closed)).is_some());
            assert!(scopes.close(ScopeId(closed)).is_none());
            assert_eq!(below_root(&scopes), left);
        }
        assert!(scopes.get(ScopeId::ROOT).is_some_and(Scope::is_leaf));
    }

    #[test]
    fn branches_below_a_branch_follow_right_behind_it() {
        let mut scopes = opened(&[(1, &[1, 2])]);
        scopes.open(ScopeId(3), ScopeId(1), (GroupId::of(2), 0), false);
        scopes.open(ScopeId(4), ScopeId(2), (GroupId::of(3), 0), false);
        assert_eq!(below_root(&scopes), [1, 3, 2, 4]);
    }

    #[test]
    fn branches_may_nest_deeper_than_calls() {
        let mut scopes = Scopes::default();
        for depth in 1..=100_000 {
            scopes.open(ScopeId(depth), ScopeId(depth - 1), (GroupId::of(depth), 0), false);
        }
        assert!(below_root(&scopes).into_iter().eq(1..=100_000));
    }

    #[test]
    fn a_branch_in_a_reused_entry_starts_empty() {
        let mut scopes = opened(&[(1, &[1])]);
        if let Some(scope) = scopes.get_mut(ScopeId(1)) {
            (scope.pending, scope.failures) = (3, vec![ExecutionId(1)]);
        }
        assert!(scopes.close(ScopeId(1)).is_some_and(|closed| closed.failures == [ExecutionId(1)]));
        scopes.open(ScopeId(2), ScopeId::ROOT, (GroupId::of(2), 0), false);
        assert_eq!((scopes.branches.len(), scopes.free.len()), (1, 0));
        assert!(scopes.get(ScopeId(1)).is_none());
        assert!(scopes.get(ScopeId(2)).is_some_and(|scope| scope.pending == 0 && scope.failures.is_empty()));
    }

    #[test]
    fn little_memory_stays_once_no_branch_is_open() {
        let ids: Vec<u32> = (1..=1_000).collect();
        let mut scopes = opened(&[(1, &ids)]);
        assert_eq!(scopes.branches.len(), 1_000);
        for id in ids.iter().rev() {
            assert!(scopes.close(ScopeId(*id)).is_some());
        }
        assert_eq!((scopes.branches.len(), scopes.free.len()), (0, 0));
        scopes.open(ScopeId(1_001), ScopeId::ROOT, (GroupId::of(2), 0), false);
        assert_eq!(below_root(&scopes), [1_001]);
    }
}
