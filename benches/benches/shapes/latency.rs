//! How soon a new run begins, however many others are busy, in turns of these: they are counted, not timed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Builder;
use tokio::task::yield_now;
use workflow_benches::figure::{Figure, Target, as_float};
use workflow_core::prelude::*;

use crate::row::Row;

/// How many runs are busy.
const BUSY: [u64; 2] = [10, 1_000];

/// How many of the busy runs have begun, and how many turns they have had since, all together.
#[derive(Clone, Default)]
struct Turns(Arc<[AtomicU64; 2]>);

impl Turns {
    fn begin(&self) {
        self.0[0].fetch_add(1, Ordering::Relaxed);
    }

    fn begun(&self) -> u64 {
        self.0[0].load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.0[1].fetch_add(1, Ordering::Relaxed);
    }

    fn had(&self) -> u64 {
        self.0[1].load(Ordering::Relaxed)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Began(u64);

/// Has something to do in each turn, and never comes to its end.
struct Busy(Turns);

#[workflow]
impl Busy {
    #[step]
    async fn go_on(&self, _begin: &Begin) -> Began {
        self.0.begin();
        loop {
            self.0.count();
            yield_now().await;
        }
    }
}

/// Tells how many turns the others had had when it began.
struct New(Turns);

#[workflow]
impl New {
    #[step]
    async fn begin(&self, _begin: &Begin) -> Began {
        Began(self.0.had())
    }
}

/// How many turns each busy run has, on one thread, between the start of a new run and the beginning of its first step.
async fn turns(busy: u64) -> f64 {
    let turns = Turns::default();
    let engine = Engine::builder().workflow(Busy(turns.clone())).workflow(New(turns.clone()));
    let engine = engine.build().expect("it is sound");
    let mut others = Vec::new();
    for _ in 0..busy {
        others.push(engine.start::<Busy>(Begin).await.expect("it starts"));
    }
    while turns.begun() < busy {
        yield_now().await;
    }
    let before = turns.had();
    let run = engine.start::<New>(Begin).await.expect("it starts");
    let Began(then) = run.outcome().await.expect("it completes");
    as_float(then - before) / as_float(busy)
}

/// Counts them with few busy runs and with many.
pub(crate) fn measure() -> (Vec<Row>, Figure) {
    let with = |busy| {
        let runtime = Builder::new_current_thread().build().expect("a runtime starts");
        runtime.block_on(turns(busy))
    };
    let [few, many] = BUSY.map(with);
    let names = BUSY.map(|busy| format!("latency/{busy}"));
    let figure = Figure::new(&names[1], "turns", many, few).beside("with ten busy runs");
    let rows = names.into_iter().zip([few, many]).map(|(name, turns)| Row::new(name, "turns", turns));
    (rows.collect(), figure.target(Target::AtMost(1.0)))
}
