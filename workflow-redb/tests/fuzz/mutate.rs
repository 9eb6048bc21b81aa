//! Mutations of journals and other JSON: of whole records, and of their parts.

use serde_json::{Value, json};

use crate::{Edit, few, pick};

/// Mutates a journal, also with records of others. Usually undoes what `fits` rejects: one unreadable record hides all
/// later ones.
pub(crate) fn journal(
    records: &mut Vec<Value>,
    others: &[Value],
    edits: &[Edit],
    fits: impl Fn(&Value) -> bool,
) {
    for edit in few(edits) {
        if records.is_empty() {
            return;
        }
        let (kind, at, to, with) = *edit;
        let (from, into) = (pick(at, records.len()), pick(to, records.len()));
        match kind % 16 {
            0 => drop(records.remove(from)),
            1 => records.insert(into, records[from].clone()),
            2 => records.swap(from, into),
            3 if with < 64 => records.truncate(from.max(1)),
            3 => records.insert(into, others[pick(at, others.len())].clone()),
            4 => {
                let moved = records.remove(from);
                records.insert(into.min(records.len()), moved);
            }
            5 => renumber(records),
            6 => shift_times(&mut records[from..], with),
            _ => {
                let before = records.clone();
                let changed = part_of_one(records, others, *edit);
                if with % 8 != 0 && !changed.is_none_or(|changed| fits(&records[changed])) {
                    *records = before;
                }
            }
        }
    }
}

/// Mutates a value that is no journal.
pub(crate) fn value(value: &mut Value, others: &[Value], edits: &[Edit]) {
    let mut values = vec![std::mem::take(value)];
    for edit in few(edits) {
        let _ = part_of_one(&mut values, others, *edit);
    }
    *value = values.swap_remove(0);
}

/// Renumbers events by order, so that missing or repeated ones are not detected by their positions.
fn renumber(records: &mut [Value]) {
    let mut next = 1_u64;
    for record in records {
        for kind in ["event_logged", "fan_out_gathered"] {
            if let Some(seq) = record.get_mut(kind).and_then(|record| record.get_mut("seq")) {
                *seq = json!(next);
                next += 1;
            }
        }
    }
}

/// Adds a short or very long time before records, or sets their clock back.
fn shift_times(records: &mut [Value], with: u8) {
    for record in records {
        let Some((_, body)) = record.as_object_mut().and_then(|kinds| kinds.iter_mut().next()) else {
            continue;
        };
        if let Some(seconds) = body.pointer_mut("/at/secs_since_epoch") {
            let was = seconds.as_u64().unwrap_or_default();
            *seconds = json!(match with % 6 {
                0 => was.saturating_add(60),
                1 => was.saturating_sub(3_600),
                2 => was.saturating_add(1 << 40).min(LATEST),
                3 => 0,
                4 => LATEST,
                _ => LATEST - 1,
            });
        }
    }
}

/// The last second that the clock of the system can show.
const LATEST: u64 = i64::MAX.unsigned_abs();

/// The place of a part: its value, path and name.
struct Part {
    value: usize,
    path: String,
    name: String,
}

/// Mutates a part of one of the values; returns which.
fn part_of_one(values: &mut [Value], others: &[Value], (kind, at, to, with): Edit) -> Option<usize> {
    // Tables have so many parts that they would get most mutations.
    let in_table = kind / 16 % 4 == 0;
    let mut parts = Vec::new();
    for (place, value) in values.iter().enumerate() {
        parts_of(value, "", "", &mut |path, name| {
            if in_table == path.contains("/table/shape/") || !has_table(value) {
                parts.push(Part { value: place, path: path.to_owned(), name: name.to_owned() });
            }
        });
    }
    // Chooses by name as often as by place: a part that occurs once counts as much as one in each record.
    if kind & 64 == 0 {
        let mut names: Vec<&str> = parts.iter().map(|part| &*part.name).collect();
        names.sort_unstable();
        names.dedup();
        let name = (*names.get(pick(at, names.len()))?).to_owned();
        parts.retain(|part| part.name == name);
    }
    let part = parts.get(pick(at.rotate_left(16), parts.len()))?;
    let like = if kind & 128 == 0 {
        same_name(values, others, &part.name, to)
    } else {
        anything(values, others, to)
    };
    let found = values.get_mut(part.value)?.pointer_mut(&part.path)?;
    change(found, like, to, with);
    Some(part.value)
}

