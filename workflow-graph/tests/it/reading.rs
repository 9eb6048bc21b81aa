//! YAML and JSON: syntax, keys, aliases, merges, scalars.

use expect_test::expect;

use super::support::problems;

/// G3
#[test]
fn a_syntax_error_says_where_it_is() {
    let text = r"graph: g
nodes:
  a: {value: 1
  b: {value: 2}
";
    expect![[r#"
        g.yaml:4:4: error[syntax]: while parsing a flow mapping, did not find expected ',' or '}'; correct the YAML here, or quote the text
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn a_tab_as_indentation_is_a_syntax_error() {
    let text = r"graph: g
nodes:
	a: {value: 1}
";
    expect![[r#"
        g.yaml:3:2: error[syntax]: tabs disallowed within this context (block indentation); correct the YAML here, or quote the text
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn an_empty_file_has_no_document() {
    let text = r"# nothing
";
    expect![[r#"
        g.yaml:1:1: error[missing-key]: the file has no document; begin with `graph:` and `nodes:`
    "#]]
    .assert_eq(&problems(text));
}

/// G4
#[test]
fn a_duplicate_key_names_its_first_line() {
    let text = r"graph: g
nodes:
  a: {value: 1}
  b: {value: 1, value: 2}
  a: {value: 3}
";
    expect![[r#"
        g.yaml:4:3: error[unreachable-node]: no route from `a`, where runs start, leads to `b`; lead a route to it, or remove it
        g.yaml:4:17: error[duplicate-key]: the map has the key `value` twice, first in line 4; remove or rename one of them
        g.yaml:5:3: error[duplicate-key]: the map has the key `a` twice, first in line 3; remove or rename one of them
    "#]].assert_eq(&problems(text));
}

/// G4
#[test]
fn json_is_read_like_yaml() {
    let text = r#"{
	"graph": "g",
	"nodes": {
		"a": {"value": "\u00e4\ud83d\ude00\/", "nexxt": "b"}
	}
}
"#;
    expect![[r#"
        g.yaml:4:42: error[unknown-key]: a node has no key `nexxt`; did you mean `next`?
        g.yaml:4:51: error[unknown-node]: `a` leads to `b`, and the graph has no such node; add the node, or name another
    "#]]
    .assert_eq(&problems(text));
}

/// G4
#[test]
fn json_that_is_cut_is_a_syntax_error() {
    let text = r#"{"graph": "g", "nodes": {"a": {"value": 1}
"#;
    expect![[r#"
        g.yaml:1:25: error[syntax]: unclosed bracket '{'; correct the YAML here, or quote the text
    "#]]
    .assert_eq(&problems(text));
}

/// G4
#[test]
fn a_merge_takes_what_the_map_does_not_say_itself() {
    let text = r"graph: g
nodes:
  a: &a {value: 1, next: b, timeout: soon}
  b:
    <<: *a
    next: end
    timeout: 1s
";
    expect![[r#"
        g.yaml:3:38: error[bad-duration]: `soon` is no duration; write a whole number and its unit: `250ms`, `30s`, `10m`, `48h` or `7d`, at most `36500d`
    "#]].assert_eq(&problems(text));
}

/// G4
#[test]
fn a_merge_of_a_text_is_refused() {
    let text = r"graph: g
nodes:
  a: {<<: text, value: 1}
";
    expect![[r#"
        g.yaml:3:11: error[wrong-type]: `<<` merges maps, and this is a text; write an alias of a map, or a list of such
    "#]].assert_eq(&problems(text));
}

/// G4
#[test]
fn an_unknown_alias_is_a_syntax_error() {
    let text = r"graph: g
nodes: {a: {value: *b}}
";
    expect![[r#"
        g.yaml:2:20: error[syntax]: while parsing node, found unknown anchor; correct the YAML here, or quote the text
    "#]].assert_eq(&problems(text));
}

/// G4
#[test]
fn an_alias_inside_of_its_anchor_is_refused() {
    let text = r"graph: g
nodes: {a: {value: &v [1, *v]}}
";
    expect![[r#"
        g.yaml:2:27: error[syntax]: the alias stands inside of its own anchor; move the anchor
    "#]]
    .assert_eq(&problems(text));
}

/// G4
#[test]
fn a_problem_of_an_aliased_value_is_located_where_it_is_used() {
    let text = r"graph: g
nodes:
  a: {value: &text hello, next: b}
  b: {value: 1, timeout: *text}
";
    expect![[r#"
        g.yaml:4:26: error[bad-duration]: `hello` is no duration; write a whole number and its unit: `250ms`, `30s`, `10m`, `48h` or `7d`, at most `36500d`
    "#]].assert_eq(&problems(text));
}

/// G4
#[test]
fn a_list_as_a_key_is_refused() {
    let text = r"graph: g
nodes: {? [a] : {value: 1}}
";
    expect![[r#"
        g.yaml:2:11: error[syntax]: a key is a list or a map; write a text as the key
    "#]]
    .assert_eq(&problems(text));
}

/// G4
#[test]
fn an_unknown_tag_is_refused() {
    let text = r"graph: g
nodes: {a: {value: !secret x}}
";
    expect![[r#"
        g.yaml:2:28: error[syntax]: the tag `!secret` is none that the format knows; remove the tag
    "#]]
    .assert_eq(&problems(text));
}

/// G4
#[test]
fn a_number_that_json_cannot_hold_is_refused() {
    let text = r"graph: g
nodes:
  a: {value: [.inf, 18446744073709551616, 1e999, 0x10, -.5, 1_000]}
";
    expect![[r#"
        g.yaml:3:15: error[too-large]: the number `.inf` is none that JSON can hold exactly; quote it, or write a smaller number or a fraction
        g.yaml:3:21: error[too-large]: the number `18446744073709551616` is none that JSON can hold exactly; quote it, or write a smaller number or a fraction
        g.yaml:3:43: error[too-large]: the number `1e999` is none that JSON can hold exactly; quote it, or write a smaller number or a fraction
    "#]].assert_eq(&problems(text));
}

/// G4
#[test]
fn a_tag_that_its_value_contradicts_is_refused() {
    let text = r"graph: g
nodes: {a: {value: [!!int x, !!str 5, !!float 3]}}
";
    expect![[r#"
        g.yaml:2:27: error[wrong-type]: `x` is not what its tag `!!int` says; remove the tag, or correct the value
    "#]].assert_eq(&problems(text));
}

/// G4
#[test]
fn line_ends_of_windows_and_a_mark_of_byte_order_are_read() {
    assert_eq!(problems("\u{feff}graph: g\r\nnodes:\r\n  a: {value: 1}\r\n"), "");
    let text = "graph: g\r\nnodes:\r\n  a:\r\n    value: |\r\n      first\r\n      ${ x }\r\n";
    expect![[r#"
        g.yaml:6:10: error[unknown-node]: `x` is no node, and no other name that expressions have; correct the name, or quote a text
    "#]].assert_eq(&problems(text));
}

/// G4
#[test]
fn keys_of_json_may_be_long() {
    let key = "k".repeat(10_000);
    assert_eq!(problems(&format!(r#"{{"graph": "g", "nodes": {{"a": {{"value": {{"{key}": 1}}}}}}}}"#)), "");
}

/// G4
#[test]
fn columns_count_characters() {
    let text = "graph: g\nnodes:\n  a: {value: \"äöü ${ x } 😀 ${ y }\", timeot: 1s}\n";
    expect![[r#"
        g.yaml:3:22: error[unknown-node]: `x` is no node, and no other name that expressions have; correct the name, or quote a text
        g.yaml:3:31: error[unknown-node]: `y` is no node, and no other name that expressions have; correct the name, or quote a text
        g.yaml:3:37: error[unknown-key]: a node has no key `timeot`; did you mean `timeout`?
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn documents_before_a_syntax_error_are_checked_for_their_values() {
    let text = "graph: g\nnodes: {a: {value: 1, timeot: 1s}}\n---\ngraph: [h\n";
    expect![[r#"
        g.yaml:2:23: error[unknown-key]: a node has no key `timeot`; did you mean `timeout`?
        g.yaml:4:8: error[syntax]: unclosed bracket '['; correct the YAML here, or quote the text
    "#]]
    .assert_eq(&problems(text));
}
