//! The tree of an expression. It knows its place in the source, and nothing of values or types.

use regex::Regex;
use serde_json::Value;
use smallvec::{SmallVec, smallvec};

use super::functions::Function;

/// Bytes of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Span,
    /// Levels below and including this one. The parser refuses more than the bound, so walks may recurse.
    pub(super) height: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Literal(Value),
    List(Vec<Node>),
    Name(String),
    /// Chains are flat, so that long ones are not deep.
    Access(Box<Node>, Vec<Step>),
    Call(Call),
    Negate(Box<Node>),
    Plus(Box<Node>),
    Not(Box<Node>),
    Arithmetic(Box<Node>, Vec<(Arithmetic, Node)>),
    Compare(Box<Node>, Vec<(Comparison, Node)>),
    And(Vec<Node>),
    Or(Vec<Node>),
    If(Box<Branches>),
}

/// A key or index behind a value, and where it ends.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) end: usize,
    pub(super) kind: StepKind,
}

#[derive(Debug)]
pub(super) enum StepKind {
    Field(String),
    Index(Node),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) function: Function,
    /// Of a method, the first is the value before the dot.
    pub(super) arguments: Vec<Node>,
    /// Compiled while parsing, if it is a literal.
    pub(super) pattern: Option<Regex>,
}

#[derive(Debug)]
pub(super) struct Branches {
    pub(super) condition: Node,
    pub(super) then: Node,
    pub(super) otherwise: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
}

impl Node {
    pub(super) fn new(span: Span, kind: Kind) -> Self {
        let mut node = Self { span, height: 1, kind };
        node.height += node.children().map(|child| child.height).max().unwrap_or(0);
        node
    }

    pub(super) fn written<'s>(&self, source: &'s str) -> &'s str {
        &source[self.span.start..self.span.end]
    }

    /// Whether it is a name, or keys and indices behind one.
    pub(super) fn is_path(&self) -> bool {
        match &self.kind {
            Kind::Name(_) => true,
            Kind::Access(base, _) => matches!(base.kind, Kind::Name(_)),
            _ => false,
        }
    }

    /// Its parts.
    pub(super) fn children(&self) -> smallvec::IntoIter<[&Node; 4]> {
        let children: SmallVec<[&Node; 4]> = match &self.kind {
            Kind::Literal(_) | Kind::Name(_) => SmallVec::new(),
            Kind::List(nodes) | Kind::And(nodes) | Kind::Or(nodes) => nodes.iter().collect(),
            Kind::Call(call) => call.arguments.iter().collect(),
            Kind::Negate(node) | Kind::Plus(node) | Kind::Not(node) => smallvec![&**node],
            Kind::Arithmetic(first, rest) => {
                std::iter::once(&**first).chain(rest.iter().map(|(_, node)| node)).collect()
            }
            Kind::Compare(first, rest) => {
                std::iter::once(&**first).chain(rest.iter().map(|(_, node)| node)).collect()
            }
            Kind::If(branches) => smallvec![&branches.then, &branches.condition, &branches.otherwise],
            Kind::Access(base, steps) => {
                std::iter::once(&**base).chain(steps.iter().filter_map(Step::index)).collect()
            }
        };
        children.into_iter()
    }
}

impl Step {
    fn index(&self) -> Option<&Node> {
        match &self.kind {
            StepKind::Index(node) => Some(node),
            StepKind::Field(_) => None,
        }
    }
}
