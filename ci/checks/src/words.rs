//! The prose of comments and pages: how many of its lines have sentences that `docs/glossary.md` rules out.
//!
//! Sentences are found by their form, so the share is an approximation. A finding is
//!
//! - a sentence that begins with *what*, *who*, *whoever* or *whatever* and is no question,
//! - such a clause as a subject further on: behind `;`, behind a comma with *and*, *but*, *so* or *or*, behind *because*,
//!   *so that* and *says that*,
//! - a phrase of a short list ("is told", "lets go of", …), in each of its forms.
//!
//! Blocks of code, code between backticks, quotations, headings, and the first row of a table are no prose. The glossary
//! itself is left out, since it shows how not to write.

use std::collections::BTreeSet;
use std::path::Path;

use crate::comments::comments;
use crate::error::CheckError;
use crate::report::Report;
use crate::repository::Repository;

mod paragraphs;
mod sentences;

use paragraphs::Paragraph;

/// The most lines with findings, per thousand lines of prose.
const MOST_PER_MILLE: usize = 8;
/// So many findings are printed.
const SHOWN: usize = 40;
/// Shows what is ruled out.
const GLOSSARY: &str = "docs/glossary.md";
/// Pages beside those in `docs`.
const PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// Checks comments and pages.
pub(crate) fn check(repository: &Repository) -> Result<Report, CheckError> {
    let mut report = Report::default();
    let mut count = Count::default();
    for path in repository.files("md")?.into_iter().filter(|path| is_page(path)) {
        count.add(&path, &paragraphs::in_page(&repository.read(&path)?), &mut report);
    }
    for path in repository.files("rs")? {
        count.add(&path, &paragraphs::in_source(&comments(&repository.read(&path)?)), &mut report);
    }
    if count.findings > SHOWN {
        report.note(format!("and {} more", count.findings - SHOWN));
    }
    report.note(count.to_string());
    if count.is_too_many() {
        report.fail();
    }
    Ok(report)
}

fn is_page(path: &Path) -> bool {
    path != Path::new(GLOSSARY)
        && (path.starts_with("docs") || PAGES.iter().any(|page| path == Path::new(page)))
}

/// Lines of prose, and those with findings.
#[derive(Debug, Default)]
struct Count {
    lines: usize,
    findings: usize,
}

impl Count {
    fn add(&mut self, path: &Path, paragraphs: &[Paragraph], report: &mut Report) {
        // The cells of a row are on one line.
        self.lines += paragraphs.iter().flat_map(Paragraph::lines).collect::<BTreeSet<_>>().len();
        for paragraph in paragraphs {
            for finding in sentences::findings(paragraph) {
                if self.findings < SHOWN {
                    report.note(format!("{}:{}: {}", path.display(), finding.line, finding.text));
                }
                self.findings += 1;
            }
        }
    }

    fn is_too_many(&self) -> bool {
        self.findings * 1000 > self.lines * MOST_PER_MILLE
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hundredths = self.findings * 10_000 / self.lines.max(1);
        write!(
            formatter,
            "words: {} of {} lines of prose, {}.{:02} % (at most {}.{} %)",
            self.findings,
            self.lines,
            hundredths / 100,
            hundredths % 100,
            MOST_PER_MILLE / 10,
            MOST_PER_MILLE % 10
        )
    }
}

#[cfg(test)]
mod tests;
