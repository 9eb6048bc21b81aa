//! Computes the functions. `has`, `default` and `get`, whose arguments may be missing, are the evaluator's.

use std::borrow::Cow;
use std::cmp::Ordering;

use regex::Regex;
use serde_json::Value;

use super::compare;
use super::convert;
use super::fault::Fault;
use super::functions::Function;
use super::number::{self, Number};
use super::pattern::pattern;
use super::tree::Arithmetic;
use super::value::{Budget, check_bytes, kind};

/// The cost of compiling a regular expression, in operations.
const PATTERN_OPERATIONS: usize = 1000;

pub(super) type Arguments<'a, 'v> = &'a [Cow<'v, Value>];

/// Calls a function whose arguments all have values. `truth` says whether an item of `any` and `all` holds.
pub(super) fn call(
    function: Function,
    arguments: Arguments<'_, '_>,
    compiled: Option<&Regex>,
    truth: &dyn Fn(&Value) -> Result<bool, Fault>,
    budget: &mut Budget,
) -> Result<Value, Fault> {
    budget.spend(1)?;
    let first = &*arguments[0];
    let second = arguments.get(1).map(|argument| &**argument);
    match (function, second) {
        (Function::Len, _) => length(first, budget),
        (Function::Str, _) => {
            budget.copy(first)?;
            convert::to_text(first).map(Value::String)
        }
        (Function::Int, _) => convert::to_integer(first),
        (Function::Float, _) => convert::to_float(first),
        (Function::Bool, _) => Ok(Value::Bool(convert::truth(first))),
        (Function::Contains, Some(part)) => compare::contains(first, part, budget).map(Value::Bool),
        (Function::Keys, _) => keys(first, budget),
        (Function::Values, _) => values(first, budget),
        (Function::Min, _) => extreme(function, arguments, Ordering::Less, budget),
        (Function::Max, _) => extreme(function, arguments, Ordering::Greater, budget),
        (Function::Sum, _) => sum(first, budget),
        (Function::Abs, _) => number_of(function, first)?.absolute().value(),
        (Function::Round, digits) => {
            number::round(number_of(function, first)?, digits.map(integer).transpose()?)?.value()
        }
        (Function::Any, _) => some(first, true, function, truth, budget),
        (Function::All, _) => some(first, false, function, truth, budget),
        _ => of_text(function, text(function, first)?, second, compiled, budget),
    }
}

fn of_text(
    function: Function,
    text: &str,
    second: Option<&Value>,
    compiled: Option<&Regex>,
    budget: &mut Budget,
) -> Result<Value, Fault> {
    budget.read(text)?;
    let second = second.map(|second| self::text(function, second)).transpose()?;
    match (function, second) {
        (Function::Lower, _) => Ok(text.to_lowercase().into()),
        (Function::Upper, _) => Ok(text.to_uppercase().into()),
        (Function::Strip, None) => Ok(text.trim_matches(convert::is_space).into()),
        (Function::Strip, Some(characters)) => {
            budget.spend(text.len().saturating_mul(characters.len()) / 1024)?;
            Ok(text.trim_matches(|c| characters.contains(c)).into())
        }
        (Function::StartsWith, Some(beginning)) => Ok(text.starts_with(beginning).into()),
        (Function::EndsWith, Some(end)) => Ok(text.ends_with(end).into()),
        (Function::Matches, Some(source)) => {
            let found = if let Some(compiled) = compiled {
                compiled.is_match(text)
            } else {
                budget.spend(PATTERN_OPERATIONS)?;
                pattern(source).map_err(Fault::new)?.is_match(text)
            };
            Ok(found.into())
        }
        _ => Err(Fault::new(format!("`{}` lacks an argument", function.name())).remedy(function.usage())),
    }
}

fn wrong(function: Function, expected: &str, found: &Value) -> Fault {
    let fault = Fault::new(format!("`{}` takes {expected}, and not {}", function.name(), kind(found)));
    match (expected, found) {
        (_, Value::Null) => fault.remedy("Test for null before, or use `default(value, otherwise)`"),
        ("a text", _) => fault.remedy("Convert it with `str`"),
        ("a number", Value::String(_)) => fault.remedy("Convert it with `float`"),
        _ => fault.remedy(function.usage()),
    }
}

fn text(function: Function, value: &Value) -> Result<&str, Fault> {
    value.as_str().ok_or_else(|| wrong(function, "a text", value))
}

fn list(function: Function, value: &Value) -> Result<&[Value], Fault> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong(function, "a list", value))
}

fn number_of(function: Function, value: &Value) -> Result<Number, Fault> {
    match value {
        Value::Number(number) => Number::of(number),
        other => Err(wrong(function, "a number", other)),
    }
}

fn integer(value: &Value) -> Result<i128, Fault> {
    match value {
        Value::Number(number) if !number.is_f64() => match Number::of(number)? {
            Number::Integer(integer) => Ok(integer),
            Number::Float(_) => Err(wrong(Function::Round, "an integer as its digits", value)),
        },
        other => Err(wrong(Function::Round, "an integer as its digits", other)),
    }
}

fn length(value: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    match value {
        Value::String(text) => {
            budget.read(text)?;
            Ok(text.chars().count().into())
        }
        Value::Array(items) => Ok(items.len().into()),
        Value::Object(map) => Ok(map.len().into()),
        other => Err(wrong(Function::Len, "a text, a list or a map", other)),
    }
}

fn keys(value: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    let map = value.as_object().ok_or_else(|| wrong(Function::Keys, "a map", value))?;
    budget.spend(map.len())?;
    check_bytes(map.keys().map(String::len).sum())?;
    Ok(convert::sorted_keys(map).into_iter().cloned().collect())
}

fn values(value: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    let map = value.as_object().ok_or_else(|| wrong(Function::Values, "a map", value))?;
    budget.copy(value)?;
    Ok(convert::sorted_keys(map).into_iter().map(|key| map[key].clone()).collect())
}

fn extreme(
    function: Function,
    arguments: Arguments<'_, '_>,
    wanted: Ordering,
    budget: &mut Budget,
) -> Result<Value, Fault> {
    let items: Vec<&Value> = match arguments {
        [one] => list(function, one)?.iter().collect(),
        several => several.iter().map(|item| &**item).collect(),
    };
    let mut items = items.into_iter();
    let Some(mut best) = items.next() else {
        let fault = Fault::new(format!("`{}` of an empty list has no value", function.name()));
        return Err(fault.remedy("Test `len(list) > 0` before"));
    };
    for item in items {
        if compare::order(item, best, budget)? == wanted {
            best = item;
        }
    }
    budget.copy(best)?;
    Ok(best.clone())
}

fn sum(value: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    let mut total = Number::Integer(0);
    for item in list(Function::Sum, value)? {
        budget.spend(1)?;
        total = match (total, number_of(Function::Sum, item)?) {
            // Only the whole sum has to fit: so many integers of 64 bits cannot exceed 128.
            (Number::Integer(a), Number::Integer(b)) => Number::Integer(a + b),
            (total, item) => total.calculate(Arithmetic::Add, item)?,
        };
    }
    total.value()
}

/// Whether an item is `wanted`: for `any`, one that holds; for `all`, one that does not.
fn some(
    value: &Value,
    wanted: bool,
    function: Function,
    truth: &dyn Fn(&Value) -> Result<bool, Fault>,
    budget: &mut Budget,
) -> Result<Value, Fault> {
    for item in list(function, value)? {
        budget.spend(1)?;
        if truth(item)? == wanted {
            return Ok(Value::Bool(wanted));
        }
    }
    Ok(Value::Bool(!wanted))
}
