//! The way on from a visit: which route holds, or why none does. It counts routes, and ends walks.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use workflow_core::signature::StepCall;
use workflow_core::{FanOut, InputValue, JsonOutput, StepError};

use super::visit::Visit;
use crate::document::model::{Decide, Failures, Next, OnFailure, OnNoMatch, Parallel, Route, Target};
use crate::document::template::Expression;
use crate::expression::short;
use crate::state::{Carried, Failure, GraphStatus, ONLY_PATH, Opened, Output, Taken, Token, names};
use crate::table;

/// The lists of routes, as counts of routes name them.
const NEXT: &str = "next";
const ON_FAILURE: &str = "on_failure";

/// Which routes a visit takes.
#[derive(Debug)]
pub(super) enum Leave {
    /// Those of `next`.
    Next,
    /// Those of `on_failure`, with the failure.
    Failed(Failure),
    /// On to the join of branches that failed.
    Joined(Failure),
}

/// The way on.
#[derive(Debug)]
pub(super) enum Way {
    To { node: usize, token: Token, counted: Option<String> },
    End { end: End, counted: Option<String> },
    Choose(Value),
    Open(Vec<Opened>, bool),
    Join(Failure),
}

/// The end of a walk.
#[derive(Debug)]
pub(super) struct End {
    pub(super) status: GraphStatus,
    pub(super) at: Arc<str>,
    pub(super) output: Value,
    pub(super) candidates: Vec<Arc<str>>,
    pub(super) warnings: Vec<Arc<str>>,
}

/// Leaves `graph.output`.
pub(super) fn stop(call: &mut StepCall, end: End, carried: &Carried) -> Result<(), StepError> {
    let End { status, at, output, candidates, warnings } = end;
    let output = Output { status, at, output, carried: carried.clone(), candidates, warnings };
    let value = serde_json::to_value(output).map_err(|error| StepError::permanent(error.to_string()))?;
    Ok(call.emit(names::OUTPUT, value)?)
}

