//! Equality, order and membership of values. Chains and short circuit are the evaluator's.

use std::cmp::Ordering;

use serde_json::Value;

use super::fault::Fault;
use super::number::Number;
use super::tree::Comparison;
use super::value::{Budget, check_depth, kind};

/// A value that is not there equals null. The caller refuses one beside operators other than `==` and `!=`.
pub(super) fn compare(
    a: &Value,
    comparison: Comparison,
    b: &Value,
    budget: &mut Budget,
) -> Result<bool, Fault> {
    match comparison {
        Comparison::Equal => equal(a, b, budget),
        Comparison::NotEqual => Ok(!equal(a, b, budget)?),
        Comparison::In => contains(b, a, budget),
        Comparison::NotIn => Ok(!contains(b, a, budget)?),
        Comparison::Less => Ok(order(a, b, budget)?.is_lt()),
        Comparison::LessEqual => Ok(order(a, b, budget)?.is_le()),
        Comparison::Greater => Ok(order(a, b, budget)?.is_gt()),
        Comparison::GreaterEqual => Ok(order(a, b, budget)?.is_ge()),
    }
}

/// Values of different types are different; integers and floats are one type.
pub(super) fn equal(a: &Value, b: &Value, budget: &mut Budget) -> Result<bool, Fault> {
    equal_at(a, b, budget, 1)
}

fn equal_at(a: &Value, b: &Value, budget: &mut Budget, depth: usize) -> Result<bool, Fault> {
    check_depth(depth)?;
    budget.spend(1)?;
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Ok(Number::of(a)?.compare(Number::of(b)?).is_eq()),
        (Value::String(a), Value::String(b)) => {
            budget.read(if a.len() == b.len() { a } else { "" })?;
            Ok(a == b)
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            all(a.iter().zip(b), |(a, b)| equal_at(a, b, budget, depth + 1))
        }
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => all(a, |(key, a)| match b.get(key) {
            Some(b) => equal_at(a, b, budget, depth + 1),
            None => Ok(false),
        }),
        (Value::Null, Value::Null) => Ok(true),
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        _ => Ok(false),
    }
}

fn all<T>(
    items: impl IntoIterator<Item = T>,
    mut holds: impl FnMut(T) -> Result<bool, Fault>,
) -> Result<bool, Fault> {
    for item in items {
        if !holds(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Numbers by value, texts by character, lists by their first different items.
pub(super) fn order(a: &Value, b: &Value, budget: &mut Budget) -> Result<Ordering, Fault> {
    order_at(a, b, budget, 1)
}

fn order_at(a: &Value, b: &Value, budget: &mut Budget, depth: usize) -> Result<Ordering, Fault> {
    check_depth(depth)?;
    budget.spend(1)?;
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Ok(Number::of(a)?.compare(Number::of(b)?)),
        (Value::String(a), Value::String(b)) => {
            budget.read(if a.len() < b.len() { a } else { b })?;
            Ok(a.cmp(b))
        }
        (Value::Array(a), Value::Array(b)) => {
            for (a, b) in a.iter().zip(b) {
                if !equal_at(a, b, budget, depth + 1)? {
                    return order_at(a, b, budget, depth + 1);
                }
            }
            Ok(a.len().cmp(&b.len()))
        }
        _ => Err(unordered(a, b)),
    }
}

fn unordered(a: &Value, b: &Value) -> Fault {
    let fault = Fault::new(format!("{} and {} have no order", kind(a), kind(b)));
    match (a, b) {
        (Value::String(_), Value::Number(_)) | (Value::Number(_), Value::String(_)) => {
            fault.remedy("Convert one of them, with `float(text)` or `str(number)`")
        }
        (Value::Null, _) | (_, Value::Null) => {
            fault.remedy("Test for null before, or use `default(value, otherwise)`")
        }
        _ => fault.remedy("Order numbers, texts or lists, each with its own kind"),
    }
}

/// Whether a list has an item, a text a part, or a map a key.
pub(super) fn contains(whole: &Value, part: &Value, budget: &mut Budget) -> Result<bool, Fault> {
    budget.spend(1)?;
    match (whole, part) {
        (Value::Array(items), part) => {
            for item in items {
                if equal(item, part, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Value::String(text), Value::String(part)) => {
            budget.read(text)?;
            Ok(text.contains(part))
        }
        (Value::Object(map), Value::String(key)) => Ok(map.contains_key(key)),
        (Value::Object(_), Value::Null | Value::Bool(_) | Value::Number(_)) => Ok(false),
        (Value::String(_), part) => {
            Err(Fault::new(format!("a text contains texts only, and {} is none", kind(part)))
                .remedy("Convert it with `str`"))
        }
        (Value::Object(_), part) => {
            Err(Fault::new(format!("the keys of a map are texts, and {} is none", kind(part)))
                .remedy("Name a key"))
        }
        (whole, _) => Err(Fault::new(format!("{} contains nothing", kind(whole)))
            .remedy("Behind `in` stands a list, a text or a map")),
    }
}
