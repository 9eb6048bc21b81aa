//! Lists the paths that an expression reads, and which reads are guarded against missing values. It evaluates nothing.

use serde_json::Value;

use super::functions::Function;
use super::tree::{Call, Comparison, Kind, Node, StepKind};

/// A path that an expression reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    /// The name that it begins with.
    pub(crate) root: String,
    /// Keys and indices behind it, up to the first that is computed.
    pub(crate) segments: Vec<Segment>,
    /// Where it is first read, in bytes into the source.
    pub(crate) offset: usize,
    /// Whether every read of it has a guard, so that no error follows if it is missing: `has`, `default`, `get`, a
    /// comparison with null, or one of them as a condition before it.
    pub(crate) is_guarded: bool,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    /// The key of a map.
    Field(String),
    /// The place in a list; a negative one counts from its end.
    Index(i64),
}

pub(super) fn reads(root: &Node) -> Vec<Read> {
    let mut collector = Collector::default();
    collector.walk(root, false);
    collector.reads.sort_by_key(|read| read.offset);
    collector.reads
}

/// All paths, as they stand in the source.
pub(super) fn paths(root: &Node) -> Vec<&Node> {
    fn add<'n>(node: &'n Node, paths: &mut Vec<&'n Node>) {
        if node.is_path() {
            paths.push(node);
        }
        // The name at the base of a path is no path of its own.
        let base = usize::from(node.is_path());
        node.children().skip(base).for_each(|child| add(child, paths));
    }
    let mut paths = Vec::new();
    add(root, &mut paths);
    paths.sort_by_key(|path| path.span.start);
    paths
}

/// The name and fixed steps of a path, and whether these are all its steps.
pub(super) fn fixed(node: &Node) -> Option<(&str, Vec<Segment>, bool)> {
    let (base, steps) = match &node.kind {
        Kind::Name(name) => return Some((name, Vec::new(), true)),
        Kind::Access(base, steps) => (base, steps),
        _ => return None,
    };
    let Kind::Name(name) = &base.kind else { return None };
    let segments: Vec<_> = steps.iter().map_while(|step| segment(&step.kind)).collect();
    let is_whole = segments.len() == steps.len();
    Some((name, segments, is_whole))
}

fn segment(step: &StepKind) -> Option<Segment> {
    match step {
        StepKind::Field(name) => Some(Segment::Field(name.clone())),
        StepKind::Index(index) => match &index.kind {
            Kind::Literal(Value::String(name)) => Some(Segment::Field(name.clone())),
            Kind::Literal(Value::Number(index)) => index.as_i64().map(Segment::Index),
            _ => None,
        },
    }
}

#[derive(Default)]
struct Collector {
    reads: Vec<Read>,
    /// Paths that are there wherever the walk is now, since a condition before it said so.
    known: Vec<(String, Vec<Segment>)>,
}

impl Collector {
    fn walk(&mut self, node: &Node, is_guarded: bool) {
        match &node.kind {
            Kind::Name(_) | Kind::Access(..) => self.path(node, is_guarded),
            Kind::Call(call) => self.call(call, is_guarded),
            Kind::Compare(first, rest) => self.comparison(first, rest),
            Kind::And(operands) => self.logic(operands, true),
            Kind::Or(operands) => self.logic(operands, false),
            Kind::If(branches) => {
                self.walk(&branches.condition, false);
                for (holds, branch) in [(true, &branches.then), (false, &branches.otherwise)] {
                    let before = self.known.len();
                    present(&branches.condition, holds, &mut self.known);
                    self.walk(branch, is_guarded);
                    self.known.truncate(before);
                }
            }
            _ => node.children().for_each(|child| self.walk(child, false)),
        }
    }

    fn path(&mut self, node: &Node, is_guarded: bool) {
        let Some((root, segments, _)) = fixed(node) else {
            let mut children = node.children();
            children.next().into_iter().for_each(|base| self.walk(base, is_guarded));
            return children.for_each(|index| self.walk(index, false));
        };
        let is_known = |(name, known): &(String, Vec<Segment>)| name == root && segments.starts_with(known);
        let is_guarded = is_guarded || self.known.iter().any(is_known);
        let offset = node.span.start;
        match self.reads.iter_mut().find(|read| read.root == root && read.segments == segments) {
            Some(read) => {
                read.is_guarded &= is_guarded;
                read.offset = read.offset.min(offset);
            }
            None => self.reads.push(Read { root: root.to_owned(), segments, offset, is_guarded }),
        }
        let base = usize::from(matches!(node.kind, Kind::Access(..)));
        node.children().skip(base).for_each(|index| self.walk(index, false));
    }

    fn call(&mut self, call: &Call, is_guarded: bool) {
        let guards = matches!(call.function, Function::Has | Function::Default | Function::Get);
        for (place, argument) in call.arguments.iter().enumerate() {
            let is_otherwise = call.function == Function::Default && place == 1;
            self.walk(argument, (guards && place == 0) || (is_otherwise && is_guarded));
        }
    }

    fn comparison(&mut self, first: &Node, rest: &[(Comparison, Node)]) {
        if let Some((path, _)) = null_test(first, rest) {
            return self.walk(path, true);
        }
        self.walk(first, false);
        for (_, operand) in rest {
            self.walk(operand, false);
        }
    }

    /// Each operand is evaluated only if those before it had the truth `before`.
    fn logic(&mut self, operands: &[Node], before: bool) {
        let known = self.known.len();
        for operand in operands {
            self.walk(operand, false);
            present(operand, before, &mut self.known);
        }
        self.known.truncate(known);
    }
}

/// The path that is compared with null, and whether it is asked to equal it.
fn null_test<'n>(first: &'n Node, rest: &'n [(Comparison, Node)]) -> Option<(&'n Node, bool)> {
    let [(comparison @ (Comparison::Equal | Comparison::NotEqual), second)] = rest else { return None };
    let is_null = |node: &Node| matches!(node.kind, Kind::Literal(Value::Null));
    let path = match (is_null(first), is_null(second)) {
        (true, false) => second,
        (false, true) => first,
        _ => return None,
    };
    path.is_path().then_some((path, *comparison == Comparison::Equal))
}

/// Adds the paths that are there if a condition `holds`, or if it does not.
fn present(condition: &Node, holds: bool, known: &mut Vec<(String, Vec<Segment>)>) {
    let path = match &condition.kind {
        Kind::Not(operand) => return present(operand, !holds, known),
        Kind::And(operands) if holds => {
            return operands.iter().for_each(|operand| present(operand, true, known));
        }
        Kind::Or(operands) if !holds => {
            return operands.iter().for_each(|operand| present(operand, false, known));
        }
        Kind::Call(call) if call.function == Function::Has && holds => return present_key(call, known),
        Kind::Compare(first, rest) => match null_test(first, rest) {
            Some((path, equals)) if equals != holds => path,
            _ => return,
        },
        _ => return,
    };
    known.extend(
        fixed(path)
            .filter(|(_, _, is_whole)| *is_whole)
            .map(|(name, segments, _)| (name.to_owned(), segments)),
    );
}

/// `has(path)` or `has(path, key)`. With a key that is computed, it at least has the path.
fn present_key(call: &Call, known: &mut Vec<(String, Vec<Segment>)>) {
    let Some((name, mut segments, true)) = fixed(&call.arguments[0]) else { return };
    if let Some(Kind::Literal(Value::String(key))) = call.arguments.get(1).map(|key| &key.kind) {
        segments.push(Segment::Field(key.clone()));
    }
    known.push((name.to_owned(), segments));
}
