//! Files that documents name, and documents as files.

use std::fs;
use std::path::Path;

use expect_test::expect;
use tempfile::TempDir;
use workflow_graph::Document;

use super::support::{lines, problems};

const NAMES_A_FILE: &str = "graph: g\nnodes: {a: {agent: {instruction: {file: PATH}}}}\n";

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("inside")).unwrap();
    fs::write(folder.path().join("outside.md"), "secret").unwrap();
    fs::write(folder.path().join("inside/task.md"), "Do ${ input.what }.").unwrap();
    folder
}

/// The problems of a document in the folder `inside`, which names the file `path`.
fn naming(folder: &TempDir, path: &str) -> String {
    let file = folder.path().join("inside/g.yaml");
    fs::write(&file, NAMES_A_FILE.replace("PATH", path)).unwrap();
    loaded(folder.path(), &file)
}

fn loaded(root: &Path, file: &Path) -> String {
    let found = match Document::load(file) {
        Ok(document) => document.warnings().to_vec(),
        Err(error) => error.problems,
    };
    lines(&found).replace(&format!("{}/", root.display()), "")
}

/// G5
#[test]
fn a_file_in_the_folder_of_the_document_is_read() {
    assert_eq!(naming(&folder(), "task.md"), "");
    assert_eq!(naming(&folder(), "./task.md"), "");
}

/// G5
#[test]
fn a_file_that_does_not_exist_is_a_problem() {
    expect![[r#"
        inside/g.yaml:2:41: error[file-not-found]: the file `tsk.md` does not exist; name it relative to the document, as a text in UTF-8
    "#]].assert_eq(&naming(&folder(), "tsk.md"));
}

/// G5
#[test]
fn a_file_outside_of_the_folder_is_refused_whether_it_exists_or_not() {
    let folder = folder();
    expect![[r#"
        inside/g.yaml:2:41: error[file-outside-root]: `../outside.md` lies outside of the folder of the document; move the file below it, and name it relative to the document
    "#]].assert_eq(&naming(&folder, "../outside.md"));
    expect![[r#"
        inside/g.yaml:2:41: error[file-outside-root]: `/etc/hostname-that-is-not-there` lies outside of the folder of the document; move the file below it, and name it relative to the document
    "#]].assert_eq(&naming(&folder, "/etc/hostname-that-is-not-there"));
    expect![[r#"
        inside/g.yaml:2:41: error[file-outside-root]: `x/../../../none.md` lies outside of the folder of the document; move the file below it, and name it relative to the document
    "#]].assert_eq(&naming(&folder, "x/../../../none.md"));
}

/// G5
#[cfg(unix)]
#[test]
fn a_link_that_leads_out_of_the_folder_is_refused() {
    let folder = folder();
    std::os::unix::fs::symlink(folder.path().join("outside.md"), folder.path().join("inside/link.md"))
        .unwrap();
    expect![[r#"
        inside/g.yaml:2:41: error[file-outside-root]: `link.md` lies outside of the folder of the document; move the file below it, and name it relative to the document
    "#]].assert_eq(&naming(&folder, "link.md"));
}

/// G5
#[test]
fn a_folder_is_no_file() {
    expect![[r#"
        inside/g.yaml:2:41: error[file-not-found]: the file `.` is no file; name it relative to the document, as a text in UTF-8
    "#]].assert_eq(&naming(&folder(), "."));
}

/// G5
#[test]
fn a_file_of_more_than_a_mebibyte_is_too_large() {
    let folder = folder();
    fs::write(folder.path().join("inside/large.md"), vec![b'x'; (1 << 20) + 1]).unwrap();
    expect![[r#"
        inside/g.yaml:2:41: error[too-large]: the file `inside/large.md` exceeds the 1048576 bytes of one file; shorten it
    "#]].assert_eq(&naming(&folder, "large.md"));
}

/// G5
#[test]
fn a_file_that_is_no_text_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("inside/image.md"), [0xff, 0xfe, 0x00]).unwrap();
    expect![[r#"
        inside/g.yaml:2:41: error[file-not-found]: the file `image.md` is no text in UTF-8; name it relative to the document, as a text in UTF-8
    "#]].assert_eq(&naming(&folder, "image.md"));
}

/// G5
#[test]
fn a_document_that_is_parsed_from_a_text_names_no_files() {
    expect![[r#"
        g.yaml:2:41: error[file-not-found]: `task.md` cannot be found: a document that is parsed from a text has no folder; load the document from its file
    "#]].assert_eq(&problems(&NAMES_A_FILE.replace("PATH", "task.md")));
}

/// G3
#[test]
fn a_document_that_is_not_there_is_a_problem_of_its_name() {
    let error = Document::load("no/such.yaml").unwrap_err().to_string();
    assert!(
        error.starts_with("no/such.yaml:1:1: error[file-not-found]: the document cannot be read: "),
        "{error}"
    );
}

/// G3
#[test]
fn a_document_that_is_no_text_says_where() {
    let folder = folder();
    let file = folder.path().join("g.yaml");
    fs::write(&file, b"graph: g\nnodes: \xff\n").unwrap();
    expect![[r#"
        g.yaml:2:8: error[syntax]: the file is no text in UTF-8 here; save it as UTF-8
    "#]]
    .assert_eq(&loaded(folder.path(), &file));
}

/// G9
#[test]
fn children_of_the_same_file_are_checked_by_name_and_by_their_input() {
    let text = r#"graph: order
input: {type: object, properties: {skus: {type: array}}, required: [skus]}
nodes:
  each: {graph: lin, for_each: input.skus, with: {sku: "${ item }"}, next: one}
  one: {graph: pay, with: {sku: 7, coutn: 1}, next: other}
  other: {graph: pya, next: remote}
  remote: {graph: elsewhere}
---
graph: line
input: {type: object, properties: {sku: {type: string}}, required: [sku]}
nodes: {a: {value: 1}}
---
graph: pay
input: {type: object, properties: {sku: {type: string}, count: {type: integer}, cents: {type: integer}}, required: [sku, cents]}
nodes: {a: {value: 1}}
"#;
    expect![[r#"
        g.yaml:4:17: error[unknown-graph]: `each` runs `lin`, and the file has no such graph; did you mean `line`?
        g.yaml:5:16: error[missing-input]: `one` gives no `cents`, which the graph `pay` requires; add `cents` to `with`
        g.yaml:5:28: error[type-mismatch]: `one` gives 7 as `sku`, which the graph `pay` does not take: 7 is not of type "string"; correct the value, or the schema
        g.yaml:5:36: error[unknown-field]: `one` gives `coutn`, and the graph `pay` has no such field; did you mean `count`?
        g.yaml:6:18: warning[unknown-graph]: `other` runs `pya`, and the file has no such graph; did you mean `pay`?
    "#]].assert_eq(&problems(text));
}
