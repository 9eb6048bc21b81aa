//! Workers that pull queued runs from a store which they share, each as many as it has permits (S65, S66).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use serde_json::json;
use serde_json::value::to_raw_value;
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, Position, RecordedEvent, RunQuery, StoreError, Write};
use workflow_core::table::RecordedTable;
use workflow_core::{AnyRun, ResumeError, RunId, RunOptions, RunStatus, StartError};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Scan {
    page: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Text(u32);

/// Notes which worker read each page, and how many it read at a time.
#[derive(Clone, Default)]
struct Readings {
    by_page: Arc<Mutex<BTreeMap<u32, Vec<usize>>>>,
    at_a_time: Arc<Mutex<BTreeMap<usize, (usize, usize)>>>,
}

struct Scanner {
    worker: usize,
    readings: Readings,
}

#[workflow]
impl Scanner {
    #[step]
    async fn read(&self, scan: &Scan) -> Text {
        self.readings.by_page.lock().unwrap().entry(scan.page).or_default().push(self.worker);
        self.count(1);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        self.count(-1);
        Text(scan.page)
    }
}

impl Scanner {
    /// Counts the readings of this worker, and the most at a time.
    fn count(&self, change: isize) {
        let mut all = self.readings.at_a_time.lock().unwrap();
        let (now, most) = all.entry(self.worker).or_default();
        *now = now.checked_add_signed(change).unwrap();
        *most = (*most).max(*now);
    }
}

/// A client without an engine.
struct Client {
    store: Arc<MemoryStore>,
    table: RecordedTable,
}

impl Client {
    /// Begins a run. Returns `false` if another client has begun it.
    async fn submit(&self, run: &str, page: u32) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
        let event = RecordedEvent::from_json("Scan", 1, to_raw_value(&json!({ "page": page }))?);
        let write = Write::queued(&self.table, event, &RunOptions::new(), SystemTime::now())?;
        match self.store.append(&run.into(), Position(0), write).await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// A worker: an engine that takes runs from the store as long as there are some.
struct Worker {
    engine: Engine,
}

impl Worker {
    fn new(worker: usize, store: &Arc<MemoryStore>, readings: &Readings, permits: usize) -> Self {
        let scanner = Scanner { worker, readings: readings.clone() };
        let builder = Engine::builder().workflow(scanner).store(Arc::clone(store));
        let engine = builder.lease(Duration::from_secs(30)).max_concurrent_runs(permits).build().unwrap();
        Self { engine }
    }

    /// The next runs that nobody has taken.
    async fn untaken(&self) -> Result<Vec<RunId>, StoreError> {
        let query = RunQuery::new().workflow("Scanner").status(RunStatus::Running);
        let open = self.engine.runs(&query).await?;
        Ok(open.into_iter().filter(|run| run.run.owner.is_none()).map(|run| run.id).collect())
    }

    /// Takes runs until none is left. Returns how many this worker took.
    async fn work(&self) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
        let mut taken: Vec<AnyRun> = Vec::new();
        loop {
            // First the permit: a run is taken only when it can begin.
            let permit = match self.engine.permit("Scanner").await {
                Err(StartError::ShutDown) => break,
                permit => permit?,
            };
            let Some(next) = self.untaken().await?.into_iter().next() else { break };
            match self.engine.attach_with(next, permit).await {
                Ok(run) => taken.push(run),
                // Another worker was faster.
                Err(ResumeError::Elsewhere { .. } | ResumeError::Contended { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for run in &taken {
            run.outcome_any().await?;
        }
        Ok(taken.len())
    }
}

// S65
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_share_a_queue_and_read_each_page_once() {
    const PAGES: u32 = 60;
    const PERMITS: usize = 2;
    let (store, readings) = (Arc::new(MemoryStore::default()), Readings::default());
    let workers: Vec<_> = (0..3).map(|worker| Worker::new(worker, &store, &readings, PERMITS)).collect();
    let table = workers[0].engine.hosted().remove(0).table;
    let client = Client { store: Arc::clone(&store), table };
    for page in 0..PAGES {
        assert!(client.submit(&format!("page-{page}"), page).await.unwrap());
        assert!(!client.submit(&format!("page-{page}"), page + 1).await.unwrap(), "the first one counts");
    }
    let taken = join_all(workers.iter().map(Worker::work)).await;
    let taken: Vec<usize> = taken.into_iter().map(Result::unwrap).collect();
    // A run is in one engine, even if two attached to it at the same time.
    let read = readings.by_page.lock().unwrap().clone();
    assert_eq!(read.len(), usize::try_from(PAGES).unwrap());
    assert!(read.values().all(|by| by.len() == 1), "{read:?}");
    assert!(taken.iter().sum::<usize>() >= read.len());
    for (worker, (now, most)) in readings.at_a_time.lock().unwrap().iter() {
        assert!(*now == 0 && *most <= PERMITS, "worker {worker} read {most} pages at a time");
    }
    let left = store.runs(&RunQuery::new().open()).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}
