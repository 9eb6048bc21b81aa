//! Models of providers, against local servers and recorded streams in the documented formats.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod bounds;
mod cuts;
mod describing;
mod errors;
mod finishes;
mod fuzz;
mod matrix;
mod parallel;
mod thoughts;
#[cfg(feature = "genai")]
mod genai;
mod recorded;
mod replies;
mod requests;
mod server;
mod signatures;
mod silence;

use futures::StreamExt as _;
use workflow_agent::model::{Message, Model, ModelError, ModelEvent, ModelReply, ModelRequest};
use workflow_agent::{Provider, ProviderModel};

/// The kinds with clients of our own.
const KINDS: [&str; 5] = ["openai", "openai_resp", "anthropic", "gemini", "ollama"];

/// A model of this kind at a local server.
fn at(kind: &str, server: &server::Server) -> Provider {
    Provider::new(&format!("{kind}::m-1")).unwrap().endpoint(&server.url).key("key-0123456789abcdef")
}

fn hello() -> ModelRequest {
    ModelRequest::new("Be brief.", vec![Message::user("Hello")], 100)
}

/// Everything that a call shows, up to its end.
async fn events(model: &ProviderModel, request: ModelRequest) -> Vec<Result<ModelEvent, ModelError>> {
    match model.call(request).await {
        Ok(stream) => stream.collect().await,
        Err(error) => vec![Err(error)],
    }
}

async fn reply(model: &ProviderModel, request: ModelRequest) -> Result<ModelReply, ModelError> {
    last(events(model, request).await)
}

/// The end of a list of events, which is nowhere else.
fn last(mut events: Vec<Result<ModelEvent, ModelError>>) -> Result<ModelReply, ModelError> {
    let end = events.pop().expect("a call has an end");
    assert!(events.iter().all(|event| !matches!(event, Err(_) | Ok(ModelEvent::Finished(_)))));
    match end? {
        ModelEvent::Finished(reply) => Ok(reply),
        other => panic!("the last event is {other:?}"),
    }
}
