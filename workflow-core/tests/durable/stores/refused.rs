//! Writes that a store refuses for their content or their size. Each is repeated batch by batch. A batch that is refused
//! alone fails its execution, or is an error of its sender. Nothing else is affected.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Semaphore;
use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, Quality, RequestId};
use workflow_core::store::{
    EngineId, EventStore, Position, Record, Retention, RunQuery, StoreError, StoreFuture, StoredRun, Write,
};
use workflow_core::{
    ErrorClass, RecordedRun, RetryPolicy, RunError, RunHandle, RunId, RunOptions, RunStatus, SendError,
    StartError, StepFailed,
};
use workflow_testkit::{CrashStore, VirtualClock};

use crate::fixtures::{Begin, Done, Note, until};

mod beside;
mod children;
mod paused_once;
mod paused;
mod same;
mod viewed;

/// The store refuses records with this text.
const UNWANTED: &str = "unwanted";

/// The reason for a refusal.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("nobody wants that")]
    Unwanted,
    #[error("{0} records are too many")]
    TooMany(usize),
}

/// A store of bytes that refuses unwanted records, and that a test can block. Clones are one store.
#[derive(Clone)]
struct Picky {
    kept: CrashStore,
    /// The maximum number of records per write.
    most: usize,
    /// Whether it refuses the record.
    refuses: Arc<dyn Fn(&Value) -> bool + Send + Sync>,
    /// Each write takes a permit.
    gate: Arc<Semaphore>,
    writes: Arc<Mutex<Vec<JudgedWrite>>>,
    /// Whether it declares that it serialises.
    serialises: bool,
}

/// A write that the store has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct JudgedWrite {
    at: u64,
    records: usize,
    is_taken: bool,
}

impl Default for Picky {
    fn default() -> Self {
        Self {
            kept: CrashStore::default(),
            most: usize::MAX,
            refuses: Arc::new(|record| record.to_string().contains(UNWANTED)),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            writes: Arc::default(),
            serialises: true,
        }
    }
}

impl Picky {
    fn of_at_most(records: usize) -> Self {
        Self { most: records, ..Self::default() }
    }

    /// Accepts this many writes at once, and no more before it is [opened](Self::open).
    fn held_after(self, writes: usize) -> Self {
        Self { gate: Arc::new(Semaphore::new(writes)), ..self }
    }

    fn open(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    /// Blocks every write from now on.
    fn hold(&self) {
        self.gate.forget_permits(usize::MAX);
    }

    fn judge(&self, batch: &Write) -> Result<(), Refusal> {
        let records = batch.records.len();
        if records > self.most {
            return Err(Refusal::TooMany(records));
        }
        let refuses = |record: &Record| {
            let text = serde_json::to_string(record).unwrap();
            (self.refuses)(&serde_json::from_str(&text).unwrap())
        };
        if batch.records.iter().any(refuses) { Err(Refusal::Unwanted) } else { Ok(()) }
    }

    fn writes(&self) -> Vec<JudgedWrite> {
        self.writes.lock().unwrap().clone()
    }

    fn is_holding(&self, held: usize) -> bool {
        self.writes().len() == held
    }

    async fn records(&self, run: &RunId) -> Vec<Record> {
        self.kept.read(run, Position(0), usize::MAX).await.unwrap()
    }
}

impl EventStore for Picky {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let (store, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            store.gate.acquire().await.unwrap().forget();
            let judged = store.judge(&batch);
            let write =
                JudgedWrite { at: expected.0, records: batch.records.len(), is_taken: judged.is_ok() };
            store.writes.lock().unwrap().push(write);
            judged.map_err(StoreError::unserialisable)?;
            store.kept.append(&run, expected, batch).await
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        // Pages are short: a journal has many.
        self.kept.read(run, from, at_most.min(7))
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.kept.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.kept.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.kept.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.kept.lease(engine, duration)
    }

