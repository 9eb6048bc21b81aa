//! MCP servers as tools: the description of a server, and its parts below. The agent that uses the tools is elsewhere.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

mod connection;
mod content;
mod delivery;
mod error;
mod http;
mod listing;
mod process;
mod server;
mod stdio;

pub use error::McpError;
pub use server::McpServer;

/// The longest time to start a server and list its tools, unless the server is given another.
const STARTUP: Duration = Duration::from_mins(1);

/// An MCP server, before the connection.
///
/// [`stdio`](Self::stdio) starts a program and speaks with it through its standard input and output,
/// [`http`](Self::http) speaks with a server by streamable HTTP. [`connect`](Self::connect) returns the tools.
///
/// A server is **not trusted** unless [`trusted`](Self::trusted) says so: a person must approve each call, and the hints of
/// the server that a tool only reads or may be repeated are ignored.
///
/// ```no_run
/// # async fn example() -> Result<(), workflow_agent::McpError> {
/// use workflow_agent::Mcp;
///
/// let git = Mcp::stdio("git", ["uvx", "mcp-server-git"]).trusted().connect().await?;
/// for tool in git.tools() {
///     println!("{}", tool.spec().name()); // mcp__git__git_status, …
/// }
/// git.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Mcp {
    name: Arc<str>,
    endpoint: Endpoint,
    is_trusted: bool,
    startup: Duration,
    only: Option<Vec<String>>,
    /// The first setting that is for the other kind of server, and the kind that it is for.
    misplaced: Option<(&'static str, &'static str)>,
}

#[derive(Clone)]
enum Endpoint {
    Stdio(Command),
    Http(Address),
}

/// A program to start.
#[derive(Clone)]
struct Command {
    /// The program and its arguments.
    line: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
}

/// A server elsewhere.
#[derive(Clone)]
struct Address {
    url: String,
    headers: Vec<(String, String)>,
    bearer: Option<String>,
}

impl Mcp {
    /// A server that is started as a process: the program and its arguments.
    ///
    /// The process sees no environment variables but `PATH`, `HOME` and those given with [`env`](Self::env). The process
    /// leads a process group of its own, which is killed when the last handle of the server is dropped. After the sudden
    /// death of this process, a server ends that heeds the end of its standard input.
    ///
    /// The name becomes a part of the tools' names: one to 32 letters, digits, `-`, and `_` between two others.
    pub fn stdio(name: impl Into<Arc<str>>, command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let line = command.into_iter().map(Into::into).collect();
        Self::new(name.into(), Endpoint::Stdio(Command { line, variables: Vec::new(), folder: None }))
    }

    /// A server that is reached by streamable HTTP, by a URL with `http` or `https`.
    ///
    /// Redirects are followed within the same origin only. The name is that of [`stdio`](Self::stdio).
    pub fn http(name: impl Into<Arc<str>>, url: impl Into<String>) -> Self {
        let address = Address { url: url.into(), headers: Vec::new(), bearer: None };
        Self::new(name.into(), Endpoint::Http(address))
    }

    fn new(name: Arc<str>, endpoint: Endpoint) -> Self {
        Self { name, endpoint, is_trusted: false, startup: STARTUP, only: None, misplaced: None }
    }

    /// Sets an environment variable of the process.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        match &mut self.endpoint {
            Endpoint::Stdio(command) => command.variables.push((name.into(), value.into())),
            Endpoint::Http(_) => self.misplace("env", "stdio"),
        }
        self
    }

    /// Sets the working folder of the process. Default: that of this process.
    #[must_use]
    #[doc(alias = "current_dir")]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        match &mut self.endpoint {
            Endpoint::Stdio(command) => command.folder = Some(folder.into()),
            Endpoint::Http(_) => self.misplace("folder", "stdio"),
        }
        self
    }

    /// Adds a header to each HTTP request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        match &mut self.endpoint {
            Endpoint::Http(address) => address.headers.push((name.into(), value.into())),
            Endpoint::Stdio(_) => self.misplace("header", "http"),
        }
        self
    }

    /// Sends `Authorization: Bearer TOKEN` with each HTTP request.
    #[must_use]
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        match &mut self.endpoint {
            Endpoint::Http(address) => address.bearer = Some(token.into()),
            Endpoint::Stdio(_) => self.misplace("bearer", "http"),
        }
        self
    }

    fn misplace(&mut self, setting: &'static str, kind: &'static str) {
        self.misplaced.get_or_insert((setting, kind));
    }

    /// Trusts the server: its calls need no approval, and its hints `readOnlyHint` and `idempotentHint` count.
    ///
    /// Calls of tools with one of these hints are repeated if the connection is lost meanwhile, and those of read-only tools
    /// run side by side.
    #[must_use]
    pub fn trusted(self) -> Self {
        Self { is_trusted: true, ..self }
    }

    /// Sets the longest time to start the server and list its tools, also when it is started again. Default: 60 seconds.
    #[must_use]
    pub fn startup_timeout(self, timeout: Duration) -> Self {
        Self { startup: timeout, ..self }
    }

    /// Offers only these tools, by the names that the server gives them. Default: all, of which there may be 127.
    #[must_use]
    pub fn only(self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { only: Some(tools.into_iter().map(Into::into).collect()), ..self }
    }

    /// Starts or reaches the server, and lists its tools.
    ///
    /// Dropping the future ends the server.
    ///
    /// # Errors
    /// An [`McpError`] that says whether the program, the server or its tools are at fault, with the last lines of the
    /// server's standard error.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub async fn connect(self) -> Result<McpServer, McpError> {
        self.check()?;
        // The state of a handshake is large, and callers would carry it.
        Box::pin(McpServer::connect(self)).await
    }

    fn check(&self) -> Result<(), McpError> {
        if !is_name(&self.name) {
            return Err(McpError::Name { name: self.name.to_string() });
        }
        if let Some((setting, kind)) = self.misplaced {
            return Err(McpError::Setting { server: Arc::clone(&self.name), setting, kind });
        }
        Ok(())
    }
}

/// Whether `mcp__NAME__TOOL` splits at the first two separators into the same parts again.
fn is_name(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        && !(name.starts_with('_') || name.ends_with('_') || name.contains("__"))
}

/// Shows no values of variables and headers, which may be secret.
impl fmt::Debug for Mcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Mcp");
        shown.field("name", &self.name);
        match &self.endpoint {
            Endpoint::Stdio(command) => shown.field("program", &command.line.first()),
            Endpoint::Http(_) => shown.field("kind", &"http"),
        };
        shown.field("is_trusted", &self.is_trusted).field("only", &self.only).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Mcp, is_name};

    /// A17
    #[test]
    fn names_of_servers_leave_the_separators_of_tool_names_alone() {
        for fit in ["git", "my-server", "a_b", "x", &"x".repeat(32)] {
            assert!(is_name(fit), "{fit}");
        }
        for unfit in ["", "_git", "git_", "a__b", "größe", "a b", "a.b", &"x".repeat(33)] {
            assert!(!is_name(unfit), "{unfit}");
        }
    }

    /// A81
    #[test]
    fn the_debug_form_shows_no_secret() {
        let local = Mcp::stdio("git", ["git-server", "--token=secret"]).env("TOKEN", "secret");
        let remote =
            Mcp::http("web", "https://example.com/?key=secret").header("x-key", "secret").bearer("secret");
        assert!(!format!("{local:?} {remote:?}").contains("secret"));
    }
}
