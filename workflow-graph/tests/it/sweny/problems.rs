//! Every problem of a SWEny document, with its text.

use expect_test::expect;
use workflow_graph::{Document, Format, SwenyOptions};

use crate::support::{lines, problems};

fn parallel(text: &str) -> String {
    let format = Format::Sweny(SwenyOptions::new().parallel());
    match Document::parse_as(text, "g.yaml", format) {
        Ok(document) => lines(document.warnings()),
        Err(error) => lines(&error.problems),
    }
}

/// A document with this node, and nothing else.
fn node(rest: &str) -> String {
    problems(&format!(
        "id: g\nname: G\nentry: a\nnodes:\n  a: {{name: A, instruction: Do it., {rest}}}\nedges: []\n"
    ))
}

/// G3
#[test]
fn the_keys_tell_the_format_and_every_missing_one_is_named() {
    expect![[r#"
        g.yaml:1:1: error[missing-key]: a SWEny document needs the key `name`; add `name:`
        g.yaml:1:1: error[missing-key]: a SWEny document needs the key `nodes`; add `nodes:`
        g.yaml:1:1: error[missing-key]: a SWEny document needs the key `edges`; add `edges:`
    "#]]
    .assert_eq(&problems("id: g\nentry: a\n"));
    expect![[r#"
        g.yaml:1:1: error[missing-key]: a SWEny document needs the key `name`; add `name:`
        g.yaml:3:12: error[missing-key]: a node needs the key `name`; add `name:`
        g.yaml:3:12: error[missing-key]: a node needs the key `instruction`; add `instruction:`
        g.yaml:3:16: warning[unreachable-node]: no route from `a`, where runs start, leads to `b`; lead a route to it, or remove it
        g.yaml:3:54: error[missing-key]: an evaluator needs the key `name`; add `name:`
        g.yaml:3:54: error[missing-key]: an evaluator needs the key `rubric`; add `rubric:`
        g.yaml:3:69: error[missing-key]: an evaluator needs the key `rule`; add `rule:`
        g.yaml:3:101: error[missing-key]: `retry` needs the key `max`; add `max:`
        g.yaml:4:9: error[missing-key]: an edge needs the key `from`; add `from:`
        g.yaml:4:9: error[missing-key]: an edge needs the key `to`; add `to:`
    "#]].assert_eq(&problems(
        "id: g\nentry: a\nnodes: {a: {}, b: {name: B, instruction: Do., eval: [{kind: judge}, {name: x, kind: value}], retry: {}}}\nedges: [{}]\n",
    ));
}

/// G4
#[test]
fn nodes_and_edges_are_closed_and_the_top_is_open() {
    expect![[r#"
        g.yaml:5:40: error[unknown-key]: a node has no key `instructon`; did you mean `instruction`?
        g.yaml:6:26: error[unknown-key]: an edge has no key `wen`; did you mean `when`?
    "#]].assert_eq(&problems(
        "id: g\nname: G\nentry: a\nowner: kept\nnodes: {a: {name: A, instruction: Do., instructon: x}}\nedges: [{from: a, to: a, wen: x, max_iterations: 1}]\n",
    ));
}

/// G3
#[test]
fn values_of_wrong_types_are_problems() {
    expect![[r#"
        g.yaml:5:48: error[wrong-type]: `fail_soft` is `true` or `false`, and this is the number 1; write `true` or `false`
        g.yaml:5:62: error[wrong-type]: `max_turns` is a whole number from 1, and this is 0; write a whole number from 1
        g.yaml:5:72: error[wrong-type]: `tools` is a map, and this is a list; write a map
        g.yaml:5:84: error[missing-key]: `rules` needs the key `sources`; add `sources:`
        g.yaml:5:91: error[wrong-type]: `only` is `true` or `false`, and this is the text `x`; write `true` or `false`
        g.yaml:5:104: error[wrong-type]: `context` is a list, and this is the text `hello`; write a list
        g.yaml:5:124: error[wrong-type]: `eval_policy` is `all_pass`, `any_pass` or `weighted`, and this is `none`; write `all_pass`, `any_pass` or `weighted`
    "#]].assert_eq(&node(
        "fail_soft: 1, max_turns: 0, tools: [x], rules: {only: x}, context: hello, eval_policy: none",
    ));
    expect![[r#"
        g.yaml:1:5: error[bad-name]: `7g` is no name of a graph; begin with a letter and use at most 64 letters, digits, `.`, `_` and `-`
        g.yaml:2:7: error[wrong-type]: `name` is a text, and this is a list; write a text
        g.yaml:4:35: error[wrong-type]: `instruction` is a text, or a map with `inline` or `file`, and this is the number 7; write a text, or a map with `inline` or `file`
        g.yaml:5:8: error[wrong-type]: `edges` is a list, and this is a map; write a list
        g.yaml:6:9: error[wrong-type]: `skills` is a map of ids to skills, and this is a list; write a map of ids to skills
        g.yaml:7:9: error[wrong-type]: `inputs` is a map of names to inputs, and this is a list; write a map of names to inputs
    "#]].assert_eq(&problems(
        "id: 7g\nname: [G]\nentry: a\nnodes: {a: {name: A, instruction: 7}}\nedges: {}\nskills: []\ninputs: []\n",
    ));
    expect![[r#"
        g.yaml:4:8: error[missing-key]: the document has no node; add one to `nodes`
    "#]]
    .assert_eq(&problems("id: g\nname: G\nentry: a\nnodes: {}\nedges: []\n"));
    expect![[r#"
        g.yaml:5:42: error[wrong-type]: `max_iterations` is a whole number from 1, and this is 0; write a whole number from 1
    "#]].assert_eq(&problems(
        "id: g\nname: G\nentry: a\nnodes: {a: {name: A, instruction: Do.}}\nedges: [{from: a, to: a, max_iterations: 0}]\n",
    ));
}

/// G3
#[test]
fn keys_of_former_versions_name_their_heirs() {
    expect![[r#"
        g.yaml:4:1: error[legacy-key]: `verify` is a key of a former version of the format; write its checks as evaluators of a node, under `eval`
        g.yaml:5:40: error[legacy-key]: `verify` is a key of a former version of the format; write its checks as evaluators, under `eval`
    "#]].assert_eq(&problems(
        "id: g\nname: G\nentry: a\nverify: {}\nnodes: {a: {name: A, instruction: Do., verify: {output_required: [x]}}}\nedges: []\n",
    ));
}

/// G3
#[test]
fn what_is_not_supported_says_so() {
    expect![[r#"
        g.yaml:5:50: error[unsupported]: the policy `any_pass` is not supported: any failed evaluation fails a node; remove it, and the evaluators that may fail
    "#]].assert_eq(&node("eval_policy: any_pass"));
    expect![[r#"
        g.yaml:5:50: error[unsupported]: the policy `weighted` is not supported: any failed evaluation fails a node; remove it, and the evaluators that may fail
    "#]].assert_eq(&node("eval_policy: weighted"));
    expect![[r#"
        g.yaml:5:45: error[unsupported]: `https://example.com/rules.md` is in a network, and the reader fetches nothing; store the text in a file beside the document
        g.yaml:5:83: error[unsupported]: `http://example.com` is in a network, and the reader fetches nothing; store the text in a file beside the document
    "#]].assert_eq(&node("rules: ['https://example.com/rules.md', {url: 'http://example.com'}]"));
    expect![[r#"
        g.yaml:7:1: error[unsupported]: a SWEny file holds one document, and this is another one; move it to a file of its own
    "#]].assert_eq(&problems(
        "id: g\nname: G\nentry: a\nnodes: {a: {name: A, instruction: Do.}}\nedges: []\n---\nid: h\n",
    ));
}

/// G3
#[test]
fn schemas_of_outputs_and_inputs_are_checked() {
    expect![[r#"
        g.yaml:5:52: error[bad-schema]: `output` is no valid JSON Schema: `strng` is no type; did you mean `string`?
    "#]].assert_eq(&node("output: {type: strng}"));
    expect![[r#"
        g.yaml:5:45: error[wrong-type]: `output` is a JSON Schema, and this is a list; write a JSON Schema
    "#]]
    .assert_eq(&node("output: [cause]"));
    expect![[r#"
        g.yaml:7:13: error[wrong-type]: `type` is `string`, `number`, `boolean` or `string[]`, and this is `text`; write `string`, `number`, `boolean` or `string[]`
        g.yaml:8:37: error[bad-schema]: `b` is required, so that its default is never used; remove `default` or `required`
        g.yaml:9:30: error[bad-schema]: the default of `c` does not fit: "one" is not of type "number"; correct it, or the declaration
        g.yaml:10:21: error[bad-schema]: `enum` of `d` is empty, so that no value fits; add a value, or remove the key
        g.yaml:11:35: error[bad-schema]: a value of `enum` of `e` does not fit: 1 is not of type "string"; correct it, or the declaration
        g.yaml:11:48: error[bad-schema]: the default of `e` does not fit: "z" is not one of "x" or 1; correct it, or the declaration
        g.yaml:12:6: error[missing-key]: an input needs the key `type`; add `type:`
        g.yaml:12:17: error[wrong-type]: `required` is `true` or `false`, and this is the text `maybe`; write `true` or `false`
    "#]].assert_eq(&problems(
        "id: g\nname: G\nentry: a\nnodes: {a: {name: A, instruction: Do.}}\nedges: []\ninputs:\n  a: {type: text}\n  b: {type: number, required: true, default: 1}\n  c: {type: number, default: one}\n  d: {type: string, enum: []}\n  e: {type: 'string[]', enum: [x, 1], default: [z]}\n  f: {required: maybe}\n",
    ));
}

/// G3
#[test]
fn ids_are_names_and_input_is_reserved() {
    expect![[r#"
        g.yaml:5:3: error[reserved-name]: `input` stands for the input of the run, and is no id of a node; rename it, for example to `input_`
        g.yaml:6:3: error[bad-name]: `a b` is no id of a node; begin with a letter or `_` and use at most 64 letters, digits, `_` and `-`
    "#]].assert_eq(&problems(
        "id: g\nname: G\nentry: input\nnodes:\n  input: {name: A, instruction: Do.}\n  a b: {name: A, instruction: Do.}\n  end: {name: A, instruction: Do.}\nedges: [{from: input, to: end}, {from: end, to: a b}]\n",
    ));
}

// G3 SW21
#[test]
fn edges_and_paths_lead_to_nodes() {
    expect![[r#"
        g.yaml:3:8: error[unknown-start]: the graph starts at `star`, and the graph has no such node; did you mean `start`?
        g.yaml:5:76: error[unknown-node]: `strt.y` begins with `strt`, and the document has no such node; did you mean `start`?
        g.yaml:7:16: error[unknown-node]: an edge leaves `strat`, and the document has no such node; did you mean `start`?
        g.yaml:7:53: error[unknown-node]: `start` leads to `zzz`, and the graph has no such node; add the node, or name another
    "#]].assert_eq(&problems(
        "id: g\nname: G\nentry: star\nnodes:\n  start: {name: A, instruction: Do., requires: {output_required: [input.x, strt.y]}}\n  other: {name: A, instruction: Do.}\nedges: [{from: strat, to: start}, {from: start, to: zzz}]\n",
    ));
    expect![[r#"
        g.yaml:6:3: warning[unreachable-node]: no route from `a`, where runs start, leads to `b`; lead a route to it, or remove it
    "#]].assert_eq(&problems(
        "id: g\nname: G\nentry: a\nnodes:\n  a: {name: A, instruction: Do.}\n  b: {name: B, instruction: Do.}\nedges: []\n",
    ));
}

// SW17
#[test]
fn two_edges_without_a_condition_are_ambiguous_unless_branches_are_wanted() {
    let text = "id: g\nname: G\nentry: a\nnodes:\n  a: {name: A, instruction: Do.}\n  b: {name: B, instruction: Do.}\n  c: {name: C, instruction: Do.}\nedges:\n  - {from: a, to: b}\n  - {from: a, to: c, when: ''}\n";
    expect![[r#"
        g.yaml:10:5: error[ambiguous-routes]: two edges without `when` leave `a`, the first in line 9, and a walk follows one of them; add `when:` to all but one, or import the document with `SwenyOptions::parallel`
    "#]].assert_eq(&problems(text));
    expect![""].assert_eq(&parallel(text));
    expect![[r#"
        g.yaml:11:5: error[ambiguous-routes]: two edges without `when` leave `a`, the first in line 9, and a walk follows one of them; add `when:` to all but one, or import the document with `SwenyOptions::parallel`
    "#]].assert_eq(&parallel(&text.replace("when: ''", "when: it rains}\n  - {from: a, to: c")));
    expect![[r#"
        g.yaml:10:5: error[unsupported]: the edge from `a` to `b` opens a branch, and has a bound; bound an edge behind the branches
        g.yaml:10:5: error[ambiguous-routes]: two branches of `a` begin with `b`; remove one of the edges
    "#]].assert_eq(&parallel(
        &text.replace("to: c, when: ''", "to: b, max_iterations: 2}\n  - {from: b, to: c"),
    ));
}

// SW18
#[test]
fn cycles_need_a_bound() {
    let text = |bound: &str| {
        format!(
            "id: g\nname: G\nentry: a\nnodes:\n  a: {{name: A, instruction: Do.}}\n  b: {{name: B, instruction: Do.}}\nedges:\n  - {{from: a, to: b}}\n  - {{from: b, to: a, when: again{bound}}}\n  - {{from: b, to: b, when: stay{bound}}}\n"
        )
    };
    expect![[r#"
        g.yaml:5:3: error[unbounded-cycle]: the cycle `a` → `b` → `a` has no bound; add `max_iterations:` to one of its edges
        g.yaml:10:19: error[self-loop]: `b` leads to itself without a bound; add `max_iterations:` to one of its edges
    "#]].assert_eq(&problems(&text("")));
    expect![""].assert_eq(&problems(&text(", max_iterations: 2")));
}

/// G3
#[test]
fn evaluators_say_what_they_check() {
    expect![[r#"
        g.yaml:5:73: error[bad-check]: `rule` asks nothing; write one of `output_required` and `output_matches`
        g.yaml:5:108: error[bad-check]: an evaluator of kind `value` has no rule `any_tool_called`; write one of `output_required` and `output_matches`, or change `kind`
    "#]].assert_eq(&node(
        "eval: [{name: a, kind: value, rule: {}}, {name: b, kind: value, rule: {any_tool_called: [x]}}]",
    ));
    expect![[r#"
        g.yaml:5:77: error[bad-check]: an evaluator of kind `function` has no rule `output_required`; write one of `any_tool_called`, `all_tools_called` and `no_tool_called`, or change `kind`
        g.yaml:5:100: error[bad-check]: an evaluator of kind `function` has no `rubric`; remove it, or change `kind`
        g.yaml:5:112: error[missing-key]: an evaluator needs the key `rubric`; add `rubric:`
        g.yaml:5:135: error[bad-check]: an evaluator of kind `judge` has no `rule`; remove it, or change `kind`
    "#]].assert_eq(&node("eval: [{name: a, kind: function, rule: {output_required: [x]}, rubric: x}, {name: b, kind: judge, rule: {}}]"));
    expect![[r#"
        g.yaml:5:60: error[wrong-type]: `kind` is `value`, `function` or `judge`, and this is `guess`; write `value`, `function` or `judge`
        g.yaml:5:101: error[unknown-key]: `rule` has no key `any_tool`; did you mean `any_tool_called`?
    "#]]
        .assert_eq(&node("eval: [{name: a, kind: guess}, {name: b, kind: function, rule: {any_tool: [x]}}]"));
    expect![[r#"
        g.yaml:5:109: error[bad-pattern]: "(" is no regular expression: unclosed group; correct it, or escape characters with `\`
        g.yaml:5:124: error[duplicate-key]: two evaluators of the node are named `a`; rename one of them
        g.yaml:5:164: error[bad-check]: the check says more than once what `path` has to be; write one of `equals`, `in` or `matches`
        g.yaml:5:171: error[bad-check]: `a..b` is no path; write it as `a.b`, `a[0].b` or `a[*].b`
    "#]].assert_eq(&node("eval: [{name: a, kind: value, rule: {output_matches: {path: x, matches: '('}}}, {name: a, kind: value, rule: {output_matches: [{path: 'a..b', equals: 1, in: [1]}]}}]"));
    expect![[r#"
        g.yaml:5:47: error[bad-check]: `requires` checks nothing; write one of `output_required` and `output_matches`
        g.yaml:5:57: error[wrong-type]: `on_fail` is `fail` or `skip`, and this is `stop`; write `fail` or `skip`
    "#]].assert_eq(&node("requires: {on_fail: stop}"));
    expect![[r#"
        g.yaml:5:65: error[bad-check]: the check does not say what `path` has to be; write one of `equals`, `in` or `matches`
    "#]].assert_eq(&node("requires: {output_matches: [{path: input.x}]}"));
    expect![[r#"
        g.yaml:5:50: error[wrong-type]: `max` is a whole number from 1 to 100, and this is 0; write a whole number from 1 to 100
        g.yaml:5:66: error[wrong-type]: `instruction` is a text, `{auto: true}` or `{reflect: text}`, and this is a map; write a text, `{auto: true}` or `{reflect: text}`
    "#]].assert_eq(&node("retry: {max: 0, instruction: {auto: false}}"));
    expect![[r#"
        g.yaml:5:66: error[wrong-type]: `instruction` is a text, `{auto: true}` or `{reflect: text}`, and this is a map; write a text, `{auto: true}` or `{reflect: text}`
    "#]].assert_eq(&node("retry: {max: 1, instruction: {reflect: a, auto: true}}"));
}

/// G3
#[test]
fn skills_have_an_instruction_or_a_server() {
    expect![[r#"
        g.yaml:4:13: error[missing-key]: the skill `x` has neither `instruction` nor `mcp`; add one of them
        g.yaml:4:33: error[wrong-type]: `mcp` is a map, and this is the text `server`; write a map
        g.yaml:4:76: error[wrong-type]: `mcpAliases` is a map of tools to lists of names, and this is a list; write a map of tools to lists of names
        g.yaml:4:86: error[unknown-key]: a skill has no key `instructon`; did you mean `instruction`?
    "#]].assert_eq(&problems(
        "id: g\nname: G\nentry: a\nskills: {x: {name: X}, y: {mcp: server}, z: {instruction: Do., mcpAliases: [a]}, w: {instructon: Do.}}\nnodes: {a: {name: A, instruction: Do.}}\nedges: []\n",
    ));
}

// SW4
#[test]
fn more_judges_than_the_budget_are_a_warning() {
    let judge = |name: &str| format!("{{name: {name}, kind: judge, rubric: Good?}}");
    let text = |budget: &str| {
        format!(
            "id: g\nname: G\nentry: a\n{budget}nodes: {{a: {{name: A, instruction: Do., eval: [{}, {}, {}]}}}}\nedges: []\n",
            judge("x"),
            judge("y"),
            judge("z")
        )
    };
    expect![""].assert_eq(&problems(&text("")));
    expect![[r#"
        g.yaml:5:93: warning[judge-budget]: the document declares 3 judges, and `judge_budget` is 1; remove some, or raise `judge_budget`
    "#]].assert_eq(&problems(&text("judge_budget: 1\n")));
}

/// G5
#[test]
fn files_are_relative_to_the_document() {
    expect![[r#"
        g.yaml:5:45: error[file-not-found]: `./rules.md` cannot be found: a document that is parsed from a text has no folder; load the document from its file
        g.yaml:5:64: error[file-not-found]: `rules.md` cannot be found: a document that is parsed from a text has no folder; load the document from its file
        g.yaml:5:96: error[wrong-type]: a source has one of `inline`, `file` and `url`; write one of them
    "#]].assert_eq(&node("rules: [./rules.md, {file: rules.md}, {inline: ./no-file}, {}]"));
    let folder = tempfile::tempdir().unwrap();
    let text = "id: g\nname: G\nentry: a\nnodes: {a: {name: A, instruction: ./task.md, rules: [../outside.md, /etc/hostname]}}\nedges: []\n";
    let path = folder.path().join("g.yaml");
    std::fs::write(&path, text).unwrap();
    std::fs::write(folder.path().join("task.md"), "Do it.").unwrap();
    let error = Document::load(&path).unwrap_err();
    let codes: Vec<_> = error.problems.iter().map(|problem| problem.code.as_str()).collect();
    assert_eq!(codes, ["file-outside-root", "file-outside-root"]);
}
