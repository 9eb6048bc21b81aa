//! The `tracing` spans of model calls and tool calls.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::{Id, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use workflow_agent::model::{ModelError, ScriptedReply, Usage};
use workflow_agent::prelude::*;
use workflow_core::observe::TracingObserver;

use crate::parts::{Calls, agent, call, failing, scripted, weather};

/// Records spans and events with their fields.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    spans: Vec<Recording>,
    by_id: HashMap<Id, usize>,
}

#[derive(Clone, Default, Debug)]
struct Recording {
    name: String,
    parent: Option<usize>,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Recording {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &tracing::span::Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context.span(id).and_then(|span| span.parent()).map(|parent| parent.id());
        let mut recorded = self.0.lock().unwrap();
        let parent = parent.map(|parent| recorded.by_id[&parent]);
        let mut span =
            Recording { name: attributes.metadata().name().to_owned(), parent, ..Recording::default() };
        attributes.record(&mut span);
        let place = recorded.spans.len();
        recorded.by_id.insert(id.clone(), place);
        recorded.spans.push(span);
    }

    fn on_record(&self, id: &Id, values: &tracing::span::Record<'_>, _: Context<'_, S>) {
        let mut recorded = self.0.lock().unwrap();
        let place = recorded.by_id[id];
        values.record(&mut recorded.spans[place]);
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut text = Recording::default();
        event.record(&mut text);
        self.0.lock().unwrap().spans.push(Recording { name: "event".into(), ..text });
    }
}

impl Recorder {
    fn of(&self, name: &str) -> Vec<Recording> {
        self.0.lock().unwrap().spans.iter().filter(|span| span.name == name).cloned().collect()
    }

    fn parent(&self, span: &Recording) -> Recording {
        self.0.lock().unwrap().spans[span.parent.expect("the span has a parent")].clone()
    }

    fn everything(&self) -> String {
        format!("{:?}", self.0.lock().unwrap().spans)
    }
}

/// Runs an agent in the test's thread, and records.
async fn recorded(agent: workflow_agent::AgentBuilder, prompt: &str) -> Recorder {
    // Tests beside this one reach the same spans first. Without a subscriber of theirs `tracing` would switch these off.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    let recorder = Recorder::default();
    let subscriber = tracing_subscriber::registry().with(recorder.clone());
    let guard = tracing::subscriber::set_default(subscriber);
    let agent = agent.build().unwrap();
    let engine = Engine::builder().agent(agent.clone()).observer(TracingObserver::new()).build().unwrap();
    agent.start(&engine, prompt).await.unwrap().outcome().await.unwrap();
    drop(guard);
    recorder
}

/// A61
#[tokio::test]
async fn each_model_call_and_each_tool_call_is_a_span_inside_its_execution() {
    let model =
        scripted([call("c1", "weather", "Bern").usage(Usage::new(30, 4)), ScriptedReply::text("warm")]);
    let recorder = recorded(agent(&model.named("m-1")).tool(weather()), "private words").await;
    let chats = recorder.of("chat");
    assert_eq!(chats.len(), 2);
    let fields = &chats[0].fields;
    let expected = [
        ("otel.name", "chat m-1"),
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.request.model", "m-1"),
        ("gen_ai.usage.input_tokens", "30"),
        ("gen_ai.usage.output_tokens", "4"),
        ("gen_ai.request.max_tokens", "8000"),
    ];
    for (field, value) in expected {
        assert_eq!(fields.get(field).map(String::as_str), Some(value), "{field} in {fields:?}");
    }
    let execution = recorder.parent(&chats[0]);
    assert_eq!((&*execution.name, &*execution.fields["workflow.step.name"]), ("workflow.execution", "think"));
    let tools = recorder.of("execute_tool");
    assert_eq!(tools.len(), 1);
    let expected = [
        ("otel.name", "execute_tool weather"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "weather"),
        ("gen_ai.tool.call.id", "c1"),
    ];
    for (field, value) in expected {
        assert_eq!(tools[0].fields.get(field).map(String::as_str), Some(value), "{field}");
    }
    assert_eq!(recorder.parent(&tools[0]).fields["workflow.step.name"], "read");
    let everything = recorder.everything();
    for content in ["private words", "warm in", "Bern"] {
        assert!(!everything.contains(content), "{content} in {everything}");
    }
}

/// A61, A18
#[tokio::test]
async fn contents_are_recorded_only_if_asked_for_and_without_secrets() {
    let model = scripted([call("c1", "weather", "Bern and sk-4711"), ScriptedReply::text("warm as sk-4711")]);
    let agent =
        agent(&model).identity("You know sk-4711.").tool(weather()).secret(Secret::new("key", "sk-4711"));
    let recorder = recorded(agent.span_contents(), "words and sk-4711").await;
    let chats = recorder.of("chat");
    assert!(chats[0].fields["gen_ai.input.messages"].contains("words and [secret key]"));
    assert!(chats[1].fields["gen_ai.output.messages"].contains("warm as [secret key]"));
    let tools = recorder.of("execute_tool");
    assert!(tools[0].fields["gen_ai.tool.call.arguments"].contains("Bern and [secret key]"));
    assert!(tools[0].fields["gen_ai.tool.call.result"].contains("warm in Bern"));
    assert!(!recorder.everything().contains("4711"), "{}", recorder.everything());
}

/// A61
#[tokio::test]
async fn failures_are_marked_in_their_spans() {
    let fails = failing("fails", &Calls::default(), || ToolError::new("no"));
    let model = scripted([
        ScriptedReply::call("1", "fails", json!({})),
        ScriptedReply::fail(ModelError::permanent("no key")),
    ]);
    let recorder = recorded(agent(&model).tool(fails), "go").await;
    let chats = recorder.of("chat");
    assert_eq!(
        (&*chats[1].fields["otel.status_code"], &*chats[1].fields["error.type"]),
        ("ERROR", "permanent")
    );
    let tools = recorder.of("execute_tool");
    assert_eq!((&*tools[0].fields["otel.status_code"], &*tools[0].fields["error.type"]), ("ERROR", "tool"));
}
