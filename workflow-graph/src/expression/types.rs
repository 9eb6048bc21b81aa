//! Finds operands that can never fit, given the types of paths. Of a schema, it reads the keyword `type` alone.

use std::fmt;

use serde_json::Value;

use super::functions::Function;
use super::reads::{Segment, fixed};
use super::tree::{Arithmetic, Call, Comparison, Kind, Node, Span};

/// The types of paths.
pub(crate) trait Types {
    /// The type of a path's value; [`Type::ANY`] if unknown.
    fn type_of(&self, root: &str, segments: &[Segment]) -> Type;

    /// Every value that a path's value can be, where these are few and known.
    fn values_of(&self, _root: &str, _segments: &[Segment]) -> Option<Vec<&Value>> {
        None
    }
}

/// Operands that can never fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypeProblem {
    /// Where the part begins, in bytes into the source.
    pub(crate) offset: usize,
    /// The finding, and the expectation.
    pub(crate) message: String,
}

/// The kinds that a value can be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Type(u8);

impl Type {
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const NUMBER: Self = Self(4);
    pub(crate) const TEXT: Self = Self(8);
    pub(crate) const LIST: Self = Self(16);
    pub(crate) const MAP: Self = Self(32);
    pub(crate) const ANY: Self = Self(63);

    /// Values with an order.
    const ORDERED: Self = Self(Self::NUMBER.0 | Self::TEXT.0 | Self::LIST.0);
    /// Values that contain others.
    const WHOLE: Self = Self(Self::TEXT.0 | Self::LIST.0 | Self::MAP.0);

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The type of a value.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::TEXT,
            Value::Array(_) => Self::LIST,
            Value::Object(_) => Self::MAP,
        }
    }

    /// The keyword `type` of a JSON schema; every kind, if it is absent.
    pub(crate) fn of_schema(schema: &Value) -> Self {
        let named = |name: &Value| match name.as_str() {
            Some("null") => Self::NULL,
            Some("boolean") => Self::BOOLEAN,
            Some("number" | "integer") => Self::NUMBER,
            Some("string") => Self::TEXT,
            Some("array") => Self::LIST,
            Some("object") => Self::MAP,
            _ => Self::ANY,
        };
        match schema.get("type") {
            Some(Value::Array(several)) => several.iter().map(named).fold(Self(0), Self::or),
            Some(name) => named(name),
            None => Self::ANY,
        }
    }

    /// Whether a value can be of both types.
    pub(crate) fn fits(self, other: Self) -> bool {
        !self.both(other).is_never()
    }

    fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    fn is_never(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (Self::BOOLEAN, "a boolean"),
            (Self::NUMBER, "a number"),
            (Self::TEXT, "a text"),
            (Self::LIST, "a list"),
            (Self::MAP, "a map"),
            (Self::NULL, "null"),
        ];
        let names: Vec<_> =
            kinds.iter().filter(|(kind, _)| !self.both(*kind).is_never()).map(|(_, name)| *name).collect();
        match names.split_last() {
            None => f.write_str("nothing"),
            Some((last, [])) => f.write_str(last),
            Some((last, names)) => write!(f, "{} or {last}", names.join(", ")),
        }
    }
}

pub(super) fn check(source: &str, root: &Node, types: &dyn Types, is_condition: bool) -> Vec<TypeProblem> {
    let mut checker = Checker { source, types, problems: Vec::new() };
    if is_condition {
        checker.expect(root, Type::BOOLEAN, "a condition");
    } else {
        checker.infer(root);
    }
    checker.problems
}

/// The type of the value of an expression. That of a wrong one is unknown.
pub(super) fn type_of(source: &str, root: &Node, types: &dyn Types) -> Type {
    let mut checker = Checker { source, types, problems: Vec::new() };
    let of = checker.infer(root);
    if checker.problems.is_empty() { of } else { Type::ANY }
}

struct Checker<'c> {
    source: &'c str,
    types: &'c dyn Types,
    problems: Vec<TypeProblem>,
}

