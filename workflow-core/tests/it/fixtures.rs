//! Events and small tools that several topics share. What only one topic needs stands in that topic's file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use workflow_core::prelude::*;
use workflow_core::{ExecutionOutcome, RunHandle, RunReport};
use workflow_testkit::TestRun;

/// Opens every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Begin(pub(crate) u32);

/// Comes from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(external)]
pub(crate) struct Alpha(pub(crate) u32);

/// Comes from outside as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(external)]
pub(crate) struct Beta(pub(crate) u32);

/// Asks a workflow from outside to come to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(external)]
pub(crate) struct Close;

/// Is passed from step to step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Item(pub(crate) u32);

/// Is passed from step to step as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Part(pub(crate) u32);

/// What a step was handed, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Saw(pub(crate) String);

/// What the steps of a run were handed, in the order in which they ended.
pub(crate) fn saw<W: Workflow>(run: &TestRun<W>) -> Vec<String> {
    run.emitted::<Saw>().iter().map(|saw| saw.0.clone()).collect()
}

/// Ends every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Done(pub(crate) u32);

/// Starts a run on an engine of its own.
pub(crate) async fn started<W: Workflow>(workflow: W, begin: u32) -> RunHandle<W> {
    let engine = Engine::builder().workflow(workflow).build().unwrap();
    engine.start::<W>(Begin(begin)).await.unwrap()
}

/// Runs a workflow to its end, however it ends.
pub(crate) async fn report_of<W: Workflow>(workflow: W, begin: u32) -> Arc<RunReport> {
    started(workflow, begin).await.report().await.unwrap()
}

/// The wire names of a run's log, in its order.
pub(crate) fn log_of(report: &RunReport) -> Vec<&str> {
    report.log.iter().map(|logged| &*logged.event).collect()
}

/// What came of each execution of a step, in the order in which they started.
pub(crate) fn outcomes_of<'a>(report: &'a RunReport, step: &str) -> Vec<&'a ExecutionOutcome> {
    report.trace.iter().filter(|trace| &*trace.step == step).map(|trace| &trace.outcome).collect()
}

/// What steps were handed, in the order in which they said so. Clones share the lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub(crate) fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Keeps steps waiting until a test lets them pass, in the order in which they came. Clones are one gate.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    pub(crate) async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }

    pub(crate) fn let_pass(&self, how_many: usize) {
        self.0.add_permits(how_many);
    }
}

/// Counts what is alive: every guard, until it is dropped. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Alive(Arc<AtomicUsize>);

impl Alive {
    pub(crate) fn guard(&self) -> Guard {
        self.0.fetch_add(1, Ordering::SeqCst);
        Guard(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// One thing that is alive.
#[derive(Debug)]
pub(crate) struct Guard(Alive);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Lets every task of a current-thread runtime get as far as it can.
pub(crate) async fn everyone_else() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}

/// Lets others go on until something is so. That it never is fails the test.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let patience = Patience::new();
    while !is_so() {
        patience.check();
        tokio::task::yield_now().await;
    }
}

/// How long a test waits for what has to happen, by the real clock: only what never happens takes so long.
pub(crate) struct Patience(std::time::Instant);

impl Patience {
    pub(crate) fn new() -> Self {
        Self(std::time::Instant::now())
    }

    /// Panics when it has come to its end.
    pub(crate) fn check(&self) {
        assert!(self.0.elapsed() < std::time::Duration::from_mins(2), "what is waited for does not happen");
    }
}

/// An event that counts how often it is cloned. Clones share the count.
#[derive(Debug, Serialize, Deserialize, Event)]
pub(crate) struct Counted {
    pub(crate) number: u32,
    #[serde(skip)]
    clones: Arc<AtomicUsize>,
}

impl Counted {
    pub(crate) fn new(number: u32, clones: &Arc<AtomicUsize>) -> Self {
        Self { number, clones: Arc::clone(clones) }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.clones.fetch_add(1, Ordering::SeqCst);
        Self { number: self.number, clones: Arc::clone(&self.clones) }
    }
}