    fn serialises(&self) -> bool {
        self.serialises
    }
}

fn engine<W: Workflow>(workflow: W, store: &Picky) -> Engine {
    Engine::builder().workflow(workflow).store(store.clone()).build().unwrap()
}

async fn start<W: Workflow>(engine: &Engine, number: u32) -> RunHandle<W> {
    engine.start_with::<W>(Begin(number), RunOptions::new().id("r")).await.unwrap()
}

/// Asserts that the only problem is the unwanted text.
fn assert_unwanted(error: &StoreError) {
    let StoreError::Unserialisable { source } = error else { panic!("{error:?}") };
    assert_eq!(source.downcast_ref(), Some(&Refusal::Unwanted));
    assert_eq!(error.to_string(), "the store refuses the write: nobody wants that");
}

/// Reads the journal without the workflow, and returns the run.
async fn recorded(store: &Picky) -> RecordedRun {
    RecordedRun::of(&"r".into(), &store.records(&"r".into()).await).unwrap()
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Item(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Text(String);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Said(String);

/// Emits much at the same time.
struct Wide {
    leaves: u32,
    returned: Arc<AtomicUsize>,
}

#[workflow]
impl Wide {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Vec<Text> {
        self.returned.fetch_add(1, Ordering::SeqCst);
        (0..self.leaves).map(|text| Text(format!("{} {text}", item.0))).collect()
    }

    #[step]
    async fn end(&self, texts: &Gather<Text>) -> Done {
        Done(u32::try_from(texts.branches().flat_map(|branch| branch.events()).count()).unwrap())
    }
}

#[tokio::test]
async fn branches_that_end_while_one_write_is_pending_complete_over_a_store_of_a_thousand_records() {
    let store = Picky::of_at_most(1_000).held_after(2);
    let returned = Arc::default();
    let engine = engine(Wide { leaves: 20, returned: Arc::clone(&returned) }, &store);
    let run = start::<Wide>(&engine, 900).await;
    until(async || returned.load(Ordering::SeqCst) == 900).await;
    assert_eq!(store.writes().len(), 2);
    store.open();
    assert_eq!(run.outcome().await.unwrap(), Done(18_000));
    let (writes, report) = (store.writes(), run.report().await.unwrap());
    assert!(writes.iter().all(|write| write.is_taken), "{writes:?}");
    // More than 900 events were pending at once.
    assert!(writes[2..].iter().any(|write| write.records > 900), "{writes:?}");
    assert!(report.violations.is_empty() && report.quality == Quality::Clean, "{report}");
    assert_eq!(recorded(&store).await.report().log.len(), report.log.len());
}

/// The store accepts less at once than a write may contain, but still gets everything.
#[tokio::test]
async fn a_write_that_is_too_large_for_the_store_is_repeated_batch_by_batch() {
    let store = Picky::of_at_most(101).held_after(2);
    let returned = Arc::default();
    let engine = engine(Wide { leaves: 20, returned: Arc::clone(&returned) }, &store);
    let run = start::<Wide>(&engine, 100).await;
    until(async || returned.load(Ordering::SeqCst) == 100).await;
    store.open();
    assert_eq!(run.outcome().await.unwrap(), Done(2_000));
    let writes = store.writes();
    assert!(writes.iter().any(|write| !write.is_taken) && writes.iter().any(|write| write.records == 21));
    assert_eq!(run.report().await.unwrap().quality, Quality::Clean);
}

/// Makes texts of items; the store does not want some of them.
struct Texts {
    /// The unwanted items.
    unwanted: &'static [u32],
    returned: Arc<AtomicUsize>,
}

fn text_of(item: u32, unwanted: &[u32]) -> Text {
    let what = if unwanted.contains(&item) { UNWANTED } else { "fine" };
    Text(format!("{item} {what}"))
}

#[workflow]
impl Texts {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Text {
        self.returned.fetch_add(1, Ordering::SeqCst);
        text_of(item.0, self.unwanted)
    }

    #[step]
    async fn end(&self, texts: &FixedList<Text, 5>) -> Done {
        Done(u32::try_from(texts.len()).unwrap())
    }
}

/// The same, but continues without them.
struct Copes(Texts);

#[workflow]
impl Copes {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(retry = RetryPolicy::standard())]
    async fn work(&self, item: &Item) -> Text {
        self.0.returned.fetch_add(1, Ordering::SeqCst);
        text_of(item.0, self.0.unwanted)
    }

    #[step(catches = [work])]
    async fn recover(&self, failed: &StepFailed) -> Text {
        Text(format!("instead of {}: {}", failed.execution, failed.error))
    }

    #[step]
    async fn end(&self, texts: &FixedList<Text, 5>, note: &Note) -> Done {
        Done(u32::try_from(texts.len()).unwrap() + note.0)
    }
}

/// The same, with a limit: one text is made at a time.
struct Limited(Texts);

#[workflow]
impl Limited {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(limit = "texts", concurrency = 2, on_error = "continue")]
    async fn work(&self, item: &Item) -> Text {
        self.0.returned.fetch_add(1, Ordering::SeqCst);
        // The others wait for the limit by now.
        tokio::task::yield_now().await;
        text_of(item.0, self.0.unwanted)
    }

    #[step]
    async fn end(&self, texts: &FixedList<Text, 4>) -> Done {
        Done(u32::try_from(texts.len()).unwrap())
    }
}

// S70
#[tokio::test]
async fn attempts_that_wait_for_a_limit_wait_on_when_the_store_refuses_the_batch_of_another() {
    for unwanted in [&[0_u32], &[3]] {
        let returned = Arc::<AtomicUsize>::default();
        let texts = Texts { unwanted, returned: Arc::clone(&returned) };
        let engine = Engine::builder().workflow(Limited(texts)).store(Picky::default());
        let engine = engine.limit("texts", workflow_core::Limit::concurrent(1)).build().unwrap();
        let run = start::<Limited>(&engine, 5).await;
        assert_eq!(run.outcome().await.unwrap(), Done(4));
        let report = run.report().await.unwrap();
        assert_eq!((returned.load(Ordering::SeqCst), report.executions("work")), (5, 5), "{report}");
    }
}

#[tokio::test]
async fn a_batch_that_the_store_refuses_fails_its_execution_with_the_stores_reason() {
    let store = Picky::default().held_after(2);
    let returned = Arc::default();
    let engine = engine(Texts { unwanted: &[1], returned: Arc::clone(&returned) }, &store);
    let run = start::<Texts>(&engine, 5).await;
    until(async || returned.load(Ordering::SeqCst) == 5).await;
    store.open();
    let error = run.outcome().await.unwrap_err();
    let RunError::StepFailed { step, class, source, .. } = &error else { panic!("{error:?}") };
    assert_eq!((&**step, *class), ("work", ErrorClass::Permanent));
    assert_unwanted(source.downcast_ref().unwrap());
    // The batches of the others in the same write stay.
    let report = run.report().await.unwrap();
    let outcomes: Vec<_> =
        report.trace.iter().filter(|it| &*it.step == "work").map(|it| &it.outcome).collect();
    let succeeded = outcomes.iter().filter(|outcome| ***outcome == ExecutionOutcome::Succeeded).count();
    assert_eq!((outcomes.len(), succeeded), (5, 4), "{report}");
    let texts = store
        .records(run.id())
        .await
        .into_iter()
        .filter(|record| matches!(record, Record::EventLogged { event, .. } if event.name() == "Text"));
    assert_eq!(texts.count(), 4);
    let recorded = recorded(&store).await;
    assert_eq!((recorded.status(), recorded.report().log.len()), (RunStatus::Failed, report.log.len()));
    let failed = recorded.report().trace.iter().find_map(|it| match &it.outcome {
        ExecutionOutcome::Failed { error, .. } => Some(error.clone()),
        _ => None,
    });
    assert_eq!(failed.as_deref(), Some("the store refuses the write: nobody wants that"));
    // Refused with the others, then alone, and never tried again.
    let refused = store.writes().iter().filter(|write| !write.is_taken).count();
    assert_eq!(refused, 2, "{:?}", store.writes());
}

#[tokio::test]
async fn a_refused_batch_is_a_failure_that_can_be_caught_and_the_run_is_resumed() {
    for unwanted in [&[0][..], &[4], &[1, 2], &[0, 1, 2, 3, 4]] {
        let store = Picky::default().held_after(2);
        let returned = Arc::<AtomicUsize>::default();
        let copes = || Copes(Texts { unwanted, returned: Arc::clone(&returned) });
        let first = engine(copes(), &store);
        let run = start::<Copes>(&first, 5).await;
        until(async || returned.load(Ordering::SeqCst) == 5).await;
        store.open();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        let before = run.report_so_far().await.unwrap();
        assert_eq!(before.quality, Quality::Degraded);
        let texts: Vec<&Text> = before.log.iter().filter_map(|event| event.value.downcast_ref()).collect();
        assert_eq!(texts.len(), 5, "{texts:?}");
        let made_good = texts.iter().filter(|text| text.0.contains("nobody wants that")).count();
        assert_eq!(made_good, unwanted.len(), "{texts:?}");
        assert_eq!(recorded(&store).await.report().log.len(), before.log.len());
        drop((run, first));
        // A permanent failure is not retried, and no execution is repeated.
        assert_eq!(returned.load(Ordering::SeqCst), 5);
        let second = engine(copes(), &store);
        let resumed = second.resume_open_runs().await.unwrap();
        assert!(resumed.refused.is_empty(), "{resumed:?}");
        let run = second.attach::<Copes>("r").await.unwrap();
        run.send(Note(10)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(15));
        assert_eq!(returned.load(Ordering::SeqCst), 5);
    }
}

/// Takes texts from outside until there are two, and requests one.
struct Listens;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = String)]
struct Ask;

