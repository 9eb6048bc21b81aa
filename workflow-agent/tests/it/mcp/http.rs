//! Servers by streamable HTTP: lost sessions, statuses, broken answers, credentials.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::any;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use workflow_agent::tool::{ToolContext, ToolOutput};
use workflow_agent::{Mcp, McpError};

use super::{assert_says, call, in_time, text, tool};

/// The trouble of the next call, or of each.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The sessions are lost. Calls of lost ones get this answer, and do not happen.
    Forgets(u16, &'static str),
    /// The next call happens, and gets this answer.
    Once(u16, &'static str),
    /// The stream of the next answer ends without one.
    BreaksOff,
    /// Answers come as events.
    Streams,
    /// Calls get no answer.
    Hangs,
}

struct Site {
    fault: Mutex<Fault>,
    /// The answer to calls of unknown sessions.
    unknown: Mutex<(u16, &'static str)>,
    sessions: Mutex<Vec<String>>,
    /// The methods of requests, and the tools of calls that happened.
    log: Mutex<Vec<String>>,
    headers: Mutex<HeaderMap>,
}

impl Site {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            fault: Mutex::new(Fault::None),
            unknown: Mutex::new((404, "")),
            sessions: Mutex::default(),
            log: Mutex::default(),
            headers: Mutex::default(),
        })
    }

    fn fails(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn count(&self, entry: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|logged| *logged == entry).count()
    }

    async fn seen(&self, entry: &str) {
        in_time(async {
            while self.count(entry) == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    fn answer(&self, headers: &HeaderMap, request: &Value) -> Response {
        let method = request["method"].as_str().unwrap_or_default();
        self.log.lock().unwrap().push(method.to_owned());
        *self.headers.lock().unwrap() = headers.clone();
        let session = headers.get("mcp-session-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
        let result = |result: Value| json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        match method {
            "initialize" => {
                let id = format!("session-{}", self.count("initialize"));
                self.sessions.lock().unwrap().push(id.clone());
                let version = &request["params"]["protocolVersion"];
                let info = json!({"name": "site", "version": "1"});
                let hello =
                    json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info});
                ([("mcp-session-id", id)], axum::Json(result(hello))).into_response()
            }
            "tools/list" => {
                let read = json!({"name": "read", "inputSchema": {}, "annotations": {"readOnlyHint": true}});
                let tools = json!([read, {"name": "write", "inputSchema": {}}]);
                axum::Json(result(json!({"tools": tools}))).into_response()
            }
            "tools/call" => {
                let tool = request["params"]["name"].as_str().unwrap();
                self.call(session, tool, &result(json!({"content": [{"type": "text", "text": "done"}]})))
            }
            _ => StatusCode::ACCEPTED.into_response(),
        }
    }

    fn call(&self, session: &str, tool: &str, answer: &Value) -> Response {
        let fault = *self.fault.lock().unwrap();
        if let Fault::Forgets(status, body) = fault {
            self.sessions.lock().unwrap().clear();
            *self.unknown.lock().unwrap() = (status, body);
            self.fails(Fault::None);
        }
        if !self.sessions.lock().unwrap().iter().any(|known| known == session) {
            let (status, body) = *self.unknown.lock().unwrap();
            return refusal(status, body);
        }
        self.log.lock().unwrap().push(tool.to_owned());
        match fault {
            Fault::Once(status, body) => {
                self.fails(Fault::None);
                refusal(status, body)
            }
            Fault::BreaksOff => {
                self.fails(Fault::None);
                ([("content-type", "text/event-stream")], ": nothing\n\n").into_response()
            }
            Fault::Streams => {
                ([("content-type", "text/event-stream")], format!("data: {answer}\n\n")).into_response()
            }
            Fault::Hangs => {
                let never = futures::stream::pending::<Result<Bytes, std::io::Error>>();
                ([("content-type", "text/event-stream")], Body::from_stream(never)).into_response()
            }
            _ => axum::Json(answer.clone()).into_response(),
        }
    }
}

fn refusal(status: u16, body: &'static str) -> Response {
    let kind = if body.starts_with('{') { "application/json" } else { "text/plain" };
    (StatusCode::from_u16(status).unwrap(), [("content-type", kind)], body).into_response()
}

async fn handle(State(site): State<Arc<Site>>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    match method {
        Method::POST => site.answer(&headers, &serde_json::from_slice(&body).unwrap()),
        Method::DELETE => {
            site.log.lock().unwrap().push("DELETE".to_owned());
            StatusCode::OK.into_response()
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

/// Serves a site, and returns its URL.
async fn serve(site: &Arc<Site>, at: &str) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind(at).await.unwrap();
    let address = listener.local_addr().unwrap();
    let away = format!("http://localhost:{}/mcp", address.port());
    let app = Router::new()
        .route("/mcp", any(handle))
        .route("/moved", any(|| async { Redirect::temporary("/mcp") }))
        .route("/away", any(move || async move { Redirect::temporary(&away) }))
        .with_state(Arc::clone(site));
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (format!("http://{address}/mcp"), serving)
}

async fn start(site: &Arc<Site>) -> Mcp {
    Mcp::http("site", serve(site, "127.0.0.1:0").await.0)
}

/// A81
#[tokio::test]
async fn tools_of_a_server_by_http_are_listed_and_called_with_the_credentials() {
    let site = Site::new();
    let mcp = start(&site).await.header("x-team", "blue").bearer("token-1");
    let server = mcp.connect().await.unwrap();
    assert_eq!(text(&server, "write").await, "done");
    let headers = site.headers.lock().unwrap().clone();
    assert_eq!(headers["x-team"], "blue");
    assert_eq!(headers["authorization"], "Bearer token-1");
    assert_eq!(headers["mcp-session-id"], "session-1");

    site.fails(Fault::Streams);
    assert_eq!(text(&server, "write").await, "done");
    in_time(server.close()).await;
    assert_eq!(site.count("DELETE"), 1);
    assert_eq!(server.stderr(), "");
}

/// A15, A81
#[tokio::test]
async fn a_session_that_the_server_lost_is_begun_again_and_the_call_made_once() {
    let unknown =
        r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "No valid session ID"}}"#;
    let other =
        r#"{"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "Session?"}}"#;
    let answers = [
        (404, "no such session"),
        (400, "No valid session ID"),
        (400, unknown),
        (400, other),
        (404, unknown),
    ];
    for (status, body) in answers {
        let site = Site::new();
        let server = start(&site).await.connect().await.unwrap();
        site.fails(Fault::Forgets(status, body));
        assert_eq!(text(&server, "write").await, "done", "{status} {body}");
        assert_eq!((site.count("write"), site.count("initialize")), (1, 2), "{status} {body}");
    }
}

/// A81
#[tokio::test]
async fn an_error_response_in_any_status_is_an_answer_and_never_repeated() {
    let site = Site::new();
    let server = start(&site).await.trusted().connect().await.unwrap();
    // The ids count from zero: `initialize`, `tools/list`, this call.
    let body = r#"{"jsonrpc": "2.0", "id": 2, "error": {"code": -32001, "message": "I refuse"}}"#;
    site.fails(Fault::Once(400, body));
    let output = call(&server, "read", json!({})).await.unwrap();
    assert_eq!(output, ToolOutput::error("error -32001: I refuse"));
    assert_eq!((site.count("read"), site.count("initialize")), (1, 1));
}

/// A15, A81
#[tokio::test]
async fn a_failure_that_may_hide_a_call_is_repeated_only_for_trusted_read_only_tools() {
    for fault in [Fault::Once(502, "bad gateway"), Fault::BreaksOff] {
        let site = Site::new();
        let server = start(&site).await.trusted().connect().await.unwrap();
        site.fails(fault);
        assert_eq!(text(&server, "read").await, "done");
        assert_eq!(site.count("read"), 2);

        site.fails(fault);
        let error = call(&server, "write", json!({})).await.unwrap_err();
        assert_says(&error, &error.to_string(), &["may have happened"]);
        assert_eq!(site.count("write"), 1);
    }
}

/// A15, A81
#[tokio::test]
async fn refusals_are_not_repeated_and_name_the_status() {
    for status in [401, 403, 409, 422, 429] {
        let site = Site::new();
        let server = start(&site).await.trusted().connect().await.unwrap();
        site.fails(Fault::Once(status, "no"));
        let error = call(&server, "read", json!({})).await.unwrap_err();
        assert_says(&error, &error.to_string(), &[&format!("HTTP status {status}")]);
        assert_eq!((site.count("read"), site.count("initialize")), (1, 1));
    }
}

/// A15, A81
#[tokio::test]
async fn a_call_that_reaches_nobody_is_made_once_when_the_server_is_back() {
    let site = Site::new();
    let (url, serving) = serve(&site, "127.0.0.1:0").await;
    let server = Mcp::http("site", &url).connect().await.unwrap();
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    let error = call(&server, "write", json!({})).await.unwrap_err();
    assert!(!error.to_string().contains("may have happened"), "{error}");
    assert_says(&error, &error.to_string(), &["the connection to the MCP server `site` failed"]);

    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let _serving = serve(&site, address).await;
    assert_eq!(text(&server, "write").await, "done");
    assert_eq!(site.count("write"), 1);
}

/// A81
#[tokio::test]
async fn connections_that_fail_say_why_without_the_url() {
    let (url, serving) = serve(&Site::new(), "127.0.0.1:0").await;
    let error = Mcp::http("site", url.replace("/mcp", "/nothing")).connect().await.unwrap_err();
    assert!(matches!(error, McpError::Status { status: 404, .. }), "{error}");
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    let error = Mcp::http("site", format!("{url}?key=secret")).connect().await.unwrap_err();
    assert!(matches!(error, McpError::Unreachable { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
}

/// A81
#[tokio::test]
async fn a_server_by_http_that_never_answers_ends_at_the_startup_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let silent = Mcp::http("silent", url).startup_timeout(Duration::from_millis(200));
    let error = in_time(silent.connect()).await.unwrap_err();
    assert!(matches!(error, McpError::StartupTimeout { .. }), "{error}");
}

/// A81
#[tokio::test]
async fn redirects_stay_within_the_origin() {
    let site = Site::new();
    let (url, _serving) = serve(&site, "127.0.0.1:0").await;
    let server = Mcp::http("site", url.replace("/mcp", "/moved")).connect().await.unwrap();
    assert_eq!(text(&server, "write").await, "done");

    let before = site.count("initialize");
    let error = Mcp::http("site", url.replace("/mcp", "/away")).bearer("t").connect().await.unwrap_err();
    assert!(matches!(error, McpError::Status { status: 307, .. }), "{error}");
    assert_eq!(site.count("initialize"), before);
}

/// A81
#[tokio::test]
async fn dropping_a_call_tells_the_server_by_http_that_it_is_cancelled() {
    let site = Site::new();
    let server = start(&site).await.connect().await.unwrap();
    site.fails(Fault::Hangs);
    let slow = tool(&server, "write");
    let running =
        tokio::spawn(async move { slow.call(json!({}), ToolContext::detached("slow")).await.is_ok() });
    site.seen("write").await;
    running.abort();
    site.seen("notifications/cancelled").await;
}