fn has_table(value: &Value) -> bool {
    ["/run_started/table", "/run_resumed/table"].into_iter().any(|path| value.pointer(path).is_some())
}

/// Replaces a value by one of its kind, by a similar one, or by one of another kind.
fn change(value: &mut Value, like: Option<Value>, to: u32, with: u8) {
    match (with, like, &mut *value) {
        // Adds or replaces a member.
        (0..=39, Some(Value::Object(more)), Value::Object(members)) => {
            members.extend(more.into_iter().skip(usize::from(with / 8)).take(1));
            return;
        }
        (0..=79, Some(like), _) => {
            *value = like;
            return;
        }
        _ => {}
    }
    *value = match (value.take(), with % 16) {
        (_, 15) => Value::Null,
        (_, 14) => (0..[1, 100, 126, 127, 128, 200][pick(to, 6)]).fold(json!([]), |inner, _| json!([inner])),
        (Value::Number(was), 0..=12) => number(was.as_u64().unwrap_or_default(), to),
        (Value::Bool(was), _) => Value::Bool(!was),
        (Value::String(was), _) => Value::String(text(&was, to)),
        (Value::Array(mut items), kind) => {
            let at = pick(to, items.len());
            match kind % 4 {
                0 => items.clear(),
                1 if !items.is_empty() => drop(items.remove(at)),
                2 if !items.is_empty() => items.push(items[at].clone()),
                _ => items.reverse(),
            }
            Value::Array(items)
        }
        (Value::Object(mut members), _) => {
            let key = members.keys().nth(pick(to, members.len())).cloned();
            key.and_then(|key| members.remove(&key));
            Value::Object(members)
        }
        (_, 13) => json!(-1.5),
        (Value::Null | Value::Number(_), _) => json!({}),
    };
}

/// Numbers near overflow.
fn number(was: u64, which: u32) -> Value {
    let numbers = [
        0,
        1,
        2,
        3,
        was.wrapping_add(1),
        was.wrapping_sub(1),
        was.wrapping_mul(2),
        100_000,
        u64::from(u32::MAX) - 1,
        u64::from(u32::MAX),
        1 << 31,
        1 << 32,
        i64::MAX.unsigned_abs() - 1,
        i64::MAX.unsigned_abs(),
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];
    match pick(which, numbers.len() + 3) {
        17 => json!(-1),
        18 => json!(i64::MIN),
        19 => json!(f64::MAX),
        place => json!(numbers[place]),
    }
}

fn text(was: &str, which: u32) -> String {
    match which % 8 {
        0 => String::new(),
        1 => format!("{was}/{was}"),
        2 => format!("{was}.gathered"),
        3 => format!("{was}.failed"),
        4 => "\u{202e}\0\n\"`<x>".to_owned(),
        5 => was.chars().rev().collect(),
        6 => was.repeat(3),
        _ => format!("{was}-x1.1"),
    }
}

/// A part of the same name, from anywhere.
fn same_name(values: &[Value], others: &[Value], name: &str, which: u32) -> Option<Value> {
    let mut found = Vec::new();
    for value in values.iter().chain(others) {
        parts_of(value, "", "", &mut |path, other| {
            if other == name {
                found.extend(value.pointer(path).cloned());
            }
        });
    }
    (!found.is_empty()).then(|| found.swap_remove(pick(which, found.len())))
}

/// Some part of another value.
fn anything(values: &[Value], others: &[Value], which: u32) -> Option<Value> {
    let from = if which & 1 == 0 { values } else { others };
    let other = from.get(pick(which, from.len()))?;
    let mut paths = Vec::new();
    parts_of(other, "", "", &mut |path, _| paths.push(path.to_owned()));
    other.pointer(paths.get(pick(which.rotate_left(16), paths.len()))?).cloned()
}

/// Every part of a value, including the value itself, by path and name.
fn parts_of(value: &Value, path: &str, name: &str, found: &mut impl FnMut(&str, &str)) {
    found(path, name);
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                parts_of(item, &format!("{path}/{at}"), name, found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let step = key.replace('~', "~0").replace('/', "~1");
                parts_of(member, &format!("{path}/{step}"), key, found);
            }
        }
        _ => {}
    }
}
