//! Checks of `requires` and `ensure`. They are evaluated elsewhere.

use std::sync::Arc;

use super::Reading;
use super::fields::Fields;
use super::values::alternatives;
use crate::document::model::{Check, Ensure, Guidance, Otherwise, Requires, Rule, Test};
use crate::document::tree::{Kind, Tree};
use crate::expression;
use crate::problem::Code;

/// The most `ensure.retries`.
pub(crate) const MOST_RETRIES: u32 = 100;

const KINDS: [&str; 5] = ["check", "required", "path", "called", "judge"];
const TESTS: [&str; 3] = ["equals", "in", "matches"];
const KEYS: [&str; 11] =
    ["name", "check", "required", "path", "equals", "in", "matches", "called", "judge", "pass_when", "model"];

pub(super) fn requires(tree: &Tree, reading: &mut Reading<'_>) -> Option<Requires> {
    if matches!(tree.kind, Kind::List(_)) {
        return Some(Requires { all: checks(tree, "requires", reading), otherwise: Otherwise::Fail });
    }
    let fields = Fields::new(tree, "`requires`", &["all", "otherwise"], reading)?;
    let all = fields.required("all", reading).map(|tree| checks(tree, "all", reading)).unwrap_or_default();
    let words = [("fail", Otherwise::Fail), ("skip", Otherwise::Skip)];
    Some(Requires { all, otherwise: fields.word("otherwise", &words, reading).unwrap_or(Otherwise::Fail) })
}

pub(super) fn ensure(tree: &Tree, is_agent: bool, reading: &mut Reading<'_>) -> Option<Ensure> {
    if matches!(tree.kind, Kind::List(_)) {
        return Some(Ensure { all: checks(tree, "ensure", reading), retries: 0, guidance: None });
    }
    let fields = Fields::new(tree, "`ensure`", &["all", "retries", "guidance"], reading)?;
    if !is_agent {
        for key in ["retries", "guidance"].into_iter().filter(|key| fields.get(key).is_some()) {
            let message = format!("`{key}` is for agents only: other nodes would fail in the same way again");
            reading.problems.add(Code::UnknownKey, fields.key_at(key), message, "remove it, or use `retry`");
        }
    }
    Some(Ensure {
        all: fields.required("all", reading).map(|tree| checks(tree, "all", reading)).unwrap_or_default(),
        retries: fields.number("retries", (0, MOST_RETRIES), reading).unwrap_or(0),
        guidance: fields.get("guidance").and_then(|tree| {
            let is_auto = &*reading.text(tree, "guidance")?.value == "auto";
            Some(if is_auto { Guidance::Auto } else { Guidance::Text(reading.template(tree)) })
        }),
    })
}

fn checks(tree: &Tree, key: &str, reading: &mut Reading<'_>) -> Vec<Check> {
    let items = reading.list(tree, key);
    items.iter().filter_map(|item| check(item, reading)).collect()
}

fn check(tree: &Tree, reading: &mut Reading<'_>) -> Option<Check> {
    if !matches!(tree.kind, Kind::Map(_)) {
        let rule = Rule::Expression(reading.expression(tree, "a check")?);
        return Some(Check { name: None, at: tree.at, rule });
    }
    let fields = Fields::new(tree, "a check", &KEYS, reading)?.exclusive(&KINDS).exclusive(&TESTS);
    let name = fields.required("name", reading).and_then(|tree| reading.name(tree, "name"));
    let rule = rule(tree, &fields, reading)?;
    Some(Check { name, at: tree.at, rule })
}

