//! Values as such: their kinds, their short forms in messages, their sizes, and the budget of an evaluation. It computes
//! nothing with them.

use serde_json::Value;

use super::fault::Fault;
use super::{DEPTH, OPERATIONS, RESULT_BYTES};

/// Characters of a value in a message.
const SHOWN: usize = 60;

/// The work that an evaluation may still do.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { left: OPERATIONS }
    }

    pub(super) fn spend(&mut self, operations: usize) -> Result<(), Fault> {
        self.left = self.left.checked_sub(operations).ok_or_else(|| {
            Fault::new(format!("the evaluation needs more than {OPERATIONS} operations"))
                .remedy("Compute it in a function, or from smaller lists")
        })?;
        Ok(())
    }

    /// A pass over a text: one operation, and one more for each KiB.
    pub(super) fn read(&mut self, text: &str) -> Result<(), Fault> {
        self.spend(1 + text.len() / 1024)
    }

    /// A copy of a value: one operation for each value in it, and for each KiB.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Size, Fault> {
        let size = measure(value)?;
        self.spend(size.values + size.bytes / 1024)?;
        Ok(size)
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) values: usize,
    /// About as many as its JSON has.
    pub(super) bytes: usize,
}

/// The size of a value, which errs beyond the bounds of results.
pub(super) fn measure(value: &Value) -> Result<Size, Fault> {
    let mut size = Size::default();
    add_size(value, &mut size, 1)?;
    Ok(size)
}

fn add_size(value: &Value, size: &mut Size, depth: usize) -> Result<(), Fault> {
    check_depth(depth)?;
    size.values += 1;
    size.bytes += match value {
        Value::String(text) => text.len() + 2,
        Value::Number(_) => 8,
        Value::Null | Value::Bool(_) => 4,
        Value::Array(_) | Value::Object(_) => 2,
    };
    check_bytes(size.bytes)?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| add_size(item, size, depth + 1)),
        Value::Object(map) => map.iter().try_for_each(|(key, item)| {
            size.bytes += key.len() + 4;
            add_size(item, size, depth + 1)
        }),
        _ => Ok(()),
    }
}

pub(super) fn check_bytes(bytes: usize) -> Result<(), Fault> {
    if bytes <= RESULT_BYTES {
        return Ok(());
    }
    Err(Fault::new(format!("a value is larger than {RESULT_BYTES} bytes")).remedy("Compute it in a function"))
}

/// Values may come deeper than any recursion over them should go.
pub(super) fn check_depth(depth: usize) -> Result<(), Fault> {
    if depth <= DEPTH {
        return Ok(());
    }
    Err(Fault::new(format!("a value is nested deeper than {DEPTH} levels"))
        .remedy("Read the part that is needed"))
}

/// The kind of a value, with its article.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// A value as JSON, cut to about a line. Its cost does not grow with the value.
pub(crate) fn short(value: &Value) -> String {
    let mut out = String::new();
    write_short(value, &mut out, SHOWN, 0);
    out
}

/// Writes at most about `limit` bytes: beyond it, items are left out.
fn write_short(value: &Value, out: &mut String, limit: usize, depth: usize) {
    match value {
        Value::String(text) => write_text(text, out, limit),
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Object(map) if map.is_empty() => out.push_str("{}"),
        Value::Array(_) if depth > 3 => out.push_str("[…]"),
        Value::Object(_) if depth > 3 => out.push_str("{…}"),
        Value::Array(items) => {
            let shown = |item: &Value, out: &mut String| write_short(item, out, limit, depth + 1);
            write_items(items.iter(), ['[', ']'], out, limit, shown);
        }
        Value::Object(map) => {
            let shown = |(key, item): (&String, &Value), out: &mut String| {
                write_text(key, out, limit);
                out.push_str(": ");
                write_short(item, out, limit, depth + 1);
            };
            write_items(map.iter(), ['{', '}'], out, limit, shown);
        }
        other => out.push_str(&other.to_string()),
    }
}

fn write_items<T>(
    mut items: impl ExactSizeIterator<Item = T>,
    brackets: [char; 2],
    out: &mut String,
    limit: usize,
    write: impl Fn(T, &mut String),
) {
    out.push(brackets[0]);
    let all = items.len();
    let mut shown = 0;
    while shown < all && (shown == 0 || out.len() < limit) {
        out.push_str(if shown == 0 { "" } else { ", " });
        items.next().into_iter().for_each(|item| write(item, out));
        shown += 1;
    }
    if shown < all {
        out.extend([", … ", &(all - shown).to_string(), " more"]);
    }
    out.push(brackets[1]);
}

fn write_text(text: &str, out: &mut String, limit: usize) {
    let room = limit.saturating_sub(out.len()).max(8);
    let cut = text.char_indices().nth(room).map(|(end, _)| &text[..end]);
    out.push_str(&Value::from(cut.unwrap_or(text)).to_string());
    if cut.is_some() {
        out.pop();
        out.push_str("…\"");
    }
}
