//! Programs as command nodes run them: their surroundings, their output and their failures.

#![expect(clippy::unwrap_used, reason = "what a test helper cannot do fails its test")]

use serde_json::{Value, json};
use workflow_core::ErrorClass;

use super::{CommandSpec, MOST, run};
use crate::NodeError;
use crate::document::model::Parse;

mod ends;

fn spec<const N: usize>(run: [&str; N]) -> CommandSpec {
    CommandSpec { run: run.map(str::to_owned).into(), stdin: None, env: Vec::new(), parse: None }
}

fn sh(script: &str) -> CommandSpec {
    spec(["sh", "-c", script])
}

fn env<const N: usize>(env: [(&str, &str); N], spec: CommandSpec) -> CommandSpec {
    CommandSpec { env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(), ..spec }
}

async fn text(spec: CommandSpec) -> String {
    let Value::String(text) = run(spec).await.unwrap() else { panic!("no text") };
    text
}

async fn failure(spec: CommandSpec) -> (ErrorClass, String) {
    let error: NodeError = run(spec).await.unwrap_err();
    (error.class(), error.to_string())
}

// G28
#[tokio::test]
async fn the_environment_is_that_of_the_document_and_path() {
    let shown = text(env([("TOKEN", "a b"), ("EMPTY", "")], spec(["env"]))).await;
    let mut lines: Vec<&str> = shown.lines().collect();
    lines.sort_unstable();
    let path = format!("PATH={}", std::env::var("PATH").unwrap());
    // Cargo gave this process many more.
    assert_eq!(lines, ["EMPTY=", &path, "TOKEN=a b"]);
    let other = text(env([("PATH", "/usr/bin:/bin")], spec(["env"]))).await;
    assert_eq!(other, "PATH=/usr/bin:/bin");
}

// G28
#[tokio::test]
async fn arguments_are_no_script() {
    let odd = ["$HOME", "*", "`id`", "a  b; c", "", "\n", "ä'\""];
    let mut spec = spec(["printf", "<%s>"]);
    spec.run.extend(odd.map(str::to_owned));
    assert_eq!(text(spec).await, odd.map(|argument| format!("<{argument}>")).concat());
}

// G28
#[tokio::test]
async fn a_mebibyte_of_input_passes_through_a_program() {
    let input: String = "line ä\n".repeat(MOST / 8 + 1)[..MOST].to_owned();
    assert_eq!(input.len(), MOST);
    let spec = CommandSpec { stdin: Some(input.clone()), ..spec(["cat"]) };
    assert!(text(spec).await == input.strip_suffix('\n').unwrap_or(&input));
}

// G28
#[tokio::test]
async fn programs_may_leave_their_input_unread_and_read_nothing_without_one() {
    let unread = CommandSpec { stdin: Some("x".repeat(MOST)), ..spec(["true"]) };
    assert_eq!(text(unread).await, "");
    assert_eq!(text(spec(["cat"])).await, "");
}

// G28
#[tokio::test]
async fn text_lacks_its_final_newline_only_and_is_always_unicode() {
    assert_eq!(text(spec(["printf", r"one\n\ntwo\n\n"])).await, "one\n\ntwo\n");
    assert_eq!(text(spec(["printf", r"dos\r\n"])).await, "dos");
    let named = CommandSpec { parse: Some(Parse::Text), ..spec(["printf", r"a\377b"]) };
    assert_eq!(text(named).await, "a\u{fffd}b");
}

// G28
#[tokio::test]
async fn json_is_parsed_and_an_unreadable_one_fails_with_its_place() {
    let parsed = |output| CommandSpec { parse: Some(Parse::Json), ..spec(["printf", "%s", output]) };
    assert_eq!(run(parsed("{\"rows\": [1, 2.5, \"ä\"]}\n")).await.unwrap(), json!({"rows": [1, 2.5, "ä"]}));
    let (class, message) = failure(parsed("{\"rows\":\n  oops}")).await;
    assert_eq!(class, ErrorClass::Tool);
    assert_eq!(message, "the output of `printf` cannot be read as JSON: expected value at line 2 column 3");
    let (_, message) = failure(parsed("")).await;
    assert!(message.ends_with("EOF while parsing a value at line 1 column 0"), "{message}");
}

