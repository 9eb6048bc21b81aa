//! Problems of documents, with their places and remedies. This module finds none.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

mod code;
mod similar;
pub(crate) mod sink;

pub use code::Code;
pub(crate) use similar::{is_same, is_slip, similar};

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct Location {
    /// The name of the file, as it was given.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Whether a problem keeps a document from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// The document is refused.
    Error,
    /// The document runs, and may do something else than its author expects.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// One thing that is wrong with a document.
///
/// It displays as one line: `file:line:column: error[code]: message; remedy`. Its JSON has the same facts.
///
/// ```
/// use workflow_graph::{Code, Document};
///
/// let error = Document::parse("graph: g\nnodse: {}\n", "g.yaml").unwrap_err();
/// let problem = &error.problems[0];
/// assert_eq!((problem.code, problem.location.line), (Code::UnknownKey, 2));
/// assert_eq!(problem.similar, ["nodes"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// The kind of the problem.
    pub code: Code,
    /// Whether it keeps the document from running.
    pub severity: Severity,
    /// Where it is.
    pub location: Location,
    /// The mistake, in the names of the document.
    pub message: String,
    /// The change that mends it.
    pub remedy: String,
    /// At most three names that the author may have meant, nearest first.
    pub similar: Vec<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, severity, location, message, remedy, .. } = self;
        write!(f, "{location}: {severity}[{code}]: {message}; {remedy}")
    }
}

/// A document was refused. It displays every problem, one a line.
///
/// ```
/// use workflow_graph::Document;
///
/// let error = Document::parse("graph: 7\nnodes: []\n", "g.yaml").unwrap_err();
/// let lines = error.to_string();
/// assert!(lines.starts_with("g.yaml:1:8: error[wrong-type]: "));
/// assert_eq!(lines.lines().count(), 2);
/// ```
/// `Debug` prints the same as `Display`, so that a `main` that returns the error shows it in full.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CheckError {
    /// Every problem, warnings included, in the order of their locations.
    pub problems: Vec<Problem>,
}

impl fmt::Debug for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CheckError {}
