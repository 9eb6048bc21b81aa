//! Branches: their begin, and the step in which they meet. It publishes what branches leave, once all have ended; which node
//! runs then is a matter of the table. Nothing here counts tokens: the core says when all branches have settled.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use workflow_core::errors::BranchFailure;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::{AnyEvent, InputValue, StepError};

use super::leave::{End, stop};
use super::visit::{About, Visit};
use super::{Walk, read};
use crate::document::model::{Conflicts, Failures, Next, OnFailure, Parallel};
use crate::sight::Held;
use crate::state::{
    BranchStatus, Came, Carried, Failure, GraphStatus, Joined, JoinedBranch, NodeResult, Opened, Token,
    VisitStatus, names,
};
use crate::table::Plan;

/// The events and the end of a branch.
struct Left {
    to: Arc<str>,
    number: usize,
    settled: u32,
    status: BranchStatus,
    error: Option<Failure>,
    failed_at: Option<FailedAt>,
    /// The count of visits at its end.
    carried: Carried,
    /// The writes of the branch to the memory of a Hive document.
    writes: Map<String, Value>,
    events: Events,
}

/// The node of the branch itself whose visit failed, perhaps because of branches below it.
#[derive(Debug, Clone, Copy)]
struct FailedAt {
    node: usize,
    /// The visit is in the log, and counts.
    has_left: bool,
    attempts: u32,
}

/// The latest event of each name, with its place in the order of a branch.
type Events = BTreeMap<Arc<str>, (usize, AnyEvent)>;

/// Results and variables, in the order in which they are published.
type Published = Vec<(Arc<str>, Held)>;

impl Walk {
    pub(super) fn branch(&self, plan: &Plan, mut call: StepCall) -> Result<Emitted, StepError> {
        let Opened { carried, to, reason, writes } = read(call.input(0).json().unwrap_or(&Value::Null))?;
        let token = Token { carried, reason, error: None, warnings: Vec::new(), writes };
        let token = serde_json::to_value(token).map_err(|error| StepError::permanent(error.to_string()))?;
        call.emit(&names::opening(self.id(plan.node), &to), token)?;
        call.commit(())
    }

    pub(super) fn join(&self, plan: &Plan, call: StepCall) -> Result<Emitted, StepError> {
        let Next::Parallel(parallel) = &self.graph.nodes[plan.node].next else {
            return Err(StepError::permanent("the node has no branches"));
        };
        let left = self.left(plan, &call)?;
        let mut visit = self.open(plan, call)?;
        // The visit of the parallel node is in the log, and counts already.
        let about: About = visit.sight.result(plan.node).map_or(Ok(About::default()), read)?;
        let base = about.walk;
        let mut carried = base.clone();
        for branch in &left {
            carried.steps = carried.steps.saturating_add(branch.carried.steps.saturating_sub(base.steps));
            carried.prompts =
                carried.prompts.saturating_add(branch.carried.prompts.saturating_sub(base.prompts));
            carried.degraded |= branch.carried.degraded || branch.status == BranchStatus::Failed;
        }
        let failed = left.iter().filter(|branch| branch.status == BranchStatus::Failed).count();
        let is_met = self.layout.join(plan.node).is_some()
            && left.iter().any(|branch| branch.status != BranchStatus::Ended);
        let mut published = self.published(parallel, &left)?;
        if parallel.failures == Failures::WaitAll {
            for branch in &left {
                visit.publish_failure(branch, &mut published)?;
            }
        }
        for (name, value) in &published {
            let mut value = Value::clone(value);
            // The join writes memory once, for all branches together.
            if visit.memory.is_some() {
                value.as_object_mut().and_then(|value| value.remove("writes"));
            }
            visit.call.emit(name, value)?;
        }
        let mut order: Vec<_> = left.iter().collect();
        order.sort_by_key(|branch| branch.number);
        let branches = order.into_iter().map(|branch| JoinedBranch {
            to: branch.to.clone(),
            status: branch.status,
            error: branch.error.clone().filter(|_| parallel.failures == Failures::WaitAll),
        });
        let mut joined = Joined {
            carried,
            failed: u32::try_from(failed).unwrap_or(u32::MAX),
            branches: branches.collect(),
            writes: merged(parallel, &left)?,
        };
        // Without a join, the walk ends where its branches do.
        let has_join = self.layout.join(plan.node).is_some();
        joined.carried.degraded |= has_join && !is_met;
        visit.carried = joined.carried.clone();
        let event = if is_met { "joined" } else { "ended" };
        let writes = joined.writes.clone();
        let value = serde_json::to_value(joined).map_err(|error| StepError::permanent(error.to_string()))?;
        visit.call.emit(&names::of(self.id(plan.node), event), value)?;
        if !is_met && self.layout.is_root(plan.node) {
            let status = if has_join { GraphStatus::NoMatch } else { GraphStatus::Completed };
            let output = visit.output_after(published, writes)?;
            let at = self.id(plan.node).clone();
            let end = End { status, at, output, candidates: Vec::new(), warnings: Vec::new() };
            stop(&mut visit.call, end, &visit.carried)?;
        }
        visit.call.commit(())
    }

