//! Random values for the names that expressions read.

use fastrand::Rng;
use serde_json::{Map, Value, json};

pub(super) fn scope(rng: &mut Rng) -> Map<String, Value> {
    let mut scope = Map::new();
    for name in ["n", "m", "k"] {
        scope.insert(name.to_owned(), number(rng));
    }
    for name in ["s", "t"] {
        scope.insert(name.to_owned(), text(rng).into());
    }
    scope.insert("b".to_owned(), rng.bool().into());
    scope.insert("none".to_owned(), Value::Null);
    scope.insert("ns".to_owned(), (0..rng.usize(..5)).map(|_| number(rng)).collect());
    scope.insert("ss".to_owned(), (0..rng.usize(..4)).map(|_| Value::from(text(rng))).collect());
    scope.insert("bs".to_owned(), (0..rng.usize(..4)).map(|_| Value::from(rng.bool())).collect());
    scope.insert("x".to_owned(), any_value(rng, 3));
    scope.insert(
        "d".to_owned(),
        json!({"a": number(rng), "b": text(rng), "c": {"a": any_value(rng, 2)}, "l": [1, [2, 3]]}),
    );
    scope
}

fn any_value(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(..if depth == 0 { 4 } else { 6 }) {
        0 => Value::Null,
        1 => rng.bool().into(),
        2 => number(rng),
        3 => text(rng).into(),
        4 => (0..rng.usize(..4)).map(|_| any_value(rng, depth - 1)).collect(),
        _ => {
            let kept = rng.u8(..8);
            let keys = ["a", "b", "c"].into_iter().enumerate().filter(|(place, _)| kept >> place & 1 == 1);
            keys.map(|(_, key)| (key.to_owned(), any_value(rng, depth - 1))).collect()
        }
    }
}

fn number(rng: &mut Rng) -> Value {
    match rng.u8(..10) {
        0..4 => rng.i64(-9..10).into(),
        4 => rng.i64(..).into(),
        5 => [i64::MAX, i64::MIN, i64::MAX - 1, 1 << 53, (1 << 53) + 1, -1][rng.usize(..6)].into(),
        6 => (rng.f64() * 10.0 - 5.0).into(),
        7 => [
            0.0,
            -0.0,
            0.5,
            1.5,
            2.5,
            -2.5,
            1e16,
            1e-5,
            1e300,
            9.007_199_254_740_992e15,
            0.1,
            123_456_789.125,
        ][rng.usize(..12)]
        .into(),
        8 => (f64::from(rng.i16(-400..400)) / [1.0, 2.0, 4.0, 1.0][rng.usize(..4)]).into(),
        _ => Some(f64::from_bits(rng.u64(..))).filter(|float| float.is_finite()).unwrap_or(1.0).into(),
    }
}

fn text(rng: &mut Rng) -> String {
    const TEXTS: [&str; 23] = [
        "",
        "a",
        "b",
        "abc",
        "Abc",
        " a ",
        "é",
        "größe",
        "日本",
        "😀x",
        "12",
        "-3",
        " 4_0 ",
        "1.5",
        "1e3",
        "it's",
        "\"",
        "a\nb",
        "\u{1f} x\u{a0}",
        "a.c",
        "\u{200b}\u{7f}",
        "ΑΣ",
        "\u{e0001}\u{ad}",
    ];
    let mut text = TEXTS[rng.usize(..TEXTS.len())].to_owned();
    if rng.u8(..5) == 0 {
        text += TEXTS[rng.usize(..TEXTS.len())];
    }
    text
}
