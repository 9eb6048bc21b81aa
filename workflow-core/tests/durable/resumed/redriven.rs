//! Runs that continue after their end (S39): what begins anew, what stays, and which redrives are refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use workflow_core::RunHandle;
use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, Redriver};
use workflow_core::store::{
    ContextStore as _, EventStore as _, MemoryContexts, MemoryStore, Position, Record, Retention, RunQuery,
    RunSummary, StoreError, Write,
};
use workflow_core::{
    ErrorClass, RecordedRun, Redrive, RedriveError, ResumeError, Retries as Times, RetryPolicy, RunError,
    RunId, RunOptions, RunStatus,
};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note, Part, until};

/// Whether the fix is there; shared by the workflows of several engines.
#[derive(Debug, Clone, Default)]
struct Fix(Arc<AtomicBool>);

impl Fix {
    fn is_there(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn deploy(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn options(run: &str) -> RunOptions {
    RunOptions::new().id(run)
}

/// Prepares once, and pays once the bank is open.
#[derive(Clone, Default)]
struct Pays {
    fix: Fix,
    prepared: Arc<AtomicU32>,
    /// Attempt and idempotency key of each call of `pay`.
    paid: Arc<std::sync::Mutex<Vec<(u32, String)>>>,
}

#[workflow]
impl Pays {
    #[step]
    async fn prepare(&self, begin: &Begin, run: RunContext) -> Result<Item, StepError> {
        self.prepared.fetch_add(1, Ordering::SeqCst);
        run.set("prepared", begin.0).await?;
        Ok(Item(begin.0))
    }

    #[step(retry = RetryPolicy::none().on(ErrorClass::Transient, Times::fixed(2, Duration::ZERO)))]
    async fn pay(&self, item: &Item, info: &RunInfo, run: RunContext) -> Result<Done, StepError> {
        self.paid.lock().unwrap().push((info.attempt(), info.idempotency_key()));
        if !self.fix.is_there() {
            return Err(StepError::transient("the bank is closed"));
        }
        let prepared: u32 = run.get("prepared").await?.unwrap_or(0);
        Ok(Done(item.0 + prepared))
    }
}

fn engine<W: Workflow>(workflow: W, store: &Arc<MemoryStore>) -> Engine {
    let store = Arc::clone(store);
    Engine::builder()
        .replay_check(true)
        .workflow(workflow)
        .store(store)
        .clock(VirtualClock::new())
        .build()
        .unwrap()
}

async fn records(store: &MemoryStore, run: &str) -> Vec<Record> {
    store.read(&run.into(), Position(0), usize::MAX).await.unwrap()
}

// S39
#[tokio::test(start_paused = true)]
async fn a_failed_run_continues_with_the_execution_that_failed() {
    let (store, pays) = (Arc::<MemoryStore>::default(), Pays::default());
    let first = engine(pays.clone(), &store);
    let run = first.start_with::<Pays>(Begin(2), options("r")).await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::StepFailed { attempts: 3, .. })));
    pays.fix.deploy();
    let redriven = first.redrive::<Pays>("r").await.unwrap();
    assert_eq!(redriven.outcome().await.unwrap(), Done(4), "the context is as the run left it");
    assert!(run.outcome().await.is_err(), "an earlier handle keeps its outcome");
    assert_eq!(pays.prepared.load(Ordering::SeqCst), 1);
    let paid = pays.paid.lock().unwrap().clone();
    assert_eq!(paid.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(paid.iter().all(|(_, key)| *key == paid[0].1));
    let report = redriven.report().await.unwrap();
    let [redrive] = &report.redrives[..] else { panic!("{:?}", report.redrives) };
    assert_eq!((redrive.status, &redrive.by), (RunStatus::Failed, &Redriver::Engine(first.id().clone())));
    assert!(report.timeline().to_string().contains("after its beginning"));
    assert!(redriven.explain().await.unwrap().to_string().contains("the run had failed, and engine"));
    let records = records(&store, "r").await;
    let recorded = RecordedRun::of(&"r".into(), &records).unwrap();
    assert_eq!(recorded.report().redrives, report.redrives);
    assert_eq!(recorded.status(), RunStatus::Completed);
    let attached = first.attach::<Pays>("r").await.unwrap();
    assert_eq!(attached.outcome().await.unwrap(), Done(4));
}

// S35, S39
#[tokio::test(start_paused = true)]
async fn several_redrives_follow_each_other_and_each_counts_its_retries_from_the_start() {
    let (store, pays) = (Arc::<MemoryStore>::default(), Pays::default());
    let engine = engine(pays.clone(), &store);
    let run = engine.start_with::<Pays>(Begin(1), options("r")).await.unwrap();
    assert!(run.outcome().await.is_err());
    for _ in 0..2 {
        let redriven = engine.redrive::<Pays>("r").await.unwrap();
        assert!(matches!(redriven.outcome().await, Err(RunError::StepFailed { .. })));
    }
    pays.fix.deploy();
    let redriven = engine.redrive::<Pays>("r").await.unwrap();
    assert_eq!(redriven.outcome().await.unwrap(), Done(2));
    let attempts: Vec<u32> = pays.paid.lock().unwrap().iter().map(|(attempt, _)| *attempt).collect();
    assert_eq!(attempts, (1..=10).collect::<Vec<_>>());
    let report = redriven.report().await.unwrap();
    assert_eq!((report.redrives.len(), report.trace[1].attempts.len()), (3, 9));
}

// S26, S39
#[tokio::test(start_paused = true)]
async fn the_contexts_of_a_run_stay_until_it_completes_or_is_removed() {
    let (store, contexts) = (Arc::<MemoryStore>::default(), Arc::<MemoryContexts>::default());
    let pays = Pays::default();
    let builder = Engine::builder().workflow(pays.clone()).store(Arc::clone(&store));
    let engine = builder.contexts(Arc::clone(&contexts)).clock(VirtualClock::new()).build().unwrap();
    let left = async || contexts.scopes(None, 10).await.unwrap().len();
    for run in ["completes", "removed", "retained"] {
        let run = engine.start_with::<Pays>(Begin(1), options(run)).await.unwrap();
        assert!(run.outcome().await.is_err());
    }
    assert_eq!(left().await, 3);
    engine.resume_open_runs().await.unwrap();
    assert_eq!(left().await, 3, "what a redrive needs is no leftover");
    pays.fix.deploy();
    engine.redrive::<Pays>("completes").await.unwrap().outcome().await.unwrap();
    assert_eq!(left().await, 2);
    assert!(engine.remove_run(&"removed".into()).await.unwrap());
    assert_eq!(left().await, 1);
    assert_eq!(engine.retain(&Retention::none()).await.unwrap(), 2);
    assert_eq!(left().await, 0);
}

/// Waits for a note, or for a timer, while a step runs.
#[derive(Clone, Default)]
struct Waits {
    fix: Fix,
}

#[workflow]
impl Waits {
    #[step]
    async fn begin(&self, begin: &Begin) -> Timer<Part> {
        Timer::after(Duration::from_secs(u64::from(begin.0)), Part(begin.0))
    }

    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Item {
        if !self.fix.is_there() {
            std::future::pending::<()>().await;
        }
        Item(begin.0 + info.attempt())
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part, note: &Note) -> Done {
        Done(item.0 + part.0 + note.0)
    }
}

// S31, S32, S39
#[tokio::test(start_paused = true)]
async fn a_cancelled_run_continues_with_what_ran_and_its_timers() {
    let (store, waits) = (Arc::<MemoryStore>::default(), Waits::default());
    let engine = engine(waits.clone(), &store);
    let run = engine.start_with::<Waits>(Begin(60), options("r")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    run.cancel("to be mended").await.unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    waits.fix.deploy();
    let redriven = engine.redrive::<Waits>("r").await.unwrap();
    assert_eq!(redriven.settled().await, RunStatus::Waiting, "the overdue timer has fired");
    redriven.send(Note(1_000)).await.unwrap();
    assert_eq!(redriven.outcome().await.unwrap(), Done(62 + 60 + 1_000));
    let report = redriven.report().await.unwrap();
    assert_eq!(report.redrives[0].status, RunStatus::Cancelled);
    let log: Vec<&str> = report.log.iter().map(|logged| &*logged.event).collect();
    assert_eq!(
        log,
        ["Begin", "Part", "Item", "Note", "Done"],
        "the timer comes before what the redrive does"
    );
}

// S32, S39
#[tokio::test(start_paused = true)]
async fn active_time_starts_at_zero() {
    let (store, waits) = (Arc::<MemoryStore>::default(), Waits::default());
    let engine = engine(waits.clone(), &store);
    let timed = options("r").timeout(Duration::from_secs(5));
    let run = engine.start_with::<Waits>(Begin(1), timed).await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::TimedOut { .. })));
    let again = engine.redrive::<Waits>("r").await.unwrap();
    let before = tokio::time::Instant::now();
    assert!(matches!(again.outcome().await, Err(RunError::TimedOut { .. })));
    assert_eq!(before.elapsed().as_secs(), 5);
    waits.fix.deploy();
    let again = engine.redrive::<Waits>("r").await.unwrap();
    again.send(Note(0)).await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(1 + 3 + 1));
}

