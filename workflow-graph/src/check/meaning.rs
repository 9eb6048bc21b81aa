//! `unknown-var`, `unknown-field`, and `unknown-node` for names that mean nothing; `maybe-missing` for fields that a
//! schema does not require.

use super::reads::{Place, Reads};
use super::scope::{Meaning, Names, PARTS};
use super::shape::{Found, Shape};
use crate::expression::{Read, Segment};
use crate::problem::Code;

/// Further unknown names are not compared with those of nodes.
const MOST_COMPARED: usize = 100;

impl Reads<'_, '_> {
    /// Whether the path of a read names something that can exist.
    pub(super) fn is_named(&mut self, names: Names<'_>, read: &Read, place: Place<'_>) -> bool {
        let (meaning, used) = names.resolve(&read.root, &read.segments);
        match meaning {
            Meaning::Unknown => self.unknown(names, &read.root, place),
            Meaning::NoNode(name) => self.unknown(names, name, place),
            Meaning::NotHere(whole) => {
                let message = format!("`{}` has a meaning only in {whole}", read.root);
                let at = self.at(place);
                self.problems.add(Code::UnknownNode, at, message, "remove it, or read something else");
            }
            Meaning::NoPart(node, part) => {
                let id = &self.graph.nodes[node].id.value;
                let message = format!("`nodes.{id}` has no `{part}`");
                let known = PARTS.iter().copied();
                let remedy = || format!("write `nodes.{id}.data.{part}` for a field of its result");
                let at = self.at(place);
                self.problems.add_unknown(Code::UnknownField, at, message, part, known, remedy);
            }
            Meaning::Var(Some(name)) if !self.facts.vars.contains_key(name) => self.undeclared(name, place),
            _ => return self.fields(names, meaning, read, used, place),
        }
        false
    }

    fn unknown(&mut self, names: Names<'_>, name: &str, place: Place<'_>) {
        let message = format!("`{name}` is no node, and no other name that expressions have");
        let begin = format!("{name}-");
        let nodes = &self.graph.nodes;
        let is_begin = |id: &str| id.starts_with(&begin);
        // A look among 10,000 nodes for each of 50,000 wrong names would take too long.
        let few = self.problems.count(Code::UnknownNode) < MOST_COMPARED;
        let hyphened = few.then(|| nodes.iter().find(|node| is_begin(&node.id.value))).flatten();
        let at = self.at(place);
        if let Some(node) = hyphened {
            let meant = format!("nodes[\"{}\"].data", node.id.value);
            let remedy = format!("if the node is meant, write `{meant}`");
            return self.problems.add_mended(Code::UnknownNode, at, message, remedy, vec![meant]);
        }
        // A name of the input or of a variable lacks what stands before it.
        let properties = self.graph.input.as_ref().and_then(|schema| schema.value.get("properties"));
        let fields = properties.and_then(serde_json::Value::as_object);
        let begins = || {
            let vars = self.graph.vars.iter().map(|variable| ("vars", &*variable.name.value));
            vars.chain(fields.into_iter().flat_map(|map| map.keys()).map(|key| ("input", key.as_str())))
        };
        let lacks = begins().find(|(_, known)| *known == name);
        let lacks = lacks.map(|(part, _)| vec![format!("{part}.{name}")]);
        let item = names.node.and_then(|node| node.for_each.as_ref()).map(|each| &*each.item);
        let words = ["input", "vars", "nodes", "visits", "error", "joined"].into_iter().chain(item);
        let known =
            nodes.iter().take(if few { usize::MAX } else { 0 }).map(|node| &*node.id.value).chain(words);
        let similar = lacks.unwrap_or_else(|| self.problems.similar(name, known));
        if similar.is_empty() {
            let near = self.problems.similar(name, begins().map(|(_, known)| known));
            let part = |name: &String| {
                begins().find(|(_, known)| *known == name.as_str()).map_or("vars", |(part, _)| part)
            };
            let near: Vec<String> = near.iter().map(|name| format!("{}.{name}", part(name))).collect();
            return self.meant(at, message, near);
        }
        self.meant(at, message, similar);
    }

    /// Reports a name, with those that may be meant.
    fn meant(&mut self, at: crate::problem::sink::At, message: String, similar: Vec<String>) {
        if similar.is_empty() {
            return self.problems.add(Code::UnknownNode, at, message, "correct the name, or quote a text");
        }
        self.problems.add_meant(Code::UnknownNode, Code::UnknownNode.severity(), at, message, similar);
    }

    fn undeclared(&mut self, name: &str, place: Place<'_>) {
        let at = self.at(place);
        super::vars::undeclared(self.graph, name, at, self.problems);
    }

    fn fields(
        &mut self,
        names: Names<'_>,
        meaning: Meaning<'_>,
        read: &Read,
        used: usize,
        place: Place<'_>,
    ) -> bool {
        let of = self.described(meaning, read);
        let shape = names.shape(meaning);
        let has_schema = matches!(shape, Shape::Schema(..));
        let mut unknown = |name: &str, known: &[&str]| {
            let message = format!("{of} has no field `{name}`");
            let remedy = || match known {
                [] => "read it as a whole".to_owned(),
                known if has_schema => {
                    format!("the fields are {}; describe others in its schema", quoted(known))
                }
                known => format!("the fields are {}", quoted(known)),
            };
            let at = self.at(place);
            self.problems.add_unknown(Code::UnknownField, at, message, name, known.iter().copied(), remedy);
        };
        let rest = &read.segments[used..];
        if let (Some(known), Some(Segment::Field(name))) = (Names::fixed_fields(meaning), rest.first())
            && !known.contains(&name.as_str())
        {
            unknown(name, known);
            return false;
        }
        let (found, optional) = shape.follow(rest);
        if let Found::Unknown { place, known } = found {
            if let Segment::Field(name) = &rest[place] {
                unknown(name, &known);
            }
            return false;
        }
        let Some(Segment::Field(name)) = optional.and_then(|place| rest.get(place)) else { return true };
        if read.is_guarded || self.has_default(meaning, used, optional, name) {
            return true;
        }
        let message = format!("the field `{name}` of {of} is not required, so it may be missing");
        let at = self.at(place);
        self.problems.add(Code::MaybeMissing, at, message, guard(read));
        false
    }

    /// Defaults of the top-level properties of the input are filled in.
    fn has_default(&self, meaning: Meaning<'_>, used: usize, optional: Option<usize>, name: &str) -> bool {
        let input = self.graph.input.as_ref().map(|schema| &schema.value);
        matches!(meaning, Meaning::Input)
            && optional == Some(used)
            && input.is_some_and(|input| !input["properties"][name]["default"].is_null())
    }

    fn described(&self, meaning: Meaning<'_>, read: &Read) -> String {
        match meaning {
            Meaning::Data(node) => format!("the result of `{}`", self.graph.nodes[node].id.value),
            _ => format!("`{}`", read.root),
        }
    }
}

/// The remedy that guards a read.
pub(super) fn guard(read: &Read) -> String {
    let steps: String = read
        .segments
        .iter()
        .map(|segment| match segment {
            Segment::Field(name) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                format!(".{name}")
            }
            Segment::Field(name) => format!("[{}]", serde_json::Value::from(name.as_str())),
            Segment::Index(index) => format!("[{index}]"),
        })
        .collect();
    let path = format!("{}{steps}", read.root);
    format!("write `default({path}, …)`, or ask `has({path})` first")
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
