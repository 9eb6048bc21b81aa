//! A worker: it waits for the file, resumes the open runs, and keeps a number of runs active until it is killed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use workflow_core::prelude::*;
use workflow_core::store::{
    ContextStore, EngineId, EventStore, Inbox, Position, Record, Retention, RunQuery, StoreFuture, StoredRun,
    Write,
};
use workflow_core::{RunHandle, RunId, RunOptions, RunStatus, SendError};
use workflow_redb::{OpenError, RedbStore};

use crate::ledger::{Ledger, Line, hold};
use crate::load::{Ask, Begin, Done, Double, Expected, Load, answer};
use crate::verdict::{all_runs, records_of};
use crate::{contexts, paused, redriven};

/// The folder that a worker works in.
pub(crate) const FOLDER: &str = "WORKFLOW_REDB_WORKER_FOLDER";

/// Set for a worker whose runs fail and are redriven.
const REDRIVEN: &str = "WORKFLOW_REDB_WORKER_REDRIVES";

/// Set for a worker whose runs are paused now and then.
const PAUSED: &str = "WORKFLOW_REDB_WORKER_PAUSES";

/// Set for the worker that starts nothing new.
const LAST: &str = "WORKFLOW_REDB_WORKER_IS_LAST";

/// The number of active runs.
const AT_A_TIME: usize = 32;

/// The time limit for clearing an ended run's contexts, of which it takes a small part.
const CLEARING: Duration = Duration::from_mins(1);

/// The interval between checks of a process.
const BREATH: Duration = Duration::from_millis(1);

/// A worker from the test's side. Dropping this value ends the worker.
#[derive(Debug)]
pub(crate) struct Worker {
    process: Child,
    said: PathBuf,
}

impl Worker {
    /// A worker that works until it is killed.
    pub(crate) fn new(folder: &Path, kind: Kind) -> Self {
        Self::start(folder, kind, false)
    }

    /// A worker that ends when every run has.
    pub(crate) fn last(folder: &Path, kind: Kind) -> Self {
        Self::start(folder, kind, true)
    }

    fn start(folder: &Path, kind: Kind, is_last: bool) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let said = folder.join(format!("worker-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let out = File::create(&said).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "runs_complete_once_however_often_their_processes_are_killed",
            "--nocapture",
        ]);
        command.env(FOLDER, folder).stderr(out.try_clone().unwrap()).stdout(out);
        if is_last {
            command.env(LAST, "1");
        }
        match kind {
            Kind::Mixed => {}
            Kind::Redriven => drop(command.env(REDRIVEN, "1")),
            Kind::Paused => drop(command.env(PAUSED, "1")),
        }
        // The worker ends when the pipe closes, so also when the test itself is killed.
        Self { process: command.stdin(Stdio::piped()).spawn().unwrap(), said }
    }

    pub(crate) fn process(&self) -> u32 {
        self.process.id()
    }

    /// Fails if the worker has ended by itself.
    pub(crate) fn still_works(&mut self) {
        if let Some(status) = self.process.try_wait().unwrap() {
            self.has_failed(status);
        }
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        let status = self.process.wait().unwrap();
        if status.signal() != Some(9) {
            self.has_failed(status);
        }
        std::fs::remove_file(&self.said).unwrap();
    }

    /// Waits for the worker's end, up to a time limit.
    pub(crate) fn finishes(mut self, patience: Duration) {
        let until = Instant::now() + patience;
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "the last worker does not finish: {}", self.has_said());
            std::thread::sleep(BREATH);
        };
        if !status.success() {
            self.has_failed(status);
        }
    }

    fn has_failed(&self, status: ExitStatus) -> ! {
        panic!("a worker ended with {status}: {}", self.has_said());
    }

    fn has_said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The process may have ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The runs of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Runs of every shape, which complete.
    Mixed,
    /// Runs that fail, and are redriven until they complete.
    Redriven,
    /// Runs of every shape, which are paused and unpaused until they complete.
    Paused,
}

