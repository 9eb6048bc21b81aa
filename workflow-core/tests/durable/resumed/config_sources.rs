//! What sources of configuration gave a run, when it is resumed (S68).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use workflow_core::errors::ConfigError;
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, Position, Record, RunQuery, Write};
use workflow_core::{ConfigLayers, ConfigRequest, ConfigSource, ResumeError, RunOptions, RunStatus};

use crate::fixtures::{Begin, Note};

#[derive(Debug, Serialize, Deserialize)]
struct Login {
    name: String,
    key: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Known(String);

struct Logins;

#[workflow]
impl Logins {
    #[step]
    async fn log_in(&self, _begin: &Begin, _note: &Note, login: &Config<Login>) -> Known {
        Known(format!("{} {}", login.name, login.key))
    }
}

/// Gives another name and key each time.
#[derive(Default)]
struct Vault {
    asked: AtomicUsize,
    is_away: AtomicBool,
    gives_nothing: bool,
}

impl ConfigSource for Vault {
    fn layer<'a>(&'a self, _: &'a ConfigRequest) -> BoxFuture<'a, Result<Option<Value>, ConfigError>> {
        Box::pin(async move {
            if self.is_away.load(Ordering::SeqCst) {
                return Err(ConfigError::unavailable("no route to the vault"));
            }
            if self.gives_nothing {
                return Ok(None);
            }
            let asked = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
            Ok(Some(json!({ "name": format!("name {asked}"), "key": format!("key {asked}") })))
        })
    }
}

fn engine(vault: &Arc<Vault>, store: &Arc<MemoryStore>, secret: bool) -> Engine {
    let layers = ConfigLayers::<Login>::new().source(Arc::clone(vault));
    let layers = if secret { layers.secret("key") } else { layers };
    let builder = Engine::builder().workflow(Logins).config::<Login>(layers);
    builder.store(Arc::clone(store)).build().unwrap()
}

async fn journal(store: &MemoryStore) -> String {
    serde_json::to_string(&store.read(&"a".into(), Position(0), usize::MAX).await.unwrap()).unwrap()
}

/// A run that waits for its note, and that no engine drives any more.
async fn detached(vault: &Arc<Vault>, store: &Arc<MemoryStore>, secret: bool) {
    let engine = engine(vault, store, secret);
    let run = engine.start_with::<Logins>(Begin(0), RunOptions::new().id("a")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    engine.shut_down(Duration::ZERO).await;
}

// S68
#[tokio::test]
async fn a_resumed_run_has_the_recorded_layer_and_the_secrets_of_now() {
    let (vault, store) = (Arc::<Vault>::default(), Arc::<MemoryStore>::default());
    detached(&vault, &store, true).await;
    let written = journal(&store).await;
    assert!(written.contains("name 1") && !written.contains("key 1"), "{written}");

    let engine = engine(&vault, &store, true);
    let run = engine.attach::<Logins>("a").await.unwrap();
    run.send(Note(0)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Known("name 1 key 2".into()));
    assert_eq!(vault.asked.load(Ordering::SeqCst), 2);
    // An ended run asks nobody.
    engine.attach::<Logins>("a").await.unwrap().outcome().await.unwrap();
    assert_eq!(vault.asked.load(Ordering::SeqCst), 2);
}

// S68
#[tokio::test]
async fn a_run_without_secrets_is_resumed_without_its_source() {
    let (vault, store) = (Arc::<Vault>::default(), Arc::<MemoryStore>::default());
    detached(&vault, &store, false).await;
    vault.is_away.store(true, Ordering::SeqCst);
    let run = engine(&vault, &store, false).attach::<Logins>("a").await.unwrap();
    run.send(Note(0)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Known("name 1 key 1".into()));
}

// S68
#[tokio::test]
async fn an_attach_fails_with_its_source_and_changes_nothing() {
    let (vault, store) = (Arc::<Vault>::default(), Arc::<MemoryStore>::default());
    detached(&vault, &store, true).await;
    let before = journal(&store).await;
    vault.is_away.store(true, Ordering::SeqCst);
    let engine = engine(&vault, &store, true);
    let error = engine.attach::<Logins>("a").await.unwrap_err();
    assert!(matches!(error, ResumeError::Config(ConfigError::Unavailable { .. })), "{error:?}");
    assert_eq!(journal(&store).await, before);
    vault.is_away.store(false, Ordering::SeqCst);
    let run = engine.attach::<Logins>("a").await.unwrap();
    run.send(Note(0)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Known("name 1 key 2".into()));
}

// S68, S39: an unloaded run without handles asks again, and a run with handles keeps what it has.
#[tokio::test(start_paused = true)]
async fn an_unloaded_run_keeps_its_secrets_while_it_has_handles() {
    let (vault, store) = (Arc::<Vault>::default(), Arc::<MemoryStore>::default());
    let layers = ConfigLayers::<Login>::new().source(Arc::clone(&vault)).secret("key");
    let builder =
        Engine::builder().workflow(Logins).config::<Login>(layers).unload_waiting_after(Duration::ZERO);
    let engine = builder.store(Arc::clone(&store)).build().unwrap();
    let run = engine.start_with::<Logins>(Begin(0), RunOptions::new().id("a")).await.unwrap();
    run.settled().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    run.send(Note(0)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Known("name 1 key 1".into()));

    let run = engine.start_with::<Logins>(Begin(0), RunOptions::new().id("b")).await.unwrap();
    run.settled().await;
    drop(run);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let run = engine.attach::<Logins>("b").await.unwrap();
    run.send(Note(0)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Known("name 2 key 3".into()));
}

struct Parent;

#[workflow]
impl Parent {
    /// Waits for a note behind its child, which has ended by then.
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children, info: &RunInfo) -> Result<Known, RunError> {
        let ended = children.run_with::<Quick>(begin.clone(), RunOptions::new().id("child")).await?;
        if info.may_have_begun() { Ok(ended) } else { std::future::pending().await }
    }
}

/// Ends at once, with its key.
struct Quick;

#[workflow]
impl Quick {
    #[step]
    async fn log_in(&self, _begin: &Begin, login: &Config<Login>) -> Known {
        Known(format!("{} {}", login.name, login.key))
    }
}

// S68, S39: an ended child is found again without its source.
#[tokio::test]
async fn an_ended_child_asks_nobody() {
    let (vault, store) = (Arc::<Vault>::default(), Arc::<MemoryStore>::default());
    let engine = || {
        let layers = ConfigLayers::<Login>::new().source(Arc::clone(&vault)).secret("key");
        let builder = Engine::builder().workflow(Parent).workflow(Quick).config::<Login>(layers);
        builder.store(Arc::clone(&store)).build().unwrap()
    };
    let first = engine();
    first.start_with::<Parent>(Begin(0), RunOptions::new().id("a")).await.unwrap();
    let child = "a/delegate-x1.child";
    while first.attach::<Quick>(child).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        first.attach::<Quick>(child).await.unwrap().outcome().await.unwrap(),
        Known("name 1 key 1".into())
    );
    first.shut_down(Duration::ZERO).await;

