//! Fan-outs: opening branches within their bound (S50), settling them (S47), gathering them (S48), and
//! applying their failure policies (S49).
//!
//! A group is one fan-out of one execution, from its batch until it is gathered or dropped. The group knows
//! its items, its branches and their results. The group evaluates no steps: when a branch opens, its item is
//! an event like any other.
//!
//! ```text
//!  batch with FanOut ─▶ open ─▶ branch 1, branch 2 ... up to `concurrency`
//!                        ▲           │ pending work of a branch becomes 0
//!    next item ──────────┴────── settle ─▶ summary: events, failures
//!                                    │ none open, none left
//!                                    ▼
//!                              gather: one internal event in the opener's scope
//! ```
//!
//! Invariants: an open group counts once as pending work of the scope that opened it, so that this scope is
//! not settled before its group is gathered. Positions and scopes of the items are numbered without gaps when
//! their batch enters the log, however late their branches open.
//!
//! Example, of three items at most two of which are open: items at 4, 5, 6 in scopes 1, 2, 3. Scopes 1 and 2
//! open. Scope 2 is settled, and scope 3 opens. When 1 and 3 are settled, `Gathered` enters the log, with the
//! branches in the order 1, 2, 3. A branch that only waits is open and does not count within the bound, so another
//! one opens in its place once nothing is left to settle.
//!
//! With [`FanOutTerms::until`], a group is settled once that many branches have settled without a failure, and drops
//! the others. As long as enough branches can, failures are only gathered, and so are as many as
//! [`FanOutTerms::tolerated`] says. Any other failure in a branch climbs as the policies say:
//!
//! | policy | effect on the group | effect on the opener's scope |
//! | --- | --- | --- |
//! | `FailAll` | all branches are dropped | the failure counts there, and climbs on |
//! | `ContinueOthers` | the failure is in the gather | none; the run is degraded |
//! | `WaitAll` | the other branches continue | all failures count there once every branch is settled |
//!
//! A failure that would count in the opener's scope is one of the execution that opened the group, and ends there if a
//! step catches that, or if its own step tolerates it (S60).
//!
//! Where a step catches failures of the step that opened the fan-out, or the run continues after them, a failure that
//! would count in the opener's scope is a failure of the opening execution instead (S60).

use std::collections::HashSet;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Entry;
use super::actions::QueuedAction;
use super::board::Board;
use super::counts::Counts;
use super::evaluate::Evaluation;
use super::redrive::Kept;
use super::scope::{ClosedBranch, Scope, Scopes};
use crate::event::BranchEnd;
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::output::FanOutPolicy;
use crate::table::{EventIndex, FanOutIndex};

mod failing;
mod kept;
mod terms;

pub use terms::FanOutTerms;

use failing::Fate;
use terms::Tally;

/// The number of one fan-out of one execution, unique in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct GroupId(u32);

/// The open fan-outs of a run: those that are neither gathered nor dropped.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Looked up by number; nothing depends on the order of the map.
    open: FxHashMap<GroupId, Group>,
    /// The number of open ones, by the scope that opened them and the output. Only arrivals ask.
    openers: Counts<(ScopeId, FanOutIndex)>,
    /// The number of the next fan-out.
    next: u32,
    /// The work that a redrive begins anew (S39). `None` before the first failure that can end the run.
    pub(super) kept: Option<Box<Kept>>,
}

/// A fan-out of a batch, whose items have their positions.
#[derive(Debug)]
pub(super) struct Opening {
    /// The output of the table, which says what the branches are gathered as.
    pub(super) fan_out: FanOutIndex,
    /// The execution that returned it.
    pub(super) by: ExecutionId,
    /// The scope of the execution. The gather will belong to it.
    pub(super) opener: ScopeId,
    /// All items; none of their branches is open yet.
    pub(super) items: Items,
    /// The bound, the policy, and how many branches are enough.
    pub(super) terms: FanOutTerms,
}

/// The items whose branches are not open yet. Their positions and scopes follow each other without gaps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items {
    /// The item whose branch opens next. Only meaningful while `left` is above 0.
    next: Option<Entry>,
    /// The number of items from `next` on.
    left: u32,
}

