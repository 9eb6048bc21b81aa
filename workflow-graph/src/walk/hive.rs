//! Edges of Hive documents: which of them a visit takes, and what these write. Which nodes open branches, and where branches
//! meet, is the static shape of the document.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use workflow_core::StepError;
use workflow_core::signature::{Emitted, StepCall};

use super::decide::decided;
use super::leave::Way;
use super::visit::Visit;
use super::{Walk, read};
use crate::document::model::hive::{Condition, HiveEdge, HiveNode};
use crate::document::model::{Failures, Next};
use crate::executor::{Choice, NodeError, Offer, Question};
use crate::expression::short;
use crate::sight;
use crate::state::{About, Carried, Failure, GraphStatus, NodeResult, ONLY_PATH, Opened, Token};
use crate::table::Plan;

mod memory;
mod result;

pub(crate) use memory::Names;
pub(super) use memory::{Memory, writes};
pub(crate) use result::written;

/// An edge that is taken, and why.
type Taken<'w> = (&'w HiveEdge, String);

/// `n:choose`.
#[derive(Debug, Deserialize)]
struct Asks {
    walk: Carried,
    asked: u32,
    output: Value,
}

fn successes(hive: &HiveNode) -> impl Iterator<Item = Taken<'_>> {
    let reason = if hive.edges.len() == 1 { ONLY_PATH } else { "on success" };
    let edges = hive.edges.iter().filter(|edge| edge.condition == Condition::OnSuccess);
    edges.map(move |edge| (edge, reason.to_owned()))
}

fn always<'w>(hive: &'w HiveNode, reason: &str) -> Vec<Taken<'w>> {
    let reason = if hive.edges.len() == 1 { ONLY_PATH } else { reason };
    let edges = hive.edges.iter().filter(|edge| edge.condition == Condition::Always);
    edges.map(|edge| (edge, reason.to_owned())).collect()
}

impl<'w> Visit<'w> {
    /// The way on from a visit that succeeded with `output`, a map. (HV3)
    /// `decided`: how often the node has asked a model.
    pub(super) fn hive_way(
        &mut self,
        hive: &'w HiveNode,
        output: &Value,
        decided: u32,
    ) -> Result<Way, StepError> {
        if hive.edges.is_empty() {
            return self.end_walk(GraphStatus::Completed, None);
        }
        let is_choice =
            |edge: &HiveEdge| matches!(edge.condition, Condition::Conditional | Condition::LlmDecide);
        if self.is_dry && hive.edges.iter().any(is_choice) {
            return Ok(self.dry_end_before(hive.edges.iter().map(|edge| edge.to.value.clone())));
        }
        let mut taken: Vec<Taken<'w>> = self.first_that_holds(hive, output).into_iter().collect();
        if taken.is_empty() && hive.asks_model() {
            return Ok(Way::Choose(json!({ "walk": self.carried, "asked": decided, "output": output })));
        }
        if taken.is_empty() {
            taken = always(hive, "always");
        }
        taken.extend(successes(hive));
        self.hive_take(taken, output)
    }