    vault.is_away.store(true, Ordering::SeqCst);
    let run = engine().attach::<Parent>("a").await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Known("name 1 key 1".into()));
}

// S68, S30: a run that is cancelled needs no configuration, also if its engine ends.
#[tokio::test(start_paused = true)]
async fn a_cancel_asks_nobody() {
    let (vault, store) = (Arc::<Vault>::default(), Arc::<MemoryStore>::default());
    let layers = ConfigLayers::<Login>::new().source(Arc::clone(&vault)).secret("key");
    let builder = Engine::builder().workflow(Logins).config::<Login>(layers);
    let builder = builder.unload_waiting_after(Duration::ZERO).store(Arc::clone(&store));
    let engine = builder.build().unwrap();
    engine.start_with::<Logins>(Begin(0), RunOptions::new().id("a")).await.unwrap().settled().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    vault.is_away.store(true, Ordering::SeqCst);
    engine.cancel_all("enough", Duration::from_secs(5)).await;
    let ended = journal(&store).await;
    assert!(ended.contains("run_ended") && ended.contains("enough"), "{ended}");
}

// S68: a secret that the source gave elsewhere is in the journal, and in no error of a program whose type has changed.
#[tokio::test]
async fn a_resume_quotes_no_layer_of_a_source_with_secrets() {
    let store = Arc::<MemoryStore>::default();
    let lives = |vault: Arc<Vault>| {
        let layers = ConfigLayers::<Login>::new().source(vault).secret("login.key");
        let builder = Engine::builder().workflow(Logins).config::<Login>(layers);
        builder.store(Arc::clone(&store)).build().unwrap()
    };
    let first = lives(Arc::default());
    first.start_with::<Logins>(Begin(0), RunOptions::new().id("a")).await.unwrap().settled().await;
    first.shut_down(Duration::ZERO).await;
    let records = store.read(&"a".into(), Position(0), usize::MAX).await.unwrap();
    let written = serde_json::to_string(&records).unwrap();
    assert!(written.contains("\"key 1\""), "{written}");
    let changed = written.replace("\"key\":\"key 1\"", "\"key\":4711");
    let records: Vec<Record> = serde_json::from_str(&changed).unwrap();
    let run = store.runs(&RunQuery::new()).await.unwrap().remove(0).run;
    store.remove(&"a".into()).await.unwrap();
    store.append(&"a".into(), Position(0), Write { records, run }).await.unwrap();

    let gives_nothing = Arc::new(Vault { gives_nothing: true, ..Vault::default() });
    let error = lives(gives_nothing).attach::<Logins>("a").await.unwrap_err();
    let texts = format!("{error} {error:?}");
    assert!(!texts.contains("4711") && texts.contains("`key` is not valid in the config"), "{texts}");
}
