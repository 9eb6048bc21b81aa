//! Engines on a store: what they write is sound, and can be read when they are gone.

use workflow_core::prelude::*;
use workflow_core::{EventStore, Position, RunOptions, RunQuery, RunStatus};
use workflow_redb::{RedbStore, StoreFile};

use crate::fixtures::{Place, text};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin {
    fails: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Half(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u32);

struct Work;

#[workflow]
impl Work {
    #[step]
    async fn split(&self, begin: &Begin, rounds: ThreadContext) -> Result<Half, std::io::Error> {
        let round = rounds.increment("rounds", 1).await.map_err(std::io::Error::other)?;
        if begin.fails {
            return Err(std::io::Error::other("it fails, on purpose"));
        }
        Ok(Half(u32::try_from(round).unwrap_or_default()))
    }

    #[step]
    async fn join(&self, half: &Half) -> Done {
        Done(half.0 * 2)
    }
}

fn engine(store: &RedbStore) -> Engine {
    Engine::builder().workflow(Work).store(store.clone()).contexts(store.clone()).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_engines_write_is_sound_and_can_be_read_when_they_are_gone() {
    let place = Place::new();
    let store = place.open();
    let engine = engine(&store);
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..40 {
        let engine = engine.clone();
        runs.spawn(async move {
            let options = RunOptions::new().id(format!("run-{number:02}")).thread("user-4");
            let begin = Begin { fails: number % 4 == 0 };
            let handle = engine.start_with::<Work>(begin, options).await.unwrap();
            drop(handle.outcome().await);
        });
    }
    runs.join_all().await;
    assert!(store.check().await.unwrap().is_sound(), "{:?}", store.check().await);
    let history = engine.history(&"run-01".into()).await.unwrap();
    drop((engine, store));

    let mut file = StoreFile::open(&place.file).unwrap();
    assert_eq!(text(&file.read(&"run-01".into(), Position(0), 1_000).unwrap()), text(&history));
    let stored = file.runs(&RunQuery::new()).unwrap();
    let failed = stored.iter().filter(|stored| stored.run.status == RunStatus::Failed).count();
    let completed = stored.iter().filter(|stored| stored.run.status == RunStatus::Completed).count();
    assert_eq!((stored.len(), failed, completed), (40, 10, 30));
    assert!(file.runs(&RunQuery::new().open()).unwrap().is_empty());
    assert_eq!(file.check().unwrap().problems, []);
}

#[tokio::test]
async fn what_runs_of_a_thread_share_outlives_the_store() {
    let place = Place::new();
    for round in 1..=3 {
        let store = place.open();
        let options = RunOptions::new().thread("user-4");
        let handle = engine(&store).start_with::<Work>(Begin { fails: false }, options).await.unwrap();
        let Done(doubled) = handle.outcome().await.unwrap();
        assert_eq!(doubled, round * 2);
    }
    assert_eq!(place.open().runs(&RunQuery::new()).await.unwrap().len(), 3);
}
