//! The findings of a check.

use std::path::Path;

/// The lines that a check prints, and whether it failed.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<String>,
    failed: bool,
}

impl Report {
    /// A mistake at a place: the check fails.
    pub(crate) fn mistake(&mut self, path: &Path, line: usize, message: &str) {
        self.lines.push(format!("{}:{line}: {message}", path.display()));
        self.failed = true;
    }

    /// A line that decides nothing.
    pub(crate) fn note(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// The check fails for what its lines say together.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed
    }
}
