//! Places in JSON, as errors name them.

use std::fmt::Write as _;

/// The most segments of a path that an error shows.
const MOST_SEGMENTS: usize = 24;

/// The segment of a path: the entry of a list or an object. A list or an object without entries has an empty key.
pub(super) enum Segment<'a> {
    Index(usize),
    Key(&'a str),
}

/// The path with these segments, as in `lines[3].price`; empty for the whole value.
pub(super) fn path<'a>(mut segments: impl Iterator<Item = Segment<'a>>) -> String {
    let mut path = String::new();
    for segment in segments.by_ref().take(MOST_SEGMENTS) {
        // Writing to a text does not fail.
        let _ = match segment {
            Segment::Index(index) => write!(path, "[{index}]"),
            Segment::Key("") => Ok(()),
            Segment::Key(key) if path.is_empty() => path.write_str(key),
            Segment::Key(key) => write!(path, ".{key}"),
        };
    }
    if segments.next().is_some() {
        path.push('…');
    }
    path
}

/// The path of the value at which a reader of this JSON fails, if it fails on each text that has the JSON up to that
/// value's end. So no reader needs to know where it is, and only a failure costs anything: about twenty readings.
pub(crate) fn failing_at(text: &str, fails: impl Fn(&str) -> bool) -> String {
    let (mut passes, mut fails_from) = (0, text.len());
    while passes + 1 < fails_from {
        let middle = passes.midpoint(fails_from);
        let start = text.get(..text.floor_char_boundary(middle)).unwrap_or_default();
        if fails(start) {
            fails_from = middle;
        } else {
            passes = middle;
        }
    }
    path_at(text.get(..text.floor_char_boundary(fails_from)).unwrap_or_default())
}

/// What is open at a place in JSON.
enum Open<'a> {
    List(usize),
    Object(&'a str),
}

/// The path of the value with which this start of a JSON text ends.
fn path_at(start: &str) -> String {
    let mut open = Vec::new();
    let (mut text_begins, mut escaped) = (None, false);
    let mut is_key = false;
    for (at, byte) in start.bytes().enumerate() {
        if let Some(begins) = text_begins {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    if let (true, Some(Open::Object(key))) = (is_key, open.last_mut()) {
                        *key = start.get(begins..at).unwrap_or_default();
                    }
                    text_begins = None;
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => text_begins = Some(at + 1),
            b'[' => open.push(Open::List(0)),
            b'{' => open.push(Open::Object("")),
            b']' | b'}' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::List(index)) => *index += 1,
                Some(Open::Object(key)) => *key = "",
                None => {}
            },
            _ => {}
        }
        is_key = match byte {
            b'{' => true,
            b',' => matches!(open.last(), Some(Open::Object(_))),
            b':' | b'[' => false,
            _ => is_key,
        };
    }
    path(open.iter().map(|open| match open {
        Open::List(index) => Segment::Index(*index),
        Open::Object(key) => Segment::Key(key),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_by_the_value_that_ends_there() {
        let text = r#"{"a":1,"lines":[{"price":2,"né\"]":[true,{}]},[]],"b":"x"}"#;
        for (ends, path) in [
            (r#"{"a":1"#, "a"),
            (r#"{"a":1,"#, ""),
            (r#""price":2"#, "lines[0].price"),
            ("[true", r#"lines[0].né\"][0]"#),
            ("{}", r#"lines[0].né\"][1]"#),
            ("{}]", r#"lines[0].né\"]"#),
            ("{}]}", "lines[0]"),
            ("[]", "lines[1]"),
            ("[]]", "lines"),
            (r#""x"#, "b"),
            (r#""x"}"#, ""),
        ] {
            let at = text.find(ends).unwrap() + ends.len();
            assert_eq!(path_at(&text[..at]), path, "{ends}");
            assert_eq!(failing_at(text, |start| start.len() >= at), path, "{ends}");
        }
        assert_eq!(failing_at("7", |_| true), "");
        assert_eq!(failing_at("", |_| true), "");
    }

    #[test]
    fn a_long_path_is_cut() {
        let deep = "[".repeat(MOST_SEGMENTS + 1);
        assert_eq!(path_at(&deep), "[0]".repeat(MOST_SEGMENTS) + "…");
        assert_eq!(path_at(&deep[1..]), "[0]".repeat(MOST_SEGMENTS));
    }
}
