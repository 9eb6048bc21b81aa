//! Fan-outs: opening branches within their bound (S50), settling them (S47) and gathering them (S48).

use std::collections::{HashSet, VecDeque};
use std::num::NonZeroU32;

use rustc_hash::FxHashSet;

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
    pub(super) items: VecDeque<Entry>,
    pub(super) concurrency: Option<NonZeroU32>,
    pub(super) policy: FanOutPolicy,
}

/// The branches of one fan-out, until they are gathered.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) fan_out: FanOutIndex,
    pub(super) opener: ScopeId,
    pub(super) policy: FanOutPolicy,
    concurrency: usize,
    /// The items whose branches are not open yet.
    unopened: VecDeque<Entry>,
    open: FxHashSet<ScopeId>,
    /// In fan-out order; none for a branch that is not open yet.
    settled: Vec<Option<BranchSummary>>,
    left: usize,
}

/// What one settled branch left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchSummary {
    /// Its scope.
    pub scope: ScopeId,
    /// Its item.
    pub item: Seq,
    /// Its own events that a gather of this fan-out takes, in order.
    pub events: Vec<(EventIndex, Seq)>,
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
    pub(super) fn open_group(&mut self, opening: Opening) {
        let Opening { fan_out, opener, items, concurrency, policy } = opening;
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
            open: FxHashSet::default(),
            settled: vec![None; items.len()],
            left: items.len(),
            unopened: items,
        };
        self.groups.insert(id, group);
        self.open_branches(id);
        self.gather_if_settled(id);
    }

    fn open_branches(&mut self, id: GroupId) {
        while let Some((item, opener, place)) = self.groups.get_mut(&id).and_then(Group::next_to_open) {
            self.scopes.open(&self.table, item.scope, opener, (id, place));
            self.logged(item);
        }
    }

    /// Settles one branch; `false` if none is due.
    pub(super) fn settle_next(&mut self) -> bool {
        let Some(scope) = self.settling.pop_first() else { return false };
        let is_idle = self.scopes.get(scope).is_some_and(|scope| scope.pending == 0);
        if is_idle {
            self.settle(scope);
        }
        true
    }

    fn settle(&mut self, id: ScopeId) {
        let Some(scope) = self.scopes.close(id) else { return };
        self.actions.push_back(Action::FreeScope { scope: id });
        let Some((group_id, place)) = scope.branch else { return };
        let Some(group) = self.groups.get_mut(&group_id) else { return };
        let carried = &self.table.fan_out(group.fan_out).carried;
        let events = scope.carried.into_iter().filter(|(event, _)| carried.contains(event)).collect();
        group.settle(id, place, events, scope.failures);
        self.open_branches(group_id);
        self.gather_if_settled(group_id);
    }

    fn gather_if_settled(&mut self, id: GroupId) {
        if self.groups.get(&id).is_some_and(|group| group.left == 0)
            && let Some(group) = self.groups.remove(&id)
        {
            self.gather(group);
        }
    }

    fn gather(&mut self, group: Group) {
        let Group { fan_out, opener, policy, settled, .. } = group;
        let branches: Vec<BranchSummary> = settled.into_iter().flatten().collect();
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
            self.actions.push_back(Action::AppendGathered { entry, group });
        }
    }

    /// Drops a fan-out with everything in and below its branches (S49).
    pub(super) fn drop_group(&mut self, id: GroupId) {
        let Some(group) = self.groups.remove(&id) else { return };
        let mut scopes = Vec::new();
        for branch in group.open {
            scopes.push(branch);
            self.scopes.below(branch, &mut scopes);
        }
        scopes.sort_unstable();
        for scope in &scopes {
            self.scopes.close(*scope);
            self.actions.push_back(Action::FreeScope { scope: *scope });
        }
        let scopes: HashSet<ScopeId> = scopes.into_iter().collect();
        self.groups.retain(|_, group| !scopes.contains(&group.opener));
        self.drop_work(&scopes);
    }
}

impl Group {
    /// Whether branches of it wait for others to be settled (S50).
    pub(super) fn has_unopened(&self) -> bool {
        !self.unopened.is_empty()
    }

    fn next_to_open(&mut self) -> Option<(Entry, ScopeId, u32)> {
        if self.open.len() >= self.concurrency {
            return None;
        }
        let place = self.settled.len() - self.unopened.len();
        let item = self.unopened.pop_front()?;
        self.open.insert(item.scope);
        // The branch's summary waits with its item until the branch is settled.
        self.settled[place] = Some(BranchSummary {
            scope: item.scope,
            item: item.seq,
            events: Vec::new(),
            failures: Vec::new(),
        });
        Some((item, self.opener, u32::try_from(place).ok()?))
    }

    fn settle(
        &mut self,
        scope: ScopeId,
        place: u32,
        events: Vec<(EventIndex, Seq)>,
        failures: Vec<ExecutionId>,
    ) {
        self.open.remove(&scope);
        self.left -= 1;
        if let Some(Some(branch)) = self.settled.get_mut(place as usize) {
            (branch.events, branch.failures) = (events, failures);
        }
    }
}
