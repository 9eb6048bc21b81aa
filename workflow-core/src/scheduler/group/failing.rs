//! Failures in branches: how far they climb by the policies of the fan-outs around them (S49), and where they become a
//! failure of the execution that opened a fan-out (S60).

use super::{BranchSummary, Group, GroupId, Groups};
use crate::id::{ExecutionId, ScopeId};
use crate::output::FanOutPolicy;
use crate::scheduler::End;
use crate::scheduler::actions::{FanOutFailure, QueuedAction};
use crate::scheduler::board::Board;
use crate::scheduler::evaluate::Evaluation;
use crate::scheduler::scope::{ClosedBranch, Scopes};
use crate::table::FanOutIndex;

/// The fate of a failure that no step catches, by the policies of the fan-outs around its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The run ends: at once, or when the branches of a fan-out that waits for all of them have settled.
    Fatal,
    /// A fan-out that continues has the failure, and its gather gets it.
    Handled,
}

impl Groups {
    /// The fate of a failure in this scope.
    pub(super) fn fate(&self, scope: ScopeId, board: &Board) -> Fate {
        let mut groups =
            board.scopes.chain(scope).filter_map(|(_, scope)| scope.branch).map(|(group, _)| group);
        let handles = |group: GroupId| {
            self.open.get(&group).is_none_or(|group| {
                group.terms.policy == FanOutPolicy::ContinueOthers || board.handles(group.fan_out)
            })
        };
        if groups.any(handles) { Fate::Handled } else { Fate::Fatal }
    }

    /// Settles a branch with failures. If the run will fail with them, a redrive opens the branch again, so it is not
    /// freed. Returns whether that is so.
    #[cold]
    pub(super) fn keep_failed(
        &mut self,
        id: ScopeId,
        evaluation: &mut Evaluation,
        board: &mut Board,
    ) -> bool {
        if self.fate(id, board) != Fate::Fatal {
            return false;
        }
        if let Some(kept) = evaluation.sweeps.keep_branch(id, &mut board.scopes) {
            let left = ClosedBranch::of(&kept.scope);
            self.kept.get_or_insert_default().scopes.insert(id, kept);
            if let Some(left) = left {
                self.settle(left, evaluation, board);
            }
        }
        true
    }

    /// A fan-out that waits for all its branches fails with all their failures (S49).
    #[cold]
    pub(super) fn fail_as_a_whole(
        &mut self,
        id: GroupId,
        group: Group,
        evaluation: &mut Evaluation,
        board: &mut Board,
    ) {
        let opener = group.opener;
        let failures = group.branches.iter().flat_map(|branch| branch.failures.iter().copied()).collect();
        if board.handles(group.fan_out) {
            board.handle(&group, failures);
        } else {
            if board.progress.redrivable && self.fate(opener, board) != Fate::Handled {
                self.kept.get_or_insert_default().groups.push((id, group));
            }
            self.fail(opener, failures, evaluation, board);
        }
        board.scopes.remove_pending(opener);
        board.start_waiting();
    }

    /// Handles failures in a scope: at the root the run ends; in a branch the policy of its fan-out decides
    /// (S49), unless the fan-out bears them (S50, S74).
    pub(in super::super) fn fail(
        &mut self,
        mut id: ScopeId,
        mut failures: Vec<ExecutionId>,
        evaluation: &mut Evaluation,
        board: &mut Board,
    ) {
        // Without a redrive to come, nothing is kept of any failure.
        let fate = if board.progress.redrivable { self.fate(id, board) } else { Fate::Handled };
        if fate != Fate::Handled {
            self.kept.get_or_insert_default().executions.extend(failures.iter().copied());
        }
        // A loop rather than recursion, since branches can nest deeply: a failure climbs from scope to scope.
        let mut openers = Vec::new();
        while let Some(scope) = board.scopes.get_mut(id) {
            let Some((group, _)) = scope.branch else {
                board.finish(End::Failed(failures));
                break;
            };
            // In a branch the failure belongs to the summary of the branch, whatever the policy does next.
            let is_first = scope.failures.is_empty();
            scope.failures.extend(failures.iter().copied());
            match self.open.get_mut(&group).map(|group| (group.effect_of_failure(is_first), group.opener)) {
                Some((FanOutPolicy::FailAll, opener)) => {
                    failures = self.failures_of(group, failures, &board.scopes);
                    // The opener's count for this group is removed only after the climb, so that no opener is
                    // queued to settle while the failure climbs past it.
                    self.drop_branches(group, fate, evaluation, board);
                    openers.push(opener);
                    match self.remove(group) {
                        Some(removed) if board.handles(removed.fan_out) => {
                            board.handle(&removed, failures);
                            break;
                        }
                        Some(removed) if fate == Fate::Fatal => {
                            self.kept.get_or_insert_default().groups.push((group, removed));
                        }
                        _ => {}
                    }
                    id = opener;
                    continue;
                }
                Some((FanOutPolicy::ContinueOthers, _)) => board.progress.degraded = true,
                Some((FanOutPolicy::WaitAll, _)) | None => {}
            }
            break;
        }
        for opener in openers.into_iter().rev() {
            board.scopes.remove_pending(opener);
        }
    }

    /// The failures with which a fan-out fails as a whole, in fan-out order: with those that were borne. Where none are,
    /// the first one ends the fan-out, so there are no others.
    fn failures_of(&self, id: GroupId, failures: Vec<ExecutionId>, scopes: &Scopes) -> Vec<ExecutionId> {
        let Some(group) = self.open.get(&id).filter(|group| group.tally.is_some()) else { return failures };
        let of_branch = |branch: &BranchSummary| match scopes.get(branch.scope) {
            Some(open) => open.failures.clone(),
            None => branch.failures.clone(),
        };
        group.branches.iter().flat_map(of_branch).collect()
    }
}

impl Board {
    /// Whether a failure of the fan-out is caught or tolerated: it is one of the step that opened it (S60).
    fn handles(&self, fan_out: FanOutIndex) -> bool {
        let step = self.table.step(self.table.fan_out(fan_out).step);
        step.failed.is_some() || step.policy.continue_on_error
    }

    /// Handles the failures of a fan-out: logs its failure in the opener's scope if a step catches it.
    fn handle(&mut self, group: &Group, failures: Vec<ExecutionId>) {
        let Group { fan_out, by, opener, .. } = *group;
        self.progress.degraded = true;
        let failed = self.table.step(self.table.fan_out(fan_out).step).failed;
        // A full log ends the run.
        let entry = failed.and_then(|failed| self.number(opener, failed));
        self.actions.push(QueuedAction::FanOutFailed(Box::new(FanOutFailure { entry, by, failures })));
        if let Some(entry) = entry {
            self.queue_evaluation(entry);
        }
    }
}
