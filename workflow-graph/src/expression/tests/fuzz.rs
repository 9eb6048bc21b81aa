//! Any text, as expressions. A plain run tries some thousands; `BOLERO_RANDOM_ITERATIONS` and
//! `BOLERO_RANDOM_TEST_TIME_MS` set more.

use std::time::Duration;

use super::data;
use crate::expression::{Expression, Segment, Type, Types};

const WORDS: [&str; 48] = [
    "a",
    "m",
    "list",
    "s",
    "none",
    "zz",
    "yes",
    ".",
    ".b",
    "[",
    "]",
    "(",
    ")",
    ",",
    "0",
    "1",
    "-1",
    "2.5",
    "1e400",
    "'a'",
    "\"",
    "'",
    "\\",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "==",
    "<",
    ">=",
    "in",
    "not",
    "is",
    "and",
    "||",
    "!",
    "if",
    "else",
    "has(",
    "default(",
    "get(",
    "len(",
    ".lower()",
    "round(",
    "9223372036854775807",
    "é",
];

/// Every second path is a number.
struct Numbers;

impl Types for Numbers {
    fn type_of(&self, root: &str, segments: &[Segment]) -> Type {
        if (root.len() + segments.len()).is_multiple_of(2) { Type::NUMBER } else { Type::ANY }
    }
}

fn try_source(source: &str) {
    match Expression::parse(source) {
        Err(error) => assert!(error.offset <= source.len() && !error.message.is_empty()),
        Ok(expression) => {
            let scope = data();
            for error in [expression.evaluate(&scope).err(), expression.evaluate_hive_condition(&scope).err()]
                .into_iter()
                .flatten()
            {
                // The part of the source is where the error says it is.
                assert!(source[error.offset..].starts_with(&error.expression));
            }
            let reads = expression.reads();
            assert!(reads.iter().all(|read| {
                source[read.offset..].trim_start_matches(['(', ' ', '\t', '\r', '\n']).starts_with(&read.root)
            }));
            let values = expression.values(&scope);
            assert!(reads.len() <= values.len());
            let _ = expression.check_types(&Numbers);
        }
    }
}

/// G37
#[test]
fn no_text_makes_the_parser_panic() {
    let check = bolero::check!().with_iterations(5_000).with_test_time(Duration::from_mins(1));
    check.with_type::<Vec<u8>>().for_each(|bytes| try_source(&String::from_utf8_lossy(bytes)));
}

/// G37
#[test]
fn no_sequence_of_tokens_makes_the_parser_panic() {
    let check = bolero::check!().with_iterations(20_000).with_test_time(Duration::from_mins(1));
    check.with_type::<Vec<u8>>().for_each(|bytes| {
        let words = bytes.iter().map(|byte| WORDS[usize::from(*byte) % WORDS.len()]);
        let source: Vec<_> = words.collect();
        try_source(&source.join(" "));
        try_source(&source.concat());
    });
}