#[workflow]
impl Listens {
    #[step]
    async fn ask(&self, _begin: &Begin) -> Ask {
        Ask
    }

    #[step]
    async fn end(&self, said: &FixedList<Said, 2>, reply: &Reply<Ask>) -> Done {
        let said: usize = said.iter().map(|said| said.0.len()).sum();
        Done(u32::try_from(said + reply.len()).unwrap())
    }
}

fn assert_refused(sent: Result<(), SendError>, name: &str) {
    let error = sent.unwrap_err();
    let SendError::Refused { run, event, source } = &error else { panic!("{error:?}") };
    assert_eq!((run.as_str(), &**event), ("r", name));
    assert_unwanted(source);
}

fn said(text: &str) -> Said {
    Said(text.into())
}

#[tokio::test]
async fn a_refused_send_is_an_error_of_its_caller_and_later_sends_work() {
    let store = Picky::default();
    let engine = engine(Listens, &store);
    let run = start::<Listens>(&engine, 0).await;
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let request = run.requests().await.unwrap()[0].id::<Ask>().unwrap();
    let before = store.records(run.id()).await.len();
    assert_refused(run.send(said(UNWANTED)).await, "Said");
    assert_refused(run.reply(request, UNWANTED.into()).await, "Ask.reply");
    // The run waits as before, and its journal has nothing else.
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let after = store.records(run.id()).await;
    assert!(after[before..].iter().all(|record| matches!(record, Record::RunWaiting { .. })), "{after:?}");
    let listed = store.runs(&RunQuery::new()).await.unwrap();
    assert_eq!(listed[0].run.status, RunStatus::Waiting);
    run.send(said("a")).await.unwrap();
    assert_refused(run.send(said(UNWANTED)).await, "Said");
    run.reply(request, "bcd".into()).await.unwrap();
    run.send(said("ef")).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(6));
    assert!(recorded(&store).await.status() == RunStatus::Completed);
}

