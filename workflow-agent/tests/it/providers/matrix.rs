//! Recordings of every kind of provider, made by hand in the documented formats and as servers vary them: parallel calls,
//! thoughts, cached tokens, each ending, each error. Each is replayed whole, byte by byte, and cut at every byte: it is the same
//! reply, or one typed error, and no call ever has the arguments of another.

#![expect(clippy::needless_pass_by_value, reason = "recordings are written in place")]
#![expect(clippy::format_collect, reason = "bodies are short")]

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use serde_json::{Value, json};
use workflow_agent::Provider;
use workflow_agent::model::{Finish, ModelError, ModelEvent, ModelReply, Opaque, Part, ToolUse, Usage};
use workflow_core::ErrorClass;

use super::server::{self, Server};
use super::{at, hello, last, reply};

/// A recorded body and the result of reading it.
struct Recording {
    kind: &'static str,
    name: &'static str,
    body: String,
    expected: Result<ModelReply, ErrorClass>,
}

/// Recordings of streams and, behind them, of bodies in one piece.
struct Recordings {
    kind: &'static str,
    streams: Vec<Recording>,
    wholes: Vec<Recording>,
}

impl Recordings {
    fn new(kind: &'static str) -> Self {
        Self { kind, streams: Vec::new(), wholes: Vec::new() }
    }

    fn stream(&mut self, name: &'static str, body: String, expected: Result<ModelReply, ErrorClass>) {
        self.streams.push(Recording { kind: self.kind, name, body, expected });
    }

    fn whole(&mut self, name: &'static str, body: &Value, expected: Result<ModelReply, ErrorClass>) {
        self.wholes.push(Recording { kind: self.kind, name, body: body.to_string(), expected });
    }
}

fn all() -> Vec<Recordings> {
    vec![chat::all(), responses::all(), anthropic::all(), gemini::all(), ollama::all()]
}

