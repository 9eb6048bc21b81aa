//! The tree of scopes: how branches open and settle, and how a fan-out ends (S44–S50).

use workflow_core::scheduler::{Cause, End, FanOutTerms};
use workflow_core::{ExecutionId, FanOutPolicy};

use super::Model;
use super::line::{BranchLine, Line, Placed};
use super::work::WorkState;

/// One scope; the root is the run.
#[derive(Debug)]
pub(super) struct Scope {
    parent: Option<u32>,
    /// The fan-out it belongs to.
    group: Option<usize>,
    state: ScopeState,
    failures: Vec<ExecutionId>,
    /// When it settled: the number of branches of the run that had settled before, however often.
    settled: u32,
    /// The state to which a redrive returns it (S39).
    pub(super) anew: Option<ScopeState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScopeState {
    /// Its item may be in the log, but the branch is not open yet (S50).
    Unopened,
    Open,
    Settled,
    Dropped,
}

/// A fan-out in a batch.
#[derive(Debug)]
pub(super) struct Opening {
    fan_out: usize,
    /// The execution that returned it.
    by: u64,
    opener: u32,
    pub(super) branches: Vec<(u32, Placed)>,
    terms: FanOutTerms,
}

/// A fan-out whose items are in the log.
#[derive(Debug)]
pub(super) struct Group {
    opening: Opening,
    /// Whether it is neither gathered, failed nor dropped.
    is_open: bool,
    /// Whether a redrive opens it again (S39).
    anew: bool,
}

/// The fate of a failure, by the policies of the fan-outs around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The run ends: at once, or once the branches of a fan-out that waits for all have settled.
    Fatal,
    /// It is in a gather.
    Handled,
}

impl Scope {
    pub(super) fn root() -> Self {
        Self {
            parent: None,
            group: None,
            state: ScopeState::Open,
            failures: Vec::new(),
            settled: 0,
            anew: None,
        }
    }
}

impl Model {
    pub(super) fn is_open(&self, scope: u32) -> bool {
        self.scope_state(scope) == ScopeState::Open
    }

    pub(super) fn scope_state(&self, scope: u32) -> ScopeState {
        self.scopes[scope as usize].state
    }

    /// The fan-outs that are neither gathered, failed nor dropped.
    pub(super) fn open_groups(&self) -> impl Iterator<Item = &Opening> {
        self.groups.iter().filter(|group| group.is_open).map(|group| &group.opening)
    }

    /// The open fan-outs, each with the scope that opened it.
    pub(super) fn open_fan_outs(&self) -> Vec<(usize, u32)> {
        self.open_groups().map(|opening| (opening.fan_out, opening.opener)).collect()
    }

    /// The scope and its ancestors, innermost first.
    pub(super) fn chain(&self, scope: u32) -> Vec<u32> {
        std::iter::successors(Some(scope), |scope| self.scopes[*scope as usize].parent).collect()
    }

    /// The scope and the open branches below it: each before its own branches, in fan-out order. Sorting by the paths
    /// from the root gives this order.
    pub(super) fn open_below(&self, scope: u32) -> Vec<u32> {
        let open = self.scopes.iter().zip(0..).filter(|(scope, _)| scope.state == ScopeState::Open);
        let chains = open.map(|(_, open)| self.chain(open)).filter(|chain| chain.contains(&scope));
        let mut paths: Vec<Vec<u32>> = chains.map(|chain| chain.into_iter().rev().collect()).collect();
        paths.sort_unstable();
        paths.iter().filter_map(|path| path.last().copied()).collect()
    }

    /// Numbers a fan-out's branches and places their items in the log.
    pub(super) fn opening(
        &mut self,
        (fan_out, by): (usize, u64),
        opener: u32,
        items: u32,
        terms: FanOutTerms,
    ) -> Opening {
        let item = self.items[fan_out];
        let mut branches = Vec::new();
        for _ in 0..items {
            let branch = u32::try_from(self.scopes.len()).expect("scopes are few");
            let (parent, state) = (Some(opener), ScopeState::Unopened);
            self.scopes.push(Scope { parent, state, ..Scope::root() });
            branches.push((branch, self.number(branch, item)));
        }
        Opening { fan_out, by, opener, branches, terms }
    }

