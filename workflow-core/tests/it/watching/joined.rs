//! Observers that join a running engine, and leave it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use workflow_core::observe::{Observation, Observed, Observer, ObserverGuard};
use workflow_core::prelude::*;
use workflow_core::{DisplayItem, RunHandle, RunOptions, RunStatus};

use crate::fixtures::{Begin, Close, Done};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Heard(u32);

/// Shows each note, and ends with a close.
struct Ear;

#[workflow]
impl Ear {
    #[step]
    async fn hear(&self, _begin: &Begin, note: &Note, display: &Display) {
        display.show(Heard(note.0));
    }

    #[step]
    async fn close(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

/// Notes displayed numbers and ends, at once or from a thread of its own.
#[derive(Clone, Default)]
struct Notes {
    lines: Arc<Mutex<Vec<String>>>,
    at_once: bool,
    /// Leaves when it has seen something.
    guard: Arc<Mutex<Option<ObserverGuard>>>,
}

impl Notes {
    fn at_once() -> Self {
        Self { at_once: true, ..Self::default() }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl Observer for Notes {
    fn observe(&self, observation: &Observation) {
        let line = match &observation.what {
            Observed::Displayed(item) => item.event::<Heard>().map(|heard| heard.0.to_string()),
            Observed::RunEnded { status } => Some(status.to_string()),
            _ => None,
        };
        if let Some(line) = line {
            self.lines.lock().unwrap().push(line);
            drop(self.guard.lock().unwrap().take());
        }
    }

    fn is_synchronous(&self) -> bool {
        self.at_once
    }
}

async fn hears(run: &RunHandle<Ear>, number: u32) {
    run.send(Note(number)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
}

#[tokio::test]
async fn an_observer_sees_what_happens_between_its_join_and_the_drop_of_its_guard() {
    for notes in [Notes::default(), Notes::at_once()] {
        let engine = Engine::builder().workflow(Ear).build().unwrap();
        let run = engine.start_with::<Ear>(Begin(0), RunOptions::new().id("a")).await.unwrap();
        hears(&run, 1).await;
        let first = engine.observe(notes.clone());
        let second = engine.observe(notes.clone());
        hears(&run, 2).await;
        drop(first);
        hears(&run, 3).await;
        drop(second);
        hears(&run, 4).await;
        run.send(Close).await.unwrap();
        run.outcome().await.unwrap();
        if !notes.at_once {
            // The thread ends once it has seen everything; only then the observer has no other owner.
            while Arc::strong_count(&notes.lines) > 1 {
                tokio::task::yield_now().await;
            }
        }
        let mut lines = notes.lines();
        lines.sort_unstable();
        assert_eq!(lines, ["2", "2", "3"]);
        let shown: Vec<_> = run.display().collect().await;
        assert!(matches!(shown.last(), Some(DisplayItem::Ended { .. })) && shown.len() == 5);
    }
}

#[tokio::test]
async fn an_observer_that_leaves_while_it_observes_blocks_nothing() {
    let engine = Engine::builder().workflow(Ear).build().unwrap();
    let (leaves, stays) = (Notes::at_once(), Notes::at_once());
    let guard = engine.observe(leaves.clone());
    *leaves.guard.lock().unwrap() = Some(guard);
    let _guard = engine.observe(stays.clone());
    let run = engine.start::<Ear>(Begin(0)).await.unwrap();
    hears(&run, 1).await;
    hears(&run, 2).await;
    assert_eq!((leaves.lines(), stays.lines()), (vec!["1".to_owned()], vec!["1".to_owned(), "2".to_owned()]));
}

#[tokio::test]
async fn an_engine_that_ends_waits_for_those_that_joined_and_their_guards_outlive_it() {
    let engine = Engine::builder().workflow(Ear).build().unwrap();
    let notes = Notes::default();
    let guard = engine.observe(notes.clone());
    let run = engine.start::<Ear>(Begin(0)).await.unwrap();
    hears(&run, 1).await;
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    assert_eq!(notes.lines(), ["1", "cancelled"]);
    drop((run, engine));
    drop(guard);
}
