//! Appends: one run compared with redb itself, many runs compared with one.

use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use workflow_benches::in_turns;
use workflow_core::RunId;
use workflow_core::store::{EventStore, Position};
use workflow_redb::RedbStore;

use crate::scale::Scale;
use crate::{folder, runtime};
use workflow_benches::durable::bare::{Bare, Prepared};
use workflow_benches::durable::records::{RECORDS, batch};
use workflow_benches::figure::{Figure, Target, as_float, per_second};

/// How many runs append at the same time.
const RUNS: u64 = 256;

/// A store that this many runs append to at the same time.
struct Ours {
    runtime: Runtime,
    store: RedbStore,
    runs: u64,
    /// The number of batches of each run so far.
    done: u64,
    folder: TempDir,
}

impl Ours {
    fn new(runs: u64) -> Self {
        let folder = folder();
        let store = RedbStore::open(folder.path().join("runs.redb")).expect("a store can be made");
        Self { runtime: runtime(), store, runs, done: 0, folder }
    }

    /// Each run appends this many batches, one after the other.
    fn turn(&mut self, appends: u64) -> Duration {
        let numbers = self.done..self.done + appends;
        self.done = numbers.end;
        let began = Instant::now();
        let runs: Vec<_> = (0..self.runs)
            .map(|run| {
                let (store, run, numbers) = (self.store.clone(), RunId::from(name(run)), numbers.clone());
                self.runtime.spawn(async move {
                    for number in numbers {
                        let position = Position(number * RECORDS);
                        store.append(&run, position, batch(number)).await.expect("it is appended");
                    }
                })
            })
            .collect();
        for run in runs {
            self.runtime.block_on(run).expect("no run panics");
        }
        began.elapsed()
    }

    /// Compacts and closes the file; returns its size in bytes.
    fn compacted(self) -> u64 {
        let path = self.store.path().to_owned();
        while self.runtime.block_on(self.store.compact()).expect("it can be compacted") {}
        drop(self.store);
        let length = std::fs::metadata(path).expect("the file is there").len();
        self.folder.close().expect("the folder can be removed");
        length
    }
}

/// redb with the content that the same runs would write, committed by the caller.
struct Beside {
    bare: Bare,
    runs: u64,
    done: u64,
    _folder: TempDir,
}

impl Beside {
    fn new(runs: u64) -> Self {
        let folder = folder();
        Self { bare: Bare::create(&folder.path().join("bare.redb")), runs, done: 0, _folder: folder }
    }

    /// Makes this many commits, with a batch of each run.
    fn turn(&mut self, commits: u64) -> Duration {
        let numbers = self.done..self.done + commits;
        self.done = numbers.end;
        let prepared = if self.runs == 1 { Prepared::alone } else { Prepared::shared };
        let batches = |number| {
            let batches = (0..self.runs).map(|run| prepared(&name(run), number * RECORDS, &batch(number)));
            batches.collect::<Vec<_>>()
        };
        let groups: Vec<Vec<Prepared>> = numbers.map(batches).collect();
        let began = Instant::now();
        for group in groups {
            self.bare.commit(&group).expect("it is committed");
        }
        began.elapsed()
    }
}

fn name(run: u64) -> String {
    format!("order-{run:08}")
}

pub(crate) fn measure(scale: &Scale) -> Vec<Figure> {
    let (mut one, mut bare_one) = (Ours::new(1), Beside::new(1));
    let (mut many, mut bare_many) = (Ours::new(RUNS), Beside::new(RUNS));
    let single = in_turns(
        scale.append_turns,
        vec![Box::new(|| one.turn(scale.appends)), Box::new(|| bare_one.turn(scale.appends))],
    );
    let grouped = in_turns(
        scale.append_turns,
        vec![
            Box::new(|| one.turn(scale.appends)),
            Box::new(|| many.turn(scale.appends_each)),
            Box::new(|| bare_many.turn(scale.appends_each)),
        ],
    );
    let alone = |time| per_second(scale.appends, time);
    let together = |time| per_second(RUNS * scale.appends_each, time);
    let (events, payload) = (many.done * RUNS, payload_of(many.done) * RUNS);
    let bytes = many.compacted();
    vec![
        Figure::new("append/1", "events/s", alone(single[0]), alone(single[1]))
            .beside("redb itself, a commit per batch")
            .target(Target::AtLeast(0.8)),
        Figure::new("append/256", "events/s", together(grouped[1]), alone(grouped[0]))
            .beside("append/1")
            .target(Target::AtLeast(20.0)),
        Figure::new("append/256", "events/s", together(grouped[1]), together(grouped[2]))
            .beside("redb itself, a commit per 256 batches"),
        Figure::new(
            "append/256 size",
            "bytes/event",
            as_float(bytes) / as_float(events),
            as_float(payload) / as_float(events),
        )
        .beside("the JSON of the same records"),
    ]
}

/// The size in bytes of the JSON of this many batches.
fn payload_of(batches: u64) -> u64 {
    let length = |number| {
        let records = batch(number).records;
        records
            .iter()
            .map(|record| serde_json::to_vec(record).expect("records are JSON").len() as u64)
            .sum::<u64>()
    };
    (0..batches).map(length).sum()
}