    /// The items of a fan-out are in the log.
    pub(super) fn open_group(&mut self, opening: Opening) {
        if !self.is_open(opening.opener) {
            return;
        }
        let group = self.groups.len();
        for (branch, _) in &opening.branches {
            self.scopes[*branch as usize].group = Some(group);
        }
        self.groups.push(Group { opening, is_open: true, anew: false });
        self.open_branches(group);
    }

    /// Gathers a fan-out without items once its whole batch is in the log.
    pub(super) fn gather_empty(&mut self, before: usize) {
        for group in before..self.groups.len() {
            self.gather_if_settled(group);
        }
    }

    pub(super) fn count_groups(&self) -> usize {
        self.groups.len()
    }

    /// S50: opens as many branches as may be open at a time. The item of a branch is evaluated when the branch opens,
    /// so a late branch sees what the outer scopes contain by then.
    fn open_branches(&mut self, group: usize) {
        for (branch, item) in self.groups[group].opening.branches.clone() {
            let is_next = self.scopes[branch as usize].state == ScopeState::Unopened;
            if is_next && self.has_room(group) {
                self.scopes[branch as usize].state = ScopeState::Open;
                self.arrive(item.seq);
            }
        }
    }

    fn count_branches(&self, group: usize, state: ScopeState) -> usize {
        let branches = self.groups[group].opening.branches.iter();
        branches.filter(|(branch, _)| self.scopes[*branch as usize].state == state).count()
    }

    /// S50: whether another branch may open, beside those that are open and count.
    fn has_room(&self, group: usize) -> bool {
        let Opening { ref branches, terms, .. } = self.groups[group].opening;
        let Some(most) = terms.concurrency else { return true };
        let open = branches.iter().map(|(branch, _)| *branch).filter(|branch| self.is_open(*branch));
        let counted = open.filter(|branch| !terms.only_busy || !self.only_waits(*branch));
        counted.count() < most.get() as usize
    }

    /// S50: whether all that is left in a branch and below are replies and timers to come.
    fn only_waits(&self, branch: u32) -> bool {
        if self.working_scopes().contains(&branch) {
            return false;
        }
        let mut opened = self.groups.iter().zip(0..);
        let all_wait = opened.all(|(group, number)| {
            let Opening { opener, ref branches, terms, .. } = group.opening;
            let mut open = branches.iter().map(|(branch, _)| *branch).filter(|branch| self.is_open(*branch));
            let opens_more = terms.only_busy && self.count_branches(number, ScopeState::Unopened) > 0;
            opener != branch || !group.is_open || open.all(|branch| self.only_waits(branch)) && !opens_more
        });
        all_wait && self.busy_scopes().contains(&branch)
    }

    /// Settles the next branch, or opens branches in the place of those that only wait.
    pub(super) fn settle_next(&mut self) -> bool {
        self.settle_first() || self.open_next()
    }

    /// S50: opens branches of the first fan-out that has room; returns `false` if there is none.
    fn open_next(&mut self) -> bool {
        let has_next = |group: &usize| {
            self.groups[*group].is_open
                && self.groups[*group].opening.terms.only_busy
                && self.count_branches(*group, ScopeState::Unopened) > 0
                && self.has_room(*group)
        };
        let Some(group) = (0..self.groups.len()).find(has_next) else { return false };
        self.open_branches(group);
        self.opened_beside_waiting = true;
        true
    }

