//! Measures waiting runs in a separate process, so that nothing else counts; the bench of the shapes starts it.
//!
//! `waiting RUNS` keeps this many runs in memory that wait for a reply; `waiting RUNS FOLDER` keeps them in a file in
//! that folder, unloaded by the engine. Prints the bytes of memory of each, and the nanoseconds from a reply to the end
//! of its run.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use workflow_benches::work::waiting::{AT_ONCE, Approve, Refunds, id, start};
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::report::OpenRequest;
use workflow_core::{EngineBuilder, RunHandle};
use workflow_redb::RedbStore;

/// The number of runs before the counted ones, for one-time memory and the memory of concurrent starts.
const BEFORE: u64 = 1_024;

/// The number of timed replies; the median counts.
const REPLIES: u64 = 101;

/// The time limit until the last run is unloaded.
const PATIENCE: Duration = Duration::from_mins(1);

/// Small enough not to count towards the memory of runs.
const CACHE: usize = 1 << 20;

/// The number of runs that the engine has unloaded.
#[derive(Clone, Default)]
struct Released(Arc<AtomicU64>);

impl Observer for Released {
    fn observe(&self, observation: &Observation) {
        if matches!(observation.what, Observed::RunUnloaded) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

impl Released {
    /// Waits until there are this many.
    async fn come_to(&self, runs: u64) {
        let began = Instant::now();
        while self.0.load(Ordering::Relaxed) < runs {
            assert!(began.elapsed() < PATIENCE, "only {} runs were unloaded", self.0.load(Ordering::Relaxed));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[expect(clippy::print_stdout, reason = "it is asked for them")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let runs = arguments.next().and_then(|runs| runs.parse().ok()).expect("how many runs");
    let runtime = Runtime::new().expect("a runtime starts");
    let (bytes, reply) = match arguments.next() {
        None => runtime.block_on(in_memory(runs)),
        Some(folder) => runtime.block_on(in_file(runs, Path::new(&folder))),
    };
    println!("{bytes} {}", reply.as_nanos());
}

async fn in_memory(runs: u64) -> (u64, Duration) {
    let engine = build(Engine::builder());
    let _before = start(&engine, 0..BEFORE).await;
    let began_with = resident();
    let started = start(&engine, BEFORE..BEFORE + runs).await;
    let bytes = resident().saturating_sub(began_with) / runs;
    let mut times = Vec::new();
    for number in asked(runs) {
        times.push(reply(&started[usize::try_from(number).expect("there are few")]).await);
    }
    (bytes, median(times))
}

async fn in_file(runs: u64, folder: &Path) -> (u64, Duration) {
    let store = RedbStore::builder().cache_bytes(CACHE).open(folder.join("runs.redb"));
    let (store, released) = (store.expect("a store can be made"), Released::default());
    let builder = Engine::builder().store(store).observer(released.clone());
    let engine = build(builder.unload_waiting_after(Duration::ZERO));
    start_and_leave(&engine, 0..BEFORE).await;
    released.come_to(BEFORE).await;
    let began_with = resident();
    start_and_leave(&engine, BEFORE..BEFORE + runs).await;
    released.come_to(BEFORE + runs).await;
    let bytes = resident().saturating_sub(began_with) / runs;
    let mut times = Vec::new();
    for number in asked(runs) {
        let run = engine.attach::<Refunds>(id(BEFORE + number)).await.expect("it is there");
        times.push(reply(&run).await);
    }
    (bytes, median(times))
}

fn build(builder: EngineBuilder) -> Engine {
    builder.workflow(Refunds).build().expect("it is sound")
}

/// Starts runs, waits until they wait, and drops the handles.
async fn start_and_leave(engine: &Engine, numbers: Range<u64>) {
    for first in numbers.clone().step_by(usize::try_from(AT_ONCE).expect("few")) {
        drop(start(engine, first..(first + AT_ONCE).min(numbers.end)).await);
    }
}

/// The runs that get a reply: some from everywhere.
fn asked(runs: u64) -> impl Iterator<Item = u64> {
    let replies = REPLIES.min(runs);
    (0..replies).map(move |number| number * (runs / replies))
}

/// The time from a reply to the end of the run.
async fn reply(run: &RunHandle<Refunds>) -> Duration {
    let requests = run.requests().await.expect("it waits");
    let request = requests.iter().find_map(OpenRequest::id::<Approve>).expect("it asks");
    let began = Instant::now();
    run.reply(request, true).await.expect("it is taken");
    run.outcome().await.expect("it completes");
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The memory of the process in bytes; 0 where the system does not report it.
fn resident() -> u64 {
    const PAGE: u64 = 4_096;
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).map_or(0, |pages| pages * PAGE)
}
