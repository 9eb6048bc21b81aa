//! Arbitrary bytes: no input makes the reader panic. `BYTES` sets how many inputs are tried.

use bolero::check;
use workflow_graph::Document;

use super::support::{EXAMPLES, example, number};

fn parse(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = Document::parse(&text, "bytes") {
        assert!(!error.problems.is_empty());
        assert!(
            error.problems.iter().all(|problem| problem.location.line > 0 && problem.location.column > 0)
        );
    }
}

/// G3
#[test]
fn arbitrary_bytes_are_read_or_refused() {
    check!().with_iterations(number("BYTES", 300)).for_each(parse);
}

/// G3
#[test]
fn examples_with_arbitrary_bytes_in_them_are_read_or_refused() {
    let examples: Vec<String> = EXAMPLES.iter().map(|name| example(name)).collect();
    check!().with_iterations(number("BYTES", 300)).for_each(|bytes: &[u8]| {
        let Some((&first, rest)) = bytes.split_first() else { return };
        let mut text = examples[first as usize % examples.len()].clone().into_bytes();
        for pair in rest.chunks_exact(3) {
            let place = usize::from(u16::from_le_bytes([pair[0], pair[1]])) % text.len();
            text[place] = pair[2];
        }
        parse(&text);
    });
}
