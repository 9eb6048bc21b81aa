//! Errors that providers answer with, and errors within streams: their classes, their waits and their words.

use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use serde_json::{Value, json};
use workflow_agent::Provider;
use workflow_core::ErrorClass::{self, ContextLimit, Permanent, Transient};

use super::recorded::{events, stream};
use super::server::{self, Server};
use super::{KINDS, at, hello, last, reply};

/// An error body as each provider words it.
fn body(kind: &str, message: &str) -> Value {
    match kind {
        "anthropic" => json!({"type": "error", "error": {"type": "some_error", "message": message}}),
        "gemini" => json!({"error": {"code": 1, "status": "SOME", "message": message}}),
        "ollama" => json!({"error": message}),
        _ => json!({"error": {"type": "some_error", "code": null, "param": null, "message": message}}),
    }
}

/// A80
#[tokio::test]
async fn each_status_has_its_class_and_retry_after_is_kept() {
    const STATUSES: [(u16, ErrorClass); 15] = [
        (400, Permanent),
        (401, Permanent),
        (403, Permanent),
        (404, Permanent),
        (408, Transient),
        (409, Transient),
        (413, Permanent),
        (422, Permanent),
        (429, Transient),
        (500, Transient),
        (502, Transient),
        (503, Transient),
        (504, Transient),
        (529, Transient),
        (302, Permanent),
    ];
    for kind in KINDS {
        let server = Server::start(move |seen| {
            let status: u16 = seen.headers["x-status"].to_str().unwrap().parse().unwrap();
            let mut answer = server::json(status, &body(kind, "because I say so"));
            answer.headers_mut().insert("retry-after", "7".parse().unwrap());
            answer.headers_mut().insert("location", "/elsewhere".parse().unwrap());
            answer
        })
        .await;
        for (status, class) in STATUSES {
            let model = at(kind, &server).header("x-status", status.to_string()).build().unwrap();
            let error = reply(&model, hello()).await.unwrap_err();
            assert_eq!((error.class, error.status), (class, Some(status)), "{kind} {status}: {error}");
            assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
            assert!(error.message().contains(&format!("{kind}::m-1")), "{error}");
            assert!(status == 302 || error.message().contains("because I say so"), "{error}");
            let variable = match kind {
                "openai" | "openai_resp" => "OPENAI_API_KEY",
                "anthropic" => "ANTHROPIC_API_KEY",
                "gemini" => "GEMINI_API_KEY",
                _ => "",
            };
            let names_key = !variable.is_empty() && error.message().contains(variable);
            assert_eq!(names_key, matches!(status, 401 | 403) && kind != "ollama", "{error}");
            assert_eq!(error.message().contains("check the model's name"), status == 404, "{error}");
        }
        // Redirects are not followed.
        assert!(server.seen().iter().all(|seen| !seen.path.contains("elsewhere")));
    }
}

/// A80
#[tokio::test]
async fn an_account_without_credit_is_permanent_by_its_code_alone_and_no_question_of_the_key() {
    let quota = |code: &str, text: &str| json!({"error": {"code": code, "type": code, "message": text}});
    let cases = [
        (429, quota("insufficient_quota", "You exceeded your current quota."), Permanent, "check the credit"),
        // The same words without the code are those of a rate limit.
        (429, quota("rate_limit_exceeded", "insufficient_quota: slow down"), Transient, ""),
        (
            400,
            quota("invalid_request_error", "Your credit balance is too low."),
            Permanent,
            "check the credit",
        ),
        (402, quota("payment_required", "pay"), Permanent, "check the credit"),
        (403, quota("permission_error", "no billing"), Permanent, "check the credit"),
        (401, quota("invalid_api_key", "wrong"), Permanent, "check the key"),
    ];
    for (status, body, class, hint) in cases {
        let answer = body.clone();
        let server = Server::start(move |_| server::json(status, &answer)).await;
        let error = reply(&at("openai", &server).build().unwrap(), hello()).await.unwrap_err();
        assert_eq!(error.class, class, "{body}: {error}");
        assert!(error.message().contains(hint), "{error}");
        assert!(hint == "check the key" || !error.message().contains("check the key"), "{error}");
    }
    let event = quota("insufficient_quota", "You exceeded your current quota.");
    let error = last(Provider::replay("openai", [stream("openai", &[event])]).unwrap()).unwrap_err();
    assert_eq!(error.class, Permanent, "{error}");
}

/// A80
#[tokio::test]
async fn retry_after_is_also_milliseconds_or_a_date() {
    let server = Server::start(|seen| {
        let answer = Response::builder().status(429).header("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let answer = match seen.headers["x-form"].to_str().unwrap() {
            "date" => answer.header("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT"),
            _ => answer.header("retry-after-ms", "1500").header("retry-after", "9"),
        };
        answer.body(Body::from("slow down")).unwrap()
    })
    .await;
    for (form, delay) in [("date", 60_000), ("ms", 1_500)] {
        let model = at("openai", &server).header("x-form", form).build().unwrap();
        let error = reply(&model, hello()).await.unwrap_err();
        assert_eq!(error.retry_after, Some(Duration::from_millis(delay)));
        assert!(error.message().ends_with("status 429: slow down"), "{error}");
    }
}

