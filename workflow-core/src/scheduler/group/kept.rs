//! Fan-outs that a redrive opens again (S39): a replay keeps their branches, and counts them anew.
//! [`redrive`](crate::scheduler::redrive) says when.

use super::{BranchSummary, Group, GroupId, Groups};
use crate::id::{ExecutionId, ScopeId};
use crate::scheduler::actions::QueuedAction;
use crate::scheduler::board::Board;
use crate::scheduler::evaluate::Questions;
use crate::scheduler::scope::Scopes;

impl Groups {
    /// No redrive follows: frees the branches that were kept for one.
    #[inline]
    pub(in super::super) fn forget_kept(&mut self, board: &mut Board) {
        for scope in self.kept.take().into_iter().flat_map(|kept| kept.scopes.into_keys()) {
            board.actions.push(QueuedAction::Free(scope));
        }
    }

    /// Keeps what the clean-up of the run drops, for a redrive.
    pub(in super::super) fn keep(&mut self, executions: Vec<ExecutionId>, questions: Questions) {
        if !executions.is_empty() || !questions.is_empty() {
            let kept = self.kept.get_or_insert_default();
            kept.executions.extend(executions);
            kept.questions.extend(questions);
        }
    }

    /// Whether the branch belongs to a fan-out that is open.
    pub(in super::super) fn has(&self, id: GroupId) -> bool {
        self.open.contains_key(&id)
    }

    /// Puts fan-outs back that a redrive opens again.
    pub(in super::super) fn put_back(&mut self, groups: Vec<(GroupId, Group)>) {
        for (id, group) in groups {
            self.openers.add((group.opener, group.fan_out));
            self.open.insert(id, group);
        }
    }

    /// Counts the branches of all fan-outs anew: some may be open again, and failures forgotten.
    pub(in super::super) fn recount(&mut self, scopes: &mut Scopes) {
        let gone = self.open.iter().filter(|(_, group)| scopes.get(group.opener).is_none());
        for id in gone.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.remove(id);
        }
        for (id, group) in &mut self.open {
            group.recount(scopes);
            if group.leaves_out() {
                scopes.note_opens_more(group.opener, *id, group.has_unopened());
            }
        }
    }

    /// The scopes that opened a fan-out, once for each.
    pub(in super::super) fn open_scopes(&self) -> impl Iterator<Item = ScopeId> {
        self.open.values().map(|group| group.opener)
    }
}

impl Group {
    /// Counts the branches anew, some of which may be open again.
    fn recount(&mut self, scopes: &Scopes) {
        let state = |branch: &BranchSummary| (scopes.get(branch.scope), branch.failures.is_empty());
        self.open = self.branches.iter().filter(|branch| state(branch).0.is_some()).count();
        let (mut succeeded, mut left, mut failed) = (0, self.unopened.left as usize, 0);
        for branch in &self.branches {
            match state(branch) {
                (Some(open), _) if open.failures.is_empty() => left += 1,
                (None, true) => succeeded += 1,
                _ => failed += 1,
            }
        }
        self.tally = self.tally.map(|tally| tally.recounted(succeeded, left, failed));
        // S59: those that are open again do not count among the settled ones.
        let ended = self.branches.iter_mut().filter(|branch| scopes.get(branch.scope).is_none());
        let mut ended: Vec<&mut BranchSummary> = ended.collect();
        ended.sort_unstable_by_key(|branch| branch.end.before());
        ended.into_iter().zip(0..).for_each(|(branch, before)| branch.end = branch.end.renumbered(before));
    }
}
