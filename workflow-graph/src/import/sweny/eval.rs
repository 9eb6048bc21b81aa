//! Evaluators, `requires` and `retry`. They are evaluated elsewhere.

use std::collections::HashSet;

use crate::document::model::sweny::{Evaluator, EvaluatorKind, SwenyGuidance, SwenyRetry};
use crate::document::model::{Check, Located, Name, Otherwise, Path, Requires, Rule, Segment, Test};
use crate::document::native::Reading;
use crate::document::native::check::{self, MOST_RETRIES};
use crate::document::native::fields::Fields;
use crate::document::native::values::listed;
use crate::document::tree::{Kind, Text, Tree};
use crate::problem::Code;

const EVALUATOR: [&str; 6] = ["name", "kind", "rule", "rubric", "pass_when", "model"];
const VALUE: [&str; 2] = ["output_required", "output_matches"];
const FUNCTION: [&str; 3] = ["any_tool_called", "all_tools_called", "no_tool_called"];
const RULE: [&str; 5] =
    ["any_tool_called", "all_tools_called", "no_tool_called", "output_required", "output_matches"];

#[derive(Clone, Copy)]
enum Kinds {
    Value,
    Function,
    Judge,
}

pub(super) fn evaluators(tree: &Tree, reading: &mut Reading<'_>) -> Vec<Evaluator> {
    let items = reading.list(tree, "eval");
    let mut known: HashSet<std::sync::Arc<str>> = HashSet::new();
    let mut found = Vec::new();
    for item in items {
        let Some(evaluator) = evaluator(item, reading) else { continue };
        let Located { value, at } = &evaluator.name;
        if !known.insert(value.clone()) {
            let message = format!("two evaluators of the node are named `{value}`");
            reading.problems.add(Code::DuplicateKey, *at, message, "rename one of them");
        }
        found.push(evaluator);
    }
    found
}

fn evaluator(tree: &Tree, reading: &mut Reading<'_>) -> Option<Evaluator> {
    let fields = Fields::new(tree, "an evaluator", &EVALUATOR, reading)?;
    let name = fields.required("name", reading).and_then(|tree| reading.name(tree, "name"));
    let words = [("value", Kinds::Value), ("function", Kinds::Function), ("judge", Kinds::Judge)];
    let kind = fields.required("kind", reading).and_then(|tree| reading.word(tree, "kind", &words))?;
    let (word, others) = match kind {
        Kinds::Value => ("value", &["rubric", "pass_when", "model"][..]),
        Kinds::Function => ("function", &["rubric", "pass_when", "model"][..]),
        Kinds::Judge => ("judge", &["rule"][..]),
    };
    for key in others.iter().filter(|key| fields.get(key).is_some()) {
        let message = format!("an evaluator of kind `{word}` has no `{key}`");
        reading.problems.add(Code::BadCheck, fields.key_at(key), message, "remove it, or change `kind`");
    }
    let kind = match kind {
        Kinds::Judge => {
            let rubric = fields.required("rubric", reading).and_then(|tree| reading.text(tree, "rubric"));
            EvaluatorKind::Judge {
                rubric: rubric?.value.clone(),
                pass_when: check::pass_when(&fields, reading),
                model: fields.text("model", reading),
            }
        }
        Kinds::Value | Kinds::Function => {
            let rule = fields.required("rule", reading)?;
            self::rule(rule, matches!(kind, Kinds::Value), reading)?
        }
    };
    Some(Evaluator { name: name?, kind })
}

fn rule(tree: &Tree, is_value: bool, reading: &mut Reading<'_>) -> Option<EvaluatorKind> {
    let fields = Fields::new(tree, "`rule`", &RULE, reading)?;
    let (own, others, word) =
        if is_value { (&VALUE[..], &FUNCTION[..], "value") } else { (&FUNCTION[..], &VALUE[..], "function") };
    for key in others.iter().filter(|key| fields.get(key).is_some()) {
        let message = format!("an evaluator of kind `{word}` has no rule `{key}`");
        let remedy = format!("write one of {}, or change `kind`", listed(own));
        reading.problems.add(Code::BadCheck, fields.key_at(key), message, remedy);
    }
    let is_empty = RULE.iter().all(|key| fields.get(key).is_none());
    if is_empty && !fields.has_unknown() {
        let message = "`rule` asks nothing";
        reading.problems.add(Code::BadCheck, tree.at, message, format!("write one of {}", listed(own)));
    }
    if is_value {
        let (required, matches) = paths(&fields, reading);
        return Some(EvaluatorKind::Value { required, matches });
    }
    let mut names = |key| fields.names(key, reading).unwrap_or_default();
    Some(EvaluatorKind::Function {
        any: names("any_tool_called"),
        all: names("all_tools_called"),
        none: names("no_tool_called"),
    })
}

