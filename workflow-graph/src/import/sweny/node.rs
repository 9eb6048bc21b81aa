//! One node: the task of an agent, and what is checked before and after it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::eval;
use super::source::Sources;
use crate::document::model::sweny::SwenyNode;
use crate::document::model::unread::Unread;
use crate::document::model::{Agent, Extras, Name, Next, Node, Reads, Schema, Work};
use crate::document::native::Reading;
use crate::document::native::fields::Fields;
use crate::document::template::Template;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;

const KEYS: [&str; 16] = [
    "name",
    "instruction",
    "skills",
    "output",
    "max_turns",
    "model",
    "judge_model",
    "disallowed_tools",
    "tools",
    "fail_soft",
    "rules",
    "context",
    "eval",
    "eval_policy",
    "requires",
    "retry",
];

/// The names that a node can use.
pub(super) struct Level<'a> {
    nodes: HashSet<&'a str>,
}

impl<'a> Level<'a> {
    pub(super) fn of(nodes: &[&'a str]) -> Self {
        Self { nodes: nodes.iter().copied().collect() }
    }
}

pub(super) fn read(
    id: Name,
    tree: &Tree,
    level: &Level<'_>,
    sources: &mut Sources,
    reading: &mut Reading<'_>,
) -> Node {
    let tree = &*without_legacy(tree, reading);
    let Some(fields) = Fields::new(tree, "a node", &KEYS, reading) else {
        // Its routes are edges, which stand elsewhere.
        return Node { unread: Unread::default(), ..Node::unread(id, tree) };
    };
    let place = |key: &str| format!("nodes.{}.{key}", id.value);
    let name = fields.required("name", reading).and_then(|tree| reading.text(tree, "name"));
    let instruction = fields
        .required("instruction", reading)
        .and_then(|tree| sources.text(tree, "instruction", place("instruction"), reading));
    let tools =
        fields.get("tools").and_then(|tree| Fields::new(tree, "`tools`", &["allow", "deny"], reading));
    let allow = tools.as_ref().and_then(|tools| tools.names("allow", reading));
    let mut deny = tools.as_ref().and_then(|tools| tools.names("deny", reading)).unwrap_or_default();
    deny.extend(fields.names("disallowed_tools", reading).unwrap_or_default());
    let agent = Agent {
        instruction: Template::Value(instruction.as_deref().unwrap_or_default().into()),
        model: fields.text("model", reading),
        allow,
        deny,
        skills: fields.names("skills", reading).unwrap_or_default(),
        max_turns: fields.number("max_turns", (1, u32::MAX), reading),
        rules: Vec::new(),
        background: Vec::new(),
    };
    policy(&fields, reading);
    let output = fields.get("output").and_then(|tree| reading.schema(tree, "output"));
    let extras = SwenyNode {
        rules: sources.layer(fields.get("rules"), "rules", &place("rules"), reading),
        context: sources.layer(fields.get("context"), "context", &place("context"), reading),
        judge_model: fields.text("judge_model", reading),
        is_fail_soft: fields.truth("fail_soft", reading).unwrap_or_default(),
        evaluators: fields.get("eval").map(|tree| eval::evaluators(tree, reading)).unwrap_or_default(),
        retry: fields.get("retry").and_then(|tree| eval::retry(tree, reading)),
        required: names_of(output.as_ref(), "required"),
        properties: names_of(output.as_ref(), "properties"),
        output,
    };
    let requires = fields.get("requires").and_then(|tree| eval::requires(tree, &level.nodes, reading));
    Node {
        id,
        description: name.map(|name| name.value.clone()),
        work: Work::Agent(Box::new(agent)),
        with: None,
        with_at: Vec::new(),
        reads: Reads::All,
        output: None,
        requires,
        ensure: None,
        retry: None,
        timeout: None,
        max_visits: None,
        for_each: None,
        set: Vec::new(),
        on_failure: None,
        next: Next::End,
        on_no_match: None,
        extras: Extras::Sweny(Box::new(extras)),
        unread: reading.unread_of(tree),
    }
}

/// The node without keys of former versions, which are reported here and nowhere else.
fn without_legacy<'t>(tree: &'t Tree, reading: &mut Reading<'_>) -> Cow<'t, Tree> {
    let Kind::Map(pairs) = &tree.kind else { return Cow::Borrowed(tree) };
    let Some((key, _)) = pairs.iter().find(|(key, _)| &*key.name == "verify") else {
        return Cow::Borrowed(tree);
    };
    let message = "`verify` is a key of a former version of the format";
    reading.problems.add(Code::LegacyKey, key.at, message, "write its checks as evaluators, under `eval`");
    let rest = pairs.iter().filter(|(key, _)| &*key.name != "verify").cloned().collect();
    Cow::Owned(Tree::map(tree.at, rest, tree.repeated().to_vec()))
}

/// `unsupported`: any failed evaluation fails a node.
fn policy(fields: &Fields<'_>, reading: &mut Reading<'_>) {
    let Some(tree) = fields.get("eval_policy") else { return };
    let words = [("all_pass", true), ("any_pass", false), ("weighted", false)];
    if let (Some(false), Kind::Text(text)) = (reading.word(tree, "eval_policy", &words), &tree.kind) {
        let message =
            format!("the policy `{}` is not supported: any failed evaluation fails a node", text.value);
        reading.problems.add(
            Code::Unsupported,
            tree.at,
            message,
            "remove it, and the evaluators that may fail",
        );
    }
}

/// The keys under `required` or `properties` of a schema.
fn names_of(schema: Option<&Schema>, key: &str) -> Vec<Arc<str>> {
    match schema.and_then(|schema| schema.value.get(key)) {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(Into::into).collect(),
        Some(Value::Object(map)) => map.keys().map(|name| name.as_str().into()).collect(),
        _ => Vec::new(),
    }
}
