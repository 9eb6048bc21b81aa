//! Nodes that ask people: the request, the reply, and the end of its time.

use std::time::Duration;

use serde_json::{Map, Value};
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::{InputValue, JsonOutput, StepError};

use super::Walk;
use super::each::Item;
use super::visit::Visit;
use super::work::Worked;
use crate::document::model::{Human, Work};
use crate::node::render;
use crate::state::names;
use crate::table::Plan;

impl Visit<'_> {
    /// Asks. The reply goes on in a step of its own.
    pub(super) fn ask(mut self: Box<Self>, human: &Human) -> Result<Emitted, StepError> {
        let text = render::render_text(&human.ask, &self.sight)
            .map_err(|error| StepError::permanent(error.to_string()))?;
        let mut request = Map::new();
        request.insert("text".into(), text.into());
        request.insert("iteration".into(), self.sight.visit.into());
        request.extend(human.reply.as_ref().map(|schema| ("reply".to_owned(), Value::clone(&schema.value))));
        let name = names::of(&self.node().id.value, "ask");
        let request = Value::Object(request);
        match human.expires {
            Some(after) => self.call.emit(&name, JsonOutput::Expiring(request, after))?,
            None => self.call.emit(&name, request)?,
        }
        self.call.commit(())
    }
}

impl Walk {
    pub(super) async fn reply(&self, plan: &Plan, call: StepCall) -> Result<Emitted, StepError> {
        let reply = match call.input(0) {
            InputValue::Reply { reply, .. } => reply.clone(),
            _ => return Err(StepError::permanent("the step has no reply")),
        };
        let item = plan.inputs.item.and_then(|at| call.input(at).json().map(Item::of));
        let mut visit = self.open(plan, call)?;
        visit.sight.item = item.map(|Item { item, index }| (item, index));
        if let Some(hive) = visit.node().hive() {
            return visit.hive_replied(hive, &reply);
        }
        if visit.node().for_each.is_some() {
            return visit.done(Worked::of(reply)).await;
        }
        visit.finish(Worked::of(reply)).await
    }

    /// Nobody has answered in time.
    pub(super) fn expired(&self, plan: &Plan) -> StepError {
        let node = &self.graph.nodes[plan.node];
        let after = match &node.work {
            Work::Human(human) => human.expires.map(written).unwrap_or_default(),
            _ => String::new(),
        };
        StepError::rejected(format!("nobody answered `{}` within {after}", node.id.value))
    }
}

/// A duration as documents write it.
fn written(duration: Duration) -> String {
    let millis = duration.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let unit = units.into_iter().find(|(unit, _)| millis > 0 && millis.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{millis}ms"), |(unit, name)| format!("{}{name}", millis / unit))
}
