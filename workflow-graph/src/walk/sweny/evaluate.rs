//! Evaluations of a result, in the order of the document, and the names under which calls of tools count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::seen::{Own, Seen};
use crate::ToolCall;
use crate::document::model::Name;
use crate::document::model::sweny::{Evaluator, EvaluatorKind};
use crate::document::template::Template;
use crate::node::judge::Judges;
use crate::node::{checks, path, reason};
use crate::skill::InlineSkill;
use crate::state::Verdict;

/// The verdict on keys that `output` requires, if one of them is not there. (SW6)
pub(super) fn missing_output(required: &[Arc<str>], data: &Value) -> Option<Verdict> {
    let missing = required.iter().filter(|key| data.get(&***key).is_none());
    let missing: Vec<String> = missing.map(|key| format!("`{key}`")).collect();
    if missing.is_empty() {
        return None;
    }
    let failure = Some(reason(&format!("the data has no {}", missing.join(", "))));
    Some(Verdict { check: "output_required".into(), failure })
}

/// The verdict of each evaluator. All of them run.
pub(super) async fn evaluate(
    evaluators: &[Evaluator],
    data: &Value,
    calls: &[ToolCall],
    aliases: &Aliases,
    seen: &Seen,
    judges: &mut Judges<'_>,
) -> Vec<Verdict> {
    let mut verdicts = Vec::with_capacity(evaluators.len());
    for evaluator in evaluators {
        let failure = match &evaluator.kind {
            EvaluatorKind::Value { required, matches } => {
                let own = Own(data);
                let missing = required.iter().filter_map(|path| path::missing(path, &own));
                let unfit = matches.iter().filter_map(|(path, test)| path::unfit(path, test, &own));
                checks::joined(missing.chain(unfit))
            }
            EvaluatorKind::Function { any, all, none } => {
                let calls = aliases.named(calls, [any, all, none]);
                checks::called([any, all, none], &calls)
            }
            EvaluatorKind::Judge { rubric, pass_when, model } => {
                let rubric = Template::Value(Value::from(&**rubric));
                judges.judge(&rubric, pass_when, model.as_deref(), data, seen).await
            }
        };
        let failure = failure.map(|failure| reason(&failure));
        verdicts.push(Verdict { check: evaluator.name.value.clone(), failure });
    }
    verdicts
}

/// Names of tools that stand for others, in both directions. (SW7)
#[derive(Debug)]
pub(super) struct Aliases(BTreeMap<Arc<str>, Arc<str>>);

impl Aliases {
    /// Those of the skills, without names that several tools claim.
    pub(super) fn of<'s>(skills: impl Iterator<Item = &'s InlineSkill>) -> Self {
        let mut claims: BTreeMap<Arc<str>, BTreeSet<Arc<str>>> = BTreeMap::new();
        for (tool, names) in skills.flat_map(|skill| &skill.aliases) {
            for name in names {
                claims.entry(name.clone()).or_default().insert(tool.clone());
            }
        }
        let single = claims.into_iter().filter(|(_, tools)| tools.len() == 1);
        Self(single.filter_map(|(name, tools)| Some((name, tools.into_iter().next()?))).collect())
    }

    fn tool<'n>(&'n self, name: &'n Arc<str>) -> &'n Arc<str> {
        self.0.get(name).unwrap_or(name)
    }

    /// The calls under the names that a rule has for them.
    fn named(&self, calls: &[ToolCall], rule: [&[Name]; 3]) -> Vec<ToolCall> {
        let names: Vec<&Arc<str>> = rule.into_iter().flatten().map(|name| &name.value).collect();
        let mut renamed = Vec::with_capacity(calls.len());
        for call in calls {
            let equal = names.iter().filter(|name| self.tool(name) == self.tool(&call.tool));
            renamed.extend(equal.map(|name| ToolCall::new(Arc::clone(name), call.ok)));
        }
        renamed
    }
}
