//! Journals with changed records: decodes their bytes, builds runs from the records alone, and resumes them in engines.

use std::cell::RefCell;
use std::panic;
use std::sync::{Arc, Once, OnceLock};
use std::time::{Duration, SystemTime};

use futures::future::LocalBoxFuture;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use workflow_core::prelude::*;
use workflow_core::store::{
    EventStore, MemoryStore, Position, Record, Retention, RunQuery, RunSummary, Write,
};
use workflow_core::{RecordedRun, RunId, RunOptions};
use workflow_testkit::VirtualClock;

use crate::shapes::{Begin, Done, Fails, Lists, Nested, Note, Parents, Rounds, Small, Whole};
use crate::watchdog::Watchdog;
use crate::{Edit, INPUTS, TIME, mutate, pick};

/// The time limit of an engine for a journal, on virtual time.
const LIFE: Duration = Duration::from_hours(24);

/// The setup and use of an engine, one option per bit.
#[derive(Clone, Copy)]
struct Way(u8);

impl Way {
    /// Uses the system's clock, which stands still while tokio's advances: future times stay in the future.
    const SYSTEM_CLOCK: Self = Self(1);
    const LEASE: Self = Self(2);
    const UNLOADS: Self = Self(4);
    const LIMITED: Self = Self(8);
    const CANCELS: Self = Self(16);
    const LEAVES: Self = Self(32);
    const REMOVES: Self = Self(64);

    fn has(self, way: Self) -> bool {
        self.0 & way.0 != 0
    }
}

fn engine(store: &Arc<MemoryStore>, way: Way) -> Engine {
    let mut engine = Engine::builder().workflow(Whole).workflow(Small).workflow(Nested).workflow(Lists);
    engine = engine.workflow(Rounds).workflow(Fails).workflow(Parents);
    if !way.has(Way::SYSTEM_CLOCK) {
        engine = engine.clock(VirtualClock::new());
    }
    if way.has(Way::LEASE) {
        engine = engine.lease(Duration::from_mins(1));
    }
    if way.has(Way::UNLOADS) {
        engine = engine.unload_waiting_after(Duration::from_mins(5));
    }
    if way.has(Way::LIMITED) {
        engine = engine.max_concurrent_executions(1).max_concurrent_runs(1).max_executions_per_run(20);
    }
    engine.store(Arc::clone(store)).build().unwrap()
}

/// One thread, whose clock jumps to the next timer.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// The journals of a run and its children, by id, and the use of a run of its workflow.
struct Family {
    journals: Vec<(RunId, Vec<Value>)>,
    use_root: for<'a> fn(&'a Engine, Way) -> LocalBoxFuture<'a, ()>,
}

/// The root run's id.
const ROOT: &str = "a";

/// Journals of each shape: of a waiting run, a resumed one, and an ended one.
fn valid() -> &'static [Family] {
    static VALID: OnceLock<Vec<Family>> = OnceLock::new();
    VALID.get_or_init(|| {
        runtime().block_on(async {
            let mut all = Vec::new();
            all.extend(family::<Whole>(3).await);
            all.extend(family::<Nested>(4).await);
            all.extend(family::<Lists>(4).await);
            all.extend(family::<Rounds>(3).await);
            all.extend(family::<Fails>(3).await);
            all.extend(family::<Parents>(2).await);
            all
        })
    })
}

async fn family<W: Workflow<Output = Done>>(begin: u32) -> Vec<Family> {
    let store = Arc::new(MemoryStore::default());
    let mut families = Vec::new();
    let way = Way(0);
    let first = engine(&store, way);
    let run = first.start_with::<W>(Begin(begin), RunOptions::new().id(ROOT)).await.unwrap();
    families.push(taken::<W>(&store).await);
    tokio::time::sleep(Duration::from_secs(15)).await;
    families.push(taken::<W>(&store).await);
    first.shut_down(LIFE).await;
    drop(run);
    let second = engine(&store, way);
    drop(second.resume_open_runs().await.unwrap());
    tokio::time::sleep(Duration::from_hours(1)).await;
    families.push(taken::<W>(&store).await);
    use_run::<W>(&second, way).await;
    second.cancel_all("the engine is shutting down", LIFE).await;
    families.push(taken::<W>(&store).await);
    families
}

