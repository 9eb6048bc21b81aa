//! Servers that stop speaking, or that say nothing but that they are there.

use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use futures::{Stream, StreamExt as _, stream};
use workflow_agent::model::ModelEvent;
use workflow_core::ErrorClass;

use super::recorded::streamed;
use super::server::{self, Server};
use super::{KINDS, at, events, hello, reply};

type Chunk = Result<Vec<u8>, std::io::Error>;

/// The text, again and again, with a pause after each.
fn ticking(text: &'static str) -> impl Stream<Item = Chunk> {
    let ticks = tokio::time::interval(Duration::from_millis(5));
    stream::unfold(ticks, move |mut ticks| async move {
        ticks.tick().await;
        Some((Ok(text.as_bytes().to_vec()), ticks))
    })
}

/// A80
#[tokio::test]
async fn a_stream_that_falls_silent_is_transient_after_what_it_said() {
    for kind in KINDS {
        let server = Server::start(move |_| {
            let text = streamed(kind);
            let half = text.as_bytes()[..text.len() / 2].to_vec();
            let body = stream::iter([Chunk::Ok(half)]).chain(stream::pending());
            server::streamed(kind, Body::from_stream(body))
        })
        .await;
        let model = at(kind, &server).idle_timeout(Duration::from_millis(300)).build().unwrap();
        let events = events(&model, hello()).await;
        assert!(matches!(events.first(), Some(Ok(ModelEvent::Thought(text))) if text == "Two "), "{kind}");
        let error = events.last().unwrap().as_ref().unwrap_err();
        assert_eq!(error.class, ErrorClass::Transient);
        assert!(error.message().ends_with("nothing came for 0.3 s"), "{error}");
    }
}

/// A80
#[tokio::test]
async fn a_server_that_never_answers_is_transient() {
    // It takes connections, and reads nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    for streaming in [true, false] {
        let provider = workflow_agent::Provider::new("openai::m-1").unwrap().endpoint(&url).without_key();
        let model = provider.idle_timeout(Duration::from_millis(20)).streaming(streaming).build().unwrap();
        let error = reply(&model, hello()).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Transient);
    }
}

/// A80
#[tokio::test]
async fn comments_and_pings_alone_keep_no_stream_alive() {
    let texts = [
        ("openai", ": still here\n\n"),
        ("anthropic", "event: ping\ndata: {\"type\": \"ping\"}\n\n"),
        ("openai_resp", "data: {\"type\": \"response.in_progress\"}\n\n"),
        ("gemini", "data: {\"usageMetadata\": {}}\n\n"),
        ("ollama", "\n"),
        // A line of an event that never ends.
        ("openai", "data: "),
    ];
    for (kind, text) in texts {
        let server = Server::start(move |_| server::streamed(kind, Body::from_stream(ticking(text)))).await;
        let model = at(kind, &server).idle_timeout(Duration::from_millis(60)).build().unwrap();
        let error = reply(&model, hello()).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Transient, "{kind} {text}: {error}");
        assert!(error.message().contains("nothing came"), "{kind} {text}: {error}");
    }
}

/// A80
#[tokio::test]
async fn an_error_body_that_never_ends_is_an_error_all_the_same() {
    let server = Server::start(|_| {
        let body = stream::iter([Chunk::Ok(b"overloaded".to_vec())]).chain(stream::pending());
        Response::builder().status(529).body(Body::from_stream(body)).unwrap()
    })
    .await;
    let model = at("openai", &server).idle_timeout(Duration::from_millis(300)).build().unwrap();
    let error = reply(&model, hello()).await.unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Transient, Some(529)));
    assert!(error.message().ends_with("status 529: overloaded"), "{error}");
}