#[tokio::test]
async fn sends_of_the_same_write_as_a_refused_one_arrive() {
    let store = Picky::default();
    let engine = engine(Listens, &store);
    let run = start::<Listens>(&engine, 0).await;
    run.settled().await;
    let request: RequestId<Ask> = run.requests().await.unwrap()[0].id().unwrap();
    let before = store.writes().len();
    store.hold();
    let sends = async {
        tokio::join!(
            run.send(said("a")),
            run.send(said(UNWANTED)),
            run.reply(request, "bcd".into()),
            run.send(said(UNWANTED)),
        )
    };
    let opens = async {
        until(async || store.is_holding(before)).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        store.open();
    };
    let (sent, report, ()) = tokio::join!(sends, run.report_so_far(), opens);
    assert!(sent.0.is_ok() && sent.2.is_ok(), "{sent:?}");
    assert_refused(sent.1, "Said");
    assert_refused(sent.3, "Said");
    // The report has nothing of the refused events.
    let report = report.unwrap();
    assert_eq!((report.log.len(), report.violations.len()), (4, 0), "{report}");
    run.send(said("ef")).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(6));
}

#[tokio::test]
async fn a_start_event_that_the_store_refuses_starts_nothing() {
    let store = Picky {
        refuses: Arc::new(|record| record["event_logged"]["event"]["data"] == 7),
        ..Picky::default()
    };
    let engine = engine(Listens, &store);
    let error = engine.start_with::<Listens>(Begin(7), RunOptions::new().id("r")).await.unwrap_err();
    let StartError::Store(error) = &error else { panic!("{error:?}") };
    assert_unwanted(error);
    assert!(store.runs(&RunQuery::new()).await.unwrap().is_empty());
    assert_eq!(start::<Listens>(&engine, 8).await.settled().await, RunStatus::Waiting);
}

