//! Shared by the tests of the engine's parts: a workflow, journals that tests write, and a fake that resumes runs.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;

use super::journals::Journals;
use super::load::{Loaded, LoadedBy, Resumes};
use crate::event::AnyEvent;
use crate::id::{EngineId, ExecutionId, ParentRun, RunId, RunStatus, ScopeId, Seq};
use crate::lease::{Lease, LeaseOwner};
use crate::outcome::ResumeError;
use crate::prelude::*;
use crate::run::{Host, RunShared, UnhostedWorkflow};
use crate::scheduler::Cause;
use crate::store::{
    EventStore, JOURNAL_FORMAT, MemoryStore, Position, Record, RecordedEvent, RunSummary, StoreError,
    WaitingFor, Write,
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
    let (host, error) = Host::new(UnhostedWorkflow::new(Greeter));
    assert!(error.is_none(), "{error:?}");
    host
}

/// The answer of a future that is ready at its first poll.
pub(super) fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("a store in memory answers at once")
}

/// How a run began.
#[derive(Clone, Copy, Default)]
pub(super) struct Began<'a> {
    /// The parent, of a child.
    pub(super) parent: Option<&'a str>,
    /// Whether an execution of the parent waits for the run.
    pub(super) awaited: bool,
    /// The thread that was created for this run only.
    pub(super) private_thread: Option<&'a str>,
    /// The owner.
    pub(super) owner: Option<&'a EngineId>,
}

/// The length of an open run's journal in these tests.
pub(super) const OPEN: Position = Position(2);

/// A store whose journals tests write.
#[derive(Default)]
pub(super) struct Written(Arc<MemoryStore>);

impl Written {
    pub(super) fn store(&self) -> &dyn EventStore {
        &*self.0
    }

    /// The journals of an engine without leases.
    pub(super) fn journals(&self) -> Journals {
        Journals::new(Some(Arc::clone(&self.0) as Arc<dyn EventStore>), None)
    }

    /// The journals of an engine with a lease.
    pub(super) fn leased(&self, engine: &EngineId) -> Journals {
        let store = Arc::clone(&self.0) as Arc<dyn EventStore>;
        let lease = Lease::new(engine.clone(), Arc::clone(&store), Duration::from_mins(1));
        Journals::new(Some(store), Some(LeaseOwner(Arc::new(lease))))
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
            parent: parent.clone(),
            awaited: began.awaited,
            private_thread: began.private_thread.is_some(),
            timeout: None,
            deadline: None,
            configs: [].into(),
            trace_parent: None,
            queued: false,
            at,
        };
        let event = RecordedEvent::new(AnyEvent::new(Greet));
        let (seq, scope, cause) = (Seq(0), ScopeId::ROOT, Cause::Outside);
        let opened = Record::EventLogged { seq, scope, cause, event, origin: None, at };
        let summary = RunSummary::running("Greeter", at).owned_by(began.owner.cloned());
        let summary = RunSummary { parent, ..summary };
        self.append(run, Position(0), Write { records: vec![first, opened], run: summary });
    }

    /// The run waits.
    pub(super) fn waits(&self, run: &str) {
        let at = SystemTime::UNIX_EPOCH;
        let (records, waits_for) = (vec![Record::RunKept { at }], WaitingFor::default());
        self.append(run, OPEN, Write { records, run: RunSummary::running("Greeter", at).waiting(waits_for) });
    }

    pub(super) fn end(&self, run: &str) {
        self.end_with(run, RunStatus::Cancelled);
    }

    pub(super) fn end_with(&self, run: &str, status: RunStatus) {
        let at = SystemTime::UNIX_EPOCH;
        let records =
            vec![Record::RunEnded { status, error: None, step: None, deadline: None, origin: None, at }];
        self.append(run, OPEN, Write { records, run: RunSummary::running("Greeter", at).ended(status) });
    }

    fn append(&self, run: &str, end: Position, batch: Write) {
        now(self.0.append(&run.into(), end, batch)).unwrap();
    }

    /// The runs that the store has.
    pub(super) fn ids(&self) -> Vec<String> {
        let runs = now(self.0.runs(&crate::store::RunQuery::new())).unwrap();
        runs.into_iter().map(|run| run.id.to_string()).collect()
    }

    pub(super) fn records(&self, run: &str) -> Vec<Record> {
        now(self.0.read(&run.into(), Position(0), 100)).unwrap()
    }
}

/// Notes the runs that it is asked to resume or end.
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
    /// Answers by the last letter of the run's id: `w` is awaited, `m` has moved, `u` does not fit, and others cannot
    /// be read.
    async fn load(&self, run: &RunId, end: Option<Position>, _: LoadedBy) -> Result<Loaded, ResumeError> {
        self.note(format!("load {run} at {}", end.map_or("any".to_owned(), |end| end.to_string())));
        match run.as_str().chars().last() {
            Some('w') => Ok(Loaded::Awaited),
            Some('m') => Ok(Loaded::Moved(Position(9))),
            Some('u') => Err(ResumeError::Config(crate::config::ConfigError::Unnamed {
                variable: "MANNERS_".to_owned(),
            })),
            _ => Err(ResumeError::Store(StoreError::ShutDown)),
        }
    }

    async fn enter(
        &self,
        run: &crate::store::StoredRun,
        _departures: usize,
    ) -> Result<Option<Loaded>, ResumeError> {
        let waits = run.run.status == RunStatus::Waiting;
        if waits {
            self.note(format!("enter {}", run.id));
        }
        Ok(waits.then_some(Loaded::Waiting))
    }

    async fn load_parent(&self, child: &crate::store::StoredRun) -> Result<(), StoreError> {
        if let Some(parent) = &child.run.parent {
            self.note(format!("parent {}", parent.run));
        }
        Ok(())
    }

    async fn claim(&self, run: &crate::store::StoredRun) -> Result<Loaded, ResumeError> {
        self.load(&run.id, Some(run.end), LoadedBy::Claim).await
    }

    async fn cancel_child(
        &self,
        run: &RunId,
        parent: &RunId,
        before: Option<ExecutionId>,
    ) -> Result<Option<Arc<RunShared>>, ResumeError> {
        let before = before.map(|first| format!(" before {first}")).unwrap_or_default();
        self.note(format!("end {run} of {parent}{before}"));
        Ok(None)
    }

    async fn release(&self, run: &crate::store::StoredRun) -> Result<(), StoreError> {
        self.note(format!("release {}", run.id));
        Ok(())
    }
}
