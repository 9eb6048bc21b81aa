//! Walks paths: keys of maps, items of lists, characters of texts. It reports where a path ends too early. It compares
//! nothing.

use std::borrow::Cow;

use serde_json::Value;

use super::eval::{Evaluated, Evaluator, Found};
use super::fault::{EvaluateError, Fault};
use super::tree::{Kind, Node, Span, Step, StepKind};
use super::value::{Budget, kind, short};

/// Keys that a message lists.
const LISTED: usize = 8;

#[derive(Debug, Clone, Copy)]
pub(super) enum Key<'a> {
    Field(&'a str),
    Value(&'a Value),
}

impl<'s> Evaluator<'s> {
    pub(super) fn access(
        &mut self,
        base: &'s Node,
        steps: &'s [Step],
        is_guarded: bool,
    ) -> Evaluated<Found<'s>> {
        let mut found = self.find(base, is_guarded)?;
        let mut end = base.span.end;
        for step in steps {
            let Some(whole) = found else { return Ok(None) };
            found = self.step(whole, Span { start: base.span.start, end }, step, is_guarded)?;
            end = step.end;
        }
        Ok(found)
    }

    /// One step from `whole`, which was written at `before`.
    fn step(
        &mut self,
        whole: Cow<'s, Value>,
        before: Span,
        step: &'s Step,
        is_guarded: bool,
    ) -> Evaluated<Found<'s>> {
        let span = Span { end: step.end, ..before };
        self.budget.spend(1).map_err(|fault| self.fail(span, fault, &[]))?;
        let index = match &step.kind {
            StepKind::Field(_) => None,
            StepKind::Index(node) => Some((node.span, self.eval(node)?)),
        };
        let key = match (&step.kind, &index) {
            (StepKind::Field(name), _) => Key::Field(name),
            (_, Some((_, index))) => Key::Value(index),
            (_, None) => Key::Value(&Value::Null),
        };
        // Only a failure needs to show the whole, and a look-up takes it.
        if let Err(fault) = check(&whole, key, is_guarded) {
            let mut operands = vec![(before, &*whole)];
            operands.extend(index.as_ref().map(|(span, index)| (*span, &**index)));
            return Err(self.fail(span, fault, &operands));
        }
        lookup(whole, key, is_guarded, &mut self.budget).map_err(|fault| self.fail(span, fault, &[]))
    }

    /// Reports which part of a path is missing, with the value before it.
    pub(super) fn missing(&mut self, node: &'s Node) -> EvaluateError {
        let fault = Fault::new(match self.last_found(node) {
            Some(there) => format!("the value is missing: {there}"),
            None => "the value is missing".to_owned(),
        });
        let remedy = "Test it with `has(path)`, or give another with `default(path, otherwise)`";
        self.fail(node.span, fault.remedy(remedy), &[])
    }

    /// The last value on a path that is missing, in words.
    pub(super) fn last_found(&mut self, node: &'s Node) -> Option<String> {
        let (base, steps) = match &node.kind {
            Kind::Access(base, steps) => (&**base, steps.as_slice()),
            Kind::Name(name) => return Some(format!("`{name}` has no value")),
            _ => return None,
        };
        let base_written = base.written(self.source);
        let Some(mut whole) = self.find(base, false).ok()? else {
            return Some(format!("`{base_written}` has no value"));
        };
        let mut before = base.span;
        for step in steps {
            let there = self.there(before, &whole);
            match self.step(whole, before, step, false).ok()? {
                Some(next) => whole = next,
                None => return Some(there),
            }
            before.end = step.end;
        }
        None
    }

    fn there(&self, span: Span, value: &Value) -> String {
        let written = &self.source[span.start..span.end];
        match value {
            Value::Object(map) if map.is_empty() => format!("`{written}` is an empty map"),
            Value::Object(map) => {
                let more = if map.len() > LISTED { ", …" } else { "" };
                let keys: Vec<_> =
                    map.keys().take(LISTED).map(|key| short(&Value::from(key.as_str()))).collect();
                let key = if map.len() == 1 { "key" } else { "keys" };
                format!("`{written}` has the {key} {}{more}", keys.join(", "))
            }
            Value::Array(items) => format!("`{written}` has {} items", items.len()),
            other => format!("`{written}` is {}", short(other)),
        }
    }
}

/// Whether a value has keys of this kind at all. Null has none, so all are missing. Under a guard, every value has them.
fn check(whole: &Value, key: Key<'_>, is_guarded: bool) -> Result<(), Fault> {
    let fits = match (whole, key) {
        (Value::Null, _) | (Value::Object(_), Key::Field(_) | Key::Value(Value::String(_))) => true,
        (Value::Array(_) | Value::String(_), Key::Value(Value::Number(index))) => !index.is_f64(),
        _ => false,
    };
    if fits || is_guarded {
        return Ok(());
    }
    let fault = Fault::new(match (whole, key) {
        (Value::Object(_), Key::Value(key)) => {
            format!("the keys of a map are texts, and this one is {}", kind(key))
        }
        (Value::Array(_) | Value::String(_), Key::Value(Value::Number(_))) => {
            "an index is an integer".to_owned()
        }
        (whole @ (Value::Array(_) | Value::String(_)), Key::Value(key)) => {
            format!("{} is indexed by integers, and this one is {}", kind(whole), kind(key))
        }
        (whole, _) => format!("{} has no keys", kind(whole)),
    });
    Err(match whole {
        Value::Array(_) => fault.remedy("Write `list[0]` for the first item, `list[-1]` for the last"),
        Value::Object(_) => fault.remedy("Convert it with `str`"),
        _ => fault.remedy("Test what it is before, or use `has(path)`"),
    })
}

pub(super) fn lookup<'s>(
    whole: Cow<'s, Value>,
    key: Key<'_>,
    is_guarded: bool,
    budget: &mut Budget,
) -> Result<Found<'s>, Fault> {
    check(&whole, key, is_guarded)?;
    let place = match key {
        Key::Field(_) => None,
        Key::Value(index) => index.as_i64(),
    };
    let name = match key {
        Key::Field(name) => Some(name),
        Key::Value(name) => name.as_str(),
    };
    Ok(match whole {
        Cow::Borrowed(Value::Object(map)) => name.and_then(|name| map.get(name)).map(Cow::Borrowed),
        Cow::Owned(Value::Object(mut map)) => name.and_then(|name| map.remove(name)).map(Cow::Owned),
        Cow::Borrowed(Value::Array(items)) => {
            at(place, items.len()).and_then(|at| items.get(at)).map(Cow::Borrowed)
        }
        Cow::Owned(Value::Array(mut items)) => {
            at(place, items.len()).map(|at| Cow::Owned(items.swap_remove(at)))
        }
        Cow::Borrowed(Value::String(text)) => character(text, place, budget)?,
        Cow::Owned(Value::String(text)) => character(&text, place, budget)?,
        _ => None,
    })
}

fn character<'s>(text: &str, place: Option<i64>, budget: &mut Budget) -> Result<Found<'s>, Fault> {
    budget.read(text)?;
    let at = at(place, text.chars().count());
    Ok(at.and_then(|at| text.chars().nth(at)).map(|c| Cow::Owned(Value::from(c.to_string()))))
}

/// A place from the beginning, or, if negative, from the end.
fn at(place: Option<i64>, length: usize) -> Option<usize> {
    let place = place?;
    let at = usize::try_from(place.unsigned_abs()).ok()?;
    let at = if place < 0 { length.checked_sub(at)? } else { at };
    (at < length).then_some(at)
}
