//! Text of a file to trees with locations: YAML 1.2 or JSON. It checks syntax and bounds, and nothing of the format.
//!
//! It reads the events of `granit-parser`, the parser below `serde-saphyr`: a serde front would hide where a merged key
//! is, and which keys stand twice.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, Span};

use super::source::Source;
use super::tree::{Key, Kind, Text, Tree};
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

mod build;
mod scalar;

use build::{Builder, Stop};

/// The largest file.
pub(crate) const MOST_BYTES: usize = 8 << 20;
/// The deepest nesting of lists and maps.
pub(crate) const MOST_DEPTH: usize = 64;
/// The longest key, in characters.
const LONGEST_KEY: usize = 64 << 10;
/// The most values of one file, copies by aliases included.
pub(crate) const MOST_VALUES: usize = 2_000_000;
/// The most bytes of text that aliases may copy.
pub(crate) const MOST_COPIED: usize = MOST_BYTES;

/// Reads the documents of a file. A document that is empty is left out.
///
/// Problems go to `problems`. Behind one that ends the reading nothing is known; the documents before it are returned.
pub(crate) fn read(source: Source<'_>, problems: &mut Problems) -> Documents {
    let text = source.text();
    if text.len() > MOST_BYTES {
        problems.add(
            Code::TooLarge,
            At { line: 1, column: 1 },
            format!("the file has more than the {MOST_BYTES} bytes that are read"),
            "split it into several documents",
        );
        return Documents { trees: Vec::new(), is_whole: false };
    }
    // JSON knows no bound of keys, and YAML one of 1,024 characters.
    let options = granit_parser::options! { emit_comments: false, simple_key_max_lookahead: LONGEST_KEY };
    let mut builder = Builder::new(problems);
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => {
                if let Err(Stop) = builder.event(event, span) {
                    return builder.cut();
                }
            }
            Err(error) => {
                let at = at(*error.marker());
                match unquoted(text, at) {
                    Some(found) => builder.syntax(
                        found,
                        "within `{…}` and `[…]`, YAML reads the brace of `${` as the begin of a map",
                        "quote the text: `\"${ … }\"`",
                    ),
                    None => builder.syntax(
                        at,
                        error.kind().to_string(),
                        "correct the YAML here, or quote the text",
                    ),
                }
                return builder.cut();
            }
        }
    }
    builder.whole()
}

/// The documents of a file.
pub(crate) struct Documents {
    pub(crate) trees: Vec<Tree>,
    /// Whether these are all.
    pub(crate) is_whole: bool,
}

/// The parser counts columns from 0.
fn at(marker: Marker) -> At {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    At { line: number(marker.line()).max(1), column: number(marker.col()).saturating_add(1) }
}

/// The first `${` without quotation marks in the line of an error of syntax, if it stands within braces or brackets.
fn unquoted(text: &str, at: At) -> Option<At> {
    let line = text.lines().nth(usize::try_from(at.line).ok()?.checked_sub(1)?)?;
    let (mut quote, mut is_inside, mut before) = (None, false, ' ');
    for (column, character) in line.chars().enumerate() {
        match (quote, character) {
            (Some(open), _) if character == open && before != '\\' => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '{') if before == '$' => {
                let column = u32::try_from(column).ok()?;
                return is_inside.then_some(At { line: at.line, column });
            }
            (None, '{' | '[') => is_inside = true,
            _ => {}
        }
        before = character;
    }
    None
}

fn bytes(span: Span) -> (u32, u32) {
    let number = |offset: Option<usize>| offset.and_then(|offset| u32::try_from(offset).ok()).unwrap_or(0);
    (number(span.start.byte_offset()), number(span.end.byte_offset()))
}
