//! The input of a run: JSON, `@` and a file of JSON, or `-` for the standard input.

use std::fs::File;
use std::io::{self, Read};

use serde_json::Value;

use crate::problem::Problem;

/// The most bytes of an input.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Whether the input is read from the standard input.
pub(crate) fn is_stdin(text: &str) -> bool {
    text == "-"
}

pub(crate) fn read(text: &str) -> Result<Value, Problem> {
    if is_stdin(text) {
        return parse(&all(&mut io::stdin().lock(), "the standard input")?, "the standard input");
    }
    match text.strip_prefix('@') {
        Some(path) => {
            let name = format!("`{path}`");
            let mut file = File::open(path).map_err(|error| unreadable(&name, &error))?;
            parse(&all(&mut file, &name)?, &name)
        }
        None => parse(text, "the input"),
    }
}

fn all(from: &mut dyn Read, name: &str) -> Result<String, Problem> {
    let mut text = String::new();
    // One byte more than is allowed, so that a longer input is noticed.
    from.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|error| unreadable(name, &error))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Problem::Wrong(format!("{name} has more than {MOST_BYTES} bytes")));
    }
    Ok(text)
}

fn unreadable(name: &str, error: &io::Error) -> Problem {
    Problem::Wrong(format!("{name} cannot be read: {error}"))
}

fn parse(text: &str, name: &str) -> Result<Value, Problem> {
    serde_json::from_str(text).map_err(|error| Problem::Wrong(format!("{name} is no JSON: {error}")))
}