    /// The first conditional edge that holds. One whose condition has no value does not, with a warning. (HV11)
    fn first_that_holds(&mut self, hive: &'w HiveNode, output: &Value) -> Option<Taken<'w>> {
        for edge in hive.edges.iter().filter(|edge| edge.condition == Condition::Conditional) {
            let Some(when) = &edge.when else { return Some((edge, "no condition is stated".to_owned())) };
            match when.parsed.evaluate_hive_condition(&self.names(output)) {
                Ok(true) => return Some((edge, when.parsed.source().to_owned())),
                Ok(false) => {}
                Err(error) => {
                    let warning = format!(
                        "the edge to `{}` does not hold, since its condition `{}` has no value: {error}",
                        edge.to.value,
                        when.parsed.source()
                    );
                    self.warnings.push(warning.into());
                }
            }
        }
        None
    }

    /// Takes edges: all of them in branches, or the only one.
    fn hive_take(&mut self, taken: Vec<Taken<'w>>, output: &Value) -> Result<Way, StepError> {
        let Next::Parallel(parallel) = &self.node().next else {
            return match taken.into_iter().next() {
                Some((edge, reason)) => self.hive_to(edge, reason, None, output),
                None => self.hive_no_match(),
            };
        };
        if taken.is_empty() {
            return self.hive_no_match();
        }
        let mut opened: Vec<Opened> = Vec::new();
        for (edge, reason) in taken {
            let writes = self.mapped(edge, output);
            match opened.iter_mut().find(|opened| opened.to == edge.to.value) {
                Some(known) => known.writes.extend(writes),
                None => opened.push(Opened {
                    carried: self.carried.clone(),
                    to: edge.to.value.clone(),
                    reason: reason.into(),
                    error: None,
                    writes,
                }),
            }
        }
        Ok(Way::Open(opened, parallel.failures != Failures::FailAll))
    }

    /// The end of a walk none of whose edges is taken, which is a success like any other. (HV7)
    fn hive_no_match(&mut self) -> Result<Way, StepError> {
        self.end_walk(GraphStatus::NoMatch, None)
    }

    fn hive_to(
        &mut self,
        edge: &HiveEdge,
        reason: String,
        error: Option<Failure>,
        output: &Value,
    ) -> Result<Way, StepError> {
        let node = self.walk.graph.find(&edge.to.value);
        let node = node.ok_or_else(|| StepError::permanent("the edge leads to no node"))?;
        let (carried, writes) = (self.carried.clone(), self.mapped(edge, output));
        let token = Token { carried, reason: reason.into(), error, warnings: Vec::new(), writes };
        Ok(Way::To { node, token, counted: None })
    }

    /// The writes of the mapping of an edge: values of the result, or else of memory. (HV9)
    fn mapped(&self, edge: &HiveEdge, output: &Value) -> Map<String, Value> {
        let names = self.names(output);
        let value = |key: &str| output.get(key).or_else(|| names.memory.get(key)).cloned();
        let pairs =
            edge.mapping.iter().filter_map(|(target, source)| Some((target.to_string(), value(source)?)));
        pairs.collect()
    }

    /// The way on from a failure. (HV4)
    pub(super) fn hive_failed(
        mut self: Box<Self>,
        hive: &'w HiveNode,
        failure: Failure,
        mut result: NodeResult,
    ) -> Result<Emitted, StepError> {
        let edge = hive.failure.as_ref().ok_or_else(|| StepError::permanent(failure.message.to_string()))?;
        if self.is_left {
            // The branches have failed, after the node itself had left its result.
            let own = self.own()?.walk;
            let steps = own.steps.max(self.carried.steps);
            self.carried = Carried { steps, degraded: true, ..own };
        } else {
            result.writes = self.nulls(hive);
            self.remember(&result.writes);
        }
        let (reason, output) = ("on failure".to_owned(), Value::Null);
        let way = if hive.failure_opens {
            self.hive_take(vec![(edge, reason)], &output)?
        } else {
            self.hive_to(edge, reason, Some(failure), &output)?
        };
        self.leave_by(result, way)
    }

    /// The part of the latest result of the node that is about the walk.
    pub(super) fn own(&self) -> Result<About, StepError> {
        self.about(self.plan.node)
    }
}

impl Walk {
    /// Asks a model for an edge, once the node's work is in the log.
    pub(super) async fn hive_route<'w>(
        &'w self,
        plan: &'w Plan,
        hive: &'w HiveNode,
        call: StepCall,
    ) -> Result<Emitted, StepError> {
        let asks: Asks = read(call.input(0).json().unwrap_or(&Value::Null))?;
        let mut visit = self.open(plan, call)?;
        visit.carried = asks.walk.clone();
        let memory = sight::bounded(visit.memory_keys());
        let answer = self.hive_choice(plan, hive, &asks, &memory).await;
        let targets = hive.edges.iter().filter(|edge| edge.condition == Condition::LlmDecide);
        let fallback = match answer {
            Ok(choice) => {
                let edge = targets.into_iter().find(|edge| *edge.to.value == *choice.to);
                let reason = choice.reason.unwrap_or_else(|| "chosen by the model".to_owned());
                edge.map(|edge| (edge, reason)).ok_or_else(|| {
                    let said = short(&Value::from(choice.to));
                    format!("fallback: the model chose {said}, which is no choice")
                })
            }
            Err(error) => Err(format!("fallback: {error}")),
        };
        let mut taken = match fallback {
            Ok(winner) => vec![winner],
            Err(warning) => {
                visit.warnings.push(warning.clone().into());
                always(hive, &warning)
            }
        };
        taken.extend(successes(hive));
        let way = visit.hive_take(taken, &asks.output)?;
        // The result is left once more where something is to be said of its edges.
        if visit.warnings.is_empty() && visit.carried == asks.walk {
            visit.take(way)?;
            return visit.call.commit(());
        }
        let result = visit.again()?;
        visit.leave_by(result, way)
    }

    /// One question, with goal, memory, result and targets.
    async fn hive_choice(
        &self,
        plan: &Plan,
        hive: &HiveNode,
        asks: &Asks,
        memory: &Value,
    ) -> Result<Choice, NodeError> {
        let goal = self.graph.hive().and_then(|hive| hive.goal.as_ref());
        let mut choices: Vec<Offer<'_>> = Vec::new();
        for edge in hive.edges.iter().filter(|edge| edge.condition == Condition::LlmDecide) {
            if !choices.iter().any(|choice| *choice.to == *edge.to.value) {
                choices.push(Offer::new(&edge.to.value, edge.description.as_deref()));
            }
        }
        let question = question(goal);
        let question = Question {
            node: self.id(plan.node),
            question: &question,
            context: memory,
            result: &asks.output,
            goal,
            choices,
            model: self.graph.defaults.model.as_deref(),
            asked: asks.asked,
        };
        let agents = self.executors.agents().ok_or_else(|| NodeError::permanent("no model is registered"))?;
        decided(&**agents, question).await
    }
}

/// The question for the next node, in the words of the goal.
fn question(goal: Option<&Value>) -> String {
    let field = |key: &str| {
        goal.and_then(|goal| goal.get(key)).and_then(Value::as_str).filter(|text| !text.is_empty())
    };
    let said: Vec<&str> = ["name", "description"].into_iter().filter_map(field).collect();
    match &*said {
        [] => "Which node comes next?".to_owned(),
        said => format!("The goal is: {}\nWhich node comes next?", said.join(": ")),
    }
}
