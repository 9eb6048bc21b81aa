//! Branches that close and open again (S39). A replay keeps the state of those whose failures may end the run, and a
//! redrive puts it back.
//!
//! ```text
//!  open ── keep ──▶ KeptBranch ── reopen ──▶ open, at its old place ── recount ──▶ pending work as it is now
//! ```
//!
//! Invariant: between `reopen` and `recount` the counts of pending work are those from before the branch closed.

use super::{Beside, Scope, Scopes, Siblings};
use crate::id::{ExecutionId, ScopeId};
use crate::scheduler::GroupId;

impl Scopes {
    /// Closes a branch as [`close`](Self::close) does, and returns all of its state, to [`reopen`](Self::reopen) it.
    pub(in super::super) fn keep(&mut self, id: ScopeId) -> Option<Scope> {
        let place = self.place(id)?;
        let mut scope = std::mem::take(self.branches.get_mut(place)?);
        let (parent, (group, _)) = scope.parent.zip(scope.branch)?;
        let (beside, waits) = (std::mem::take(&mut scope.beside), scope.bounded.then(|| scope.only_waits()));
        self.leave(id, (parent, group), &beside, waits);
        Some(scope)
    }

    /// Opens a branch again with the state that [`keep`](Self::keep) returned. Its parent is open. The branch gets
    /// its place among its siblings by its number. O(siblings behind it).
    pub(in super::super) fn reopen(&mut self, id: ScopeId, scope: Scope, opened: u32) {
        let Some((parent, branch)) = scope.parent.zip(scope.branch) else { return };
        self.open(id, parent, branch, scope.bounded);
        if let Some(state) = self.get_mut(id) {
            let beside = std::mem::take(&mut state.beside);
            *state = Scope { beside, opened, ..scope };
        }
        self.move_before_later(id, parent, branch.0);
    }

    /// Moves the last branch of a fan-out before those with higher numbers.
    fn move_before_later(&mut self, id: ScopeId, parent: ScopeId, group: GroupId) {
        let before = |scopes: &Self, id: ScopeId| scopes.get(id).and_then(|scope| scope.beside.before);
        let Some(last) = before(self, id).filter(|last| *last > id) else { return };
        let mut after = last;
        while let Some(earlier) = before(self, after).filter(|earlier| *earlier > id) {
            after = earlier;
        }
        let first = before(self, after);
        self.beside(last, |beside| beside.after = None);
        self.beside(after, |beside| beside.before = Some(id));
        self.beside(id, |beside| *beside = Beside { before: first, after: Some(after) });
        if let Some(first) = first {
            self.beside(first, |beside| beside.after = Some(id));
        }
        if let Some(parent) = self.get_mut(parent) {
            parent.siblings(group, |siblings| {
                siblings.last = last;
                if first.is_none() {
                    siblings.first = id;
                }
            });
        }
    }

    fn beside(&mut self, id: ScopeId, change: impl FnOnce(&mut Beside)) {
        if let Some(scope) = self.get_mut(id) {
            change(&mut scope.beside);
        }
    }

    /// Counts the pending work of all scopes anew: once for each of `work`, and for each request or timer of `waits`.
    /// Branches without any are to be settled.
    pub(in super::super) fn recount(&mut self, work: &[ScopeId], waits: &[ScopeId]) {
        let mut open = vec![ScopeId::ROOT];
        self.below(ScopeId::ROOT, &mut open);
        // Each scope has a count of its own until all is counted, so all are busy meanwhile.
        for id in &open {
            let busy = self.count_open(*id);
            let Some(scope) = self.get_mut(*id) else { continue };
            (scope.pending, scope.waits) = (1, 0);
            for (siblings, busy) in scope.children.values_mut().zip(busy) {
                siblings.busy = busy;
            }
        }
        for id in work.iter().chain(waits) {
            if let Some(scope) = self.get_mut(*id) {
                scope.pending += 1;
            }
        }
        for id in waits {
            if let Some(scope) = self.get_mut(*id).filter(|scope| scope.bounded) {
                scope.waits += 1;
            }
        }
        // Inner branches first: their fan-outs count in the scopes further out.
        open.sort_unstable();
        for id in open.into_iter().rev() {
            self.remove_pending(id);
        }
    }

    /// The number of open branches of each fan-out below a scope.
    fn count_open(&self, id: ScopeId) -> Vec<u32> {
        let count = |siblings: &Siblings| {
            let next = |id: &ScopeId| self.get(*id).and_then(|scope| scope.beside.after);
            std::iter::successors(Some(siblings.first), next).map(|_| 1).sum()
        };
        self.get(id).map_or_else(Vec::new, |scope| scope.children.values().map(count).collect())
    }

    /// Removes a failure from the branches that it climbed through: its execution begins anew.
    pub(in super::super) fn forget_failure(&mut self, from: ScopeId, execution: ExecutionId) {
        let mut next = Some(from);
        while let Some(scope) = next.and_then(|id| self.get_mut(id)) {
            scope.failures.retain(|failed| *failed != execution);
            next = scope.parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S39, S46
    #[test]
    fn a_branch_that_opens_again_has_its_place_by_its_number() {
        let mut scopes = Scopes::default();
        for place in 0..4 {
            scopes.open(ScopeId(place + 1), ScopeId::ROOT, (GroupId::of(1), place), false);
        }
        let below = |scopes: &Scopes| {
            let mut below = Vec::new();
            scopes.below(ScopeId::ROOT, &mut below);
            below.iter().map(|scope| scope.0).collect::<Vec<_>>()
        };
        for closed in [&[1][..], &[2], &[4], &[1, 2, 3, 4], &[2, 3], &[1, 4]] {
            let kept: Vec<_> =
                closed.iter().filter_map(|id| Some((*id, scopes.keep(ScopeId(*id))?))).collect();
            for (id, scope) in kept {
                scopes.reopen(ScopeId(id), scope, 0);
            }
            assert_eq!(below(&scopes), [1, 2, 3, 4], "after {closed:?}");
        }
    }
}
