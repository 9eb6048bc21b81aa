//! Redriven runs survive a crash behind each batch of their journals (S39): a journal that is cut there leads to the
//! same log, and repeats no execution that had succeeded.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::scheduler::Cause;
use workflow_core::store::{EventStore as _, MemoryStore, Position, Record, RunSummary, Write};
use workflow_core::{ExecutionId, Redrive, RunHandle, RunId, RunOptions, RunStatus};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note, Part};

/// The most redrives of a run.
const REDRIVES: usize = 10;

/// The executions that a process called.
#[derive(Debug, Clone, Default)]
struct Calls(Arc<Mutex<Vec<ExecutionId>>>);

impl Calls {
    /// Notes a call. Fails up to this attempt.
    fn note(&self, info: &RunInfo, until: u32) -> Result<(), StepError> {
        self.0.lock().unwrap().push(info.execution());
        if info.attempt() > until { Ok(()) } else { Err(StepError::permanent("not mended")) }
    }
}

/// A run at its end: output, and its log regardless of order.
#[derive(Debug, PartialEq)]
struct Ended {
    output: Done,
    log: Vec<String>,
    executions: Vec<(String, u64)>,
}

/// A workflow that crashes, and the outside world: `meanwhile` acts on the run between two redrives.
async fn crashes<W>(workflow: fn(Calls) -> W, begin: u32, meanwhile: impl AsyncFn(&RunHandle<W>, usize))
where
    W: Workflow<Output = Done>,
{
    let store = Arc::<MemoryStore>::default();
    let engine = engine(workflow(Calls::default()), &store);
    let run = engine.start_with::<W>(Begin(begin), RunOptions::new().id("r")).await.unwrap();
    let uninterrupted = to_its_end(&engine, run, &meanwhile).await;
    drop(engine);
    let records = read(&store).await;
    let redrives = records.iter().filter(|record| matches!(record, Record::RunRedriven { .. })).count();
    assert!(redrives > 0, "nothing was redriven");
    for cut in (2..=records.len()).filter(|cut| is_between_batches(records.get(*cut))) {
        let (store, calls) = (Arc::new(cut_off(&records[..cut]).await), Calls::default());
        let engine = self::engine(workflow(calls.clone()), &store);
        let run = engine.attach::<W>("r").await.unwrap_or_else(|error| panic!("behind {cut}: {error}"));
        let ended = to_its_end(&engine, run, &meanwhile).await;
        assert_eq!(ended, uninterrupted, "cut behind record {cut}: {:#?}", &records[cut - 1]);
        let succeeded = succeeded(&records[..cut]);
        let again = calls.0.lock().unwrap().iter().copied().find(|it| succeeded.contains(it));
        assert_eq!(again, None, "cut behind record {cut}: it had succeeded");
    }
}

fn engine<W: Workflow>(workflow: W, store: &Arc<MemoryStore>) -> Engine {
    let builder = Engine::builder().replay_check(true).workflow(workflow).store(Arc::clone(store));
    builder.clock(VirtualClock::new()).build().unwrap()
}

/// Redrives the run until it completes.
async fn to_its_end<W: Workflow<Output = Done>>(
    engine: &Engine,
    mut run: RunHandle<W>,
    meanwhile: &impl AsyncFn(&RunHandle<W>, usize),
) -> Ended {
    for _ in 0..=REDRIVES {
        let redrives = run.report_so_far().await.unwrap().redrives.len();
        meanwhile(&run, redrives).await;
        if let Ok(output) = run.outcome().await {
            let report = run.report().await.unwrap();
            let event = |logged: &workflow_core::report::LoggedEvent| {
                format!("{} {}", logged.event, logged.value.to_json().unwrap_or_default())
            };
            let mut log: Vec<String> = report.log.iter().map(event).collect();
            log.sort();
            let executions = report.steps.iter().map(|step| (step.step.to_string(), step.executions));
            return Ended { output, log, executions: executions.collect() };
        }
        run = engine.redrive_with::<W>(run.id().clone(), Redrive::new().despite_clean_up()).await.unwrap();
    }
    let records = engine.history(run.id()).await.unwrap();
    let lines: Vec<String> = records.iter().skip(1).map(|it| serde_json::to_string(it).unwrap()).collect();
    panic!("the run does not complete: {:?}\n{}", run.outcome().await.err(), lines.join("\n"));
}

async fn read(store: &MemoryStore) -> Vec<Record> {
    let records = store.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
    // As a store of bytes returns them.
    let read = |record: &Record| serde_json::from_slice(&serde_json::to_vec(record).unwrap()).unwrap();
    records.iter().map(read).collect()
}

/// Whether a write may end before this record: it does not belong to the batch before it.
fn is_between_batches(next: Option<&Record>) -> bool {
    !matches!(
        next,
        Some(
            Record::EventLogged { cause: Cause::Execution(_) | Cause::Failure(_), .. }
                | Record::TimerSet { .. }
                | Record::RunEnded { status: RunStatus::Completed, .. }
        )
    )
}

