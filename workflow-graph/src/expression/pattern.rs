//! Regular expressions of documents, bounded in length and in size when compiled. They search in linear time.

use regex::{Regex, RegexBuilder};

use super::PATTERN_CHARACTERS;

/// Bytes of a compiled regular expression, and of each cache of a search.
const PATTERN_BYTES: usize = 1 << 20;

/// Compiles a regular expression within the bounds of expressions. It searches in linear time.
pub(crate) fn pattern(pattern: &str) -> Result<Regex, String> {
    if pattern.chars().count() > PATTERN_CHARACTERS {
        return Err(format!("the regular expression has more than {PATTERN_CHARACTERS} characters"));
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES).nest_limit(64);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            "the regular expression is too large when compiled; repeat less in it".to_owned()
        }
        // Its last line says what is wrong; those before it draw where.
        error => {
            let message = error.to_string();
            let last = message.lines().next_back().unwrap_or_default().trim_start_matches("error: ");
            format!("{pattern:?} is no regular expression: {last}")
        }
    })
}
