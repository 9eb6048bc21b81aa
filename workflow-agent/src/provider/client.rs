//! The client of the five kinds: it sends a request and hands its answer to the readers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::assembly::shown_of;
use super::failure::{Failure, Subject};
use super::kind::Kind;
use super::reading::{self, PATIENCE, Reader};
use super::wire::{Target, json_of, merge};
use crate::model::{ModelError, ModelEvent, ModelRequest, ModelStream};

/// A client of one model.
pub(crate) struct Client {
    pub(super) http: reqwest::Client,
    pub(super) kind: Kind,
    pub(super) address: Url,
    pub(super) headers: HeaderMap,
    pub(super) target: Target,
    pub(super) options: Map<String, Value>,
    pub(super) idle_timeout: Duration,
    pub(super) subject: Arc<Subject>,
}

impl Client {
    pub(crate) async fn call(self: Arc<Self>, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.exchange(&request).await.map_err(|failure| self.subject.error(failure))
    }

    async fn exchange(&self, request: &ModelRequest) -> Result<ModelStream, Failure> {
        let body = body(self.kind, &self.target, &self.options, request)?;
        let patience = if self.target.streaming { 1 } else { PATIENCE };
        let until = Instant::now() + self.idle_timeout * patience;
        let sent = self.http.post(self.address.clone()).headers(self.headers.clone()).body(body.to_string());
        let mut response = match timeout_at(until, sent.send()).await {
            Err(_) => return Err(reading::silent(self.idle_timeout * patience)),
            Ok(Err(error)) => return Err(not_sent(error)),
            Ok(Ok(response)) => response,
        };
        if response.status() != StatusCode::OK {
            let until = Instant::now() + self.idle_timeout;
            let (body, was_cut) = reading::error_body(&mut response, until).await;
            return Err(Failure::of_answer(response.status().as_u16(), response.headers(), &body, was_cut));
        }
        match media_type(&response).as_deref() {
            Some("text/html") => Err(Failure::permanent("it answers with a web page: check the endpoint")),
            // Some servers know no streams.
            Some("application/json") => self.whole(response, until).await,
            _ if !self.target.streaming => self.whole(response, until).await,
            _ => {
                let decoder = self.kind.decoder(Arc::clone(&self.target.provider));
                let reader = Reader::new(self.kind.framing(), decoder);
                Ok(reading::events(response, reader, Arc::clone(&self.subject), self.idle_timeout))
            }
        }
    }

    async fn whole(&self, mut response: Response, until: Instant) -> Result<ModelStream, Failure> {
        let until = until.max(Instant::now() + self.idle_timeout * PATIENCE);
        let body = reading::whole(&mut response, until).await?;
        let value = json_of(&String::from_utf8_lossy(&body))?;
        let reply = self.kind.whole(&self.target.provider, &value)?;
        let events: Vec<_> =
            shown_of(&reply).into_iter().chain([ModelEvent::Finished(reply)]).map(Ok).collect();
        Ok(stream::iter(events).boxed())
    }
}

/// The body of a request with its options. Its keys are sorted, so that equal requests have equal bytes.
pub(crate) fn body(
    kind: Kind,
    target: &Target,
    options: &Map<String, Value>,
    request: &ModelRequest,
) -> Result<Value, Failure> {
    let mut body = kind.body(target, request)?;
    merge(&mut body, options);
    body.sort_all_objects();
    Ok(body)
}

/// The headers that every request has.
pub(super) fn fixed_headers(kind: Kind) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if kind == Kind::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    headers
}

fn not_sent(error: reqwest::Error) -> Failure {
    let failure = if error.is_builder() {
        Failure::permanent("the request cannot be sent")
    } else if error.is_connect() {
        Failure::transient("no connection")
    } else {
        Failure::transient("the connection broke off before an answer")
    };
    failure.caused_by(error.without_url())
}

fn media_type(response: &Response) -> Option<String> {
    let text = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split(';').next()?.trim().to_ascii_lowercase())
}