/// Its precondition says no, or fails, without the fix.
#[derive(Clone, Default)]
struct Asks {
    fix: Fix,
    fails: bool,
    asked: Arc<AtomicU32>,
}

#[workflow]
impl Asks {
    #[precondition]
    fn may_end(&self, begin: &Begin) -> Result<bool, StepError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.fails && !self.fix.is_there() {
            return Err(StepError::permanent(format!("no answer to {}", begin.0)));
        }
        Ok(self.fix.is_there())
    }

    #[step(precondition = may_end)]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

// S18, S30, S39
#[tokio::test(start_paused = true)]
async fn a_precondition_that_said_no_or_failed_is_asked_again() {
    for fails in [false, true] {
        let (store, asks) = (Arc::<MemoryStore>::default(), Asks { fails, ..Asks::default() });
        let engine = engine(asks.clone(), &store);
        let run = engine.start_with::<Asks>(Begin(3), options("r")).await.unwrap();
        let ended = run.outcome().await.unwrap_err();
        assert_eq!(matches!(ended, RunError::PreconditionFailed { .. }), fails, "{ended}");
        let again = engine.redrive::<Asks>("r").await.unwrap();
        assert_eq!(again.outcome().await.unwrap_err().to_string(), ended.to_string());
        asks.fix.deploy();
        let again = engine.redrive::<Asks>("r").await.unwrap();
        assert_eq!(again.outcome().await.unwrap(), Done(3));
        assert_eq!(asks.asked.load(Ordering::SeqCst), 3);
    }
}

/// Prices each item; some fail without the fix.
#[derive(Clone, Default)]
struct Prices {
    fix: Fix,
    waits_for_all: bool,
    calls: Arc<AtomicU32>,
}

#[workflow]
impl Prices {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items = (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(2);
        if self.waits_for_all { items.wait_all() } else { items }
    }

    #[step]
    async fn price(&self, item: &Item) -> Result<Part, StepError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(u64::from(item.0))).await;
        if item.0 % 3 == 1 && !self.fix.is_there() {
            return Err(StepError::permanent(format!("no price for {}", item.0)));
        }
        Ok(Part(item.0))
    }

    #[step]
    async fn sum(&self, parts: Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S39, S49
#[tokio::test(start_paused = true)]
async fn a_fan_out_that_waits_for_all_continues_with_the_branches_that_failed() {
    let (store, prices) =
        (Arc::<MemoryStore>::default(), Prices { waits_for_all: true, ..Prices::default() });
    let engine = engine(prices.clone(), &store);
    let run = engine.start_with::<Prices>(Begin(6), options("r")).await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::BranchesFailed { failures }) if failures.len() == 2));
    assert_eq!(prices.calls.load(Ordering::SeqCst), 6);
    let again = engine.redrive::<Prices>("r").await.unwrap();
    assert!(
        matches!(again.outcome().await, Err(RunError::BranchesFailed { failures }) if failures.len() == 2)
    );
    prices.fix.deploy();
    let again = engine.redrive::<Prices>("r").await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(15));
    assert_eq!(prices.calls.load(Ordering::SeqCst), 6 + 2 + 2);
}

