//! Fan-outs: opening branches within their bound (S50), settling them (S47) and gathering them (S48).

use std::cmp::Reverse;
use std::collections::HashSet;
use std::num::NonZeroU32;

use smallvec::SmallVec;

use super::{Action, Entry, Scheduler};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::output::FanOutPolicy;
use crate::table::{EventIndex, FanOutIndex};

/// One fan-out of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct GroupId(u32);

/// A fan-out in a batch.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) fan_out: FanOutIndex,
    pub(super) opener: ScopeId,
    pub(super) items: Items,
    pub(super) concurrency: Option<NonZeroU32>,
    pub(super) policy: FanOutPolicy,
}

/// The items of a fan-out that are left: their positions and their branches are numbered one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items {
    next: Option<Entry>,
    left: u32,
}

/// The branches of one fan-out, until they are gathered.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) fan_out: FanOutIndex,
    pub(super) opener: ScopeId,
    pub(super) policy: FanOutPolicy,
    concurrency: usize,
    /// The items whose branches are not open yet.
    unopened: Items,
    /// How many branches are open.
    open: usize,
    /// In fan-out order, of each branch that is open or settled.
    branches: Vec<BranchSummary>,
}

/// What one settled branch left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchSummary {
    /// Its scope.
    pub scope: ScopeId,
    /// Its item.
    pub item: Seq,
    /// Its own events that a gather of this fan-out takes, in order.
    pub events: SmallVec<[(EventIndex, Seq); 1]>,
    /// Its executions that failed.
    pub failures: Vec<ExecutionId>,
}

/// What a gathered fan-out left behind: its branches in fan-out order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSummary {
    /// Which output opened it.
    pub fan_out: FanOutIndex,
    /// Its branches.
    pub branches: Vec<BranchSummary>,
}

impl Scheduler {
    pub(super) fn open_group(&mut self, opening: &Opening) {
        let Opening { fan_out, opener, items, concurrency, policy } = *opening;
        if self.scopes.get(opener).is_none() {
            return;
        }
        let id = GroupId(self.next_group);
        self.next_group += 1;
        self.hold(opener);
        let group = Group {
            fan_out,
            opener,
            policy,
            concurrency: concurrency.map_or(usize::MAX, |most| most.get() as usize),
            unopened: items,
            open: 0,
            branches: Vec::with_capacity(items.left as usize),
        };
        self.groups.insert(id, group);
        self.open_branches(id);
        self.gather_if_settled(id);
    }

    fn open_branches(&mut self, id: GroupId) {
        while let Some((item, opener, place)) = self.groups.get_mut(&id).and_then(Group::next_to_open) {
            self.scopes.open(item.scope, opener, (id, place));
            self.logged(item);
        }
    }

    /// Settles one branch; `false` if none is due.
    pub(super) fn settle_next(&mut self) -> bool {
        let Some(Reverse(scope)) = self.settling.pop() else { return false };
        let is_idle = self.scopes.get(scope).is_some_and(|scope| scope.pending == 0);
        if is_idle {
            self.settle(scope);
        }
        true
    }

    fn settle(&mut self, id: ScopeId) {
        let Some(mut scope) = self.scopes.close(id) else { return };
        self.want(Action::FreeScope { scope: id });
        let Some((group_id, place)) = scope.branch else { return };
        let Some(group) = self.groups.get_mut(&group_id) else { return };
        let carried = &self.table.fan_out(group.fan_out).carried;
        scope.carried.retain(|(event, _)| carried.contains(event));
        group.settle(place, scope.carried, scope.failures);
        self.open_branches(group_id);
        self.gather_if_settled(group_id);
    }

    fn gather_if_settled(&mut self, id: GroupId) {
        if self.groups.get(&id).is_some_and(Group::is_settled)
            && let Some(group) = self.groups.remove(&id)
        {
            self.gather(group);
        }
    }

    fn gather(&mut self, group: Group) {
        let Group { fan_out, opener, policy, branches, .. } = group;
        let failures: Vec<ExecutionId> =
            branches.iter().flat_map(|branch| branch.failures.iter().copied()).collect();
        if policy == FanOutPolicy::WaitAll && !failures.is_empty() {
            self.fail_scope(opener, failures);
            self.release(opener);
            self.start_waiting();
            return;
        }
        let event = self.table.fan_out(fan_out).gathered;
        if let Some(entry) = self.append_gathered(opener, event) {
            let group = GroupSummary { fan_out, branches };
            self.want(Action::AppendGathered { entry, group });
        }
    }

    /// Drops a fan-out with everything in and below its branches (S49).
    pub(super) fn drop_group(&mut self, id: GroupId) {
        let Some(group) = self.groups.remove(&id) else { return };
        let mut scopes = Vec::new();
        for branch in group.branches.iter().map(|branch| branch.scope) {
            if self.scopes.get(branch).is_some() {
                scopes.push(branch);
                self.scopes.below(branch, &mut scopes);
            }
        }
        scopes.sort_unstable();
        for scope in &scopes {
            self.scopes.close(*scope);
            self.want(Action::FreeScope { scope: *scope });
        }
        let scopes: HashSet<ScopeId> = scopes.into_iter().collect();
        self.groups.retain(|_, group| !scopes.contains(&group.opener));
        self.drop_work(&scopes);
    }
}

impl Items {
    /// So many from the first one on, if there is one.
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
    /// Whether branches of it wait for others to be settled (S50).
    pub(super) fn has_unopened(&self) -> bool {
        self.unopened.left > 0
    }

    fn is_settled(&self) -> bool {
        self.open == 0 && !self.has_unopened()
    }

    fn next_to_open(&mut self) -> Option<(Entry, ScopeId, u32)> {
        if self.open >= self.concurrency {
            return None;
        }
        let place = u32::try_from(self.branches.len()).ok()?;
        let item = self.unopened.pop()?;
        self.open += 1;
        // The branch's summary waits with its item until the branch is settled.
        let (events, failures) = (SmallVec::new(), Vec::new());
        self.branches.push(BranchSummary { scope: item.scope, item: item.seq, events, failures });
        Some((item, self.opener, place))
    }

    fn settle(&mut self, place: u32, events: SmallVec<[(EventIndex, Seq); 1]>, failures: Vec<ExecutionId>) {
        self.open -= 1;
        if let Some(branch) = self.branches.get_mut(place as usize) {
            (branch.events, branch.failures) = (events, failures);
        }
    }
}

#[cfg(test)]
impl GroupId {
    pub(super) fn of(number: u32) -> Self {
        Self(number)
    }
}
