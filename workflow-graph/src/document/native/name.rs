//! Names of graphs, nodes and variables. It knows no map of them.

use super::Reading;
use crate::document::model::{Located, Name};
use crate::document::tree::Tree;
use crate::problem::Code;
use crate::problem::sink::At;

/// Words with another meaning in expressions.
pub(crate) const RESERVED: [&str; 9] =
    ["input", "vars", "nodes", "error", "joined", "item", "index", "visits", "end"];

const LONGEST: usize = 64;

impl Reading<'_> {
    /// A name of a graph.
    pub(crate) fn graph_name(&mut self, name: &str, at: At) -> Option<Name> {
        let is_good = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
            && name.len() <= LONGEST;
        if is_good {
            return Some(Located { value: name.into(), at });
        }
        let message = format!("`{name}` is no name of a graph");
        let remedy = "begin with a letter and use at most 64 letters, digits, `.`, `_` and `-`";
        self.problems.add(Code::BadName, at, message, remedy);
        None
    }

    /// An id: of a node, or, as `what` says, of something else that expressions name.
    pub(crate) fn id(&mut self, name: &str, at: At, what: &str) -> Option<Name> {
        if !is_id(name) {
            let message = format!("`{name}` is no {what}");
            let remedy = "begin with a letter or `_` and use at most 64 letters, digits, `_` and `-`";
            self.problems.add(Code::BadName, at, message, remedy);
            return None;
        }
        if RESERVED.contains(&name) {
            let message = format!("`{name}` has a meaning of its own in expressions, and is no {what}");
            self.problems.add(
                Code::ReservedName,
                at,
                message,
                format!("rename it, for example to `{name}_`"),
            );
            return None;
        }
        Some(Located { value: name.into(), at })
    }

    /// The id of a node, where one is named. Whether the graph has it is checked later.
    pub(crate) fn reference(&mut self, tree: &Tree, key: &str) -> Option<Name> {
        let name = self.named(tree, key)?;
        let Some(inside) = name.value.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'))
        else {
            return Some(name);
        };
        let inside = inside.trim();
        let remedy = if inside == "end" || (is_id(inside) && !RESERVED.contains(&inside)) {
            format!("write `{inside}`")
        } else {
            "write the id of a node; to choose by a value, write a list of routes with `when`".to_owned()
        };
        self.problems.add(Code::BadName, tree.at, "an id stands without `${ }`", remedy);
        is_id(inside).then(|| Located { value: inside.into(), at: tree.at })
    }

    /// A variable: an id, but `vars.` stands before it, so no word is reserved.
    pub(crate) fn variable(&mut self, name: &str, at: At) -> Option<Name> {
        if is_id(name) {
            return Some(Located { value: name.into(), at });
        }
        self.id(name, at, "name of a variable")
    }
}

pub(crate) fn is_id(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && name.len() <= LONGEST
}