// S39, S49
#[tokio::test(start_paused = true)]
async fn a_fan_out_that_fails_at_once_continues_with_all_branches_that_had_not_finished() {
    let (store, prices) = (Arc::<MemoryStore>::default(), Prices::default());
    let engine = engine(prices.clone(), &store);
    let run = engine.start_with::<Prices>(Begin(4), options("r")).await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::StepFailed { .. })));
    // 0 and 1 began, and 2 after 0 was done.
    assert_eq!(prices.calls.load(Ordering::SeqCst), 3);
    prices.fix.deploy();
    let again = engine.redrive::<Prices>("r").await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(6));
    assert_eq!(prices.calls.load(Ordering::SeqCst), 3 + 3);
    let report = again.report().await.unwrap();
    assert!(report.trace.iter().all(|trace| matches!(trace.outcome, ExecutionOutcome::Succeeded)));
}

/// Imports rows; some fail without the fix, and one may.
#[derive(Clone, Default)]
struct Rows {
    fix: Fix,
    stored: Arc<std::sync::Mutex<Vec<u32>>>,
}

#[workflow]
impl Rows {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(2).tolerate(1)
    }

    #[step]
    async fn store(&self, item: &Item) -> Result<Part, StepError> {
        self.stored.lock().unwrap().push(item.0);
        tokio::time::sleep(Duration::from_secs(u64::from(item.0))).await;
        let fails = if self.fix.is_there() { item.0 == 4 } else { item.0 % 2 == 1 };
        if fails { Err(StepError::permanent(format!("bad row {}", item.0))) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn sum(&self, parts: Gather<Part>) -> Done {
        Done(
            u32::try_from(100 * parts.failed().count()).unwrap() + parts.ok().map(|part| part.0).sum::<u32>(),
        )
    }
}

// S39, S74
#[tokio::test(start_paused = true)]
async fn a_fan_out_with_more_failures_than_it_tolerates_continues_with_all_that_failed() {
    let (store, rows) = (Arc::<MemoryStore>::default(), Rows::default());
    let engine = engine(rows.clone(), &store);
    let run = engine.start_with::<Rows>(Begin(6), options("r")).await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::BranchesFailed { failures }) if failures.len() == 2));
    // 1 was tolerated, 3 was too many, and 4 was dropped.
    assert_eq!(std::mem::take(&mut *rows.stored.lock().unwrap()), [0, 1, 2, 3, 4]);
    let again = engine.redrive::<Rows>("r").await.unwrap();
    assert!(
        matches!(again.outcome().await, Err(RunError::BranchesFailed { failures }) if failures.len() == 2)
    );
    let mut stored = std::mem::take(&mut *rows.stored.lock().unwrap());
    stored.sort_unstable();
    assert_eq!(stored, [1, 3, 4], "all of them begin anew, within the bound");
    rows.fix.deploy();
    let again = engine.redrive::<Rows>("r").await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(100 + 1 + 2 + 3 + 5), "another one may fail now");
}

// S39, S74
#[tokio::test(start_paused = true)]
async fn the_journal_has_a_tolerance_where_one_is_used() {
    let (store, rows) = (Arc::<MemoryStore>::default(), Rows::default());
    let engine = engine(rows, &store);
    let run = engine.start_with::<Rows>(Begin(1), options("r")).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(0));
    let opened = |records: Vec<Record>| {
        let records = records.iter().map(|record| serde_json::to_string(record).unwrap());
        records.filter(|record| record.contains("\"fan_outs\":[{")).collect::<Vec<_>>()
    };
    let with = opened(store.read(&"r".into(), Position(0), usize::MAX).await.unwrap());
    assert!(with.len() == 1 && with[0].contains("\"tolerated\":1"), "{with:?}");

    let (store, prices) = (Arc::<MemoryStore>::default(), Prices::default());
    let engine = self::engine(prices, &store);
    let run = engine.start_with::<Prices>(Begin(1), options("r")).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(0));
    let without = opened(store.read(&"r".into(), Position(0), usize::MAX).await.unwrap());
    assert!(without.len() == 1 && !without[0].contains("tolerated"), "{without:?}");
}

/// Runs a child, which fails without the fix.
struct Parent;

#[workflow]
impl Parent {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run::<Pays>(begin.clone()).await
    }
}

// S39
#[tokio::test(start_paused = true)]
async fn a_child_continues_only_with_its_parent_which_starts_a_new_one() {
    let (store, pays) = (Arc::<MemoryStore>::default(), Pays::default());
    let builder = Engine::builder().replay_check(true).workflow(Parent).workflow(pays.clone());
    let engine = builder.store(Arc::clone(&store)).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start_with::<Parent>(Begin(1), options("r")).await.unwrap();
    assert!(run.outcome().await.is_err());
    pays.fix.deploy();
    let child = "r/delegate-x1.1";
    let refused = engine.redrive::<Pays>(child).await.unwrap_err();
    assert!(matches!(&refused, RedriveError::Child { parent, .. } if parent.run == "r".into()), "{refused}");
    let again = engine.redrive::<Parent>("r").await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(2));
    let report = again.report().await.unwrap();
    let children: Vec<&str> = report.children.iter().map(|child| child.child.run.as_str()).collect();
    assert_eq!(children, [child, "r/delegate-x1.a2.1"]);
}

// S39
#[tokio::test(start_paused = true)]
async fn a_redrive_that_is_refused_changes_nothing() {
    let (store, pays) = (Arc::<MemoryStore>::default(), Pays::default());
    pays.fix.deploy();
    let own = engine(pays.clone(), &store);
    let refused = async |run: &str| own.redrive::<Pays>(run).await.unwrap_err();
    assert!(matches!(refused("nobody").await, RedriveError::Resume(ResumeError::UnknownRun { .. })));
    let run = own.start_with::<Pays>(Begin(1), options("done")).await.unwrap();
    run.outcome().await.unwrap();
    let before = records(&store, "done").await.len();
    assert!(matches!(refused("done").await, RedriveError::Completed { .. }));
    assert_eq!(records(&store, "done").await.len(), before);

    let waiting = engine(Waits::default(), &store);
    let open = waiting.start_with::<Waits>(Begin(60), options("open")).await.unwrap();
    let refused = waiting.redrive::<Waits>("open").await.unwrap_err();
    assert!(matches!(refused, RedriveError::NotEnded { status: RunStatus::Running, .. }), "{refused}");
    open.cancel("enough").await.unwrap();
    let wrong = waiting.redrive::<Pays>("open").await.unwrap_err();
    assert!(matches!(wrong, RedriveError::Resume(ResumeError::WrongWorkflow { .. })), "{wrong}");

    let without = Engine::builder().workflow(pays).build().unwrap();
    let refused = without.redrive::<Pays>("done").await.unwrap_err();
    assert!(matches!(refused, RedriveError::Resume(ResumeError::Store(StoreError::NoStore))), "{refused}");
}

