//! The edge that a walk follows: the only one that is left, or the one that a model chooses. (SW12)

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use workflow_core::StepError;
use workflow_core::signature::{Emitted, StepCall};

use super::seen;
use crate::document::model::sweny::{SwenyEdge, SwenyEdges, SwenyNode};
use crate::document::model::{Extras, Work};
use crate::executor::{Choice, NodeError, Offer, Question};
use crate::sight;
use crate::state::{Carried, Failure, GraphStatus, NodeResult, ONLY_PATH, Token};
use crate::table::Plan;
use crate::walk::decide::decided;
use crate::walk::leave::Way;
use crate::walk::visit::Visit;
use crate::walk::{Walk, read};

const QUESTION: &str = "Which condition holds?";
const NONE: &str = "none of the other conditions holds";

/// `n:choose`.
#[derive(Debug, Deserialize)]
struct Asks {
    walk: Carried,
    asked: u32,
}

impl SwenyEdges {
    /// The edges that are not used up. All edges between the same two nodes share a count.
    fn left(&self, used: impl Fn(&str) -> u64) -> Vec<&SwenyEdge> {
        let is_left = |max: u32, edge: &SwenyEdge| used(&edge.to.value) < u64::from(max);
        self.edges.iter().filter(|edge| edge.max.is_none_or(|max| is_left(max, edge))).collect()
    }
}

impl Visit<'_> {
    /// The way on, or the question about it.
    pub(in crate::walk) fn sweny_way(&mut self, sweny: &SwenyEdges, decided: u32) -> Result<Way, StepError> {
        if self.is_dry && sweny.is_conditional() {
            let mut targets: Vec<Arc<str>> = Vec::new();
            for edge in &sweny.edges {
                if !targets.contains(&edge.to.value) {
                    targets.push(edge.to.value.clone());
                }
            }
            return Ok(self.dry_end_before(targets.into_iter()));
        }
        let left = sweny.left(|to| self.used(to));
        let own = self.sight.own.clone().unwrap_or_default();
        match left[..] {
            [] => self.no_match(),
            [edge] if edge.when.is_none() => self.follow(sweny, edge, own.error.clone(), None),
            _ => {
                if let Extras::Sweny(extras) = &self.node().extras {
                    let (_, missing) = seen::for_routing(extras, &own);
                    self.warnings.extend(seen::missing_warning(own.status, &missing).map(Into::into));
                }
                Ok(Way::Choose(json!({ "walk": self.carried, "asked": decided })))
            }
        }
    }

    fn no_match(&mut self) -> Result<Way, StepError> {
        self.carried.degraded = true;
        self.end_walk(GraphStatus::NoMatch, None)
    }

    fn follow(
        &mut self,
        sweny: &SwenyEdges,
        edge: &SwenyEdge,
        error: Option<Failure>,
        warning: Option<String>,
    ) -> Result<Way, StepError> {
        let node = self.walk.graph.find(&edge.to.value);
        let node = node.ok_or_else(|| StepError::permanent("the edge leads to no node"))?;
        let reason = edge.when.clone().unwrap_or_else(|| ONLY_PATH.into());
        let warnings = warning.into_iter().map(Into::into).collect();
        let token = Token { carried: self.carried.clone(), reason, error, warnings, writes: Map::new() };
        Ok(Way::To { node, token, counted: sweny.is_counted().then(|| edge.to.value.to_string()) })
    }
}

impl Walk {
    /// Asks a model, and follows its choice.
    pub(in crate::walk) async fn sweny_route(
        &self,
        plan: &Plan,
        sweny: &SwenyEdges,
        call: StepCall,
    ) -> Result<Emitted, StepError> {
        let asks: Asks = read(call.input(0).json().unwrap_or(&Value::Null))?;
        let mut visit = self.open(plan, call)?;
        visit.carried = asks.walk;
        let node = visit.node();
        let Extras::Sweny(extras) = &node.extras else {
            return Err(StepError::permanent("the node is no node of a SWEny document"));
        };
        let own = visit.sight.results.iter().find(|(place, _)| *place == plan.node);
        let own = own.map(|(_, event)| Value::clone(event)).unwrap_or_default();
        let result: NodeResult = read(&own)?;
        let left = sweny.left(|to| visit.used(to));
        let context = sight::bounded(seen::all_for_routing(&visit.sight));
        let answer = self.choice(plan, extras, &left, (&context, &result), asks.asked).await;
        let otherwise = left.iter().copied().find(|edge| edge.when.is_none());
        let (edge, warning) = match answer {
            Ok(choice) => {
                let to_it = left.iter().copied().filter(|edge| *edge.to.value == *choice.to);
                if let Some(edge) = to_it.min_by_key(|edge| edge.when.is_none()) {
                    (Some(edge), None)
                } else {
                    let said = format!("the model chose `{}`, which is no choice", choice.to);
                    (otherwise, otherwise.map(|_| said))
                }
            }
            Err(error) => (otherwise, Some(format!("the model chose no route: {error}"))),
        };
        let way = match edge {
            Some(edge) => visit.follow(sweny, edge, result.error.clone(), warning)?,
            None => visit.unmatched(own, warning)?,
        };
        visit.take(way)?;
        visit.call.commit(())
    }

    async fn choice(
        &self,
        plan: &Plan,
        extras: &SwenyNode,
        left: &[&SwenyEdge],
        (context, result): (&Value, &NodeResult),
        asked: u32,
    ) -> Result<Choice, NodeError> {
        let node = &self.graph.nodes[plan.node];
        let (shown, _) = seen::for_routing(extras, result);
        let offers = offers(left);
        let own = match &node.work {
            Work::Agent(agent) => agent.model.as_deref(),
            _ => None,
        };
        let question = Question {
            node: &node.id.value,
            question: QUESTION,
            context,
            result: &shown,
            goal: None,
            choices: offers.iter().map(|(to, about)| Offer::new(to, Some(about))).collect(),
            model: own.or(self.graph.defaults.model.as_deref()),
            asked,
        };
        let agents = self.executors.agents().ok_or_else(|| NodeError::permanent("no model is registered"))?;
        decided(&**agents, question).await
    }
}

impl Visit<'_> {
    /// The end of a walk whose model chose nothing. In a branch the result says so once more, since only results say
    /// there how the walk went.
    fn unmatched(&mut self, mut own: Value, warning: Option<String>) -> Result<Way, StepError> {
        let mut way = self.no_match()?;
        if let (Way::End { end, .. }, Some(warning)) = (&mut way, warning) {
            end.warnings.push(warning.into());
        }
        if !self.walk.layout.is_root(self.plan.node) {
            own["walk"] = serde_json::to_value(&self.carried).unwrap_or_default();
            self.call.emit(&self.node().id.value, own)?;
        }
        Ok(way)
    }
}

/// Each target once, with the texts of its edges. The first edge without one stands for none of them.
fn offers<'e>(left: &[&'e SwenyEdge]) -> Vec<(&'e str, String)> {
    let mut offers: Vec<(&str, String)> = Vec::new();
    for edge in left {
        let about = edge.when.as_deref().unwrap_or(NONE);
        match offers.iter_mut().find(|(to, _)| *to == &*edge.to.value) {
            Some((_, text)) => {
                text.push_str(" or ");
                text.push_str(about);
            }
            None => offers.push((&edge.to.value, about.to_owned())),
        }
    }
    offers
}
