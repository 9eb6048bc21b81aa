//! Collects problems while a document is read and checked. It decides nothing about them but their order.

use std::collections::HashMap;
use std::sync::Arc;

use super::{CheckError, Code, Location, Problem, Severity, similar};

/// A place in the file that is being read: [`Location`] without the name of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct At {
    /// From 1.
    pub(crate) line: u32,
    /// In characters, from 1.
    pub(crate) column: u32,
}

/// More problems than anybody reads. Further ones are counted as one problem.
const MOST: usize = 1_000;

/// Unknown names are compared with at most this many names together, since a document of 50,000 wrong routes must not
/// take minutes.
const MOST_COMPARED: usize = 1_000_000;

/// The problems of one file, so far.
#[derive(Debug)]
pub(crate) struct Problems {
    file: Arc<str>,
    found: Vec<Problem>,
    omitted: usize,
    /// The names that unknown ones were compared with.
    compared: usize,
    counts: HashMap<Code, usize>,
    has_errors: bool,
}

impl Problems {
    pub(crate) fn new(file: &str) -> Self {
        let (found, counts) = (Vec::new(), HashMap::new());
        Self { file: file.into(), found, omitted: 0, compared: 0, counts, has_errors: false }
    }

    /// The name of the file.
    pub(crate) fn file(&self) -> &Arc<str> {
        &self.file
    }

    /// Adds the errors of `found`, which are of the same file, and none of its warnings.
    pub(crate) fn add_errors(&mut self, found: Self) {
        for problem in found.finish().err().into_iter().flat_map(|error| error.problems) {
            let Problem { code, severity, location, message, remedy, similar } = problem;
            if severity == Severity::Error {
                self.push(
                    code,
                    severity,
                    At { line: location.line, column: location.column },
                    message,
                    remedy,
                    similar,
                );
            }
        }
    }

    /// Adds a problem.
    pub(crate) fn add(&mut self, code: Code, at: At, message: impl Into<String>, remedy: impl Into<String>) {
        self.push(code, code.severity(), at, message.into(), remedy.into(), Vec::new());
    }

    /// Adds a problem of a name that is none of `known`, and returns the nearest of them. These are the remedy, else
    /// `otherwise` is.
    pub(crate) fn add_unknown<'a>(
        &mut self,
        code: Code,
        at: At,
        message: impl Into<String>,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
        otherwise: impl FnOnce() -> String,
    ) -> Vec<String> {
        let similar = self.similar(name, known);
        let remedy = if similar.is_empty() { otherwise() } else { meant(&similar) };
        self.push(code, code.severity(), at, message.into(), remedy, similar.clone());
        similar
    }

    /// Adds a problem of a name for which others, at least one, may be meant.
    pub(crate) fn add_meant(
        &mut self,
        code: Code,
        severity: Severity,
        at: At,
        message: impl Into<String>,
        similar: Vec<String>,
    ) {
        self.push(code, severity, at, message.into(), meant(&similar), similar);
    }

    /// Adds a problem as a warning, also with a code that is an error elsewhere.
    pub(crate) fn warn(&mut self, code: Code, at: At, message: impl Into<String>, remedy: impl Into<String>) {
        self.push(code, Severity::Warning, at, message.into(), remedy.into(), Vec::new());
    }

    /// At most three of `known` that are spelled like `name`, nearest first; none once too many were compared.
    pub(crate) fn similar<'a>(
        &mut self,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Vec<String> {
        if self.compared >= MOST_COMPARED {
            return Vec::new();
        }
        let compared = &mut self.compared;
        similar(name, known.into_iter().inspect(|_| *compared += 1))
    }

    /// Adds a problem whose remedy names what the author may have meant.
    pub(crate) fn add_mended(
        &mut self,
        code: Code,
        at: At,
        message: impl Into<String>,
        remedy: String,
        similar: Vec<String>,
    ) {
        self.push(code, code.severity(), at, message.into(), remedy, similar);
    }

    /// Adds a problem of a name that is called `known` here.
    pub(crate) fn add_renamed(&mut self, code: Code, at: At, message: impl Into<String>, known: &str) {
        let remedy = format!("did you mean `{known}`?");
        self.push(code, code.severity(), at, message.into(), remedy, vec![known.to_owned()]);
    }

    fn push(
        &mut self,
        code: Code,
        severity: Severity,
        at: At,
        message: String,
        remedy: String,
        similar: Vec<String>,
    ) {
        self.has_errors |= severity == Severity::Error;
        *self.counts.entry(code).or_default() += 1;
        if self.found.len() >= MOST {
            self.omitted += 1;
            return;
        }
        let location = Location { file: self.file.clone(), line: at.line, column: at.column };
        self.found.push(Problem { code, severity, location, message, remedy, similar });
    }

    /// How many problems of `code` there are.
    pub(crate) fn count(&self, code: Code) -> usize {
        self.counts.get(&code).copied().unwrap_or_default()
    }

    /// Whether there is a problem at this place.
    pub(crate) fn has_at(&self, at: At) -> bool {
        self.found
            .iter()
            .any(|problem| (problem.location.line, problem.location.column) == (at.line, at.column))
    }

    /// Whether further problems are counted only.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MOST
    }

    /// Whether a problem refuses the document.
    pub(crate) fn has_errors(&self) -> bool {
        self.has_errors
    }

    /// The warnings of a document without errors, or all problems.
    ///
    /// # Errors
    ///
    /// At least one problem is an error.
    pub(crate) fn finish(mut self) -> Result<Vec<Problem>, CheckError> {
        let has_errors = self.has_errors;
        // A stable sort: problems of one place stay in the order in which they were found.
        self.found.sort_by_key(|problem| (problem.location.line, problem.location.column));
        if self.omitted > 0 {
            let last = self.found.last().map_or(At { line: 1, column: 1 }, |problem| At {
                line: problem.location.line,
                column: problem.location.column,
            });
            let location = Location { file: self.file.clone(), line: last.line, column: last.column };
            self.found.push(Problem {
                code: Code::TooLarge,
                severity: if has_errors { Severity::Error } else { Severity::Warning },
                location,
                message: format!("{} further problems are not listed", self.omitted),
                remedy: "correct those above first".to_owned(),
                similar: Vec::new(),
            });
        }
        if has_errors { Err(CheckError { problems: self.found }) } else { Ok(self.found) }
    }
}

/// The remedy that names what the author may have meant.
fn meant(similar: &[String]) -> String {
    let names: Vec<String> = similar.iter().map(|name| format!("`{name}`")).collect();
    format!("did you mean {}?", names.join(" or "))
}
