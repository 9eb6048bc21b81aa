//! The sight of an attempt, its display, and its saved work.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::{Value, json};
use workflow_core::DisplayStream;

use super::testing::{context, parts};
use super::{Held, NodeContext, Parts};
use crate::{NodeActivity, ToolCall};

async fn next(shown: &mut DisplayStream) -> Value {
    let item = shown.next().await.unwrap();
    serde_json::to_value(item.event::<NodeActivity>().unwrap()).unwrap()
}

/// G32
#[tokio::test]
async fn progress_and_tools_are_shown_with_their_attempt() {
    let (parts, mut shown) = parts("load");
    let context = NodeContext::new(Parts { iteration: 3, attempt: 2, item: Some(7), ..parts });
    context.progress("half");
    context.tool_called("search", json!({"for": "tea"}));
    context.tool_returned(&ToolCall::failed("search", json!({"for": "tea"}), "offline"));
    let at = |mut rest: Value| {
        rest["node"] = json!("load");
        rest["iteration"] = json!(3);
        rest["attempt"] = json!(2);
        rest["item"] = json!(7);
        rest
    };
    assert_eq!(next(&mut shown).await, at(json!({"kind": "progress", "text": "half"})));
    assert_eq!(
        next(&mut shown).await,
        at(json!({"kind": "tool_called", "tool": "search", "input": {"for": "tea"}}))
    );
    let returned = json!({"kind": "tool_returned", "tool": "search", "ok": false, "error": "offline"});
    assert_eq!(next(&mut shown).await, at(returned));
}

/// G32
#[tokio::test]
async fn a_long_text_of_progress_is_cut_between_characters() {
    let (parts, mut shown) = parts("load");
    NodeContext::new(parts).progress("a".repeat((1 << 20) - 1) + "ä");
    assert_eq!(next(&mut shown).await["text"].as_str().unwrap().len(), (1 << 20) - 1);
}

/// G31
#[tokio::test]
async fn later_attempts_find_what_was_saved_until_it_is_forgotten() {
    let (parts, _shown) = parts("load");
    let saved = parts.services.saved.clone();
    let first = NodeContext::new(parts);
    assert_eq!(first.saved::<u32>().await.unwrap(), None);
    first.save(4_u32).await.unwrap();
    first.save(5_u32).await.unwrap();
    let mut parts = super::testing::parts("load").0;
    parts.services.saved = saved;
    let second = NodeContext::new(Parts { attempt: 2, ..parts });
    assert_eq!(second.saved::<u32>().await.unwrap(), Some(5));
    second.forget().await.unwrap();
    assert_eq!(first.saved::<u32>().await.unwrap(), None);
}

/// G31
#[tokio::test]
async fn executions_save_apart_from_each_other() {
    let (parts, _shown) = parts("load");
    let saved = parts.services.saved.clone();
    let key = "run-1/load/1".to_owned();
    NodeContext::new(parts).save("mine").await.unwrap();
    for (key, found) in [("another".to_owned(), None), (key, Some("mine".to_owned()))] {
        let mut parts = super::testing::parts("load").0;
        parts.services.key = key.into();
        parts.services.saved = saved.clone();
        let context = NodeContext::new(parts);
        assert_eq!(context.saved::<String>().await.unwrap(), found, "{context:?}");
    }
}

/// G31
#[tokio::test]
async fn saved_work_of_another_type_names_the_path() {
    let context = context("load", 0);
    context.save(json!({"pages": ["a", 2]})).await.unwrap();
    let error = context.saved::<HashMap<String, Vec<String>>>().await.unwrap_err();
    assert_eq!(error.class(), workflow_core::ErrorClass::Permanent);
    assert_eq!(
        error.to_string(),
        "the saved work of `load` cannot be read at `pages[1]`: invalid type: integer `2`, expected a string"
    );
}

/// G31
#[tokio::test]
async fn work_without_json_is_not_saved() {
    let work = HashMap::from([((1, 2), 3)]);
    let error = context("load", 0).save(work).await.unwrap_err();
    assert_eq!(error.class(), workflow_core::ErrorClass::Permanent);
}

#[tokio::test]
async fn a_context_says_where_it_is() {
    let (mut parts, _shown) = parts("load");
    let call = ToolCall::returned("search", json!({}), json!([]));
    let result = json!({"data": {"a": 1}, "visit": 1, "calls": [&call]});
    let results = [("first".into(), Held::Made(Arc::new(result)))].into();
    let (cancellation, source) = workflow_core::Cancellation::detached();
    parts.services.cancellation = cancellation.into();
    let context = NodeContext::new(Parts { input: Held::Made(Arc::new(json!({"x": 1}))), results, ..parts });
    assert_eq!((context.node(), context.run().as_str()), ("load", "run-1"));
    assert_eq!((context.iteration(), context.attempt(), context.item()), (1, 1, None));
    assert_eq!((context.idempotency_key(), context.input()), ("run-1/load/1", &json!({"x": 1})));
    assert_eq!(context.result("first"), Some(&json!({"a": 1})));
    assert_eq!(context.result("second"), None);
    assert_eq!((context.calls("first"), context.calls("second")), (vec![call], Vec::new()));
    assert!(context.engine().is_err());
    assert!(!context.cancellation().is_cancelled());
    drop(source);
    assert!(context.clone().cancellation().is_cancelled());
}