fn rule(tree: &Tree, fields: &Fields<'_>, reading: &mut Reading<'_>) -> Option<Rule> {
    let present: Vec<&str> = KINDS.into_iter().filter(|key| fields.get(key).is_some()).collect();
    let [kind] = present[..] else {
        if present.is_empty() && KINDS.iter().any(|kind| fields.is_meant(kind)) {
            return None;
        }
        let message = if present.is_empty() {
            "the check asks nothing".to_owned()
        } else {
            format!("a check asks one thing, and this one has {} of them", present.len())
        };
        reading.problems.add(
            Code::BadCheck,
            tree.at,
            message,
            format!("write one of {}", alternatives(&KINDS)),
        );
        return None;
    };
    let belongs = |key: &str| match kind {
        "path" => TESTS.contains(&key),
        "judge" => matches!(key, "pass_when" | "model"),
        _ => false,
    };
    let others = TESTS.into_iter().chain(["pass_when", "model"]);
    for key in others.filter(|key| fields.get(key).is_some() && !belongs(key)) {
        let owner = if TESTS.contains(&key) { "path" } else { "judge" };
        let message = format!("`{key}` belongs to a check with `{owner}`, and this one has `{kind}`");
        reading.problems.add(Code::BadCheck, fields.key_at(key), message, "remove it, or split the check");
    }
    let value = fields.get(kind)?;
    match kind {
        "check" => reading.expression(value, "check").map(Rule::Expression),
        "required" => {
            let items = reading.list(value, "required");
            Some(Rule::Required(items.iter().filter_map(|item| reading.path(item, "required")).collect()))
        }
        "path" => {
            let path = reading.path(value, "path");
            let test = test(tree, fields, reading)?;
            Some(Rule::Path { path: path?, test })
        }
        "called" => called(value, reading),
        _ => Some(Rule::Judge {
            rubric: reading.text_template(value, "judge")?,
            pass_when: pass_when(fields, reading),
            model: fields.text("model", reading),
        }),
    }
}

/// In YAML, `yes` is a text; authors who write `pass_when: true` mean the text as well.
pub(crate) fn pass_when(fields: &Fields<'_>, reading: &mut Reading<'_>) -> Arc<str> {
    match fields.get("pass_when").map(|tree| &tree.kind) {
        Some(Kind::Bool(value)) => value.to_string().into(),
        Some(_) => fields.text("pass_when", reading).unwrap_or_else(|| "yes".into()),
        None => "yes".into(),
    }
}

fn called(tree: &Tree, reading: &mut Reading<'_>) -> Option<Rule> {
    let fields = Fields::new(tree, "`called`", &["any", "all", "none"], reading)?;
    if ["any", "all", "none"].iter().all(|key| fields.get(key).is_none()) {
        let remedy = "list tools under `any`, `all` or `none`";
        reading.problems.add(Code::BadCheck, tree.at, "`called` names no tools", remedy);
        return None;
    }
    let mut names = |key| fields.names(key, reading).unwrap_or_default();
    Some(Rule::Called { any: names("any"), all: names("all"), none: names("none") })
}

pub(crate) fn test(tree: &Tree, fields: &Fields<'_>, reading: &mut Reading<'_>) -> Option<Test> {
    let present: Vec<&str> = TESTS.into_iter().filter(|key| fields.get(key).is_some()).collect();
    let [kind] = present[..] else {
        if present.is_empty() && TESTS.iter().any(|test| fields.is_meant(test)) {
            return None;
        }
        let message = if present.is_empty() {
            "the check does not say what `path` has to be"
        } else {
            "the check says more than once what `path` has to be"
        };
        reading.problems.add(
            Code::BadCheck,
            tree.at,
            message,
            format!("write one of {}", alternatives(&TESTS)),
        );
        return None;
    };
    let value = fields.get(kind)?;
    match kind {
        "equals" => {
            reading.plain(value, kind);
            Some(Test::Equals(value.to_json()))
        }
        "in" => {
            reading.plain(value, kind);
            Some(Test::In(reading.list(value, "in").iter().map(Tree::to_json).collect()))
        }
        _ => pattern(value, reading).map(Test::Matches),
    }
}

pub(crate) fn pattern(tree: &Tree, reading: &mut Reading<'_>) -> Option<regex::Regex> {
    let text = reading.text(tree, "matches")?;
    match expression::pattern(&text.value) {
        Ok(regex) => Some(regex),
        Err(reason) => {
            reading.problems.add(
                Code::BadPattern,
                tree.at,
                reason,
                "correct it, or escape characters with `\\`",
            );
            None
        }
    }
}
