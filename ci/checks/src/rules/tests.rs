//! Small repositories with a mistake planted in each.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{check, fix};
use crate::repository::Repository;

const PAGE: &str = "# Rules of `core`\n\n- **S1** One. See S2.\n- **S2** Two.\n";
const TEST: &str = "// S1, S2\n#[test]\nfn both() {}\n";

/// A repository with a page, a crate and these files.
fn repository(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rest = [
        ("core/Cargo.toml", ""),
        ("core/src/lib.rs", ""),
        ("docs/rules.md", PAGE),
        ("core/tests/it.rs", TEST),
    ];
    for (path, text) in rest.iter().chain(files) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(""))).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let folder = repository(files);
    let report = check(&Repository::at(folder.path())).unwrap();
    let (_, findings) = report.lines().split_last().unwrap();
    assert_eq!(report.failed(), !findings.is_empty());
    findings.to_vec()
}

#[test]
fn a_repository_without_a_mistake_passes() {
    assert_eq!(findings(&[]), [""; 0]);
}

#[test]
fn a_citation_of_a_rule_that_no_page_has_is_found() {
    let found = findings(&[("core/src/a.rs", "fn f() {}\n// As S3 says.\n"), ("README.md", "See S1–S4.\n")]);
    assert_eq!(
        found,
        ["core/src/a.rs:2: no page docs/rules*.md has S3", "README.md:1: no page docs/rules*.md has S4"]
    );
}

#[test]
fn types_colours_and_other_letters_are_no_citations() {
    let source = "struct S9; // `S9` is #S99ff in XS8 and S1234, A1\nlet text = \"S7\";\n";
    assert_eq!(findings(&[("core/src/a.rs", source)]), [""; 0]);
}

#[test]
fn a_rule_that_no_test_cites_is_found() {
    let head_alone = "//! S2\n// S1\n#[test]\nfn one() {}\n";
    let found = findings(&[("core/tests/it.rs", head_alone), ("core/src/a.rs", "// S2\n")]);
    assert_eq!(found, ["docs/rules.md:4: no test cites S2"]);
}

#[test]
fn a_range_cites_what_is_in_it() {
    assert_eq!(findings(&[("core/tests/it.rs", "// S1–S2\n#[test]\nfn both() {}\n")]), [""; 0]);
}

#[test]
fn a_page_may_have_two_letters() {
    let page = "# Rules of `core`\n\n- **SW1** One.\n- **SW2** Two.\n- **SW3** Three.\n";
    let tests = "// SW1–SW2\n#[test]\nfn both() {}\n// SW9, XSW3\n";
    let found = findings(&[("docs/rules-more.md", page), ("core/tests/more.rs", tests)]);
    assert_eq!(
        found,
        ["core/tests/more.rs:4: no page docs/rules*.md has SW9", "docs/rules-more.md:5: no test cites SW3"]
    );
}

#[test]
fn a_number_that_two_rules_have_is_found() {
    let found = findings(&[("docs/rules-more.md", "# Rules of `core`\n\n- **S2** Again.\n")]);
    assert_eq!(found, ["docs/rules.md:4: docs/rules-more.md:3 has S2 too"]);
}

#[test]
fn a_page_without_its_crate_is_found() {
    let found = findings(&[("docs/rules-more.md", "# Rules of `nothing`\n")]);
    assert_eq!(
        found,
        ["docs/rules-more.md:1: the page begins with \"# Rules of `CRATE`\", and the crate exists"]
    );
}

#[test]
fn numbers_in_public_rustdoc_are_found_and_those_of_private_items_are_not() {
    let lib = "/// Of S1.\npub struct Open {\n    /// Field (S2).\n    pub a: u8,\n    /// S1\n    b: u8,\n}\n\
               impl Open {\n    /// Method, S2.\n    pub fn m(&self) {}\n    /// S1\n    fn p(&self) {}\n}\n\
               /// S1\nstruct Own;\n/// S1\n#[doc(hidden)]\npub struct Hidden;\nmod inner;\n";
    let inner = "//! S1\n/// S2\npub enum Choice {\n    /// S1\n    One,\n}\n";
    let found = findings(&[("core/src/lib.rs", lib), ("core/src/inner.rs", inner)]);
    assert_eq!(
        found,
        [
            "core/src/inner.rs:2: public rustdoc of `Choice` cites a rule: S2",
            "core/src/inner.rs:4: public rustdoc of `Choice::One` cites a rule: S1",
            "core/src/lib.rs:1: public rustdoc of `Open` cites a rule: Of S1.",
            "core/src/lib.rs:3: public rustdoc of `Open::a` cites a rule: Field (S2).",
            "core/src/lib.rs:9: public rustdoc of `Open::m` cites a rule: Method, S2.",
        ]
    );
}

#[test]
fn text_that_is_handed_to_a_macro_is_public() {
    let found = findings(&[("core/src/lib.rs", "make! {\n    /// Of S1.\n    pub struct Made;\n}\n")]);
    assert_eq!(found, ["core/src/lib.rs:2: public rustdoc of `an item of a macro` cites a rule: Of S1."]);
}

#[test]
fn numbers_in_parentheses_can_be_taken_out_of_public_rustdoc() {
    let lib = "/// One (S1, S2) and two (S1–S2). (See S1.)\npub fn f() {}\n/// Mine (S1).\nfn g() {}\n";
    let folder = repository(&[("core/src/lib.rs", lib)]);
    let report = fix(&Repository::at(folder.path())).unwrap();
    assert!(report.failed(), "one citation is a sentence");
    let fixed = fs::read_to_string(folder.path().join("core/src/lib.rs")).unwrap();
    assert_eq!(fixed, "/// One and two. (See S1.)\npub fn f() {}\n/// Mine (S1).\nfn g() {}\n");
}
