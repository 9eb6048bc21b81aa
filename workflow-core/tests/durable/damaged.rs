//! Journals with numbers and names that no engine has written: whoever reads one comes to a typed error, or goes on, and
//! does not panic (S39).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::{
    Batch, EventStore, Incompatibility, MemoryStore, Position, Record, RecordedRun, RecordedRunError,
    ResumeError, RunOptions, RunStatus, RunSummary,
};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note, Part};
use crate::shapes::{Branches, Waits};

/// The last second that the system's clock can show.
const LAST: u64 = i64::MAX as u64;

/// The journal of a run that waits, as JSON.
async fn journal<W: Workflow>(workflow: W, at: Duration) -> Vec<Value> {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(workflow).store(Arc::clone(&store)).clock(VirtualClock::new());
    let engine = engine.build().unwrap();
    let run = engine.start_with::<W>(Begin(3), RunOptions::new().id("r")).await.unwrap();
    tokio::time::sleep(at).await;
    drop(run);
    let records = store.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
    records.iter().map(|record| serde_json::to_value(record).unwrap()).collect()
}

/// What is of this kind.
fn of<'a>(journal: &'a mut [Value], kind: &'a str) -> impl Iterator<Item = &'a mut Value> {
    journal.iter_mut().filter_map(move |record| record.get_mut(kind))
}

fn set_times(journal: &mut [Value], seconds: u64) {
    for record in journal {
        let (_, body) = record.as_object_mut().unwrap().iter_mut().next().unwrap();
        body["at"] = json!({ "secs_since_epoch": seconds, "nanos_since_epoch": 999_999_999 });
    }
}

fn decoded(journal: &[Value]) -> Vec<Record> {
    journal.iter().map(|record| serde_json::from_str(&record.to_string()).unwrap()).collect()
}

async fn store_of(journal: &[Value]) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::default());
    let records = decoded(journal);
    let run = RunSummary::running("any", std::time::SystemTime::UNIX_EPOCH);
    store.append(&"r".into(), Position(0), Batch { records, run }).await.unwrap();
    store
}

/// Sets timers, and has to be told when.
struct Sets;

#[workflow]
impl Sets {
    #[step]
    async fn set(&self, _begin: &Begin, note: &Note) -> (Item, Timer<Part>) {
        (Item(note.0), Timer::after(Duration::from_secs(10), Part(note.0)))
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_began_at_the_end_of_time_goes_on() {
    let mut journal = journal(Sets, Duration::from_secs(1)).await;
    set_times(&mut journal, LAST);
    let by_virtual_clock = Engine::builder().clock(VirtualClock::new());
    for (engine, is_system) in [(by_virtual_clock, false), (Engine::builder(), true)] {
        let engine = engine.workflow(Sets).store(store_of(&journal).await).build().unwrap();
        let run = engine.attach::<Sets>("r").await.unwrap();
        run.send(Note(9)).await.unwrap();
        if is_system {
            // The timer is due soon by the system's clock, which a test does not wait for.
            assert_eq!(run.settled().await, RunStatus::Waiting);
            assert_eq!(run.timers().await.unwrap().len(), 1);
        } else {
            assert_eq!(run.outcome().await.unwrap(), Done(18));
        }
        assert_eq!(run.report_so_far().await.unwrap().executions("set"), 1);
    }
}

/// Where a journal contradicts itself, by whoever reads it alone and by an engine.
async fn contradicted<W: Workflow>(workflow: W, journal: &[Value]) -> Position {
    let alone = RecordedRun::of(&"r".into(), &decoded(journal)).unwrap_err();
    let engine = Engine::builder().workflow(workflow).store(store_of(journal).await).build().unwrap();
    let resumed = engine.attach::<W>("r").await.unwrap_err();
    let RecordedRunError::Contradiction { difference: Incompatibility::Journal { position: alone, .. }, .. } = alone
    else {
        panic!("{alone}")
    };
    let ResumeError::Incompatible { difference: Incompatibility::Journal { position, .. }, .. } = resumed else {
        panic!("{resumed}")
    };
    assert_eq!(alone, position);
    position
}

// S43
#[tokio::test(start_paused = true)]
async fn items_of_another_type_than_their_fan_out_are_a_contradiction() {
    let mut journal = journal(Branches, Duration::ZERO).await;
    let item = of(&mut journal, "event_logged").find(|logged| logged["event"]["type"] == "Item").unwrap();
    item["event"]["type"] = json!("Part");
    assert_eq!(contradicted(Branches, &journal).await, Position(2));
}

// S32, S43
#[tokio::test(start_paused = true)]
async fn what_enters_by_a_timer_and_is_of_another_type_is_a_contradiction() {
    let mut journal = journal(Waits, Duration::from_secs(15)).await;
    let logged = journal.len() - 2;
    let part = of(&mut journal, "event_logged").find(|logged| logged["event"]["type"] == "Part").unwrap();
    part["event"]["type"] = json!("Item");
    assert_eq!(contradicted(Waits, &journal).await, Position(logged as u64));
}
