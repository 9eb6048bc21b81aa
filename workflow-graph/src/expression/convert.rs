//! Conversions as Python's `str`, `int`, `float` and `bool` do them. Functions of texts and lists are elsewhere.

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::fault::Fault;
use super::number::Number;
use super::value::{check_bytes, check_depth, kind, short};

/// The truth of a value, as Python has it.
pub(super) fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => Number::of(number).is_ok_and(|number| !number.is_zero()),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

pub(super) fn to_text(value: &Value) -> Result<String, Fault> {
    if let Value::String(text) = value {
        return Ok(text.clone());
    }
    let mut out = String::new();
    write_inner(value, &mut out, 1)?;
    Ok(out)
}

/// A value as Python shows it inside a list.
fn write_inner(value: &Value, out: &mut String, depth: usize) -> Result<(), Fault> {
    check_depth(depth)?;
    check_bytes(out.len())?;
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => match Number::of(number)? {
            Number::Integer(integer) => out.push_str(&integer.to_string()),
            Number::Float(float) => out.push_str(&float_text(float)),
        },
        Value::String(text) => write_quoted(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_inner(item, out, depth + 1)?;
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, key) in sorted_keys(map).into_iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_quoted(key, out);
                out.push_str(": ");
                write_inner(&map[key], out, depth + 1)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// By name, and not as `serde_json` happens to store them: a feature that another crate enables must change no result.
pub(super) fn sorted_keys(map: &serde_json::Map<String, Value>) -> Vec<&String> {
    let mut keys: Vec<_> = map.keys().collect();
    keys.sort_unstable();
    keys
}

/// The shortest digits that read back as the same float, with an exponent where Python has one.
fn float_text(float: f64) -> String {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{float}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn write_quoted(text: &str, out: &mut String) {
    static PRINTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[^\p{C}\p{Z}]$").ok());
    let is_printed = |c: char| {
        let mut buffer = [0; 4];
        c == ' '
            || if c.is_ascii() {
                c.is_ascii_graphic()
            } else {
                PRINTED.as_ref().is_some_and(|printed| printed.is_match(c.encode_utf8(&mut buffer)))
            }
    };
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        // Writing to a text cannot fail.
        let _ = match c {
            '\\' => out.write_str("\\\\"),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            c if c == quote => write!(out, "\\{c}"),
            c if is_printed(c) => out.write_char(c),
            c if u32::from(c) < 0x100 => write!(out, "\\x{:02x}", u32::from(c)),
            c if u32::from(c) < 0x1_0000 => write!(out, "\\u{:04x}", u32::from(c)),
            c => write!(out, "\\U{:08x}", u32::from(c)),
        };
    }
    out.push(quote);
}

pub(super) fn to_integer(value: &Value) -> Result<Value, Fault> {
    match value {
        Value::Bool(truth) => Ok(Value::from(i64::from(*truth))),
        Value::Number(number) => Number::of(number)?.truncate()?.value(),
        Value::String(text) => {
            let digits = digits(text)
                .filter(|digits| digits.trim_start_matches(['+', '-']).bytes().all(|b| b.is_ascii_digit()));
            let Some(digits) = digits else { return Err(unread(value, "an integer")) };
            let integer = digits.parse::<i64>();
            integer.map(Value::from).map_err(|_| match digits.trim_start_matches(['+', '-']) {
                "" => unread(value, "an integer"),
                _ => Fault::new(super::lex::beyond(short(value))),
            })
        }
        _ => Err(unread(value, "an integer")),
    }
}

pub(super) fn to_float(value: &Value) -> Result<Value, Fault> {
    match value {
        Value::Bool(truth) => Ok(Value::from(f64::from(u8::from(*truth)))),
        Value::Number(number) => Number::Float(Number::of(number)?.float()).value(),
        Value::String(text) => {
            let is_number =
                |digits: &String| digits.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
            let float = digits(text).filter(is_number).and_then(|digits| digits.parse::<f64>().ok());
            Number::Float(float.ok_or_else(|| unread(value, "a number"))?).value()
        }
        _ => Err(unread(value, "a number")),
    }
}

/// The text without space around it and without `_` between digits.
fn digits(text: &str) -> Option<String> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let is_misplaced = |at: usize| !(is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)));
    if bytes.iter().enumerate().any(|(at, byte)| *byte == b'_' && is_misplaced(at)) {
        return None;
    }
    Some(text.replace('_', ""))
}

/// Space that `strip` removes: Python counts four more control characters.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn unread(value: &Value, what: &str) -> Fault {
    let found =
        if value.is_null() { "null".to_owned() } else { format!("{}, {},", kind(value), short(value)) };
    let fault = Fault::new(format!("{found} cannot be read as {what}"));
    fault.remedy("Test the value before, or give another with `default`")
}
