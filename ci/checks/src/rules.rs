//! Rule numbers: those that are cited exist, each rule is cited by a test, and public rustdoc has none.

use std::collections::BTreeSet;
use std::path::Path;

use crate::comments::{Kind, comments};
use crate::error::CheckError;
use crate::report::Report;
use crate::repository::Repository;

mod citations;
mod number;
mod pages;
mod public_docs;

use citations::Citation;
use pages::Pages;

/// Checks the numbers in pages, sources and tests.
pub(crate) fn check(repository: &Repository) -> Result<Report, CheckError> {
    let mut report = Report::default();
    let pages = Pages::read(repository, &mut report)?;
    let mut tested = BTreeSet::new();
    let mut cited = 0;
    for path in repository.files("rs")? {
        let source = repository.read(&path)?;
        let comments = comments(&source);
        cited += unknown(&pages, &path, &citations::in_source(&comments), &mut report);
        if citations::is_test(&path, &source) {
            // The head of a file says what its tests are about, and not which of them proves what.
            let beside: Vec<_> =
                comments.into_iter().filter(|comment| comment.kind != Kind::Module).collect();
            tested.extend(citations::in_source(&beside).iter().flat_map(Citation::numbers));
        }
    }
    for path in repository.files("md")? {
        let citations = citations::in_page(&repository.read(&path)?);
        cited += unknown(&pages, &path, &citations, &mut report);
    }
    for rule in pages.rules().filter(|rule| !tested.contains(&rule.number)) {
        report.mistake(&rule.page, rule.line, &format!("no test cites {}", rule.number));
    }
    for folder in repository.published_crates()? {
        for doc in public_docs::with_numbers(repository, &folder, &pages)? {
            let message = format!("public rustdoc of {} cites a rule: {}", doc.item, doc.text.trim());
            report.mistake(&doc.path, doc.line, &message);
        }
    }
    report.note(format!("rules: {} (pages: {}), cited {cited} times", pages.rules().count(), pages.count()));
    Ok(report)
}

/// Takes numbers in parentheses out of public rustdoc, and checks then.
pub(crate) fn fix(repository: &Repository) -> Result<Report, CheckError> {
    let pages = Pages::read(repository, &mut Report::default())?;
    for folder in repository.published_crates()? {
        public_docs::remove_numbers(repository, &folder, &pages)?;
    }
    check(repository)
}

/// Reports citations of rules that do not exist; says how many citations there are.
fn unknown(pages: &Pages, path: &Path, citations: &[Citation], report: &mut Report) -> usize {
    let ours: Vec<_> =
        citations.iter().filter(|citation| pages.has_letters(citation.first.letters)).collect();
    for citation in &ours {
        for number in [citation.first, citation.last] {
            if !pages.has(number) {
                report.mistake(path, citation.line, &format!("no page docs/rules*.md has {number}"));
                break;
            }
        }
    }
    ours.len()
}

#[cfg(test)]
mod tests;
