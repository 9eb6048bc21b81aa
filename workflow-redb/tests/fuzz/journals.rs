//! Journals with changed records: bytes of records decoded, runs made of records alone, and engines that resume them.

use std::cell::RefCell;
use std::panic;
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use workflow_core::prelude::*;
use workflow_core::{
    Batch, ErrorClass, EventStore, MemoryStore, Position, Record, RecordedRun, Retries, RetryPolicy, RunId,
    RunOptions, RunSummary,
};
use workflow_testkit::VirtualClock;

use crate::watchdog::watched;
use crate::{Edit, INPUTS, TIME, few, pick};

/// How long an engine has for a journal, by a clock that does not wait.
const LIFE: Duration = Duration::from_hours(24);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Item(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Total(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Late(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u32);

/// Branches with retries and children, a timer, a request, a message from outside.
struct Whole;

fn twice() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(2, Duration::from_secs(10)))
}

#[workflow]
impl Whole {
    #[step]
    async fn open(&self, begin: &Begin) -> (FanOut<Item>, Timer<Late>) {
        // A changed journal may ask for any number.
        let items = (0..begin.0.min(5)).map(Item).collect();
        (items, Timer::after(Duration::from_mins(1), Late(begin.0)))
    }

    #[step(retry = twice())]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        if item.0 == 1 && info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn add(&self, parts: &Gather<Part>, children: &Children) -> Result<Total, RunError> {
        let Done(more) = children.run::<Small>(Begin(1)).await?;
        Ok(Total(parts.ok().map(|part| part.0).fold(more, u32::wrapping_add)))
    }

    #[step]
    async fn ask(&self, total: &Total) -> Ask {
        Ask(total.0)
    }

    #[step]
    async fn end(&self, reply: &Reply<Ask>, note: &Note, late: &Late) -> Done {
        Done((**reply).wrapping_add(note.0).wrapping_add(late.0))
    }
}

struct Small;

#[workflow]
impl Small {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

fn engine(store: &Arc<MemoryStore>) -> Engine {
    let engine = Engine::builder().workflow(Whole).workflow(Small).clock(VirtualClock::new());
    engine.store(Arc::clone(store)).build().unwrap()
}

/// One thread, whose clock jumps to the next timer.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// The journals of a run that waits, of one that ended, and of a child.
fn valid() -> &'static [Vec<Value>; 3] {
    static VALID: OnceLock<[Vec<Value>; 3]> = OnceLock::new();
    VALID.get_or_init(|| {
        runtime().block_on(async {
            let store = Arc::new(MemoryStore::default());
            let engine = engine(&store);
            let start = |id: &str| engine.start_with::<Whole>(Begin(3), RunOptions::new().id(id));
            let (_waits, ends) = (start("waits").await.unwrap(), start("ends").await.unwrap());
            ends.send(Note(1)).await.unwrap();
            tokio::time::sleep(LIFE / 2).await;
            let open = ends.requests().await.unwrap();
            let request = open.first().unwrap();
            ends.reply_json(request.seq(), json!(5)).await.unwrap();
            ends.outcome().await.unwrap();
            let runs = store.runs(&workflow_core::RunQuery::new()).await.unwrap();
            let child = runs.iter().find(|run| run.id.as_str().contains('/')).unwrap();
            let mut journals = Vec::new();
            for id in [&"waits".into(), &"ends".into(), &child.id] {
                let records = store.read(id, Position(0), 10_000).await.unwrap();
                journals.push(records.iter().map(|record| serde_json::to_value(record).unwrap()).collect());
            }
            journals.try_into().unwrap()
        })
    })
}

/// Numbers that are hard to count with.
fn number(was: &Value, with: u8) -> Value {
    let was = was.as_u64().unwrap_or_default();
    let numbers =
        [0, 1, 2, was.wrapping_add(1), was.wrapping_sub(1), 1 << 31, 1 << 32, u64::MAX - 1, u64::MAX];
    match usize::from(with) % (numbers.len() + 2) {
        9 => json!(-1),
        10 => json!(f64::MAX),
        place => json!(numbers[place]),
    }
}

/// Where a value has no parts.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(at, item)| leaves(item, &format!("{path}/{at}"), found));
        }
        Value::Object(members) if !members.is_empty() => {
            members.iter().for_each(|(key, member)| leaves(member, &format!("{path}/{key}"), found));
        }
        _ => found.push(path.to_owned()),
    }
}

