//! Lists that differ, packages that are published, and a repository without lists.

use std::fs;

use super::difference::{self, Change};
use super::packages::{Package, in_metadata};
use super::{check, compare};
use crate::report::Report;
use crate::repository::Repository;

fn package() -> Package {
    Package { name: "one".into(), library: "one".into(), target: "target".into() }
}

#[test]
fn lines_that_are_gone_and_new_are_found_with_their_place() {
    let changes =
        difference::of("pub fn a()\npub fn b()\npub fn b()\n", "pub fn b()\npub fn a()\npub fn c()\n");
    let expected = [(3, "gone: pub fn b()"), (3, "new: pub fn c()")];
    assert_eq!(changes, expected.map(|(line, text)| Change { line, text: text.into() }));
}

#[test]
fn a_list_that_differs_or_is_missing_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let repository = Repository::at(folder.path());
    fs::create_dir_all(folder.path().join("docs/public")).unwrap();

    let mut report = Report::default();
    compare(&repository, &package(), "pub fn a()\n", &mut report).unwrap();
    assert!(report.failed());
    assert!(report.lines()[0].starts_with("docs/public/one.txt:1: the list does not exist"));

    fs::write(folder.path().join("docs/public/one.txt"), "pub fn a()\n").unwrap();
    let mut report = Report::default();
    compare(&repository, &package(), "pub fn a()\n", &mut report).unwrap();
    assert!(!report.failed());

    compare(&repository, &package(), "pub fn a(u8)\n", &mut report).unwrap();
    assert!(report.failed());
    assert_eq!(report.lines()[1], "docs/public/one.txt:1: gone: pub fn a()");
    assert_eq!(report.lines()[2], "docs/public/one.txt:1: new: pub fn a(u8)");
}

#[test]
fn without_any_list_nothing_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let report = check(&Repository::at(folder.path())).unwrap();
    assert!(!report.failed());
    assert_eq!(report.lines().len(), 1);
}

#[test]
fn packages_without_a_library_or_a_registry_are_not_published() {
    let json = br#"{"target_directory": "/t", "packages": [
        {"name": "b", "publish": null, "targets": [{"name": "b_lib", "kind": ["lib"]}]},
        {"name": "a", "publish": null, "targets": [{"name": "a", "kind": ["proc-macro"]}]},
        {"name": "c", "publish": [], "targets": [{"name": "c", "kind": ["lib"]}]},
        {"name": "d", "publish": null, "targets": [{"name": "d", "kind": ["bin"]}]}]}"#;
    let names: Vec<_> = in_metadata(json).unwrap().into_iter().map(|package| package.library).collect();
    assert_eq!(names, ["a", "b_lib"]);
}
