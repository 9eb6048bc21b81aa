//! Bounds of replies.

use serde_json::json;
use workflow_agent::Provider;
use workflow_core::ErrorClass;

use super::recorded::stream;
use super::server::{self, Server};
use super::{KINDS, at, hello, last, reply};

/// A80
#[test]
fn more_than_1024_calls_are_refused() {
    let calls = |count: usize| -> Vec<_> {
        (0..count)
            .map(|n| json!({"id": format!("c{n}"), "function": {"name": "t", "arguments": "{}"}}))
            .collect()
    };
    for (count, is_fine) in [(1_024, true), (1_025, false)] {
        let events =
            [json!({"choices": [{"delta": {"tool_calls": calls(count)}, "finish_reason": "tool_calls"}]})];
        let read = last(Provider::replay("openai", [stream("openai", &events)]).unwrap());
        assert_eq!(read.as_ref().is_ok_and(|reply| reply.calls().count() == count), is_fine);
        assert!(is_fine || read.unwrap_err().class == ErrorClass::Model);
    }
}

/// A80
#[test]
fn endless_streams_and_lines_are_refused() {
    for kind in KINDS {
        let endless_line = std::iter::repeat_n("data: ".to_owned() + &"x".repeat(1 << 20), 8);
        let error = last(Provider::replay(kind, endless_line).unwrap()).unwrap_err();
        assert_eq!(error.class, ErrorClass::Model, "{kind}: {error}");
        let comments = std::iter::repeat_n(": still here\n".repeat(10_000), 200);
        let comments = Provider::replay(kind, comments).unwrap();
        assert!(last(comments).is_err(), "{kind}");
    }
}

/// A80
#[tokio::test]
async fn endless_whole_replies_are_refused() {
    let server = Server::start(|_| {
        let endless = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 1 << 16]));
        server::streamed("openai", axum::body::Body::from_stream(endless))
    })
    .await;
    let model = at("openai", &server).streaming(false).build().unwrap();
    let error = reply(&model, hello()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Model, "{error}");
    assert!(error.message().contains("16777216 bytes"));
}
