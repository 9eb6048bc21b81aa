//! The end of servers: no process is left, however the connection ends.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use workflow_agent::tool::ToolContext;

use super::{Fake, assert_says, call, ended, has_ended, in_time, noted, text, tool};

/// A81
#[tokio::test]
async fn dropping_the_last_handle_ends_the_process_group() {
    let fake = Fake::new("stubborn");
    let server = fake.connect().await;
    let grandchild = text(&server, "grandchild").await.parse().unwrap();
    let last = tool(&server, "echo");
    let copy = server.clone();
    drop((server, copy));
    // A tool alone keeps the server.
    let output = last.call(json!({"text": "here"}), ToolContext::detached("call")).await.unwrap();
    assert_eq!(output.text, "here");
    drop(last);
    ended(fake.last_started()).await;
    ended(grandchild).await;
}

/// A81
#[tokio::test]
async fn close_waits_for_a_server_that_ends_by_itself() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    in_time(server.close()).await;
    assert!(has_ended(fake.last_started()));
    let error = call(&server, "echo", json!({})).await.unwrap_err();
    assert_says(&error, &error.to_string(), &["was closed"]);
    assert_eq!(fake.noted("starts").len(), 1);
    in_time(server.close()).await;
}

/// A81
#[tokio::test]
async fn close_kills_a_server_that_does_not_end_by_itself() {
    let fake = Fake::new("stubborn");
    let server = fake.connect().await;
    let grandchild = text(&server, "grandchild").await.parse().unwrap();
    in_time(server.close()).await;
    assert!(has_ended(fake.last_started()));
    ended(grandchild).await;
    // The server saw the end of its standard input first.
    assert_eq!(fake.noted("closed").len(), 1);
}

/// A81
#[tokio::test]
async fn close_ends_calls_under_way() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    let slow = tool(&server, "slow").call(json!({}), ToolContext::detached("slow"));
    let (ended, ()) = in_time(async {
        tokio::join!(slow, async {
            while fake.noted("calls") != ["slow"] {
                tokio::task::yield_now().await;
            }
            server.close().await;
        })
    })
    .await;
    let error = ended.unwrap_err();
    assert_says(&error, &error.to_string(), &["may have happened"]);
}

/// A81
#[tokio::test]
async fn a_server_that_reads_no_more_keeps_neither_calls_nor_close_waiting() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    let deaf = tokio::spawn(tool(&server, "deaf").call(json!({}), ToolContext::detached("deaf")));
    in_time(async {
        while fake.noted("calls") != ["deaf"] {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // More than a pipe holds.
    let arguments = json!({"text": "x".repeat(1024 * 1024)});
    let mut long = tool(&server, "echo").call(arguments, ToolContext::detached("long"));
    assert!(futures::poll!(&mut long).is_pending());
    tokio::task::yield_now().await;
    drop(long);
    deaf.abort();
    in_time(server.close()).await;
    assert!(has_ended(fake.last_started()));
}

/// A81
#[tokio::test]
async fn dropping_the_future_of_connect_leaves_no_process() {
    let fake = Fake::new("silent");
    let connecting = tokio::spawn(fake.mcp.clone().connect());
    in_time(async {
        while fake.noted("starts").is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    connecting.abort();
    ended(fake.last_started()).await;
}

/// A81
#[test]
fn the_end_of_the_runtime_leaves_no_process() {
    let fake = Fake::new("stubborn");
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let first = runtime();
    let server = first.block_on(fake.connect());
    drop(first);
    drop(server);
    runtime().block_on(ended(fake.last_started()));
}

/// A81
#[tokio::test]
async fn a_parent_killed_at_once_leaves_no_server_that_heeds_the_end_of_its_input() {
    let fake = Fake::new("plain");
    let mut parent = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "mcp::lifetime::a_parent_that_waits_to_be_killed"])
        .env("MCP_FAKE_FOLDER", fake.folder.path())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let server = in_time(async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the parent ended");
            if let Some((_, server)) = line.split_once("server: ") {
                break server.parse().unwrap();
            }
        }
    })
    .await;
    assert!(!has_ended(server));
    parent.kill().await.unwrap();
    ended(server).await;
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "the other test reads it")]
async fn a_parent_that_waits_to_be_killed() {
    // Among the other tests it has nothing to do: the test above starts it in a process of its own.
    let Some(folder) = std::env::var_os("MCP_FAKE_FOLDER") else { return };
    let fake = Fake::new("plain").with(|_| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/fake.py");
        workflow_agent::Mcp::stdio("fake", ["python3".into(), script.into(), "plain".into(), folder.clone()])
    });
    let server = fake.connect().await;
    let started = noted(folder.as_ref(), "starts");
    println!("server: {}", started[0]);
    tokio::time::sleep(Duration::from_mins(10)).await;
    drop(server);
}
