//! `next` and `on_failure`: where a node leads. Whether the nodes exist is checked in `check`.

use super::fields::Fields;
use super::{Reading, synonyms};
use crate::document::model::{
    Branch, Choice, Conflicts, Decide, Failures, Located, Next, OnFailure, Parallel, Route, Target,
};
use crate::document::template::{Expression, Template};
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;

/// The most branches of one node.
pub(crate) const MOST_PARALLEL: usize = 64;

pub(super) const FAILURES: [(&str, Failures); 3] = [
    ("fail_all", Failures::FailAll),
    ("continue_others", Failures::ContinueOthers),
    ("wait_all", Failures::WaitAll),
];

const CONFLICTS: [(&str, Conflicts); 3] =
    [("error", Conflicts::Error), ("last_wins", Conflicts::LastWins), ("first_wins", Conflicts::FirstWins)];

const PARALLEL: [&str; 5] = ["parallel", "join", "failures", "conflicts", "concurrency"];
const ROUTE: [&str; 4] = ["to", "when", "max", "id"];
const DECIDE: [&str; 3] = ["decide", "choices", "otherwise"];

/// The way on. Its unreadable parts are those of the node.
pub(super) fn read(tree: &Tree, reading: &mut Reading<'_>) -> Next {
    let next = form(tree, reading);
    if next.is_none() {
        reading.unread.routes(tree);
        reading.unread.default = true;
    }
    next.unwrap_or(Next::End)
}

fn form(tree: &Tree, reading: &mut Reading<'_>) -> Option<Next> {
    match &tree.kind {
        Kind::Text(_) => Some(match target(tree, "next", reading)? {
            Target::Node(name) => Next::To(name),
            Target::End => Next::End,
        }),
        Kind::List(items) => routes(tree, items, "next", reading).map(Next::Routes),
        Kind::Map(_) if tree.get("decide").is_some() || tree.get("choices").is_some() => {
            decide(tree, reading)
        }
        Kind::Map(_) if tree.get("to").is_some() => {
            reading.problems.add(
                Code::WrongType,
                tree.at,
                "routes of `next` are a list",
                "write `- ` before the route",
            );
            routes(tree, std::slice::from_ref(tree), "next", reading).map(Next::Routes)
        }
        Kind::Map(_) => parallel(tree, reading),
        _ => {
            reading.wrong_type(tree, "`next`", "an id, `end`, a list of routes, or a map");
            None
        }
    }
}

/// The same for `on_failure`.
pub(super) fn on_failure(tree: &Tree, reading: &mut Reading<'_>) -> Option<OnFailure> {
    let found = way_of_failure(tree, reading);
    if found.is_none() {
        reading.unread.routes(tree);
    }
    found
}

fn way_of_failure(tree: &Tree, reading: &mut Reading<'_>) -> Option<OnFailure> {
    match &tree.kind {
        Kind::Text(text) if &*text.value == "continue" => Some(OnFailure::Continue),
        Kind::List(items) => routes(tree, items, "on_failure", reading).map(OnFailure::Routes),
        Kind::Text(_) => match target(tree, "on_failure", reading)? {
            Target::Node(name) => Some(OnFailure::To(name)),
            to @ Target::End => {
                let route = Route { at: tree.at, to, when: None, max: None, id: None };
                Some(OnFailure::Routes(vec![route]))
            }
        },
        _ => {
            reading.wrong_type(tree, "`on_failure`", "an id, a list of routes, or `continue`");
            tree.get("to")?;
            routes(tree, std::slice::from_ref(tree), "on_failure", reading).map(OnFailure::Routes)
        }
    }
}

fn target(tree: &Tree, key: &str, reading: &mut Reading<'_>) -> Option<Target> {
    let name = reading.reference(tree, key)?;
    reading.routes += 1;
    Some(if &*name.value == "end" { Target::End } else { Target::Node(name) })
}

/// The routes of a list that can be read. Nothing, after problems, if there is none.
fn routes(tree: &Tree, items: &[Tree], key: &str, reading: &mut Reading<'_>) -> Option<Vec<Route>> {
    if items.is_empty() {
        let message = format!("`{key}` is a list without routes");
        reading.problems.add(Code::MissingKey, tree.at, message, "add a route, or remove the key");
        return None;
    }
    let mut routes = Vec::with_capacity(items.len());
    for item in items {
        let route = route(item, reading);
        if route.is_none() {
            reading.unread.routes(item);
            reading.unread.default |= item.get("when").is_none() && item.get("max").is_none();
        }
        routes.extend(route);
    }
    (!routes.is_empty()).then_some(routes)
}