/// Server-sent events.
fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn replied(parts: Vec<Part>, finish: Finish) -> ModelReply {
    ModelReply::new(parts, finish)
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

/// The arguments of every call name its tool, so that a mix-up shows.
fn arguments(name: &str) -> Value {
    json!({ "for": name })
}

fn call(id: &str, name: &str) -> Part {
    Part::Call(ToolUse::new(id, name, arguments(name)))
}

fn unsigned(kind: &str, place: &Value, text: &str) -> Part {
    let signature = Some(Opaque::new(kind, json!({ "unsigned": place })));
    Part::Thought { text: text.to_owned(), signature }
}

fn signed(kind: &str, data: Value, text: &str) -> Part {
    Part::Thought { text: text.to_owned(), signature: Some(Opaque::new(kind, data)) }
}

fn usage() -> Usage {
    Usage::new(30, 7).cached(20)
}

fn replayed<C: AsRef<[u8]>>(
    kind: &str,
    chunks: impl IntoIterator<Item = C>,
) -> Vec<Result<ModelEvent, ModelError>> {
    Provider::replay(kind, chunks).unwrap()
}

fn outcome(result: Result<ModelReply, ModelError>) -> Result<ModelReply, ErrorClass> {
    result.map_err(|error| error.class)
}

/// No call has arguments of another one.
fn assert_not_mixed(reply: &ModelReply, context: &str) {
    for call in reply.calls() {
        let is_own = match &call.arguments {
            Value::Object(fields) => fields.get("for").is_none_or(|name| name == &*call.name),
            // A text that is no object runs nothing.
            other => other.is_string(),
        };
        assert!(is_own, "{context}: {call:?}");
    }
}

/// A6, A7, A8, A80
#[test]
fn each_stream_is_read_whole_and_byte_by_byte_alike() {
    for recording in all().iter().flat_map(|all| &all.streams) {
        let Recording { kind, name, body, expected } = recording;
        let whole = replayed(kind, [body]);
        assert_eq!(outcome(last(whole.clone())), *expected, "{kind}, {name}");
        let in_bytes = replayed(kind, body.as_bytes().chunks(1));
        assert_eq!(format!("{in_bytes:?}"), format!("{whole:?}"), "{kind}, {name}: byte by byte");
    }
}

/// A80
#[test]
fn a_stream_that_ends_early_is_the_same_reply_or_one_typed_error() {
    for recording in all().iter().flat_map(|all| &all.streams) {
        let Recording { kind, name, body, expected } = recording;
        for cut in 0..body.len() {
            let context = format!("{kind}, {name}, ended at {cut}");
            match last(replayed(kind, [&body.as_bytes()[..cut]])) {
                Ok(reply) => {
                    assert_not_mixed(&reply, &context);
                    // The usage may come behind the end of the reply.
                    let expected = expected.as_ref().map(|expected| (&expected.parts, expected.finish));
                    assert_eq!(Ok((&reply.parts, reply.finish)), expected, "{context}");
                }
                Err(error) => {
                    let of_body = expected.as_ref().err().copied();
                    let is_known = error.class == ErrorClass::Transient || Some(error.class) == of_body;
                    assert!(is_known, "{context}: {error}");
                }
            }
        }
    }
}

/// A80
#[tokio::test]
async fn a_connection_that_breaks_within_a_stream_is_transient() {
    for recording in all().into_iter().flat_map(|all| all.streams) {
        let Recording { kind, name, body, expected } = recording;
        if expected.is_err() {
            continue;
        }
        // Behind each event; the last one ends the reply.
        let ends: Vec<usize> = body.match_indices("\n\n").map(|(at, _)| at + 2).collect();
        let ends =
            if kind == "ollama" { body.match_indices('\n').map(|(at, _)| at + 1).collect() } else { ends };
        let (sent, end_at) = (body.clone().into_bytes(), Arc::new(AtomicUsize::new(0)));
        let length = Arc::clone(&end_at);
        let server = Server::start(move |_| {
            let head = sent[..length.load(Ordering::Relaxed)].to_vec();
            let broken = futures::stream::iter([Ok(head), Err(std::io::Error::other("gone"))]);
            server::streamed(kind, Body::from_stream(broken))
        })
        .await;
        let model = at(kind, &server).build().unwrap();
        for end in ends.into_iter().filter(|end| *end < body.len()) {
            end_at.store(end, Ordering::Relaxed);
            match reply(&model, hello()).await {
                Ok(reply) => panic!("{kind}, {name}, broken at {end}: {reply:?}"),
                Err(error) => assert_eq!(error.class, ErrorClass::Transient, "{kind}, {name}: {error}"),
            }
        }
    }
}

/// A6, A7, A8, A80
#[tokio::test]
async fn each_whole_body_is_read_and_an_end_before_its_last_byte_is_transient() {
    for Recordings { kind, wholes, .. } in all() {
        for Recording { name, body, expected, .. } in wholes {
            let (sent, end_at) = (body.clone(), Arc::new(AtomicUsize::new(0)));
            let length = Arc::clone(&end_at);
            let server = Server::start(move |_| {
                let head = sent.as_bytes()[..length.load(Ordering::Relaxed)].to_vec();
                server::streamed(kind, Body::empty()).map(|_| Body::from(head))
            })
            .await;
            let model = at(kind, &server).streaming(false).build().unwrap();
            let read = async |end: usize| {
                end_at.store(end, Ordering::Relaxed);
                outcome(reply(&model, hello()).await)
            };
            let provider = format!("{kind}@{}", server.url);
            let expected = expected.map(|reply| of_provider(reply, kind, &provider));
            assert_eq!(read(body.len()).await, expected, "{kind}, {name}");
            for end in 0..body.len() {
                assert_eq!(read(end).await, Err(ErrorClass::Transient), "{kind}, {name}, ended at {end}");
            }
        }
    }
}

/// The reply as it is at another server of the kind.
fn of_provider(mut reply: ModelReply, kind: &str, provider: &str) -> ModelReply {
    for part in &mut reply.parts {
        let signature = match part {
            Part::Thought { signature, .. } => signature.as_mut(),
            Part::Call(call) => call.signature.as_mut(),
            Part::Opaque(opaque) => Some(opaque),
            _ => None,
        };
        if let Some(opaque) = signature {
            assert_eq!(&*opaque.provider, kind);
            opaque.provider = provider.into();
        }
    }
    reply
}