    /// The events of each branch, in the order in which the branches settled.
    fn left(&self, plan: &Plan, call: &StepCall) -> Result<Vec<Left>, StepError> {
        let InputValue::Gather(branches) = call.input(0) else {
            return Err(StepError::permanent("the step has no branches"));
        };
        let arrivals = self.arrivals(plan.node);
        let mut left = Vec::new();
        for (number, branch) in branches.iter().enumerate() {
            let opened: Opened = read(branch.item().as_json().unwrap_or(&Value::Null))?;
            let mut events = Events::new();
            let (mut carried, mut has_arrived, mut writes) = (opened.carried, false, Map::new());
            for (place, event) in branch.events().iter().enumerate() {
                let name: Arc<str> = event.name().into();
                has_arrived |= arrivals.contains(&name);
                writes.extend(super::hive::writes(event));
                if self.graph.find(&name).is_some() || name.ends_with(":joined") || name.ends_with(":ended") {
                    let about: Came = read(event.as_json().unwrap_or(&Value::Null))?;
                    // Results that an inner join published count less than the join itself.
                    if about.carried.steps >= carried.steps {
                        carried = about.carried;
                    }
                }
                events.insert(name, (place, AnyEvent::clone(event)));
            }
            let failed = branch.failure().map(|failure| self.failed(plan.node, failure));
            let (mut error, mut failed_at) = (None, None);
            if let Some((failure, node, attempts)) = failed {
                let has_left = self.has_left(node, &carried, &events)?;
                carried.steps = carried.steps.saturating_add(u32::from(!has_left));
                failed_at = Some(FailedAt { node, has_left, attempts });
                error = Some(failure);
            }
            let status = match (&error, has_arrived) {
                (Some(_), _) => BranchStatus::Failed,
                (None, true) => BranchStatus::Arrived,
                (None, false) => BranchStatus::Ended,
            };
            left.push(Left {
                to: opened.to,
                number,
                settled: branch.settled(),
                status,
                error,
                failed_at,
                carried,
                writes,
                events,
            });
        }
        left.sort_by_key(|branch| branch.settled);
        Ok(left)
    }

    /// The failure of a branch of `parallel`, the node in the branch's own scope that failed, and its attempts.
    fn failed(&self, parallel: usize, failure: &BranchFailure) -> (Failure, usize, u32) {
        let name = failure.step().split(':').next().unwrap_or_default();
        let mut node = self.graph.find(name).unwrap_or(parallel);
        let error = Failure {
            message: failure.error().to_string().into(),
            class: failure.error().class().to_string().into(),
            node: self.id(node).clone(),
        };
        let mut attempts = failure.attempts();
        // Branches below have failed as a whole, and with them the node that opened them.
        while let Some(opener) =
            self.layout.opener(self.layout.scope(node)).filter(|opener| *opener != parallel)
        {
            (node, attempts) = (opener, 0);
        }
        (error, node, attempts)
    }

    /// Whether the failing visit of `node` has left its result before its branches failed.
    fn has_left(&self, node: usize, last: &Carried, events: &Events) -> Result<bool, StepError> {
        let Some((_, event)) = events.get(self.id(node)) else { return Ok(false) };
        let left: Ended = read(event.as_json().unwrap_or(&Value::Null))?;
        // A failed result is one of before, unless the visit went on after its failure.
        let is_of_visit = left.status != VisitStatus::Failed
            || left.kept
            || matches!(self.graph.nodes[node].on_failure, Some(OnFailure::Continue));
        Ok(self.has_branches(node) && left.walk.steps == last.steps && is_of_visit)
    }

    fn has_branches(&self, node: usize) -> bool {
        matches!(self.graph.nodes[node].next, Next::Parallel(_))
    }

    /// The events of a branch that say that it has come to the join.
    fn arrivals(&self, parallel: usize) -> Vec<Arc<str>> {
        let Some(join) = self.layout.join(parallel) else { return Vec::new() };
        let to = self.id(join);
        let mut arrivals = vec![names::opening(self.id(parallel), to)];
        for inner in self.layout.within(parallel).iter().copied() {
            arrivals.push(names::token(self.id(inner), to));
            if self.layout.join(inner) == Some(join) {
                arrivals.push(names::of(self.id(inner), "joined"));
            }
        }
        arrivals
    }

    /// Results and variables that the branches leave outside of them, each once.
    fn published(&self, parallel: &Parallel, left: &[Left]) -> Result<Published, StepError> {
        let conflicts = parallel.conflicts.unwrap_or(Conflicts::Error);
        let mut published = Published::new();
        let mut by: HashMap<&Arc<str>, (usize, &Left)> = HashMap::new();
        for branch in left {
            let mut events: Vec<_> = branch.events.iter().collect();
            events.sort_by_key(|(_, (place, _))| *place);
            for (name, (_, event)) in events {
                let is_variable = name.starts_with("vars.");
                let is_result = self.graph.find(name).is_some();
                // A failed branch sets no variable.
                if !(is_result
                    || name.ends_with(":taken")
                    || is_variable && branch.status != BranchStatus::Failed)
                {
                    continue;
                }
                match by.get(name) {
                    None => {
                        by.insert(name, (published.len(), branch));
                        published.push((name.clone(), Held::Event(event.clone())));
                    }
                    Some((place, first)) => match conflicts {
                        Conflicts::Error if name.ends_with(":taken") => {}
                        Conflicts::Error => {
                            let (what, name) = match name.strip_prefix("vars.") {
                                Some(variable) => ("the variable", variable),
                                None => ("the result of", &**name),
                            };
                            return Err(conflict(name, first, branch, what));
                        }
                        Conflicts::LastWins => published[*place].1 = Held::Event(event.clone()),
                        Conflicts::FirstWins => {}
                    },
                }
            }
        }
        Ok(published)
    }
}

