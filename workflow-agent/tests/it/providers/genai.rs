//! Providers that the crate `genai` knows, against a local server.

use serde_json::json;
use workflow_agent::model::{Finish, Message, Model, ModelRequest, Part, ToolResult, ToolUse, Usage};
use workflow_agent::{Provider, ProviderError};
use workflow_core::ErrorClass;

use super::recorded::{stream, streamed};
use super::server::{self, Server};
use super::{hello, reply};

fn at(server: &Server) -> Provider {
    Provider::new("together::m-1").unwrap().endpoint(format!("{}/v1", server.url)).key("key-0123456789abcdef")
}

/// A80
#[tokio::test]
async fn a_provider_of_genai_replies() {
    let server = Server::start(|_| server::streamed("openai", streamed("openai"))).await;
    let model = at(&server).option("seed", json!(7)).build().unwrap();
    let reply = reply(&model, hello()).await.unwrap();
    assert_eq!((reply.finish, reply.usage), (Finish::ToolUse, Some(Usage::new(30, 7).cached(20))));
    let calls: Vec<_> = reply.calls().map(|call| (&*call.id, &*call.name, call.arguments.clone())).collect();
    assert_eq!(calls, [("id_a", "weather", json!({"city": "Bern"})), ("id_b", "time", json!({}))]);
    assert!(reply.parts.contains(&Part::Text("I loök.".into())));
    let seen = &server.seen()[0];
    assert_eq!(
        (&*seen.path, &seen.headers["authorization"]),
        ("/v1/chat/completions", &"Bearer key-0123456789abcdef".parse().unwrap())
    );
    let body = seen.json();
    assert_eq!((&body["seed"], &body["model"]), (&json!(7), &json!("m-1")));
    assert!(!model.has_native_output());
}

/// A80
#[tokio::test]
async fn conversations_with_calls_are_mapped() {
    let server = Server::start(|_| server::streamed("openai", streamed("openai"))).await;
    let model = at(&server).build().unwrap();
    let parts =
        [Part::Text("I look.".into()), Part::Call(ToolUse::new("a", "weather", json!({"city": "Bern"})))];
    let messages = vec![
        Message::user("Warm?"),
        Message::Assistant { parts: parts.into() },
        Message::Results(vec![ToolResult::new("a", "weather", "warm", false)]),
    ];
    reply(&model, ModelRequest::new("Be brief.", messages, 100)).await.unwrap();
    let body = server.seen()[0].json();
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(body["messages"][2]["tool_calls"][0]["id"], "a");
    assert_eq!(body["messages"][3]["tool_call_id"], "a");
}

/// A80
#[tokio::test]
async fn errors_of_genai_have_classes_and_show_no_key() {
    for (status, class) in
        [(401, ErrorClass::Permanent), (429, ErrorClass::Transient), (503, ErrorClass::Transient)]
    {
        let server = Server::start(move |_| {
            let mut answer = server::json(status, &json!({"error": {"message": "not key-0123456789abcdef"}}));
            answer.headers_mut().insert("retry-after", "7".parse().unwrap());
            answer
        })
        .await;
        let error = reply(&at(&server).build().unwrap(), hello()).await.unwrap_err();
        assert_eq!((error.class, error.status), (class, Some(status)), "{error}");
        assert_eq!(error.retry_after, Some(std::time::Duration::from_secs(7)));
        assert!(error.message().contains("together::m-1") && !error.message().contains("key-01"), "{error}");
    }
    let unknown =
        [json!({"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "because"}]})];
    let text = stream("openai", &unknown);
    let server = Server::start(move |_| server::streamed("openai", text.clone())).await;
    let error = reply(&at(&server).build().unwrap(), hello()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Model, "{error}");
}

/// A80
#[test]
fn a_missing_key_names_the_variable_of_genai() {
    match Provider::new("deepseek::m-1").unwrap().build() {
        Err(ProviderError::MissingKey { variable, .. }) => assert_eq!(variable, "DEEPSEEK_API_KEY"),
        other => assert!(other.is_ok()),
    }
    let refused = Provider::new("groq::m-1").unwrap().key("k").streaming(false).build();
    assert!(matches!(refused, Err(ProviderError::UnsupportedSetting { .. })));
}
