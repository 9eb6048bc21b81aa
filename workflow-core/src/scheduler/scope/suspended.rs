//! The compact form of a tree that is the root alone, while its run waits.

use super::{Scope, Scopes};
use crate::scheduler::row_states::RowStates;
use crate::scheduler::suspended::SuspendedRoot;

impl Scopes {
    /// Whether the root is the only scope and has no state of a branch.
    pub(in super::super) fn can_suspend(&self) -> bool {
        // All fields are named, so that a new one cannot be forgotten here.
        let Self { root, branches, free: _, places, next: _, sweeps: _, settling, with_room } = self;
        let Scope {
            parent,
            branch,
            satisfied: _,
            topics: _,
            steps: _,
            children,
            beside: _,
            pending: _,
            waits: _,
            bounded: _,
            carried,
            failures,
            opened: _,
            swept: _,
        } = root;
        let has_none = branches.len() == 0 && places.is_empty() && children.is_empty();
        let is_done = settling.is_empty() && with_room.is_empty();
        has_none
            && is_done
            && parent.is_none()
            && branch.is_none()
            && carried.is_empty()
            && failures.is_empty()
    }

    /// Takes the root. [`can_suspend`](Self::can_suspend) must hold, so nothing else is lost.
    pub(in super::super) fn suspend(&mut self) -> SuspendedRoot {
        let Scope { satisfied, topics, steps, pending, .. } = std::mem::take(&mut self.root);
        let (topics, steps) = (topics.into_boxed(), steps.into_boxed());
        SuspendedRoot { satisfied, topics, steps, pending, next: self.next }
    }

    /// The tree as it was before [`suspend`](Self::suspend).
    pub(in super::super) fn restore(root: SuspendedRoot) -> Self {
        let SuspendedRoot { satisfied, topics, steps, pending, next } = root;
        let (topics, steps) = (RowStates::of(topics), RowStates::of(steps));
        Self {
            root: Scope { satisfied, topics, steps, pending, ..Scope::default() },
            next,
            ..Self::default()
        }
    }
}