// G28
#[tokio::test]
async fn a_failure_has_the_program_its_exit_code_and_the_end_of_its_errors() {
    let failed = failure(sh("echo out; echo first >&2; echo wrong >&2; exit 7")).await;
    assert_eq!(failed, (ErrorClass::Tool, "`sh` failed with exit code 7:\nfirst\nwrong".into()));
    let quiet = failure(spec(["false"])).await;
    assert_eq!(quiet, (ErrorClass::Tool, "`false` failed with exit code 1".into()));
    let killed = failure(sh("kill -9 $$")).await;
    assert_eq!(killed, (ErrorClass::Tool, "`sh` was ended by signal 9".into()));
    let (_, long) = failure(sh("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo last >&2; exit 1")).await;
    assert!(long.ends_with("xxxlast") && long.len() < 5 * 1024, "{}", long.len());
    let (_, control) = failure(sh(r"printf 'a\033[2J\r\nb\tc\0' >&2; exit 1")).await;
    assert_eq!(control, "`sh` failed with exit code 1:\na\\u{1b}[2J\nb\tc\\u{0}");
}

// G28
#[tokio::test]
async fn errors_have_no_value_of_a_variable() {
    let secret = [("TOKEN", "hunter2"), ("PIN", "12")];
    let (_, message) = failure(env(secret, sh("echo \"refused: $TOKEN, $PIN, 123\" >&2; exit 1"))).await;
    assert_eq!(message, "`sh` failed with exit code 1:\nrefused: [redacted], [redacted], 123");
    let missing = failure(env(secret, spec(["/no/hunter2/program"]))).await.1;
    assert_eq!(missing, "the program `/no/[redacted]/program` is not found; name one on `PATH`, or a path");
    let unread = CommandSpec { parse: Some(Parse::Json), ..env(secret, sh("echo $TOKEN")) };
    assert!(!failure(unread).await.1.contains("hunter2"));
    let zero = failure(env([("TOKEN", "hunter2\0")], spec(["true"]))).await;
    assert_eq!(zero, (ErrorClass::Permanent, "`true` cannot start: `run` or `env` has a zero byte".into()));
}

// G28
#[tokio::test]
async fn a_mebibyte_of_output_is_the_most() {
    let most = text(sh("head -c 1048576 /dev/zero | tr '\\0' x")).await;
    assert_eq!(most.len(), MOST);
    let more = failure(sh("head -c 1048577 /dev/zero | tr '\\0' x")).await;
    assert_eq!(more, (ErrorClass::Tool, "`sh` printed more than 1 MiB, so it was killed".into()));
    // It would never end by itself.
    let endless = failure(spec(["yes"])).await;
    assert_eq!(endless, (ErrorClass::Tool, "`yes` printed more than 1 MiB, so it was killed".into()));
}

// G28, G17
#[tokio::test]
async fn a_command_that_can_never_run_fails_at_once() {
    let long = "x".repeat(MOST);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let none = CommandSpec { run: Vec::new(), ..sh("") };
    let cases = [
        (none, "the command names no program; `run` begins with one"),
        (spec([""]), "the command names no program; `run` begins with one"),
        (
            spec(["no-such-program"]),
            "the program `no-such-program` is not found; name one on `PATH`, or a path",
        ),
        (
            spec(["no\u{1b}[2J\nsuch"]),
            "the program `no\\u{1b}[2J\\nsuch` is not found; name one on `PATH`, or a path",
        ),
        (spec([folder]), "Permission denied (os error 13)"),
        (spec(["true", &long]), "`run` and `env` of the command have more than 1 MiB"),
        // Linux takes no argument of more than 128 KiB.
        (spec(["true", &long[..MOST / 2]]), ""),
        (env([("LONG", &long)], spec(["true"])), "`run` and `env` of the command have more than 1 MiB"),
        (
            CommandSpec { stdin: Some(long.clone() + "x"), ..spec(["cat"]) },
            "`stdin` of the command has more than 1 MiB",
        ),
        (env([("A=B", "c")], spec(["env"])), "it is empty, or has `=` or a zero byte"),
        (env([("", "c")], spec(["env"])), "it is empty, or has `=` or a zero byte"),
    ];
    for (spec, end) in cases {
        if end.is_empty() && !cfg!(target_os = "linux") {
            continue;
        }
        let (class, message) = failure(spec).await;
        assert!(class == ErrorClass::Permanent && message.ends_with(end), "{class:?}: {message}");
        assert!(message.len() < 500, "{message}");
    }
}