/// Sets a timer.
struct Rings;

#[workflow]
impl Rings {
    #[step]
    async fn set(&self, begin: &Begin) -> Timer<Item> {
        Timer::after(Duration::from_mins(1), Item(begin.0))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

#[tokio::test(start_paused = true)]
async fn the_event_of_a_timer_that_the_store_refuses_ends_the_run_with_the_reason() {
    let is_fired = |record: &Value| record["event_logged"]["event"]["type"] == "Item";
    let store = Picky { refuses: Arc::new(is_fired), ..Picky::default() };
    let engine = Engine::builder().workflow(Rings).store(store.clone()).clock(VirtualClock::new());
    let run = start::<Rings>(&engine.build().unwrap(), 5).await;
    let error = run.outcome().await.unwrap_err();
    let RunError::Store { source } = &error else { panic!("{error:?}") };
    assert_unwanted(source);
    // Its journal is unchanged: with a store that accepts the record the run continues.
    let well = Engine::builder().workflow(Rings).store(store.kept.clone()).clock(VirtualClock::new());
    let well = well.build().unwrap();
    well.resume_open_runs().await.unwrap();
    assert_eq!(well.attach::<Rings>("r").await.unwrap().outcome().await.unwrap(), Done(5));
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Early(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Late(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Told(String);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Alarm(u32);

/// Two steps set a timer each; the store does not want the first one's other event.
struct Alarms;

#[workflow]
impl Alarms {
    #[step]
    async fn split(&self, begin: &Begin) -> (Early, Late) {
        (Early(begin.0), Late(begin.0))
    }

    #[step]
    async fn early(&self, _early: &Early) -> (Told, Timer<Alarm>) {
        (Told(UNWANTED.into()), Timer::after(Duration::from_secs(1), Alarm(1)))
    }

    #[step]
    async fn late(&self, _late: &Late) -> Timer<Alarm> {
        Timer::after(Duration::from_hours(1), Alarm(2))
    }

    #[step(catches = [early])]
    async fn cope(&self, _failed: &StepFailed) {}

    #[step]
    async fn end(&self, alarm: &Alarm) -> Done {
        Done(alarm.0)
    }
}

// S23, S32
#[tokio::test(start_paused = true)]
async fn a_timer_of_a_refused_batch_never_was_though_it_fired_before_the_refusal() {
    let store = Picky::default().held_after(2);
    let engine = Engine::builder().workflow(Alarms).store(store.clone()).clock(VirtualClock::new());
    let run = start::<Alarms>(&engine.build().unwrap(), 5).await;
    until(async || store.is_holding(2)).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    store.open();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    assert_eq!(run.report().await.unwrap().executions("cope"), 1);
    assert_eq!(recorded(&store).await.status(), RunStatus::Completed);
}

/// Ends with an unwanted event, while other work is active.
struct Ends {
    slow: Arc<Semaphore>,
    slow_began: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
    attempts: Arc<AtomicUsize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Finished(String);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Slow(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Checked(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Retried(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Rang(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Made(u32);

#[workflow]
impl Ends {
    #[step]
    async fn make(&self, begin: &Begin) -> (Made, Timer<Rang>) {
        (Made(begin.0), Timer::after(Duration::from_secs(90), Rang(1_000)))
    }

    #[step]
    async fn ends(&self, _made: &Made) -> Finished {
        // The others have begun.
        while self.attempts.load(Ordering::SeqCst) < 1 {
            tokio::task::yield_now().await;
        }
        Finished(UNWANTED.into())
    }

    #[step(catches = [ends])]
    async fn recover(&self, failed: &StepFailed) -> Text {
        Text(failed.error.to_string())
    }

    #[step]
    async fn slow(&self, made: &Made) -> Slow {
        self.slow_began.fetch_add(1, Ordering::SeqCst);
        self.slow.acquire().await.unwrap().forget();
        Slow(made.0)
    }

    #[step(precondition = may)]
    async fn checked(&self, _made: &Made) -> Checked {
        Checked(10)
    }

    #[precondition]
    async fn may(&self, _made: &Made) -> bool {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.slow.acquire().await.unwrap().forget();
        true
    }

    #[step(retry = RetryPolicy::standard())]
    async fn retried(&self, _made: &Made, info: &RunInfo) -> Result<Retried, StepError> {
        self.attempts.fetch_add(1, Ordering::SeqCst);
        if info.attempt() < 3 { Err(StepError::transient("not yet")) } else { Ok(Retried(100)) }
    }

    #[step]
    async fn all(&self, text: &Text, slow: &Slow, ok: &Checked, late: &Retried, rang: &Rang) -> Finished {
        Finished(format!("{} {}", text.0, slow.0 + ok.0 + late.0 + rang.0))
    }
}

// S28: nothing has ended before the store has it.
#[tokio::test(start_paused = true)]
async fn a_run_whose_end_the_store_refuses_continues_with_all_executions_in_flight() {
    let store = Picky::default();
    let (slow, slow_began, asked, attempts) =
        (Arc::new(Semaphore::new(0)), Arc::default(), Arc::default(), Arc::default());
    let ends = Ends { slow, slow_began, asked, attempts };
    let Ends { slow, slow_began, asked, attempts } = &ends;
    let counts = [slow_began, asked, attempts].map(Arc::clone);
    let slow = Arc::clone(slow);
    let engine = Engine::builder().workflow(ends).store(store.clone()).clock(VirtualClock::new());
    let engine = engine.build().unwrap();
    let run = start::<Ends>(&engine, 1).await;
    until(async || store.writes().iter().any(|write| !write.is_taken)).await;
    slow.add_permits(2);
    let Finished(text) = run.outcome().await.unwrap();
    assert_eq!(text, "the store refuses the write: nobody wants that 1111");
    assert_eq!(counts.map(|count| count.load(Ordering::SeqCst)), [1, 1, 3], "nothing was begun twice");
    let report = run.report().await.unwrap();
    assert!(report.violations.is_empty() && report.quality == Quality::Degraded, "{report}");
    let attempts = report.trace.iter().find(|it| &*it.step == "retried").unwrap().attempts.len();
    assert_eq!(attempts, 2, "{report}");
    assert_eq!(recorded(&store).await.report().log.len(), report.log.len());
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_a_batch_is_refused_is_cancelled() {
    let store = Picky::default().held_after(2);
    let returned = Arc::default();
    let engine = engine(Copes(Texts { unwanted: &[2], returned: Arc::clone(&returned) }), &store);
    let run = start::<Copes>(&engine, 5).await;
    until(async || returned.load(Ordering::SeqCst) == 5).await;
    let opens = async {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        store.open();
    };
    let (cancelled, ()) = tokio::join!(run.cancel("enough"), opens);
    cancelled.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::Cancelled { .. })));
    let (report, recorded) = (run.report().await.unwrap(), recorded(&store).await);
    assert_eq!((recorded.status(), recorded.report().log.len()), (RunStatus::Cancelled, report.log.len()));
}

/// The store fails when the run wants to read its journal.
#[tokio::test]
async fn an_outage_while_a_refused_run_reads_its_journal_ends_the_run() {
    let store = Picky::default();
    let faulty = workflow_testkit::FaultyStore::new(store.clone());
    let faulty = faulty.fail(workflow_testkit::StoreCall::Read, 2, workflow_testkit::Fault::Refused);
    let engine = Engine::builder().workflow(Listens).store(faulty).build().unwrap();
    let run = start::<Listens>(&engine, 0).await;
    run.settled().await;
    for text in ["fine", UNWANTED, UNWANTED] {
        let _ = run.send(said(text)).await;
    }
    let error = run.outcome().await.unwrap_err();
    assert!(matches!(error, RunError::Store { source: StoreError::Unavailable { .. } }), "{error}");
    let well = engine_of(&store.kept);
    well.resume_open_runs().await.unwrap();
    let run = well.attach::<Listens>("r").await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    assert!(run.report_so_far().await.unwrap().log.iter().any(|event| &*event.event == "Said"));
}

fn engine_of(store: &CrashStore) -> Engine {
    Engine::builder().workflow(Listens).store(store.clone()).build().unwrap()
}
