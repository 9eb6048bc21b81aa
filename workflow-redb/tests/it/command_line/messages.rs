//! Messages to runs from the command line, on a file that no engine has open (S67).

use std::time::Duration;

use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::store::{Inbox as _, InboxMessage, RunMessage};
use workflow_core::{RunOptions, RunStatus};

use crate::command_line::command::with;
use crate::fixtures::{Place, moment};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct RefundAsked {
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Remark {
    text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct ApproveRefund {
    cents: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Refunded {
    cents: u64,
    remark: String,
}

struct Refunds;

#[workflow]
impl Refunds {
    #[step]
    async fn ask(&self, refund: &RefundAsked) -> ApproveRefund {
        ApproveRefund { cents: refund.cents }
    }

    #[step]
    async fn pay(&self, approval: &Reply<ApproveRefund>, remark: &Remark) -> Refunded {
        let cents = if **approval { approval.request().cents } else { 0 };
        Refunded { cents, remark: remark.text.clone() }
    }
}

/// Works with an engine on the file, and closes both.
fn with_engine<T>(place: &Place, work: impl AsyncFnOnce(&Engine) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let worked = runtime.block_on(async {
        let engine = Engine::builder().workflow(Refunds).store(place.open()).build().unwrap();
        let worked = work(&engine).await;
        engine.shut_down(Duration::ZERO).await;
        worked
    });
    runtime.shutdown_timeout(Duration::from_mins(1));
    worked
}

/// A file with the waiting run `r-17`, and the run `r-16`, which was cancelled.
fn place() -> Place {
    let place = Place::new();
    with_engine(&place, async |engine| {
        for id in ["r-16", "r-17"] {
            let options = RunOptions::new().id(id);
            let run = engine.start_with::<Refunds>(RefundAsked { cents: 500 }, options).await.unwrap();
            assert_eq!(run.settled().await, RunStatus::Waiting);
            if id == "r-16" {
                run.cancel("a test").await.unwrap();
                run.settled().await;
            }
        }
    });
    place
}

/// The output of a command that succeeds.
fn says(place: &Place, arguments: &[&str]) -> String {
    let ran = with(place, arguments);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}");
    ran.out
}

fn inbox(place: &Place, arguments: &[&str]) -> Value {
    serde_json::from_str(&says(place, &[&["inbox", "--json"], arguments].concat())).unwrap()
}

// S67
#[test]
fn messages_wait_for_the_next_engine_which_applies_them_in_their_order() {
    let place = place();
    let remark = r#"{"text":"by phone"}"#;
    let sent = says(&place, &["send", "r-17", "Remark", remark, "--id", "remark-1", "--by", "ada"]);
    assert_eq!(
        sent,
        "r-17 has the message remark-1 in its inbox: the next engine that resumes the run applies it\n"
    );
    // A repetition changes nothing.
    says(&place, &["send", "r-17", "Remark", r#"{"text":"again"}"#, "--id", "remark-1"]);
    says(&place, &["pause", "r-17", "--id", "pause-1"]);
    says(&place, &["unpause", "r-17", "--id", "unpause-1"]);
    says(&place, &["send", "r-17", "Remark", "[1]", "--id", "remark-2"]);
    let seq =
        with(&place, &["requests", "r-17"]).out.lines().nth(1).unwrap().split(' ').next().unwrap().to_owned();
    says(&place, &["reply", "r-17", &seq, "true", "--id", "reply-1"]);
    assert_eq!(says(&place, &["check"]).split(", ").last(), Some("5 pending messages\n"));
    let listed = says(&place, &["inbox"]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let first = words(listed.lines().nth(1).unwrap());
    assert_eq!((first[0].as_str(), first[1].as_str(), first[4].as_str()), ("r-17", "remark-1", "ada"));
    assert!(listed.lines().nth(1).unwrap().ends_with(&format!("send Remark {remark}")), "{listed}");
    assert!(listed.lines().nth(2).unwrap().ends_with("pause after_running"), "{listed}");
    assert_eq!(listed.lines().count(), 6, "{listed}");

    let done = with_engine(&place, async |engine| {
        engine.resume_open_runs().await.unwrap();
        engine.attach::<Refunds>("r-17").await.unwrap().outcome().await.unwrap()
    });
    assert_eq!(done, Refunded { cents: 500, remark: "by phone".into() });
    let after = inbox(&place, &[]);
    assert_eq!(after["pending"], json!([]));
    assert_eq!(after["refused"][0]["message"]["id"], "remark-2");
    let listed = says(&place, &["inbox", "r-17"]);
    let refused = listed.lines().last().unwrap();
    assert!(refused.contains("remark-2") && refused.contains("`Remark`"), "{listed}");
    assert!(!says(&place, &["inbox", "r-16"]).contains("remark-2"));
    assert_eq!(with(&place, &["check"]).code, 0);
}

// S67
#[test]
fn a_cancel_and_a_pause_wait_too_and_each_has_an_id_that_is_printed() {
    let place = place();
    let queued: Value = serde_json::from_str(&says(&place, &["pause", "r-17", "--now", "--json"])).unwrap();
    assert_eq!((&queued["run"], &queued["message"]), (&json!("r-17"), &json!("pause")));
    let pending = inbox(&place, &["r-17"]);
    assert_eq!(pending["pending"][0]["id"], queued["id"]);
    assert_eq!(pending["pending"][0]["message"]["message"], json!({ "pause": { "how": "now" } }));
    let status = with_engine(&place, async |engine| {
        engine.resume_open_runs().await.unwrap();
        let run = engine.attach::<Refunds>("r-17").await.unwrap();
        // It waits until the engine has read its inbox.
        while run.settled().await == RunStatus::Waiting {
            tokio::task::yield_now().await;
        }
        run.settled().await
    });
    assert_eq!(status, RunStatus::Paused);
    says(&place, &["cancel", "r-17", "nobody wants it", "--by", "bob"]);
    let status = with_engine(&place, async |engine| {
        engine.resume_open_runs().await.unwrap();
        let run = engine.attach::<Refunds>("r-17").await.unwrap();
        let _ended = run.outcome().await;
        run.settled().await
    });
    assert_eq!(status, RunStatus::Cancelled);
    let shown = says(&place, &["export", "r-17"]);
    assert!(shown.contains("nobody wants it") && shown.contains(r#""by":"bob""#), "{shown}");
}

// S67
#[test]
fn what_the_table_and_the_journal_show_to_be_wrong_is_refused_and_leaves_the_file_as_it_was() {
    let place = place();
    let long = "x".repeat(257);
    for (arguments, expected) in [
        (&["send", "nobody", "Remark", "1"][..], "there is no run `nobody`"),
        (&["cancel", "r-16"], "run `r-16` has ended"),
        (&["unpause", "r-16"], "run `r-16` has ended"),
        (&["send", "r-17", "Remork", "1"], "`Remork`"),
        (&["send", "r-17", "RefundAsked", "1"], "`Remark`"),
        (
            &["reply", "r-17", "9", "true"],
            "no request of `r-17` is open at #9: open are `ApproveRefund` at #",
        ),
        (&["pause", "r-17", "--id", &long], "257 bytes"),
        (&["withdraw", "r-17", "1"], "no message `1` is pending for run `r-17`"),
    ] {
        let ran = with(&place, arguments);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{arguments:?}");
        assert!(ran.err.contains(expected), "{arguments:?}: {}", ran.err);
    }
    for arguments in [
        &["send", "r-17", "Remark", "{"][..],
        &["reply", "r-17", "x", "1"],
        &["pause"],
        &["pause", "r-17", "--id", ""],
    ] {
        assert_eq!(with(&place, arguments).code, 2, "{arguments:?}");
    }
    let report = inbox(&place, &[]);
    assert_eq!(report, json!({ "pending": [], "refused": [] }));
    let refused = with(&place, &["send", "r-17", "Remork", "1", "--json"]);
    assert!(refused.err.starts_with("{\"error\":"), "{}", refused.err);

    let store = place.open();
    let in_use = with(&place, &["cancel", "r-17"]);
    assert!(in_use.code == 1 && in_use.err.contains("is in use"), "{}", in_use.err);
    drop(store);
    let missing = Place::new();
    assert_eq!((with(&missing, &["cancel", "r-17"]).code, missing.file.exists()), (1, false));
}

#[test]
fn a_message_is_withdrawn_and_text_of_clients_cannot_affect_the_terminal() {
    let place = place();
    let store = place.open();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let cancel = RunMessage::Cancel { reason: "\x1b[31m".into() };
    let message = InboxMessage::new("1\x1b", cancel, moment()).by("eve\x1b");
    runtime.block_on(store.put_message("r-17", message)).unwrap();
    assert_eq!(runtime.block_on(store.pending(&"r-17".into(), 1)).unwrap().len(), 1);
    drop(store);
    let listed = says(&place, &["inbox"]);
    assert!(listed.contains(r"cancel \u{1b}[31m") && !listed.contains('\x1b'), "{listed}");
    assert!(says(&place, &["inbox", "--limit", "1"]).contains("There may be more: see --limit."));
    let out = says(&place, &["withdraw", "r-17", "1\x1b"]);
    assert_eq!(out, "1\\u{1b} is out of the inbox of r-17\n");
    assert_eq!(inbox(&place, &[])["pending"], json!([]));
}