mod changed {
    use workflow_core::StepFailed;
    use workflow_core::prelude::*;

    use super::{Begin, Done, Item};

    /// `Pays` with another step beside.
    pub(super) struct More;

    #[workflow(name = "Pays")]
    impl More {
        #[step]
        async fn prepare(&self, begin: &Begin) -> Item {
            Item(begin.0)
        }

        #[step]
        async fn note(&self, _item: &Item) {}

        #[step]
        async fn pay(&self, item: &Item) -> Done {
            Done(item.0)
        }
    }

    /// `Pays` without the step that prepared.
    pub(super) struct Other;

    #[workflow(name = "Pays")]
    impl Other {
        #[step]
        async fn pay(&self, begin: &Begin) -> Done {
            Done(begin.0)
        }
    }

    /// `Pays` whose failure is caught.
    pub(super) struct Catches;

    #[workflow(name = "Pays")]
    impl Catches {
        #[step]
        async fn prepare(&self, begin: &Begin) -> Item {
            Item(begin.0)
        }

        #[step]
        async fn pay(&self, item: &Item) -> Result<Done, StepError> {
            Ok(Done(item.0))
        }

        #[step(catches = [pay])]
        async fn recover(&self, _failed: &StepFailed) -> Done {
            Done(0)
        }
    }
}

// S39, S41
#[tokio::test(start_paused = true)]
async fn a_run_continues_with_the_present_workflow_if_that_fits_its_journal() {
    let (store, pays) = (Arc::<MemoryStore>::default(), Pays::default());
    let first = engine(pays, &store);
    for run in ["r", "s"] {
        assert!(first.start_with::<Pays>(Begin(1), options(run)).await.unwrap().outcome().await.is_err());
    }
    let before = records(&store, "r").await.len();
    let other = engine(changed::Other, &store);
    let refused = other.redrive::<changed::Other>("r").await.unwrap_err();
    assert!(matches!(refused, RedriveError::Resume(ResumeError::Incompatible { .. })), "{refused}");
    assert_eq!(records(&store, "r").await.len(), before, "the journal is as it was");
    let catches = engine(changed::Catches, &store);
    let again = catches.redrive::<changed::Catches>("s").await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(0), "a step that is new catches the failure");
    let report = again.report().await.unwrap();
    assert_eq!((report.executions("pay"), report.executions("recover")), (1, 1));
    let again = catches.attach::<changed::Catches>("s").await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(0));
    let more = engine(changed::More, &store);
    let again = more.redrive::<changed::More>("r").await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(1));
    assert_eq!(again.report().await.unwrap().executions("note"), 1, "a new step takes what was there");
}

// S39
#[tokio::test(start_paused = true)]
async fn many_runs_are_redriven_up_to_a_limit_and_the_others_are_refused_with_reasons() {
    let (store, pays) = (Arc::<MemoryStore>::default(), Pays::default());
    let own = engine(pays.clone(), &store);
    for run in ["a", "b", "c", "d"] {
        assert!(own.start_with::<Pays>(Begin(1), options(run)).await.unwrap().outcome().await.is_err());
    }
    let stuck = engine(Waits::default(), &store);
    stuck.start_with::<Waits>(Begin(60), options("e")).await.unwrap().cancel("enough").await.unwrap();
    pays.fix.deploy();
    own.redrive::<Pays>("a").await.unwrap().outcome().await.unwrap();
    let redriven = own.redrive_all(&RunQuery::new(), 2).await.unwrap();
    assert_eq!(
        (redriven.runs, redriven.refused.len(), redriven.more),
        (vec!["b".into(), "c".into()], 0, true)
    );
    let failed = RunQuery::new().after("c").status(RunStatus::Failed).status(RunStatus::Cancelled);
    let redriven = own.redrive_all(&failed, 100).await.unwrap();
    assert_eq!((redriven.runs, redriven.more), (vec![RunId::from("d")], false));
    let [(run, error)] = &redriven.refused[..] else { panic!("{:?}", redriven.refused) };
    assert_eq!((run.as_str(), error.to_string().contains("does not host")), ("e", true));
}

/// Fails once with a delay.
#[derive(Clone, Default)]
struct Delays {
    calls: Arc<AtomicU32>,
}

#[workflow]
impl Delays {
    #[step(retry = RetryPolicy::none().on(ErrorClass::Transient, Times::fixed(2, Duration::from_hours(1))))]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if info.attempt() < 3 {
            Err(StepError::transient("busy"))
        } else {
            Ok(Done(begin.0 + info.attempt()))
        }
    }
}

// S36
#[tokio::test(start_paused = true)]
async fn a_delay_that_a_caller_ended_is_over_after_a_restart_too() {
    let (store, delays) = (Arc::<MemoryStore>::default(), Delays::default());
    let first = engine(delays.clone(), &store);
    let run = first.start_with::<Delays>(Begin(1), options("r")).await.unwrap();
    let before = tokio::time::Instant::now();
    while run.retry_now().await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(run.report_so_far().await.unwrap().redrives.len(), 0);
    let records = records(&store, "r").await;
    let ended = records.iter().position(|record| matches!(record, Record::DelaysEnded { .. })).unwrap();
    // The next process does not wait for the rest of the delay.
    let second_store = Arc::<MemoryStore>::default();
    let listed = store.runs(&RunQuery::new()).await.unwrap().remove(0).run;
    let write = workflow_core::store::Write { records: records[..=ended].to_vec(), run: listed };
    second_store.append(&"r".into(), Position(0), write).await.unwrap();
    let second = Delays::default();
    let again = engine(second.clone(), &second_store);
    let again = again.attach::<Delays>("r").await.unwrap();
    while second.calls.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert!(before.elapsed() < Duration::from_hours(1));
    assert_eq!(again.outcome().await.unwrap(), Done(4));
    assert_eq!(run.outcome().await.unwrap(), Done(4));
    assert!(before.elapsed() >= Duration::from_hours(1), "the delay of the second failure counts");
}

