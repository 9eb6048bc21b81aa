//! `unknown-var`, `unset-var`: variables are declared, and get a value. Reads of them are found in `reads`.

use std::collections::HashSet;

use crate::document::model::Graph;
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

pub(super) fn check(graph: &Graph, problems: &mut Problems) {
    let declared: HashSet<&str> = graph.vars.iter().map(|variable| &*variable.name.value).collect();
    let (mut set, mut meant) = (HashSet::new(), Vec::new());
    for (name, _) in graph.nodes.iter().flat_map(|node| &node.set) {
        set.insert(&*name.value);
        if !declared.contains(&*name.value) {
            meant.extend(undeclared(graph, &name.value, name.at, problems));
        }
    }
    // `set` that could not be read may set any, and other parts those that they name.
    let unread = graph.nodes.iter().any(|node| node.unread.set);
    let words: HashSet<&str> =
        graph.nodes.iter().flat_map(|node| &node.unread.words).map(|word| &**word).collect();
    let may_be_set = |name: &str| unread || words.contains(name);
    for variable in graph.vars.iter().filter(|variable| variable.first.is_null()) {
        let name = &variable.name;
        let may_be_set = may_be_set(&name.value) || meant.iter().any(|meant| **meant == *name.value);
        if !set.contains(&*name.value) && !may_be_set {
            let message = format!("the variable `{}` has no first value, and no node sets it", name.value);
            problems.add(Code::UnsetVar, name.at, message, "give it one, `set` it in a node, or remove it");
        }
    }
}

/// Reports a variable that is named, but not declared. Returns those that may be meant.
pub(super) fn undeclared(graph: &Graph, name: &str, at: At, problems: &mut Problems) -> Vec<String> {
    if graph.unread.vars || graph.unread.words.contains(name) {
        return Vec::new();
    }
    let message = format!("the variable `{name}` is not declared");
    let known = graph.vars.iter().map(|variable| &*variable.name.value);
    let remedy = || format!("declare it with its first value: `vars: {{{name}: …}}`");
    problems.add_unknown(Code::UnknownVar, at, message, name, known, remedy)
}
