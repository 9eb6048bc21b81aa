//! Routes that a model chooses, asked once the node's work is in the log.

use serde::Deserialize;
use serde_json::Value;
use workflow_core::StepError;
use workflow_core::signature::{Emitted, StepCall};

use super::leave::{Way, written};
use super::{Walk, read};
use crate::document::model::{Decide, Next, Target};
use crate::executor::{AgentExecutor, Choice, NodeError, Offer, Question, caught};
use crate::state::{Carried, Failure};
use crate::table::Plan;

/// `n:choose`.
#[derive(Debug, Deserialize)]
struct Asks {
    walk: Carried,
    question: String,
    asked: u32,
    /// The failure behind which the node asks.
    error: Option<Failure>,
}

impl Walk {
    pub(super) async fn route(&self, plan: &Plan, call: StepCall) -> Result<Emitted, StepError> {
        let node = &self.graph.nodes[plan.node];
        if let Next::Sweny(sweny) = &node.next {
            return self.sweny_route(plan, sweny, call).await;
        }
        if let Some(hive) = node.hive() {
            return self.hive_route(plan, hive, call).await;
        }
        let asks: Asks = read(call.input(0).json().unwrap_or(&Value::Null))?;
        let mut visit = self.open(plan, call)?;
        visit.carried = asks.walk.clone();
        let Next::Decide(decide) = &visit.node().next else {
            return Err(StepError::permanent("the node asks no model"));
        };
        let result = visit.sight.data(plan.node).cloned().unwrap_or_default();
        let context = visit.sight.for_question();
        let (target, reason, warning) = match self.chosen(plan, decide, &asks, (&context, &result)).await {
            Ok(choice) => {
                let target =
                    decide.choices.iter().map(|choice| &choice.to).find(|to| *written(to) == *choice.to);
                if let Some(target) = target {
                    let reason = choice.reason.unwrap_or_else(|| "chosen by the model".to_owned());
                    (target, reason, None)
                } else {
                    let said = format!("fallback: the model chose `{}`, which is no choice", choice.to);
                    (&decide.otherwise, said.clone(), Some(said))
                }
            }
            Err(error) => {
                let said = format!("fallback: {error}");
                (&decide.otherwise, said.clone(), Some(said))
            }
        };
        let mut way = visit.to(target, reason, asks.error.clone(), None)?;
        if let Some(warning) = warning {
            match &mut way {
                Way::To { token, .. } => token.warnings.push(warning.into()),
                Way::End { end, .. } => end.warnings.push(warning.into()),
                Way::Choose(_) | Way::Open(..) | Way::Join(_) => {}
            }
        }
        visit.take(way)?;
        visit.call.commit(())
    }

    async fn chosen(
        &self,
        plan: &Plan,
        decide: &Decide,
        asks: &Asks,
        (context, result): (&Value, &Value),
    ) -> Result<Choice, NodeError> {
        let node = &self.graph.nodes[plan.node];
        let targets: Vec<_> =
            decide.choices.iter().map(|choice| (id(&choice.to), choice.about.as_deref())).collect();
        let question = Question {
            node: &node.id.value,
            question: &asks.question,
            context,
            result,
            goal: None,
            choices: targets.into_iter().map(|(to, about)| Offer::new(to, about)).collect(),
            model: self.graph.defaults.model.as_deref(),
            asked: asks.asked,
        };
        let agents = self.executors.agents().ok_or_else(|| NodeError::permanent("no model is registered"))?;
        let answer = decided(&**agents, question);
        let Some(timeout) = node.timeout.or(self.graph.defaults.timeout) else { return answer.await };
        match tokio::time::timeout(timeout, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(NodeError::transient("the model did not answer in time")),
        }
    }
}

fn id(target: &Target) -> &str {
    match target {
        Target::Node(name) => &name.value,
        Target::End => "end",
    }
}

/// The answer to a question. A panic of the executor is an error like any other, so that the fallback is taken.
pub(super) async fn decided(agents: &dyn AgentExecutor, question: Question<'_>) -> Result<Choice, NodeError> {
    caught(async { agents.decide(question).await }).await
}