/// A80
#[tokio::test]
async fn context_errors_have_a_class_of_their_own() {
    let texts = [
        ("openai", 400, "This model's maximum context length is 8192 tokens."),
        ("openai_resp", 400, "Your input exceeds the context window of this model."),
        ("anthropic", 400, "prompt is too long: 210000 tokens > 200000 maximum"),
        ("gemini", 400, "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
        (
            "ollama",
            400,
            "request (9 tokens) exceeds the available context size (8 tokens), try increasing it",
        ),
    ];
    for (kind, status, text) in texts {
        let server = Server::start(move |_| server::json(status, &body(kind, text))).await;
        let model = at(kind, &server).build().unwrap();
        assert_eq!(reply(&model, hello()).await.unwrap_err().class, ContextLimit, "{kind}");
    }
}

/// A80
#[test]
fn errors_within_streams_have_the_class_of_their_code() {
    let cases = [
        (
            "anthropic",
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            Transient,
        ),
        (
            "anthropic",
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}),
            Permanent,
        ),
        (
            "openai",
            json!({"error": {"message": "The server had an error", "type": "server_error"}}),
            Transient,
        ),
        ("openai", json!({"error": {"message": "no such model", "code": 404}}), Permanent),
        ("openai", json!({"error": {"message": "maximum context length", "code": 400}}), ContextLimit),
        (
            "openai_resp",
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}),
            Transient,
        ),
        (
            "openai_resp",
            json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": "server_error", "message": "broken"}}}),
            Transient,
        ),
        (
            "openai_resp",
            json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": "invalid_prompt", "message": "flagged"}}}),
            Permanent,
        ),
        (
            "openai_resp",
            json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": "context_length_exceeded", "message": "too long"}}}),
            ContextLimit,
        ),
        (
            "gemini",
            json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}}),
            Transient,
        ),
        ("gemini", json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "no"}}), Permanent),
        ("ollama", json!({"error": "llama runner process has terminated"}), Transient),
    ];
    for (kind, event, class) in cases {
        let mut all = events(kind);
        all.truncate(4);
        all.push(event.clone());
        let error = last(Provider::replay(kind, [stream(kind, &all)]).unwrap()).unwrap_err();
        assert_eq!(error.class, class, "{kind} {event}: {error}");
    }
}

/// A80
#[tokio::test]
async fn errors_and_debug_output_never_show_the_key() {
    const KEY: &str = "sk-very-secret-0123456789";
    for kind in KINDS {
        for padding in [0, 900, 985, 64 * 1024 - 40, 64 * 1024 - 15] {
            for is_json in [true, false] {
                let server = Server::start(move |_| {
                    let text =
                        format!("{}the key {KEY} and {}*** are wrong", " x".repeat(padding / 2), &KEY[..12]);
                    if is_json {
                        return server::json(401, &body(kind, &text));
                    }
                    Response::builder().status(500).body(Body::from(text)).unwrap()
                })
                .await;
                let provider = at(kind, &server).key(KEY).header("x-more", "another-secret-value");
                let model = provider.clone().build().unwrap();
                let error = reply(&model, hello()).await.unwrap_err();
                let mut text = format!("{error} {error:?} {provider:?} {model:?}");
                let mut source = error.source();
                while let Some(error) = source {
                    write!(text, "{error} {error:?}").unwrap();
                    source = error.source();
                }
                assert!(!text.contains("sk-very") && !text.contains("another-secret"), "{kind}: {text}");
                assert!(error.message().chars().count() < 1_300);
            }
        }
    }
}

/// A80
#[tokio::test]
async fn a_web_page_is_no_reply() {
    let server = Server::start(|_| {
        Response::builder()
            .header("content-type", "text/html; charset=utf-8")
            .body(Body::from("<p>Log in"))
            .unwrap()
    })
    .await;
    let error = reply(&at("openai", &server).build().unwrap(), hello()).await.unwrap_err();
    assert_eq!(error.class, Permanent);
    assert!(error.message().contains("check the endpoint"));
}

/// A80
#[tokio::test]
async fn endless_error_bodies_are_cut() {
    let server = Server::start(|_| {
        let endless = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 4_096]));
        Response::builder().status(503).body(Body::from_stream(endless)).unwrap()
    })
    .await;
    let error = reply(&at("openai", &server).build().unwrap(), hello()).await.unwrap_err();
    assert_eq!((error.class, error.status), (Transient, Some(503)));
    assert!(error.message().len() < 1_300);
}
