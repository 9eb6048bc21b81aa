//! The command line: its output, its exit codes, and that looking changes nothing.

use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::Value;
use workflow_core::RunStatus;
use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::store::{EngineId, EventStore as _, Position, Record, RunSummary, Write};

use crate::fixtures::{Place, last_batch, moment, put, put_ended, record, summary};

/// A trip that cannot be booked, nor undone.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Trip;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Booked;

struct Trips;

#[workflow]
impl Trips {
    #[step]
    async fn book(&self, _trip: &Trip) -> Result<Booked, StepError> {
        Err(StepError::rejected("full"))
    }

    #[step(on_end)]
    async fn unbook(&self, _trip: &Trip) -> Result<(), StepError> {
        Err(StepError::rejected("away"))
    }
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn run(arguments: &[&str]) -> Ran {
    let ran = Command::new(env!("CARGO_BIN_EXE_workflow-redb")).args(arguments).output().unwrap();
    let Output { status, stdout, stderr } = ran;
    let [out, err] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    Ran { code: status.code().unwrap(), out, err }
}

/// A store with an open run and a completed one.
fn place() -> Place {
    let place = Place::new();
    let store = place.open();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        put(&store, "order-17", 0..3).await.unwrap();
        put_ended(&store, "order-9\x1b[31m", RunStatus::Completed).await;
    });
    drop(store);
    place
}

pub(crate) fn with(place: &Place, arguments: &[&str]) -> Ran {
    let path = [place.file.to_str().unwrap()];
    run(&[&path, arguments].concat())
}

fn prints(arguments: &[&str], expected: &Expect) {
    let place = place();
    let before = place.bytes();
    let ran = with(&place, arguments);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    expected.assert_eq(&ran.out);
    assert!(place.bytes() == before, "what is looked at is not changed");
}

