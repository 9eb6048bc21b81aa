//! Steps that end their process, and effects that must not happen twice, over a file that is written by processes one
//! after the other (S35, S69).

use std::collections::HashMap;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use workflow_core::prelude::*;
use workflow_core::store::{Record, StoredRun};
use workflow_core::{ErrorClass, RunId, RunOptions, RunStatus, StartError, StepFailed};
use workflow_redb::{OpenError, RedbStore};

use crate::ledger::{Ledger, Line, lines};
use crate::verdict::{all_runs, records_of};

/// The folder of a process of these tests.
const FOLDER: &str = "WORKFLOW_REDB_DOUBT_FOLDER";

/// How many runs there are beside one that ends its process.
const NEIGHBOURS: u32 = 8;

/// How many runs a process of the second test begins at a time.
const AT_A_TIME: u32 = 16;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Paid;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(bool);

/// Its step aborts the process for number 0, and otherwise takes longer than such a process lives.
struct Poison;

#[workflow]
impl Poison {
    #[step]
    async fn work(&self, begin: &Begin) -> Paid {
        tokio::time::sleep(Duration::from_millis(5)).await;
        if begin.0 == 0 {
            std::process::abort();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        Paid
    }

    #[step]
    async fn end(&self, _paid: &Paid) -> Done {
        Done(true)
    }
}

/// Pays once, or asks a person.
struct Pays(Ledger);

#[workflow]
impl Pays {
    #[step(at_most_once)]
    async fn pay(&self, begin: &Begin, info: &RunInfo) -> Paid {
        self.0.did(begin.0, info);
        tokio::time::sleep(Duration::from_millis(u64::from(begin.0 % 5))).await;
        Paid
    }

    #[step(catches = [pay])]
    async fn ask(&self, failed: &StepFailed) -> Done {
        assert_eq!(failed.class, ErrorClass::InDoubt);
        Done(false)
    }