impl Checker<'_> {
    /// The type of a node. That of a wrong node is unknown, so that one mistake is one problem.
    fn infer(&mut self, node: &Node) -> Type {
        match &node.kind {
            Kind::Literal(value) => Type::of(value),
            Kind::List(items) => {
                self.infer_all(items.iter());
                Type::LIST
            }
            Kind::Name(_) | Kind::Access(..) => self.path(node),
            Kind::Call(call) => self.call(call),
            Kind::Negate(operand) | Kind::Plus(operand) => {
                self.expect(operand, Type::NUMBER, "a sign");
                Type::NUMBER
            }
            Kind::Not(operand) => {
                self.expect(operand, Type::BOOLEAN, "`not`");
                Type::BOOLEAN
            }
            Kind::And(operands) | Kind::Or(operands) => {
                let place = if matches!(node.kind, Kind::And(_)) { "`and`" } else { "`or`" };
                for operand in operands {
                    self.expect(operand, Type::BOOLEAN, place);
                }
                Type::BOOLEAN
            }
            Kind::If(branches) => {
                self.expect(&branches.condition, Type::BOOLEAN, "the condition of `if`");
                self.infer(&branches.then).or(self.infer(&branches.otherwise))
            }
            Kind::Compare(first, rest) => {
                self.comparison(first, rest);
                Type::BOOLEAN
            }
            Kind::Arithmetic(first, rest) => self.arithmetic(first, rest),
        }
    }

    /// Finds the problems inside of nodes whose types do not matter.
    fn infer_all<'n>(&mut self, nodes: impl Iterator<Item = &'n Node>) {
        for node in nodes {
            self.infer(node);
        }
    }

    fn path(&mut self, node: &Node) -> Type {
        let Some((root, segments, is_whole)) = fixed(node) else {
            self.infer_all(node.children());
            return Type::ANY;
        };
        let base = usize::from(matches!(node.kind, Kind::Access(..)));
        self.infer_all(node.children().skip(base));
        if is_whole { self.types.type_of(root, &segments) } else { Type::ANY }
    }

    /// Reports a node that can never be of the type that `place` needs.
    fn expect(&mut self, node: &Node, expected: Type, place: &str) {
        let found = self.infer(node);
        if found.both(expected).is_never() {
            let written = node.written(self.source);
            self.report(node.span.start, format!("`{written}` is {found}, and {place} needs {expected}"));
        }
    }

    fn comparison(&mut self, first: &Node, rest: &[(Comparison, Node)]) {
        let (mut left, mut left_type) = (first, self.infer(first));
        for (comparison, right) in rest {
            let right_type = self.infer(right);
            let pair = [(left.span, left_type), (right.span, right_type)];
            match comparison {
                Comparison::Equal | Comparison::NotEqual => {}
                Comparison::In | Comparison::NotIn => self.membership(pair),
                _ if left_type.both(right_type).both(Type::ORDERED).is_never() => {
                    self.pair(pair, "they have no order");
                }
                _ => {}
            }
            (left, left_type) = (right, right_type);
        }
    }

    fn membership(&mut self, pair: [(Span, Type); 2]) {
        let [(_, part), (_, whole)] = pair;
        if whole.both(Type::WHOLE).is_never() {
            self.pair(pair, "behind `in` stands a list, a text or a map");
        } else if whole.without(Type::NULL) == Type::TEXT && part.both(Type::TEXT).is_never() {
            self.pair(pair, "a text contains texts only");
        }
    }

    fn arithmetic(&mut self, first: &Node, rest: &[(Arithmetic, Node)]) -> Type {
        let (mut span, mut total) = (first.span, self.infer(first));
        for (arithmetic, right) in rest {
            let (fitting, what) = match arithmetic {
                Arithmetic::Add => (Type::ORDERED, "`+` takes two numbers, two texts or two lists"),
                _ => (Type::NUMBER, "arithmetic takes numbers"),
            };
            let right_type = self.infer(right);
            let result = total.both(right_type).both(fitting);
            if result.is_never() {
                self.pair([(span, total), (right.span, right_type)], what);
            }
            total = if result.is_never() { Type::ANY } else { result };
            span.end = right.span.end;
        }
        total
    }

    fn call(&mut self, call: &Call) -> Type {
        let function = call.function;
        let name = format!("`{}`", function.name());
        let (taken, result) = match function {
            Function::Min | Function::Max if call.arguments.len() > 1 => return self.extreme(call),
            Function::Default => {
                let value = self.infer(&call.arguments[0]);
                let otherwise = self.infer(&call.arguments[1]);
                return value.without(Type::NULL).or(otherwise);
            }
            Function::Len => (Type::WHOLE, Type::NUMBER),
            Function::Str => (Type::ANY, Type::TEXT),
            Function::Int | Function::Float => (Type::NUMBER.or(Type::TEXT).or(Type::BOOLEAN), Type::NUMBER),
            Function::Bool | Function::Has => (Type::ANY, Type::BOOLEAN),
            Function::Lower | Function::Upper | Function::Strip => (Type::TEXT, Type::TEXT),
            Function::Contains => (Type::WHOLE, Type::BOOLEAN),
            Function::StartsWith | Function::EndsWith | Function::Matches => (Type::TEXT, Type::BOOLEAN),
            Function::Get => (Type::MAP.or(Type::LIST).or(Type::TEXT).or(Type::NULL), Type::ANY),
            Function::Keys | Function::Values => (Type::MAP, Type::LIST),
            Function::Min | Function::Max => (Type::LIST, Type::ANY),
            Function::Sum => (Type::LIST, Type::NUMBER),
            Function::Round | Function::Abs => (Type::NUMBER, Type::NUMBER),
            Function::Any | Function::All => (Type::LIST, Type::BOOLEAN),
        };
        for (place, argument) in call.arguments.iter().enumerate() {
            let taken = match (place, function) {
                (0, _) => taken,
                (1, Function::StartsWith | Function::EndsWith | Function::Matches | Function::Strip) => {
                    Type::TEXT
                }
                (1, Function::Round) => Type::NUMBER,
                _ => Type::ANY,
            };
            self.expect(argument, taken, &name);
        }
        result
    }

    fn extreme(&mut self, call: &Call) -> Type {
        let mut before: Option<(Span, Type)> = None;
        for argument in &call.arguments {
            let this = (argument.span, self.infer(argument));
            let known = before.map_or(Type::ORDERED, |(_, known)| known);
            let common = known.both(this.1).both(Type::ORDERED);
            if common.is_never() {
                self.pair([before.unwrap_or(this), this], "they have no order");
                return Type::ANY;
            }
            before = Some((argument.span, common));
        }
        before.map_or(Type::ANY, |(_, known)| known)
    }

    fn pair(&mut self, pair: [(Span, Type); 2], what: &str) {
        let [(left, left_type), (right, right_type)] = pair;
        let written = |span: Span| &self.source[span.start..span.end];
        let message =
            format!("`{}` is {left_type} and `{}` is {right_type}; {what}", written(left), written(right));
        self.report(left.start, message);
    }

    fn report(&mut self, offset: usize, message: String) {
        self.problems.push(TypeProblem { offset, message });
    }
}
