//! Values within a bound of bytes, as JSON: for questions to models, and for calls of tools in results. The largest parts give
//! way, and each says how large it was.

use std::io::{self, Write};

use serde_json::{Map, Value};

/// The map within `most` bytes. If it has more, every member has an equal share, and small ones leave the rest of theirs to the
/// others: a larger member becomes the begin of its text. Keys do not count.
pub(crate) fn members(map: Map<String, Value>, most: usize) -> Map<String, Value> {
    let sizes: Vec<usize> = map.values().map(size).collect();
    let Some(share) = share(&sizes, most) else { return map };
    let shortened = map.into_iter().map(|(key, value)| (key, begin(&value, share).unwrap_or(value)));
    shortened.collect()
}

/// The most that each of these sizes may have, so that together they have at most `most`. Nothing if they have no more.
pub(crate) fn share(sizes: &[usize], most: usize) -> Option<usize> {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let (mut left, count) = (most, sizes.len());
    for (place, size) in sizes.into_iter().enumerate() {
        let share = left / (count - place);
        if size > share {
            return Some(share);
        }
        left -= size;
    }
    None
}

/// The begin of a value's text with at most `most` bytes, and the size of the whole. Nothing if the value has no more.
pub(crate) fn begin(value: &Value, most: usize) -> Option<Value> {
    let whole = size(value);
    if whole <= most {
        return None;
    }
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let end = text.floor_char_boundary(most);
    Some(Value::String(format!("{}… (cut: {whole} bytes of JSON in all)", &text[..end])))
}

/// The begin of a text with at most `most` bytes, and its size. Nothing if it has no more.
pub(crate) fn begin_of(text: &str, most: usize) -> Option<String> {
    let end = text.floor_char_boundary(most);
    (end < text.len()).then(|| format!("{}… (cut: {} bytes in all)", &text[..end], text.len()))
}

/// The bytes of a value as JSON.
pub(crate) fn size(value: &Value) -> usize {
    let mut counter = Counter(0);
    // A value has JSON, and counting never fails.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// G13
    #[test]
    fn the_largest_members_give_way_and_small_ones_stay_whole() {
        let map = |value: Value| value.as_object().cloned().unwrap_or_default();
        let all = map(json!({"a": 1, "b": "x".repeat(50), "c": "é".repeat(100)}));
        assert_eq!(members(all.clone(), 1_000), all);
        let short = members(all.clone(), 101);
        assert_eq!((&short["a"], &short["b"]), (&all["a"], &begin(&all["b"], 50).unwrap()));
        assert_eq!(short["c"], format!("{}… (cut: 202 bytes of JSON in all)", "é".repeat(25)));
        assert_eq!(members(all, 0)["a"], "… (cut: 1 bytes of JSON in all)");
    }

    #[test]
    fn a_share_is_what_smaller_ones_leave() {
        assert_eq!(share(&[10, 20, 30], 60), None);
        assert_eq!(share(&[10, 20, 30], 59), Some(29));
        assert_eq!(share(&[1, 100, 100], 61), Some(30));
        assert_eq!(share(&[], 0), None);
    }
}
