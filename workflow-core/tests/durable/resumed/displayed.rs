//! Viewers of a run that come back after a restart (S63).

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{AnyRun, DisplayItem, DisplayPosition, DisplayStream, RunOptions, RunStatus};

use crate::fixtures::{Begin, Note};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Heard(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Quiet;

/// Shows each note, and ends with a zero.
struct Ear;

#[workflow]
impl Ear {
    #[step]
    async fn hear(&self, _begin: &Begin, note: &Note, display: &Display) -> Option<Quiet> {
        display.show(Heard(note.0));
        (note.0 == 0).then_some(Quiet)
    }
}

fn engine(store: &Arc<MemoryStore>) -> Engine {
    Engine::builder().workflow(Ear).store(Arc::clone(store)).build().unwrap()
}

async fn hears(run: &AnyRun, note: u32) {
    run.send(Note(note)).await.unwrap();
    run.settled().await;
}

/// The items so far, and the position of the last one.
fn read(mut viewer: DisplayStream) -> (Vec<String>, Option<DisplayPosition>) {
    let items = std::iter::from_fn(|| viewer.next().now_or_never().flatten());
    let items = items.map(|item| match item {
        DisplayItem::Missed { count } => format!("missed {count:?}"),
        DisplayItem::Ended { status } => status.to_string(),
        item => item.event::<Heard>().map(|heard| heard.0.to_string()).unwrap(),
    });
    (items.collect(), viewer.position())
}

// S63
#[tokio::test]
async fn a_restart_begins_an_epoch_and_a_viewer_from_before_hears_of_it() {
    let store = Arc::<MemoryStore>::default();
    let mut last = None;
    for life in 1..=3 {
        let engine = engine(&store);
        let run = match last {
            None => {
                engine.start_with::<Ear>(Begin(0), RunOptions::new().id("a")).await.unwrap().any().clone()
            }
            Some(_) => engine.attach_any("a").await.unwrap(),
        };
        assert_eq!(run.settled().await, RunStatus::Waiting);
        hears(&run, life).await;
        hears(&run, life * 10).await;
        let both = [life.to_string(), (life * 10).to_string()];
        let (items, position) = read(run.display());
        assert_eq!(items, both);
        if let Some(before) = last {
            let (items, again) = read(run.display_after(before));
            assert_eq!(items, [&["missed None".to_owned()][..], &both].concat());
            assert!(again == position && position > Some(before), "{before:?}, {position:?}");
        }
        let position = position.unwrap();
        assert_eq!((position.index, position.epoch == 0), (1, life == 1));
        assert_eq!(read(run.display_after(position)), (Vec::new(), None));
        let text = serde_json::to_string(&position).unwrap();
        assert_eq!(serde_json::from_str::<DisplayPosition>(&text).unwrap(), position);
        last = Some(position);
        engine.shut_down(Duration::ZERO).await;
    }

    // The run of a later engine that reads the end from the store has no items.
    let third = engine(&store).attach_any("a").await.unwrap();
    hears(&third, 0).await;
    assert_eq!(third.status(), RunStatus::Completed);
    let ended = engine(&store).attach_any("a").await.unwrap();
    let (items, position) = read(ended.display_after(last.unwrap()));
    assert_eq!(items, ["missed None", "completed"]);
    assert!(position > last, "{position:?}");
    assert_eq!(read(ended.display_after(position.unwrap())).0, ["completed"]);
}