    /// S47: settles the first branch without remaining work in it and below; returns `false` if there is none.
    fn settle_first(&mut self) -> bool {
        let Some(branch) = self.settled() else { return false };
        let fails = !self.scopes[branch as usize].failures.is_empty();
        if fails && self.fate(branch) == Fate::Fatal {
            self.scopes[branch as usize].anew = Some(ScopeState::Open);
        } else {
            self.out.push_back(Line::Frees { scope: branch });
        }
        self.scopes[branch as usize].state = ScopeState::Settled;
        self.scopes[branch as usize].settled = self.settlements;
        self.settlements += 1;
        let group = self.scopes[branch as usize].group.expect("a branch belongs to a fan-out");
        if self.is_enough(group) {
            self.drop_group(group, Fate::Handled);
            self.gather(group);
            self.start_waiting();
        } else {
            self.open_branches(group);
            self.gather_if_settled(group);
        }
        true
    }

    /// S50: whether as many branches have settled without a failure as are wanted.
    fn is_enough(&self, group: usize) -> bool {
        let Opening { ref branches, terms, .. } = self.groups[group].opening;
        let scopes = branches.iter().map(|(branch, _)| &self.scopes[*branch as usize]);
        let settled = scopes.filter(|scope| scope.state == ScopeState::Settled && scope.failures.is_empty());
        terms.until.is_some_and(|enough| settled.count() >= enough.get() as usize)
    }

    /// Whether failures are only gathered: as many branches as are wanted have settled without one or still can (S50), or
    /// no more have failed than may (S74).
    fn bears_failures(&self, group: usize) -> bool {
        let Opening { ref branches, terms, .. } = self.groups[group].opening;
        let sound = branches.iter().filter(|(branch, _)| self.scopes[*branch as usize].failures.is_empty());
        let sound = sound.count();
        terms.until.is_some_and(|enough| sound >= enough.get() as usize)
            || branches.len() - sound <= terms.tolerated as usize
    }

    /// The first open branch without remaining work in it and below.
    fn settled(&self) -> Option<u32> {
        let mut is_busy = vec![false; self.scopes.len()];
        // Pending events of a dropped branch keep no scope busy.
        let busy = self.busy_scopes().into_iter().filter(|scope| self.is_open(*scope));
        for scope in busy.flat_map(|scope| self.chain(scope)) {
            is_busy[scope as usize] = true;
        }
        let mut branches = is_busy.iter().zip(0..).skip(1);
        branches.find(|(is_busy, branch)| !**is_busy && self.is_open(*branch)).map(|(_, branch)| branch)
    }

    /// The scopes with an event to evaluate, a precondition, or a running or queued execution.
    fn working_scopes(&self) -> Vec<u32> {
        let mut working: Vec<u32> = self.unread.iter().map(|seq| self.logged(*seq).scope).collect();
        let questions = self.questions.iter().filter(|question| question.state != WorkState::Over);
        working.extend(questions.map(|question| question.call.scope));
        let executions = self.executions.iter().filter(|execution| execution.state != WorkState::Over);
        working.extend(executions.map(|execution| execution.call.scope));
        working
    }

    /// The scopes with work, an open request or timer, or an ungathered fan-out.
    fn busy_scopes(&self) -> Vec<u32> {
        let mut busy = self.working_scopes();
        busy.extend(self.open_requests().iter().map(|seq| self.logged(*seq).scope));
        busy.extend(self.pending_scopes());
        busy.extend(self.groups.iter().filter(|group| group.is_open).map(|group| group.opening.opener));
        busy
    }

    /// S48, S49: once every branch is settled, the fan-out is gathered, or fails as a whole.
    fn gather_if_settled(&mut self, group: usize) {
        let all = self.groups[group].opening.branches.len();
        if self.count_branches(group, ScopeState::Settled) < all {
            return;
        }
        let Opening { opener, terms, .. } = self.groups[group].opening;
        let failures = self.failures_of(group);
        if terms.policy == FanOutPolicy::WaitAll && !failures.is_empty() && !self.bears_failures(group) {
            self.groups[group].is_open = false;
            if self.is_handled(group) {
                self.handle(group);
                self.start_waiting();
                return;
            }
            self.groups[group].anew = self.fate(opener) != Fate::Handled;
            self.fail_in(opener, failures);
            self.start_waiting();
            return;
        }
        if terms.policy != FanOutPolicy::ContinueOthers && !failures.is_empty() {
            self.gathered_with_tolerated += 1;
        }
        self.gather(group);
    }

