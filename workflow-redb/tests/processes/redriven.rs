//! Redriven runs in processes that are killed (S39): each run fails several times, and is redriven until it completes.
//! In the end every run has completed, with every effect, and no effect that the store had confirmed was repeated.
//!
//! One effect must not happen twice (S69). Where it is in doubt, the worker looks into the ledger: if the effect is not
//! there, it is made again by name; if it is there, the run stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use workflow_core::prelude::*;
use workflow_core::store::Record;
use workflow_core::{ErrorClass, Redrive, RunError, RunHandle, RunId, RunOptions, RunStatus};
use workflow_redb::RedbStore;

use crate::ledger::{Deed, Ledger, Line, lines};
use crate::verdict::{all_runs, records_of};
use crate::worker::witnessed;

/// The number of active runs.
const AT_A_TIME: u32 = 16;

/// The items of each fan-out. Each third of them fails at first.
const ITEMS: u32 = 7;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Item(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Sum(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Charged;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u32);

/// Every step records its effect. `work` fails once in some branches, `charge` once, and `end` twice.
struct Mends(Ledger);

#[workflow]
impl Mends {
    #[step]
    async fn split(&self, _begin: &Begin, info: &RunInfo) -> FanOut<Item> {
        self.0.did(0, info);
        (0..ITEMS).map(Item).collect::<FanOut<_>>().concurrency(3).wait_all()
    }

    #[step]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        self.0.did(item.0, info);
        tokio::time::sleep(Duration::from_millis(u64::from(item.0))).await;
        if item.0.is_multiple_of(3) && info.attempt() == 1 {
            return Err(StepError::permanent("not mended"));
        }
        Ok(Part(item.0))
    }

    #[step]
    async fn gather(&self, parts: Gather<Part>, info: &RunInfo) -> Sum {
        self.0.did(0, info);
        Sum(parts.ok().map(|part| part.0).sum())
    }

    #[step(at_most_once)]
    async fn charge(&self, sum: &Sum, info: &RunInfo) -> Result<Charged, StepError> {
        // Without an effect, so that an effect there is one too many.
        if info.attempt() == 1 {
            return Err(StepError::permanent("not mended"));
        }
        self.0.did(sum.0, info);
        tokio::time::sleep(Duration::from_millis(2)).await;
        Ok(Charged)
    }

    #[step]
    async fn end(&self, sum: &Sum, _charged: &Charged, info: &RunInfo) -> Result<Done, StepError> {
        self.0.did(sum.0, info);
        if info.attempt() < 3 { Err(StepError::permanent("not mended")) } else { Ok(Done(sum.0)) }
    }
}

/// Keeps a number of runs active until the process is killed; the last process ends when every run has completed.
pub(crate) async fn keeps_runs_going(folder: &Path, store: RedbStore, ledger: Ledger, is_last: bool) {
    let folder: Arc<Path> = folder.into();
    let engine = Engine::builder().workflow(Mends(ledger.clone()));
    let engine = engine.store(witnessed(&store, &ledger)).build().unwrap();
    let resumed = engine.resume_open_runs().await.unwrap();
    assert!(resumed.refused.is_empty(), "{:?}", resumed.refused);
    let (mut runs, mut next) = (JoinSet::new(), 0);
    // Runs that a killed process left open, and those that it left behind their end.
    for run in all_runs(&store).await {
        next = next.max(number_of(&run.id) + 1);
        if run.run.status != RunStatus::Completed {
            runs.spawn(attached(Arc::clone(&folder), engine.clone(), run.id));
        }
    }
    loop {
        while runs.len() < AT_A_TIME as usize && !is_last {
            runs.spawn(begun(Arc::clone(&folder), engine.clone(), next, ledger.clone()));
            next += 1;
        }
        let Some(ended) = runs.join_next().await else { break };
        ended.unwrap();
    }
    engine.cancel_all("all is done", Duration::from_mins(5)).await;
}

async fn begun(folder: Arc<Path>, engine: Engine, number: u32, ledger: Ledger) {
    let options = RunOptions::new().id(format!("r-{number:06}"));
    let run = engine.start_with::<Mends>(Begin, options).await.unwrap();
    ledger.add(&Line::Started { run: run.id().to_string() });
    until_it_completes(&folder, engine, run).await;
}

async fn attached(folder: Arc<Path>, engine: Engine, run: RunId) {
    let run = engine.attach::<Mends>(run).await.unwrap();
    until_it_completes(&folder, engine, run).await;
}

