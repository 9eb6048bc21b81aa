//! Connections to fake servers: lists, bounds, and each way to fail.

use std::time::Duration;

use serde_json::json;
use workflow_agent::tool::ToolSet as _;
use workflow_agent::{Mcp, McpError};

use super::{Fake, assert_says, call, ended, in_time, text, tool};

/// A17, A81
#[tokio::test]
async fn tools_of_all_pages_are_listed_under_the_name_of_their_server() {
    let server = Fake::new("pages").connect().await;
    let names: Vec<&str> = server.tools().iter().map(|tool| tool.spec().name()).collect();
    assert_eq!(names, ["mcp__fake__tool_0", "mcp__fake__tool_1", "mcp__fake__tool_2"]);
    assert_eq!(server.name(), "fake");
    assert_eq!(server.clone().into_tools().len(), 3);
}

/// A81
#[tokio::test]
async fn a_list_without_end_is_an_error() {
    let error = Fake::new("endless").error().await;
    assert!(matches!(error, McpError::Protocol { .. }));
    assert_says(&error, &error.to_string(), &["more than 128 pages"]);
}

/// A81
#[tokio::test]
async fn too_many_tools_are_an_error_that_a_choice_avoids() {
    let many = Fake::new("many");
    let error = many.error().await;
    assert!(matches!(error, McpError::TooManyTools { most: 127, .. }));
    assert_says(&error, &error.to_string(), &["`fake`", ".only([…])"]);

    let chosen = many.with(|mcp| mcp.only(["tool_150", "tool_3"]));
    let names: Vec<String> =
        chosen.connect().await.tools().iter().map(|tool| tool.spec().name().to_owned()).collect();
    assert_eq!(names, ["mcp__fake__tool_3", "mcp__fake__tool_150"]);
}

/// A81
#[tokio::test]
async fn a_choice_of_unknown_tools_is_an_error_that_names_them() {
    let error = Fake::new("pages").with(|mcp| mcp.only(["tool_1", "tool_9"])).error().await;
    assert!(matches!(&error, McpError::UnknownTools { tools, .. } if tools == &["tool_9"]), "{error}");
}

/// A17
#[tokio::test]
async fn two_tools_with_one_name_are_an_error() {
    let error = Fake::new("twice").error().await;
    assert!(matches!(&error, McpError::DuplicateTool { name, .. } if name == "mcp__fake__same"), "{error}");
}

/// A81
#[tokio::test]
async fn a_schema_that_cannot_be_used_is_an_error_that_names_the_tool() {
    for (mode, problem) in [("no_object", "is not an object"), ("bad_schema", "is not valid")] {
        let error = Fake::new(mode).error().await;
        assert!(matches!(&error, McpError::Schema { tool, .. } if tool == "bad"), "{error}");
        assert_says(&error, &error.to_string(), &[problem]);
    }
    let without = Fake::new("no_object").with(|mcp| mcp.only(["good"]));
    assert_eq!(without.connect().await.tools().len(), 1);
}

/// A81
#[tokio::test]
async fn answers_beside_the_protocol_are_errors() {
    let error = Fake::new("no_list").error().await;
    assert!(matches!(error, McpError::Protocol { .. }), "{error}");
    let error = Fake::new("init_nonsense").error().await;
    assert!(matches!(error, McpError::Protocol { .. }), "{error}");
    let error = Fake::new("init_refused").error().await;
    assert!(matches!(error, McpError::Refused { method: "initialize", code: -32602, .. }), "{error}");
    let error = Fake::new("list_refused").error().await;
    assert!(matches!(error, McpError::Refused { method: "tools/list", code: -32601, .. }), "{error}");
}

/// A81
#[tokio::test]
async fn a_server_that_never_answers_ends_at_the_startup_timeout() {
    let fake = Fake::new("silent").with(|mcp| mcp.startup_timeout(Duration::from_secs(2)));
    let error = in_time(fake.error()).await;
    assert!(matches!(error, McpError::StartupTimeout { .. }), "{error}");
    assert_says(
        &error,
        &error.to_string(),
        &["startup_timeout", "where only messages belong: Listening, but not to you"],
    );
    ended(fake.last_started()).await;
}

/// A81
#[tokio::test]
async fn a_server_that_ends_at_once_is_an_error_with_its_last_words() {
    let error = in_time(Fake::new("crash").error()).await;
    assert!(matches!(&error, McpError::Unreachable { stderr, .. } if stderr == "no database"), "{error:?}");
    let error = in_time(Fake::new("shy").error()).await;
    assert_says(&error, &error.to_string(), &["only messages belong: please configure me"]);
}

