//! The public items of published crates, compared with the lists in `docs/public`.
//!
//! `rustdoc` writes what is public as JSON, which takes an option that only unstable toolchains have. `ci/rustdoc-json`
//! switches it on for `rustdoc` alone, so that everything else is built as always. Items that are hidden from the
//! reference are not listed. Warnings of `rustdoc` fail the check.

use std::path::{Path, PathBuf};

use crate::error::CheckError;
use crate::report::Report;
use crate::repository::Repository;

mod difference;
mod listing;
mod packages;

use packages::Package;

/// Where the lists are.
const FOLDER: &str = "docs/public";
const ACCEPT: &str = "`ci/check-public --accept` writes it; say in the commit what is different for a user";

/// Compares each list with what is public now. Without the folder, nothing has been accepted yet.
pub(crate) fn check(repository: &Repository) -> Result<Report, CheckError> {
    let mut report = Report::default();
    if !repository.has(Path::new(FOLDER)) {
        report.note(format!("public: there is no {FOLDER} to compare with, {ACCEPT}"));
        return Ok(report);
    }
    for package in documented(repository)? {
        compare(repository, &package, &listing::of(&package)?, &mut report)?;
    }
    Ok(report)
}

/// Writes all lists.
pub(crate) fn accept(repository: &Repository) -> Result<Report, CheckError> {
    let folder = repository.root().join(FOLDER);
    std::fs::create_dir_all(&folder).map_err(CheckError::write(&folder))?;
    let mut report = Report::default();
    for package in documented(repository)? {
        let listing = listing::of(&package)?;
        repository.write(&list_of(&package), &listing)?;
        report.note(format!("public: {} has {} lines", list_of(&package).display(), listing.lines().count()));
    }
    Ok(report)
}

/// The published packages, whose reference was just made.
fn documented(repository: &Repository) -> Result<Vec<Package>, CheckError> {
    let packages = packages::published(repository)?;
    listing::document(repository, &packages)?;
    Ok(packages)
}

fn compare(
    repository: &Repository,
    package: &Package,
    listing: &str,
    report: &mut Report,
) -> Result<(), CheckError> {
    let path = list_of(package);
    if !repository.has(&path) {
        report.mistake(&path, 1, &format!("the list does not exist; {ACCEPT}"));
        return Ok(());
    }
    let accepted = repository.read(&path)?;
    let changes = difference::of(&accepted, listing);
    for change in &changes {
        report.mistake(&path, change.line, &change.text);
    }
    if changes.is_empty() {
        report.note(format!(
            "public: `{}` has the {} lines of its list",
            package.name,
            listing.lines().count()
        ));
    } else {
        report.note(format!("public: `{}` differs from its list; {ACCEPT}", package.name));
    }
    Ok(())
}

fn list_of(package: &Package) -> PathBuf {
    Path::new(FOLDER).join(format!("{}.txt", package.name))
}

#[cfg(test)]
mod tests;