    /// The failures in the branches, in fan-out order.
    fn failures_of(&self, group: usize) -> Vec<ExecutionId> {
        let branches = self.groups[group].opening.branches.iter();
        branches.flat_map(|(branch, _)| &self.scopes[*branch as usize].failures).copied().collect()
    }

    fn gather(&mut self, group: usize) {
        self.groups[group].is_open = false;
        self.forget_borne(group);
        let Opening { fan_out, opener, .. } = self.groups[group].opening;
        let branches: Vec<BranchLine> = self.branch_lines(group);
        let entry = self.number(opener, self.plan.gathered(fan_out));
        self.out.push_back(Line::Gathers { entry, fan_out, branches });
        self.arrive(entry.seq);
    }

    /// S39: the failures that a gathered fan-out bore are handled, so no redrive opens their branches again.
    fn forget_borne(&mut self, group: usize) {
        let terms = self.groups[group].opening.terms;
        if terms.until.is_none() && terms.tolerated == 0 {
            return;
        }
        let branches: Vec<u32> =
            self.groups[group].opening.branches.iter().map(|(branch, _)| *branch).collect();
        for scope in 0..self.scopes.len() {
            let number = u32::try_from(scope).expect("scopes are few");
            if self.chain(number).iter().any(|scope| branches.contains(scope))
                && self.scopes[scope].anew.take() == Some(ScopeState::Open)
            {
                self.out.push_back(Line::Frees { scope: number });
            }
        }
    }

    /// The branches in fan-out order, with the events that the fan-out's gathers collect.
    fn branch_lines(&self, group: usize) -> Vec<BranchLine> {
        let Opening { fan_out, ref branches, .. } = self.groups[group].opening;
        // S59: the settled ones as they settled, and behind them the dropped ones.
        let mut order: Vec<u32> = branches.iter().map(|(branch, _)| *branch).collect();
        order.sort_by_key(|branch| {
            let scope = &self.scopes[*branch as usize];
            if scope.state == ScopeState::Dropped { u32::MAX } else { scope.settled }
        });
        let line = |(scope, item): &(u32, Placed)| {
            let own = self.read.iter().map(|seq| (self.logged(*seq), *seq));
            let own = own.filter(|(logged, _)| {
                logged.scope == *scope && self.collected[fan_out].contains(logged.event)
            });
            let failures = self.scopes[*scope as usize].failures.iter().map(|execution| execution.0);
            let settled = order.iter().position(|other| other == scope).expect("each branch has its place");
            BranchLine {
                scope: *scope,
                item: item.seq,
                events: own.map(|(logged, seq)| (logged.event, seq)).collect(),
                failures: failures.collect(),
                dropped: self.scopes[*scope as usize].state == ScopeState::Dropped,
                settled: u32::try_from(settled).expect("scopes are few"),
            }
        };
        branches.iter().map(line).collect()
    }

    /// S49: a failure in a scope ends the run at the root, and goes by the fan-out's policy in a branch.
    pub(super) fn fail_in(&mut self, scope: u32, failures: Vec<ExecutionId>) {
        let fate = self.fate(scope);
        if self.is_open(scope) && fate != Fate::Handled {
            self.begin_anew_later(&failures);
        }
        self.climb(scope, failures, fate);
    }

    /// The fate of a failure in this scope.
    pub(super) fn fate(&self, scope: u32) -> Fate {
        let groups = self.chain(scope).into_iter().filter_map(|scope| self.scopes[scope as usize].group);
        let mut groups = groups.map(|group| (group, self.groups[group].opening.terms.policy));
        let is_handled =
            groups.any(|(group, policy)| policy == FanOutPolicy::ContinueOthers || self.is_handled(group));
        if is_handled { Fate::Handled } else { Fate::Fatal }
    }