async fn until_it_completes(folder: &Path, engine: Engine, mut run: RunHandle<Mends>) {
    loop {
        let mut redrive = Redrive::new();
        match run.outcome().await {
            Ok(done) => return assert_eq!(done, Done((0..ITEMS).sum())),
            Err(RunError::StepFailed { class: ErrorClass::InDoubt, .. }) => {
                // The bank says that it was charged.
                if charges(&lines(folder), run.id().as_str()) > 0 {
                    return;
                }
                redrive = redrive.again("charge");
            }
            Err(_) => {}
        }
        run = engine.redrive_with::<Mends>(run.id().clone(), redrive).await.unwrap();
    }
}

/// How often the run was charged.
fn charges(lines: &[Line], run: &str) -> usize {
    let is_charge =
        |line: &&Line| matches!(line, Line::Did(deed) if deed.run == run && deed.step == "charge");
    lines.iter().filter(is_charge).count()
}

fn number_of(run: &RunId) -> u32 {
    run.as_str().strip_prefix("r-").and_then(|number| number.parse().ok()).unwrap()
}

/// The state of the ledger and the store in the end.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) runs: usize,
    pub(crate) redrives: usize,
    /// Resumes of runs that had been redriven before.
    pub(crate) resumed: usize,
    pub(crate) effects: usize,
    /// Runs that ended with an effect that is there and in doubt.
    pub(crate) in_doubt: usize,
    /// Effects that were in doubt and not there, and were made again.
    pub(crate) again: usize,
}

pub(crate) fn judge(folder: &Path) -> Found {
    let lines = lines(folder);
    let store = RedbStore::open(folder.join("runs.redb")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut found = runtime.block_on(of_journals(&store));
    let stored = runtime.block_on(all_runs(&store)).into_iter().map(|run| run.id.to_string());
    let stored: BTreeSet<String> = stored.collect();
    for line in &lines {
        if let Line::Started { run } = line {
            assert!(stored.contains(run), "run {run} was lost");
        }
    }
    // No effect follows the store's confirmation that its execution succeeded.
    let (mut confirmed, mut effects) = (BTreeSet::new(), BTreeMap::<(String, String), Vec<u32>>::new());
    for line in &lines {
        match line {
            Line::Kept { run, execution } => drop(confirmed.insert((run.clone(), *execution))),
            Line::Did(Deed { run, key, execution, attempt, .. }) => {
                let is_over = confirmed.contains(&(run.clone(), *execution));
                assert!(!is_over, "{key} of {run} was repeated after its success was confirmed");
                effects.entry((run.clone(), key.clone())).or_default().push(*attempt);
            }
            _ => {}
        }
    }
    for ((run, key), attempts) in &effects {
        assert!(attempts.is_sorted(), "the attempts of {key} of {run} are not numbered on: {attempts:?}");
    }
    found.effects = effects.len();
    // `split`, `gather`, `charge`, `end` and a `work` per item; a run in doubt has no `end`.
    let expected = found.runs * (4 + ITEMS as usize) - found.in_doubt;
    assert_eq!(found.effects, expected, "an effect is missing, or has two keys");
    let mut charged = BTreeMap::<&str, usize>::new();
    for line in &lines {
        if let Line::Did(deed) = line
            && deed.step == "charge"
        {
            *charged.entry(&deed.run).or_default() += 1;
        }
    }
    assert!(charged.values().all(|charges| *charges == 1), "charged twice: {charged:?}");
    assert_eq!(charged.len(), found.runs, "a run was not charged");
    found
}

async fn of_journals(store: &RedbStore) -> Found {
    let mut found = Found::default();
    for run in all_runs(store).await {
        let records = records_of(store, &run).await;
        let in_doubt = |record: &Record| matches!(record, Record::ExecutionFailed { class: ErrorClass::InDoubt, step, .. } if **step == *"charge");
        if run.run.status != RunStatus::Completed {
            let failed = records.iter().rev().find(|record| matches!(record, Record::ExecutionFailed { .. }));
            assert!(failed.is_some_and(in_doubt), "run {} was left: {failed:?}", run.id);
            found.in_doubt += 1;
        }
        let is_again =
            |record: &&Record| matches!(record, Record::RunRedriven { again, .. } if !again.is_empty());
        found.again += records.iter().filter(is_again).count();
        let is_redrive = |record: &Record| matches!(record, Record::RunRedriven { .. });
        let redrives = records.iter().filter(|record| is_redrive(record)).count();
        assert!(redrives >= 2, "run {} ended with {redrives} redrives", run.id);
        found.runs += 1;
        found.redrives += redrives;
        let first = records.iter().position(is_redrive).unwrap();
        let resumes = records[first..]
            .windows(2)
            .filter(|pair| matches!(pair[1], Record::RunResumed { .. }) && !is_redrive(&pair[0]));
        found.resumed += resumes.count();
    }
    found
}
