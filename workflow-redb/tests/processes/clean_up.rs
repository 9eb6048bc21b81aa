//! A process is killed while clean-up steps run, again and again (S31, S39). In the end each run has its outcome, each
//! clean-up step has performed its effect at least once, in the planned order, and none is recorded twice.
//!
//! A worker is this program, started again with [`FOLDER`] in its environment: then the test acts as a worker. A ledger
//! beside the store, written without buffers, has the effects of clean-up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use workflow_core::prelude::*;
use workflow_core::store::{EventStore as _, Position, Record, RunQuery, StoredRun};
use workflow_core::{ErrorClass, Retries, RetryPolicy, RunHandle, RunId, RunOptions, RunStatus};
use workflow_redb::RedbStore;

/// The folder that a worker works in.
const FOLDER: &str = "WORKFLOW_REDB_CLEAN_UP_FOLDER";

/// Set for the worker that starts nothing new.
const LAST: &str = "WORKFLOW_REDB_CLEAN_UP_IS_LAST";

/// The number of active runs.
const AT_A_TIME: usize = 16;

/// The time limit of a wait, of which it takes a small part.
const PATIENCE: Duration = Duration::from_mins(5);

/// The clean-up steps of [`Trip`], in the order in which they run.
const STEPS: [&str; 3] = ["undo_hotel", "undo_flight", "undo_all"];

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Flight(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Hotel(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Paid;

/// Books a flight and a hotel, and ends as its number says, but never well.
struct Trip(Ledger);

fn once_more() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(1, Duration::from_millis(2)))
}

#[workflow]
impl Trip {
    #[step]
    async fn flight(&self, begin: &Begin) -> Flight {
        Flight(begin.0)
    }

    #[step]
    async fn hotel(&self, flight: &Flight) -> Hotel {
        Hotel(flight.0)
    }

    #[step]
    async fn pay(&self, hotel: &Hotel) -> Result<Option<Paid>, StepError> {
        match end_of(hotel.0) {
            RunStatus::Failed => Err(StepError::rejected("no money")),
            RunStatus::Stalled => Ok(None),
            _ => std::future::pending().await,
        }
    }

    #[step(on_end)]
    async fn undo_all(&self, begin: &Begin, info: &RunInfo) -> Result<(), StepError> {
        self.0.does(begin.0, info).await;
        Err(StepError::permanent("stuck"))
    }

    #[step(on_end)]
    async fn undo_flight(&self, flight: &Flight, info: &RunInfo) {
        self.0.does(flight.0, info).await;
    }

    #[step(on_end, retry = once_more())]
    async fn undo_hotel(&self, hotel: &Hotel, info: &RunInfo) -> Result<(), StepError> {
        self.0.does(hotel.0, info).await;
        if info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(()) }
    }
}

/// The end of the run with this number.
fn end_of(number: u32) -> RunStatus {
    [RunStatus::Failed, RunStatus::Stalled, RunStatus::Cancelled, RunStatus::TimedOut][number as usize % 4]
}

/// What the workers did: lines of a file, each appended with one call.
#[derive(Clone)]
struct Ledger(Arc<File>);

impl Ledger {
    fn of(folder: &Path) -> Self {
        Self(Arc::new(OpenOptions::new().create(true).append(true).open(folder.join("ledger")).unwrap()))
    }

    /// A line that a killed process has left unfinished hides none that follows.
    fn add(&self, line: &str) {
        (&*self.0).write_all(format!("\n{line} .\n").as_bytes()).unwrap();
    }

    /// Performs an effect: a line when it begins and, after a while, one when it is done.
    async fn does(&self, number: u32, info: &RunInfo) {
        let (run, step) = (info.run(), info.step());
        assert!(info.ending().is_some_and(|ending| ending.status() == end_of(number)), "{:?}", info.ending());
        self.add(&format!("begins {run} {step}"));
        tokio::time::sleep(Duration::from_millis(u64::from(number % 5))).await;
        self.add(&format!("did {run} {step}"));
    }
}

