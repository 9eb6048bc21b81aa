//! Branches: their begin, and the step in which they meet. It publishes what branches leave, once all have ended; which node
//! runs then is a matter of the table. Nothing here counts tokens: the core says when all
//! branches have settled. `failed` counts the visits that failed with their branches.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};
use workflow_core::errors::BranchFailure;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::{AnyEvent, InputValue, StepError};

use super::leave::{End, stop};
use super::visit::Visit;
use super::{Walk, read, unread};
use crate::document::model::{Conflicts, Failures, Next, OnFailure, Parallel};
use crate::sight::Held;
use crate::state::{
    About, BranchStatus, Came, Carried, Failure, GraphStatus, Joined, JoinedBranch, Opened, Token,
    VisitStatus, names, part_of,
};
use crate::table::Plan;

mod failed;

pub(super) use failed::counts;

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
#[derive(Debug, Clone)]
struct FailedAt {
    node: usize,
    /// The visits below it that failed with it, each with its attempts.
    below: Vec<(usize, u32)>,
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
        let Opened { carried, to, reason, error, writes } =
            read(call.input(0).json().unwrap_or(&Value::Null))?;
        let token = Token { carried, reason, error, warnings: Vec::new(), writes };
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
        let about = visit.about(plan.node)?;
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
        for branch in &left {
            visit.publish_failure(branch, parallel.failures == Failures::WaitAll, &mut published)?;
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
            error: None,
            failed: u32::try_from(failed).unwrap_or(u32::MAX),
            branches: branches.collect(),
            writes: merged(parallel, &left)?,
        };
        // Without a join, the walk ends where its branches do.
        let has_join = self.layout.join(plan.node).is_some();
        joined.carried.degraded |= has_join && !is_met && self.graph.hive().is_none();
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
            if let Some((failure, mut failing)) = failed {
                let (node, attempts) = failing.pop().unwrap_or((plan.node, 0));
                let has_left = self.has_left(node, &carried, &events)?;
                let more = failing.len() + usize::from(!has_left);
                carried.steps = carried.steps.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
                failed_at = Some(FailedAt { node, below: failing, has_left, attempts });
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

    /// The failure of a branch of `parallel`, and the nodes that failed with it, from the innermost outwards.
    fn failed(&self, parallel: usize, failure: &BranchFailure) -> (Failure, Vec<(usize, u32)>) {
        let node = self.failing(failure.step()).unwrap_or(parallel);
        let error = Failure {
            message: failure.error().to_string().into(),
            class: failure.error().class().to_string().into(),
            node: self.id(node).clone(),
        };
        (error, self.failing_from(node, parallel, failure.attempts()))
    }

    /// The node of a step.
    pub(super) fn failing(&self, step: &str) -> Option<usize> {
        self.graph.find(step.split(':').next().unwrap_or_default())
    }

    /// The nodes that fail with `node` in a branch of `parallel`, from the innermost outwards, each with its attempts.
    pub(super) fn failing_from(&self, node: usize, parallel: usize, attempts: u32) -> Vec<(usize, u32)> {
        let failing = self.layout.failing(node, parallel).into_iter().enumerate();
        // A node whose branches have failed has done its own work.
        failing.map(|(place, node)| (node, if place == 0 { attempts } else { 1 })).collect()
    }

    /// Whether the failing visit of `node` has left its result before its branches failed.
    fn has_left(&self, node: usize, last: &Carried, events: &Events) -> Result<bool, StepError> {
        let Some((_, event)) = events.get(self.id(node)) else { return Ok(false) };
        let left: About = part_of(event).map_err(|error| unread(&error))?;
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
                let is_count = name.ends_with(":taken") || name.ends_with(":count");
                if !(is_result || is_count || is_variable && branch.status != BranchStatus::Failed) {
                    continue;
                }
                match by.get(name) {
                    None => {
                        by.insert(name, (published.len(), branch));
                        published.push((name.clone(), Held::Event(event.clone())));
                    }
                    Some((place, first)) => match conflicts {
                        Conflicts::Error if is_count => {}
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
            } else if let Some(node) = name.strip_suffix(":count").and_then(|id| self.walk.graph.find(id)) {
                self.sight.count_to(node, read(&value)?);
            } else if let Some(variable) = name.strip_prefix("vars.") {
                let place = self.walk.graph.vars.iter().position(|var| *var.name.value == *variable);
                if let Some(place) = place {
                    self.sight.set(place, Value::clone(&value));
                }
            }
        }
        self.render(output)
    }
}
