//! A chat behind HTTP: one handler says the message to the user's session, and streams the reply as server-sent events.
//!
//! ```text
//! cargo run -p examples-agents --example served            # asks itself once, and ends
//! cargo run -p examples-agents --example served -- 8080    # serves
//! curl -N -d 'Hello' localhost:8080/ada
//! ```

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::convert::Infallible;
use std::error::Error;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::routing::post;
use futures::Stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use workflow_agent::model::{ScriptedModel, ScriptedReply};
use workflow_agent::prelude::*;

#[derive(Clone)]
struct Chat {
    engine: Engine,
    agent: Agent,
}

/// Says a message to the session of a user. The run continues if the client leaves.
async fn say(
    State(chat): State<Chat>,
    Path(user): Path<String>,
    message: String,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, (StatusCode, String)> {
    let session = Session::of(&chat.engine, &chat.agent).thread(user);
    let run = session.say(message).await.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let events = run.filter_map(|shown| async move {
        let event = match shown {
            Shown::Delta(piece) => Event::default().event("text").data(piece.text),
            Shown::ToolUse(call) => Event::default().event("tool").data(call.tool),
            Shown::Done(outcome) => Event::default().event("done").data(outcome.text()),
            _ => return None,
        };
        Some(Ok(event))
    });
    Ok(Sse::new(events))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::respond(|_| ScriptedReply::chunks(["Good ", "morning."]));
    let agent = Agent::builder("assistant").model(model).build()?;
    let engine = Engine::builder().agent(agent.clone()).build()?;
    let routes = Router::new().route("/{user}", post(say)).with_state(Chat { engine, agent });

    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse::<u16>())?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, routes).await });
    if port != 0 {
        println!("http://{address}");
        return Ok(server.await??);
    }

    let mut client = TcpStream::connect(address).await?;
    client.write_all(b"POST /ada HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n").await?;
    client.write_all(b"content-type: text/plain\r\ncontent-length: 5\r\n\r\nHello").await?;
    let mut reply = String::new();
    client.read_to_string(&mut reply).await?;
    println!("{reply}");
    server.abort();
    if reply.contains("event: done") { Ok(()) } else { Err("the reply has no end".into()) }
}
