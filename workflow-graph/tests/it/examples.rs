//! The example documents of the crate.

use expect_test::expect;
use workflow_graph::{Code, Document, Severity};

use super::support::{EXAMPLES, example, examples, lines, problems};

/// G3
#[test]
fn every_example_loads() {
    let mut warnings = String::new();
    for name in EXAMPLES {
        let document = Document::load(examples().join(name)).unwrap();
        assert!(name.starts_with(document.name()) || name == "refund.yaml", "{}", document.name());
        assert_eq!(lines(document.warnings()).lines().count(), problems(&example(name)).lines().count());
        warnings += &problems(&example(name));
    }
    expect![[r#"
        g.yaml:25:66: warning[maybe-missing]: `security` need not have succeeded when `decide` reads it; write `default(security.safe, …)`, or ask `has(security.safe)` first
    "#]].assert_eq(&warnings);
}

/// G3
#[test]
fn every_code_has_a_name_of_its_own_and_few_are_warnings() {
    let mut names: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Code::ALL.len());
    let warnings: Vec<&str> = Code::ALL
        .iter()
        .filter(|code| code.severity() == Severity::Warning)
        .map(|code| code.as_str())
        .collect();
    assert_eq!(
        warnings,
        [
            "maybe-missing",
            "never-equal",
            "not-interpolated",
            "unset-var",
            "branch-conflict",
            "no-default",
            "missing-reply-schema",
            "judge-budget"
        ]
    );
}

/// G3
#[test]
fn the_same_facts_exist_as_json() {
    let error = Document::parse("graph: g\nnodes: {a: {value: 1, nxt: b}}\n", "g.yaml").unwrap_err();
    expect![[r#"
        {
          "problems": [
            {
              "code": "unknown-key",
              "severity": "error",
              "location": {
                "file": "g.yaml",
                "line": 2,
                "column": 23
              },
              "message": "a node has no key `nxt`",
              "remedy": "did you mean `next`?",
              "similar": [
                "next"
              ]
            },
            {
              "code": "unknown-node",
              "severity": "error",
              "location": {
                "file": "g.yaml",
                "line": 2,
                "column": 28
              },
              "message": "`a` leads to `b`, and the graph has no such node",
              "remedy": "add the node, or name another",
              "similar": []
            }
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&error).unwrap());
}