    /// S60: whether the failure of a fan-out is one of its opener that is caught, or after which the run continues.
    fn is_handled(&self, group: usize) -> bool {
        let step = self.plan.fan_outs()[self.groups[group].opening.fan_out].step;
        self.failed[step].is_some() || self.plan.steps[step].continue_on_error
    }

    /// S60: the failure of the fan-out becomes an event of its opener, if a step catches that.
    fn handle(&mut self, group: usize) {
        let Opening { fan_out, by, opener, .. } = self.groups[group].opening;
        self.is_degraded = true;
        if let Some(event) = self.failed[self.plan.fan_outs()[fan_out].step] {
            self.append_one(Cause::Failure(ExecutionId(by)), opener, event);
        } else {
            self.tolerated_fan_outs += 1;
        }
    }

    fn climb(&mut self, scope: u32, failures: Vec<ExecutionId>, fate: Fate) {
        if !self.is_open(scope) {
            return;
        }
        let Some(group) = self.scopes[scope as usize].group else {
            self.finish(End::Failed(failures));
            return;
        };
        self.scopes[scope as usize].failures.extend(&failures);
        if self.bears_failures(group) {
            self.is_degraded = true;
            return;
        }
        let Opening { opener, terms, .. } = self.groups[group].opening;
        match terms.policy {
            FanOutPolicy::FailAll => {
                let failures = self.failures_of(group);
                self.drop_group(group, fate);
                if self.is_handled(group) {
                    self.handle(group);
                } else {
                    self.climb(opener, failures, fate);
                }
            }
            FanOutPolicy::ContinueOthers => self.is_degraded = true,
            _ => {}
        }
    }

    /// Drops a fan-out with everything in and below its branches.
    fn drop_group(&mut self, group: usize, fate: Fate) {
        let is_kept = fate == Fate::Fatal;
        (self.groups[group].is_open, self.groups[group].anew) = (false, is_kept);
        let branches = self.groups[group].opening.branches.iter().map(|(branch, _)| *branch);
        let open: Vec<u32> = branches.clone().filter(|branch| self.is_open(*branch)).collect();
        let mut dropped: Vec<u32> = open.iter().flat_map(|branch| self.open_below(*branch)).collect();
        dropped.sort_unstable();
        for branch in branches.collect::<Vec<u32>>().into_iter().chain(dropped.iter().copied()) {
            let scope = &mut self.scopes[branch as usize];
            if matches!(scope.state, ScopeState::Open | ScopeState::Unopened) {
                scope.anew = is_kept.then_some(scope.state);
                scope.state = ScopeState::Dropped;
            }
        }
        let below = self.groups.iter_mut().filter(|group| dropped.contains(&group.opening.opener));
        for group in below.filter(|group| group.is_open) {
            (group.is_open, group.anew) = (false, is_kept);
        }
        if !is_kept {
            self.out.extend(dropped.iter().map(|branch| Line::Frees { scope: *branch }));
        }
        self.drop_work(&dropped, is_kept);
    }

    /// Returns branches and fan-outs to what they were before the failures that ended the run (S39).
    pub(super) fn reopen(&mut self) {
        for group in &mut self.groups {
            group.is_open |= std::mem::take(&mut group.anew);
        }
        // Outer branches have lower numbers. A branch of a fan-out that was gathered stays closed, with those below it.
        for branch in 0..self.scopes.len() {
            let Scope { parent, group, ref mut anew, .. } = self.scopes[branch];
            let Some(state) = anew.take() else { continue };
            let is_there = group.is_some_and(|group| self.groups[group].is_open);
            if is_there && parent.is_some_and(|parent| self.is_open(parent)) {
                self.scopes[branch].state = state;
            }
        }
        for group in 0..self.groups.len() {
            self.groups[group].is_open &= self.is_open(self.groups[group].opening.opener);
        }
    }

    /// An execution that failed begins anew, so its branches have not failed by it.
    pub(super) fn forget_failure(&mut self, scope: u32, execution: ExecutionId) {
        for scope in self.chain(scope) {
            self.scopes[scope as usize].failures.retain(|failed| *failed != execution);
        }
    }
}