/// A81
#[tokio::test]
async fn a_line_without_end_is_an_error() {
    let fake = Fake::new("endless_line");
    let error = in_time(fake.error()).await;
    assert_says(&error, &error.to_string(), &["a line of more than 16 MiB"]);
    ended(fake.last_started()).await;
}

/// A81
#[tokio::test]
async fn commands_that_cannot_start_are_errors_that_say_why() {
    let error = Mcp::stdio("x", ["no-such-program-anywhere"]).connect().await.unwrap_err();
    assert!(
        matches!(&error, McpError::CommandNotFound { program, .. } if program == "no-such-program-anywhere")
    );
    let error = Mcp::stdio("x", [""; 0]).connect().await.unwrap_err();
    assert!(matches!(error, McpError::NoCommand { .. }));
    let error = Mcp::stdio("x", ["python3"]).folder("/no/such/folder").connect().await.unwrap_err();
    assert!(matches!(&error, McpError::FolderNotFound { .. }), "{error}");
    let error = Mcp::stdio("x", ["/etc/passwd"]).connect().await.unwrap_err();
    assert!(matches!(&error, McpError::Spawn { .. }), "{error}");
}

/// A17, A81
#[tokio::test]
async fn settings_that_do_not_fit_are_errors() {
    let error = Mcp::stdio("a__b", ["python3"]).connect().await.unwrap_err();
    assert!(matches!(&error, McpError::Name { name } if name == "a__b"));
    let error = Mcp::stdio("x", ["python3"]).header("a", "b").connect().await.unwrap_err();
    assert!(matches!(error, McpError::Setting { setting: "header", kind: "http", .. }));
    let error = Mcp::http("x", "http://localhost").env("a", "b").connect().await.unwrap_err();
    assert!(matches!(error, McpError::Setting { setting: "env", kind: "stdio", .. }));
    let error = Mcp::http("x", "ftp://localhost").connect().await.unwrap_err();
    assert!(matches!(error, McpError::Url { .. }));
    for (name, value) in [("Mcp-Session-Id", "x"), ("a b", "x"), ("a", "\n")] {
        let error = Mcp::http("x", "http://localhost").header(name, value).connect().await.unwrap_err();
        assert!(matches!(&error, McpError::Header { header, .. } if header == name), "{error}");
    }
}

/// A81
#[tokio::test]
async fn a_server_sees_path_home_the_given_variables_and_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let fake = Fake::new("plain").with(|mcp| mcp.env("TOKEN", "t-1").folder(&folder));
    let server = fake.connect().await;
    let seen: serde_json::Value = serde_json::from_str(&text(&server, "environment").await).unwrap();
    assert_eq!(seen["TOKEN"], "t-1");
    assert_eq!(seen["folder"].as_str(), folder.to_str());
    assert_eq!(seen["HOME"].as_str(), std::env::var("HOME").ok().as_deref());
    // The others of this process stay here; shells and interpreters set these themselves.
    let own = |name: &str| ["PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"].contains(&name);
    let passed_on: Vec<String> = std::env::vars()
        .map(|(name, _)| name)
        .filter(|name| !own(name) && !name.starts_with("PYENV") && !seen[name].is_null())
        .collect();
    assert_eq!(passed_on, [""; 0]);
    assert!(std::env::vars().count() > 7);
    assert_eq!(fake.noted("capabilities"), ["{}"]);
}

/// A20, A81
#[tokio::test]
async fn hints_of_a_server_count_only_if_it_is_trusted() {
    let untrusted = Fake::new("plain").connect().await;
    assert!(!tool(&untrusted, "die_reading").spec().is_read_only());
    assert!(!tool(&untrusted, "die_idempotent").spec().is_repeatable());
    let trusted = Fake::new("plain").with(Mcp::trusted).connect().await;
    assert!(tool(&trusted, "die_reading").spec().is_read_only());
    assert!(tool(&trusted, "die_idempotent").spec().is_repeatable());
    assert!(!tool(&trusted, "die").spec().is_repeatable());
}

/// A81
#[tokio::test]
async fn requests_of_the_server_are_refused_but_ping_is_answered() {
    let fake = Fake::new("plain");
    let server = fake.connect().await;
    let answers = call(&server, "ask", json!({})).await.unwrap().text;
    assert_eq!(answers, "[-32601, -32601, -32601, -32601, {}]");
}
