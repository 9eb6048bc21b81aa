//! A clean-up that is incomplete: where that is seen, and how its steps run again (S86).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::CleanUpReport;
use workflow_core::store::{EventStore, MemoryStore, Position, Record, RunQuery, RunSummary, Write};
use workflow_core::{RecordedRun, Redrive, RedriveError, RunHandle, RunId, RunOptions, RunStatus};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Part, until};

/// What steps did at a bank that is away, or at work.
#[derive(Debug, Clone, Default)]
struct Bank {
    lines: Arc<Mutex<Vec<String>>>,
    works: Arc<AtomicBool>,
    /// Whether the bank does not answer while it is away, or says so.
    hangs: bool,
}

impl Bank {
    async fn ask(&self, what: &str, info: &RunInfo) -> Result<(), StepError> {
        let doubt = if info.may_have_begun() { " may have begun" } else { "" };
        let line = format!("{what} {} {}{doubt}", info.attempt(), info.idempotency_key());
        self.lines.lock().unwrap().push(line);
        match self.works.load(Ordering::Relaxed) {
            true => Ok(()),
            false if self.hangs => std::future::pending().await,
            false => Err(StepError::permanent("away")),
        }
    }

    fn works(&self, works: bool) {
        self.works.store(works, Ordering::Relaxed);
    }

    /// The lines since the last call.
    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    fn note(&self, what: &str) {
        self.lines.lock().unwrap().push(what.into());
    }
}

/// Pays, and fails to ship, or hangs there.
#[derive(Clone)]
struct Shop(Bank);

