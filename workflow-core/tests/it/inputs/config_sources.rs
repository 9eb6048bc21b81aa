//! Sources of configuration, which are asked when a run starts (S68).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use workflow_core::errors::ConfigError;
use workflow_core::prelude::*;
use workflow_core::{ConfigLayers, ConfigRequest, ConfigSource, RunOptions, StartError};

use crate::fixtures::{Begin, everyone_else};

#[derive(Debug, Serialize, Deserialize)]
struct Search {
    top_k: u32,
    path: String,
    key: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Found(String);

struct Searching;

#[workflow]
impl Searching {
    #[step]
    async fn search(&self, _begin: &Begin, config: &Config<Search>, info: &RunInfo) -> Found {
        Found(format!("{} {} {} {}", info.run(), config.top_k, config.path, config.key))
    }
}

/// Answers by the metadata `mood` of a run, and counts.
#[derive(Default)]
struct Moody(AtomicUsize);

impl ConfigSource for Moody {
    fn layer<'a>(&'a self, request: &'a ConfigRequest) -> BoxFuture<'a, Result<Option<Value>, ConfigError>> {
        let asked = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(request.config().ends_with("Search"));
        Box::pin(async move {
            match request.metadata().get("mood").map(String::as_str) {
                None => Ok(Some(json!({ "path": request.workflow(), "key": format!("key {asked}") }))),
                Some("nothing") => Ok(None),
                Some("away") => Err(ConfigError::unavailable("no route to the vault")),
                Some("wrong") => Ok(Some(json!({ "top_k": "many" }))),
                Some("panics") => panic!("it is lost"),
                Some(_) => std::future::pending().await,
            }
        })
    }
}

fn engine(source: &Arc<Moody>) -> Engine {
    let layers = ConfigLayers::defaults(json!({ "top_k": 3, "path": "memory" }));
    let layers = layers.source(Arc::clone(source)).secret("key");
    let builder = Engine::builder().workflow(Searching).workflow(Parent);
    builder.config::<Search>(layers).build().unwrap()
}

fn in_mood(mood: &str) -> RunOptions {
    RunOptions::new().id("a").metadata("mood", mood)
}

// S68
#[tokio::test]
async fn a_source_is_asked_once_per_run_and_stands_between_the_engines_layers_and_the_runs() {
    let source = Arc::<Moody>::default();
    let engine = engine(&source);
    let own = RunOptions::new().id("a").config::<Search>(json!({ "top_k": 9 }));
    let run = engine.start_with::<Searching>(Begin(0), own).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Found("a 9 Searching key 1".into()));
    let own = RunOptions::new().id("b").config::<Search>(json!({ "key": "mine", "path": "p" }));
    let run = engine.start_with::<Searching>(Begin(0), own).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Found("b 3 p mine".into()));
    assert_eq!(source.0.load(Ordering::SeqCst), 2);
}

// S68
#[tokio::test]
async fn a_start_fails_with_its_source_and_leaves_nothing_behind() {
    let source = Arc::<Moody>::default();
    let engine = engine(&source);
    for (mood, text) in [
        ("away", "a source of the configuration is unavailable: no route to the vault"),
        ("panics", "a source of the configuration is unavailable: it panicked: it is lost"),
        ("wrong", "`top_k` is not valid in the config"),
        ("nothing", "missing field `key`"),
    ] {
        let error = engine.start_with::<Searching>(Begin(0), in_mood(mood)).await.unwrap_err();
        assert!(matches!(error, StartError::Config(_)), "{error:?}");
        assert!(error.to_string().contains(text), "{error}");
        let blames_the_run = error.to_string().contains("given by the run");
        assert!(!blames_the_run, "the run gave nothing: {error}");
        assert!(engine.running().is_empty());
    }
    // The id is free.
    engine
        .start_with::<Searching>(Begin(0), RunOptions::new().id("a"))
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
}

// S68
#[tokio::test]
async fn a_start_that_waits_for_a_source_can_be_dropped_and_ends_with_the_engine() {
    let source = Arc::<Moody>::default();
    let engine = engine(&source);
    assert!(engine.start_with::<Searching>(Begin(0), in_mood("hangs")).now_or_never().is_none());
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start_with::<Searching>(Begin(0), in_mood("hangs")).await.map(drop) }
    });
    everyone_else().await;
    engine.shut_down(std::time::Duration::ZERO).await;
    assert!(matches!(waiting.await.unwrap(), Err(StartError::ShutDown)));
}

struct Parent;

#[workflow]
impl Parent {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Found, RunError> {
        let mood = if begin.0 == 0 { RunOptions::new() } else { RunOptions::new().metadata("mood", "away") };
        children.run_with::<Searching>(begin.clone(), mood.id("child")).await
    }
}

// S68
#[tokio::test]
async fn the_sources_of_a_child_are_asked_too() {
    let source = Arc::<Moody>::default();
    let engine = engine(&source);
    let run = engine.start_with::<Parent>(Begin(0), RunOptions::new().id("p")).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Found("p/delegate-x1.child 3 Searching key 1".into()));
    let error = engine.start::<Parent>(Begin(1)).await.unwrap().outcome().await.unwrap_err().to_string();
    assert!(error.contains("no route to the vault"), "{error}");
}

/// A secret number.
#[derive(Debug, Serialize, Deserialize)]
struct Login {
    pin: u32,
}

struct Logins;

#[workflow]
impl Logins {
    #[step]
    async fn log_in(&self, _begin: &Begin, login: &Config<Login>) -> Found {
        Found(login.pin.to_string())
    }
}

/// Answers with a text where a number is needed.
struct Leaky;

impl ConfigSource for Leaky {
    fn layer<'a>(&'a self, _: &'a ConfigRequest) -> BoxFuture<'a, Result<Option<Value>, ConfigError>> {
        Box::pin(async { Ok(Some(json!({ "pin": "sk-live-4711" }))) })
    }
}

/// The texts of the error with which a start fails.
async fn refusal(layers: ConfigLayers<Login>) -> String {
    let engine = Engine::builder().workflow(Logins).config::<Login>(layers).build().unwrap();
    let error = engine.start::<Logins>(Begin(0)).await.unwrap_err();
    format!("{error} {error:?}")
}

// S68: errors enter journals and logs.
#[tokio::test]
async fn an_error_never_shows_a_secret() {
    let texts = refusal(ConfigLayers::new().source(Leaky).secret("pin")).await;
    assert!(!texts.contains("4711") && texts.contains("`pin` is not valid in the config"), "{texts}");
}

// S68
#[tokio::test]
async fn an_error_shows_no_secret_that_is_elsewhere_than_its_path() {
    let texts = refusal(ConfigLayers::new().source(Leaky).secret("login.pin")).await;
    assert!(!texts.contains("4711") && texts.contains("`pin` is not valid in the config"), "{texts}");
}

// S68
#[tokio::test]
async fn an_error_of_a_source_without_secrets_shows_the_value() {
    let texts = refusal(ConfigLayers::new().source(Leaky)).await;
    assert!(texts.contains("4711") && texts.contains("`pin` is not valid in the config"), "{texts}");
}
