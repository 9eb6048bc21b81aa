//! Which branches only wait (S50): all that is left in and below such a branch are open requests and pending
//! timers. The bound of a fan-out counts the others, the busy ones.
//!
//! ```text
//!  branch 1   pending 1   waits 1: an open request           only waits
//!  branch 2   pending 2   waits 1: a request, an execution   busy
//!  branch 3   pending 1   waits 1: a fan-out of branch 4     only waits, as branch 4 does
//!  └─ branch 4   pending 1   waits 1: a pending timer        only waits
//! ```
//!
//! Invariants: a branch only waits exactly if `waits` equals `pending` and neither is 0. `busy` of a fan-out is
//! the number of its open branches that do not only wait. A fan-out counts in `waits` of the scope that opened it
//! exactly if none of its branches is busy and none opens by itself. Only `bounded` branches are counted, so
//! that a fan-out without a bound pays for none of this.
//!
//! Example, with the picture: the timer fires. Branch 4 is busy, so its fan-out leaves `waits` of branch 3, and
//! branch 3 is busy too. A change costs O(1), or O(depth) where it changes the scopes further out.

use std::cmp::Reverse;

use super::{Scope, Scopes, Siblings};
use crate::id::ScopeId;
use crate::scheduler::GroupId;

impl Scope {
    /// Whether nothing but replies and timers is left in the branch and below. Always false where no bound asks.
    #[inline]
    pub(in super::super) fn only_waits(&self) -> bool {
        self.waits != 0 && self.waits == self.pending
    }
}

impl Siblings {
    /// Whether the open branches only wait, and no other one opens by itself.
    pub(super) fn only_wait(&self) -> bool {
        self.busy == 0 && !self.opens_more
    }
}

impl Scopes {
    /// Adds an open request or a pending timer to a scope.
    pub(in super::super) fn add_wait(&mut self, id: ScopeId) {
        // The batch that sets it has a count of its own, so the scope is busy before and after.
        self.add_pending(id);
        if let Some(scope) = self.get_mut(id).filter(|scope| scope.bounded) {
            scope.waits += 1;
            debug_assert!(scope.waits < scope.pending, "the batch counts too");
        }
    }

    /// A request or a timer of a scope waits no more: its count passes to a batch.
    pub(in super::super) fn end_wait(&mut self, id: ScopeId) {
        let Some(scope) = self.get_mut(id).filter(|scope| scope.bounded) else { return };
        let waited = scope.only_waits();
        scope.waits -= 1;
        if waited {
            self.note_busy(id);
        }
    }

    /// The number of open branches of a fan-out that do not only wait.
    pub(in super::super) fn busy(&self, opener: ScopeId, group: GroupId) -> usize {
        let siblings = self.get(opener).and_then(|scope| scope.children.get(&group));
        siblings.map_or(0, |siblings| siblings.busy as usize)
    }

    /// Notes whether further branches of the fan-out open once enough of the open ones only wait. The newest open
    /// branch is busy, so this changes nothing further out.
    pub(in super::super) fn note_opens_more(&mut self, opener: ScopeId, group: GroupId, opens_more: bool) {
        if let Some(opener) = self.get_mut(opener) {
            opener.siblings(group, |siblings| siblings.opens_more = opens_more);
        }
    }

    /// The first fan-out that may have room for another branch since the last call.
    pub(in super::super) fn next_with_room(&mut self) -> Option<GroupId> {
        self.with_room.pop().map(|Reverse(group)| group)
    }

    /// The branch only waits from here on.
    #[cold]
    pub(super) fn note_waiting(&mut self, id: ScopeId) {
        self.note(id, true);
    }

    /// The branch does not only wait any more.
    #[cold]
    pub(super) fn note_busy(&mut self, id: ScopeId) {
        self.note(id, false);
    }

    /// Removes a closed branch from the count of its fan-out. The caller unlinks it next.
    pub(super) fn leave_busy(&mut self, parent: ScopeId, group: GroupId, closed_waits: bool) {
        let Some(siblings) = self.get_mut(parent).and_then(|scope| scope.children.get_mut(&group)) else {
            return;
        };
        let waited = siblings.only_wait();
        siblings.busy -= u32::from(!closed_waits);
        // The last one takes the fan-out with it.
        let is_last = siblings.first == siblings.last;
        let waits = siblings.only_wait() && !is_last;
        if waited != waits {
            self.pass_on(parent, waits);
        }
    }

    fn note(&mut self, id: ScopeId, waits: bool) {
        let Some((parent, group)) = self.get(id).and_then(Scope::fan_out) else { return };
        if let Some(waits) = self.count(parent, group, waits) {
            self.pass_on(parent, waits);
        }
    }

    /// The branches of a fan-out that this scope opened only wait from here on, or no more.
    pub(super) fn pass_on(&mut self, mut opener: ScopeId, mut waits: bool) {
        // A loop rather than recursion, since branches can nest deeply.
        while let Some(scope) = self.get_mut(opener).filter(|scope| scope.bounded) {
            let waited = scope.only_waits();
            if waits {
                scope.waits += 1;
            } else {
                scope.waits -= 1;
            }
            let only_waits = scope.only_waits();
            let Some((parent, group)) = scope.fan_out().filter(|_| waited != only_waits) else { return };
            let Some(further) = self.count(parent, group, only_waits) else { return };
            (opener, waits) = (parent, further);
        }
    }