// S31
#[tokio::test(start_paused = true)]
async fn the_runs_of_a_query_are_cancelled_and_removed_with_a_result_each() {
    let store = Arc::<MemoryStore>::default();
    let (own, runs) = (engine(Waits::default(), &store), ["a", "b", "c"]);
    for run in runs {
        own.start_with::<Waits>(Begin(60), options(run)).await.unwrap();
    }
    // Of a process that is gone.
    let left = records(&store, "c").await;
    let listed = store.runs(&RunQuery::new().after("b")).await.unwrap().remove(0).run;
    let write = workflow_core::store::Write { records: left, run: listed };
    store.append(&"d".into(), Position(0), write).await.unwrap();
    let mut cancelled = own.cancel_where(&RunQuery::new().after("a"), "enough").unwrap();
    let mut done = Vec::new();
    while let Some(result) = cancelled.next().await {
        let result = result.unwrap();
        assert!(result.result.is_ok(), "{result:?}");
        done.push(result.run.to_string());
    }
    done.sort();
    assert_eq!(done, ["b", "c", "d"]);
    drop(cancelled);
    let Some(Record::RunEnded { error, .. }) = records(&store, "d").await.pop() else { panic!("it is open") };
    assert_eq!(error.as_deref(), Some("enough"));
    let mut removed = own.remove_where(&RunQuery::new().status(RunStatus::Cancelled)).unwrap();
    let mut count = 0;
    while let Some(result) = removed.next().await {
        result.unwrap().result.unwrap();
        count += 1;
    }
    assert_eq!(count, 3);
    let open = store.runs(&RunQuery::new()).await.unwrap();
    assert_eq!(open.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["a"]);
}

/// Books, and fails beside an execution that runs, until the fix is there. Undoes the booking at the end.
#[derive(Clone, Default)]
struct Undoes {
    fix: Fix,
    undone: Arc<AtomicU32>,
}

#[workflow]
impl Undoes {
    #[step]
    async fn book(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn pay(&self, _item: &Item) -> Result<(), StepError> {
        if self.fix.is_there() { Ok(()) } else { Err(StepError::permanent("no money")) }
    }

    #[step]
    async fn work(&self, item: &Item, info: &RunInfo) -> Part {
        if info.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Part(item.0 + info.attempt())
    }

    #[step]
    async fn end(&self, part: &Part) -> Done {
        Done(part.0)
    }

    #[step(on_end)]
    async fn undo(&self, _item: &Item, info: &RunInfo) {
        let undone = self.undone.fetch_add(1, Ordering::SeqCst);
        // A service that drops known keys undoes it once more all the same.
        let key = if undone == 0 { "r/0/undo/2".to_owned() } else { format!("r/0/undo/2/{undone}") };
        assert_eq!(info.idempotency_key(), key);
    }
}

// S31, S39
#[tokio::test(start_paused = true)]
async fn a_run_that_was_cleaned_up_continues_only_if_the_caller_insists() {
    let (store, undoes) = (Arc::<MemoryStore>::default(), Undoes::default());
    let engine = engine(undoes.clone(), &store);
    let run = engine.start_with::<Undoes>(Begin(1), options("r")).await.unwrap();
    assert!(run.outcome().await.is_err());
    let before = records(&store, "r").await;
    let refused = engine.redrive::<Undoes>("r").await.unwrap_err();
    assert!(
        matches!(&refused, RedriveError::CleanedUp { steps, .. } if *steps == ["undo"]),
        "{refused:?}: {refused}"
    );
    assert!(refused.to_string().contains("has begun its clean-up, with `undo`"), "{refused}");
    let many = engine.redrive_all(&RunQuery::new(), 10).await.unwrap();
    assert!(matches!(&many.refused[..], [(_, RedriveError::CleanedUp { .. })]), "{many:?}");
    let now = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
    let refused = RecordedRun::redrive(&"r".into(), &before, &Redrive::new(), now);
    assert!(matches!(refused, Err(RedriveError::CleanedUp { .. })));
    assert_eq!(records(&store, "r").await.len(), before.len(), "the journal is as it was");

    // It ends once more, with another clean-up, and then completes.
    let insists = || Redrive::new().despite_clean_up();
    let again = engine.redrive_with::<Undoes>("r", insists()).await.unwrap();
    assert!(again.outcome().await.is_err());
    assert_eq!(undoes.undone.load(Ordering::SeqCst), 2);
    undoes.fix.deploy();
    let last = engine.redrive_with::<Undoes>("r", insists()).await.unwrap();
    assert_eq!(last.outcome().await.unwrap(), Done(4), "two attempts were dropped, and the third one counts");
    assert_eq!(undoes.undone.load(Ordering::SeqCst), 2);
    let report = last.report().await.unwrap();
    assert_eq!(report.redrives.len(), 2);
    assert!(report.clean_up.is_none(), "{:?}", report.clean_up);
    let recorded = RecordedRun::of(&"r".into(), &records(&store, "r").await).unwrap();
    assert_eq!((recorded.status(), recorded.report().clean_up.is_none()), (RunStatus::Completed, true));
}

// S31, S39
#[tokio::test(start_paused = true)]
async fn a_run_that_is_still_cleaning_up_or_was_cleaned_up_at_a_limit_is_not_redriven() {
    let store = Arc::<MemoryStore>::default();
    let builder = Engine::builder().workflow(Undoes::default()).store(Arc::clone(&store));
    let engine = builder.clock(VirtualClock::new()).max_executions_per_run(1).build().unwrap();
    let run = engine.start_with::<Undoes>(Begin(1), options("limit")).await.unwrap();
    assert!(run.outcome().await.is_err());
    let whole = records(&store, "limit").await;
    let cleans_up = |record: &Record| matches!(record, Record::CleanUpStarted { limit: Some(_), .. });
    assert!(whole.iter().any(cleans_up), "{whole:?}");
    let insists = Redrive::new().despite_clean_up();
    let refused = engine.redrive_with::<Undoes>("limit", insists.clone()).await.unwrap_err();
    assert!(matches!(refused, RedriveError::AtLimit { .. }), "{refused:?}");
    assert!(refused.to_string().contains("its limit of 1 execution "), "{refused}");
    // Cut off in its clean-up.
    let now = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
    let refused = RecordedRun::redrive(&"limit".into(), &whole[..whole.len() - 1], &insists, now);
    assert!(
        matches!(refused, Err(RedriveError::NotEnded { status: RunStatus::CleaningUp, .. })),
        "{refused:?}"
    );
}

/// Pays at most once, as its mode says.
#[derive(Clone)]
struct PaysOnce {
    mode: &'static str,
    fix: Fix,
    paid: Arc<std::sync::Mutex<Vec<(u32, bool)>>>,
}

impl PaysOnce {
    fn new(mode: &'static str) -> Self {
        Self { mode, fix: Fix::default(), paid: Arc::default() }
    }

