//! Nested fan-outs over a file: completed runs can be read back (S38, S39, S51).

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use workflow_core::prelude::*;
use workflow_core::{RecordedRun, RunOptions, RunStatus};
use workflow_redb::RedbStore;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order {
    lines: u32,
    parts: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Line {
    number: u32,
    parts: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Weight(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Label(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Shipped(u32);

/// Steps of a few milliseconds, which end in another order than they begin.
struct Shop;

async fn works(seed: u32) {
    tokio::time::sleep(Duration::from_millis(u64::from(seed * 7 % 4))).await;
}

#[workflow]
impl Shop {
    #[step]
    async fn split(&self, order: &Order) -> FanOut<Line> {
        (1..=order.lines).map(|number| Line { number, parts: order.parts }).collect()
    }

    #[step]
    async fn cut(&self, line: &Line) -> FanOut<Part> {
        works(line.number).await;
        (1..=line.parts).map(|part| Part(line.number * 10 + part)).collect()
    }

    #[step]
    async fn weigh(&self, part: &Part) -> Weight {
        works(part.0).await;
        Weight(1)
    }

    #[step]
    async fn label(&self, line: &Line, weights: Gather<Weight>) -> Label {
        works(line.number).await;
        Label(weights.ok().map(|weight| weight.0).sum())
    }

    #[step]
    async fn ship(&self, _order: &Order, labels: Gather<Label>) -> Shipped {
        Shipped(labels.ok().map(|label| label.0).sum())
    }
}

/// The number of runs: `NESTED_RUNS=1000` makes more than a test needs each time.
fn runs() -> u32 {
    std::env::var("NESTED_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(100)
}

// S38, S39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completed_runs_with_nested_fan_outs_can_be_reported_attached_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let store = RedbStore::open(folder.path().join("runs.redb")).unwrap();
    let engine = Engine::builder().workflow(Shop).store(store.clone()).build().unwrap();
    let all = stream::iter(0..runs()).map(|number| {
        let engine = engine.clone();
        async move {
            let order = Order { lines: 2 + number % 4, parts: 1 + number % 3 };
            let expected = Shipped(order.lines * order.parts);
            let options = RunOptions::new().id(format!("order-{number}"));
            let run = engine.start_with::<Shop>(order, options).await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), expected);
            let live = run.report().await.unwrap().executions("weigh");
            (run.id().clone(), expected, live)
        }
    });
    let completed: Vec<_> = all.buffer_unordered(32).collect().await;
    drop(engine);
    let engine = Engine::builder().workflow(Shop).store(store).build().unwrap();
    assert!(engine.resume_open_runs().await.unwrap().refused.is_empty());
    for (id, expected, weighed) in completed {
        let records = engine.history(&id).await.unwrap();
        let recorded = RecordedRun::of(&id, &records).unwrap();
        assert_eq!(recorded.status(), RunStatus::Completed);
        assert_eq!(recorded.report().executions("weigh"), weighed);
        let attached = engine.attach::<Shop>(id).await.unwrap();
        assert_eq!(attached.outcome().await.unwrap(), expected);
        assert_eq!(attached.report().await.unwrap().executions("weigh"), weighed);
    }
}
