//! MCP servers: fake ones with each fault, and real ones from the registries.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use workflow_agent::tool::{Tool, ToolContext, ToolError, ToolOutput};
use workflow_agent::{Mcp, McpServer};

mod calls;
mod connect;
mod http;
mod lifetime;
mod real;

/// A fake server of a mode, and the folder where it notes what it did.
struct Fake {
    folder: TempDir,
    mcp: Mcp,
}

impl Fake {
    fn new(mode: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/fake.py");
        let command = ["python3", script, mode, folder.path().to_str().unwrap()];
        Self { mcp: Mcp::stdio("fake", command), folder }
    }

    fn with(self, change: impl FnOnce(Mcp) -> Mcp) -> Self {
        Self { mcp: change(self.mcp), ..self }
    }

    async fn connect(&self) -> McpServer {
        self.mcp.clone().connect().await.unwrap()
    }

    async fn error(&self) -> workflow_agent::McpError {
        self.mcp.clone().connect().await.unwrap_err()
    }

    /// The lines of a file of the folder.
    fn noted(&self, file: &str) -> Vec<String> {
        noted(self.folder.path(), file)
    }

    /// The number of the process that was started last.
    fn last_started(&self) -> u32 {
        self.noted("starts").last().unwrap().parse().unwrap()
    }
}

fn noted(folder: &Path, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn tool(server: &McpServer, name: &str) -> Arc<dyn Tool> {
    let full = format!("mcp__{}__{name}", server.name());
    let found = server.tools().iter().find(|tool| tool.spec().name() == full);
    Arc::clone(found.unwrap_or_else(|| panic!("no tool {full} in {server:?}")))
}

async fn call(server: &McpServer, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
    let called = tool(server, name).call(arguments, ToolContext::detached("call"));
    in_time(called).await
}

/// The text of a call that succeeds.
async fn text(server: &McpServer, name: &str) -> String {
    let output = call(server, name, json!({})).await.unwrap();
    assert!(!output.is_error, "{}", output.text);
    output.text
}

/// A bound for tests that would hang.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_mins(2), future).await.expect("a test hangs")
}

/// Waits until a process has ended. The system tells only parents, so this looks again and again.
async fn ended(process: u32) {
    in_time(async {
        while !has_ended(process) {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Whether a process is gone, or nothing but its status is left. Its pipes are closed only when its last thread ended.
fn has_ended(process: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
    matches!(state, Some('Z' | 'X') | None) && threads <= 1
}

fn kill(process: u32) {
    let killed = std::process::Command::new("kill").args(["-9", &process.to_string()]).status();
    assert!(killed.unwrap().success());
}

fn assert_says(error: &impl Debug, shown: &str, words: &[&str]) {
    for word in words {
        assert!(shown.contains(word), "no `{word}` in `{shown}` ({error:?})");
    }
}
