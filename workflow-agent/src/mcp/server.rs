//! A connected server and its tools: calls, reconnection, repetition, the end. One connection alone is in `connection`.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::{ErrorData, JsonObject};
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use super::connection::{Connection, Failure};
use super::content::{output, short};
use super::delivery::{Delivery, Fate};
use super::listing::{Listed, list};
use super::process::Asides;
use super::{Mcp, McpError};
use crate::tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSet, ToolSpec};

/// A connected MCP server, as a set of tools.
///
/// Give it to an agent, or take single [`tools`](Self::tools). Tools are named `mcp__SERVER__TOOL`; a name with other
/// characters than letters, digits, `_` and `-`, or with more than 64, is shortened and ends with a hash.
///
/// - **Results**: texts, one below the other. Images, audio and resources are named in brackets, with type and size; the
///   text of a resource follows. A structured result becomes JSON if there is no text. A result that the server
///   marks as an error, and an error response of the protocol, are error results for the model.
/// - **Lost servers**: a call that finds the server gone, or loses the connection, connects again, once. A call that the
///   server cannot have received is sent again; so is any call of a read-only or idempotent tool of a
///   [trusted](Mcp::trusted) server. Any other call fails with the notice that it may have happened.
/// - **Cancelling**: dropping the future of a call sends `notifications/cancelled`.
/// - **The list of tools** is that of the connection: `notifications/tools/list_changed` is ignored, also after a
///   reconnection. Sampling, roots and elicitation are not offered, and requests for them are refused.
/// - **The end**: dropping the last handle, which includes each tool, kills the process group of the server.
///   [`close`](Self::close) lets the server end by itself first, and waits for that.
#[derive(Clone)]
pub struct McpServer {
    link: Arc<Link>,
    tools: Arc<[Arc<dyn Tool>]>,
}

/// The shared part of a server's tools.
struct Link {
    mcp: Mcp,
    asides: Asides,
    is_closed: watch::Sender<bool>,
    /// Locked while connecting, so that many calls reconnect once.
    current: Mutex<Option<Arc<Connection>>>,
}

impl McpServer {
    pub(super) async fn connect(mcp: Mcp) -> Result<Self, McpError> {
        let (asides, is_closed) = (Asides::default(), watch::Sender::new(false));
        let link = Link { mcp, asides, is_closed, current: Mutex::new(None) };
        let (connection, listed) = link.in_time(link.first()).await?;
        *link.current.lock().await = Some(Arc::new(connection));
        let link = Arc::new(link);
        let tools = listed.into_iter().map(|Listed { remote, spec }| {
            Arc::new(McpTool { spec, remote: remote.into(), link: Arc::clone(&link) }) as Arc<dyn Tool>
        });
        Ok(Self { tools: tools.collect(), link })
    }

    /// The name given to the server.
    pub fn name(&self) -> &str {
        &self.link.mcp.name
    }

    /// The tools, in the order of the server.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// The last 64 KiB of the server's standard error, without control sequences. Empty for a server reached by HTTP.
    pub fn stderr(&self) -> String {
        self.link.asides.stderr()
    }

    /// Closes the connection, and waits until the process group has ended.
    ///
    /// A server has two seconds to end after its standard input closed, and is then killed. Calls under way lose their
    /// connection, and later ones fail with [`McpError::Closed`].
    pub async fn close(&self) {
        self.link.is_closed.send_replace(true);
        let connection = self.link.current.lock().await.take();
        if let Some(connection) = connection {
            connection.close().await;
        }
    }
}

#[diagnostic::do_not_recommend]
impl ToolSet for McpServer {
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        self.tools.to_vec()
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name()).collect();
        f.debug_struct("McpServer")
            .field("mcp", &self.link.mcp)
            .field("tools", &tools)
            .finish_non_exhaustive()
    }
}

struct McpTool {
    spec: ToolSpec,
    remote: Arc<str>,
    link: Arc<Link>,
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        arguments: Value,
        _context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (link, remote) = (Arc::clone(&self.link), Arc::clone(&self.remote));
        let is_repeatable = self.spec.is_repeatable();
        Box::pin(async move {
            match arguments {
                Value::Object(arguments) => Ok(link.call(&remote, arguments, is_repeatable).await?),
                Value::Null => Ok(link.call(&remote, JsonObject::new(), is_repeatable).await?),
                _ => Err(ToolError::new("the arguments of a tool of an MCP server must be an object")),
            }
        })
    }
}

