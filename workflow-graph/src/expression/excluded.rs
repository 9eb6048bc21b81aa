//! Finds comparisons with literals that a value can never equal. It knows values of paths, and computes nothing.

use serde_json::Value;

use super::compare::equal;
use super::functions::Function;
use super::reads::fixed;
use super::tree::{Comparison, Kind, Node};
use super::types::Types;
use super::value::Budget;

/// A literal that the other side of its comparison never equals.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Excluded<'e> {
    /// Where the literal begins, in bytes into the source.
    pub(crate) offset: usize,
    /// The other side, as written.
    pub(crate) written: &'e str,
    pub(crate) literal: &'e Value,
    /// Every value of the other side.
    pub(crate) values: Vec<&'e Value>,
}

pub(super) fn excluded<'e>(source: &'e str, root: &'e Node, types: &'e dyn Types) -> Vec<Excluded<'e>> {
    let mut finder = Finder { source, types, found: Vec::new() };
    finder.walk(root);
    finder.found
}

struct Finder<'e> {
    source: &'e str,
    types: &'e dyn Types,
    found: Vec<Excluded<'e>>,
}

impl<'e> Finder<'e> {
    fn walk(&mut self, node: &'e Node) {
        if let Kind::Compare(first, rest) = &node.kind {
            let mut left = &**first;
            for (comparison, right) in rest {
                self.comparison(left, *comparison, right);
                left = right;
            }
        }
        node.children().for_each(|child| self.walk(child));
    }

    fn comparison(&mut self, left: &'e Node, comparison: Comparison, right: &'e Node) {
        match (comparison, &right.kind) {
            (Comparison::Equal | Comparison::NotEqual, _) => {
                self.pair(left, right);
                self.pair(right, left);
            }
            (Comparison::In | Comparison::NotIn, Kind::List(items)) => {
                for item in items {
                    self.pair(left, item);
                }
            }
            _ => {}
        }
    }

    fn pair(&mut self, side: &'e Node, literal: &'e Node) {
        // A comparison with null asks whether something is there at all.
        let Kind::Literal(value @ (Value::Bool(_) | Value::Number(_) | Value::String(_))) = &literal.kind
        else {
            return;
        };
        if matches!(side.kind, Kind::Literal(_)) {
            return;
        }
        let Some(values) = self.values(side) else { return };
        // Values that cannot be compared may be equal.
        if values.iter().any(|known| equal(known, value, &mut Budget::new()).unwrap_or(true)) {
            return;
        }
        let written = side.written(self.source);
        self.found.push(Excluded { offset: literal.span.start, written, literal: value, values });
    }

    /// Every value that a node can have besides being missing, if that is known.
    fn values(&self, node: &'e Node) -> Option<Vec<&'e Value>> {
        let both = |first: &'e Node, second: &'e Node| {
            let mut values = self.values(first)?;
            for value in self.values(second)? {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            Some(values)
        };
        match &node.kind {
            Kind::Literal(value) => Some(vec![value]),
            Kind::Name(_) | Kind::Access(..) => {
                let (root, segments, is_whole) = fixed(node)?;
                if is_whole { self.types.values_of(root, &segments) } else { None }
            }
            Kind::Call(call) if call.function == Function::Default => {
                both(&call.arguments[0], &call.arguments[1])
            }
            Kind::If(branches) => both(&branches.then, &branches.otherwise),
            _ => None,
        }
    }
}
