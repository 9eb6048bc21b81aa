//! `run` without a store: inputs, scripts, results and exit codes.

use serde_json::json;

use crate::support::{Place, QUICK, SLOW};

const GREET: &str = "
graph: greet
input: {type: object, properties: {name: {type: string}}, required: [name]}
nodes: {greet: {value: 'Hello, ${ input.name }!'}}
";

// G38, G39
#[test]
fn the_output_is_printed_and_progress_is_beside_it() {
    let place = Place::new(&[("greet.yaml", GREET)]);
    let ran = place.run(&["run", "greet.yaml", "--input", r#"{"name": "Ada"}"#]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Hello, Ada!\n"), "{}", ran.err);
    assert_eq!(ran.err, "greet: success\ncompleted at `greet` after 1 visit, quality clean\n");
}

// G38
#[test]
fn the_input_comes_from_a_file_or_the_standard_input() {
    let place = Place::new(&[("greet.yaml", GREET), ("input.json", r#"{"name": "Bob"}"#)]);
    assert_eq!(place.run(&["run", "greet.yaml", "--input", "@input.json"]).out, "Hello, Bob!\n");
    let ran = place.run_with(&["run", "greet.yaml", "--input", "-"], r#"{"name": "Eve"}"#);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Hello, Eve!\n"));
}

// G38, G39
#[test]
fn an_input_that_is_wrong_exits_with_2_and_every_field() {
    let place = Place::new(&[("greet.yaml", GREET)]);
    let unfit = place.run(&["run", "greet.yaml"]);
    assert_eq!((unfit.code, unfit.out.as_str()), (2, ""));
    assert_eq!(unfit.err, "error: the input does not fit `greet`: `name`: it is missing\n");
    let json = place.run(&["run", "greet.yaml", "--json"]);
    assert_eq!(json.err, "{\"error\":\"the input does not fit `greet`: `name`: it is missing\"}\n");
    for input in ["{", "@absent.json", "-"] {
        let ran = place.run(&["run", "greet.yaml", "--input", input]);
        assert_eq!(ran.code, 2, "{input}: {}", ran.err);
    }
    let both = place.run(&["run", "greet.yaml", "--input", "-", "--ask", "always"]);
    assert_eq!((both.code, both.err.contains("both read the standard input")), (2, true));
}

// G9, G38
#[test]
fn a_document_that_needs_functions_needs_a_script() {
    let place = Place::new(&[("slow.yaml", SLOW), ("script.yaml", QUICK)]);
    let bare = place.run(&["run", "slow.yaml"]);
    assert_eq!((bare.code, bare.out.as_str()), (2, ""));
    let missing = "slow.yaml:4:21: error[unknown-function]: the command has no functions of its own: \
        `first` calls `numbers.first`, `slow` calls `numbers.slow`; give a script with `--script FILE`\n";
    assert_eq!(bare.err, missing);
    let json = place.run(&["run", "slow.yaml", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!(error["problems"][0]["code"], "unknown-function");
    let played = place.run(&["run", "slow.yaml", "--script", "script.yaml"]);
    assert_eq!((played.code, played.err.contains("first → slow (only path)")), (0, true), "{}", played.err);
    let result = place.run(&["run", "slow.yaml", "--script", "script.yaml", "--json"]).json();
    assert_eq!(result["status"], "completed");
    assert_eq!(result["output"], json!({"first": 7, "slow": 8}));
    assert_eq!(result["trace"]["visits"].as_array().unwrap().len(), 3);
    place.write("wrong.yaml", "nodes: {slwo: []}");
    let wrong = place.run(&["run", "slow.yaml", "--script", "wrong.yaml"]);
    assert_eq!((wrong.code, wrong.err.contains("wrong.yaml:1:")), (2, true), "{}", wrong.err);
}

// G25, G39
#[test]
fn a_run_without_success_exits_with_1() {
    let place = Place::new(&[
        ("slow.yaml", SLOW),
        ("fail.yaml", "nodes: {slow: [{fail: no way, class: permanent}]}"),
        (
            "loop.yaml",
            "graph: l\nlimits: {steps: 5}\nnodes: {a: {value: 1, next: [{to: b, max: 9}]}, b: {value: 1, next: a}}\n",
        ),
    ]);
    let failed = place.run(&["run", "slow.yaml", "--script", "fail.yaml"]);
    assert_eq!((failed.code, failed.out.as_str()), (1, ""));
    assert!(
        failed.err.ends_with("error: `slow` failed after 1 attempt (permanent): no way\n"),
        "{}",
        failed.err
    );
    let json = place.run(&["run", "slow.yaml", "--script", "fail.yaml", "--json"]);
    assert_eq!(json.code, 1);
    assert_eq!((&json.json()["status"], &json.json()["node"]), (&json!("failed"), &json!("slow")));
    let limit = place.run(&["run", "loop.yaml"]);
    assert_eq!((limit.code, limit.err.contains("`limits.steps`")), (1, true), "{}", limit.err);
}

// G24, G38
#[test]
fn a_dry_run_lists_the_routes_that_it_could_take() {
    let text = "graph: d\nnodes: {a: {value: 1, next: [{when: a > 0, to: b}, {to: c}]}, b: {value: 1}, c: {value: 2}}\n";
    let place = Place::new(&[("d.yaml", text)]);
    let ran = place.run(&["run", "d.yaml", "--dry-run"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert!(ran.err.contains("the dry run ended at `a`, from which the run could go: "), "{}", ran.err);
    assert_eq!(place.run(&["run", "d.yaml", "--dry-run", "--json"]).json()["status"], "dry_run");
}

// G28, G38
#[cfg(unix)]
#[test]
fn commands_run_only_if_they_are_allowed() {
    let text = "graph: c\nnodes: {say: {command: [echo, hello]}}\n";
    let place = Place::new(&[("c.yaml", text)]);
    let refused = place.run(&["run", "c.yaml"]);
    assert_eq!((refused.code, refused.err.contains("error[commands-not-allowed]")), (2, true));
    let ran = place.run(&["run", "c.yaml", "--allow-commands", "--json"]);
    assert_eq!((ran.code, ran.out.contains("hello")), (0, true), "{}{}", ran.out, ran.err);
}

// G9, G38
#[test]
fn a_remedy_is_one_that_the_command_line_has() {
    let text = "graph: g\nnodes: {a: {tool: mail.send, next: b}, b: {command: [echo, hello]}}\n";
    let place = Place::new(&[("g.yaml", text), ("script.yaml", "nodes: {a: [{data: 1}], b: [{data: 2}]}")]);
    let bare = place.run(&["run", "g.yaml"]);
    assert!(bare.err.contains("error[no-executor]"), "{}", bare.err);
    assert!(bare.err.contains("give a script with `--script FILE`"), "{}", bare.err);
    assert!(
        bare.err.contains("give `--allow-commands` if you trust the document, or a script"),
        "{}",
        bare.err
    );
    assert!(!bare.err.contains("Registry::"), "{}", bare.err);
    let played = place.run(&["run", "g.yaml", "--script", "script.yaml"]);
    assert_eq!((played.code, played.out.as_str()), (0, "2\n"), "{}", played.err);
}

// G38
#[test]
fn control_sequences_never_reach_the_terminal() {
    let text =
        "graph: e\nnodes:\n  a: {value: \"\\e[31mred\", next: b}\n  b: {value: \"${ a }\\u009b2J\\u202e\"}\n";
    let place = Place::new(&[("e.yaml", text), ("bad\u{1b}.yaml", "graph: \"\\e[2J\"\n")]);
    let all = [
        place.run(&["run", "e.yaml"]),
        place.run(&["run", "e.yaml", "--json"]),
        place.run(&["run", "e.yaml", "--input", "\"\u{1b}", "--id", "r"]),
        place.run(&["check", "bad\u{1b}.yaml"]),
        place.run(&["run", "bad\u{1b}.yaml"]),
        place.run(&["draw", "e.yaml"]),
    ];
    for ran in all {
        let printed = ran.out + &ran.err;
        let control = printed.chars().find(|&c| (c.is_control() && c != '\n') || c == '\u{202e}');
        assert_eq!(control, None, "{printed:?}");
    }
    assert_eq!(place.run(&["run", "e.yaml"]).out, "\\u{1b}[31mred\\u{9b}2J\\u{202e}\n");
}

// G38
#[test]
fn the_examples_run_with_their_scripts() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for (name, input, code) in [
        ("refund", r#"{"order": "A1", "cents": 500}"#, 0),
        ("refund", r#"{"order": "A1", "cents": 20000}"#, 3),
        ("draft-loop", r#"{"topic": "wire"}"#, 0),
        ("release-checks", r#"{"version": "1.2"}"#, 3),
        ("thumbnails", r#"{"files": ["a", "b", "c"]}"#, 0),
    ] {
        let (document, script) = (format!("{name}.yaml"), format!("scripts/{name}.yaml"));
        let arguments = ["run", &document, "--script", &script, "--input", input];
        let ran = crate::support::command(&examples, &arguments).output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(code), "{name} {input}: {err}");
    }
}