fn route(tree: &Tree, reading: &mut Reading<'_>) -> Option<Route> {
    if matches!(tree.kind, Kind::Text(_)) {
        let to = target(tree, "to", reading)?;
        return Some(Route { at: tree.at, to, when: None, max: None, id: None });
    }
    let fields = Fields::with_synonyms(tree, "a route", &ROUTE, &synonyms::ROUTE, reading)?;
    let to = fields.required("to", reading).and_then(|tree| target(tree, "to", reading));
    // A route whose condition or bound is lost would look like one that always holds.
    let is_lost = |key: &str| fields.get(key).is_none() && fields.is_meant(key);
    let when = fields.get("when").map(|tree| reading.condition(tree, "when"));
    let when = when.or_else(|| is_lost("when").then(|| Expression::unread(tree.at)));
    let max = fields.get("max").map(|tree| reading.number(tree, "max", (1, u32::MAX)).unwrap_or(1));
    let max = max.or_else(|| is_lost("max").then_some(1));
    let id = fields.get("id").and_then(|tree| reading.name(tree, "id"));
    Some(Route { at: tree.at, to: to?, when, max, id })
}

fn parallel(tree: &Tree, reading: &mut Reading<'_>) -> Option<Next> {
    let fields = Fields::new(tree, "`next`", &PARALLEL, reading)?;
    let items = fields.required("parallel", reading).map(|tree| (tree, reading.list(tree, "parallel")));
    let join = fields.get("join").map(|tree| reading.reference(tree, "join"));
    let failures = fields.word("failures", &FAILURES, reading).unwrap_or(Failures::FailAll);
    let conflicts = fields.word("conflicts", &CONFLICTS, reading);
    let concurrency = fields.number("concurrency", (1, u32::MAX), reading);
    let (list, items) = items?;
    if items.len() > MOST_PARALLEL {
        let message =
            format!("the node has {} branches, and at most {MOST_PARALLEL} are allowed", items.len());
        reading.problems.add(Code::TooLarge, list.at, message, "use `for_each`, or nest branches");
    } else if items.is_empty() && matches!(list.kind, Kind::List(_)) {
        reading.problems.add(
            Code::MissingKey,
            list.at,
            "`parallel` has no branches",
            "add an id, or remove the key",
        );
    }
    let mut branches = Vec::with_capacity(items.len());
    for item in items {
        let branch = branch(item, reading);
        if branch.is_none() {
            reading.unread.routes(item);
        }
        branches.extend(branch);
    }
    if branches.is_empty() {
        return None;
    }
    reading.unread.routes |= matches!(join, Some(None));
    let parallel = Parallel { at: list.at, branches, join: join.flatten(), failures, conflicts, concurrency };
    Some(Next::Parallel(Box::new(parallel)))
}

fn branch(tree: &Tree, reading: &mut Reading<'_>) -> Option<Branch> {
    let (tree, when) = match &tree.kind {
        Kind::Map(_) => {
            let fields =
                Fields::with_synonyms(tree, "a branch", &["to", "when"], &synonyms::BRANCH, reading)?;
            let to = fields.required("to", reading);
            let when = fields.get("when").map(|tree| reading.condition(tree, "when"));
            let is_lost = when.is_none() && fields.is_meant("when");
            (to?, when.or_else(|| is_lost.then(|| Expression::unread(tree.at))))
        }
        _ => (tree, None),
    };
    match target(tree, "a branch", reading)? {
        Target::Node(to) => Some(Branch { to, when }),
        Target::End => {
            let message = "a branch begins with a node, and `end` is none";
            reading.problems.add(
                Code::WrongType,
                tree.at,
                message,
                "remove it: without a branch nothing runs",
            );
            None
        }
    }
}

fn decide(tree: &Tree, reading: &mut Reading<'_>) -> Option<Next> {
    let fields = Fields::new(tree, "`next`", &DECIDE, reading)?;
    let question = fields.required("decide", reading).and_then(|tree| reading.text_template(tree, "decide"));
    let choices = fields.required("choices", reading).map(|tree| (tree, reading.list(tree, "choices")));
    let otherwise = fields.required("otherwise", reading).and_then(|tree| target(tree, "otherwise", reading));
    let (list, items) = choices?;
    if items.is_empty() && matches!(list.kind, Kind::List(_)) {
        reading.problems.add(
            Code::MissingKey,
            list.at,
            "`choices` is empty",
            "add one with `to` and `about`",
        );
        reading.unread.routes = true;
    }
    let mut choices = Vec::with_capacity(items.len());
    for item in items {
        let choice = choice(item, reading);
        if choice.is_none() {
            reading.unread.routes(item);
        }
        choices.extend(choice);
    }
    if otherwise.is_none() {
        fields.get("otherwise").into_iter().for_each(|tree| reading.unread.routes(tree));
        reading.unread.routes = true;
    }
    // A target without a name is one that could not be read.
    let unnamed = || Target::Node(Located { value: "".into(), at: tree.at });
    let question = question.unwrap_or(Template::Value(serde_json::Value::Null));
    Some(Next::Decide(Box::new(Decide { question, choices, otherwise: otherwise.unwrap_or_else(unnamed) })))
}

fn choice(tree: &Tree, reading: &mut Reading<'_>) -> Option<Choice> {
    if matches!(tree.kind, Kind::Text(_)) {
        return Some(Choice { at: tree.at, to: target(tree, "to", reading)?, about: None });
    }
    let fields = Fields::new(tree, "a choice", &["to", "about"], reading)?;
    let to = fields.required("to", reading).and_then(|tree| target(tree, "to", reading));
    let about = fields.text("about", reading);
    Some(Choice { at: tree.at, to: to?, about })
}
