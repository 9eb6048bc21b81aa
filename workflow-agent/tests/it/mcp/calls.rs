//! Calls of fake servers: results, rubbish, deaths, repetition, cancelling.

use futures::FutureExt as _;
use serde_json::json;
use workflow_agent::Mcp;
use workflow_agent::tool::{ToolContext, ToolOutput};

use super::{Fake, assert_says, call, ended, in_time, kill, text, tool};

/// A81
#[tokio::test]
async fn results_and_errors_of_a_server_reach_the_caller() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    assert_eq!(call(&server, "echo", json!({"text": "hi"})).await.unwrap(), ToolOutput::new("hi"));
    assert_eq!(call(&server, "is_error", json!({})).await.unwrap(), ToolOutput::error("no such city"));
    assert_eq!(call(&server, "hologram", json!({})).await.unwrap(), ToolOutput::new("[hologram]\nbeside"));
}

/// A81
#[tokio::test]
async fn an_error_response_of_any_code_is_an_answer_and_never_repeated() {
    let fake = Fake::new("plain").with(Mcp::trusted);
    let server = fake.connect().await;
    for code in [-32601, -32602, -32603, -32000, -32001, -32099, 7] {
        let output = call(&server, "refuse", json!({"code": code})).await.unwrap();
        assert_eq!(output, ToolOutput::error(format!("error {code}: I refuse\n{{\"at\":1}}")));
    }
    assert_eq!(fake.noted("calls").len(), 7);
    assert_eq!(fake.noted("starts").len(), 1);
}

/// A81
#[tokio::test]
async fn rubbish_on_the_standard_output_is_passed_over() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    assert_eq!(text(&server, "rubbish").await, "an answer");
    assert_eq!(text(&server, "echo").await, "");
}

/// A81
#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error_and_no_hang() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    for name in ["unreadable", "no_result"] {
        let output = call(&server, name, json!({})).await.unwrap();
        assert!(output.is_error, "{name}: {}", output.text);
    }
}

/// A81
#[tokio::test]
async fn a_flood_on_the_standard_error_blocks_nothing_and_its_end_stays() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    assert_eq!(text(&server, "flood").await, "afloat");
    in_time(async {
        while !server.stderr().contains("the end of the flood") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(server.stderr().len() <= 64 * 1024);
}

/// A15, A81
#[tokio::test]
async fn a_call_that_may_have_happened_is_not_repeated_and_says_so() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    let error = call(&server, "die", json!({})).await.unwrap_err();
    let words = ["`die`", "was interrupted and may have happened", "the disk is on fire"];
    assert_says(&error, &error.to_string(), &words);
    assert_eq!(fake.noted("calls"), ["die"]);
    // The next call finds the server gone, and connects again.
    assert_eq!(call(&server, "echo", json!({"text": "again"})).await.unwrap().text, "again");
    assert_eq!(fake.noted("starts").len(), 2);
}

/// A15, A81
#[tokio::test]
async fn a_read_only_or_idempotent_call_of_a_trusted_server_is_repeated_once() {
    for name in ["die_reading", "die_idempotent"] {
        let fake = Fake::new("plain").with(Mcp::trusted);
        let server = fake.connect().await;
        assert_eq!(text(&server, name).await, "survived");
        assert_eq!(fake.noted("calls"), [name, name]);

        let error = call(&server, name, json!({"always": true})).await.unwrap_err();
        assert_says(&error, &error.to_string(), &["may have happened"]);
        assert_eq!(fake.noted("calls").len(), 4);
    }
}

/// A15, A81
#[tokio::test]
async fn the_hints_of_an_untrusted_server_repeat_no_call() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    call(&server, "die_reading", json!({})).await.unwrap_err();
    assert_eq!(fake.noted("calls").len(), 1);
}

/// A15, A81
#[tokio::test]
async fn a_server_that_died_before_the_call_is_started_again_and_called_once() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    for round in 1..=3 {
        kill(fake.last_started());
        ended(fake.last_started()).await;
        assert_eq!(
            call(&server, "echo", json!({"text": round.to_string()})).await.unwrap().text,
            round.to_string()
        );
        assert_eq!(fake.noted("calls").len(), round);
        assert_eq!(fake.noted("starts").len(), round + 1);
    }
}

/// A81
#[tokio::test]
async fn many_calls_that_find_the_server_gone_start_it_once() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    kill(fake.last_started());
    ended(fake.last_started()).await;
    let calls = (0..16).map(|n| call(&server, "echo", json!({"text": n.to_string()})).map(Result::unwrap));
    let answers = futures::future::join_all(calls).await;
    let expected: Vec<ToolOutput> = (0..16).map(|n| ToolOutput::new(n.to_string())).collect();
    assert_eq!(answers, expected);
    assert_eq!(fake.noted("starts").len(), 2);
}

/// A81
#[tokio::test]
async fn a_server_that_cannot_be_started_again_is_an_error_of_the_call() {
    let fake = Fake::new("plain");
    let folder = tempfile::tempdir().unwrap();
    let fake = fake.with(|mcp| mcp.folder(folder.path()));
    let server = fake.connect().await;
    kill(fake.last_started());
    ended(fake.last_started()).await;
    drop(folder);
    let error = call(&server, "echo", json!({})).await.unwrap_err();
    assert_says(&error, &error.to_string(), &["does not exist"]);
}

/// A81
#[tokio::test]
async fn a_line_beyond_the_bound_interrupts_the_call() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    let error = call(&server, "long_line", json!({})).await.unwrap_err();
    assert_says(&error, &error.to_string(), &["a line of more than 16 MiB", "may have happened"]);
    assert_eq!(text(&server, "echo").await, "");
}

/// A81
#[tokio::test]
async fn dropping_a_call_tells_the_server_that_it_is_cancelled() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    let slow = tool(&server, "slow");
    let running =
        tokio::spawn(async move { slow.call(json!({}), ToolContext::detached("slow")).await.is_ok() });
    in_time(async {
        while fake.noted("calls") != ["slow"] {
            tokio::task::yield_now().await;
        }
    })
    .await;
    running.abort();
    in_time(async { while text(&server, "cancelled").await != "1" {} }).await;
    assert_eq!(fake.noted("starts").len(), 1);
}
