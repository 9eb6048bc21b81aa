//! Reads one node. `work` reads its work, and `next` its routes.

use std::sync::Arc;

use super::fields::Fields;
use super::graph::ON_NO_MATCH;
use super::next::{self, FAILURES};
use super::work::{self, KINDS};
use super::{Reading, check, retry, synonyms};
use crate::document::model::unread::words;
use crate::document::model::{Extras, Failures, ForEach, Located, Name, Next, Node, Reads};
use crate::document::template::{Expression, Template};
use crate::document::tree::{Kind, Tree};
use crate::problem::sink::At;
use crate::problem::{Code, similar};

const KEYS: [&str; 22] = [
    "function",
    "tool",
    "agent",
    "command",
    "human",
    "value",
    "graph",
    "workflow",
    "description",
    "with",
    "reads",
    "output",
    "requires",
    "ensure",
    "retry",
    "timeout",
    "max_visits",
    "for_each",
    "set",
    "on_failure",
    "next",
    "on_no_match",
];

/// Items of one node that run at the same time, unless it says otherwise.
const CONCURRENCY: u32 = 16;

pub(super) fn read(id: Name, tree: &Tree, reading: &mut Reading<'_>) -> Node {
    let Some(fields) = Fields::with_synonyms(tree, "a node", &KEYS, &synonyms::NODE, reading) else {
        return Node::unread(id, tree);
    };
    let fields = fields.exclusive(&KINDS);
    let has_similar = unknown_kind(tree);
    let kind = work::kind(&id, tree, &fields, has_similar, reading);
    let work = kind.and_then(|(kind, value)| work::read(kind, value, reading));
    reading.unread.data |= work.is_none();
    let kind = kind.map_or("", |(kind, _)| kind);
    misplaced(kind, &fields, reading);
    let retry = fields
        .get("retry")
        .and_then(|tree| Some(Located { value: retry::read(tree, reading)?, at: tree.at }));
    let with = fields.template("with", reading);
    let with_at = fields.get("with").map(fields_at).unwrap_or_default();
    let reads = fields.get("reads").map_or(Reads::All, |tree| reads(tree, reading));
    let output = fields.get("output").and_then(|tree| reading.schema(tree, "output"));
    reading.unread.data |= output.is_none() && (fields.get("output").is_some() || fields.is_meant("output"));
    let requires = fields.get("requires").and_then(|tree| check::requires(tree, reading));
    let ensure =
        fields.get("ensure").and_then(|tree| check::ensure(tree, matches!(kind, "agent" | ""), reading));
    let for_each = fields.get("for_each").map(|tree| for_each(tree, reading));
    let set = fields.get("set").map(|tree| set(tree, reading)).unwrap_or_default();
    let on_failure = fields.get("on_failure").and_then(|tree| next::on_failure(tree, reading));
    let next = fields.get("next").map(|tree| next::read(tree, reading));
    unknown(&fields, next.is_some(), reading);
    let description = fields.text("description", reading);
    let timeout = fields.positive_duration("timeout", reading);
    let max_visits = fields.get("max_visits");
    // A bound that is wrong is one.
    let max_visits = max_visits.map(|tree| reading.number(tree, "max_visits", (1, u32::MAX)).unwrap_or(1));
    let max_visits = max_visits.or_else(|| fields.is_meant("max_visits").then_some(1));
    let on_no_match = fields.word("on_no_match", &ON_NO_MATCH, reading);
    Node {
        id,
        description,
        // The document is refused then, and checks of routes do not look at it.
        work: work.unwrap_or(work::unreadable()),
        with,
        with_at,
        reads,
        output,
        requires,
        ensure,
        retry,
        timeout,
        max_visits,
        for_each,
        set,
        on_failure,
        next: next.unwrap_or(Next::End),
        on_no_match,
        extras: Extras::None,
        unread: reading.unread_of(tree),
    }
}

/// The values of unknown keys, which may be routes, or set variables.
fn unknown(fields: &Fields<'_>, has_next: bool, reading: &mut Reading<'_>) {
    for tree in fields.unread() {
        words(tree, &mut reading.unread.words);
        words(tree, &mut reading.unread.led);
    }
    reading.unread.routes |= !has_next && !fields.unread().is_empty();
    reading.unread.set |= fields.get("set").is_none() && fields.is_meant("set");
}

/// Whether an unknown key of the node is spelled like a kind: that problem says what to do already.
fn unknown_kind(tree: &Tree) -> bool {
    let Kind::Map(pairs) = &tree.kind else { return false };
    let mut unknown = pairs.iter().filter(|(key, _)| !KEYS.contains(&&*key.name));
    unknown.any(|(key, _)| !similar(&key.name, KINDS).is_empty())
}

