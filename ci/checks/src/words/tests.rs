//! Prose with sentences planted in it.

use std::fs;

use super::paragraphs::{in_page, in_source};
use super::{check, sentences};
use crate::comments::comments;
use crate::repository::Repository;

fn of_source(source: &str) -> Vec<usize> {
    in_source(&comments(source)).iter().flat_map(sentences::findings).map(|finding| finding.line).collect()
}

fn of_page(page: &str) -> Vec<usize> {
    in_page(page).iter().flat_map(sentences::findings).map(|finding| finding.line).collect()
}

#[test]
fn a_sentence_whose_subject_is_what_is_found() {
    assert_eq!(
        of_source("// What is left is dropped.\nfn f() {}\n/// Fine.\n/// Who waits\n/// is woken.\n"),
        [1, 4]
    );
    assert_eq!(
        of_source("// It ends; whoever waits is woken.\n// It ends, and what is left\n// is dropped.\n"),
        [1, 2]
    );
    assert_eq!(of_source("// Dropped, because what is left is of no use.\n"), [1]);
}

#[test]
fn questions_and_objects_are_no_findings() {
    assert_eq!(
        of_source("// What is left?\n// The engine drops what is left.\n// The run knows who waits.\n"),
        [0; 0]
    );
}

#[test]
fn a_phrase_of_the_list_is_found_in_each_form() {
    assert_eq!(
        of_source("// The run is told.\n\n// Runs that nobody's engine drives.\n// They were\n// told.\n"),
        [1, 3, 4]
    );
    assert_eq!(of_source("// The outcomes of it; it is told-tale.\n"), [1]);
}

#[test]
fn code_and_quotations_are_no_prose() {
    assert_eq!(
        of_source(
            "/// ```\n/// // What is left is dropped.\n/// ```\n/// Not \"is told\", nor `who is told`.\n"
        ),
        [0; 0]
    );
    assert_eq!(of_source("let a = \"// What is left is told.\";\n"), [0; 0]);
}

#[test]
fn headings_are_no_prose_and_cells_and_items_are() {
    let page = "# What there is\n\n| what it is | b |\n|---|---|\n| a run | what it is told |\n| what it is | what there is |\n\n- Who waits is woken.\n";
    assert_eq!(of_page(page), [5, 8]);
}

#[test]
fn the_check_fails_above_its_share() {
    let folder = tempfile::tempdir().unwrap();
    let repository = Repository::at(folder.path());
    let good = "The engine stores the run.\n\n";
    fs::write(folder.path().join("README.md"), good.repeat(124) + "What is left is dropped.\n").unwrap();
    let report = check(&repository).unwrap();
    assert!(!report.failed(), "{report:?}");
    fs::write(folder.path().join("README.md"), good.repeat(123) + "What is left is dropped.\n").unwrap();
    let report = check(&repository).unwrap();
    assert!(report.failed());
    assert_eq!(report.lines()[0], "README.md:247: What is left is dropped.");
    assert_eq!(report.lines()[1], "words: 1 of 124 lines of prose, 0.80 % (at most 0.8 %)");
}
