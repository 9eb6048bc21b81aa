//! The sight of nodes and routing models of SWEny documents: data, with the evaluations of each result beside it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::document::model::Extras;
use crate::document::model::sweny::SwenyNode;
use crate::expression::Scope;
use crate::sight::Sight;
use crate::state::{NodeResult, Verdict, VisitStatus};

/// The input, and the data of every latest result, by name. (SW2)
#[derive(Debug)]
pub(super) struct Seen(pub(super) Value);

/// The part of a result that is read for its evaluations.
#[derive(Debug, Default, Deserialize)]
struct Judged {
    #[serde(default)]
    verdicts: Vec<Verdict>,
}

impl Seen {
    pub(super) fn of(sight: &Sight) -> Self {
        let mut all = Map::new();
        all.insert("input".into(), Value::clone(&sight.input));
        for (place, event) in &sight.results {
            let result: &Value = event;
            let judged = Judged::deserialize(result).unwrap_or_default();
            let data = result.get("data").cloned().unwrap_or_default();
            all.insert(sight.graph.nodes[*place].id.value.to_string(), with_evals(data, &judged.verdicts));
        }
        Self(Value::Object(all))
    }

    pub(super) fn input(&self) -> &Value {
        self.0.get("input").unwrap_or(&Value::Null)
    }
}

impl Scope for Seen {
    fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.0.get(name).map(Cow::Borrowed)
    }
}

/// The data of a result alone: paths of evaluators begin there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own<'a>(pub(super) &'a Value);

impl Scope for Own<'_> {
    fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.0.get(name).map(Cow::Borrowed)
    }
}

/// The data with `evals`, unless nothing was evaluated or the data is no map. A key of that name in the data wins.
fn with_evals(mut data: Value, verdicts: &[Verdict]) -> Value {
    if let (Value::Object(map), false) = (&mut data, verdicts.is_empty()) {
        map.entry("evals").or_insert_with(|| evals(verdicts));
    }
    data
}

/// The evaluations by name.
fn evals(verdicts: &[Verdict]) -> Value {
    Value::Object(verdicts.iter().map(|verdict| (verdict.check.to_string(), eval(verdict))).collect())
}

fn eval(verdict: &Verdict) -> Value {
    match &verdict.failure {
        None => json!({ "name": verdict.check, "pass": true }),
        Some(reasoning) => json!({ "name": verdict.check, "pass": false, "reasoning": reasoning }),
    }
}

/// The part of a result that a model sees when it chooses an edge, and the keys that are not there. (SW14)
pub(super) fn for_routing<'n>(node: &'n SwenyNode, result: &NodeResult) -> (Value, Vec<&'n str>) {
    let judged = with_evals(result.data.clone(), &result.verdicts);
    if node.properties.is_empty() {
        return (judged, Vec::new());
    }
    let (mut shown, mut missing) = (Map::new(), Vec::new());
    for name in &node.properties {
        let value = result.data.get(&**name);
        if value.is_none() {
            missing.push(&**name);
        }
        shown.insert(name.to_string(), value.cloned().unwrap_or_default());
    }
    if !result.verdicts.is_empty() {
        shown.entry("evals").or_insert_with(|| evals(&result.verdicts));
    }
    (Value::Object(shown), missing)
}

/// The input, and of every node that has ended the part that a model sees when it chooses an edge. (SW14)
pub(super) fn all_for_routing(sight: &Sight) -> Value {
    let mut all = Map::new();
    all.insert("input".into(), Value::clone(&sight.input));
    for (place, event) in &sight.results {
        let node = &sight.graph.nodes[*place];
        let (Extras::Sweny(extras), Ok(result)) = (&node.extras, event.part::<NodeResult>()) else {
            continue;
        };
        all.insert(node.id.value.to_string(), for_routing(extras, &result).0);
    }
    Value::Object(all)
}

/// The warning about keys that a routing model sees as null: a failed node need not have them.
pub(super) fn missing_warning(status: VisitStatus, missing: &[&str]) -> Option<String> {
    if status != VisitStatus::Success || missing.is_empty() {
        return None;
    }
    let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    Some(format!("the model that chooses the route sees null for {}, which the data lacks", names.join(", ")))
}