#[workflow]
impl Shop {
    #[step]
    async fn reserve(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn pay(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn ship(&self, part: &Part) -> Result<Done, StepError> {
        self.0.note("ship");
        if part.0 == 1 { Err(StepError::permanent("no truck")) } else { std::future::pending().await }
    }

    #[step(on_end)]
    async fn release(&self, _item: &Item) {
        self.0.note("release");
    }

    #[step(on_end)]
    async fn refund(&self, _part: &Part, info: &RunInfo) -> Result<(), StepError> {
        self.0.ask("refund", info).await
    }
}

fn engine<W: Workflow>(workflow: W, store: &Arc<MemoryStore>) -> Engine {
    let engine = Engine::builder().replay_check(true).workflow(workflow).store(Arc::clone(store));
    engine.cleanup_within(Duration::from_secs(5)).clock(VirtualClock::new()).build().unwrap()
}

async fn start<W: Workflow>(engine: &Engine, begin: u32) -> RunHandle<W> {
    engine.start_with::<W>(Begin(begin), RunOptions::new().id("r").thread("t")).await.unwrap()
}

async fn records(store: &MemoryStore) -> Vec<Record> {
    store.read(&"r".into(), Position(0), usize::MAX).await.unwrap()
}

async fn summary(engine: &Engine) -> RunSummary {
    engine.runs(&RunQuery::new().run("r")).await.unwrap().remove(0).run
}

fn steps(steps: &[&str]) -> Vec<Arc<str>> {
    steps.iter().map(|step| Arc::from(*step)).collect()
}

/// The same by handle, after a reload, and by the journal.
async fn clean_up<W: Workflow>(run: &RunHandle<W>, workflow: W, store: &Arc<MemoryStore>) -> CleanUpReport {
    let live = run.report().await.unwrap().clean_up.clone().unwrap();
    let reloaded = engine(workflow, store).attach::<W>("r").await.unwrap();
    assert_eq!(reloaded.report().await.unwrap().clean_up.as_ref(), Some(&live));
    let recorded = RecordedRun::of(&RunId::from("r"), &records(store).await).unwrap();
    assert_eq!(recorded.report().clean_up.as_ref(), Some(&live));
    live
}

// S86
#[tokio::test(start_paused = true)]
async fn a_run_says_which_clean_up_steps_are_left_undone_and_is_found_by_it() {
    for hangs in [false, true] {
        let (store, bank) = (Arc::new(MemoryStore::default()), Bank { hangs, ..Bank::default() });
        let engine = engine(Shop(bank.clone()), &store);
        let run = start::<Shop>(&engine, 1).await;
        let outcome = run.outcome().await.unwrap_err().to_string();
        assert_eq!(bank.lines(), ["ship", "refund 1 r/0/refund/3", "release"]);
        assert_eq!(clean_up(&run, Shop(bank.clone()), &store).await.incomplete, steps(&["refund"]));
        assert_eq!(*summary(&engine).await.incomplete_clean_up, steps(&["refund"]));
        let explained = run.explain().await.unwrap();
        assert_eq!(explained.incomplete_clean_up, steps(&["refund"]));
        assert!(explained.to_string().contains(": failed, clean-up incomplete: refund\n"), "{explained}");
        let query = RunQuery::new().incomplete_clean_up();
        assert!(query.only_incomplete_clean_up());
        assert_eq!(engine.runs(&query.clone()).await.unwrap().len(), 1);
        let others = engine.runs(&query.clone().status(RunStatus::Cancelled)).await.unwrap();
        assert!(others.is_empty());

        bank.works(true);
        let again = engine.redrive_with::<Shop>("r", Redrive::new().clean_up()).await.unwrap();
        assert_eq!(again.outcome().await.unwrap_err().to_string(), outcome, "the outcome stays");
        let doubt = if hangs { " may have begun" } else { "" };
        assert_eq!(bank.lines(), [format!("refund 2 r/0/refund/3{doubt}")], "and nothing else ran");
        assert!(clean_up(&again, Shop(bank.clone()), &store).await.incomplete.is_empty());
        let run = summary(&engine).await;
        assert_eq!((run.status, run.incomplete_clean_up.len()), (RunStatus::Failed, 0));
        assert!(run.ended.is_some() && run.quality.is_some());
        assert!(engine.runs(&query).await.unwrap().is_empty());
        let report = again.report().await.unwrap();
        assert_eq!(report.redrives.len(), 1);
        assert!(report.redrives[0].clean_up);
        assert!(report.redrives[0].to_string().contains("redrove its clean-up"), "{}", report.redrives[0]);
        let refused = engine.redrive_with::<Shop>("r", Redrive::new().clean_up()).await.unwrap_err();
        assert!(matches!(refused, RedriveError::NothingToCleanUp { .. }), "{refused}");
    }
}

// S86
#[tokio::test(start_paused = true)]
async fn a_clean_up_may_be_redriven_until_it_is_complete_and_the_run_after_that() {
    let (store, bank) = (Arc::new(MemoryStore::default()), Bank::default());
    let engine = engine(Shop(bank.clone()), &store);
    let run = start::<Shop>(&engine, 2).await;
    until(async || bank.lines() == ["ship"]).await;
    run.cancel("enough").await.unwrap();
    for attempt in [2, 3] {
        let _ = bank.lines();
        let run = engine.redrive_with::<Shop>("r", Redrive::new().clean_up()).await.unwrap();
        let Err(RunError::Cancelled { reason }) = run.outcome().await else { panic!("it was cancelled") };
        assert_eq!(&*reason, "enough");
        assert_eq!(bank.lines(), [format!("refund {attempt} r/0/refund/3")]);
        assert_eq!(clean_up(&run, Shop(bank.clone()), &store).await.incomplete, steps(&["refund"]));
    }
    // A redrive of the run runs it, and its next end has a clean-up of its own.
    let refused = engine.redrive::<Shop>("r").await.unwrap_err();
    assert!(matches!(refused, RedriveError::CleanedUp { .. }));
    let run = engine.redrive_with::<Shop>("r", Redrive::new().despite_clean_up()).await.unwrap();
    until(async || bank.lines().contains(&"ship".into())).await;
    bank.works(true);
    run.cancel("enough again").await.unwrap();
    assert_eq!(bank.lines(), ["refund 1 r/0/refund/3/1", "release"]);
    assert!(clean_up(&run, Shop(bank.clone()), &store).await.incomplete.is_empty());
}

// S86: a process ends behind each record of the clean-up that was redriven.
#[tokio::test(start_paused = true)]
async fn a_redriven_clean_up_survives_a_crash_behind_each_record() {
    let (store, bank) = (Arc::new(MemoryStore::default()), Bank::default());
    let first = engine(Shop(bank.clone()), &store);
    start::<Shop>(&first, 1).await.outcome().await.unwrap_err();
    bank.works(true);
    let run = first.redrive_with::<Shop>("r", Redrive::new().clean_up()).await.unwrap();
    let outcome = run.outcome().await.unwrap_err().to_string();
    let all = records(&store).await;
    let redriven = all.iter().position(|record| matches!(record, Record::CleanUpRedriven { .. })).unwrap();
    for cut in redriven + 1..=all.len() {
        let store = Arc::new(MemoryStore::default());
        let run = RunSummary::begun_by(&all[0]).unwrap().cleaning_up();
        let write = Write { records: all[..cut].to_vec(), run };
        store.append(&"r".into(), Position(0), write).await.unwrap();
        let _ = bank.lines();
        let run = engine(Shop(bank.clone()), &store).attach::<Shop>("r").await.unwrap();
        assert_eq!(run.outcome().await.unwrap_err().to_string(), outcome);
        let lines = bank.lines();
        assert!(lines.iter().all(|line| line.starts_with("refund 2 r/0/refund/3")), "{lines:?}");
        assert!(run.report().await.unwrap().clean_up.as_ref().unwrap().incomplete.is_empty());
    }
}

// S86, S31: a journal whose clean-up had one time for all of its steps, as earlier releases wrote it.
#[tokio::test(start_paused = true)]
async fn a_clean_up_that_an_earlier_release_stopped_is_incomplete_and_can_be_redriven() {
    let (store, bank) = (Arc::new(MemoryStore::default()), Bank::default());
    start::<Shop>(&engine(Shop(bank.clone()), &store), 1).await.outcome().await.unwrap_err();
    let mut all = records(&store).await;
    let (begins, end) = (
        all.iter().position(|record| matches!(record, Record::CleanUpStarted { .. })).unwrap(),
        all.pop().unwrap(),
    );
    all.truncate(begins + 1);
    all.push(end);
    let store = Arc::new(MemoryStore::default());
    // Its summary has no word of that.
    let run = RunSummary::begun_by(&all[0]).unwrap().ended(RunStatus::Failed);
    store.append(&"r".into(), Position(0), Write { records: all, run }).await.unwrap();
    let engine = engine(Shop(bank.clone()), &store);
    assert!(engine.runs(&RunQuery::new().incomplete_clean_up()).await.unwrap().is_empty());
    let run = engine.attach::<Shop>("r").await.unwrap();
    assert_eq!(clean_up(&run, Shop(bank.clone()), &store).await.incomplete, steps(&["refund", "release"]));
    let _ = bank.lines();
    bank.works(true);
    let run = engine.redrive_with::<Shop>("r", Redrive::new().clean_up()).await.unwrap();
    run.outcome().await.unwrap_err();
    assert_eq!(bank.lines(), ["refund 2 r/0/refund/3 may have begun", "release"]);
    assert!(clean_up(&run, Shop(bank.clone()), &store).await.incomplete.is_empty());
}

/// Cleans up at most once, and asks before another step.
#[derive(Clone)]
struct Careful(Bank);

#[workflow]
impl Careful {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<Done, StepError> {
        Err(StepError::permanent("broken"))
    }

    #[step(on_end, precondition = may)]
    async fn notify(&self, _begin: &Begin) {
        self.0.note("notify");
    }

    #[precondition]
    fn may(&self, _begin: &Begin) -> Result<bool, StepError> {
        if self.0.works.load(Ordering::Relaxed) { Ok(true) } else { Err(StepError::permanent("who knows")) }
    }

    #[step(on_end, at_most_once)]
    async fn refund(&self, _begin: &Begin, info: &RunInfo) -> Result<(), StepError> {
        self.0.ask("refund", info).await
    }
}

// S86, S69
#[tokio::test(start_paused = true)]
async fn a_step_in_doubt_runs_again_only_if_it_is_named() {
    let (store, bank) = (Arc::new(MemoryStore::default()), Bank { hangs: true, ..Bank::default() });
    let engine = engine(Careful(bank.clone()), &store);
    let run = start::<Careful>(&engine, 1).await;
    run.outcome().await.unwrap_err();
    assert_eq!(clean_up(&run, Careful(bank.clone()), &store).await.incomplete, steps(&["refund", "notify"]));
    let _ = bank.lines();
    bank.works(true);
    let run = engine.redrive_with::<Careful>("r", Redrive::new().clean_up()).await.unwrap();
    run.outcome().await.unwrap_err();
    assert_eq!(bank.lines(), ["notify"], "the precondition is asked again");
    assert_eq!(clean_up(&run, Careful(bank.clone()), &store).await.incomplete, steps(&["refund"]));
    let unknown = Redrive::new().clean_up().again("repay");
    let unknown = engine.redrive_with::<Careful>("r", unknown).await.unwrap_err();
    assert!(matches!(unknown, RedriveError::UnknownStep { .. }), "{unknown}");
    let run = engine.redrive_with::<Careful>("r", Redrive::new().clean_up().again("refund")).await.unwrap();
    run.outcome().await.unwrap_err();
    assert_eq!(bank.lines(), ["refund 3 r/0/refund/1 may have begun"]);
    assert!(clean_up(&run, Careful(bank.clone()), &store).await.incomplete.is_empty());
}

/// Completes, stalls, or runs a shop.
#[derive(Clone)]
struct Parent;

#[workflow]
impl Parent {
    #[step]
    async fn call(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        match begin.0 {
            0 => Ok(Done(0)),
            _ => Ok(children.run::<Shop>(begin.clone()).await?),
        }
    }
}

// S86
#[tokio::test(start_paused = true)]
async fn a_clean_up_of_a_child_or_of_a_run_without_one_is_not_redriven() {
    let (store, bank) = (Arc::new(MemoryStore::default()), Bank::default());
    let builder = Engine::builder().workflow(Parent).workflow(Shop(bank)).store(Arc::clone(&store));
    let engine = builder.build().unwrap();
    let redrive = || Redrive::new().clean_up();
    let done = engine.start::<Parent>(Begin(0)).await.unwrap();
    done.outcome().await.unwrap();
    let refused = engine.redrive_with::<Parent>(done.id().clone(), redrive()).await.unwrap_err();
    assert!(matches!(refused, RedriveError::Completed { .. }), "{refused}");
    let failed = start::<Parent>(&engine, 1).await;
    failed.outcome().await.unwrap_err();
    let refused = engine.redrive_with::<Parent>("r", redrive()).await.unwrap_err();
    assert!(matches!(refused, RedriveError::NothingToCleanUp { .. }), "{refused}");
    let child = engine.runs(&RunQuery::new().incomplete_clean_up()).await.unwrap().remove(0);
    assert_eq!(*child.run.incomplete_clean_up, steps(&["refund"]));
    let refused = engine.redrive_with::<Shop>(child.id, redrive()).await.unwrap_err();
    assert!(matches!(refused, RedriveError::Child { .. }), "{refused}");
}

// S86, S73, S76
#[tokio::test(start_paused = true)]
async fn a_deadline_or_a_limit_that_ended_the_run_does_not_keep_its_clean_up_from_running_again() {
    for by_deadline in [true, false] {
        let (store, bank) = (Arc::new(MemoryStore::default()), Bank::default());
        let builder = Engine::builder().workflow(Shop(bank.clone())).store(store).clock(VirtualClock::new());
        let builder = if by_deadline { builder } else { builder.max_executions_per_run(2) };
        let (engine, options) = (builder.build().unwrap(), RunOptions::new().id("r"));
        let deadline = VirtualClock::beginning() + Duration::from_hours(1);
        let options = if by_deadline { options.deadline(deadline) } else { options };
        let run = engine.start_with::<Shop>(Begin(2), options).await.unwrap();
        let outcome = run.outcome().await.unwrap_err().to_string();
        let _ = bank.lines();
        bank.works(true);
        let run = engine.redrive_with::<Shop>("r", Redrive::new().clean_up()).await.unwrap();
        assert_eq!(run.outcome().await.unwrap_err().to_string(), outcome);
        assert_eq!(bank.lines(), ["refund 2 r/0/refund/3"]);
        assert!(summary(&engine).await.incomplete_clean_up.is_empty());
    }
}

// S86: the tool of a store does the same, without an engine.
#[tokio::test(start_paused = true)]
async fn a_tool_redrives_a_clean_up_and_the_next_engine_runs_it() {
    let (store, bank) = (Arc::new(MemoryStore::default()), Bank::default());
    start::<Shop>(&engine(Shop(bank.clone()), &store), 1).await.outcome().await.unwrap_err();
    let (all, how) = (records(&store).await, Redrive::new().clean_up());
    let at = std::time::SystemTime::now();
    let write = RecordedRun::redrive(&"r".into(), &all, &how, at).unwrap();
    assert_eq!(write.run.status, RunStatus::CleaningUp);
    // Listings find it until the clean-up is over, also if no program can resume the run.
    assert_eq!(*write.run.incomplete_clean_up, steps(&["refund"]));
    store.append(&"r".into(), Position(all.len() as u64), write).await.unwrap();
    let found = store.runs(&RunQuery::new().incomplete_clean_up()).await.unwrap();
    assert_eq!(found.iter().map(|run| run.run.status).collect::<Vec<_>>(), [RunStatus::CleaningUp]);
    let recorded = RecordedRun::of(&"r".into(), &records(&store).await).unwrap();
    assert_eq!(recorded.status(), RunStatus::CleaningUp);
    bank.works(true);
    let _ = bank.lines();
    let engine = engine(Shop(bank.clone()), &store);
    assert_eq!(engine.resume_open_runs().await.unwrap().runs, ["r".into()]);
    engine.attach::<Shop>("r").await.unwrap().outcome().await.unwrap_err();
    assert_eq!(bank.lines().len(), 1);
    assert!(summary(&engine).await.incomplete_clean_up.is_empty());
}

// S86: without the field, as earlier releases wrote it.
#[test]
fn a_summary_of_an_earlier_release_is_read() {
    let json = r#"{"workflow":"Shop","status":"failed","started":"2024-01-01T00:00:00.000000000Z"}"#;
    let run: RunSummary = serde_json::from_str(json).unwrap();
    assert!(run.incomplete_clean_up.is_empty());
    assert!(!serde_json::to_string(&run).unwrap().contains("incomplete"));
}