    /// Counts a branch that began to wait, or is busy again. `Some` if its fan-out as a whole only waits now, or no
    /// more.
    fn count(&mut self, parent: ScopeId, group: GroupId, waits: bool) -> Option<bool> {
        let siblings = self.get_mut(parent)?.children.get_mut(&group)?;
        let waited = siblings.only_wait();
        if waits {
            siblings.busy -= 1;
        } else {
            siblings.busy += 1;
        }
        let (only_wait, has_room) = (siblings.only_wait(), waits && siblings.opens_more);
        if has_room {
            self.with_room.push(Reverse(group));
        }
        (waited != only_wait).then_some(only_wait)
    }
}

impl Scope {
    /// The scope that opened the branch, and the fan-out; `None` for the root.
    fn fan_out(&self) -> Option<(ScopeId, GroupId)> {
        self.parent.zip(self.branch.map(|(group, _)| group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fan_out(number: u32) -> GroupId {
        GroupId::of(number)
    }

    /// Branch 1 of the root with branches 2 and 3 below it, each with one piece of work. All fan-outs are bounded.
    fn opened() -> Scopes {
        let mut scopes = Scopes::default();
        scopes.open(ScopeId(1), ScopeId::ROOT, (fan_out(1), 0), true);
        scopes.note_opens_more(ScopeId::ROOT, fan_out(1), true);
        for (branch, place) in [(2, 0), (3, 1)] {
            scopes.open(ScopeId(branch), ScopeId(1), (fan_out(2), place), true);
            scopes.add_pending(ScopeId(branch));
        }
        // The fan-out of the two is work of the branch that opened it.
        scopes.add_pending(ScopeId(1));
        scopes
    }

    fn waits(scopes: &Scopes) -> [bool; 3] {
        [1, 2, 3].map(|branch| scopes.get(ScopeId(branch)).is_some_and(Scope::only_waits))
    }

    fn ask(scopes: &mut Scopes, branch: u32) {
        scopes.add_wait(ScopeId(branch));
        scopes.remove_pending(ScopeId(branch));
    }

    // S50
    #[test]
    fn a_branch_only_waits_as_long_as_everything_below_does() {
        let mut scopes = opened();
        ask(&mut scopes, 2);
        assert_eq!(waits(&scopes), [false, true, false]);
        assert_eq!((scopes.busy(ScopeId(1), fan_out(2)), scopes.next_with_room()), (1, None));
        ask(&mut scopes, 3);
        assert_eq!(waits(&scopes), [true; 3]);
        assert_eq!((scopes.busy(ScopeId::ROOT, fan_out(1)), scopes.next_with_room()), (0, Some(fan_out(1))));
        // A reply: the count of the request passes to its event.
        scopes.end_wait(ScopeId(3));
        assert_eq!(waits(&scopes), [false, true, false]);
        assert_eq!(scopes.busy(ScopeId::ROOT, fan_out(1)), 1);
    }

    // S50
    #[test]
    fn a_branch_that_closes_leaves_the_others_as_they_are() {
        let mut scopes = opened();
        ask(&mut scopes, 2);
        scopes.remove_pending(ScopeId(3));
        assert!(scopes.close(ScopeId(3)).is_some());
        assert_eq!(waits(&scopes), [true, true, false]);
        // The last one takes its fan-out with it, which the caller counts as work until it is gathered.
        assert!(scopes.close(ScopeId(2)).is_some());
        assert_eq!(waits(&scopes), [false; 3]);
        assert_eq!(scopes.busy(ScopeId::ROOT, fan_out(1)), 1);
    }

    // S50
    #[test]
    fn a_branch_that_opens_in_the_place_of_another_one_is_busy() {
        let mut scopes = opened();
        ask(&mut scopes, 2);
        ask(&mut scopes, 3);
        assert_eq!(scopes.busy(ScopeId::ROOT, fan_out(1)), 0);
        scopes.end_wait(ScopeId(3));
        scopes.remove_pending(ScopeId(3));
        assert!(scopes.close(ScopeId(3)).is_some());
        scopes.open(ScopeId(4), ScopeId(1), (fan_out(2), 2), false);
        assert_eq!((waits(&scopes)[0], scopes.busy(ScopeId::ROOT, fan_out(1))), (false, 1));
    }

    #[test]
    fn without_a_bound_nothing_is_counted() {
        let mut scopes = Scopes::default();
        scopes.open(ScopeId(1), ScopeId::ROOT, (fan_out(1), 0), false);
        scopes.add_pending(ScopeId(1));
        ask(&mut scopes, 1);
        assert_eq!((waits(&scopes)[0], scopes.next_with_room()), (false, None));
        scopes.end_wait(ScopeId(1));
        scopes.remove_pending(ScopeId(1));
        assert_eq!(scopes.next_to_settle(), Some((ScopeId(1), true)));
    }
}
