//! Expressions of documents: conditions, checks and the insides of templates. This file owns their interface. It knows no
//! document: a [`Scope`] gives names their values, [`Types`] gives paths their types.

mod lex;
mod escape;
mod number;
mod value;
mod convert;
mod functions;
mod pattern;
mod calls;
mod tree;
mod parse;
mod reads;
mod fault;
mod eval;
mod compare;
mod path;
mod types;
mod excluded;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use excluded::Excluded;
pub(crate) use fault::{BadExpression, EvaluateError};
pub(crate) use pattern::pattern;
pub(crate) use reads::{Read, Segment};
pub(crate) use types::{Type, TypeProblem, Types};
pub(crate) use value::short;

use eval::{Evaluator, Rules};
use tree::Node;

/// Bytes of a source.
pub(crate) const SOURCE_BYTES: usize = 4096;
/// Levels of nesting, of sources and of values.
pub(crate) const DEPTH: usize = 64;
/// Operations of one evaluation.
pub(crate) const OPERATIONS: usize = 100_000;
/// Bytes of a result, as JSON.
pub(crate) const RESULT_BYTES: usize = 1 << 20;
/// Regular expressions that one expression may have as literals.
pub(crate) const PATTERNS: usize = 16;
/// Characters of a regular expression.
pub(crate) const PATTERN_CHARACTERS: usize = 1000;

/// The values of names.
pub(crate) trait Scope {
    /// The value of a name, or nothing if it has none.
    fn get(&self, name: &str) -> Option<Cow<'_, Value>>;
}

/// The keys of a map as names.
impl Scope for serde_json::Map<String, Value> {
    fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.get(name).map(Cow::Borrowed)
    }
}

/// A parsed expression. Equal sources are equal expressions.
#[derive(Clone)]
pub(crate) struct Expression {
    parsed: Arc<Parsed>,
}

struct Parsed {
    source: Box<str>,
    root: Node,
}

impl Expression {
    pub(crate) fn parse(source: &str) -> Result<Self, BadExpression> {
        let root = parse::parse(source)?;
        Ok(Self { parsed: Arc::new(Parsed { source: source.into(), root }) })
    }

    /// The expression `null`.
    pub(crate) fn null() -> Self {
        let root =
            Node { span: tree::Span { start: 0, end: 4 }, height: 1, kind: tree::Kind::Literal(Value::Null) };
        Self { parsed: Arc::new(Parsed { source: "null".into(), root }) }
    }

    pub(crate) fn source(&self) -> &str {
        &self.parsed.source
    }

    /// The paths that it reads, each once, in the order of their first occurrence.
    pub(crate) fn reads(&self) -> Vec<Read> {
        reads::reads(&self.parsed.root)
    }

    pub(crate) fn evaluate(&self, scope: &dyn Scope) -> Result<Value, EvaluateError> {
        self.evaluator(scope, Rules::Native).value(&self.parsed.root)
    }

    /// The same where a path that is missing stands for null: as a value of its own, not as an operand.
    pub(crate) fn evaluate_or_null(&self, scope: &dyn Scope) -> Result<Value, EvaluateError> {
        self.evaluator(scope, Rules::Native).value_or_null(&self.parsed.root)
    }

    /// Whether it holds. Its value must be true or false.
    pub(crate) fn evaluate_condition(&self, scope: &dyn Scope) -> Result<bool, EvaluateError> {
        self.evaluator(scope, Rules::Native).condition(&self.parsed.root)
    }

    /// Whether it holds in a Hive document: empty values count as false, and a missing value is an error even beside
    /// `==`. (HV11)
    pub(crate) fn evaluate_hive_condition(&self, scope: &dyn Scope) -> Result<bool, EvaluateError> {
        self.evaluator(scope, Rules::Hive).condition(&self.parsed.root)
    }

    /// The values of its paths, each as written and once, in the order of their first occurrence. A path that is
    /// missing or fails has no value. In place of a value beyond the bound of results stands its short form, as text.
    pub(crate) fn values(&self, scope: &dyn Scope) -> Vec<(String, Option<Value>)> {
        // All share the work of one evaluation.
        let mut evaluator = self.evaluator(scope, Rules::Native);
        let mut seen = Vec::<(String, Option<Value>)>::new();
        for node in reads::paths(&self.parsed.root) {
            let written = node.written(self.source());
            if !seen.iter().any(|(path, _)| path == written) {
                seen.push((written.to_owned(), evaluator.seen(node)));
            }
        }
        seen
    }

    /// Where a path of it that is missing ends: the last value on it that is there, in words.
    pub(crate) fn end_of(&self, path: &str, scope: &dyn Scope) -> Option<String> {
        let mut paths = reads::paths(&self.parsed.root).into_iter();
        let node = paths.find(|node| node.written(self.source()) == path)?;
        self.evaluator(scope, Rules::Native).last_found(node)
    }

    /// Operands that can never fit. Unknown types fit.
    pub(crate) fn check_types(&self, types: &dyn Types) -> Vec<TypeProblem> {
        types::check(self.source(), &self.parsed.root, types, false)
    }

    /// The same for a condition, which must be true or false.
    pub(crate) fn check_condition_types(&self, types: &dyn Types) -> Vec<TypeProblem> {
        types::check(self.source(), &self.parsed.root, types, true)
    }

    /// Literals that are compared with what they never equal.
    pub(crate) fn excluded<'e>(&'e self, types: &'e dyn Types) -> Vec<Excluded<'e>> {
        excluded::excluded(self.source(), &self.parsed.root, types)
    }

    /// The type of its value, as far as it is known.
    pub(crate) fn type_in(&self, types: &dyn Types) -> Type {
        types::type_of(self.source(), &self.parsed.root, types)
    }

    fn evaluator<'s>(&'s self, scope: &'s dyn Scope, rules: Rules) -> Evaluator<'s> {
        Evaluator::new(self.source(), scope, rules)
    }
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Expression").field(&self.source()).finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source() == other.source()
    }
}

impl Eq for Expression {}
