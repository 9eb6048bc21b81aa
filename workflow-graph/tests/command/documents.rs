//! `check`, `draw` and `schema`: commands that run nothing.

use std::path::Path;

use expect_test::expect;

use crate::support::{GATE, Place, command};

// G3, G38
#[test]
fn check_lists_every_problem_of_every_file_and_exits_with_2() {
    let place = Place::new(&[
        ("good.yaml", "graph: g\nnodes: {a: {value: 1}}\n"),
        ("bad.yaml", "graph: g\nnodse: {}\nnodes: {a: {value: 1, next: b}}\n"),
    ]);
    let ran = place.run(&["check", "good.yaml", "bad.yaml", "absent.yaml"]);
    assert_eq!((ran.code, ran.err.as_str()), (2, ""));
    expect![[r"
        good.yaml: sound
        bad.yaml:2:1: error[unknown-key]: a document has no key `nodse`; did you mean `nodes`?
        bad.yaml:3:29: error[unknown-node]: `a` leads to `b`, and the graph has no such node; add the node, or name another
        bad.yaml: 2 errors
        absent.yaml:1:1: error[file-not-found]: the document cannot be read: No such file or directory (os error 2); correct its path
        absent.yaml: 1 error
    "]]
    .assert_eq(&ran.out);
    let json = place.run(&["check", "good.yaml", "bad.yaml", "--json"]);
    assert_eq!((json.code, json.json()["problems"].as_array().unwrap().len()), (2, 2));
    assert_eq!(json.json()["problems"][0]["similar"], serde_json::json!(["nodes"]));
}

// G38
#[test]
fn check_exits_with_0_where_there_are_warnings_only() {
    let place = Place::new(&[("ask.yaml", "graph: g\nnodes: {ask: {human: {ask: Well?}}}\n")]);
    let ran = place.run(&["check", "ask.yaml"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.ends_with("ask.yaml: sound, 1 warning\n"), "{}", ran.out);
    assert_eq!(place.run(&["check", "ask.yaml", "--as", "native"]).code, 0);
}

// G9, G38
#[test]
fn check_says_what_only_a_program_checks() {
    let some = "graph: g\nnodes: {a: {function: x, next: b}, b: {function: y, next: c}, c: {tool: t, next: d}, d: {function: x}}\n";
    let place = Place::new(&[
        ("some.yaml", some),
        ("one.yaml", "graph: g\nnodes: {a: {function: x}}\n"),
        ("bad.yaml", "graph: g\nnodes: {a: {function: x, next: b}}\n"),
    ]);
    assert_eq!(
        place.run(&["check", "some.yaml", "one.yaml"]).out,
        "some.yaml: sound; open until a program binds the document: the function `x` (`a`, `d`), the function `y` \
         (`b`), the tool `t` (`c`)\n\
         one.yaml: sound; open until a program binds the document: the function `x` (`a`)\n"
    );
    assert!(place.run(&["check", "bad.yaml"]).out.ends_with("bad.yaml: 1 error\n"));
    let json = place.run(&["check", "one.yaml", "--json"]).json();
    let part = serde_json::json!({"kind": "function", "name": "x", "nodes": ["a"]});
    assert_eq!(json["unbound"], serde_json::json!([{"file": "one.yaml", "part": part}]));
}

// G38
#[test]
fn the_examples_are_sound() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = ["refund.yaml", "draft-loop.yaml", "release-checks.yaml", "thumbnails.yaml"];
    let ran = command(&examples, &[&["check"], &files[..]].concat()).output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    for (format, file) in [("hive", "hive-support.json"), ("sweny", "sweny-triage.yaml")] {
        let code = |arguments: &[&str]| command(&examples, arguments).output().unwrap().status.code();
        assert_eq!(code(&["check", file]), Some(0), "{file}");
        assert_eq!(code(&["check", file, "--as", format]), Some(0), "{file}");
        assert_eq!(code(&["check", file, "--as", "native"]), Some(2), "{file}");
    }
}

// G1, G38
#[test]
fn draw_prints_mermaid_dot_and_json() {
    let place = Place::new(&[("refund.yaml", GATE)]);
    let mermaid = place.run(&["draw", "refund.yaml"]);
    assert_eq!((mermaid.code, mermaid.err.as_str()), (0, ""));
    assert!(mermaid.out.contains("approve.granted"), "{}", mermaid.out);
    assert!(place.run(&["draw", "refund.yaml", "--dot"]).out.starts_with("digraph"));
    let drawing = place.run(&["draw", "refund.yaml", "--json"]).json();
    let mut nodes = drawing["nodes"].as_array().unwrap().iter();
    assert!(nodes.any(|node| node["name"] == "approve"), "{drawing}");
    assert_eq!(place.run(&["draw", "refund.yaml", "--dot", "--json"]).code, 2);
    assert_eq!(place.run(&["draw", "refund.yaml", "--id", "r-1"]).code, 2);
}

// G38
#[test]
fn schema_prints_the_schema_of_documents() {
    let place = Place::new(&[]);
    let ran = place.run(&["schema"]);
    assert_eq!((ran.code, ran.json()), (0, workflow_graph::Document::schema()));
}

// G38, G39
#[test]
fn a_command_that_is_wrong_exits_with_2() {
    let place = Place::new(&[("refund.yaml", GATE)]);
    for arguments in [
        &[][..],
        &["explode"],
        &["check"],
        &["run"],
        &["run", "refund.yaml", "--id", "r-1"],
        &["answer", "r-1", "approve", "yes"],
        &["resume", "--store", "runs.redb"],
    ] {
        let ran = place.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ran.err.contains("Usage"), "{arguments:?}: {}", ran.err);
    }
    let format = place.run(&["run", "refund.yaml", "--as", "prose"]);
    assert_eq!(
        (format.code, format.err.contains("possible values: native, hive, sweny")),
        (2, true),
        "{}",
        format.err
    );
}
