//! Replies of every kind, streamed and whole, over HTTP.

use workflow_agent::model::{Model, ModelEvent};

use super::recorded::{expected, streamed, whole};
use super::server::{self, Server};
use super::{KINDS, at, events, hello, last, reply};

/// A80
#[tokio::test]
async fn every_kind_reads_streamed_replies_and_shows_their_pieces() {
    for kind in KINDS {
        let server = Server::start(move |_| server::streamed(kind, streamed(kind))).await;
        let model = at(kind, &server).build().unwrap();
        let events = events(&model, hello()).await;
        let shown: Vec<ModelEvent> = events.iter().filter_map(|event| event.as_ref().ok().cloned()).collect();
        let pieces: Vec<String> = shown
            .iter()
            .filter_map(|event| match event {
                ModelEvent::Text(text) | ModelEvent::Thought(text) => Some(text.clone()),
                ModelEvent::CallBegun { name } => Some(format!("({name})")),
                _ => None,
            })
            .collect();
        assert_eq!(pieces, ["Two ", "cities.", "I lo", "ök.", "(weather)", "(time)"], "{kind}");
        assert_eq!(last(events).unwrap(), expected(kind, &format!("{kind}@{}", server.url)), "{kind}");
        assert!(model.has_native_output());
    }
}

/// A80
#[tokio::test]
async fn every_kind_reads_whole_replies() {
    for kind in KINDS {
        let server = Server::start(move |_| server::json(200, &whole(kind))).await;
        let expected = expected(kind, &format!("{kind}@{}", server.url));
        // A server that knows no streams answers whole anyway.
        for streaming in [false, true] {
            let model = at(kind, &server).streaming(streaming).build().unwrap();
            assert_eq!(reply(&model, hello()).await.unwrap(), expected, "{kind}");
        }
        let seen = server.seen();
        let asked = |index: usize| seen[index].json()["stream"].as_bool().unwrap_or(false);
        assert!(!asked(0), "{kind}");
        assert_eq!(asked(1), kind != "gemini", "{kind}");
    }
}

/// A80
#[tokio::test]
async fn each_kind_has_its_path_its_headers_and_no_key_if_none_is_wanted() {
    let paths = [
        ("openai", "/v1/chat/completions", "authorization", "Bearer key-0123456789abcdef"),
        ("openai_resp", "/v1/responses", "authorization", "Bearer key-0123456789abcdef"),
        ("anthropic", "/v1/messages", "x-api-key", "key-0123456789abcdef"),
        ("gemini", "/v1/models/m-1:streamGenerateContent", "x-goog-api-key", "key-0123456789abcdef"),
        ("ollama", "/v1/api/chat", "authorization", "Bearer key-0123456789abcdef"),
    ];
    for (kind, path, header, value) in paths {
        let server = Server::start(move |_| server::streamed(kind, streamed(kind))).await;
        let endpoint = format!("{}/v1/?version=2", server.url);
        let with_key = at(kind, &server).endpoint(&endpoint).header("x-more", "1").build().unwrap();
        let without = at(kind, &server).endpoint(&endpoint).without_key().build().unwrap();
        reply(&with_key, hello()).await.unwrap();
        reply(&without, hello()).await.unwrap();
        let [first, second] = &server.seen()[..] else { panic!("two calls") };
        let query = if kind == "gemini" { "?version=2&alt=sse" } else { "?version=2" };
        assert_eq!(first.path, format!("{path}{query}"));
        assert_eq!(first.headers[header], value);
        assert_eq!(first.headers["x-more"], "1");
        assert_eq!(first.headers["content-type"], "application/json");
        assert_eq!(first.headers.contains_key("anthropic-version"), kind == "anthropic");
        assert!(!second.headers.contains_key(header) && !second.headers.contains_key("x-more"));
        assert_eq!(first.body, second.body);
    }
}

/// A80
#[tokio::test]
async fn options_reach_the_body_and_two_equal_requests_have_equal_bytes() {
    let server = Server::start(|_| server::streamed("gemini", streamed("gemini"))).await;
    let build = || {
        at("gemini", &server)
            .option("generationConfig", serde_json::json!({"temperature": 0.2, "maxOutputTokens": null}))
            .build()
            .unwrap()
    };
    reply(&build(), hello()).await.unwrap();
    reply(&build(), hello()).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen[0].json()["generationConfig"], serde_json::json!({"temperature": 0.2}));
    assert_eq!(seen[0].body, seen[1].body);
}