/// The role of this process, if it is a worker.
pub(crate) struct Role {
    folder: PathBuf,
    kind: Kind,
    is_last: bool,
}

impl Role {
    pub(crate) fn given() -> Option<Self> {
        let folder = std::env::var_os(FOLDER)?.into();
        let kind = match (std::env::var_os(REDRIVEN), std::env::var_os(PAUSED)) {
            (Some(_), _) => Kind::Redriven,
            (None, Some(_)) => Kind::Paused,
            (None, None) => Kind::Mixed,
        };
        Some(Self { folder, kind, is_last: std::env::var_os(LAST).is_some() })
    }
}

/// Works until this process is killed or, for the last one, until there is nothing left to do.
pub(crate) fn work(role: &Role) {
    std::thread::spawn(|| {
        // The pipe never has data: it closes with the process that started this one.
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(1);
    });
    let store = waits_for_the_store(&role.folder.join("runs.redb"));
    let ledger = Ledger::of(&role.folder);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // Done before this process counts as the holder: the time until its kill is for work.
    runtime.block_on(reads_every_journal(&store, &ledger));
    hold(&role.folder);
    match role.kind {
        Kind::Mixed | Kind::Paused => {
            let pauses = role.kind == Kind::Paused && !role.is_last;
            runtime.block_on(keeps_runs_going(store, ledger, (role.is_last, pauses)));
        }
        Kind::Redriven => {
            runtime.block_on(redriven::keeps_runs_going(&role.folder, store, ledger, role.is_last));
        }
    }
}

/// One process holds the file, and all others are refused.
fn waits_for_the_store(file: &Path) -> RedbStore {
    loop {
        match RedbStore::open(file) {
            Ok(store) => return store,
            Err(OpenError::InUse { .. }) => std::thread::sleep(BREATH),
            Err(error) => panic!("the file cannot be opened: {error:?}"),
        }
    }
}

/// No kill has made a journal unreadable.
async fn reads_every_journal(store: &RedbStore, ledger: &Ledger) {
    let runs = all_runs(store).await;
    for run in &runs {
        let records = records_of(store, run).await;
        assert!(matches!(records.first(), Some(Record::RunStarted { .. })), "the beginning of {}", run.id);
        let is_last = matches!(records.last(), Some(Record::RunEnded { .. }));
        assert_eq!(is_last, run.run.status.is_ended(), "the end of {}", run.id);
    }
    ledger.add(&Line::Read { journals: runs.len() });
}

/// Resumes the runs of the previous process, and asserts that ended runs have no contexts left.
async fn resumes(engine: &Engine, store: &RedbStore, ledger: &Ledger) -> Vec<RunId> {
    let ended = all_runs(store).await.into_iter().filter(|run| run.run.status.is_ended());
    let ended: BTreeSet<RunId> = ended.map(|run| run.id).collect();
    let left = contexts::of_runs(store, &ended).await;
    ledger.add(&Line::Left { contexts: left.len() });
    let resumed = engine.resume_open_runs().await.unwrap();
    assert!(resumed.refused.is_empty(), "{:?}", resumed.refused);
    // For a child that its parent reads at that moment, the engine clears the contexts afterwards.
    let since = Instant::now();
    loop {
        let left = contexts::of_runs(store, &ended).await;
        if left.is_empty() {
            return resumed.runs;
        }
        assert!(since.elapsed() < CLEARING, "contexts of runs that had ended stay: {left:?}");
        tokio::time::sleep(BREATH).await;
    }
}

