//! Shared by the tests of the engine's parts: a workflow, journals that are written by hand, and a fake that resumes runs.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;

use super::journals::Journals;
use super::lease::{Lease, Leased};
use super::load::{Loaded, Resumes};
use crate::children::ParentRun;
use crate::error::ResumeError;
use crate::event::AnyEvent;
use crate::id::{EngineId, ExecutionId, RunId, ScopeId, Seq};
use crate::prelude::*;
use crate::run::{Host, RunStatus, Unhosted};
use crate::scheduler::Cause;
use crate::store::{
    Batch, EventStore, JOURNAL_FORMAT, MemoryStore, Position, Record, RecordedEvent, RunSummary, StoreError,
};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start, crate = crate)]
pub(super) struct Greet;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop, crate = crate)]
pub(super) struct Greeting;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Manners {
    pub(super) polite: bool,
}

pub(super) struct Greeter;

#[workflow(crate = crate)]
impl Greeter {
    #[step]
    async fn greet(&self, _greet: &Greet, _manners: Config<Manners>) -> Greeting {
        Greeting
    }
}

/// The host of `Greeter`.
pub(crate) fn greeter() -> Host {
    let (host, error) = Host::new(Unhosted::new(Greeter));
    assert!(error.is_none(), "{error:?}");
    host
}

/// The answer of a future that waits for nothing.
pub(super) fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("a store in memory answers at once")
}

/// How a run began.
#[derive(Clone, Copy, Default)]
pub(super) struct Began<'a> {
    /// The run that it is a child of.
    pub(super) parent: Option<&'a str>,
    /// Whether an execution of that waits for it.
    pub(super) awaited: bool,
    /// The thread that was made for it alone.
    pub(super) private_thread: Option<&'a str>,
    /// The engine that drives it.
    pub(super) owner: Option<&'a EngineId>,
}

/// How many records an open run has here.
pub(super) const OPEN: Position = Position(2);

/// A store of journals that tests write.
#[derive(Default)]
pub(super) struct Written(Arc<MemoryStore>);

impl Written {
    pub(super) fn store(&self) -> &dyn EventStore {
        &*self.0
    }

    /// The journals as an engine without leases has them.
    pub(super) fn journals(&self) -> Journals {
        Journals::new(Some(Arc::clone(&self.0) as Arc<dyn EventStore>), None)
    }

    /// The same of an engine with a lease.
    pub(super) fn leased(&self, engine: &EngineId) -> Journals {
        let store = Arc::clone(&self.0) as Arc<dyn EventStore>;
        let lease = Lease::new(engine.clone(), Arc::clone(&store), Duration::from_mins(1));
        Journals::new(Some(store), Some(Leased(Arc::new(lease))))
    }

    /// Another engine takes a lease.
    pub(super) fn hold_lease(&self, engine: &EngineId) {
        now(self.0.lease(engine, Duration::from_mins(1))).unwrap();
    }

    pub(super) fn begin(&self, run: &str, began: Began<'_>) {
        let at = SystemTime::UNIX_EPOCH;
        let parent = began.parent.map(|parent| ParentRun {
            run: parent.into(),
            step: "greet".into(),
            execution: ExecutionId(1),
            attempt: 1,
        });
        let host = greeter();
        let first = Record::RunStarted {
            format: JOURNAL_FORMAT,
            workflow: Arc::clone(&host.table.name),
            table: host.table.recorded().clone(),
            thread: began.private_thread.unwrap_or("shared").into(),
            metadata: [("kind".to_owned(), "test".to_owned())].into(),
            parent,
            awaited: began.awaited,
            private_thread: began.private_thread.is_some(),
            timeout: None,
            configs: [].into(),
            at,
        };
        let event = RecordedEvent::new(AnyEvent::new(Greet));
        let (seq, scope, cause) = (Seq(0), ScopeId::ROOT, Cause::Outside);
        let opened = Record::EventLogged { seq, scope, cause, event, at };
        let summary = RunSummary::running("Greeter", at).owned_by(began.owner.cloned());
        self.append(run, Position(0), Batch { records: vec![first, opened], run: summary });
    }

    pub(super) fn end(&self, run: &str) {
        let (at, status) = (SystemTime::UNIX_EPOCH, RunStatus::Cancelled);
        let records = vec![Record::RunEnded { status, error: None, step: None, at }];
        self.append(run, OPEN, Batch { records, run: RunSummary::running("Greeter", at).ended(status) });
    }

    fn append(&self, run: &str, end: Position, batch: Batch) {
        now(self.0.append(&run.into(), end, batch)).unwrap();
    }

    /// The runs that the store has.
    pub(super) fn ids(&self) -> Vec<String> {
        let runs = now(self.0.runs(&crate::RunQuery::new())).unwrap();
        runs.into_iter().map(|run| run.id.to_string()).collect()
    }

    pub(super) fn records(&self, run: &str) -> Vec<Record> {
        now(self.0.read(&run.into(), Position(0), 100)).unwrap()
    }
}

/// Notes what it is asked to resume, and answers what a test has said.
#[derive(Default)]
pub(super) struct Resumer {
    pub(super) asked: Mutex<Vec<String>>,
}

impl Resumer {
    fn note(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }

    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Resumes for Resumer {
    /// By the last letter of the run's id: `w` is awaited, `m` has moved, `u` does not fit, and others cannot be read.
    async fn load(&self, run: &RunId, end: Option<Position>) -> Result<Loaded, ResumeError> {
        self.note(format!("load {run} at {}", end.map_or("any".to_owned(), |end| end.to_string())));
        match run.as_str().chars().last() {
            Some('w') => Ok(Loaded::Awaited),
            Some('m') => Ok(Loaded::Moved(Position(9))),
            Some('u') => {
                Err(ResumeError::Config(crate::ConfigError::Unnamed { variable: "MANNERS_".to_owned() }))
            }
            _ => Err(ResumeError::Store(StoreError::ShutDown)),
        }
    }

    async fn end_child(&self, run: &RunId, parent: &RunId) -> Result<(), ResumeError> {
        self.note(format!("end {run} of {parent}"));
        Ok(())
    }
}
