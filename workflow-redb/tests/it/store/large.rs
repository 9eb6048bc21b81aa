//! Large writes: many large calls, and one that is larger than any other.

use std::time::SystemTime;

use futures::executor::block_on;
use futures::future::join_all;
use workflow_core::prelude::*;
use workflow_core::scheduler::Cause;
use workflow_core::store::{EventStore, Position, Record, RecordedEvent, RunSummary, Write};
use workflow_core::{AnyEvent, RecordedRun, RunOptions, RunStatus, ScopeId, Seq};
use workflow_redb::StoreFile;

use crate::fixtures::{Place, summary};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Text(String);

/// This many records of 1 MiB each.
fn large(records: u64) -> Write {
    let text = RecordedEvent::new(AnyEvent::new(Text("x".repeat(1 << 20))));
    let at = SystemTime::UNIX_EPOCH;
    let record = |seq| Record::EventLogged {
        seq: Seq(seq),
        scope: ScopeId::ROOT,
        cause: Cause::Outside,
        event: text.clone(),
        origin: None,
        at,
    };
    let run: RunSummary = summary();
    Write { records: (0..records).map(record).collect(), run }
}

#[test]
fn four_hundred_runs_append_a_mebibyte_each_at_the_same_time() {
    let place = Place::new();
    let store = place.open();
    let runs: Vec<String> = (0..400).map(|run| format!("run-{run:03}")).collect();
    let appends = join_all(runs.iter().map(|run| store.append(&run.as_str().into(), Position(0), large(1))));
    let refused = block_on(appends).into_iter().find_map(Result::err);
    assert!(refused.is_none(), "{refused:?}");
    drop(store);
    let file = StoreFile::open(&place.file).unwrap();
    for run in runs {
        assert_eq!(file.read(&run.into(), Position(0), 10).unwrap().len(), 1);
    }
}

#[test]
fn a_batch_of_three_hundred_mebibytes_is_one_call() {
    let place = Place::new();
    let store = place.open();
    block_on(store.append(&"a".into(), Position(0), large(300))).unwrap();
    let page = block_on(store.read(&"a".into(), Position(284), 100)).unwrap();
    assert_eq!(page.len(), 16, "a page ends behind 16 MiB");
    assert_eq!(block_on(store.runs(&workflow_core::store::RunQuery::new())).unwrap()[0].end, Position(300));
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin {
    pages: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Page(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Read {
    bytes: usize,
}

struct Reader;

#[workflow]
impl Reader {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Page> {
        (0..begin.pages).map(Page).collect()
    }

    #[step]
    async fn read(&self, _page: &Page) -> Text {
        Text("x".repeat(1 << 20))
    }

    #[step]
    async fn add(&self, texts: &Gather<Text>) -> Read {
        Read { bytes: texts.ok().map(|text| text.0.len()).sum() }
    }
}

#[tokio::test]
async fn four_hundred_branches_of_a_run_leave_a_mebibyte_each() {
    let place = Place::new();
    let store = place.open();
    let engine = Engine::builder().workflow(Reader).store(store.clone()).replay_check(false).build().unwrap();
    let run = engine.start_with::<Reader>(Begin { pages: 400 }, RunOptions::new().id("r")).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Read { bytes: 400 << 20 });
    let events = run.report().await.unwrap().log.len();
    engine.cancel_all("the engine is shutting down", std::time::Duration::from_mins(1)).await;
    drop((run, engine, store));
    let file = StoreFile::open(&place.file).unwrap();
    let mut records = Vec::new();
    loop {
        let page = file.read(&"r".into(), Position::default().after(records.len()), 100).unwrap();
        if page.is_empty() {
            break;
        }
        records.extend(page);
    }
    let recorded = RecordedRun::of(&"r".into(), &records).unwrap();
    assert_eq!((recorded.status(), recorded.report().log.len()), (RunStatus::Completed, events));
}
