//! The latest visits of a run, by scope and node: their numbers, their exits and their results.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use workflow_core::ScopeId;

use crate::SharedOutcome;

/// The visits of a node in one scope.
#[derive(Debug, Default)]
pub(super) struct Latest {
    /// The number of the latest one that ended.
    pub(super) visit: Option<u32>,
    /// The exit of the visit that began last, if it has exited.
    pub(super) exit: Option<Exit>,
    /// The latest result, and its place among all.
    result: Option<(u64, SharedOutcome)>,
}

/// The exit of a visit.
#[derive(Debug)]
pub(super) struct Exit {
    pub(super) visit: u32,
    /// The number of its warnings so far.
    pub(super) told: usize,
    /// The visit has failed, with its exit or afterwards.
    pub(super) has_failed: bool,
}

/// The visits by scope.
#[derive(Debug, Default)]
pub(super) struct Visits {
    found: HashMap<ScopeId, HashMap<Arc<str>, Latest>>,
    /// Results so far.
    count: u64,
}

impl Visits {
    pub(super) fn get(&self, scope: ScopeId, node: &str) -> Option<&Latest> {
        self.found.get(&scope)?.get(node)
    }

    pub(super) fn of(&mut self, scope: ScopeId, node: &str) -> &mut Latest {
        let nodes = self.found.entry(scope).or_default();
        if !nodes.contains_key(node) {
            nodes.insert(node.into(), Latest::default());
        }
        nodes.entry(node.into()).or_default()
    }

    /// A result of a node entered the log.
    pub(super) fn leave(&mut self, scope: ScopeId, node: &str, visit: u32, result: SharedOutcome) {
        self.count += 1;
        let count = self.count;
        let latest = self.of(scope, node);
        latest.visit = Some(visit);
        latest.result = Some((count, result));
    }

    pub(super) fn forget(&mut self, scope: ScopeId) {
        self.found.remove(&scope);
    }

    pub(super) fn forget_results(&mut self) {
        self.found.values_mut().flat_map(HashMap::values_mut).for_each(|latest| latest.result = None);
    }

    /// The latest result of each node outside of branches, and of those that have none there the latest in branches that have
    /// not met, if the run ended before that.
    pub(super) fn results(mut self, with_branches: bool) -> BTreeMap<Arc<str>, SharedOutcome> {
        let outside = self.found.remove(&ScopeId::ROOT).unwrap_or_default();
        let mut results: BTreeMap<_, _> = BTreeMap::new();
        if with_branches {
            let inside = self.found.into_values().flatten();
            let mut inside: Vec<_> =
                inside.filter_map(|(node, latest)| Some((latest.result?, node))).collect();
            inside.sort_by_key(|((place, _), _)| *place);
            results.extend(inside.into_iter().map(|((_, result), node)| (node, result)));
        }
        let outside = outside.into_iter().filter_map(|(node, latest)| Some((node, latest.result?.1)));
        results.extend(outside);
        results
    }
}
