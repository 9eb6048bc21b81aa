//! Renders templates: evaluates their expressions and writes the values into texts. It bounds the whole result, while
//! evaluations bound each value.

use std::io;

use serde_json::{Map, Value};

use crate::document::template::{Expression, Part, Template};
use crate::expression::{EvaluateError, RESULT_BYTES, Scope};

/// The value of a template. A text that is exactly one expression stands for the value of that.
pub(crate) fn render(template: &Template, scope: &dyn Scope) -> Result<Value, EvaluateError> {
    Renderer { scope, left: RESULT_BYTES }.value(template)
}

/// The value of a template as a text: texts as they are, everything else as JSON.
pub(crate) fn render_text(template: &Template, scope: &dyn Scope) -> Result<String, EvaluateError> {
    render(template, scope).map(text)
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// The most bytes of a number that no list or map holds, such as `-2.2250738585072014e-308`.
const LONGEST_NUMBER: usize = 24;

struct Renderer<'s> {
    scope: &'s dyn Scope,
    /// Bytes that the result may still have.
    left: usize,
}

impl Renderer<'_> {
    /// Templates are at most 64 deep, so it may recurse.
    fn value(&mut self, template: &Template) -> Result<Value, EvaluateError> {
        match template {
            // The bound of documents holds for it already.
            Template::Value(value) => Ok(value.clone()),
            Template::Expression(expression) => {
                let value = expression.parsed.evaluate_or_null(self.scope)?;
                let fits = self.left.checked_sub(size(&value));
                self.left = fits.ok_or_else(|| too_large(expression))?;
                Ok(value)
            }
            Template::Text(parts) => self.parts(parts).map(Value::String),
            Template::List(items) => items.iter().map(|item| self.value(item)).collect(),
            Template::Map(pairs) => {
                let mut map = Map::new();
                for (key, value) in pairs {
                    map.insert(key.to_string(), self.value(value)?);
                }
                Ok(Value::Object(map))
            }
        }
    }

    fn parts(&mut self, parts: &[Part]) -> Result<String, EvaluateError> {
        let mut whole = String::new();
        for part in parts {
            match part {
                Part::Literal(literal) => {
                    // Beyond the bound, the next expression reports it: a literal has no expression to name.
                    self.left = self.left.saturating_sub(literal.len());
                    whole.push_str(literal);
                }
                Part::Expression(expression) => {
                    let written = text(self.evaluate(expression)?);
                    let fits = self.left.checked_sub(written.len());
                    self.left = fits.ok_or_else(|| too_large(expression))?;
                    whole.push_str(&written);
                }
            }
        }
        Ok(whole)
    }

    fn evaluate(&self, expression: &Expression) -> Result<Value, EvaluateError> {
        expression.parsed.evaluate(self.scope)
    }
}

fn too_large(expression: &Expression) -> EvaluateError {
    EvaluateError {
        offset: 0,
        expression: expression.parsed.source().to_owned(),
        message: format!("with its value, the result is larger than {RESULT_BYTES} bytes"),
        operands: Vec::new(),
        remedy: Some("Write the part of it that is needed".to_owned()),
    }
}

/// Bytes of the value as JSON. A number counts as the longest.
fn size(value: &Value) -> usize {
    if let Value::Null | Value::Bool(_) | Value::Number(_) = value {
        return LONGEST_NUMBER;
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
