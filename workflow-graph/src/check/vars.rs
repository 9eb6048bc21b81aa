//! `unknown-var`, `unset-var`: variables are declared, and get a value. Reads of them are found in `reads`.

use std::collections::HashSet;

use crate::document::model::Graph;
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

pub(super) fn check(graph: &Graph, problems: &mut Problems) {
    let declared: HashSet<&str> = graph.vars.iter().map(|variable| &*variable.name.value).collect();
    let mut set: HashSet<&str> = HashSet::new();
    for (name, _) in graph.nodes.iter().flat_map(|node| &node.set) {
        set.insert(&name.value);
        if !declared.contains(&*name.value) {
            undeclared(graph, &name.value, name.at, problems);
        }
    }
    for variable in graph.vars.iter().filter(|variable| variable.first.is_null()) {
        let name = &variable.name;
        if !set.contains(&*name.value) && !graph.is_incomplete {
            let message = format!("the variable `{}` has no first value, and no node sets it", name.value);
            problems.add(Code::UnsetVar, name.at, message, "give it one, `set` it in a node, or remove it");
        }
    }
}

/// A variable that is named, but not declared.
pub(super) fn undeclared(graph: &Graph, name: &str, at: At, problems: &mut Problems) {
    let message = format!("the variable `{name}` is not declared");
    let known = graph.vars.iter().map(|variable| &*variable.name.value);
    let remedy = || format!("declare it with its first value: `vars: {{{name}: …}}`");
    problems.add_unknown(Code::UnknownVar, at, message, name, known, remedy);
}
