//! Templates: values whose texts contain expressions. It splits and parses them; it evaluates nothing.

use std::sync::Arc;

use serde_json::Value;

use super::source::Source;
use super::tree::{Kind, Text, Tree};
use crate::expression;
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

/// An expression, and where the document writes it.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    pub(crate) parsed: expression::Expression,
    /// The text that contains it, where that begins, and the byte of it where the expression begins.
    text: Text,
    at: At,
    offset: usize,
    /// Whether it could not be read, so that nothing is known of it.
    pub(crate) is_unread: bool,
}

impl Expression {
    /// Reads a text that is an expression as a whole.
    pub(crate) fn whole(text: &Text, at: At, source: Source<'_>, problems: &mut Problems) -> Option<Self> {
        Self::inside(text, at, (0, text.value.len()), source, problems)
    }

    /// Reads the bytes of a text that `range` says. Nothing, after a problem, if they are no expression.
    pub(crate) fn inside(
        text: &Text,
        at: At,
        range: (usize, usize),
        source: Source<'_>,
        problems: &mut Problems,
    ) -> Option<Self> {
        let written = &text.value[range.0..range.1];
        let offset = range.0 + (written.len() - written.trim_start().len());
        match expression::Expression::parse(written.trim()) {
            Ok(parsed) => Some(Self { parsed, text: text.clone(), at, offset, is_unread: false }),
            Err(error) => {
                let full = problems.is_full();
                let at = if full { at } else { source.locate(at, text, offset.saturating_add(error.offset)) };
                let remedy =
                    error.remedy.map_or("correct the expression".to_owned(), |remedy| continued(&remedy));
                let similar = error.similar.map(str::to_owned).into_iter().collect();
                problems.add_mended(Code::BadExpression, at, error.message, remedy, similar);
                None
            }
        }
    }

    /// Stands for an expression that could not be read.
    pub(crate) fn unread(at: At) -> Self {
        let text = Text { value: "".into(), span: (0, 0) };
        Self { parsed: expression::Expression::null(), text, at, offset: 0, is_unread: true }
    }

    /// Where byte `offset` of the expression stands in the file.
    pub(crate) fn locate(&self, source: Source<'_>, offset: usize, problems: &Problems) -> At {
        if problems.is_full() {
            return self.at;
        }
        source.locate(self.at, &self.text, self.offset.saturating_add(offset))
    }
}

/// A value with expressions in it.
#[derive(Debug, Clone)]
pub(crate) enum Template {
    /// No expression is in it.
    Value(Value),
    /// The text is exactly one expression, and stands for its value.
    Expression(Expression),
    /// Expressions are written into a text.
    Text(Vec<Part>),
    List(Vec<Template>),
    Map(Vec<(Arc<str>, Template)>),
}

/// A piece of a text.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Literal(Arc<str>),
    Expression(Expression),
}

impl Template {
    /// Reads `tree`, which is at most 64 deep, so that it may recurse.
    pub(crate) fn of(tree: &Tree, source: Source<'_>, problems: &mut Problems) -> Self {
        match &tree.kind {
            Kind::Text(text) => Self::of_text(text, tree.at, source, problems),
            Kind::List(items) => {
                let items: Vec<_> = items.iter().map(|item| Self::of(item, source, problems)).collect();
                if items.iter().all(|item| matches!(item, Self::Value(_))) {
                    return Self::Value(items.into_iter().map(Self::into_value).collect());
                }
                Self::List(items)
            }
            Kind::Map(pairs) => {
                let pairs: Vec<_> = pairs
                    .iter()
                    .map(|(key, value)| (key.name.clone(), Self::of(value, source, problems)))
                    .collect();
                if pairs.iter().all(|(_, value)| matches!(value, Self::Value(_))) {
                    let pairs = pairs.into_iter().map(|(key, value)| (key.to_string(), value.into_value()));
                    return Self::Value(pairs.collect());
                }
                Self::Map(pairs)
            }
            _ => Self::Value(tree.to_json()),
        }
    }

    /// The text, if it is one without expressions.
    pub(crate) fn fixed_text(&self) -> Option<&str> {
        match self {
            Self::Value(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            _ => Value::Null,
        }
    }

    /// Reads a text that stands at `at`.
    pub(crate) fn of_text(text: &Text, at: At, source: Source<'_>, problems: &mut Problems) -> Self {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = 0;
        while let Some(found) = text.value[rest..].find("${") {
            let dollar = rest + found;
            if text.value[rest..dollar].ends_with('$') {
                literal.push_str(&text.value[rest..dollar - 1]);
                literal.push_str("${");
                rest = dollar + 2;
                continue;
            }
            let start = dollar + 2;
            let Some(length) = end_of_expression(&text.value[start..]) else {
                parts.push(Part::Expression(Expression::unread(at)));
                problems.add(
                    Code::BadExpression,
                    source.locate(at, text, dollar),
                    "the expression that `${` begins has no `}`",
                    "close it, or write `$${` for the characters themselves",
                );
                rest = text.value.len();
                break;
            };
            literal.push_str(&text.value[rest..dollar]);
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal).into()));
            }
            let range = (start, start + length);
            // Where an expression is wrong, the document is refused, and the rest of the text is read for its problems.
            if length > expression::SOURCE_BYTES {
                problems.add(
                    Code::BadExpression,
                    source.locate(at, text, dollar),
                    format!(
                        "{length} bytes stand between `${{` and its `}}`, and an expression has at most {}",
                        expression::SOURCE_BYTES
                    ),
                    "if it is no expression, write `$${`; else compute parts of it in nodes of kind `value`",
                );
                parts.push(Part::Expression(Expression::unread(at)));
                rest = start + length + 1;
                continue;
            }
            let inside = Expression::inside(text, at, range, source, problems);
            parts.push(Part::Expression(inside.unwrap_or_else(|| Expression::unread(at))));
            rest = start + length + 1;
        }
        literal.push_str(&text.value[rest..]);
        if parts.is_empty() {
            return Self::Value(Value::String(literal));
        }
        if let ([Part::Expression(expression)], true) = (&parts[..], literal.is_empty()) {
            return Self::Expression(expression.clone());
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.into()));
        }
        Self::Text(parts)
    }

    /// Every expression, in the order of the file.
    pub(crate) fn expressions<'a>(&'a self, found: &mut Vec<&'a Expression>) {
        match self {
            Self::Value(_) => {}
            Self::Expression(expression) => found.push(expression),
            Self::Text(parts) => found.extend(parts.iter().filter_map(|part| match part {
                Part::Expression(expression) => Some(expression),
                Part::Literal(_) => None,
            })),
            Self::List(items) => items.iter().for_each(|item| item.expressions(found)),
            Self::Map(pairs) => pairs.iter().for_each(|(_, value)| value.expressions(found)),
        }
    }
}

/// A sentence as the rest of one.
fn continued(sentence: &str) -> String {
    let mut characters = sentence.chars();
    let first = characters.next().map(|first| first.to_lowercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

/// The byte of the `}` that ends an expression: texts inside of it may contain braces.
fn end_of_expression(text: &str) -> Option<usize> {
    let (mut quote, mut is_escaped, mut depth) = (None, false, 0_usize);
    for (index, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some(index),
            (None, '}') => depth -= 1,
            _ => {}
        }
    }
    None
}