/// `output_required` and `output_matches`.
fn paths(fields: &Fields<'_>, reading: &mut Reading<'_>) -> (Vec<Path>, Vec<(Path, Test)>) {
    let required = fields.get("output_required").map(|tree| {
        let items = reading.list(tree, "output_required");
        items.iter().filter_map(|item| path(item, "output_required", reading)).collect()
    });
    let matches = fields.get("output_matches").map(|tree| {
        if let Kind::Map(_) = &tree.kind {
            return matched(tree, reading).into_iter().collect();
        }
        let items = reading.list(tree, "output_matches");
        items.iter().filter_map(|item| matched(item, reading)).collect()
    });
    (required.unwrap_or_default(), matches.unwrap_or_default())
}

fn matched(tree: &Tree, reading: &mut Reading<'_>) -> Option<(Path, Test)> {
    let fields = Fields::new(tree, "`output_matches`", &["path", "equals", "in", "matches"], reading)?;
    let path = fields.required("path", reading).and_then(|tree| path(tree, "path", reading));
    let test = check::test(tree, &fields, reading)?;
    Some((path?, test))
}

/// A path. `all:` before it is what holds without `any:`.
fn path(tree: &Tree, key: &str, reading: &mut Reading<'_>) -> Option<Path> {
    let bare = match &tree.kind {
        Kind::Text(text) => {
            text.value.strip_prefix("all:").map(|rest| Text { value: rest.into(), span: text.span })
        }
        _ => None,
    };
    match bare {
        Some(text) => reading.path(&Tree::new(tree.at, Kind::Text(text)), key),
        None => reading.path(tree, key),
    }
}

/// Checks before a node runs, over the input and the nodes.
pub(super) fn requires(tree: &Tree, known: &HashSet<&str>, reading: &mut Reading<'_>) -> Option<Requires> {
    let keys = ["output_required", "output_matches", "on_fail"];
    let fields = Fields::new(tree, "`requires`", &keys, reading)?;
    let words = [("fail", Otherwise::Fail), ("skip", Otherwise::Skip)];
    let otherwise = fields.word("on_fail", &words, reading).unwrap_or(Otherwise::Fail);
    if VALUE.iter().all(|key| fields.get(key).is_none()) && !fields.has_unknown() {
        let message = "`requires` checks nothing";
        reading.problems.add(Code::BadCheck, tree.at, message, format!("write one of {}", listed(&VALUE)));
    }
    let (required, matches) = paths(&fields, reading);
    for path in required.iter().chain(matches.iter().map(|(path, _)| path)) {
        root(path, known, reading);
    }
    let named =
        |name: &str, rule| Check { name: Some(Name { value: name.into(), at: tree.at }), at: tree.at, rule };
    let mut all = Vec::new();
    if !required.is_empty() {
        all.push(named("output_required", Rule::Required(required)));
    }
    all.extend(matches.into_iter().map(|(path, test)| named("output_matches", Rule::Path { path, test })));
    Some(Requires { all, otherwise })
}

/// `unknown-node`: paths begin at `input` or at a node.
fn root(path: &Path, known: &HashSet<&str>, reading: &mut Reading<'_>) {
    let Some(Segment::Key(root)) = path.segments.first() else { return };
    if &**root != "input" && !known.contains(&**root) {
        let message = format!("`{}` begins with `{root}`, and the document has no such node", path.source);
        let mut names: Vec<&str> = known.iter().copied().collect();
        names.sort_unstable();
        let otherwise = || "begin with `input` or the id of a node".to_owned();
        reading.problems.add_unknown(Code::UnknownNode, path.at, message, root, names, otherwise);
    }
}

pub(super) fn retry(tree: &Tree, reading: &mut Reading<'_>) -> Option<SwenyRetry> {
    let fields = Fields::new(tree, "`retry`", &["max", "instruction"], reading)?;
    let max = fields.required("max", reading).and_then(|tree| reading.number(tree, "max", (1, MOST_RETRIES)));
    let guidance = fields.get("instruction").and_then(|tree| guidance(tree, reading));
    Some(SwenyRetry { max: max?, guidance })
}

fn guidance(tree: &Tree, reading: &mut Reading<'_>) -> Option<SwenyGuidance> {
    if let Kind::Text(text) = &tree.kind {
        return Some(SwenyGuidance::Text(text.value.clone()));
    }
    let expected = "a text, `{auto: true}` or `{reflect: text}`";
    if !matches!(tree.kind, Kind::Map(_)) {
        reading.wrong_type(tree, "`instruction`", expected);
        return None;
    }
    let fields = Fields::new(tree, "`instruction`", &["auto", "reflect"], reading)?;
    match (fields.get("auto"), fields.get("reflect")) {
        (Some(auto), None) if matches!(auto.kind, Kind::Bool(true)) => Some(SwenyGuidance::Auto),
        (None, Some(_)) => fields.text("reflect", reading).map(SwenyGuidance::Reflect),
        (None, None) if fields.has_unknown() => None,
        _ => {
            reading.wrong_type(tree, "`instruction`", expected);
            None
        }
    }
}