    #[step]
    async fn end(&self, _paid: &Paid) -> Done {
        Done(true)
    }
}

/// The folder, in a process that a test started.
fn given() -> Option<std::path::PathBuf> {
    std::env::var_os(FOLDER).map(Into::into)
}

/// Starts this test in another process, which ends at the latest when this one does.
fn process(test: &str, folder: &Path, role: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(FOLDER, folder).env("WORKFLOW_REDB_DOUBT_ROLE", role);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits for the end of such a process. Returns whether it succeeded.
fn succeeds(mut process: Child) -> bool {
    // A wait would close the pipe, and end the process.
    let _pipe = process.stdin.take();
    process.wait().unwrap().success()
}

/// Works in such a process.
fn works<F: Future<Output = ()>>(folder: &Path, work: impl FnOnce(RedbStore) -> F) {
    std::thread::spawn(|| {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(1);
    });
    let store = loop {
        match RedbStore::open(folder.join("runs.redb")) {
            Ok(store) => break store,
            Err(OpenError::InUse { .. }) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("the file cannot be opened: {error:?}"),
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(work(store));
}

/// Starts runs that the store does not have, and waits for all of them.
async fn completes<W: Workflow<Output = Done>>(engine: &Engine, numbers: impl Iterator<Item = u32>) {
    engine.resume_open_runs().await.unwrap();
    let mut ends = JoinSet::new();
    for number in numbers {
        let id = RunId::new(format!("r-{number:05}"));
        let run = match engine.start_with::<W>(Begin(number), RunOptions::new().id(id.clone())).await {
            Err(StartError::DuplicateRun { .. }) => engine.attach::<W>(id).await.unwrap(),
            run => run.unwrap(),
        };
        ends.spawn(async move { drop(run.outcome().await) });
    }
    while ends.join_next().await.is_some() {}
}

async fn stored(folder: &Path) -> (RedbStore, Vec<StoredRun>) {
    let store = RedbStore::open(folder.join("runs.redb")).unwrap();
    let runs = all_runs(&store).await;
    (store, runs)
}

// S35
#[tokio::test]
async fn a_step_that_aborts_its_process_fails_after_five_attempts_and_its_neighbours_complete() {
    if let Some(folder) = given() {
        return std::thread::spawn(move || {
            works(&folder, async |store| {
                let engine = Engine::builder().workflow(Poison).store(store).build().unwrap();
                completes::<Poison>(&engine, 0..=NEIGHBOURS).await;
                engine.shut_down(Duration::from_mins(1)).await;
            });
        })
        .join()
        .unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "doubt::a_step_that_aborts_its_process_fails_after_five_attempts_and_its_neighbours_complete";
    let mut aborted = 0;
    while !succeeds(process(test, folder.path(), "works")) {
        aborted += 1;
        assert!(aborted <= 5, "the step aborts its process for ever");
    }
    assert_eq!(aborted, 5);
    let (store, runs) = stored(folder.path()).await;
    assert_eq!(runs.len(), NEIGHBOURS as usize + 1);
    for run in &runs {
        let is_poison = run.id.as_str() == "r-00000";
        let expected = if is_poison { RunStatus::Failed } else { RunStatus::Completed };
        assert_eq!(run.run.status, expected, "{}", run.id);
        let records = records_of(&store, run).await;
        let interrupted = |record: &Record| {
            matches!(record, Record::ExecutionFailed { class: ErrorClass::Interrupted, .. })
        };
        assert_eq!(records.iter().any(interrupted), is_poison, "{}", run.id);
    }
}

// S69
#[tokio::test]
async fn an_effect_happens_at_most_once_however_often_its_process_is_killed() {
    if let Some(folder) = given() {
        let is_last = std::env::var("WORKFLOW_REDB_DOUBT_ROLE").unwrap() == "last";
        return std::thread::spawn(move || {
            works(&folder.clone(), async |store| {
                let begun = u32::try_from(all_runs(&store).await.len()).unwrap();
                let engine = Engine::builder().workflow(Pays(Ledger::of(&folder)));
                let engine = engine.store(store).build().unwrap();
                // Each process has new runs, and those that others left.
                let mut next = begun;
                loop {
                    completes::<Pays>(&engine, next.saturating_sub(2 * AT_A_TIME)..next).await;
                    if is_last {
                        return;
                    }
                    next += AT_A_TIME;
                }
            });
        })
        .join()
        .unwrap();
    }
    let kills = std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20_u32);
    let folder = tempfile::tempdir().unwrap();
    let test = "doubt::an_effect_happens_at_most_once_however_often_its_process_is_killed";
    let mut moments = fastrand::Rng::new();
    for _ in 0..kills {
        let before = lines(folder.path()).len();
        let mut worker = process(test, folder.path(), "works");
        // It is killed at work, not while it opens the file.
        let since = Instant::now();
        while lines(folder.path()).len() == before && since.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(moments.u64(0..60)));
        worker.kill().unwrap();
        assert_eq!(worker.wait().unwrap().signal(), Some(9), "the process ended by itself");
    }
    assert!(succeeds(process(test, folder.path(), "last")));

    let mut effects: HashMap<String, usize> = HashMap::new();
    for line in lines(folder.path()) {
        if let Line::Did(deed) = line {
            *effects.entry(deed.run).or_default() += 1;
        }
    }
    let (store, runs) = stored(folder.path()).await;
    let mut in_doubt = 0;
    for run in &runs {
        assert_eq!(run.run.status, RunStatus::Completed, "{}", run.id);
        let happened = effects.get(run.id.as_str()).copied().unwrap_or_default();
        let doubted =
            |record: &Record| matches!(record, Record::ExecutionFailed { class: ErrorClass::InDoubt, .. });
        let is_in_doubt = records_of(&store, run).await.iter().any(doubted);
        in_doubt += usize::from(is_in_doubt);
        // Without doubt it happened once. In doubt it happened once or never.
        assert!(
            happened == 1 || happened == 0 && is_in_doubt,
            "{}: {happened} effects, {is_in_doubt}",
            run.id
        );
    }
    eprintln!("{kills} kills: {} runs, of which {in_doubt} in doubt, {} effects", runs.len(), effects.len());
    assert!(in_doubt > 0 && effects.len() >= kills as usize, "too little happened to say anything");
}