/// Keys that only some kinds have a use for.
fn misplaced(kind: &str, fields: &Fields<'_>, reading: &mut Reading<'_>) {
    let takes_input = matches!(kind, "function" | "tool" | "graph" | "workflow" | "");
    if !takes_input && fields.get("with").is_some() {
        let message = format!("`with` is no key of a node with `{kind}`, which takes no input");
        let remedy = "remove it, and write expressions where the values are used";
        reading.problems.add(Code::UnknownKey, fields.key_at("with"), message, remedy);
    }
    if !matches!(kind, "agent" | "") && fields.get("reads").is_some() {
        let message =
            format!("`reads` is no key of a node with `{kind}`: its expressions name what it reads");
        reading.problems.add(Code::UnknownKey, fields.key_at("reads"), message, "remove it");
    }
    let is_none = |tree: &Tree| matches!(&tree.kind, Kind::Text(text) if &*text.value == "none");
    let has_attempts = matches!(kind, "function" | "tool" | "command" | "agent" | "");
    if !has_attempts && fields.get("retry").is_some_and(|tree| !is_none(tree)) {
        let message = format!("`retry` is no key of a node with `{kind}`, which has one attempt");
        let remedy = "remove it, or lead on with `on_failure`";
        reading.problems.add(Code::UnknownKey, fields.key_at("retry"), message, remedy);
    }
    let decides = |tree: &Tree| match &tree.kind {
        Kind::Map(pairs) => pairs.iter().any(|(key, _)| &*key.name == "decide"),
        _ => false,
    };
    if kind == "human" && fields.get("timeout").is_some() && !fields.get("next").is_some_and(decides) {
        let message = "`timeout` is no key of a node with `human`, since people make no attempt".to_owned();
        let remedy = "write `expires` in `human` for the time to answer";
        reading.problems.add(Code::UnknownKey, fields.key_at("timeout"), message, remedy);
    }
}

fn fields_at(tree: &Tree) -> Vec<(Arc<str>, At)> {
    let Kind::Map(pairs) = &tree.kind else { return vec![("".into(), tree.at)] };
    pairs.iter().map(|(key, _)| (key.name.clone(), key.at)).collect()
}

fn reads(tree: &Tree, reading: &mut Reading<'_>) -> Reads {
    match &tree.kind {
        Kind::Text(text) if &*text.value == "all" => Reads::All,
        Kind::List(_) => Reads::Only(reading.names(tree, "reads")),
        _ => {
            reading.wrong_type(tree, "`reads`", "`all` or a list of ids");
            Reads::All
        }
    }
}

fn for_each(tree: &Tree, reading: &mut Reading<'_>) -> ForEach {
    let failures = Failures::FailAll;
    if !matches!(tree.kind, Kind::Map(_)) {
        let list = reading.condition(tree, "for_each");
        return ForEach { list, item: "item".into(), concurrency: CONCURRENCY, failures };
    }
    let keys = ["in", "as", "concurrency", "failures"];
    let fields = Fields::new(tree, "`for_each`", &keys, reading);
    // A map has fields.
    let Some(fields) = fields else {
        let list = Expression::unread(tree.at);
        return ForEach { list, item: "item".into(), concurrency: CONCURRENCY, failures };
    };
    let list = fields.required("in", reading).map(|tree| reading.condition(tree, "in"));
    let item = fields.get("as").and_then(|tree| {
        let text = reading.text(tree, "as")?;
        match &*text.value {
            "item" => Some(Located { value: text.value.clone(), at: tree.at }),
            name => {
                let named = Located { value: text.value.clone(), at: tree.at };
                Some(reading.id(name, tree.at, "name of an item").unwrap_or(named))
            }
        }
    });
    let concurrency = fields.number("concurrency", (1, u32::MAX), reading);
    let failures = fields.word("failures", &FAILURES, reading).unwrap_or(failures);
    ForEach {
        list: list.unwrap_or_else(|| Expression::unread(tree.at)),
        item: item.map_or("item".into(), |item| item.value),
        concurrency: concurrency.unwrap_or(CONCURRENCY),
        failures,
    }
}

fn set(tree: &Tree, reading: &mut Reading<'_>) -> Vec<(Name, Template)> {
    let Kind::Map(pairs) = &tree.kind else {
        reading.wrong_type(tree, "`set`", "a map of variables to values");
        reading.unread.set = true;
        return Vec::new();
    };
    pairs
        .iter()
        .map(|(key, value)| (Located { value: key.name.clone(), at: key.at }, reading.template(value)))
        .collect()
}
