//! A local server that answers by a function and keeps the requests that it received.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Response};
use serde_json::Value;

/// A server on a free port. It ends when it is dropped.
pub(super) struct Server {
    pub(super) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

/// A request that a server received.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Seen {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Server {
    pub(super) async fn start(respond: impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (respond, all) = (Arc::new(respond), Arc::clone(&seen));
        let app = Router::new().fallback(move |request: Request| {
            let (respond, all) = (Arc::clone(&respond), Arc::clone(&all));
            async move {
                let (parts, body) = request.into_parts();
                let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
                let path = parts.uri.path_and_query().unwrap().to_string();
                let seen = Seen { path, headers: parts.headers, body };
                let response = respond(&seen);
                all.lock().unwrap().push(seen);
                response
            }
        });
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, seen, task }
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An answer with a stream of this kind.
pub(super) fn streamed(kind: &str, body: impl Into<Body>) -> Response<Body> {
    let media_type = if kind == "ollama" { "application/x-ndjson" } else { "text/event-stream" };
    Response::builder().header("content-type", media_type).body(body.into()).unwrap()
}

/// An answer in one piece.
pub(super) fn json(status: u16, value: &Value) -> Response<Body> {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(value.to_string())).unwrap()
}