async fn keeps_runs_going(store: RedbStore, ledger: Ledger, (is_last, pauses): (bool, bool)) {
    let witnessed = witnessed(&store, &ledger);
    let engine = Engine::builder().workflow(Load(ledger.clone())).workflow(Double(ledger.clone()));
    // Each of these processes is killed: that is no fault of what it executes.
    let engine = engine.max_interrupted_attempts(u32::MAX);
    let engine = engine.store(witnessed).build().unwrap();
    let mut runs = JoinSet::new();
    for id in resumes(&engine, &store, &ledger).await {
        let run = engine.attach::<Load>(id.clone()).await.unwrap();
        runs.spawn(until_it_has_ended(run, number_of(&id), ledger.clone(), pauses));
    }
    let mut next = next_number(&store).await;
    loop {
        while runs.len() < AT_A_TIME && !is_last {
            runs.spawn(begun(engine.clone(), next, ledger.clone(), pauses));
            next += 1;
        }
        let Some(ended) = runs.join_next().await else { break };
        ended.unwrap();
    }
    engine.cancel_all("the engine is shutting down", Duration::from_mins(5)).await;
}

async fn begun(engine: Engine, number: u32, ledger: Ledger, pauses: bool) {
    let options = RunOptions::new().id(id_of(number));
    let run = engine.start_with::<Load>(Begin { number }, options).await.unwrap();
    ledger.add(&Line::Started { run: run.id().to_string() });
    until_it_has_ended(run, number, ledger, pauses).await;
}

/// Replies to the run's requests until it has ended, and perhaps pauses and unpauses it meanwhile.
async fn until_it_has_ended(run: RunHandle<Load>, number: u32, ledger: Ledger, pauses: bool) {
    if pauses {
        paused::pauses_and_unpauses(&run, &ledger).await;
    }
    paused::unpauses(&run, &ledger).await;
    while !run.settled().await.is_ended() {
        let asked = match run.requests().await {
            Err(SendError::Ended { status: RunStatus::Completed, .. }) => break,
            asked => asked.unwrap(),
        };
        for request in asked {
            let (id, ask) = (request.id::<Ask>().unwrap(), request.downcast_ref::<Ask>().unwrap());
            run.reply(id, answer(ask)).await.unwrap();
        }
        // The run may wait for a timer, a retry or its child.
        tokio::time::sleep(BREATH).await;
    }
    assert_eq!(run.outcome().await.unwrap(), Done(Expected::of(number).output));
}

pub(crate) fn id_of(number: u32) -> RunId {
    format!("r-{number:06}").into()
}

/// The number of a run, or of the run whose child it is.
pub(crate) fn number_of(id: &RunId) -> u32 {
    let id = id.as_str();
    id.split('/')
        .next()
        .and_then(|run| run.strip_prefix("r-"))
        .and_then(|number| number.parse().ok())
        .unwrap()
}

/// The number after every run of the store. The number of a lost start is used again.
async fn next_number(store: &RedbStore) -> u32 {
    let mut next = 0;
    let mut query = RunQuery::new();
    loop {
        let page = store.runs(&query).await.unwrap();
        let Some(last) = page.last() else { return next };
        next = number_of(&last.id) + 1;
        query = query.after(last.id.clone());
    }
}

/// The store, recording its answers.
pub(crate) fn witnessed(store: &RedbStore, ledger: &Ledger) -> impl EventStore {
    Witnessed { store: store.clone(), ledger: ledger.clone() }
}

/// A store that records its answers.
struct Witnessed {
    store: RedbStore,
    ledger: Ledger,
}

impl EventStore for Witnessed {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let succeeded = batch.records.iter().filter_map(|record| match record {
            Record::ExecutionSucceeded { execution, .. } => {
                Some(Line::Kept { run: run.to_string(), execution: execution.0 })
            }
            _ => None,
        });
        let (succeeded, ledger) = (succeeded.collect::<Arc<[Line]>>(), self.ledger.clone());
        let appended = self.store.append(run, expected, batch);
        StoreFuture::new(async move {
            appended.await?;
            succeeded.iter().for_each(|line| ledger.add(line));
            Ok(())
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.store.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.store.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.store.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.store.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.store.lease(engine, duration)
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        self.store.contexts()
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.store.inbox()
    }
}