    fn paid(&self) -> Vec<(u32, bool)> {
        self.paid.lock().unwrap().clone()
    }
}

#[workflow]
impl PaysOnce {
    #[step(at_most_once, timeout = "1m")]
    async fn pay(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.paid.lock().unwrap().push((info.attempt(), info.may_have_begun()));
        match self.mode {
            _ if self.fix.is_there() => Ok(Done(begin.0)),
            "returns" => Err(StepError::permanent("no money")),
            "panics" => panic!("on purpose"),
            _ => std::future::pending().await,
        }
    }
}

// S39, S69
#[tokio::test(start_paused = true)]
async fn an_effect_that_is_in_doubt_is_made_again_by_a_redrive_only_if_its_step_is_named() {
    for mode in ["cancelled", "times out", "panics"] {
        let (store, pays) = (Arc::<MemoryStore>::default(), PaysOnce::new(mode));
        let engine = engine(pays.clone(), &store);
        let run = engine.start_with::<PaysOnce>(Begin(1), options("r")).await.unwrap();
        if mode == "cancelled" {
            until(async || !pays.paid().is_empty()).await;
            run.cancel("stop").await.unwrap();
        }
        assert!(run.outcome().await.is_err());
        pays.fix.deploy();
        // However often it is redriven: redrives are no interruptions.
        for _ in 0..6 {
            let again = engine.redrive::<PaysOnce>("r").await.unwrap();
            let error = again.outcome().await.unwrap_err();
            assert!(
                matches!(error, RunError::StepFailed { class: ErrorClass::InDoubt, .. }),
                "{mode}: {error:?}"
            );
        }
        assert_eq!(pays.paid(), [(1, false)], "{mode}");
        let unknown = engine.redrive_with::<PaysOnce>("r", Redrive::new().again("refund")).await.unwrap_err();
        assert_eq!(unknown.to_string(), "`PaysOnce` has no step `refund` to make again; it has `pay`");
        let named = engine.redrive_with::<PaysOnce>("r", Redrive::new().again("pay")).await.unwrap();
        assert_eq!(named.outcome().await.unwrap(), Done(1), "{mode}");
        let [(1, false), (_, true)] = pays.paid()[..] else { panic!("{mode}: {:?}", pays.paid()) };
        let records = records(&store, "r").await;
        let again = records.iter().rev().find_map(|record| match record {
            Record::RunRedriven { again, .. } => Some(again.clone()),
            _ => None,
        });
        assert_eq!(again.unwrap(), ["pay".into()]);
        assert!(records.iter().any(|record| matches!(record, Record::AttemptBegan { .. })), "{mode}");
    }
}

// S39, S69
#[tokio::test(start_paused = true)]
async fn an_effect_whose_step_returned_its_error_is_made_again_by_any_redrive() {
    let (store, pays) = (Arc::<MemoryStore>::default(), PaysOnce::new("returns"));
    let engine = engine(pays.clone(), &store);
    let run = engine.start_with::<PaysOnce>(Begin(1), options("r")).await.unwrap();
    assert!(run.outcome().await.is_err());
    assert!(engine.redrive::<PaysOnce>("r").await.unwrap().outcome().await.is_err());
    pays.fix.deploy();
    let redriven = engine.redrive::<PaysOnce>("r").await.unwrap();
    assert_eq!(redriven.outcome().await.unwrap(), Done(1));
    assert_eq!(pays.paid(), [(1, false), (2, false), (3, false)]);
}

// S39, S69
#[tokio::test(start_paused = true)]
async fn an_effect_that_was_made_again_and_cut_off_is_in_doubt_once_more() {
    let (store, pays) = (Arc::<MemoryStore>::default(), PaysOnce::new("cancelled"));
    let first = engine(pays.clone(), &store);
    let run = first.start_with::<PaysOnce>(Begin(1), options("r")).await.unwrap();
    until(async || !pays.paid().is_empty()).await;
    run.cancel("stop").await.unwrap();
    drop(first.redrive_with::<PaysOnce>("r", Redrive::new().again("pay")).await.unwrap());
    until(async || pays.paid().len() == 2).await;
    // The journal of a process that ends here.
    let cut = records(&store, "r").await;
    let crashed = Arc::<MemoryStore>::default();
    let Record::RunStarted { workflow, at, .. } = &cut[0] else { panic!("no beginning") };
    let summary = RunSummary::running(Arc::clone(workflow), *at);
    crashed.append(&"r".into(), Position(0), Write { records: cut, run: summary }).await.unwrap();
    pays.fix.deploy();
    let second = engine(pays.clone(), &crashed);
    let error = second.attach::<PaysOnce>("r").await.unwrap().outcome().await.unwrap_err();
    assert!(matches!(error, RunError::StepFailed { class: ErrorClass::InDoubt, .. }), "{error:?}");
    assert_eq!(pays.paid(), [(1, false), (2, true)]);
}

/// A bank that refuses the first item while the others hang, until the fix is there.
#[derive(Clone, Default)]
struct Bank {
    fix: Fix,
    /// Each item that was paid, and whether its attempt may have begun before.
    paid: Arc<std::sync::Mutex<Vec<(u32, bool)>>>,
}

impl Bank {
    async fn pay(&self, item: u32, info: &RunInfo) -> Result<Part, StepError> {
        self.paid.lock().unwrap().push((item, info.may_have_begun()));
        match item {
            _ if self.fix.is_there() => Ok(Part(item)),
            0 => {
                tokio::time::sleep(Duration::from_secs(5)).await;
                Err(StepError::permanent("no money"))
            }
            _ => std::future::pending().await,
        }
    }

    fn paid(&self) -> Vec<(u32, bool)> {
        self.paid.lock().unwrap().clone()
    }
}

/// Workflows that pay items in branches. A failure of one ends the run in the fact that drops the others.
mod each {
    use super::*;