impl Visit<'_> {
    /// Finds the way on. It marks what has degraded the walk.
    /// `decided`: how often the node has asked a model.
    pub(super) fn way(&mut self, leave: Leave, decided: u32) -> Result<Way, StepError> {
        let node = self.node();
        let failure = match leave {
            // Branches that do not meet end the walk.
            Leave::Joined(_) if self.walk.layout.join(self.plan.node).is_none() => {
                return self.end_walk(GraphStatus::Completed, None);
            }
            Leave::Joined(failure) => return Ok(Way::Join(failure)),
            Leave::Failed(failure) => match &node.on_failure {
                Some(OnFailure::To(name)) => {
                    let to = Target::Node(name.clone());
                    return self.to(&to, "on failure", Some(failure), None);
                }
                Some(OnFailure::Routes(routes)) => {
                    if let Some(dry) = self.dry(routes.iter().any(|route| route.when.is_some()), routes) {
                        return Ok(dry);
                    }
                    return self.routes(routes, ON_FAILURE, Some(failure));
                }
                Some(OnFailure::Continue) | None => Some(failure),
            },
            Leave::Next => None,
        };
        if let Some(hive) = node.hive() {
            // A visit that was skipped: memory stands for its result.
            let output = self.memory_keys();
            return self.hive_way(hive, &output, decided);
        }
        match &node.next {
            Next::End => self.end_walk(GraphStatus::Completed, None),
            Next::To(name) => {
                let to = Target::Node(name.clone());
                self.to(&to, ONLY_PATH, failure, None)
            }
            Next::Routes(routes) => match self.dry(routes.iter().any(|route| route.when.is_some()), routes) {
                Some(dry) => Ok(dry),
                None => self.routes(routes, NEXT, failure),
            },
            Next::Parallel(parallel) => self.parallel(parallel, failure.as_ref()),
            Next::Sweny(sweny) => self.sweny_way(sweny, decided),
            Next::Decide(decide) => self.choose(decide, decided, failure.as_ref()),
        }
    }

    /// In a dry run, the end before a choice.
    fn dry(&self, is_choice: bool, routes: &[Route]) -> Option<Way> {
        let from = &self.node().id.value;
        let labels = || (0..routes.len()).map(|place| label(from, routes, place)).collect();
        (self.is_dry && is_choice).then(|| self.dry_end(labels()))
    }

    pub(super) fn dry_end_before(&self, targets: impl Iterator<Item = Arc<str>>) -> Way {
        let from = &self.node().id.value;
        self.dry_end(targets.map(|to| names::token(from, &to)).collect())
    }

    pub(super) fn dry_end(&self, candidates: Vec<Arc<str>>) -> Way {
        let at = self.node().id.value.clone();
        let end =
            End { status: GraphStatus::DryRun, at, output: Value::Null, candidates, warnings: Vec::new() };
        Way::End { end, counted: None }
    }

    /// The first route that holds, of those that are not used up.
    fn routes(&mut self, routes: &[Route], list: &str, failure: Option<Failure>) -> Result<Way, StepError> {
        let mut refused = Vec::new();
        for (place, route) in routes.iter().enumerate() {
            let label = || label(&self.node().id.value, routes, place);
            // By its name, so that a route keeps its count where another one is put before it.
            let counted = route.max.map(|max| (format!("{list}.{}", label()), u64::from(max)));
            if let Some((key, max)) = &counted
                && self.used(key) >= *max
            {
                refused.push(format!("`{}` was taken as often as `max: {max}` allows", label()));
                continue;
            }
            if let Some(when) = &route.when
                && !self.holds(when, label)?
            {
                let asked = when.parsed.source();
                refused.push(format!("`{}` asks for `{asked}`{}", label(), self.values(when)));
                continue;
            }
            let reason = match (&route.when, routes.len()) {
                (Some(when), _) => when.parsed.source(),
                (None, 1) => ONLY_PATH,
                (None, _) => "default",
            };
            return self.to(&route.to, reason, failure, counted.map(|(key, _)| key));
        }
        let graph = &self.walk.graph;
        let on_no_match = self.node().on_no_match.or(graph.defaults.on_no_match).unwrap_or(OnNoMatch::Fail);
        let of_list = if list == NEXT { "" } else { "`on_failure` of " };
        let message = format!("no route of {of_list}`{}` held: {}", self.node().id.value, refused.join("; "));
        if on_no_match == OnNoMatch::End && list == NEXT {
            self.carried.degraded = true;
            self.warnings.push(message.into());
            return self.end_walk(GraphStatus::NoMatch, None);
        }
        let message = match failure {
            Some(failure) => format!("{message}; the failure was: {}", failure.message),
            None => message,
        };
        Err(StepError::permanent(message))
    }

    fn holds(&self, when: &Expression, label: impl FnOnce() -> Arc<str>) -> Result<bool, StepError> {
        when.parsed.evaluate_condition(&self.sight).map_err(|error| {
            StepError::permanent(format!(
                "the condition of the route `{}`, `{}`, has no value: {error}",
                label(),
                when.parsed.source()
            ))
        })
    }

    /// The values that a condition saw, for messages.
    fn values(&self, when: &Expression) -> String {
        let values = when.parsed.values(&self.sight);
        let said = values.iter().map(|(path, value)| match value {
            Some(value) => format!("`{path}` is {}", short(value)),
            None => format!("`{path}` is missing"),
        });
        let said: Vec<_> = said.collect();
        if said.is_empty() { String::new() } else { format!(", where {}", said.join(" and ")) }
    }

    /// How often each route that is counted was taken.
    fn taken(&self) -> Taken {
        match self.plan.inputs.taken.map(|at| self.call.input(at)) {
            Some(InputValue::Event(event)) => Taken::of(event),
            _ => Taken::default(),
        }
    }

    /// How often the route with this key was taken.
    pub(super) fn used(&self, key: &str) -> u64 {
        self.taken().times(key)
    }

    pub(super) fn to(
        &mut self,
        target: &Target,
        reason: impl Into<Arc<str>>,
        error: Option<Failure>,
        counted: Option<String>,
    ) -> Result<Way, StepError> {
        match table::target(&self.walk.graph, target) {
            Some(node) => {
                let carried = self.carried.clone();
                let token =
                    Token { carried, reason: reason.into(), error, warnings: Vec::new(), writes: Map::new() };
                Ok(Way::To { node, token, counted })
            }
            None => self.end_walk(GraphStatus::Completed, counted),
        }
    }

    /// The end of the walk, with the output of the graph where it is not the end of a branch alone.
    pub(super) fn end_walk(
        &mut self,
        status: GraphStatus,
        counted: Option<String>,
    ) -> Result<Way, StepError> {
        let output = match &self.walk.graph.output {
            _ if !self.walk.layout.is_root(self.plan.node) => Value::Null,
            Some(output) => self.render(output)?,
            None if self.memory.is_some() => self.memory_keys(),
            None => self.sight.data(self.plan.node).cloned().unwrap_or_default(),
        };
        let at = self.node().id.value.clone();
        let end = End { status, at, output, candidates: Vec::new(), warnings: Vec::new() };
        Ok(Way::End { end, counted })
    }

    fn parallel(&mut self, parallel: &Parallel, failure: Option<&Failure>) -> Result<Way, StepError> {
        let is_choice = parallel.branches.iter().any(|branch| branch.when.is_some());
        if self.is_dry && is_choice {
            return Ok(self.dry_end_before(parallel.branches.iter().map(|branch| branch.to.value.clone())));
        }
        let mut opened = Vec::new();
        for branch in &parallel.branches {
            let to = branch.to.value.clone();
            let reason: Arc<str> = match &branch.when {
                Some(when) => {
                    if !self.holds(when, || names::token(&self.node().id.value, &to))? {
                        continue;
                    }
                    when.parsed.source().into()
                }
                None => "parallel".into(),
            };
            let (carried, error) = (self.carried.clone(), failure.cloned());
            opened.push(Opened { carried, to, reason, error, writes: Map::new() });
        }
        Ok(Way::Open(opened, parallel.failures != Failures::FailAll))
    }

    fn choose(&mut self, decide: &Decide, asked: u32, failure: Option<&Failure>) -> Result<Way, StepError> {
        if self.is_dry {
            let choices = decide.choices.iter().map(|choice| &choice.to).chain([&decide.otherwise]);
            let mut targets: Vec<_> = choices.map(written).collect();
            let mut known = std::collections::HashSet::new();
            targets.retain(|to| known.insert(to.clone()));
            return Ok(self.dry_end_before(targets.into_iter()));
        }
        let question = crate::node::render::render_text(&decide.question, &self.sight)
            .map_err(|error| StepError::permanent(error.to_string()))?;
        let mut asks = json!({ "walk": self.carried, "question": question, "asked": asked });
        if let Some(failure) = failure {
            asks["error"] = serde_json::to_value(failure).unwrap_or_default();
        }
        Ok(Way::Choose(asks))
    }

    /// Leaves what the way on needs.
    pub(super) fn take(&mut self, way: Way) -> Result<(), StepError> {
        let walk = self.walk;
        let id = walk.id(self.plan.node);
        match way {
            Way::To { node, token, counted } => {
                self.count(counted)?;
                let value =
                    serde_json::to_value(token).map_err(|error| StepError::permanent(error.to_string()))?;
                self.call.emit(walk.token(self.plan.node, node)?, value)?;
            }
            Way::End { end, counted } => {
                self.count(counted)?;
                if walk.layout.is_root(self.plan.node) || end.status == GraphStatus::DryRun {
                    stop(&mut self.call, end, &self.carried)?;
                }
            }
            Way::Choose(choose) => self.call.emit(&names::of(id, "choose"), choose)?,
            Way::Open(opened, continues) => {
                let items = opened.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
                let items = items.map_err(|error| StepError::permanent(error.to_string()))?;
                let mut fan_out = FanOut::new(items);
                if continues {
                    fan_out = fan_out.continue_others();
                }
                if let Next::Parallel(parallel) = &self.node().next
                    && let Some(most) = parallel.concurrency
                {
                    fan_out = fan_out.concurrency(most);
                }
                self.call.emit(&names::of(id, "item"), fan_out)?;
            }
            Way::Join(failure) => self.join_failed(&failure)?,
        }
        Ok(())
    }

    fn count(&mut self, counted: Option<String>) -> Result<(), StepError> {
        let Some(key) = counted else { return Ok(()) };
        let taken = JsonOutput::typed(self.taken().more(key));
        Ok(self.call.emit(&names::of(&self.node().id.value, "taken"), taken)?)
    }
}

/// The id of a target.
pub(super) fn written(target: &Target) -> Arc<str> {
    match target {
        Target::Node(name) => name.value.clone(),
        Target::End => "end".into(),
    }
}

/// The name of a route in reports: its own, else `from->to`, with a number from the second between the same two.
pub(crate) fn label(from: &str, routes: &[Route], place: usize) -> Arc<str> {
    let route = &routes[place];
    if let Some(id) = &route.id {
        return id.value.clone();
    }
    let to = written(&route.to);
    let before =
        routes[..place].iter().filter(|other| other.id.is_none() && written(&other.to) == to).count();
    match before {
        0 => names::token(from, &to),
        _ => format!("{from}->{to}.{}", before + 1).into(),
    }
}