#[test]
fn list_shows_the_runs() {
    prints(
        &["list"],
        &expect![[r"
            RUN                WORKFLOW  STATUS     RECORDS  STARTED (UTC)        WAITS FOR
            order-17           Orders    Running    3        2023-11-14 22:13:20
            order-9\u{1b}[31m  Orders    Completed  3        2023-11-14 22:13:20
        "]],
    );
}

#[test]
fn list_shows_some_of_the_runs() {
    prints(
        &["list", "--open"],
        &expect![[r"
            RUN       WORKFLOW  STATUS   RECORDS  STARTED (UTC)        WAITS FOR
            order-17  Orders    Running  3        2023-11-14 22:13:20
        "]],
    );
    prints(
        &["list", "--workflow", "Others"],
        &expect![[r"
            RUN  WORKFLOW  STATUS  RECORDS  STARTED (UTC)  WAITS FOR
        "]],
    );
    prints(
        &["list", "--limit", "1"],
        &expect![[r"
            RUN       WORKFLOW  STATUS   RECORDS  STARTED (UTC)        WAITS FOR
            order-17  Orders    Running  3        2023-11-14 22:13:20
            There may be more: see --limit and --after.
        "]],
    );
}

/// Runs that start a second after another, of two engines and two threads.
fn several() -> Place {
    let place = Place::new();
    let store = place.open();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        for (number, status) in
            [None, Some(RunStatus::Failed), Some(RunStatus::TimedOut), None].iter().enumerate()
        {
            let mut run = RunSummary::running("Orders", moment() + Duration::from_secs(number as u64));
            run.thread = Some(if number % 2 == 0 { "ada" } else { "bob" }.into());
            run.owner = Some(EngineId::new(if number < 2 { "engine-1" } else { "engine-2" }));
            if let Some(status) = status {
                run = run.ended(*status);
                run.ended = Some(moment() + Duration::from_mins(1));
                run.quality = Some(Quality::Failed);
                if *status == RunStatus::Failed {
                    run.incomplete_clean_up =
                        std::sync::Arc::new(vec!["refund".into(), "rele\x1base".into()]);
                }
            }
            run.metadata = std::sync::Arc::new([("tenant".to_owned(), "acme\x1b".to_owned())].into());
            let write = Write { records: vec![record(0)], run };
            store.append(&format!("order-{number}").as_str().into(), Position(0), write).await.unwrap();
        }
    });
    drop(store);
    place
}

#[test]
fn list_filters_runs_and_lists_the_newest_first() {
    let place = several();
    let listed = |arguments: &[&str]| -> String {
        let ran = with(&place, &[&["list"], arguments].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}");
        let first = |line: &str| line.split_whitespace().next().unwrap().to_owned();
        ran.out.lines().skip(1).map(first).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listed(&["--newest-first"]), "order-3 order-2 order-1 order-0");
    assert_eq!(listed(&["--newest-first", "--older-than", "order-2"]), "order-1 order-0");
    assert_eq!(listed(&["--status", "failed", "--status", "timed-out"]), "order-1 order-2");
    assert_eq!(listed(&["--thread", "ada"]), "order-0 order-2");
    assert_eq!(listed(&["--thread", "ada", "--newest-first", "--open"]), "order-0");
    assert_eq!(listed(&["--not-owned-by", "engine-1"]), "order-2 order-3");
    assert_eq!(listed(&["--not-owned-by", "engine-1", "--not-owned-by", "engine-2"]), "");
    assert_eq!(listed(&["--run", "order-3"]), "order-3");
    // S86
    assert_eq!(listed(&["--incomplete-clean-up"]), "order-1");
    assert_eq!(listed(&["--incomplete-clean-up", "--newest-first"]), "order-1");
    assert_eq!(listed(&["--incomplete-clean-up", "--thread", "ada"]), "");
    let all = with(&place, &["list", "--run", "order-1"]).out;
    assert!(all.contains("Failed, clean-up incomplete"), "{all}");
    let page = with(&place, &["list", "--newest-first", "--limit", "1"]).out;
    assert!(page.ends_with("There may be more: see --limit and --older-than.\n"), "{page}");
    let unknown = with(&place, &["list", "--newest-first", "--older-than", "order-9"]);
    assert_eq!((unknown.code, unknown.err.as_str()), (1, "error: there is no run `order-9`\n"));
    let wrong = with(&place, &["list", "--status", "done"]);
    assert!(wrong.code == 2 && wrong.err.contains("[possible values: running, waiting,"), "{}", wrong.err);
}

#[test]
fn show_shows_the_summary_of_a_run() {
    let shown = with(&several(), &["show", "order-1"]).out;
    let (summary, _) = shown.split_once("\n\n").unwrap();
    expect![[r"
        run       order-1
        workflow  Orders
        status    Failed
        started   2023-11-14 22:13:21
        ended     2023-11-14 22:14:20
        quality   Failed
        not done  refund, rele\u{1b}ase
        thread    bob
        owner     engine-1
        label     tenant=acme\u{1b}
        records   1"]]
    .assert_eq(summary);
}

#[test]
fn show_shows_a_run() {
    prints(
        &["show", "order-17"],
        &expect![[r#"
            run       order-17
            workflow  Orders
            status    Running
            started   2023-11-14 22:13:20
            records   3

            POSITION  AT (UTC)             RECORD        WHAT
            0         2023-11-14 22:13:20  run_started   awaited=false format=1 metadata={} private_thread=false table="a5b651d855fe3ed0" thread="user-4" workflow="Orders"
            1         2023-11-14 22:13:20  event_logged  cause="outside" event={"data":1,"type":"Note"} scope=0 seq=1
            2         2023-11-14 22:13:20  event_logged  cause="outside" event={"data":2,"type":"Note"} scope=0 seq=2
        "#]],
    );
}

#[test]
fn export_prints_a_line_of_json_for_each_record() {
    prints(
        &["export", "order-17"],
        &expect![[r#"
            {"run_started":{"format":1,"workflow":"Orders","table":{"fingerprint":"a5b651d855fe3ed0","shape":{"workflow":"Orders","events":[{"name":"Order","roles":["start"]},{"name":"Shipped","roles":["stop"]}],"steps":[{"name":"ship","inputs":[{"kind":"one","events":["Order"]}],"outputs":[{"event":"Shipped","least":1}]}]}},"thread":"user-4","metadata":{},"awaited":false,"private_thread":false,"at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}}
            {"event_logged":{"seq":1,"scope":0,"cause":"outside","event":{"type":"Note","data":1},"at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}}
            {"event_logged":{"seq":2,"scope":0,"cause":"outside","event":{"type":"Note","data":2},"at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}}
        "#]],
    );
}

// S43
#[test]
fn export_prints_unknown_events_as_they_were_written() {
    let place = Place::new();
    let ghost = r#"{"event_logged":{"seq":1,"scope":0,"cause":"outside","event":{"type":"Ghost","version":9,"data":{"b":1.50,  "a":[100000000000000000000]}},"at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}}"#;
    let record: Record = serde_json::from_str(ghost).unwrap();
    let store = place.open();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        put(&store, "order-17", 0..1).await.unwrap();
        let batch = Write { records: vec![record], run: summary() };
        store.append(&"order-17".into(), Position(1), batch).await.unwrap();
    });
    drop(store);
    let ran = with(&place, &["export", "order-17"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(ran.out.lines().nth(1), Some(ghost));
}

#[test]
fn check_says_that_a_file_is_sound() {
    prints(
        &["check"],
        &expect![[r"
        sound: 2 runs, 6 records, 0 values of contexts
    "]],
    );
}

#[test]
fn every_command_prints_json() {
    let place = place();
    let json = |arguments: &[&str]| -> Value {
        let ran = with(&place, arguments);
        assert_eq!(ran.code, 0, "{}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    };
    assert_eq!(json(&["list", "--json"])[1]["run"]["status"], "completed");
    assert_eq!(json(&["--json", "list"])[0]["id"], "order-17");
    let shown = json(&["show", "order-17", "--json"]);
    assert_eq!((&shown["end"], shown["records"].as_array().unwrap().len()), (&3.into(), 3));
    assert_eq!(json(&["check", "--json"])["records"], 6);
    assert_eq!(with(&place, &["export", "order-17", "--json"]).out.lines().count(), 3);
}

#[test]
fn the_file_can_be_named_by_an_option() {
    let place = place();
    let path = place.file.to_str().unwrap();
    let by_place = run(&[path, "list"]).out;
    assert_eq!(run(&["--file", path, "list"]).out, by_place);
    assert_eq!(run(&["list", "--file", path]).out, by_place);
}

#[test]
fn a_command_that_is_wrong_exits_with_2() {
    let place = place();
    let path = place.file.to_str().unwrap();
    for arguments in
        [&[][..], &["list"], &[path], &[path, "explode"], &[path, "show"], &[path, "--file", path, "list"]]
    {
        let ran = run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ran.err.contains("Usage"), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn an_unknown_run_exits_with_1() {
    let place = place();
    for command in ["show", "explain", "graph", "requests", "export"] {
        let ran = with(&place, &[command, "order-18"]);
        assert_eq!((ran.code, ran.err.as_str()), (1, "error: there is no run `order-18`\n"));
    }
    let ran = with(&place, &["show", "order-18", "--json"]);
    assert_eq!(ran.err, "{\"error\":\"there is no run `order-18`\"}\n");
}

#[test]
fn a_file_that_another_process_has_open_is_reported() {
    let place = place();
    let store = place.open();
    let ran = with(&place, &["list"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("is in use: another process"), "{}", ran.err);
    assert!(ran.err.contains("\nhint: ") && ran.err.contains("`RedbStore::snapshot`"), "{}", ran.err);
    let told: Value = serde_json::from_str(&with(&place, &["list", "--json"]).err).unwrap();
    assert!(told["hint"].as_str().unwrap().contains("read the copy"), "{told}");
    for arguments in [&["compact"][..], &["retain", "--last", "1"], &["redrive", "order-17"]] {
        let ran = with(&place, arguments);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains("with its engine or store; otherwise end it first"), "{}", ran.err);
    }
    drop(store);
    assert_eq!(with(&place, &["list"]).code, 0);
}

#[test]
fn snapshot_copies_the_file_to_one_that_is_not_there() {
    let place = place();
    let (before, listed) = (place.bytes(), with(&place, &["list"]).out);
    let copy = place.folder.path().join("copy.redb");
    let copy = copy.to_str().unwrap();
    let ran = with(&place, &["snapshot", copy]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with(&format!("{copy} has ")) && ran.out.ends_with("iB\n"), "{}", ran.out);
    assert!(place.bytes() == before, "what is copied is not changed");
    assert_eq!(run(&[copy, "list"]).out, listed);
    assert_eq!(run(&[copy, "check"]).code, 0);
    let again = with(&place, &["snapshot", copy]);
    assert_eq!((again.code, again.err.contains("there is a file")), (1, true), "{}", again.err);
    let other = place.folder.path().join("other.redb");
    let told: Value =
        serde_json::from_str(&with(&place, &["snapshot", other.to_str().unwrap(), "--json"]).out).unwrap();
    assert_eq!(told["bytes"], fs::metadata(&other).unwrap().len());
}

#[test]
fn compact_makes_the_file_smaller() {
    let place = place();
    let store = place.open();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        put(&store, "large", 0..5_000).await.unwrap();
        store.remove(&"large".into()).await.unwrap();
    });
    drop(store);
    let (before, listed) = (place.bytes().len(), with(&place, &["list"]).out);
    let ran = with(&place, &["compact", "--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["before"], &told["after"]), (&before.into(), &place.bytes().len().into()));
    assert!(place.bytes().len() < before);
    assert_eq!(with(&place, &["list"]).out, listed);
    assert!(with(&place, &["compact"]).out.contains("iB after\n"));
    let missing = Place::new();
    assert_eq!((with(&missing, &["compact"]).code, missing.file.exists()), (1, false));
}

#[test]
fn retain_removes_the_ended_runs_that_no_rule_keeps() {
    let ids = |place: &Place| -> Vec<String> {
        let listed: Value = serde_json::from_str(&with(place, &["list", "--json"]).out).unwrap();
        listed.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    let place = several();
    let would = with(&place, &["retain", "--last", "1", "--dry-run"]);
    assert_eq!((would.code, would.out.as_str(), would.err.as_str()), (0, "order-1\n", ""));
    assert_eq!(ids(&place).len(), 4, "a dry run removes nothing");
    for kept in [&["retain", "--failed"][..], &["retain", "--within", "30d"], &["retain", "--last", "2"]] {
        assert_eq!(with(&place, kept).out.lines().next().unwrap().split(' ').next(), Some("0"), "{kept:?}");
    }
    assert_eq!(
        with(&place, &["retain", "--last", "0", "--workflow", "Others", "--json"]).out,
        "{\"removed\":0}\n"
    );
    let ran = with(&place, &["retain", "--last", "1"]);
    assert_eq!((ran.code, ran.out.starts_with("1 run removed")), (0, true), "{}{}", ran.out, ran.err);
    assert_eq!(ids(&place), ["order-0", "order-2", "order-3"]);
    assert_eq!(with(&place, &["retain", "--last", "0", "--json"]).out, "{\"removed\":1}\n");
    assert_eq!(ids(&place), ["order-0", "order-3"], "open runs stay");
    for wrong in [&["retain"][..], &["retain", "--dry-run"], &["retain", "--within", "30"]] {
        assert_eq!(with(&place, wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_exits_with_1_and_says_why() {
    let place = Place::new();
    let missing = with(&place, &["check"]);
    assert_eq!(missing.code, 1);
    assert!(missing.err.starts_with("error: there is no file"), "{}", missing.err);
    fs::write(&place.file, "to do: everything").unwrap();
    let foreign = with(&place, &["check"]);
    assert_eq!(foreign.code, 1);
    assert!(foreign.err.ends_with("is no redb file\n"), "{}", foreign.err);
}

#[test]
fn check_says_what_is_wrong_and_exits_with_1() {
    let place = place();
    let database = redb::Database::open(&place.file).unwrap();
    let transaction = database.begin_write().unwrap();
    let table: redb::TableDefinition<&[u8], &[u8]> = redb::TableDefinition::new("workflow.open");
    transaction.open_table(table).unwrap().remove(&b"order-17"[..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let ran = with(&place, &["check"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    expect![[r"
        problem: run `order-17` is missing in the index of runs that have not ended
        not sound: 2 runs, 6 records, 0 values of contexts
    "]]
    .assert_eq(&ran.out);
    let json: Value = serde_json::from_str(&with(&place, &["check", "--json"]).out).unwrap();
    assert_eq!(json["problems"][0]["problem"], "open_differs");
}

/// A store with a run that was cancelled before its step ran.
fn cancelled() -> Place {
    let place = Place::new();
    let store = place.open();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        let ordered = serde_json::json!({ "event_logged": {
            "seq": 1, "scope": 0, "cause": "outside", "event": { "type": "Order", "data": 1 }, "at": moment(),
        }});
        let records = vec![record(0), serde_json::from_value(ordered).unwrap()];
        store.append(&"order-17".into(), Position(0), Write { records, run: summary() }).await.unwrap();
        let ended = last_batch(RunStatus::Cancelled);
        store.append(&"order-17".into(), Position(2), ended).await.unwrap();
    });
    drop(store);
    place
}

// S39
#[test]
fn redrive_opens_a_run_again_that_ended_before_it_was_complete() {
    let place = cancelled();
    assert!(with(&place, &["list", "--open"]).out.lines().count() == 1, "nothing is open");
    let ran = with(&place, &["redrive", "order-17"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("order-17 is open again"), "{}", ran.out);
    assert!(with(&place, &["list", "--open"]).out.contains("order-17"));
    let shown = with(&place, &["show", "order-17"]).out;
    assert!(shown.contains("run_redriven"), "{shown}");
    assert!(shown.contains(r#"by="command_line""#), "{shown}");
    assert_eq!(with(&place, &["check"]).code, 0);
    let again = with(&place, &["redrive", "order-17"]);
    assert_eq!((again.code, again.err.contains("only a run that has ended can be redriven")), (1, true));
}

// S86
#[test]
fn redrive_runs_the_clean_up_again_that_is_left_undone() {
    let place = cancelled();
    let complete = with(&place, &["redrive", "order-17", "--clean-up"]);
    let says = "nothing of it is left to redrive";
    assert_eq!((complete.code, complete.err.contains(says)), (1, true), "{}", complete.err);
    let both = with(&place, &["redrive", "order-17", "--clean-up", "--despite-clean-up"]);
    assert_eq!(both.code, 2, "{}", both.err);

    let place = Place::new();
    let store = place.open();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let engine = workflow_core::Engine::builder().workflow(Trips).store(store.clone()).build().unwrap();
        let options = workflow_core::RunOptions::new().id("trip-1");
        let run = engine.start_with::<Trips>(Trip, options).await.unwrap();
        run.outcome().await.unwrap_err();
        drop(run);
        engine.shut_down(Duration::from_secs(5)).await;
    });
    drop(store);
    let listed = with(&place, &["list", "--incomplete-clean-up"]).out;
    assert!(listed.contains("trip-1"), "{listed}");
    let ran = with(&place, &["redrive", "trip-1", "--clean-up"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(with(&place, &["list", "--status", "cleaning-up"]).out.contains("trip-1"));
    for filter in [None, Some("--newest-first"), Some("--open")] {
        let arguments: Vec<&str> = ["list", "--incomplete-clean-up"].into_iter().chain(filter).collect();
        let listed = with(&place, &arguments).out;
        assert!(listed.contains("trip-1"), "{arguments:?}, until its clean-up is over: {listed}");
    }
    let shown = with(&place, &["show", "trip-1"]).out;
    assert!(shown.contains("clean_up_redriven") && shown.contains(r#"steps=["unbook"]"#), "{shown}");
    assert_eq!(with(&place, &["check"]).code, 0);
}

// S39, S40
#[test]
fn redrive_refuses_what_completed_what_is_unknown_and_a_file_in_use() {
    let place = place();
    let completed = with(&place, &["redrive", "order-9\x1b[31m"]);
    assert_eq!((completed.code, completed.err.contains("completed: nothing is left")), (1, true));
    let unknown = with(&place, &["redrive", "nobody"]);
    assert_eq!((unknown.code, unknown.err.contains("there is no run `nobody`")), (1, true));
    let store = place.open();
    let in_use = with(&place, &["redrive", "order-17"]);
    assert_eq!(in_use.code, 1, "{}", in_use.err);
    drop(store);
}
