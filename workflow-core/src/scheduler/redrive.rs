//! Reopening a run that ended before it was complete (S39), and what has to be kept for it.
//!
//! Most ends leave everything in place: executions that ran still count as running, requests are open, and branches
//! are as they were. A redrive removes the end, and returns the actions that begin all of this anew.
//!
//! Some work is gone by then, so it is kept here: the failures that end the run, what they drop, and what the clean-up
//! of the run drops when it begins. Failures may come long before the end, in a fan-out that waits for all its branches:
//! a failed branch settles, and the run fails when the last of the others has settled.
//!
//! ```text
//!  wait_all of 3 items      branch 1 fails      kept: branch 1 with its state, and its failed execution
//!                           2 and 3 settle      kept: the fan-out; the run ends
//!  redrive                                      the fan-out is open with branch 1, whose execution begins anew
//! ```
//!
//! Invariant: a failure that a gather will have is never kept, since it is handled. So what is kept has no other
//! future than the end of the run, and is needed until then.

use std::collections::{BTreeMap, BTreeSet};

use super::actions::QueuedAction;
use super::awaited::Taken;
use super::board::Board;
use super::evaluate::{Evaluation, Questions};
use super::group::{Group, GroupId};
use super::sweep::KeptBranch;
use super::{End, Scheduler};
use crate::id::{ExecutionId, ScopeId};

/// The work that a redrive begins anew, and that is not in place any more.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Executions whose failures end the run, and those that were dropped for such a failure.
    pub(super) executions: BTreeSet<ExecutionId>,
    /// Closed branches, by their scopes: a branch comes before those below it.
    pub(super) scopes: BTreeMap<ScopeId, KeptBranch>,
    /// Fan-outs that were dropped, or that failed with all their branches settled.
    pub(super) groups: Vec<(GroupId, Group)>,
    /// Questions that were dropped.
    pub(super) questions: Questions,
    /// Requests and timers that were dropped.
    pub(super) awaited: Vec<Taken>,
}

impl End {
    /// Whether a redrive reopens a run that ended so, by the scheduler's state alone. A run at a limit has lost the
    /// events beyond it. Its journal lost nothing: a replay has no limits, so there such a run has not ended.
    pub(super) fn can_reopen(&self) -> bool {
        match self {
            Self::Failed(_)
            | Self::PreconditionFailed(_)
            | Self::Stalled
            | Self::Cancelled
            | Self::TimedOut => true,
            Self::Completed(_)
            | Self::LogFull
            | Self::TooManyExecutions
            | Self::TooManyEvents(_)
            | Self::TooManyItems(_)
            | Self::AppendFailed => false,
        }
    }
}

impl Scheduler {
    /// Reopens a run that ended before it was complete. Executions that ran begin anew with those whose failures
    /// ended it, in the order of their numbers; then open preconditions are asked again, and those that said no or
    /// failed. Returns false, with nothing changed, if the run cannot be reopened.
    ///
    /// The caller has completed what follows from the facts before.
    pub(crate) fn redrive(&mut self) -> bool {
        if self.end().is_some() && !self.is_over() {
            return false;
        }
        let Self { board, evaluation, groups } = self;
        if !board.progress.reopen() {
            return false;
        }
        // Work whose actions were not taken is begun with the rest.
        board.actions.close();
        board.clean_up = None;
        let mut kept = groups.kept.take().map(|kept| *kept).unwrap_or_default();
        groups.put_back(std::mem::take(&mut kept.groups));
        for (id, branch) in std::mem::take(&mut kept.scopes) {
            // A branch of a fan-out that was gathered in spite of its failures stays closed, with those below it.
            let is_there = branch.scope.branch.is_some_and(|(group, _)| groups.has(group));
            let parent = branch.scope.parent;
            if is_there && parent.is_some_and(|parent| board.is_open(parent)) {
                evaluation.sweeps.reopen_branch(id, branch, board);
            }
        }
        kept.restore(evaluation, board);
        groups.recount(&mut board.scopes);
        let work =
            board.executions.open_scopes().chain(evaluation.asked_scopes()).chain(groups.open_scopes());
        let work: Vec<ScopeId> = work.collect();
        let waits: Vec<ScopeId> = board.awaited.open_scopes().collect();
        board.scopes.recount(&work, &waits);
        true
    }
}

impl Kept {
    /// Frees the branches of a fan-out that was gathered in spite of their failures, with everything below them.
    pub(super) fn discard(&mut self, group: GroupId, board: &mut Board) {
        let mut gone = BTreeSet::new();
        for (id, KeptBranch { scope, .. }) in &self.scopes {
            let is_its = scope.branch.is_some_and(|(of, _)| of == group);
            // Also below a branch of the fan-out that was open until now.
            let is_closed = |parent: ScopeId| !board.is_open(parent) && !self.scopes.contains_key(&parent);
            let lost_its_parent =
                scope.parent.is_some_and(|parent| gone.contains(&parent) || is_closed(parent));
            if is_its || lost_its_parent {
                gone.insert(*id);
                board.actions.push(QueuedAction::Free(*id));
            }
        }
        let Self { executions, scopes, groups, questions, .. } = self;
        scopes.retain(|id, _| !gone.contains(id));
        let is_there = |scope: ScopeId| board.is_open(scope) || scopes.contains_key(&scope);
        groups.retain(|(_, group)| is_there(group.opener));
        questions.retain(|(_, question)| is_there(question.scope));
        executions.retain(|execution| {
            board.executions.get(*execution).is_some_and(|execution| is_there(execution.scope))
        });
        if scopes.is_empty() {
            // All of them were dropped with one of these branches.
            self.awaited.clear();
        }
    }

    /// Returns everything but branches and fan-outs, which are open again, to its place, and begins it.
    fn restore(self, evaluation: &mut Evaluation, board: &mut Board) {
        let Self { executions, questions, awaited, .. } = self;
        for taken in awaited {
            board.awaited.put_back(taken, |scope| board.scopes.get(scope).is_some());
        }
        let scope_of = |execution: &ExecutionId| board.executions.get(*execution).map(|it| it.scope);
        let open = executions.into_iter().filter_map(|execution| Some((scope_of(&execution)?, execution)));
        let mut open: Vec<(ScopeId, ExecutionId)> = open.collect();
        open.retain(|(scope, _)| board.is_open(*scope));
        for (scope, execution) in &open {
            board.scopes.forget_failure(*scope, *execution);
        }
        board.executions.begin_anew(open.into_iter().map(|(_, execution)| execution));
        board.start_waiting();
        evaluation.ask_again(questions, board);
    }
}
