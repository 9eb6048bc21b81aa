//! The commands `explain` and `graph`: a run's journal without the program that wrote it.

use std::path::Path;

use expect_test::{Expect, expect};
use serde_json::Value;
use workflow_core::RunOptions;
use workflow_core::prelude::*;
use workflow_redb::RedbStore;

use crate::command_line::command::with;
use crate::fixtures::{Place, put};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct RefundAsked {
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct ApproveRefund {
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Refunded {
    cents: u64,
}

struct Refunds;

#[workflow]
impl Refunds {
    #[step]
    async fn ask(&self, refund: &RefundAsked) -> Result<ApproveRefund, StepError> {
        match refund.cents {
            0 => Err(StepError::permanent("nothing\x1b[31m to pay back")),
            cents => Ok(ApproveRefund { cents }),
        }
    }

    #[step]
    async fn pay(&self, approval: &Reply<ApproveRefund>) -> Refunded {
        Refunded { cents: if **approval { approval.request().cents } else { 0 } }
    }
}

/// A file with a run that completed, one that waits and one that failed, whose program is gone.
fn place() -> Place {
    let place = Place::new();
    let store = place.open();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(begin_runs(&store));
    drop((runtime, store));
    place
}

async fn begin_runs(store: &RedbStore) {
    let engine = Engine::builder().workflow(Refunds).store(store.clone()).build().unwrap();
    let start = async |id: &str, cents| {
        let run =
            engine.start_with::<Refunds>(RefundAsked { cents }, RunOptions::new().id(id)).await.unwrap();
        run.settled().await;
        run
    };
    start("failed", 0).await;
    start("waiting", 500).await;
    let run = start("completed", 700).await;
    let request = run.requests().await.unwrap()[0].id::<ApproveRefund>().unwrap();
    run.reply(request, true).await.unwrap();
    run.outcome().await.unwrap();
    // The output says that a run has ended, according to its journal.
    put(store, "damaged", 0..3).await.unwrap();
}

fn prints(place: &Place, arguments: &[&str], expected: &Expect) {
    let before = place.bytes();
    let ran = with(place, arguments);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    expected.assert_eq(&ran.out);
    assert!(place.bytes() == before, "what is looked at is not changed");
}

#[test]
fn explain_says_why_each_step_ran_or_did_not() {
    let place = place();
    prints(
        &place,
        &["explain", "completed"],
        &expect![[r"
            run `completed` of `Refunds`: completed
            - `ask` ran once
                x1, triggered by #1 `RefundAsked`
            - `pay` ran once
                x2, triggered by #3 `ApproveRefund.reply`
        "]],
    );
    prints(
        &place,
        &["explain", "waiting"],
        &expect![[r"
            run `waiting` of `Refunds`: waiting
            - no `Refunded` has ended the run yet
                `pay` did not run
            - `ask` ran once
                x1, triggered by #1 `RefundAsked`
            - `pay` did not run
                it needs the reply to `ApproveRefund`
                    `ApproveRefund` was asked and not answered
        "]],
    );
    // The text of an error cannot control the terminal.
    prints(
        &place,
        &["explain", "failed"],
        &expect![[r"
            run `failed` of `Refunds`: failed
            - no `Refunded` ended the run
                `pay` did not run
            - `ask` ran once
                x1, triggered by #1 `RefundAsked`: failed (permanent): nothing\u{1b}[31m to pay back
            - `pay` did not run
                it needs the reply to `ApproveRefund`
                    `ask` failed: nothing\u{1b}[31m to pay back
        "]],
    );
}

#[test]
fn graph_lays_the_run_over_its_workflow() {
    let place = place();
    prints(
        &place,
        &["graph", "waiting"],
        &expect![[r#"
            flowchart TD
                n_start(["start"])
                n_outside[/"outside"/]
                n_stop(["stop"])
                n_s0["ask<br/>ran ×1"]
                n_s1["pay<br/>did not run"]
                n_start -->|"RefundAsked"| n_s0
                n_s0 -->|"ApproveRefund"| n_outside
                n_outside -->|"ApproveRefund.reply"| n_s1
                n_s1 -->|"Refunded"| n_stop
                classDef ran fill:#dfd,stroke:#080
                class n_s0 ran
                classDef idle fill:#eee,stroke:#999,stroke-dasharray:4
                class n_s1 idle
        "#]],
    );
    prints(
        &place,
        &["graph", "failed", "--dot"],
        &expect![[r##"
            digraph "Refunds" {
                rankdir=TB; node [shape=box, style=rounded, fontname="sans-serif"]; edge [fontname="sans-serif"];
                "start" [label="start", shape=oval];
                "outside" [label="outside", shape=parallelogram];
                "stop" [label="stop", shape=oval];
                "s0" [label="ask\nran ×1, 1 failed", color="#cc0000"];
                "s1" [label="pay\ndid not run", color="#999999", style=dashed];
                "start" -> "s0" [label="RefundAsked"];
                "s0" -> "outside" [label="ApproveRefund"];
                "outside" -> "s1" [label="ApproveRefund.reply"];
                "s1" -> "stop" [label="Refunded"];
            }
        "##]],
    );
}

#[test]
fn explain_and_graph_print_json() {
    let place = place();
    let json = |arguments: &[&str]| -> Value {
        let ran = with(&place, arguments);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        serde_json::from_str(&ran.out).unwrap()
    };
    let explained = json(&["explain", "waiting", "--json"]);
    assert_eq!((&explained["status"], &explained["steps"][0]["step"]), (&"waiting".into(), &"ask".into()));
    assert_eq!(explained["steps"][0]["ran"][0]["outcome"], "succeeded");
    let failed = json(&["--json", "explain", "failed"]);
    assert_eq!(failed["failed"][0]["error"], "nothing\u{1b}[31m to pay back");
    let drawn = json(&["graph", "completed", "--json"]);
    let pay = drawn["nodes"].as_array().unwrap().iter().find(|node| node["name"] == "pay").unwrap();
    assert_eq!(pay["ran"]["executions"], 1);
}

#[test]
fn a_journal_that_cannot_be_followed_exits_with_1_and_says_why() {
    let place = place();
    for command in ["explain", "graph"] {
        let ran = with(&place, &[command, "damaged"]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        assert_eq!(
            ran.err,
            "error: run `damaged` cannot be followed: at record 1 of its journal, event `Note` was logged, which the workflow does not know any more\n"
        );
        let ran = with(&place, &[command, "damaged", "--json"]);
        let error: Value = serde_json::from_str(&ran.err).unwrap();
        assert!(error["error"].as_str().unwrap().starts_with("run `damaged` cannot be followed"), "{error}");
    }
}

#[test]
fn a_drawing_has_one_form() {
    let ran = with(&place(), &["graph", "completed", "--dot", "--json"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
}

/// The command's output on a terminal, which `script`, available on every Linux, simulates.
#[cfg(target_os = "linux")]
fn on_a_terminal(file: &Path, command: &str, no_color: &str) -> String {
    let program = env!("CARGO_BIN_EXE_workflow-redb");
    let line = format!("'{program}' --file '{}' {command}", file.display());
    let mut script = std::process::Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("NO_COLOR", no_color);
    let ran = script.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn there_is_colour_on_a_terminal_alone() {
    let place = place();
    let plain = with(&place, &["explain", "waiting"]).out;
    let first = plain.lines().next().unwrap();
    assert!(!plain.contains('\x1b'));
    let coloured = on_a_terminal(&place.file, "explain waiting", "");
    assert_eq!(coloured.lines().next().unwrap(), format!("\x1b[1m{first}\x1b[0m"));
    assert_eq!(on_a_terminal(&place.file, "explain waiting", "1").replace('\r', ""), plain);
    assert!(!on_a_terminal(&place.file, "graph waiting", "").contains('\x1b'));
}

#[test]
fn requests_shows_the_open_requests_of_a_run() {
    let place = place();
    let ran = with(&place, &["requests", "waiting"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let columns = |line: &str| {
        line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).map(str::to_owned).collect()
    };
    let rows: Vec<Vec<String>> = ran.out.lines().map(columns).collect();
    assert_eq!(rows[0], ["SEQ", "REQUEST", "ASKED (UTC)", "EXPIRES (UTC)", "DATA"]);
    assert_eq!((rows.len(), &*rows[1][0], &*rows[1][1]), (2, "#2", "ApproveRefund"));
    assert_eq!(rows[1].last().unwrap(), r#"{"cents":500}"#);
    let json: Value = serde_json::from_str(&with(&place, &["requests", "waiting", "--json"]).out).unwrap();
    assert_eq!((&json[0]["seq"], &json[0]["data"]), (&2.into(), &serde_json::json!({ "cents": 500 })));
    for ended in ["completed", "failed"] {
        assert_eq!(with(&place, &["requests", ended]).out.lines().count(), 1, "{ended} has none");
    }
    let damaged = with(&place, &["requests", "damaged"]);
    assert!(damaged.code == 1 && damaged.err.starts_with("error: "), "{}", damaged.err);
}
