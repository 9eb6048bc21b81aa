//! Many short runs at the same time.

use tokio::task::JoinHandle;
use workflow_core::prelude::*;

use super::{By, Extent, Work, engine};
use crate::hand::{Emitted, Kind, Table, begin, floor};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Found(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Weighed(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u64);

/// Three steps, one after the other.
struct Three;

#[workflow]
impl Three {
    #[step]
    async fn find(&self, begin: &Begin) -> Found {
        find(begin).await
    }

    #[step]
    async fn weigh(&self, found: &Found) -> Weighed {
        weigh(found).await
    }

    #[step]
    async fn end(&self, weighed: &Weighed) -> Done {
        end(weighed).await
    }
}

#[expect(clippy::unused_async, reason = "steps are async")]
async fn find(begin: &Begin) -> Found {
    Found(begin.0 + 1)
}

#[expect(clippy::unused_async, reason = "steps are async")]
async fn weigh(found: &Found) -> Weighed {
    Weighed(found.0 + 1)
}

#[expect(clippy::unused_async, reason = "steps are async")]
async fn end(weighed: &Weighed) -> Done {
    Done(weighed.0 + 1)
}

impl Kind for Begin {
    const KIND: usize = 0;
}

impl Kind for Found {
    const KIND: usize = 1;
}

impl Kind for Weighed {
    const KIND: usize = 2;
}

const TABLE: Table = &[
    &[|_, event| {
        let event = event.clone();
        begin(async move { Emitted::one(find(event.of()).await) })
    }],
    &[|_, event| {
        let event = event.clone();
        begin(async move { Emitted::one(weigh(event.of()).await) })
    }],
    &[|_, event| {
        let event = event.clone();
        begin(async move { Emitted::Stop(end(event.of()).await.0) })
    }],
];

/// Starts all runs before it awaits the first.
async fn ours(engine: Engine, runs: u64) -> u64 {
    let mut started = Vec::new();
    for number in 0..runs {
        started.push(engine.start::<Three>(Begin(number)).await.expect("it starts"));
    }
    let mut sum = 0;
    for run in started {
        sum += run.outcome().await.map_or(0, |done| done.0);
    }
    sum
}

/// Each run is a task that calls the three functions.
async fn tasks(runs: u64) -> u64 {
    let run = |number| async move {
        let found = find(&Begin(number)).await;
        end(&weigh(&found).await).await.0
    };
    sum((0..runs).map(|number| tokio::spawn(run(number))).collect()).await
}

/// Each run is a task with such an engine.
async fn floors(runs: u64) -> u64 {
    sum((0..runs).map(|number| tokio::spawn(floor(TABLE, Begin(number)))).collect()).await
}

async fn sum(started: Vec<JoinHandle<u64>>) -> u64 {
    let mut sum = 0;
    for run in started {
        sum += run.await.unwrap_or(0);
    }
    sum
}

pub(super) fn work(size: u64) -> Work {
    let engine = engine(Three);
    Work::new("runs", "run", size)
        .by(By::Ours, move || ours(engine.clone(), size))
        .by(By::Spawn, move || tasks(size))
        .by(By::Floor, move || floors(size))
}

pub(super) fn works(extent: Extent) -> Vec<Work> {
    vec![work(if extent == Extent::Full { 10_000 } else { 1_000 })]
}