    /// Pays two items, or two at a time of three.
    pub(super) struct Flat(pub(super) Bank, pub(super) bool);

    #[workflow]
    impl Flat {
        #[step]
        async fn split(&self, _begin: &Begin) -> FanOut<Item> {
            let items: FanOut<Item> = (0..if self.1 { 3 } else { 2 }).map(Item).collect();
            if self.1 { items.concurrency(2) } else { items }
        }

        #[step(at_most_once)]
        async fn pay(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
            self.0.pay(item.0, info).await
        }

        #[step]
        async fn sum(&self, parts: &Gather<Part>) -> Done {
            Done(u32::try_from(parts.ok().count()).unwrap())
        }
    }

    /// Pays in a branch of a branch.
    pub(super) struct Nested(pub(super) Bank);

    #[workflow]
    impl Nested {
        #[step]
        async fn split(&self, _begin: &Begin) -> FanOut<Item> {
            (0..1).map(Item).collect()
        }

        #[step]
        async fn split_again(&self, _item: &Item) -> FanOut<Inner> {
            (0..2).map(Inner).collect()
        }

        #[step(at_most_once)]
        async fn pay(&self, inner: &Inner, info: &RunInfo) -> Result<Part, StepError> {
            self.0.pay(inner.0, info).await
        }

        #[step]
        async fn gather_again(&self, parts: &Gather<Part, Inner>) -> Note {
            Note(u32::try_from(parts.ok().count()).unwrap())
        }

        #[step]
        async fn gather(&self, sums: &Gather<Note, Item>) -> Done {
            Done(sums.ok().map(|sum| sum.0).sum())
        }
    }

    /// Cleans up when it fails.
    pub(super) struct Undoes(pub(super) Bank);

    #[workflow]
    impl Undoes {
        #[step]
        async fn split(&self, _begin: &Begin) -> FanOut<Item> {
            (0..2).map(Item).collect()
        }

        #[step(at_most_once)]
        async fn pay(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
            self.0.pay(item.0, info).await
        }

        #[step]
        async fn sum(&self, parts: &Gather<Part>) -> Done {
            Done(u32::try_from(parts.ok().count()).unwrap())
        }

        #[step(on_end)]
        async fn undo(&self, _begin: &Begin) {}
    }

    /// Pays one item at a time.
    pub(super) struct One(pub(super) Bank);

    #[workflow(name = "Each")]
    impl One {
        #[step]
        async fn split(&self, _begin: &Begin) -> FanOut<Item> {
            (0..3).map(Item).collect()
        }

        #[step(at_most_once, concurrency = 1)]
        async fn pay(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
            self.0.pay(item.0, info).await
        }

        #[step]
        async fn sum(&self, parts: &Gather<Part>) -> Done {
            Done(u32::try_from(parts.ok().count()).unwrap())
        }
    }

    /// The same with two items at a time.
    pub(super) struct Two(pub(super) Bank);

    #[workflow(name = "Each")]
    impl Two {
        #[step]
        async fn split(&self, _begin: &Begin) -> FanOut<Item> {
            (0..3).map(Item).collect()
        }

        #[step(at_most_once, concurrency = 2)]
        async fn pay(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
            self.0.pay(item.0, info).await
        }

        #[step]
        async fn sum(&self, parts: &Gather<Part>) -> Done {
            Done(u32::try_from(parts.ok().count()).unwrap())
        }
    }
}

/// Runs the workflow until item 0 fails beside item 1, and redrives it with the fix: without and with the name of `pay`.
async fn pays_each<W: Workflow<Output = Done>>(workflow: impl Fn(Bank) -> W, redrive: Redrive, items: u32) {
    let (store, bank) = (Arc::<MemoryStore>::default(), Bank::default());
    let engine = engine(workflow(bank.clone()), &store);
    let run = engine.start_with::<W>(Begin(1), options("r")).await.unwrap();
    assert!(run.outcome().await.is_err());
    let report = run.report().await.unwrap();
    let dropped = report.trace.iter().filter(|execution| execution.outcome == ExecutionOutcome::Dropped);
    assert_eq!(dropped.map(|execution| &*execution.step).collect::<Vec<_>>(), ["pay"], "{report:?}");
    assert_eq!(bank.paid(), [(0, false), (1, false)]);
    bank.fix.deploy();
    let again = engine.redrive_with::<W>("r", redrive.clone()).await.unwrap();
    let error = again.outcome().await.unwrap_err();
    assert!(error.to_string().contains("in_doubt"), "{error}");
    assert!(!bank.paid()[2..].iter().any(|(item, _)| *item == 1), "{:?}", bank.paid());
    let again = engine.redrive_with::<W>("r", redrive.again("pay")).await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(items));
    assert_eq!(bank.paid().iter().filter(|paid| **paid == (1, true)).count(), 1, "{:?}", bank.paid());
}

// S39, S49, S53, S69
#[tokio::test(start_paused = true)]
async fn an_effect_that_was_dropped_by_the_failure_that_ends_the_run_is_in_doubt() {
    pays_each(|bank| each::Flat(bank, false), Redrive::new(), 2).await;
    pays_each(|bank| each::Flat(bank, true), Redrive::new(), 3).await;
    pays_each(each::Nested, Redrive::new(), 2).await;
    pays_each(each::Undoes, Redrive::new().despite_clean_up(), 2).await;
}

// S39, S49, S53, S69
#[tokio::test(start_paused = true)]
async fn an_effect_that_waits_for_its_turn_by_the_present_table_alone_is_in_doubt() {
    let (store, bank) = (Arc::<MemoryStore>::default(), Bank::default());
    let two = engine(each::Two(bank.clone()), &store);
    assert!(two.start_with::<each::Two>(Begin(1), options("r")).await.unwrap().outcome().await.is_err());
    bank.fix.deploy();
    let one = engine(each::One(bank.clone()), &store);
    let error = one.redrive::<each::One>("r").await.unwrap().outcome().await.unwrap_err();
    assert!(error.to_string().contains("in_doubt"), "{error}");
    let again = one.redrive_with::<each::One>("r", Redrive::new().again("pay")).await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(3));
    assert_eq!(bank.paid(), [(0, false), (1, false), (0, false), (1, true), (2, false)]);
}