/// The state of one open fan-out.
#[derive(Debug)]
pub(super) struct Group {
    /// The output of the table that opened this group.
    pub(super) fan_out: FanOutIndex,
    /// The execution that opened the group, whose failure the group's is (S60).
    by: ExecutionId,
    /// The scope that waits for this group, by a count in its pending work.
    pub(super) opener: ScopeId,
    /// The policy applies to each failure that no step in the branch catches.
    pub(super) terms: FanOutTerms,
    /// Present where fewer than all branches are enough, or some may fail.
    tally: Option<Tally>,
    /// The items whose branches are not open yet.
    unopened: Items,
    /// The number of open branches.
    open: usize,
    /// The summaries in fan-out order, of each branch that is open or settled. Events and failures are empty
    /// until the branch is settled.
    branches: Vec<BranchSummary>,
}

/// The events of a branch that gathers take, in order: type and position.
type Carried = SmallVec<[(EventIndex, Seq); 1]>;

/// The result of one branch of a fan-out, which is settled or dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchSummary {
    /// The scope of the branch.
    pub scope: ScopeId,
    /// The position of the item that opened the branch.
    pub item: Seq,
    /// The branch's own events that a gather of this fan-out takes, in order: type and position.
    pub events: SmallVec<[(EventIndex, Seq); 1]>,
    /// The failed executions of the branch.
    pub failures: Vec<ExecutionId>,
    /// Meaningful once the branch has ended.
    pub(crate) end: BranchEnd,
}

impl BranchSummary {
    /// Whether the branch was dropped, since enough others had settled ([`FanOutTerms::until`]). Its events and failures
    /// are those until then.
    pub fn is_dropped(&self) -> bool {
        self.end.is_dropped()
    }

    /// The number of branches of the fan-out that settled before, from 0. Dropped ones are numbered after these, in
    /// fan-out order.
    pub fn settled(&self) -> u32 {
        self.end.before()
    }
}

/// The result of a fan-out: its branches in fan-out order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSummary {
    /// The output that opened the fan-out.
    pub fan_out: FanOutIndex,
    /// The results of the branches, in fan-out order.
    pub branches: Vec<BranchSummary>,
}

impl Groups {
    pub(super) fn are_none(&self) -> bool {
        self.open.is_empty()
    }

    /// The number of fan-outs so far, open or not.
    pub(super) fn count(&self) -> u32 {
        self.next
    }

