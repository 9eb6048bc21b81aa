//! Loading documents and rendering their problems.

use std::path::PathBuf;

use workflow_graph::{Document, Problem};

/// The native documents of the crate's examples.
pub(crate) const EXAMPLES: [&str; 4] =
    ["draft-loop.yaml", "refund.yaml", "release-checks.yaml", "thumbnails.yaml"];

/// The documents of other formats among them.
pub(crate) const IMPORTED: [&str; 4] =
    ["sweny-triage.yaml", "sweny-notes.yaml", "hive-support.json", "hive-survey.json"];

pub(crate) fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples")
}

pub(crate) fn example(name: &str) -> String {
    std::fs::read_to_string(examples().join(name)).unwrap()
}

/// Every problem of a document, one a line.
pub(crate) fn problems(text: &str) -> String {
    let found = match Document::parse(text, "g.yaml") {
        Ok(document) => document.warnings().to_vec(),
        Err(error) => error.problems,
    };
    lines(&found)
}

pub(crate) fn lines(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |lines, problem| lines + &problem.to_string() + "\n")
}

/// A number from the environment, so that a nightly run tries more.
pub(crate) fn number(variable: &str, normal: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(normal)
}
