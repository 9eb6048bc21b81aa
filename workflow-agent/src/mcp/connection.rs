//! One connection to a server: its beginning, its requests, its end. It neither reconnects nor repeats.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, ClientResult,
    ErrorCode, ErrorData, Implementation, JsonObject, ListToolsRequest, PaginatedRequestParams,
    ProtocolVersion, ServerNotification, ServerRequest, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RequestContext, RequestHandle,
    RunningService, Service, ServiceError, serve_client,
};
use rmcp::{RoleClient, transport::IntoTransport};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::content::short;
use super::delivery::Delivery;
use super::process::{Asides, Process};
use super::stdio::Stdio;
use super::{Endpoint, Mcp, McpError, http};

/// A connection. Dropping it ends the process at once.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    service: Mutex<RunningService<RoleClient, Client>>,
    process: Option<Arc<Process>>,
}

/// Why a request has no result.
pub(super) enum Failure {
    /// The server answered with an error: an answer like any other.
    Answered(ErrorData),
    /// There is no answer.
    Lost {
        /// The HTTP status, if there is one.
        status: Option<u16>,
        problem: String,
    },
}

impl Connection {
    pub(super) async fn open(mcp: &Mcp, asides: &Asides) -> Result<Self, McpError> {
        match &mcp.endpoint {
            Endpoint::Stdio(command) => {
                let (process, stdin, stdout) = Process::spawn(mcp, command, asides)?;
                let transport = Stdio::new(Arc::clone(&process), stdin, stdout, asides);
                Self::begin(mcp, transport, Some(process)).await
            }
            Endpoint::Http(address) => Self::begin(mcp, http::transport(mcp, address)?, None).await,
        }
    }

    async fn begin<T, E, A>(mcp: &Mcp, transport: T, process: Option<Arc<Process>>) -> Result<Self, McpError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        match serve_client(Client, transport).await {
            Ok(service) => Ok(Self { peer: service.peer().clone(), service: Mutex::new(service), process }),
            Err(error) => {
                if let Some(process) = &process {
                    process.end().await;
                }
                Err(unready(mcp, error))
            }
        }
    }

    /// Whether requests can no longer be sent.
    pub(super) fn is_lost(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// One page of the list of tools.
    pub(super) async fn list(&self, mcp: &Mcp, cursor: Option<String>) -> Result<Value, McpError> {
        let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        let server = Arc::clone(&mcp.name);
        match self.request(ClientRequest::ListToolsRequest(request)).await {
            Ok(ServerResult::ListToolsResult(page)) => Ok(json!(page)),
            // A list that does not fit the protocol, for errors that name the tool.
            Ok(ServerResult::CustomResult(page)) => Ok(page.0),
            Ok(_) => Ok(Value::Null),
            Err(Failure::Answered(error)) => Err(McpError::Refused {
                server,
                method: "tools/list",
                code: error.code.0,
                message: short(&error.message, 500),
                stderr: String::new(),
            }),
            Err(Failure::Lost { status: Some(status), problem }) => {
                Err(McpError::Status { server, status, problem })
            }
            Err(Failure::Lost { status: None, problem }) => {
                Err(McpError::Unreachable { server, problem, stderr: String::new() })
            }
        }
    }

    /// The result of a call. Dropping the future tells the server that the call is cancelled.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        delivery: &Delivery,
    ) -> Result<Value, Failure> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(arguments);
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(delivery.clone());
        match self.request(ClientRequest::CallToolRequest(request)).await? {
            ServerResult::CallToolResult(result) => Ok(json!(result)),
            // A part of a kind that the protocol does not know.
            ServerResult::CustomResult(result) if result.0.is_object() => Ok(result.0),
            ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_) => Ok(json!({})),
            ServerResult::InputRequiredResult(_) => {
                Err(unusable("the tool asks for input, which this client does not give"))
            }
            ServerResult::CreateTaskResult(_) => {
                Err(unusable("the tool began a task, and this client does not wait for tasks"))
            }
            _ => Err(unusable("the result is none of a tool")),
        }
    }

    async fn request(&self, request: ClientRequest) -> Result<ServerResult, Failure> {
        let handle = self
            .peer
            .send_request_with_option(request, PeerRequestOptions::no_options())
            .await
            .map_err(failure)?;
        let mut waiting = Waiting(Some(handle));
        let answer = match &mut waiting.0 {
            Some(handle) => (&mut handle.rx).await,
            None => return Err(failure(ServiceError::TransportClosed)),
        };
        waiting.0 = None;
        // Without a sender, the service has ended.
        answer.unwrap_or(Err(ServiceError::TransportClosed)).map_err(failure)
    }

    /// Waits until the process has ended by itself or was killed.
    pub(super) async fn end(&self) {
        if let Some(process) = &self.process {
            process.end().await;
        }
    }

    /// Closes the standard input or the session, and waits for the end.
    pub(super) async fn close(&self) {
        // The task of the service does not panic; if it did, dropping the process kills it.
        let _ = self.service.lock().await.close().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(process) = &self.process {
            process.kill();
        }
    }
}

/// A request under way. Dropping it cancels the request.
struct Waiting(Option<RequestHandle<RoleClient>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(handle) = self.0.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // A server that is gone needs no notice.
            runtime.spawn(async move { handle.cancel(Some("the caller no longer waits".to_owned())).await });
        }
    }
}

/// Answers `ping`, and refuses all else: this client declares no capability. Notifications change nothing.
struct Client;

impl Service<RoleClient> for Client {
    async fn handle_request(
        &self,
        request: ServerRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "this client offers no such method", None)),
        }
    }

    async fn handle_notification(
        &self,
        _notification: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let itself = Implementation::new("workflow-agent", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), itself)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

fn failure(error: ServiceError) -> Failure {
    let (status, problem) = match error {
        ServiceError::McpError(error) => return Failure::Answered(error),
        ServiceError::TransportSend(error) => http::problem(error),
        ServiceError::TransportClosed => (None, "the connection closed".to_owned()),
        other => (None, short(&other.to_string(), 500)),
    };
    Failure::Lost { status, problem }
}

fn unusable(problem: &str) -> Failure {
    Failure::Answered(ErrorData::internal_error(problem.to_owned(), None))
}

fn unready(mcp: &Mcp, error: ClientInitializeError) -> McpError {
    let (server, stderr) = (Arc::clone(&mcp.name), String::new());
    match error {
        ClientInitializeError::JsonRpcError(error) => McpError::Refused {
            server,
            method: "initialize",
            code: error.code.0,
            message: short(&error.message, 500),
            stderr,
        },
        ClientInitializeError::TransportError { error, .. } => match http::problem(error) {
            (Some(status), problem) => McpError::Status { server, status, problem },
            (None, problem) => McpError::Unreachable { server, problem, stderr },
        },
        ClientInitializeError::ConnectionClosed(_) => {
            let problem = "the connection closed before the server answered `initialize`".to_owned();
            McpError::Unreachable { server, problem, stderr }
        }
        other => McpError::Protocol { server, problem: short(&other.to_string(), 300), stderr },
    }
}
