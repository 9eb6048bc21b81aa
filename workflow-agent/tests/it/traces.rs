//! No key and no secret in what a subscriber at `TRACE` sees, with the filter that the documentation of `Secret` names.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::Response;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use workflow_agent::prelude::*;
use workflow_agent::tool::FnTool;
use workflow_agent::{Mcp, Provider};

const KEY: &str = "sk-key-0123456789";
const SECRET: &str = "sk-4711/secret";
/// As the documentation says it.
const FILTER: &str = "trace,rmcp=off,reqwest=info,hyper=info,hyper_util=info,h2=info,rustls=info";

/// Everything that was recorded, as text.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<String>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0, "{}={value:?}", field.name()).unwrap();
    }
}

impl<S: Subscriber> Layer<S> for Seen {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        attributes.record(&mut Fields(&mut self.0.lock().unwrap()));
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        values.record(&mut Fields(&mut self.0.lock().unwrap()));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut seen = self.0.lock().unwrap();
        writeln!(seen, "{}", event.metadata().target()).unwrap();
        event.record(&mut Fields(&mut seen));
    }
}

/// A provider whose first reply calls both tools with the secret, which `Secret` hides from the run and not from the wire.
async fn provider() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let call = |id: &str, name: &str| json!({"id": id, "function": {"name": name, "arguments": "{}"}});
    let calls = json!({"choices": [{"message": {"content": format!("The key is {SECRET}."), "tool_calls": [
        call("a", "broken"), call("b", "mcp__fake__environment")]}, "finish_reason": "tool_calls"}]});
    let done = json!({"choices": [{"message": {"content": "done"}, "finish_reason": "stop"}]});
    let replies = Arc::new(Mutex::new(vec![done, calls]));
    let app = axum::Router::new().fallback(move || {
        let reply = replies.lock().unwrap().pop().unwrap_or_default();
        let response = Response::builder().header("content-type", "application/json");
        std::future::ready(response.body(Body::from(reply.to_string())).unwrap())
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    url
}

/// A18
#[tokio::test]
async fn a_subscriber_at_trace_sees_neither_keys_nor_secrets() {
    // Tests beside this one reach the same events first. Without a subscriber of theirs `tracing` would switch these off.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    let seen = Seen::default();
    let filter: Targets = FILTER.parse().unwrap();
    let _guard = tracing::subscriber::set_default(
        tracing_subscriber::registry().with(seen.clone().with_filter(filter)),
    );

    let url = provider().await;
    let model = Provider::new("openai::m-1")
        .unwrap()
        .endpoint(url)
        .key(KEY)
        .header("x-more", SECRET)
        .build()
        .unwrap();
    let broken = |_: Value, _| async {
        if SECRET.len() > 1 { panic!("no account for {SECRET}") } else { Ok::<_, ToolError>("") }
    };
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/fake.py");
    let command = ["python3", script, "calls", folder.path().to_str().unwrap()];
    let server = Mcp::stdio("fake", command).env("TOKEN", SECRET).trusted().connect().await.unwrap();
    let agent = Agent::builder("a")
        .model(model)
        .secret(Secret::new("bank", SECRET))
        .span_contents()
        .tools(server.clone());
    let agent = agent.tool(FnTool::new("broken", "Breaks.", broken)).build().unwrap();
    let observer = workflow_core::observe::TracingObserver::new();
    let engine = Engine::builder().observer(observer).agent(agent.clone()).build().unwrap();
    let outcome = agent.start(&engine, "go").await.unwrap().outcome().await.unwrap();
    assert_eq!(outcome.text(), "done");
    server.close().await;

    let seen = seen.0.lock().unwrap();
    assert!(seen.contains("no account for [secret bank]"), "{seen}");
    for hidden in [KEY, SECRET, "4711", "sk-4711\\/secret"] {
        assert!(!seen.contains(hidden), "{hidden} in {seen}");
    }
}