/// The end of a visit.
#[derive(Deserialize)]
struct Ended {
    #[serde(default)]
    walk: Carried,
    #[serde(default)]
    status: VisitStatus,
    #[serde(default)]
    kept: bool,
}

/// The writes of the branches of a Hive document to its memory, in the order in which they ended.
fn merged(parallel: &Parallel, left: &[Left]) -> Result<Map<String, Value>, StepError> {
    let conflicts = parallel.conflicts.unwrap_or(Conflicts::Error);
    let mut merged = Map::new();
    let mut writers: BTreeMap<&str, &Left> = BTreeMap::new();
    for branch in left.iter().filter(|branch| branch.status != BranchStatus::Failed) {
        for (key, value) in &branch.writes {
            match (writers.get(&**key), conflicts) {
                (Some(first), Conflicts::Error) => return Err(conflict(key, first, branch, "the key")),
                (Some(_), Conflicts::FirstWins) => continue,
                _ => {}
            }
            writers.insert(key, branch);
            merged.insert(key.clone(), value.clone());
        }
    }
    Ok(merged)
}

fn conflict(name: &str, first: &Left, second: &Left, what: &str) -> StepError {
    let (first, second) = if first.number < second.number { (first, second) } else { (second, first) };
    StepError::permanent(format!(
        "the branches that begin with `{}` and `{}` both write {what} `{name}`: write it in one of them, or state `conflicts`",
        first.to, second.to
    ))
}

impl Visit<'_> {
    /// Adds the failed result of the node at which a branch failed, in place of one that it left before.
    fn publish_failure(&self, branch: &Left, published: &mut Published) -> Result<(), StepError> {
        let (Some(error), Some(failed)) = (&branch.error, branch.failed_at) else { return Ok(()) };
        let id = self.walk.id(failed.node);
        let within = branch.events.get(id).and_then(|(_, event)| event.as_json());
        let before = within.or_else(|| self.sight.result(failed.node));
        let About { visit, mut done, .. } = before.map_or(Ok(About::default()), read)?;
        done.runs = done.runs.saturating_add(if failed.has_left { 0 } else { failed.attempts });
        let result = NodeResult {
            status: VisitStatus::Failed,
            error: Some(error.clone()),
            visit: if failed.has_left { visit } else { visit.saturating_add(1) },
            done,
            carried: branch.carried.clone(),
            ..NodeResult::default()
        };
        let value = serde_json::to_value(result).map_err(|error| StepError::permanent(error.to_string()))?;
        published.retain(|(name, _)| name != id);
        published.push((id.clone(), Held::Made(Arc::new(value))));
        Ok(())
    }

    /// The output of the graph, where its walk ends with its branches.
    fn output_after(&mut self, published: Published, writes: Map<String, Value>) -> Result<Value, StepError> {
        if self.memory.is_some() {
            return Ok(self.memory_with(writes));
        }
        let Some(output) = &self.walk.graph.output else {
            return Ok(self.sight.data(self.plan.node).cloned().unwrap_or_default());
        };
        for (name, value) in published {
            if let Some(node) = self.walk.graph.find(&name) {
                self.sight.unseen.retain(|known| *known != node);
                self.sight.results.retain(|(known, _)| *known != node);
                self.sight.results.push((node, value));
            } else if let Some(variable) = name.strip_prefix("vars.") {
                let place = self.walk.graph.vars.iter().position(|var| *var.name.value == *variable);
                if let Some(place) = place {
                    self.sight.set(place, Value::clone(&value));
                }
            }
        }
        self.render(output)
    }

    /// Goes on at the join of branches of which one has failed, and which were dropped.
    pub(super) fn join_failed(&mut self, failure: &Failure) -> Result<(), StepError> {
        let Next::Parallel(parallel) = &self.node().next else { return Ok(()) };
        let branches = std::mem::take(&mut self.opened).into_iter().map(|to| JoinedBranch {
            to,
            status: BranchStatus::Failed,
            error: (parallel.failures == Failures::WaitAll).then(|| failure.clone()),
        });
        let branches = branches.collect();
        let joined = Joined { carried: self.carried.clone(), failed: 1, branches, writes: Map::new() };
        let value = serde_json::to_value(joined).map_err(|error| StepError::permanent(error.to_string()))?;
        Ok(self.call.emit(&names::of(&self.node().id.value, "joined"), value)?)
    }
}
