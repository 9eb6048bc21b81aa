//! The transport by streamable HTTP: its settings, and a client that tells lost sessions from answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcError, JsonRpcMessage, RequestId};
use rmcp::transport::common::client_side_sse::{BoxedSseResponse, ExponentialBackoff};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};

use super::content::short;
use super::delivery::{Delivery, Fate};
use super::{Address, Mcp, McpError};

/// The longest time to connect to a host.
const CONNECT: Duration = Duration::from_secs(30);
/// The attempts to resume a broken stream of answers.
const RESUMPTIONS: usize = 3;
/// The hops that a request may be redirected.
const REDIRECTS: usize = 5;
/// Those that the protocol sets itself.
const RESERVED: [&str; 6] =
    ["accept", "content-length", "content-type", "last-event-id", "mcp-protocol-version", "mcp-session-id"];

type Problem = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

pub(super) fn transport(
    mcp: &Mcp,
    address: &Address,
) -> Result<StreamableHttpClientTransport<Client>, McpError> {
    let url_problem = |problem: String| McpError::Url { server: Arc::clone(&mcp.name), problem };
    let url = reqwest::Url::parse(&address.url).map_err(|error| url_problem(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(url_problem(format!("its scheme is `{}`, neither `http` nor `https`", url.scheme())));
    }
    let inner = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        // A connection that the server closed while it was idle would look like a lost call.
        .pool_max_idle_per_host(0)
        .redirect(Policy::custom(redirect))
        .build()
        .map_err(|error| url_problem(workflow_core::errors::chain(&error)))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        // A lost session is a lost connection: reconnecting is up to the call.
        .reinit_on_expired_session(false)
        .custom_headers(headers(mcp, address)?);
    config.auth_header.clone_from(&address.bearer);
    let mut resumption = ExponentialBackoff::default();
    resumption.max_times = Some(RESUMPTIONS);
    config.retry_config = Arc::new(resumption);
    Ok(StreamableHttpClientTransport::with_client(Client { inner }, config))
}

/// Follows only redirects that keep method and body, to the same origin: headers may be secret.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_body = matches!(attempt.status().as_u16(), 307 | 308);
    let first = attempt.previous().first().map(reqwest::Url::origin);
    if keeps_body && first == Some(attempt.url().origin()) && attempt.previous().len() <= REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn headers(mcp: &Mcp, address: &Address) -> Result<Headers, McpError> {
    let mut headers = Headers::new();
    for (name, value) in &address.headers {
        let problem =
            |problem| McpError::Header { server: Arc::clone(&mcp.name), header: name.clone(), problem };
        let parsed =
            HeaderName::try_from(name.as_str()).map_err(|_| problem("its name is not one of a header"))?;
        if RESERVED.contains(&parsed.as_str()) {
            return Err(problem("the protocol sets it itself"));
        }
        let mut value = HeaderValue::try_from(value.as_str())
            .map_err(|_| problem("its value has forbidden characters"))?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

/// Sends the requests, and writes down what became of each.
#[derive(Debug, Clone)]
pub(super) struct Client {
    inner: reqwest::Client,
}

impl StreamableHttpClient for Client {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Problem> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, auth_header, custom_headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Problem> {
        let delivery = Delivery::of(&message);
        let id = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let has_session = session_id.is_some();
        delivery.set(Fate::Sent);
        let answer = self
            .inner
            .post_message_with_response_limits(uri, message, session_id, auth_header, custom_headers, limits)
            .await;
        match answer {
            Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), session)) => {
                addressed(id, error, session, has_session, &delivery)
            }
            Ok(answer) => Ok(answer),
            Err(problem) => {
                delivery.set(fate(&problem, has_session));
                Err(problem)
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Problem> {
        self.inner.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxedSseResponse, Problem> {
        self.inner.get_stream(uri, session_id, last_event_id, auth_header, custom_headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
        most: usize,
    ) -> Result<BoxedSseResponse, Problem> {
        self.inner
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_header,
                custom_headers,
                most,
            )
            .await
    }
}

/// An error that does not name the request is not the answer to it: the server refused to read the request, usually since
/// it no longer knows the session. Nothing would ever match it to the waiting call.
fn addressed(
    id: Option<RequestId>,
    mut error: JsonRpcError,
    session: Option<String>,
    has_session: bool,
    delivery: &Delivery,
) -> Result<StreamableHttpPostResponse, Problem> {
    if id.is_some() && error.id != id {
        if has_session {
            delivery.set(Fate::Unsent);
            let problem = format!("error {}: {}", error.error.code.0, short(&error.error.message, 500));
            return Err(StreamableHttpError::UnexpectedServerResponse(problem.into()));
        }
        error.id = id;
    }
    Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), session))
}

fn fate(problem: &Problem, has_session: bool) -> Fate {
    match problem {
        StreamableHttpError::SessionExpired | StreamableHttpError::ReservedHeaderConflict(_) => Fate::Unsent,
        StreamableHttpError::Client(error) if error.is_connect() => Fate::Unsent,
        problem => match status(problem) {
            Some(400 | 404) if has_session => Fate::Unsent,
            // A gateway that answers with 5xx may have passed the request on.
            Some(300..500) => Fate::Denied,
            _ => Fate::Sent,
        },
    }
}

fn status(problem: &Problem) -> Option<u16> {
    match problem {
        StreamableHttpError::Client(error) => error.status().map(|status| status.as_u16()),
        StreamableHttpError::HttpStatus(error) => Some(error.status),
        StreamableHttpError::SessionExpired => Some(404),
        StreamableHttpError::AuthRequired(_) => Some(401),
        StreamableHttpError::InsufficientScope(_) => Some(403),
        // The only place where the transport leaves other statuses.
        StreamableHttpError::UnexpectedServerResponse(text) => {
            text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
        }
        _ => None,
    }
}

/// The status and the text of an error of any transport. URLs stay out, since they may hold secrets.
pub(super) fn problem(error: DynamicTransportError) -> (Option<u16>, String) {
    match error.error.downcast::<Problem>() {
        Ok(problem) => {
            let status = status(&problem);
            let text = match *problem {
                StreamableHttpError::Client(error) => workflow_core::errors::chain(&error.without_url()),
                StreamableHttpError::SessionExpired => "the server no longer knows the session".to_owned(),
                other => other.to_string(),
            };
            (status, short(&text, 500))
        }
        Err(error) => (None, short(&workflow_core::errors::chain(&*error), 500)),
    }
}
