//! Scripts as strangers write them: refusals, and how their problems read.

use expect_test::expect;
use serde_json::{Value, json};
use workflow_graph::{Code, ScriptedExecutor};

use super::support::lines;

fn problems(text: &str) -> String {
    lines(&ScriptedExecutor::parse(text, "s.yaml").unwrap_err().problems)
}

/// G3
#[test]
fn every_mistake_of_a_script_is_reported_at_its_place() {
    let text = r"node: {}
nodes:
  a: {data: 1}
  b: [1, {dta: 1}, {data: 1, fail: x}, {data: 1, class: tool}, {fail: 7}, {fail: x, class: permanet}]
  c: [{skip: [x]}, {data: 1, after: 5}, {data: 1, called: [search, {tol: x}, {ok: true}, {tool: x, ok: 1}]}]
  d: []
decide: [x]
judge: {a: [7]}
ask: Shorten it.
replies: {a: {granted: true}}
";
    expect![[r#"
        s.yaml:1:1: error[unknown-key]: a script has no key `node`; did you mean `nodes`?
        s.yaml:3:6: error[wrong-type]: `a` is a list, and this is a map; write a list
        s.yaml:4:7: error[wrong-type]: an entry of a script is a map, and this is the number 1; write a map
        s.yaml:4:11: error[unknown-key]: an entry of a script has no key `dta`; did you mean `data`?
        s.yaml:4:30: error[unknown-key]: an attempt ends once, and this one has `data` and `fail`; make two entries of it
        s.yaml:4:50: error[unknown-key]: `class` belongs to an entry with `fail`, and this one has none; remove it, or add `fail:`
        s.yaml:4:71: error[wrong-type]: `fail` is a text, and this is the number 7; write a text
        s.yaml:4:92: error[wrong-type]: `class` is `transient`, `tool`, `model`, `permanent` or `rejected`, and this is `permanet`; did you mean `permanent`?
        s.yaml:5:14: error[wrong-type]: `skip` is a text, and this is a list; write a text
        s.yaml:5:37: error[bad-duration]: `5` is no duration; write a whole number and its unit: `250ms`, `30s`, `10m`, `48h` or `7d`, at most `36500d`
        s.yaml:5:60: error[wrong-type]: a call is a map, and this is the text `search`; write a map
        s.yaml:5:69: error[unknown-key]: a call has no key `tol`; did you mean `tool`?
        s.yaml:5:78: error[missing-key]: a call needs the key `tool`; add `tool:`
        s.yaml:5:104: error[wrong-type]: `ok` is `true` or `false`, and this is the number 1; write `true` or `false`
        s.yaml:6:6: error[wrong-type]: the list of `d` is empty, and its last entry would repeat; add an entry, or remove the key
        s.yaml:7:9: error[wrong-type]: `decide` is a map of nodes to lists, and this is a list; write a map of nodes to lists
        s.yaml:8:13: error[wrong-type]: `a` is a text, and this is the number 7; write a text
        s.yaml:9:6: error[wrong-type]: `ask` is a list, and this is the text `Shorten it.`; write a list
        s.yaml:10:14: error[wrong-type]: `a` is a list, and this is a map; write a list
    "#]].assert_eq(&problems(text));
}

/// G4
#[test]
fn a_script_is_one_document_with_each_key_once() {
    let text = "nodes: {a: [{data: 1}], a: [{data: 2}]}\n---\nask: [x]\n";
    expect![[r#"
        s.yaml:1:25: error[duplicate-key]: the map has the key `a` twice, first in line 1; remove or rename one of them
        s.yaml:3:1: error[wrong-type]: the file has several documents, and a script is one; remove the others
    "#]].assert_eq(&problems(text));
    expect![[r#"
        s.yaml:1:12: error[syntax]: unclosed bracket '['; correct the YAML here, or quote the text
    "#]]
    .assert_eq(&problems("nodes: {a: [\n"));
    expect![[r#"
        s.yaml:1:1: error[wrong-type]: a script is a map, and this is a list; write a map
    "#]]
    .assert_eq(&problems("[]"));
}

#[test]
fn an_empty_script_is_one() {
    for text in ["", "{}", "# nothing\n"] {
        ScriptedExecutor::parse(text, "s.yaml").unwrap();
    }
}

#[test]
fn scripts_are_loaded_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.yaml");
    std::fs::write(&path, "decide: {a: [b]}\n").unwrap();
    ScriptedExecutor::load(&path).unwrap();
    std::fs::write(&path, b"ask: [\xff]\n").unwrap();
    let error = ScriptedExecutor::load(&path).unwrap_err();
    assert_eq!((error.problems[0].code, error.problems[0].location.column), (Code::Syntax, 7));
    let error = ScriptedExecutor::load(folder.path().join("absent")).unwrap_err();
    assert!(error.to_string().contains("the script cannot be read"), "{error}");
}

#[test]
fn a_script_may_be_json() {
    let text = r#"{"nodes": {"look_up": [{"fail": "away"}, {"data": {"paid": 900}, "after": "50ms"}]}, "ask": ["x"]}"#;
    let script: Value = serde_json::from_str(text).unwrap();
    let executor = ScriptedExecutor::from_json(&script).unwrap();
    assert!(format!("{executor:?}").starts_with("ScriptedExecutor"));
    let error =
        ScriptedExecutor::from_json(&json!({"nodes": {"a": [{"fail": "x", "clas": "tool"}]}})).unwrap_err();
    expect!["script:1:17: error[unknown-key]: an entry of a script has no key `clas`; did you mean `class`?"]
        .assert_eq(&error.to_string());
}