// S39, S49, S53
#[tokio::test(start_paused = true)]
async fn an_effect_that_waited_for_its_turn_when_it_was_dropped_is_made_also_with_more_room() {
    let (store, bank) = (Arc::<MemoryStore>::default(), Bank::default());
    let one = engine(each::One(bank.clone()), &store);
    assert!(one.start_with::<each::One>(Begin(1), options("r")).await.unwrap().outcome().await.is_err());
    bank.fix.deploy();
    let two = engine(each::Two(bank.clone()), &store);
    assert_eq!(two.redrive::<each::Two>("r").await.unwrap().outcome().await.unwrap(), Done(3));
    assert_eq!(bank.paid(), [(0, false), (0, false), (1, false), (2, false)]);
}

/// Two branches that are waited for. The first one opens a fan-out that fails as soon as one of its branches does.
#[derive(Clone, Default)]
struct Nested {
    fix: Fix,
    /// How many branches the inner fan-out has.
    inner: u32,
    /// The inner items that were paid.
    paid: Arc<std::sync::Mutex<Vec<u32>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
struct Inner(u32);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
struct Waited(u32);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
struct Late;

#[workflow]
impl Nested {
    #[step]
    async fn split(&self, _begin: &Begin) -> FanOut<Item> {
        (1..=2).map(Item).collect::<FanOut<_>>().wait_all()
    }

    #[step]
    async fn split_again(&self, item: &Item) -> FanOut<Inner> {
        (0..if item.0 == 1 { self.inner } else { 0 }).map(Inner).collect()
    }

    /// The second branch sets another timer, once the work of the first one is dropped.
    #[step]
    async fn set_late(&self, item: &Item) -> Option<Timer<Late>> {
        tokio::time::sleep(Duration::from_secs(10)).await;
        (item.0 == 2).then(|| Timer::after(Duration::from_secs(1), Late))
    }

    #[step]
    async fn take_late(&self, _late: &Late) {}

    #[step]
    async fn wait(&self, inner: &Inner) -> Timer<Waited> {
        Timer::after(Duration::from_hours(1), Waited(inner.0))
    }

    #[step(at_most_once)]
    async fn pay(&self, inner: &Inner) -> Result<Part, StepError> {
        if inner.0 == 0 {
            tokio::time::sleep(Duration::from_secs(5)).await;
            return if self.fix.is_there() { Ok(Part(0)) } else { Err(StepError::permanent("no money")) };
        }
        self.paid.lock().unwrap().push(inner.0);
        if inner.0 == 1 && !self.fix.is_there() {
            std::future::pending::<()>().await;
        }
        Ok(Part(1))
    }

    #[step]
    async fn gather_again(&self, _parts: &Gather<Part, Inner>, waited: &Gather<Waited, Inner>) -> Note {
        Note(u32::try_from(waited.ok().count()).unwrap())
    }

    #[step]
    async fn gather(&self, sums: &Gather<Note, Item>) -> Done {
        Done(sums.ok().map(|sum| sum.0).sum())
    }
}

async fn nested(inner: u32) -> (Engine, Nested, RunHandle<Nested>) {
    let (store, nested) = (Arc::<MemoryStore>::default(), Nested { inner, ..Nested::default() });
    let engine = engine(nested.clone(), &store);
    let run = engine.start_with::<Nested>(Begin(1), options("r")).await.unwrap();
    assert!(run.outcome().await.is_err());
    nested.fix.deploy();
    let redriven = engine.redrive::<Nested>("r").await.unwrap();
    (engine, nested, redriven)
}

// S39, S49, S69
#[tokio::test(start_paused = true)]
async fn an_effect_that_a_failure_dropped_long_before_the_end_is_in_doubt() {
    let (engine, nested, redriven) = nested(2).await;
    let error = redriven.outcome().await.unwrap_err();
    assert!(error.to_string().contains("in_doubt"), "{error}");
    assert_eq!(*nested.paid.lock().unwrap(), [1]);
    let again = engine.redrive_with::<Nested>("r", Redrive::new().again("pay")).await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(2));
    assert_eq!(*nested.paid.lock().unwrap(), [1, 1]);
}

// S32, S39, S49
#[tokio::test(start_paused = true)]
async fn timers_that_a_failure_dropped_are_pending_again_however_many_they_are() {
    let (engine, _, redriven) = nested(200).await;
    assert!(redriven.outcome().await.unwrap_err().to_string().contains("in_doubt"));
    let again = engine.redrive_with::<Nested>("r", Redrive::new().again("pay")).await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), Done(200));
}

/// Pays one item at a time. The first attempt of each fails, and the second one of the first item hangs.
#[derive(Clone, Default)]
struct OneAtATime(Arc<std::sync::Mutex<Vec<(u32, u32)>>>);

#[workflow]
impl OneAtATime {
    #[step]
    async fn split(&self, _begin: &Begin) -> FanOut<Item> {
        (1..=2).map(Item).collect::<FanOut<_>>().wait_all()
    }

    #[step(at_most_once, concurrency = 1)]
    async fn pay(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        self.0.lock().unwrap().push((item.0, info.attempt()));
        match (item.0, info.attempt()) {
            (_, 1) => Err(StepError::permanent("no money")),
            (1, _) => std::future::pending().await,
            _ => Ok(Part(item.0)),
        }
    }

    #[step]
    async fn gather(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S21, S39, S53, S69
#[tokio::test(start_paused = true)]
async fn an_effect_that_waited_for_its_turn_after_a_redrive_is_not_in_doubt() {
    let (store, pays) = (Arc::<MemoryStore>::default(), OneAtATime::default());
    let engine = engine(pays.clone(), &store);
    let run = engine.start_with::<OneAtATime>(Begin(1), options("r")).await.unwrap();
    assert!(run.outcome().await.is_err());
    let redriven = engine.redrive::<OneAtATime>("r").await.unwrap();
    until(async || pays.0.lock().unwrap().len() == 3).await;
    redriven.cancel("stop").await.unwrap();
    assert!(redriven.outcome().await.is_err());
    let again = engine.redrive::<OneAtATime>("r").await.unwrap();
    let error = again.outcome().await.unwrap_err();
    assert!(error.to_string().contains("in_doubt"), "{error}");
    let paid = pays.0.lock().unwrap().clone();
    assert_eq!(paid[..3], [(1, 1), (2, 1), (1, 2)]);
    assert!(matches!(paid[3..], [(2, _)]), "the second item never began again: {paid:?}");
}
