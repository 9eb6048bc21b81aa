//! Reads of expressions, and their guards.

use crate::expression::{Expression, Read, Segment};

fn reads(source: &str) -> Vec<Read> {
    Expression::parse(source).unwrap().reads()
}

/// Reads as `root/segment/segment`, with `?` behind those that are guarded.
fn shown(source: &str) -> String {
    let show = |read: Read| {
        let segments = read.segments.iter().map(|segment| match segment {
            Segment::Field(name) => format!("/{name}"),
            Segment::Index(place) => format!("/{place}"),
        });
        format!("{}{}{}", read.root, segments.collect::<String>(), if read.is_guarded { "?" } else { "" })
    };
    reads(source).into_iter().map(show).collect::<Vec<_>>().join(" ")
}

/// G7
#[test]
fn paths_are_read_up_to_the_first_computed_step() {
    assert_eq!(shown("a.b['c'][0][-1].d + a[b.c].d"), "a/b/c/0/-1/d a b/c");
    assert_eq!(shown("x.lower() == y.b.strip()"), "x y/b");
    assert_eq!(shown("(a if c else b).d"), "a c b");
    assert_eq!(shown("a.b + a.b + a['b']"), "a/b");
    assert_eq!(reads("1 + a.b")[0].offset, 4);
}

/// G7
#[test]
fn guards_are_has_default_get_and_conditions_before() {
    for (source, expected) in [
        ("has(a.b)", "a/b?"),
        ("default(a.b, c)", "a/b? c"),
        ("default(default(a, b), c)", "a? b? c"),
        ("a.get('b', c)", "a? c"),
        ("default(a[b], 0)", "a? b"),
        ("default(len(a), 0)", "a"),
        ("a.b == null", "a/b?"),
        ("a.b == c", "a/b c"),
        ("has(a) and a.b > 1", "a? a/b?"),
        ("has(a.b) and a.c > 1", "a/b? a/c"),
        ("has(a, 'b') and a.b > 1", "a? a/b?"),
        ("has(a) or a.b > 1", "a? a/b"),
        ("not has(a) or a.b > 1", "a? a/b?"),
        ("a != null and a.b > 1", "a? a/b?"),
        ("a is None or a.b > 1", "a? a/b?"),
        ("a.b if has(a) else a.c", "a/b? a? a/c"),
        ("not (a == null or b == null) and a.b > b.c", "a? b? a/b? b/c?"),
        ("has(a) and true or a.b", "a? a/b"),
        ("default(a, 0) + a", "a"),
    ] {
        assert_eq!(shown(source), expected, "{source}");
    }
}
