//! The format as JSON Schema.

use std::fs;
use std::path::PathBuf;

use jsonschema::Validator;
use serde_json::{Value, json};
use workflow_graph::{Code, Document, Severity};

use super::support::{EXAMPLES, example};

fn validator() -> Validator {
    jsonschema::draft202012::new(&Document::schema()).unwrap()
}

/// The documents of a file as JSON, read by another reader than the crate's.
fn documents(text: &str) -> Vec<Value> {
    super::edits::documents(text)
}

/// G3
#[test]
fn the_published_schema_is_that_of_the_code() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schema/graph.json");
    let schema = Document::schema();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&file, serde_json::to_string_pretty(&schema).unwrap() + "\n").unwrap();
    }
    // As values: a feature of `serde_json` may change the order of keys.
    let published: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert!(published == schema, "run the tests with UPDATE_EXPECT=1");
}

/// G3
#[test]
fn every_example_satisfies_the_schema() {
    let validator = validator();
    for name in EXAMPLES {
        for document in documents(&example(name)) {
            let errors: Vec<String> =
                validator.iter_errors(&document).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{name}: {errors:?}");
        }
    }
}

/// Every form that the format's page names, in the smallest document that has it.
const FORMS: [&str; 24] = [
    r#"{"function": "f", "with": {"a": "${ input }"}, "timeout": "5s", "retry": "none"}"#,
    r#"{"tool": "t", "retry": {"attempts": 4, "first": "200ms", "factor": 1.5, "most": "1m", "jitter": 0.1}}"#,
    r#"{"agent": "Do it."}"#,
    r#"{"agent": {"instruction": "Do it.", "model": "m", "tools": {"allow": ["a"], "deny": ["b"]}, "skills": ["s"],
        "max_turns": 3, "rules": ["r"], "background": "b"}, "reads": []}"#,
    r#"{"agent": "Do it.", "reads": "all", "ensure": {"all": ["true"], "retries": 2, "guidance": "auto"}}"#,
    r#"{"command": ["ls", "${ input }"]}"#,
    r#"{"command": {"run": ["ls"], "stdin": "x", "env": {"A": 1}, "parse": "json"}}"#,
    r#"{"human": {"ask": "Well?", "reply": true, "expires": "48h"}}"#,
    r#"{"value": null, "description": "d", "output": {"type": "null"}}"#,
    r#"{"graph": "g"}"#,
    r#"{"workflow": {"name": "w", "start": "s"}, "with": {}}"#,
    r#"{"value": 1, "requires": ["true", {"name": "n", "check": "true"}]}"#,
    r#"{"value": 1, "requires": {"all": [{"name": "n", "required": ["a.b"]}], "otherwise": "skip"}}"#,
    r#"{"value": 1, "ensure": [{"name": "n", "path": "any:a[*].b", "in": [1]}]}"#,
    r#"{"value": 1, "ensure": [{"name": "n", "path": "a", "matches": "^x"}, {"name": "n", "path": "a", "equals": 1}]}"#,
    r#"{"value": 1, "ensure": [{"name": "n", "called": {"any": ["a"], "all": ["b"], "none": ["c"]}}]}"#,
    r#"{"value": 1, "ensure": [{"name": "n", "judge": "Good?", "pass_when": true, "model": "m"}]}"#,
    r#"{"value": 1, "for_each": "input.list", "max_visits": 3}"#,
    r#"{"value": 1, "for_each": {"in": "input.list", "as": "thing", "concurrency": 2, "failures": "wait_all"}}"#,
    r#"{"value": 1, "set": {"v": 1}, "on_failure": "continue", "next": "end"}"#,
    r#"{"value": 1, "on_failure": [{"to": "b"}], "on_no_match": "end", "next": [{"to": "b", "when": "true", "id": "r"}]}"#,
    r#"{"value": 1, "on_failure": "b", "next": [{"to": "a", "max": 2}, {"to": "end"}]}"#,
    r#"{"value": 1, "next": {"parallel": ["b", {"to": "c", "when": "true"}], "join": "d", "failures": "continue_others",
        "conflicts": "first_wins", "concurrency": 2}}"#,
    r#"{"value": 1, "next": {"decide": "Which?", "choices": [{"to": "b", "about": "x"}, {"to": "end"}], "otherwise": "c"}}"#,
];

fn with_node(node: &Value) -> Value {
    json!({
        "graph": "g", "format": 1, "vars": {"v": 0}, "limits": {"steps": 9, "time": "7d", "items": 9},
        "defaults": {"timeout": "1s", "retry": "none", "model": "m", "judge_model": "j", "on_no_match": "end"},
        "start": "a",
        "nodes": {
            "a": node,
            "b": {"value": 1, "next": "d"}, "c": {"value": 1, "next": "d"}, "d": {"value": 1},
        },
    })
}

/// G3
#[test]
fn every_form_of_a_node_is_one_for_the_reader_and_for_the_schema() {
    let validator = validator();
    for form in FORMS {
        let document = with_node(&serde_json::from_str(form).unwrap());
        assert!(validator.is_valid(&document), "{form}");
        if let Err(error) = Document::parse(&document.to_string(), "g.json") {
            // The nodes that a form does not lead to.
            let others: Vec<_> =
                error.problems.iter().filter(|problem| problem.code != Code::UnreachableNode).collect();
            let errors = others.iter().filter(|problem| problem.severity == Severity::Error).count();
            assert_eq!(errors, 0, "{form}: {others:?}");
        }
    }
}

/// Wrong forms of a node, for the reader and for the schema alike.
const NO_FORMS: [&str; 16] = [
    r#"{}"#,
    r#"{"value": 1, "function": "f"}"#,
    r#"{"value": 1, "nxt": "b"}"#,
    r#"{"function": 1}"#,
    r#"{"function": ""}"#,
    r#"{"agent": {"model": "m"}}"#,
    r#"{"command": []}"#,
    r#"{"human": {"reply": {}}}"#,
    r#"{"value": 1, "timeout": "5 s"}"#,
    r#"{"value": 1, "max_visits": 0}"#,
    r#"{"value": 1, "next": []}"#,
    r#"{"value": 1, "next": [{"when": "true"}]}"#,
    r#"{"value": 1, "next": {"parallel": []}}"#,
    r#"{"value": 1, "next": {"decide": "x", "choices": [{"to": "b"}]}}"#,
    r#"{"value": 1, "ensure": [{"name": "n"}]}"#,
    r#"{"value": 1, "ensure": [{"name": "n", "path": "a"}]}"#,
];

/// G3
#[test]
fn what_is_no_form_is_refused_by_the_reader_and_by_the_schema() {
    let validator = validator();
    for form in NO_FORMS {
        let document = with_node(&serde_json::from_str(form).unwrap());
        assert!(!validator.is_valid(&document), "{form}");
        let error = Document::parse(&document.to_string(), "g.json").unwrap_err();
        assert!(error.problems.iter().any(|problem| problem.severity == Severity::Error), "{form}");
    }
}
