//! The tree of scopes (S44): what readiness needs, per scope. A run without fan-outs is its root.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::GroupId;
use crate::id::{ScopeId, Seq};
use crate::table::{DependencyTable, EventIndex, Mask, StepIndex, TopicIndex};

/// A combination of bound events, as S20 tells them apart.
pub(super) type BindingKey = SmallVec<[u64; 8]>;

#[derive(Debug, Default)]
pub(super) struct Scopes {
    root: Scope,
    /// Boxed, so that a map that grows moves little.
    branches: FxHashMap<ScopeId, Box<Scope>>,
    next: u32,
}

/// One scope.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) parent: Option<ScopeId>,
    /// The fan-out the branch belongs to, and its place in it.
    pub(super) branch: Option<(GroupId, u32)>,
    /// The conditions that hold by this scope's own events.
    pub(super) satisfied: Mask,
    pub(super) topics: Vec<TopicState>,
    pub(super) steps: Vec<StepState>,
    /// The open branches directly below, in the order in which their items entered the log.
    pub(super) children: BTreeSet<ScopeId>,
    /// What keeps a branch from being settled (S47): events to evaluate, candidates, executions, batches,
    /// open requests, pending timers, and fan-outs that are not gathered yet.
    pub(super) pending: u32,
    /// Own events that a gather may hand on.
    pub(super) carried: Vec<(EventIndex, Seq)>,
    /// The executions of this branch that failed.
    pub(super) failures: Vec<crate::id::ExecutionId>,
}

/// A topic in one scope: this scope's own events only.
#[derive(Debug, Clone, Default)]
pub(super) struct TopicState {
    pub(super) latest: Option<Seq>,
    pub(super) count: u32,
    /// The first positions, as many as the largest fixed list of the topic needs.
    pub(super) first: Vec<Seq>,
}

/// A step in one scope.
#[derive(Debug, Clone, Default)]
pub(super) struct StepState {
    pub(super) executions: u32,
    /// What it was executed with, of a step that could be executed with the same again. There is one of these for each
    /// step in each branch, so that an empty set takes no more room than a pointer.
    seen: Option<Box<FxHashSet<BindingKey>>>,
}

impl StepState {
    pub(super) fn has_seen(&self, key: &BindingKey) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.contains(key))
    }

    pub(super) fn saw(&mut self, key: BindingKey) {
        self.seen.get_or_insert_default().insert(key);
    }
}

impl Scope {
    fn new(table: &DependencyTable, parent: Option<ScopeId>, branch: Option<(GroupId, u32)>) -> Self {
        Self {
            parent,
            branch,
            satisfied: Mask::default(),
            topics: vec![TopicState::default(); table.topics.len()],
            steps: vec![StepState::default(); table.steps.len()],
            children: BTreeSet::new(),
            pending: 0,
            carried: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Takes an event of this scope into account.
    pub(super) fn count(&mut self, table: &DependencyTable, event: EventIndex, seq: Seq) {
        let row = table.event(event);
        for topic in &row.topics {
            self.count_topic(table, *topic, seq);
        }
        if row.carried && self.branch.is_some() {
            self.carried.push((event, seq));
        }
    }

    fn count_topic(&mut self, table: &DependencyTable, index: TopicIndex, seq: Seq) {
        let row = table.topic(index);
        let state = &mut self.topics[index.get()];
        state.latest = Some(seq);
        state.count += 1;
        let most = row.fixed.iter().map(|(_, count)| *count).max().unwrap_or(0);
        if state.count <= most {
            state.first.push(seq);
        }
        for condition in &row.conditions {
            if condition.least == state.count {
                self.satisfied.set(condition.bit);
            }
        }
    }
}

impl Scopes {
    pub(super) fn new(table: &DependencyTable) -> Self {
        Self { root: Scope::new(table, None, None), branches: FxHashMap::default(), next: 1 }
    }

    /// Numbers a scope that will open later.
    pub(super) fn reserve(&mut self) -> ScopeId {
        let id = ScopeId(self.next);
        self.next += 1;
        id
    }

    pub(super) fn open(
        &mut self,
        table: &DependencyTable,
        id: ScopeId,
        parent: ScopeId,
        branch: (GroupId, u32),
    ) {
        self.branches.insert(id, Box::new(Scope::new(table, Some(parent), Some(branch))));
        if let Some(parent) = self.get_mut(parent) {
            parent.children.insert(id);
        }
    }

    pub(super) fn close(&mut self, id: ScopeId) -> Option<Scope> {
        let scope = self.branches.remove(&id)?;
        if let Some(parent) = scope.parent.and_then(|parent| self.get_mut(parent)) {
            parent.children.remove(&id);
        }
        Some(*scope)
    }

    pub(super) fn get(&self, id: ScopeId) -> Option<&Scope> {
        if id == ScopeId::ROOT { Some(&self.root) } else { self.branches.get(&id).map(|scope| &**scope) }
    }

    pub(super) fn get_mut(&mut self, id: ScopeId) -> Option<&mut Scope> {
        if id == ScopeId::ROOT {
            Some(&mut self.root)
        } else {
            self.branches.get_mut(&id).map(|scope| &mut **scope)
        }
    }

    /// The scope and its ancestors, innermost first.
    pub(super) fn chain(&self, id: ScopeId) -> impl Iterator<Item = (ScopeId, &Scope)> {
        let first = self.get(id).map(|scope| (id, scope));
        std::iter::successors(first, |(_, scope)| {
            let parent = scope.parent?;
            Some((parent, self.get(parent)?))
        })
    }

    /// The open branches below a scope, each before those below it, in order (S46).
    pub(super) fn below(&self, id: ScopeId, into: &mut Vec<ScopeId>) {
        if let Some(scope) = self.get(id) {
            for child in &scope.children {
                into.push(*child);
                self.below(*child, into);
            }
        }
    }

    /// How many events of a topic a scope sees.
    pub(super) fn visible(&self, id: ScopeId, topic: TopicIndex) -> u32 {
        self.chain(id).map(|(_, scope)| scope.topics[topic.get()].count).sum()
    }

    pub(super) fn step_mut(&mut self, id: ScopeId, step: StepIndex) -> Option<&mut StepState> {
        self.get_mut(id).map(|scope| &mut scope.steps[step.get()])
    }
}