    /// Creates the state of a run that had `count` fan-outs, none of which is open.
    pub(super) fn counted(count: u32) -> Self {
        Self { next: count, ..Self::default() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Group> {
        self.open.values()
    }

    fn add(&mut self, opening: &Opening) -> GroupId {
        let Opening { fan_out, by, opener, items, terms } = *opening;
        let id = GroupId(self.next);
        self.next += 1;
        let group = Group {
            fan_out,
            by,
            opener,
            terms,
            tally: Tally::of(&terms, items.left),
            unopened: items,
            open: 0,
            branches: Vec::with_capacity(items.left as usize),
        };
        self.openers.add((opener, fan_out));
        self.open.insert(id, group);
        id
    }

    /// Whether a fan-out of this output, opened in this scope, is open.
    pub(super) fn are_open(&self, opener: ScopeId, fan_out: FanOutIndex) -> bool {
        let all = self.open.values().map(|group| (group.opener, group.fan_out));
        self.openers.has((opener, fan_out), all)
    }

    /// Removes and returns a fan-out if all its branches are settled. `None` also if a failure has dropped the
    /// group since, which makes a second call harmless.
    fn take_settled(&mut self, id: GroupId) -> Option<Group> {
        self.open.get(&id).filter(|group| group.is_settled())?;
        let group = self.open.remove(&id)?;
        self.openers.remove((group.opener, group.fan_out));
        Some(group)
    }

    /// Removes the fan-outs below the open branches of a fan-out. Returns these branches and those below them, in
    /// order, and the removed fan-outs. O(branches of the fan-out, and what is below them).
    fn take_below(&mut self, id: GroupId, scopes: &Scopes) -> (Vec<ScopeId>, Vec<(GroupId, Group)>) {
        let Some(group) = self.open.get(&id) else { return Default::default() };
        let mut below = Vec::new();
        for branch in group.branches.iter().map(|branch| branch.scope) {
            // A settled branch is closed, and so are all below it.
            if scopes.get(branch).is_some() {
                below.push(branch);
                scopes.below(branch, &mut below);
            }
        }
        // A branch has a higher number than the scope that opened it, so this is also the order from outer to
        // inner.
        below.sort_unstable();
        let inner = below.iter().filter_map(|scope| scopes.get(*scope)).flat_map(Scope::fan_outs);
        let removed = inner.filter_map(|inner| Some((inner, self.remove(inner)?)));
        let removed = removed.collect();
        (below, removed)
    }

    fn remove(&mut self, id: GroupId) -> Option<Group> {
        let group = self.open.remove(&id)?;
        self.openers.remove((group.opener, group.fan_out));
        Some(group)
    }
}

impl Groups {
    /// Opens a fan-out whose items are in the log. The caller gathers one without items once its whole batch
    /// is processed.
    pub(super) fn open(&mut self, opening: &Opening, board: &mut Board) -> GroupId {
        board.scopes.add_pending(opening.opener);
        let id = self.add(opening);
        self.open_branches(id, board);
        id
    }

    /// Opens branches as far as the bound allows. Each opening logs the item, which is evaluated with what
    /// the outer scopes have by then (S50).
    fn open_branches(&mut self, id: GroupId, board: &mut Board) {
        let Some(group) = self.open.get_mut(&id) else { return };
        let (opener, leaves_out) = (group.opener, group.leaves_out());
        while let Some((item, place)) = group.next_to_open(|| board.scopes.busy(opener, id)) {
            board.scopes.open(item.scope, opener, (id, place), leaves_out);
            board.queue_evaluation(item);
        }
        if leaves_out {
            board.scopes.note_opens_more(opener, id, group.has_unopened());
        }
    }

    /// Settles one branch, if nothing is left in it, or opens branches of a fan-out. Returns `false` if neither is due.
    /// The order of settling is that of the branches' numbers, whichever became idle first, so that replay
    /// settles them alike.
    #[inline]
    pub(super) fn settle_next(&mut self, evaluation: &mut Evaluation, board: &mut Board) -> bool {
        let Some((id, is_idle)) = board.scopes.next_to_settle() else { return self.open_next(board) };
        // A branch that got new work after it was queued is not idle, and is queued again when that work
        // ends.
        if !is_idle {
            return true;
        }
        let may_fail =
            board.progress.redrivable && board.scopes.get(id).is_some_and(|scope| !scope.failures.is_empty());
        if may_fail && self.keep_failed(id, evaluation, board) {
            return true;
        }
        if let Some(branch) = evaluation.sweeps.close_branch(id, &mut board.scopes) {
            board.actions.push(QueuedAction::Free(id));
            evaluation.forget_refused(id);
            self.settle(branch, evaluation, board);
        }
        true
    }

    /// Opens branches in the place of those that only wait, now that no branch is left to settle (S50). Returns `false`
    /// if no fan-out is left to look at.
    fn open_next(&mut self, board: &mut Board) -> bool {
        let Some(id) = board.scopes.next_with_room() else { return false };
        self.open_branches(id, board);
        true
    }

    /// Hands the results of a closed branch to its group, opens further branches, and gathers the group if
    /// this was the last. If enough branches have settled, drops the others instead of opening any.
    fn settle(&mut self, closed: ClosedBranch, evaluation: &mut Evaluation, board: &mut Board) {
        let ClosedBranch { branch: (id, place), carried, failures, .. } = closed;
        let Some(group) = self.open.get_mut(&id) else { return };
        group.settle(place, carried_by(carried, group.fan_out, board), failures);
        if group.is_enough() {
            self.drop_others(id, evaluation, board);
            return;
        }
        // Opening comes before gathering: a group with items left is not settled.
        self.open_branches(id, board);
        self.gather_if_settled(id, evaluation, board);
    }

    /// Completes a group whose branches are all settled. Logs the internal event that triggers gathers, or
    /// fails the opener's scope under `WaitAll` (S49).
    pub(super) fn gather_if_settled(&mut self, id: GroupId, evaluation: &mut Evaluation, board: &mut Board) {
        let Some(group) = self.take_settled(id) else { return };
        let opener = group.opener;
        if group.terms.policy == FanOutPolicy::WaitAll && group.fails_at_its_end() {
            return self.fail_as_a_whole(id, group, evaluation, board);
        }
        // The failures that were borne are handled now.
        if group.tally.is_some()
            && let Some(kept) = &mut self.kept
        {
            kept.discard(id, board);
        }
        let Group { fan_out, branches, .. } = group;
        // The gather is evaluated like any event. Its position is taken here and its value made by the run,
        // which has the events of the branches.
        let event = board.table.fan_out(fan_out).gathered;
        // A full log ends the run, and the count of the opener does not matter any more.
        if let Some(entry) = board.number(opener, event) {
            let group = GroupSummary { fan_out, branches };
            board.actions.push(QueuedAction::Gathered(Box::new((entry, group))));
            board.queue_evaluation(entry);
            board.scopes.remove_pending(opener);
        }
    }

    /// Drops the open branches of a fan-out with all work in and below them (S49). Returns the state of each, unless
    /// the failure ends the run, now or later: then a redrive begins the work anew, and it is kept.
    fn drop_branches(
        &mut self,
        id: GroupId,
        fate: Fate,
        evaluation: &mut Evaluation,
        board: &mut Board,
    ) -> Vec<ClosedBranch> {
        // First, since a closed scope does not know the branches below it any more.
        let (dropped, groups) = self.take_below(id, &board.scopes);
        let scopes: HashSet<ScopeId> = dropped.iter().copied().collect();
        let questions = evaluation.drop_in(&scopes, &mut board.actions);
        let mut branches = Vec::new();
        // Inner branches first: each is closed before the branch that contains it.
        if fate == Fate::Fatal {
            let kept = self.kept.get_or_insert_default();
            for scope in dropped.iter().rev() {
                let closed = evaluation.sweeps.keep_branch(*scope, &mut board.scopes);
                kept.scopes.extend(closed.map(|closed| (*scope, closed)));
            }
            kept.groups.extend(groups);
            kept.questions.extend(questions);
            kept.executions.extend(board.executions.open_in(&scopes));
            kept.awaited.push(board.drop_in(&dropped, &scopes, false));
            return branches;
        }
        for scope in dropped.iter().rev() {
            let closed = evaluation.sweeps.close_branch(*scope, &mut board.scopes);
            evaluation.forget_refused(*scope);
            branches.extend(closed.filter(|closed| closed.branch.0 == id));
        }
        let _ = board.drop_in(&dropped, &scopes, true);
        branches
    }

    /// Drops the branches that are not settled, now that enough others are, notes them as dropped (S50), and gathers.
    #[cold]
    fn drop_others(&mut self, id: GroupId, evaluation: &mut Evaluation, board: &mut Board) {
        let dropped = self.drop_branches(id, Fate::Handled, evaluation, board);
        let Some(group) = self.open.get_mut(&id) else { return };
        // They come from the last to the first, and are numbered from the first on.
        for ClosedBranch { branch: (_, place), carried, failures, .. } in dropped.into_iter().rev() {
            group.drop(place, carried_by(carried, group.fan_out, board), failures);
        }
        group.drop_unopened();
        self.gather_if_settled(id, evaluation, board);
        // What was dropped has left room for waiting executions.
        board.start_waiting();
    }
}

/// Of the events that a branch stores for every gather of the table, those of its fan-out's gathers.
#[inline]
fn carried_by(mut events: Carried, fan_out: FanOutIndex, board: &Board) -> Carried {
    let carried = &board.table.fan_out(fan_out).carried;
    events.retain(|(event, _)| carried.contains(event));
    events
}

impl Items {
    /// `count` items from this one on; none without a first one.
    pub(super) fn new(first: Option<Entry>, count: u32) -> Self {
        Self { next: first, left: count }
    }

    pub(super) fn first(&self) -> Option<Entry> {
        self.next.filter(|_| self.left > 0)
    }

    fn pop(&mut self) -> Option<Entry> {
        let Entry { seq, scope, event } = self.first()?;
        self.left -= 1;
        self.next = Some(Entry { seq: Seq(seq.0 + 1), scope: ScopeId(scope.0 + 1), event });
        Some(Entry { seq, scope, event })
    }
}

impl Group {
    /// Whether some branches wait for others to be settled (S50).
    pub(super) fn has_unopened(&self) -> bool {
        self.unopened.left > 0
    }

    /// Whether the bound leaves out branches that only wait.
    fn leaves_out(&self) -> bool {
        self.terms.only_busy && self.terms.concurrency.is_some()
    }

    fn is_settled(&self) -> bool {
        self.open == 0 && !self.has_unopened()
    }

    /// Whether a group that waits for all its branches fails: it has failures, and does not bear them.
    fn fails_at_its_end(&self) -> bool {
        let bears = self.tally.is_some_and(Tally::bears_failures);
        !bears && self.branches.iter().any(|branch| !branch.failures.is_empty())
    }

    /// Whether enough branches have settled without a failure, so that the others are dropped.
    fn is_enough(&self) -> bool {
        self.tally.is_some_and(Tally::is_reached)
    }

    /// The policy for a failure: failures are only gathered as long as enough branches can still settle without
    /// one (S50), and as no more branches have failed than may (S74). `is_first` says that it is the first one of its
    /// branch.
    fn effect_of_failure(&mut self, is_first: bool) -> FanOutPolicy {
        let Some(tally) = &mut self.tally else { return self.terms.policy };
        if is_first {
            tally.fail();
        }
        if tally.bears_failures() { FanOutPolicy::ContinueOthers } else { self.terms.policy }
    }

    /// Takes the next item if the bound allows another branch. Returns the item and the place of the branch. `busy`
    /// counts the open branches that do not only wait.
    fn next_to_open(&mut self, busy: impl Fn() -> usize) -> Option<(Entry, u32)> {
        if let Some(most) = self.terms.concurrency
            && (if self.leaves_out() { busy() } else { self.open }) >= most.get() as usize
        {
            return None;
        }
        let place = u32::try_from(self.branches.len()).ok()?;
        let item = self.unopened.pop()?;
        self.open += 1;
        // The summary has its item from here on; events and failures follow when the branch is settled.
        // Branches open in the order of items, so the place of a branch is the number of those before it.
        self.add_summary(item, BranchEnd::default());
        Some((item, place))
    }

    fn add_summary(&mut self, item: Entry, end: BranchEnd) {
        let (events, failures) = (SmallVec::new(), Vec::new());
        let (scope, item) = (item.scope, item.seq);
        self.branches.push(BranchSummary { scope, item, events, failures, end });
    }

    /// Stores the results of the branch at this place.
    fn settle(&mut self, place: u32, events: Carried, failures: Vec<ExecutionId>) {
        if let Some(tally) = self.tally.as_mut().filter(|_| failures.is_empty()) {
            tally.succeed();
        }
        self.close(place, events, failures, BranchEnd::settled(self.ended()));
    }

    /// Stores that the branch at this place was dropped, and its results until then.
    fn drop(&mut self, place: u32, events: Carried, failures: Vec<ExecutionId>) {
        self.close(place, events, failures, BranchEnd::dropped(self.ended()));
    }

    fn close(&mut self, place: u32, events: Carried, failures: Vec<ExecutionId>, end: BranchEnd) {
        self.open -= 1;
        if let Some(branch) = self.branches.get_mut(place as usize) {
            (branch.events, branch.failures, branch.end) = (events, failures, end);
        }
    }

    /// The number of branches that are settled or dropped: the number of the one that ends next (S59).
    #[expect(clippy::cast_possible_truncation, reason = "branches have numbers of 32 bits")]
    fn ended(&self) -> u32 {
        (self.branches.len() - self.open) as u32
    }

    /// Notes the branches that are not open yet as dropped.
    fn drop_unopened(&mut self) {
        while let Some(item) = self.unopened.pop() {
            // All before it have ended, so it is numbered after them.
            self.add_summary(item, BranchEnd::dropped(self.ended()));
        }
    }
}

#[cfg(test)]
impl GroupId {
    pub(super) fn of(number: u32) -> Self {
        Self(number)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::scheduler::fixtures::{self, entry_in};
    use crate::scheduler::{End, SchedulerLimits};

    struct Opened {
        groups: Groups,
        evaluation: Evaluation,
        board: Board,
        id: GroupId,
    }

    /// A fan-out of the root with `items` items, of which `concurrency` are open at a time.
    fn opened(items: u32, concurrency: u32, policy: FanOutPolicy) -> Opened {
        let concurrency = NonZeroU32::new(concurrency);
        opened_by(items, FanOutTerms { concurrency, policy, only_busy: true, until: None, tolerated: 0 })
    }

    fn opened_by(items: u32, terms: FanOutTerms) -> Opened {
        let mut board = fixtures::board(SchedulerLimits::default());
        let (mut groups, evaluation) = (Groups::default(), Evaluation::default());
        let entries: Vec<Entry> = (0..items)
            .map(|_| {
                let scope = board.scopes.reserve();
                entry_in(&mut board, scope, "Item")
            })
            .collect();
        let (fan_out, opener) = (FanOutIndex::at(0), ScopeId::ROOT);
        let items = Items::new(entries.first().copied(), items);
        let by = ExecutionId(1);
        let id = groups.open(&Opening { fan_out, by, opener, items, terms }, &mut board);
        Opened { groups, evaluation, board, id }
    }

    impl Opened {
        /// Settles all open branches without any further event. Returns these branches.
        fn settle(&mut self) -> Vec<u32> {
            let Self { groups, evaluation, board, .. } = self;
            let mut open = Vec::new();
            while let Some(item) = board.next_event() {
                board.scopes.remove_pending(item.scope);
                open.push(item.scope.0);
            }
            while groups.settle_next(evaluation, board) {}
            open
        }

        fn fail(&mut self, scope: u32, execution: u64) {
            let Self { groups, evaluation, board, .. } = self;
            groups.fail(ScopeId(scope), vec![ExecutionId(execution)], evaluation, board);
        }

        /// The branches and their failures, once the fan-out is gathered.
        fn gathered(&mut self) -> Option<Vec<(u32, Vec<ExecutionId>)>> {
            std::iter::from_fn(|| self.board.actions.pop()).find_map(|action| match action {
                QueuedAction::Gathered(gathered) => Some(
                    gathered.1.branches.into_iter().map(|branch| (branch.scope.0, branch.failures)).collect(),
                ),
                _ => None,
            })
        }
    }

    // S48, S50
    #[test]
    fn branches_open_within_their_bound_and_are_gathered_in_order_once_all_are_settled() {
        let mut opened = opened(3, 2, FanOutPolicy::FailAll);
        assert!(opened.groups.are_open(ScopeId::ROOT, FanOutIndex::at(0)));
        assert_eq!((opened.settle(), opened.gathered()), (vec![1, 2], None));
        assert_eq!(opened.settle(), [3]);
        assert_eq!(opened.gathered(), Some(vec![(1, vec![]), (2, vec![]), (3, vec![])]));
        assert!(opened.groups.are_none() && !opened.groups.are_open(ScopeId::ROOT, FanOutIndex::at(0)));
        assert_eq!(opened.groups.count(), 1);
    }

    #[test]
    fn a_fan_out_without_items_is_gathered_with_its_batch() {
        let mut opened = opened(0, 1, FanOutPolicy::FailAll);
        opened.groups.gather_if_settled(opened.id, &mut opened.evaluation, &mut opened.board);
        assert_eq!(opened.gathered(), Some(vec![]));
    }

    // S49
    #[test]
    fn the_first_failure_drops_the_other_branches_and_fails_the_opener() {
        let mut opened = opened(3, 2, FanOutPolicy::FailAll);
        opened.fail(2, 7);
        assert_eq!(opened.board.progress.end(), Some(&End::Failed(vec![ExecutionId(7)])));
        assert!(opened.groups.are_none());
        assert!((1..=3).all(|scope| !opened.board.is_open(ScopeId(scope))));
    }

    // S49
    #[test]
    fn others_continue_and_the_failure_is_gathered_where_the_policy_says_so() {
        let mut opened = opened(2, 2, FanOutPolicy::ContinueOthers);
        opened.fail(1, 7);
        assert!(opened.board.progress.degraded);
        assert_eq!(opened.settle(), [1, 2]);
        assert_eq!(opened.gathered(), Some(vec![(1, vec![ExecutionId(7)]), (2, vec![])]));
    }

    // S49
    #[test]
    fn all_failures_fail_the_opener_once_every_branch_is_settled() {
        let mut opened = opened(2, 2, FanOutPolicy::WaitAll);
        opened.fail(2, 8);
        opened.fail(1, 7);
        assert!(!opened.board.progress.has_ended());
        opened.settle();
        assert_eq!(opened.board.progress.end(), Some(&End::Failed(vec![ExecutionId(7), ExecutionId(8)])));
    }
}
