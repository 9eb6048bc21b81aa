//! The errors of MCP servers, at the connection and in calls.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Why an MCP server gives no tools, or why a call of one of them failed.
///
/// `stderr` is the end of the server's standard error, without control sequences; empty for servers reached by HTTP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The name cannot be a part of tool names.
    #[error(
        "`{name}` cannot be the name of an MCP server: use one to 32 letters, digits, `-`, and `_` between two others"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A setting is for the other kind of server.
    #[error(
        "the MCP server `{server}` has the setting `{setting}`, which is only for servers of `Mcp::{kind}`"
    )]
    Setting {
        /// The name of the server.
        server: Arc<str>,
        /// The setting.
        setting: &'static str,
        /// The function whose servers have the setting.
        kind: &'static str,
    },
    /// The command has no program.
    #[error("the command of the MCP server `{server}` is empty: give a program and its arguments")]
    NoCommand {
        /// The name of the server.
        server: Arc<str>,
    },
    /// The program does not exist.
    #[error(
        "the program `{program}` of the MCP server `{server}` was not found: install the program, or give its path"
    )]
    CommandNotFound {
        /// The name of the server.
        server: Arc<str>,
        /// The program.
        program: String,
    },
    /// The working folder does not exist.
    #[error("the folder `{}` of the MCP server `{server}` does not exist", folder.display())]
    FolderNotFound {
        /// The name of the server.
        server: Arc<str>,
        /// The folder.
        folder: PathBuf,
    },
    /// The program cannot be started.
    #[error("the program `{program}` of the MCP server `{server}` cannot be started")]
    Spawn {
        /// The name of the server.
        server: Arc<str>,
        /// The program.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The URL is none, or neither `http` nor `https`.
    #[error("the URL of the MCP server `{server}` cannot be used: {problem}")]
    Url {
        /// The name of the server.
        server: Arc<str>,
        /// The problem.
        problem: String,
    },
    /// A header cannot be sent.
    #[error("the header `{header}` of the MCP server `{server}` cannot be sent: {problem}")]
    Header {
        /// The name of the server.
        server: Arc<str>,
        /// The name of the header.
        header: String,
        /// The problem.
        problem: &'static str,
    },
    /// The server was not ready in time.
    #[error(
        "the MCP server `{server}` was not ready within {after:?}: raise `startup_timeout` if it needs longer{}{}",
        also(note),
        said(stderr)
    )]
    StartupTimeout {
        /// The name of the server.
        server: Arc<str>,
        /// The limit.
        after: Duration,
        /// The text on the standard output in place of messages, or nothing.
        note: String,
        /// The end of the standard error.
        stderr: String,
    },
    /// The server cannot be reached, or ended.
    #[error("the connection to the MCP server `{server}` failed: {problem}{}", said(stderr))]
    Unreachable {
        /// The name of the server.
        server: Arc<str>,
        /// The problem.
        problem: String,
        /// The end of the standard error.
        stderr: String,
    },
    /// The server does not keep to the protocol.
    #[error("the MCP server `{server}` does not keep to the protocol: {problem}{}", said(stderr))]
    Protocol {
        /// The name of the server.
        server: Arc<str>,
        /// The problem.
        problem: String,
        /// The end of the standard error.
        stderr: String,
    },
    /// The server answered a request of the connection with an error.
    #[error("the MCP server `{server}` answered `{method}` with error {code}: {message}{}", said(stderr))]
    Refused {
        /// The name of the server.
        server: Arc<str>,
        /// The method of the request.
        method: &'static str,
        /// The code of the error.
        code: i32,
        /// The message of the error.
        message: String,
        /// The end of the standard error.
        stderr: String,
    },
    /// The server answered with an HTTP status that is no success.
    #[error("the MCP server `{server}` answered with HTTP status {status}: {problem}")]
    Status {
        /// The name of the server.
        server: Arc<str>,
        /// The status.
        status: u16,
        /// The beginning of the answer.
        problem: String,
    },
    /// The server has more tools than an agent can offer.
    #[error("the MCP server `{server}` has more than {most} tools: choose some with `.only([…])`")]
    TooManyTools {
        /// The name of the server.
        server: Arc<str>,
        /// The most tools of a server.
        most: usize,
    },
    /// Two tools have one name.
    #[error(
        "the MCP server `{server}` has the tools `{first}` and `{second}`, which are both named `{name}`: choose one with \
         `.only([…])`"
    )]
    DuplicateTool {
        /// The name of the server.
        server: Arc<str>,
        /// The name for the model.
        name: String,
        /// The first tool.
        first: String,
        /// The second tool.
        second: String,
    },
    /// The server lacks tools that `only` names.
    #[error("the MCP server `{server}` lacks tools that `only` names: {}", tools.join(", "))]
    UnknownTools {
        /// The name of the server.
        server: Arc<str>,
        /// The missing tools.
        tools: Vec<String>,
    },
    /// The schema of a tool cannot be used.
    #[error(
        "the schema of the tool `{tool}` of the MCP server `{server}` {problem}: leave the tool out with `.only([…])`"
    )]
    Schema {
        /// The name of the server.
        server: Arc<str>,
        /// The tool.
        tool: String,
        /// The problem.
        problem: String,
    },
    /// The connection was lost during a call that must not be repeated.
    #[error(
        "the call of `{tool}` of the MCP server `{server}` was interrupted and may have happened: {problem}{}",
        said(stderr)
    )]
    Interrupted {
        /// The name of the server.
        server: Arc<str>,
        /// The tool.
        tool: String,
        /// The problem.
        problem: String,
        /// The end of the standard error.
        stderr: String,
    },
    /// The server was closed by [`McpServer::close`](crate::McpServer::close).
    #[error("the connection to the MCP server `{server}` was closed")]
    Closed {
        /// The name of the server.
        server: Arc<str>,
    },
}

fn said(stderr: &str) -> String {
    match stderr {
        "" => String::new(),
        text => format!("\nThe end of its standard error:\n{text}"),
    }
}

fn also(note: &str) -> String {
    match note {
        "" => String::new(),
        note => format!("; {note}"),
    }
}