/// The store's content as JSON.
async fn taken<W: Workflow<Output = Done>>(store: &MemoryStore) -> Family {
    let mut journals = Vec::new();
    for stored in store.runs(&RunQuery::new()).await.unwrap() {
        let records = store.read(&stored.id, Position(0), 10_000).await.unwrap();
        let records = records.iter().map(|record| serde_json::to_value(record).unwrap()).collect();
        journals.push((stored.id, records));
    }
    Family { journals, use_root: |engine, way| Box::pin(use_run::<W>(engine, way)) }
}

/// The journals to change, and the changes.
type Input = (u8, u8, Vec<Edit>);

/// The journals of a family with changes, decoded into records.
fn edited((which, way, edits): &Input) -> (&'static Family, Vec<(RunId, Vec<Record>)>) {
    let families = valid();
    let family = &families[usize::from(*which) % families.len()];
    let others = &families[usize::from(which.wrapping_mul(31).wrapping_add(*way)) % families.len()];
    let mut journals = family.journals.clone();
    let count = journals.len();
    for (place, (_, records)) in journals.iter_mut().enumerate() {
        // The first is the root. Usually only the root is changed, or only one other.
        let is_chosen = match way / 2 % 4 {
            0 | 1 => place == 0,
            2 => place == edits.len() % count,
            _ => true,
        };
        if is_chosen {
            let splices = &others.journals[edits.len() % others.journals.len()].1;
            mutate::journal(records, splices, edits, |record| as_record(record).is_some());
        }
    }
    let journals = journals.into_iter().map(|(id, records)| (id, decoded(&records)));
    (family, journals.filter(|(_, records)| !records.is_empty()).collect())
}

fn as_record(record: &Value) -> Option<Record> {
    serde_json::from_str(&record.to_string()).ok()
}

/// The records up to the first that is none.
fn decoded(records: &[Value]) -> Vec<Record> {
    records.iter().map_while(as_record).collect()
}

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The panics of the work on this thread, including those inside tasks.
fn panics_of(work: impl FnOnce()) -> Vec<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            PANICS.with_borrow_mut(|panics| panics.push(panic.to_string()));
            before(panic);
        }));
    });
    PANICS.take();
    work();
    PANICS.take()
}

/// Builds a run from the records alone, and computes everything from it. Returns whether the records were accepted.
pub(crate) fn look(records: &[Record]) -> bool {
    let Ok(run) = RecordedRun::of(&ROOT.into(), records) else { return false };
    let report = run.report();
    drop((run.status(), report.to_string(), report.timeline().to_string(), format!("{run:?} {report:?}")));
    let explanation = run.explain();
    drop((explanation.to_string(), format!("{explanation:?}")));
    drop((serde_json::to_value(report).unwrap(), serde_json::to_value(&explanation).unwrap()));
    drop((run.graph().to_mermaid(), run.graph().to_dot(), run.graph().to_json()));
    drop((run.table().shape(), run.table().graph().to_json()));
    true
}

async fn resume(family: &Family, journals: Vec<(RunId, Vec<Record>)>, way: Way) {
    let store = Arc::new(MemoryStore::default());
    for (id, records) in journals {
        let run = summary(&records);
        store.append(&id, Position(0), Write { records, run }).await.unwrap();
    }
    let engine = engine(&store, way);
    // Errors are typed. A run may still wait when the time is over.
    drop(tokio::time::timeout(LIFE, use_engine(&engine, family, way)).await);
    let ends = async {
        if way.has(Way::LEAVES) {
            engine.shut_down(LIFE / 4).await;
        }
        engine.cancel_all("the engine is shutting down", LIFE).await;
    };
    let has_ended = tokio::time::timeout(2 * LIFE, ends).await.is_ok();
    // On the system's clock, the engine's time limits never pass.
    assert!(has_ended || way.has(Way::SYSTEM_CLOCK), "the engine cannot be shut down");
    for stored in store.runs(&RunQuery::new()).await.unwrap() {
        look(&store.read(&stored.id, Position(0), usize::MAX).await.unwrap());
    }
}

