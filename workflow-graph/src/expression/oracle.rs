//! Compares expressions with Python: random ones over random values, both sides the same result or both an error.
//!
//! A Python process parses each expression with its own grammar, and computes with its own operators. Before each
//! operator it applies what G36 decides otherwise than Python, and nothing else:
//!
//! - an integer beyond 64 bits, a float that is not finite: an error;
//! - booleans are no numbers: they differ from 0 and 1, have no order, no arithmetic, and index nothing;
//! - `*` repeats and `%` formats no texts; tuples are lists; `is` compares;
//! - `and`, `or`, `not`, `if`, `any` and `all` take booleans only, but in Hive documents;
//! - a missing key or item is a value that equals null, and an error elsewhere; keys of null are missing;
//! - keys of maps are in alphabetical order; `strip`, `matches` and others are functions, and methods.
//!
//! A plain run compares 2,000 expressions; `EXPRESSIONS=100000` sets another number, and `EXPRESSIONS_SEED` the seed.

mod random;
mod values;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::Expression;
use random::Source;
use values::scope;

/// G35 G36 HV11
#[test]
#[expect(clippy::print_stderr, reason = "the figures of a long run")]
fn expressions_have_the_values_that_python_gives_them() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let count = variable("EXPRESSIONS").unwrap_or(2_000);
    let seed = variable("EXPRESSIONS_SEED").unwrap_or_else(|| fastrand::u64(..));
    let mut rng = Rng::with_seed(seed);
    let mut python = Command::new("python3")
        .args(["-W", "ignore", "-c", include_str!("oracle/oracle.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let mut input = python.stdin.take().unwrap();
    let mut output = BufReader::new(python.stdout.take().unwrap()).lines();
    let mut values = 0;
    let written = |value: &Value| value.to_string();
    for number in 0..count {
        let scope = scope(&mut rng);
        let is_hive = rng.u8(..4) == 0;
        let (ours, theirs) = Source::random(&mut rng);
        writeln!(input, "{}", json!({"source": theirs, "scope": scope, "hive": is_hive})).unwrap();
        let answer: Value = serde_json::from_str(&output.next().expect("Python answers").unwrap()).unwrap();
        let found = evaluate(&ours, &scope, is_hive);
        let expected = answer.get("value").cloned();
        let is_same = match (&found, &expected) {
            // As text, since 1 and 1.0 differ, and so do the two zeros.
            (Ok(found), Some(expected)) => written(found) == written(expected),
            (Err(_), None) => true,
            _ => false,
        };
        values += u64::from(found.is_ok());
        let python = &answer;
        let seeded = format!("seed {seed}, number {number}, hive {is_hive}");
        assert!(
            is_same,
            "{seeded}\n{ours}\n{theirs}\nscope {scope}\nfound {found:?}\nPython {python}",
            scope = json!(scope)
        );
    }
    drop(input);
    assert!(python.wait().unwrap().success());
    // An oracle that agrees on errors alone would compare nothing.
    assert!(values * 3 > count, "only {values} of {count} expressions had values, seed {seed}");
    if variable("EXPRESSIONS").is_some() {
        eprintln!("{count} expressions agree with Python, {values} of them have values, seed {seed}");
    }
}

fn evaluate(source: &str, scope: &Map<String, Value>, is_hive: bool) -> Result<Value, String> {
    let expression = Expression::parse(source).map_err(|error| error.to_string())?;
    if is_hive {
        expression.evaluate_hive_condition(scope).map(Value::from).map_err(|error| error.to_string())
    } else {
        expression.evaluate(scope).map_err(|error| error.to_string())
    }
}