fn edited(which: u8, edits: &[Edit]) -> Vec<Value> {
    let mut records = valid()[usize::from(which % 3)].clone();
    for (kind, at, to, with) in few(edits) {
        if records.is_empty() {
            break;
        }
        let (from, into) = (pick(*at, records.len()), pick(*to, records.len()));
        match kind % 12 {
            0 => drop(records.remove(from)),
            1 => records.insert(into, records[from].clone()),
            2 => records.swap(from, into),
            3 if *with < 64 => records.truncate(from.max(1)),
            3 => records[from] = valid()[usize::from(with % 3)][0].clone(),
            _ => change(&mut records, from, (*kind, *at, *to, *with)),
        }
    }
    records
}

/// Changes a part of a record, to another number or to a part of another record.
fn change(records: &mut [Value], from: usize, (kind, at, to, with): Edit) {
    let (mut paths, mut others) = (Vec::new(), Vec::new());
    leaves(&records[from], "", &mut paths);
    let other = records[pick(to, records.len())].clone();
    leaves(&other, "", &mut others);
    let path = &paths[pick(at.rotate_left(16), paths.len())];
    let Some(part) = records[from].pointer_mut(path) else { return };
    if part.is_number() && kind % 4 != 0 {
        *part = number(part, with);
    } else if let Some(other) = other.pointer(&others[pick(to.rotate_left(16), others.len())]) {
        *part = other.clone();
    }
}

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What the work panicked with on this thread, in a task too, which would keep it to itself.
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

/// The records up to the first that is none.
fn decoded(records: &[Value]) -> Vec<Record> {
    records.iter().map_while(|record| serde_json::from_str(&record.to_string()).ok()).collect()
}

fn look(records: &[Record]) {
    if let Ok(run) = RecordedRun::of(&"a".into(), records) {
        drop((run.status(), run.report().to_string(), run.explain().to_string()));
        drop((run.graph().to_mermaid(), run.graph().to_dot(), run.graph().to_json()));
    }
}

async fn resume(records: Vec<Record>) {
    let (store, id) = (Arc::new(MemoryStore::default()), RunId::from("a"));
    let run = RunSummary::running("Whole", std::time::SystemTime::UNIX_EPOCH);
    store.append(&id, Position(0), Batch { records, run }).await.unwrap();
    let engine = engine(&store);
    // Errors are typed. A run that still waits when the time is over is one that may.
    drop(tokio::time::timeout(LIFE, use_run(&engine)).await);
    assert!(
        tokio::time::timeout(LIFE, engine.shut_down(LIFE)).await.is_ok(),
        "the engine cannot be shut down"
    );
}

async fn use_run(engine: &Engine) {
    drop(engine.resume_open_runs().await.unwrap());
    let Ok(run) = engine.attach::<Whole>("a").await else { return };
    drop(run.send(Note(2)).await);
    tokio::time::sleep(LIFE / 2).await;
    if let Some(request) = run.requests().await.unwrap_or_default().first() {
        drop(run.reply_json(request.seq(), json!(7)).await);
    }
    drop(run.outcome().await);
    drop(run.report().await.map(|report| report.to_string()));
    drop(run.explain().await.map(|explanation| explanation.to_string()));
}

#[test]
fn a_journal_that_was_changed_is_read_alone_or_refused() {
    let check = bolero::check!().with_iterations(10 * INPUTS).with_test_time(TIME);
    check.with_type::<(u8, Vec<Edit>)>().for_each(|(which, edits)| {
        watched(&(which, edits), || look(&decoded(&edited(*which, edits))));
    });
}

#[test]
fn a_record_of_any_bytes_is_decoded_or_refused() {
    let check = bolero::check!().with_iterations(10 * INPUTS).with_test_time(TIME);
    check.with_type::<(u8, u32, Vec<(u32, u8)>)>().for_each(|(which, record, flips)| {
        let records = &valid()[usize::from(which % 3)];
        let mut bytes = records[pick(*record, records.len())].to_string().into_bytes();
        for (at, with) in flips {
            let at = pick(*at, bytes.len());
            bytes[at] ^= 1 << (with % 8);
        }
        if let Ok(record) = serde_json::from_slice::<Record>(&bytes) {
            look(&[record]);
        }
    });
}

#[test]
fn an_engine_resumes_a_journal_that_was_changed_or_refuses_it() {
    let check = bolero::check!().with_iterations(INPUTS).with_test_time(TIME);
    check.with_type::<(u8, Vec<Edit>)>().for_each(|(which, edits)| {
        let records = decoded(&edited(*which, edits));
        let panics = watched(&(which, edits), || panics_of(|| runtime().block_on(resume(records))));
        assert!(panics.is_empty(), "{panics:?}");
    });
}