/// The summary that a store would list.
fn summary(records: &[Record]) -> RunSummary {
    let run = match records.first() {
        Some(Record::RunStarted { workflow, at, .. }) => RunSummary::running(Arc::clone(workflow), *at),
        _ => RunSummary::running("Whole", SystemTime::UNIX_EPOCH),
    };
    // A run that is kept, or learns of the end of a child, waits as before.
    let is_news = |record: &&Record| !matches!(record, Record::RunKept { .. } | Record::ChildrenEnded { .. });
    match records.iter().rfind(is_news) {
        Some(Record::RunEnded { status, .. }) => run.ended(*status),
        Some(Record::RunWaiting { waits_for, .. }) => run.waiting(waits_for.clone()),
        _ => run,
    }
}

async fn use_engine(engine: &Engine, family: &Family, way: Way) {
    drop(engine.resume_open_runs().await.unwrap());
    (family.use_root)(engine, way).await;
    let listed = engine.runs(&RunQuery::new()).await.unwrap();
    if way.has(Way::REMOVES) {
        for stored in listed {
            drop(engine.remove_run(&stored.id).await);
        }
        drop(engine.retain(&Retention::none()).await);
    }
}

async fn use_run<W: Workflow<Output = Done>>(engine: &Engine, way: Way) {
    let Ok(run) = engine.attach::<W>(ROOT).await else { return };
    drop((run.timers().await, run.requests().await));
    drop(run.report_so_far().await.map(|report| (report.to_string(), report.timeline().to_string())));
    drop(run.explain().await.map(|explanation| explanation.to_string()));
    drop(run.send(Note(2)).await);
    tokio::time::sleep(LIFE / 4).await;
    // Requests come one after the other.
    for _ in 0..8 {
        let requests = run.requests().await.unwrap_or_default();
        let Some(request) = requests.first() else { break };
        drop(run.reply_json(request.seq(), json!(7)).await);
        run.settled().await;
    }
    drop(run.send(Note(9)).await);
    if way.has(Way::CANCELS) {
        drop(run.cancel("enough").await);
    }
    drop(tokio::time::timeout(LIFE / 4, run.outcome()).await);
    drop(run.report_so_far().await.map(|report| report.to_string()));
    drop(run.explain().await.map(|explanation| explanation.to_string()));
}

#[test]
fn a_journal_that_was_changed_is_read_alone_or_refused() {
    let check = bolero::check!().with_iterations(10 * INPUTS).with_test_time(TIME);
    let watchdog = Watchdog::of("journals read alone");
    check.with_type::<Input>().for_each(|input| {
        watchdog
            .watch(input, || edited(input).1.iter().fold(true, |read, (_, records)| look(records) && read));
    });
}

#[test]
fn a_record_of_any_bytes_is_decoded_or_refused() {
    let check = bolero::check!().with_iterations(10 * INPUTS).with_test_time(TIME);
    let watchdog = Watchdog::of("bytes of records");
    check.with_type::<(u8, u32, Vec<(u32, u8)>)>().for_each(|input| {
        let (which, record, flips) = input;
        let families = valid();
        let journals = &families[usize::from(*which) % families.len()].journals;
        let records = &journals[pick(record.rotate_left(16), journals.len())].1;
        let mut bytes = records[pick(*record, records.len())].to_string().into_bytes();
        for (at, with) in flips.iter().take(1 + pick(*record, 4)) {
            let at = pick(*at, bytes.len());
            bytes[at] ^= 1 << (with % 8);
        }
        watchdog.watch(input, || {
            serde_json::from_slice::<Record>(&bytes).is_ok_and(|record| {
                look(&[record]);
                true
            })
        });
    });
}

#[test]
fn an_engine_resumes_a_journal_that_was_changed_or_refuses_it() {
    let check = bolero::check!().with_iterations(INPUTS).with_test_time(TIME);
    let watchdog = Watchdog::of("journals resumed");
    check.with_type::<Input>().for_each(|input| {
        watchdog.watch(input, || {
            let (family, journals) = edited(input);
            let is_read = look(journals.first().map_or(&[], |(_, records)| records));
            let panics = panics_of(|| runtime().block_on(resume(family, journals, Way(input.1))));
            assert!(panics.is_empty(), "{panics:?}");
            is_read
        });
    });
}