impl Link {
    /// The first connection, and the tools, which stay the same after it.
    async fn first(&self) -> Result<(Connection, Vec<Listed>), McpError> {
        let connection = Connection::open(&self.mcp, &self.asides).await?;
        match list(&self.mcp, &connection).await {
            Ok(listed) => Ok((connection, listed)),
            Err(error) => {
                connection.end().await;
                Err(error)
            }
        }
    }

    /// Limits the time to connect, and adds the standard error to the error.
    async fn in_time<T>(&self, connecting: impl Future<Output = Result<T, McpError>>) -> Result<T, McpError> {
        let after = self.mcp.startup;
        let error = match timeout(after, connecting).await {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => error,
            Err(_) => McpError::StartupTimeout {
                server: Arc::clone(&self.mcp.name),
                after,
                note: String::new(),
                stderr: String::new(),
            },
        };
        Err(self.explained(error))
    }

    /// Adds what the server said besides messages.
    fn explained(&self, mut error: McpError) -> McpError {
        if let McpError::StartupTimeout { stderr, .. }
        | McpError::Unreachable { stderr, .. }
        | McpError::Protocol { stderr, .. }
        | McpError::Refused { stderr, .. }
        | McpError::Interrupted { stderr, .. } = &mut error
        {
            *stderr = self.asides.last_words();
        }
        let oddity = self.asides.oddity();
        match &mut error {
            McpError::StartupTimeout { note, .. } => *note = oddity,
            McpError::Unreachable { problem, .. }
            | McpError::Protocol { problem, .. }
            | McpError::Interrupted { problem, .. }
                if !oddity.is_empty() =>
            {
                problem.push_str("; ");
                problem.push_str(&oddity);
            }
            _ => {}
        }
        error
    }

    async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        is_repeatable: bool,
    ) -> Result<ToolOutput, McpError> {
        let (mut connection, mut has_reconnected) = self.connection(None).await?;
        loop {
            let delivery = Delivery::default();
            let (status, problem) = match connection.call(tool, arguments.clone(), &delivery).await {
                Ok(result) => return Ok(output(&result)),
                Err(Failure::Answered(error)) => return Ok(answered(&error)),
                Err(Failure::Lost { status, problem }) => (status, problem),
            };
            let fate = delivery.fate();
            if has_reconnected || fate == Fate::Denied || (fate == Fate::Sent && !is_repeatable) {
                return Err(self.lost(tool, fate, status, problem));
            }
            connection = self.connection(Some(&connection)).await?.0;
            has_reconnected = true;
        }
    }

    fn lost(&self, tool: &str, fate: Fate, status: Option<u16>, problem: String) -> McpError {
        let (server, stderr) = (Arc::clone(&self.mcp.name), String::new());
        self.explained(match (fate, status) {
            (Fate::Sent, _) => McpError::Interrupted { server, tool: short(tool, 100), problem, stderr },
            (_, Some(status)) => McpError::Status { server, status, problem },
            (_, None) => McpError::Unreachable { server, problem, stderr },
        })
    }

    /// A usable connection other than the lost one, and whether it was made now.
    async fn connection(&self, lost: Option<&Arc<Connection>>) -> Result<(Arc<Connection>, bool), McpError> {
        let mut closed = self.is_closed.subscribe();
        let mut current = tokio::select! {
            _ = closed.wait_for(|closed| *closed) => return Err(self.closed()),
            current = self.current.lock() => current,
        };
        if let Some(connection) = &*current
            && !connection.is_lost()
            && !lost.is_some_and(|lost| Arc::ptr_eq(lost, connection))
        {
            return Ok((Arc::clone(connection), false));
        }
        // Ends what is left of the lost one.
        *current = None;
        let opened = tokio::select! {
            _ = closed.wait_for(|closed| *closed) => return Err(self.closed()),
            opened = Box::pin(self.in_time(Connection::open(&self.mcp, &self.asides))) => Arc::new(opened?),
        };
        *current = Some(Arc::clone(&opened));
        Ok((opened, true))
    }

    fn closed(&self) -> McpError {
        McpError::Closed { server: Arc::clone(&self.mcp.name) }
    }
}

/// An error response of any code is an answer of the server.
fn answered(error: &ErrorData) -> ToolOutput {
    let mut text = format!("error {}: {}", error.code.0, error.message);
    if let Some(data) = &error.data {
        text.push('\n');
        text.push_str(&short(&data.to_string(), 1_000));
    }
    ToolOutput::error(text)
}