/// The lines of the ledger, in words.
fn lines(folder: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(folder.join("ledger")).unwrap_or_default();
    let whole = text.lines().filter(|line| line.ends_with(" ."));
    whole.map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// How many effects have begun and are not done.
fn open_effects(lines: &[Vec<String>]) -> usize {
    let count = |what: &str| lines.iter().filter(|line| line[0] == what).count();
    count("begins").saturating_sub(count("did"))
}

struct Worker(Child);

impl Worker {
    fn start(folder: &Path, is_last: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "clean_up::clean_up_survives_kills", "--nocapture"]).env(FOLDER, folder);
        if is_last {
            command.env(LAST, "1");
        }
        // The worker ends when the pipe closes, so also when the test itself is killed.
        Self(command.stdin(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn work(folder: &Path, is_last: bool) {
    std::thread::spawn(|| {
        // The pipe never has data: it closes with the process that started this one.
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(1);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(keeps_runs_ending(folder, is_last));
}

async fn keeps_runs_ending(folder: &Path, is_last: bool) {
    let store = RedbStore::open(folder.join("runs.redb")).unwrap();
    let ledger = Ledger::of(folder);
    // However often the process is killed under a step, that is not how the run is to end.
    let engine = Engine::builder().workflow(Trip(ledger.clone())).max_interrupted_attempts(u32::MAX);
    let engine = engine.store(store.clone()).build().unwrap();
    let before = all_runs(&store).await;
    let resumed = engine.resume_open_runs().await.unwrap();
    assert!(resumed.refused.is_empty(), "{:?}", resumed.refused);
    let mut runs = JoinSet::new();
    for id in resumed.runs {
        let run = engine.attach::<Trip>(id.clone()).await.unwrap();
        runs.spawn(ends(run, number_of(&id)));
    }
    // Runs begin together, so the store may lack one below the last.
    let mut next = before.iter().map(|run| number_of(&run.id) + 1).max().unwrap_or(0);
    loop {
        while runs.len() < AT_A_TIME && !is_last {
            runs.spawn(begins(engine.clone(), next, ledger.clone()));
            next += 1;
        }
        let Some(ended) = runs.join_next().await else { break };
        ended.unwrap();
    }
}

async fn begins(engine: Engine, number: u32, ledger: Ledger) {
    let mut options = RunOptions::new().id(format!("r-{number:06}"));
    if end_of(number) == RunStatus::TimedOut {
        options = options.timeout(Duration::from_millis(30));
    }
    let run = engine.start_with::<Trip>(Begin(number), options).await.unwrap();
    ledger.add(&format!("started {}", run.id()));
    ends(run, number).await;
}

/// Cancels the run if it is to be cancelled, and waits for its end.
async fn ends(run: RunHandle<Trip>, number: u32) {
    if end_of(number) == RunStatus::Cancelled {
        tokio::time::sleep(Duration::from_millis(5)).await;
        // Refused if the run cleans up already.
        drop(run.cancel("enough").await);
    }
    run.outcome().await.unwrap_err();
    assert_eq!(run.status(), end_of(number), "the end of {}", run.id());
}

fn number_of(run: &RunId) -> u32 {
    run.as_str().strip_prefix("r-").unwrap().parse().unwrap()
}

async fn all_runs(store: &RedbStore) -> Vec<StoredRun> {
    let (mut runs, mut query) = (Vec::new(), RunQuery::new());
    loop {
        let page = store.runs(&query).await.unwrap();
        let Some(last) = page.last() else { return runs };
        query = query.after(last.id.clone());
        runs.extend(page);
    }
}

/// Judges the store and the ledger.
async fn judge(folder: &Path) -> (usize, usize) {
    let store = RedbStore::open(folder.join("runs.redb")).unwrap();
    let (runs, lines) = (all_runs(&store).await, lines(folder));
    let known: BTreeSet<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    let mut effects: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in &lines {
        assert!(known.contains(&*line[1]), "{line:?}, and the run is lost");
        if line[0] == "did" {
            effects.entry(&line[1]).or_default().push(&line[2]);
        }
    }
    let mut repeated = 0;
    for run in &runs {
        let records = store.read(&run.id, Position(0), usize::MAX).await.unwrap();
        let expected = judge_journal(&run.id, &records);
        let done = effects.remove(run.id.as_str()).unwrap_or_default();
        let places: Vec<_> =
            done.iter().map(|step| STEPS.iter().position(|of| of == step).unwrap()).collect();
        // A step begins once the journal has the end of the one before, which then never runs again.
        assert!(places.is_sorted(), "{}: {done:?}", run.id);
        assert_eq!(done.iter().copied().collect::<BTreeSet<_>>(), expected, "{}: {done:?}", run.id);
        // The hotel is undone twice by its retry.
        repeated += places.len() - expected.len() - usize::from(expected.contains("undo_hotel"));
    }
    (runs.len(), repeated)
}

/// Returns the clean-up steps that the run must have: a run may be out of time before it has booked everything.
fn judge_journal(run: &RunId, records: &[Record]) -> BTreeSet<&'static str> {
    let end = end_of(number_of(run));
    let ended = matches!(records.last(), Some(Record::RunEnded { status, .. }) if *status == end);
    assert!(ended, "{run}: {:?}", records.last());
    let began: Vec<usize> = (0..records.len())
        .filter(|at| matches!(records[*at], Record::CleanUpStarted { status, .. } if status == end))
        .collect();
    assert_eq!(began.len(), 1, "{run} cleans up once");
    let done = records[began[0]..].iter().filter_map(|record| match record {
        Record::ExecutionSucceeded { step, .. } | Record::ExecutionFailed { step, .. } => Some(&**step),
        _ => None,
    });
    let has = |name: &str| {
        records
            .iter()
            .any(|record| matches!(record, Record::EventLogged { event, .. } if event.name() == name))
    };
    let booked = [has("Hotel"), has("Flight"), true];
    let expected: Vec<&str> =
        STEPS.into_iter().zip(booked).filter(|(_, has)| *has).map(|(step, _)| step).collect();
    assert_eq!(done.collect::<Vec<_>>(), expected, "the clean-up of {run}");
    expected.into_iter().collect()
}

/// The number of kills: `KILLS=100` makes more than a test needs each time.
fn kills() -> u32 {
    std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20)
}

#[test]
fn clean_up_survives_kills() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return work(Path::new(&folder), std::env::var_os(LAST).is_some());
    }
    let folder = tempfile::tempdir().unwrap();
    let (folder, kills, mut killed, mut at_work) = (folder.path(), kills(), 0, 0);
    while killed < kills {
        let mut worker = Worker::start(folder, false);
        let (since, before) = (Instant::now(), lines(folder).len());
        // Only a process that performs an effect of clean-up right now is killed.
        loop {
            assert!(since.elapsed() < PATIENCE, "no clean-up begins");
            assert!(worker.0.try_wait().unwrap().is_none(), "a worker ended by itself");
            let now = lines(folder);
            if now.len() > before + 40 + fastrand::usize(..60) && open_effects(&now[before..]) > 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(worker);
        killed += 1;
        at_work += u32::from(open_effects(&lines(folder)[before..]) > 0);
    }
    let mut last = Worker::start(folder, true);
    let since = Instant::now();
    while last.0.try_wait().unwrap().is_none() {
        assert!(since.elapsed() < PATIENCE, "the last worker does not finish");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(last.0.wait().unwrap().success(), "the last worker failed");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (runs, repeated) = runtime.block_on(judge(folder));
    eprintln!("{killed} kills, {at_work} while an effect was open: {runs} runs, {repeated} effects repeated");
    assert!(at_work > kills / 2 && repeated > 0, "too few kills hit a clean-up step");
}
