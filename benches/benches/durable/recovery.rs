//! Resuming runs from a file, compared with decoding their journals, and the growth of its time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use workflow_benches::in_turns;
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, Position, Record, RunSummary, Write};
use workflow_core::{RunOptions, RunStatus, Workflow};
use workflow_redb::RedbStore;

use crate::scale::Scale;
use crate::{folder, runtime};
use workflow_benches::figure::{Figure, Target, as_float, per_second};

/// The run in each file.
const ID: &str = "order-00000001";

/// How many branches a fan-out opens.
const BRANCHES: u64 = 100;

/// The number of records per append where appends are not measured.
const AT_ONCE: usize = 1_000;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin {
    events: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tick(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tock(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Ready;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Go;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done;

#[derive(Debug, EventSet)]
enum Next {
    Tick(Tick),
    Ready(Ready),
}

/// Two steps alternate until there are enough events; then the run waits.
#[derive(Clone, Copy)]
struct Chain;

#[workflow]
impl Chain {
    #[step]
    async fn begin(&self, _: &Begin) -> Tick {
        Tick(0)
    }

    #[step]
    async fn tick(&self, tick: &Tick) -> Tock {
        Tock(tick.0)
    }

    #[step]
    async fn tock(&self, tock: &Tock, begin: &Begin) -> Next {
        let events = 2 * tock.0 + 4;
        if events >= begin.events { Next::Ready(Ready) } else { Next::Tick(Tick(tock.0 + 1)) }
    }

    #[step]
    async fn end(&self, _: &Ready, _: &Go) -> Done {
        Done
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Round(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Item {
    round: u64,
    number: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Square {
    round: u64,
    square: u64,
}

#[derive(Debug, EventSet)]
enum NextRound {
    Round(Round),
    Ready(Ready),
}

/// Consecutive fan-outs until there are enough events; then the run waits.
#[derive(Clone, Copy)]
struct FanOuts;

#[workflow]
impl FanOuts {
    #[step]
    async fn begin(&self, _: &Begin) -> Round {
        Round(0)
    }

    #[step]
    async fn split(&self, round: &Round) -> FanOut<Item> {
        (0..BRANCHES).map(|number| Item { round: round.0, number }).collect()
    }

    #[step]
    async fn square(&self, item: &Item) -> Square {
        Square { round: item.round, square: item.number * item.number }
    }

    #[step]
    async fn gather(&self, squares: &Gather<Square>, begin: &Begin) -> NextRound {
        let rounds = squares.ok().map(|square| square.round + 1).max().unwrap_or(0);
        let events = rounds * (2 * BRANCHES + 2);
        if events >= begin.events { NextRound::Ready(Ready) } else { NextRound::Round(Round(rounds)) }
    }

    #[step]
    async fn end(&self, _: &Ready, _: &Go) -> Done {
        Done
    }
}

/// A waiting run in a file, and its journal.
struct Stored<W> {
    workflow: W,
    store: RedbStore,
    records: Vec<Vec<u8>>,
    events: u64,
    folder: TempDir,
}

impl<W: Workflow + Copy> Stored<W> {
    /// Runs until the run waits in memory, and writes its journal to a file.
    fn new(workflow: W, events: u64) -> Self {
        let folder = folder();
        let store = RedbStore::open(folder.path().join("runs.redb")).expect("a store can be made");
        let runtime = runtime();
        let records = runtime.block_on(journal(workflow, events));
        runtime.block_on(write(&store, &records));
        let is_event =
            |record: &&Record| matches!(record, Record::EventLogged { .. } | Record::FanOutGathered { .. });
        let events = records.iter().filter(is_event).count() as u64;
        let json = |record| serde_json::to_vec(record).expect("records are JSON");
        Self { workflow, store, records: records.iter().map(json).collect(), events, folder }
    }

    /// The time until a new engine has restored the run.
    fn attach(&self) -> Duration {
        let runtime = runtime();
        let took = runtime.block_on(async {
            let engine = engine(self.workflow, self.store.clone());
            let began = Instant::now();
            let run = engine.attach::<W>(ID).await.expect("the run is there");
            let took = began.elapsed();
            assert_eq!(run.settled().await, RunStatus::Waiting);
            let report = run.report_so_far().await.expect("the run continues");
            assert_eq!(report.log.len() as u64, self.events);
            took
        });
        runtime.shutdown_background();
        took
    }

    /// The time to decode its records, on a new thread like the one that reads them for an engine.
    fn decode(&self) -> Duration {
        let decode = || {
            let began = Instant::now();
            let records = self.records.iter().map(|record| serde_json::from_slice(record));
            let records = records.collect::<Result<Vec<Record>, _>>().expect("records are read back");
            let took = began.elapsed();
            assert_eq!(records.len(), self.records.len());
            took
        };
        std::thread::scope(|scope| scope.spawn(decode).join()).expect("it does not panic")
    }

    fn per_event(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e9 / as_float(self.events)
    }

    /// The time compared with decoding.
    fn figure(&self, name: &str, attach: Duration, decode: Duration) -> Figure {
        Figure::new(name, "ns/event", self.per_event(attach), self.per_event(decode))
            .beside("decoding the same records with serde_json")
            .target(Target::AtMost(2.0))
    }

    /// The size of its compacted file.
    fn size(self, name: &str) -> Figure {
        let runtime = runtime();
        while runtime.block_on(self.store.compact()).expect("it can be compacted") {}
        let path = self.store.path().to_owned();
        drop(self.store);
        let bytes = std::fs::metadata(path).expect("the file is there").len();
        self.folder.close().expect("the folder can be removed");
        let payload = self.records.iter().map(|record| record.len() as u64).sum();
        let per_event = |bytes| as_float(bytes) / as_float(self.events);
        Figure::new(name, "bytes/event", per_event(bytes), per_event(payload))
            .beside("the JSON of the same records")
    }
}

fn engine<W: Workflow>(workflow: W, store: impl EventStore) -> Engine {
    let engine = Engine::builder().workflow(workflow).store(store).max_executions_per_run(u64::MAX);
    engine.unload_waiting_after(Duration::MAX).build().expect("it is sound")
}

/// The journal of a run that waits.
async fn journal<W: Workflow>(workflow: W, events: u64) -> Vec<Record> {
    let engine = engine(workflow, MemoryStore::default());
    let started = engine.start_with::<W>(Begin { events }, RunOptions::new().id(ID));
    let run = started.await.expect("it starts");
    assert_eq!(run.settled().await, RunStatus::Waiting);
    engine.history(&ID.into()).await.expect("it has one")
}

async fn write(store: &RedbStore, records: &[Record]) {
    let Some(Record::RunStarted { workflow, at, .. }) = records.first() else { panic!("a run begins") };
    let run = RunSummary::running(Arc::clone(workflow), *at);
    let mut position = Position(0);
    for records in records.chunks(AT_ONCE) {
        let batch = Write { records: records.to_vec(), run: run.clone() };
        store.append(&ID.into(), position, batch).await.expect("it is appended");
        position = position.after(records.len());
    }
}

pub(crate) fn measure(scale: &Scale) -> Vec<Figure> {
    let [few, many] = scale.journals;
    let (short, long) = (Stored::new(Chain, few), Stored::new(Chain, many));
    let fan_outs = Stored::new(FanOuts, many);
    let times = in_turns(
        scale.turns,
        vec![
            Box::new(|| short.attach()),
            Box::new(|| short.decode()),
            Box::new(|| long.attach()),
            Box::new(|| long.decode()),
            Box::new(|| fan_outs.attach()),
            Box::new(|| fan_outs.decode()),
        ],
    );
    let growth = [&short, &long].map(|stored| stored.events).into_iter().zip([times[0], times[2]]);
    let growth: Vec<f64> = growth.map(|(events, time)| per_second(events, time)).collect();
    vec![
        short.figure(&format!("recovery/{few}"), times[0], times[1]),
        long.figure(&format!("recovery/{many}"), times[2], times[3]),
        fan_outs.figure(&format!("branches/{many}"), times[4], times[5]),
        Figure::new(format!("recovery/{many}"), "events/s", growth[1], growth[0])
            .beside("the shorter journal")
            .target(Target::AtLeast(0.8)),
        Figure::new("recovery rate", "events/s", growth[1], 500_000.0)
            .beside("what is wanted of a core")
            .target(Target::AtLeast(1.0)),
        long.size("recovery size"),
    ]
}
