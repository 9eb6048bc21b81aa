//! Evaluates the checks of `requires` and `ensure`, and compares data with output schemas. Every check runs, and every
//! failure is reported. Paths are walked in `path`, and judges are asked in `judge`.

use jsonschema::ValidationError;
use serde_json::Value;

use super::judge::Judges;
use super::{path, reason};
use crate::ToolCall;
use crate::document::model::{Check, Ensure, Name, Requires, Rule, Schema};
use crate::expression::{Expression, Scope, short};
use crate::state::Verdict;

/// Violations of a schema that a message lists.
const VIOLATIONS: usize = 20;

/// Checks a node before it runs. An error has a line for each check that is not met. (G20)
pub(crate) fn requires(requires: &Requires, scope: &dyn Scope) -> Result<(), Vec<String>> {
    let verdicts = requires.all.iter().map(|check| verdict(check, failure(check, scope, &[])));
    let unmet: Vec<String> = verdicts.filter_map(|verdict| line(&verdict)).collect();
    if unmet.is_empty() { Ok(()) } else { Err(unmet) }
}

/// Checks the result of a node. Each check has a verdict, in the order of the document. (G18)
pub(crate) async fn ensure(
    ensure: &Ensure,
    data: &Value,
    scope: &(dyn Scope + Send + Sync),
    calls: &[ToolCall],
    judges: &mut Judges<'_>,
) -> Vec<Verdict> {
    let mut verdicts = Vec::with_capacity(ensure.all.len());
    for check in &ensure.all {
        let failure = match &check.rule {
            Rule::Judge { rubric, pass_when, model } => {
                judges.judge(rubric, pass_when, model.as_deref(), data, scope).await
            }
            _ => failure(check, scope, calls),
        };
        verdicts.push(verdict(check, failure));
    }
    verdicts
}

/// Whether a model judges the result.
pub(crate) fn has_judge(ensure: &Ensure) -> bool {
    ensure.all.iter().any(|check| matches!(check.rule, Rule::Judge { .. }))
}

/// Compares data with an output schema. The error names every violation with its path.
pub(crate) fn output(schema: &Schema, data: &Value) -> Result<(), String> {
    let mut violations = schema.validator.iter_errors(data);
    let mut listed: Vec<String> =
        violations.by_ref().take(VIOLATIONS).map(|error| violation(&error)).collect();
    if listed.is_empty() {
        return Ok(());
    }
    let more = violations.count();
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    Err(format!("the data does not fit `output`: {}", listed.join("; ")))
}

/// The checks that do not hold, each as a line.
pub(crate) fn failures(verdicts: &[Verdict]) -> Vec<String> {
    verdicts.iter().filter_map(line).collect()
}

/// The text of the failure of a node whose checks do not hold; nothing if all hold.
pub(crate) fn failure_text(verdicts: &[Verdict]) -> Option<String> {
    let failures = failures(verdicts);
    match failures.len() {
        0 => None,
        1 => Some(format!("a check does not hold: {}", failures[0])),
        count => Some(format!("{count} checks do not hold: {}", failures.join("; "))),
    }
}

fn line(verdict: &Verdict) -> Option<String> {
    verdict.failure.as_ref().map(|failure| format!("`{}`: {failure}", verdict.check))
}

fn verdict(check: &Check, failure: Option<String>) -> Verdict {
    let name = match (&check.name, &check.rule) {
        (Some(name), _) => name.value.clone(),
        (None, Rule::Expression(expression)) => expression.parsed.source().into(),
        (None, _) => "check".into(),
    };
    Verdict { check: name, failure: failure.map(|failure| reason(&failure)) }
}

/// Why a check does not hold that asks nobody.
fn failure(check: &Check, scope: &dyn Scope, calls: &[ToolCall]) -> Option<String> {
    match &check.rule {
        Rule::Expression(expression) => unmet(&expression.parsed, check.name.is_some(), scope),
        Rule::Required(paths) => joined(paths.iter().filter_map(|path| path::missing(path, scope))),
        Rule::Path { path, test } => path::unfit(path, test, scope),
        Rule::Called { any, all, none } => called([any, all, none], calls),
        Rule::Judge { .. } => {
            Some("a judge needs a result, and there is none before the node runs".to_owned())
        }
    }
}

/// An expression that errs is not met. A bare one is the name of its check, and is not repeated.
fn unmet(expression: &Expression, is_named: bool, scope: &dyn Scope) -> Option<String> {
    match expression.evaluate_condition(scope) {
        Ok(true) => None,
        Err(error) => Some(error.to_string()),
        Ok(false) => {
            let seen = expression.values(scope).into_iter().map(|(path, value)| match value {
                Some(value) => format!("`{path}` is {}", short(&value)),
                None => format!("`{path}` is missing"),
            });
            let seen = seen.collect::<Vec<_>>().join(" and ");
            let subject = if is_named { format!("`{}`", expression.source()) } else { "it".to_owned() };
            let before = if seen.is_empty() { "" } else { ", where " };
            Some(format!("{subject} is false{before}{seen}"))
        }
    }
}

/// Only calls that succeeded count as made, while `none` objects to failed ones, too. (SW7)
pub(crate) fn called([any, all, none]: [&[Name]; 3], calls: &[ToolCall]) -> Option<String> {
    let is_made = |tool: &Name| calls.iter().any(|call| call.ok && call.tool == tool.value);
    let is_tried = |tool: &Name| calls.iter().any(|call| call.tool == tool.value);
    let mut problems = Vec::new();
    if !any.is_empty() && !any.iter().any(is_made) {
        let tools: Vec<String> = any.iter().map(|tool| format!("`{}`", tool.value)).collect();
        problems.push(format!("no call of {} succeeded", tools.join(" or ")));
    }
    let lacking = all.iter().filter(|tool| !is_made(tool));
    problems.extend(lacking.map(|tool| format!("no call of `{}` succeeded", tool.value)));
    let refused = none.iter().filter(|tool| is_tried(tool));
    problems.extend(refused.map(|tool| format!("`{}` was called", tool.value)));
    joined(problems)
}

pub(crate) fn joined(problems: impl IntoIterator<Item = String>) -> Option<String> {
    let problems: Vec<String> = problems.into_iter().collect();
    (!problems.is_empty()).then(|| problems.join("; "))
}

fn violation(error: &ValidationError<'_>) -> String {
    let message = reason(&error.masked_with(short(error.instance())).to_string());
    match error.instance_path().as_str() {
        "" => message,
        path => format!("`{path}`: {message}"),
    }
}
