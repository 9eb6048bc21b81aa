//! Redriven runs in processes that are killed (S39): each run fails several times, and is redriven until it completes.
//! In the end every run has completed, with every effect, and no effect that the store had confirmed was repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use tokio::task::JoinSet;
use workflow_core::prelude::*;
use workflow_core::store::Record;
use workflow_core::{RunHandle, RunId, RunOptions, RunStatus};
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u32);

/// Every step records its effect. `work` fails once in some branches, and `end` twice.
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

    #[step]
    async fn end(&self, sum: &Sum, info: &RunInfo) -> Result<Done, StepError> {
        self.0.did(sum.0, info);
        if info.attempt() < 3 { Err(StepError::permanent("not mended")) } else { Ok(Done(sum.0)) }
    }
}

/// Keeps a number of runs active until the process is killed; the last process ends when every run has completed.
pub(crate) async fn keeps_runs_going(store: RedbStore, ledger: Ledger, is_last: bool) {
    let engine = Engine::builder().workflow(Mends(ledger.clone()));
    let engine = engine.store(witnessed(&store, &ledger)).build().unwrap();
    let resumed = engine.resume_open_runs().await.unwrap();
    assert!(resumed.refused.is_empty(), "{:?}", resumed.refused);
    let (mut runs, mut next) = (JoinSet::new(), 0);
    // Runs that a killed process left open, and those that it left behind their end.
    for run in all_runs(&store).await {
        next = next.max(number_of(&run.id) + 1);
        if run.run.status != RunStatus::Completed {
            runs.spawn(attached(engine.clone(), run.id));
        }
    }
    loop {
        while runs.len() < AT_A_TIME as usize && !is_last {
            runs.spawn(begun(engine.clone(), next, ledger.clone()));
            next += 1;
        }
        let Some(ended) = runs.join_next().await else { break };
        ended.unwrap();
    }
    engine.cancel_all("all is done", Duration::from_mins(5)).await;
}

async fn begun(engine: Engine, number: u32, ledger: Ledger) {
    let options = RunOptions::new().id(format!("r-{number:06}"));
    let run = engine.start_with::<Mends>(Begin, options).await.unwrap();
    ledger.add(&Line::Started { run: run.id().to_string() });
    until_it_completes(engine, run).await;
}

async fn attached(engine: Engine, run: RunId) {
    let run = engine.attach::<Mends>(run).await.unwrap();
    until_it_completes(engine, run).await;
}

async fn until_it_completes(engine: Engine, mut run: RunHandle<Mends>) {
    while run.outcome().await.is_err() {
        run = engine.redrive::<Mends>(run.id().clone()).await.unwrap();
    }
    assert_eq!(run.outcome().await.unwrap(), Done((0..ITEMS).sum()));
}

fn number_of(run: &RunId) -> u32 {
    run.as_str().strip_prefix("r-").and_then(|number| number.parse().ok()).unwrap()
}

/// What the ledger and the store say in the end.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) runs: usize,
    pub(crate) redrives: usize,
    /// Resumes of runs that had been redriven before.
    pub(crate) resumed: usize,
    pub(crate) effects: usize,
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
    // `split`, `gather`, `end` and a `work` per item.
    assert_eq!(found.effects, found.runs * (3 + ITEMS as usize), "an effect is missing, or has two keys");
    found
}

async fn of_journals(store: &RedbStore) -> Found {
    let mut found = Found::default();
    for run in all_runs(store).await {
        assert_eq!(run.run.status, RunStatus::Completed, "run {} was left", run.id);
        let records = records_of(store, &run).await;
        let is_redrive = |record: &Record| matches!(record, Record::RunRedriven { .. });
        let redrives = records.iter().filter(|record| is_redrive(record)).count();
        assert!(redrives >= 3, "run {} completed with {redrives} redrives", run.id);
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