/// A store whose journal ends behind these records.
async fn cut_off(records: &[Record]) -> MemoryStore {
    let Record::RunStarted { workflow, at, .. } = &records[0] else { panic!("no beginning") };
    let run = RunSummary::running(Arc::clone(workflow), *at);
    let of_end = |record: &&Record| {
        matches!(record, Record::CleanUpStarted { .. } | Record::RunEnded { .. } | Record::RunRedriven { .. })
    };
    let run = match records.iter().rev().find(of_end) {
        Some(Record::RunEnded { status, .. }) => run.ended(*status),
        Some(Record::CleanUpStarted { .. }) => run.cleaning_up(),
        _ => run,
    };
    let store = MemoryStore::default();
    store.append(&RunId::from("r"), Position(0), Write { records: records.to_vec(), run }).await.unwrap();
    store
}

/// The executions that succeeded.
fn succeeded(records: &[Record]) -> BTreeSet<ExecutionId> {
    let succeeded = records.iter().filter_map(|record| match record {
        Record::ExecutionSucceeded { execution, .. } => Some(*execution),
        _ => None,
    });
    succeeded.collect()
}

/// Two steps, each of which fails twice.
struct Fails(Calls);

#[workflow]
impl Fails {
    #[step]
    async fn make(&self, begin: &Begin, info: &RunInfo) -> Result<Item, StepError> {
        self.0.note(info, 2)?;
        Ok(Item(begin.0))
    }

    #[step]
    async fn beside(&self, _begin: &Begin) -> Part {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Part(5)
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part, info: &RunInfo) -> Result<Done, StepError> {
        self.0.note(info, 2)?;
        Ok(Done(item.0 + part.0))
    }
}

#[tokio::test(start_paused = true)]
async fn steps_that_fail_again() {
    crashes(Fails, 1, async |_, _| {}).await;
}

/// Branches that fail, in a fan-out that waits for all of them, and below one of these.
struct Branches(Calls);

#[workflow]
impl Branches {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(2).wait_all()
    }

    #[step]
    async fn split_again(&self, item: &Item) -> FanOut<Note> {
        (0..item.0).map(Note).collect::<FanOut<_>>()
    }

    #[step]
    async fn work(&self, item: &Item, note: &Note, info: &RunInfo) -> Result<Part, StepError> {
        tokio::time::sleep(Duration::from_secs(u64::from(note.0))).await;
        self.0.note(info, u32::from(note.0 == 1) * item.0)?;
        Ok(Part(note.0))
    }

    #[step]
    async fn gather_again(&self, parts: Gather<Part, Note>, info: &RunInfo) -> Result<Gathered, StepError> {
        self.0.note(info, 1)?;
        Ok(Gathered(parts.ok().map(|part| part.0).sum()))
    }

    #[step]
    async fn gather(&self, sums: Gather<Gathered, Item>) -> Done {
        Done(sums.ok().map(|sum| sum.0).sum())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
struct Gathered(u32);

#[tokio::test(start_paused = true)]
async fn fan_outs_whose_branches_fail_on_two_levels() {
    crashes(Branches, 4, async |_, _| {}).await;
}

/// Asks, waits for a timer and works, all at the time of a cancel.
struct Cancelled(Calls);

#[workflow]
impl Cancelled {
    #[step]
    async fn wake(&self, begin: &Begin) -> Timer<Part> {
        Timer::after(Duration::from_secs(u64::from(begin.0)), Part(begin.0))
    }

    #[precondition]
    async fn is_second(begin: &Begin, info: &RunInfo) -> bool {
        let _ = (begin, info);
        tokio::time::sleep(Duration::from_secs(1)).await;
        true
    }

    #[step(precondition = is_second)]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Item, StepError> {
        tokio::time::sleep(Duration::from_secs(if info.attempt() == 1 { 1_000 } else { 1 })).await;
        self.0.note(info, 1)?;
        Ok(Item(begin.0))
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part, note: &Note) -> Done {
        Done(item.0 + part.0 + note.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_while_it_works_and_waits() {
    let meanwhile = async |run: &RunHandle<Cancelled>, redrives: usize| {
        if run.status().is_ended() {
            return;
        }
        if redrives == 0 {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let _ = run.cancel("once").await;
        } else if run.settled().await == RunStatus::Waiting {
            let report = run.report_so_far().await.unwrap();
            if report.log.iter().all(|logged| &*logged.event != "Note") {
                let _ = run.send(Note(100)).await;
            }
        }
    };
    crashes(Cancelled, 20, meanwhile).await;
}

/// Fails twice beside an execution that runs and a question that is open, and undoes its item at each end.
struct CleansUp(Calls);

#[workflow]
impl CleansUp {
    #[step]
    async fn make(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn beside(&self, _begin: &Begin, info: &RunInfo) -> Part {
        // Dropped by the clean-up, twice.
        tokio::time::sleep(Duration::from_secs(if info.attempt() < 3 { 1_000 } else { 1 })).await;
        Part(5)
    }

    #[precondition]
    async fn is_late(_item: &Item) -> bool {
        tokio::time::sleep(Duration::from_secs(2)).await;
        true
    }

    #[step(precondition = is_late)]
    async fn note(&self, item: &Item) -> Amount {
        Amount(item.0)
    }

    #[step]
    async fn fail(&self, _item: &Item, info: &RunInfo) -> Result<(), StepError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.note(info, 2)
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part, amount: &Amount) -> Done {
        Done(item.0 + part.0 + amount.0)
    }

    #[step(on_end)]
    async fn undo(&self, _item: &Item, info: &RunInfo) {
        assert!(info.ending().is_some());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
struct Amount(u32);

// S31
#[tokio::test(start_paused = true)]
async fn a_run_that_cleans_up_after_each_end() {
    crashes(CleansUp, 1, async |_, _| {}).await;
}
