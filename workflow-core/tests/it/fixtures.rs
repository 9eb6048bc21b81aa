//! Events and small tools shared by several topics. Tools of one topic are in that topic's file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use workflow_core::RunHandle;
use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, RunReport};
use workflow_testkit::TestRun;

/// Opens every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Begin(pub(crate) u32);

/// An external event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(external)]
pub(crate) struct Alpha(pub(crate) u32);

/// Another external event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(external)]
pub(crate) struct Beta(pub(crate) u32);

/// An external event that ends a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(external)]
pub(crate) struct Close;

/// A control event between steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Item(pub(crate) u32);

/// Another control event between steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Part(pub(crate) u32);

/// A step's input, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Saw(pub(crate) String);

/// The recorded inputs of a run's steps, in the order in which they ended.
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

/// Runs a workflow to its end, of any kind.
pub(crate) async fn report_of<W: Workflow>(workflow: W, begin: u32) -> Arc<RunReport> {
    started(workflow, begin).await.report().await.unwrap()
}

/// The wire names of a run's log, in its order.
pub(crate) fn log_of(report: &RunReport) -> Vec<&str> {
    report.log.iter().map(|logged| &*logged.event).collect()
}

/// The outcome of each execution of a step, in order of their starts.
pub(crate) fn outcomes_of<'a>(report: &'a RunReport, step: &str) -> Vec<&'a ExecutionOutcome> {
    report.trace.iter().filter(|trace| &*trace.step == step).map(|trace| &trace.outcome).collect()
}

/// The recorded inputs of steps, in order. Clones share the lines.
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

/// Blocks steps until a test lets them pass, in order of arrival. Clones share one gate.
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

/// Counts live guards. Clones share the count.
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

/// A counted guard.
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

/// Yields to other tasks until a condition holds; fails the test if it never does.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let patience = Patience::new();
    while !is_so() {
        patience.check();
        tokio::task::yield_now().await;
    }
}

/// The real-time limit of a wait: only an event that never happens takes so long.
pub(crate) struct Patience(std::time::Instant);

impl Patience {
    pub(crate) fn new() -> Self {
        Self(std::time::Instant::now())
    }

    /// Panics once the limit has passed.
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
