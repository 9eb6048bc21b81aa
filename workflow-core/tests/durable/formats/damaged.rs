//! Journals with numbers and names that no engine has written: a reader returns a typed error or succeeds, and does not
//! panic (S39).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use workflow_core::errors::{Incompatibility, RecordedRunError};
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, Position, Record, RunQuery, RunSummary, Write};
use workflow_core::table::TableProblem;
use workflow_core::{RecordedRun, ResumeError, RunOptions, RunStatus};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note, Part};
use crate::shapes::{Branches, Waits};

/// The last second that the system's clock can show.
const LAST: u64 = i64::MAX.unsigned_abs();

/// The journal of a run that waits, as JSON.
async fn journal<W: Workflow>(workflow: W, at: Duration) -> Vec<Value> {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(workflow).store(Arc::clone(&store)).clock(VirtualClock::new());
    let engine = engine.build().unwrap();
    let run = engine.start_with::<W>(Begin(3), RunOptions::new().id("r")).await.unwrap();
    tokio::time::sleep(at).await;
    drop(run);
    let records = store.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
    records.iter().map(|record| serde_json::to_value(record).unwrap()).collect()
}

/// The records of this kind.
fn of<'a>(journal: &'a mut [Value], kind: &'a str) -> impl Iterator<Item = &'a mut Value> {
    journal.iter_mut().filter_map(move |record| record.get_mut(kind))
}

fn set_times(journal: &mut [Value], seconds: u64) {
    for record in journal {
        let (_, body) = record.as_object_mut().unwrap().iter_mut().next().unwrap();
        body["at"] = json!({ "secs_since_epoch": seconds, "nanos_since_epoch": 999_999_999 });
    }
}

fn decoded(journal: &[Value]) -> Vec<Record> {
    journal.iter().map(|record| serde_json::from_str(&record.to_string()).unwrap()).collect()
}

async fn store_of(journal: &[Value]) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::default());
    let records = decoded(journal);
    let run = RunSummary::running("any", std::time::SystemTime::UNIX_EPOCH);
    store.append(&"r".into(), Position(0), Write { records, run }).await.unwrap();
    store
}

/// Sets timers for the given times.
struct Sets;

#[workflow]
impl Sets {
    #[step]
    async fn set(&self, _begin: &Begin, note: &Note) -> (Item, Timer<Part>) {
        (Item(note.0), Timer::after(Duration::from_secs(10), Part(note.0)))
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_began_at_the_end_of_time_continues() {
    let mut journal = journal(Sets, Duration::from_secs(1)).await;
    set_times(&mut journal, LAST);
    let by_virtual_clock = Engine::builder().clock(VirtualClock::new());
    for (engine, is_system) in [(by_virtual_clock, false), (Engine::builder(), true)] {
        let engine = engine.workflow(Sets).store(store_of(&journal).await).build().unwrap();
        let run = engine.attach::<Sets>("r").await.unwrap();
        run.send(Note(9)).await.unwrap();
        if is_system {
            // The timer is due soon by the system's clock, which a test does not wait for.
            assert_eq!(run.settled().await, RunStatus::Waiting);
            assert_eq!(run.timers().await.unwrap().len(), 1);
        } else {
            assert_eq!(run.outcome().await.unwrap(), Done(18));
        }
        assert_eq!(run.report_so_far().await.unwrap().executions("set"), 1);
    }
}

/// The contradiction in a journal, as found by a reader of records alone and by an engine.
async fn contradicted<W: Workflow>(workflow: W, journal: &[Value]) -> Position {
    let alone = RecordedRun::of(&"r".into(), &decoded(journal)).unwrap_err();
    let engine = Engine::builder().workflow(workflow).store(store_of(journal).await).build().unwrap();
    let resumed = engine.attach::<W>("r").await.unwrap_err();
    let RecordedRunError::Contradiction {
        difference: Incompatibility::Journal { position: alone, .. }, ..
    } = alone
    else {
        panic!("{alone}")
    };
    let ResumeError::Incompatible { difference: Incompatibility::Journal { position, .. }, .. } = resumed
    else {
        panic!("{resumed}")
    };
    assert_eq!(alone, position);
    position
}

// S43
#[tokio::test(start_paused = true)]
async fn items_of_another_type_than_their_fan_out_are_a_contradiction() {
    let mut journal = journal(Branches, Duration::ZERO).await;
    let item = of(&mut journal, "event_logged").find(|logged| logged["event"]["type"] == "Item").unwrap();
    item["event"]["type"] = json!("Part");
    assert_eq!(contradicted(Branches, &journal).await, Position(2));
}

// S32, S43
#[tokio::test(start_paused = true)]
async fn a_timer_event_of_another_type_is_a_contradiction() {
    let mut journal = journal(Waits, Duration::from_secs(15)).await;
    let logged = journal.len() - 2;
    let part = of(&mut journal, "event_logged").find(|logged| logged["event"]["type"] == "Part").unwrap();
    part["event"]["type"] = json!("Item");
    assert_eq!(contradicted(Waits, &journal).await, Position(logged as u64));
}

/// Takes a gather beside each note.
struct Tallies;

#[workflow]
impl Tallies {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn make(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn tally(&self, note: &Note, parts: &Gather<Part>) -> Option<Done> {
        (note.0 > 9).then(|| Done(parts.ok().map(|part| part.0).sum()))
    }

    /// Keeps the run waiting.
    #[step]
    async fn read(&self, _note: &Note) {}
}

/// A journal in which a later note bound a gather that the step had taken, as releases before this rule allowed, cannot
/// continue: the present rules lead to no such execution.
// S48
#[tokio::test(start_paused = true)]
async fn an_execution_that_took_a_gather_again_is_a_contradiction() {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(Tallies).store(Arc::clone(&store)).build().unwrap();
    let run = engine.start_with::<Tallies>(Begin(2), RunOptions::new().id("r")).await.unwrap();
    for note in [1, 2] {
        run.send(Note(note)).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
    }
    assert_eq!(run.report_so_far().await.unwrap().executions("tally"), 1);
    let records = store.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
    let mut journal: Vec<_> = records.iter().map(|record| serde_json::to_value(record).unwrap()).collect();
    // Under the former rule the second note leads to a second execution of `tally`, which comes before that of `read`.
    let last = journal.iter().rposition(|record| record.get("execution_succeeded").is_some()).unwrap();
    assert_eq!(journal[last]["execution_succeeded"]["step"], "read");
    journal[last]["execution_succeeded"]["step"] = json!("tally");
    assert_eq!(contradicted(Tallies, &journal).await, Position(last as u64));
}

/// Turns the first journal into that of a run with another table.
async fn of_table(shape: Value) -> Vec<Record> {
    let mut journal = journal(Sets, Duration::ZERO).await;
    for started in of(&mut journal, "run_started") {
        started["table"]["shape"] = shape.clone();
    }
    decoded(&journal)
}

/// Computes everything for a run with this table.
async fn looked_at(shape: Value) -> RecordedRun {
    let run = RecordedRun::of(&"r".into(), &of_table(shape).await).unwrap();
    drop((run.report().to_string(), run.explain().to_string(), run.graph().to_mermaid()));
    run
}

fn forecast(run: &RecordedRun, step: &str) -> String {
    run.table().forecast(run.table().step_named(step).unwrap()).to_string()
}

#[tokio::test(start_paused = true)]
async fn a_table_with_an_event_that_is_the_reply_to_itself_is_refused() {
    let records = of_table(json!({ "workflow": "Sets", "events": [
        { "name": "Begin", "roles": ["start"] },
        { "name": "Ask", "roles": ["request", "reply"], "replies_to": "Ask" },
    ], "steps": [
        { "name": "ask", "inputs": [{ "kind": "one", "events": ["Begin"] }],
          "outputs": [{ "event": "Ask", "least": 1 }] },
        { "name": "end", "inputs": [{ "kind": "one", "events": ["Ask"] }] },
    ] }))
    .await;
    let error = RecordedRun::of(&"r".into(), &records).unwrap_err();
    let RecordedRunError::UnsoundTable { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.problems, [TableProblem::ReplyAsks { reply: "Ask".into() }]);
}

/// This many steps, each of which takes the output of the one before.
fn chained(steps: usize) -> Value {
    let event = |n: usize| if n == 0 { "Begin".to_owned() } else { format!("E{n}") };
    let roles = |n: usize| if n == 0 { json!(["start"]) } else { json!([]) };
    let events = (0..=steps).map(|n| json!({ "name": event(n), "roles": roles(n) }));
    let steps = (0..steps).map(|n| {
        json!({ "name": format!("s{n}"), "inputs": [{ "kind": "one", "events": [event(n)] }],
            "outputs": [{ "event": event(n + 1), "least": 1 }] })
    });
    json!({ "workflow": "Sets", "events": events.collect::<Vec<_>>(), "steps": steps.collect::<Vec<_>>() })
}

#[tokio::test(start_paused = true)]
async fn a_table_of_a_very_long_chain_of_steps_has_a_forecast() {
    let run = RecordedRun::of(&"r".into(), &of_table(chained(2_000)).await).unwrap();
    assert_eq!((forecast(&run, "s100"), forecast(&run, "s1999")), ("0-1".to_owned(), "0-1".to_owned()));
}

/// A graph with this many levels; on each, two steps emit the inputs of both next ones.
fn laddered(floors: usize) -> Value {
    let mut events = vec![
        json!({ "name": "Begin", "roles": ["start"] }),
        json!({ "name": "Done", "roles": ["stop"] }),
        json!({ "name": "Item" }),
    ];
    let mut steps = vec![json!({ "name": "open", "inputs": [{ "kind": "one", "events": ["Begin"] }],
        "outputs": [{ "event": "Item", "least": 1, "fan_out": true }] })];
    for floor in 0..floors {
        events.push(json!({ "name": format!("F{floor}") }));
        let before = if floor == 0 { "Item".to_owned() } else { format!("F{}", floor - 1) };
        for side in ["left", "right"] {
            steps.push(json!({ "name": format!("{side}{floor}"),
                "inputs": [{ "kind": "one", "events": [before] }],
                "outputs": [{ "event": format!("F{floor}"), "least": u32::from(floor > 0) }] }));
        }
    }
    steps.push(
        json!({ "name": "end", "inputs": [{ "kind": "gather", "events": [format!("F{}", floors - 1)] }],
        "outputs": [{ "event": "Done", "least": 1 }] }),
    );
    json!({ "workflow": "Sets", "events": events, "steps": steps })
}

#[tokio::test(start_paused = true)]
async fn a_table_with_very_many_ways_through_its_branches_has_a_forecast_soon() {
    let run = looked_at(laddered(40)).await;
    assert_eq!(forecast(&run, "left39"), "0-549755813888 per `Item`");
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Counted(u32);

/// Starts a child that waits, without awaiting it.
struct Starts;

#[workflow]
impl Starts {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Result<Item, StepError> {
        children.start::<Sets>(begin.clone()).await?;
        Ok(Item(begin.0))
    }

    #[step]
    async fn second(&self, item: &Item) -> Counted {
        Counted(item.0)
    }

    #[step]
    async fn end(&self, counted: &Counted, note: &Note) -> Done {
        Done(counted.0 + note.0)
    }
}

fn hosts(store: &Arc<MemoryStore>) -> Engine {
    let engine = Engine::builder().workflow(Starts).workflow(Sets).clock(VirtualClock::new());
    engine.store(Arc::clone(store)).build().unwrap()
}

/// The store's content, with a child that claims to belong to this execution.
async fn with_child_of(store: &MemoryStore, execution: u64) -> Arc<MemoryStore> {
    let copy = Arc::new(MemoryStore::default());
    for stored in store.runs(&RunQuery::new()).await.unwrap() {
        let records = store.read(&stored.id, Position(0), usize::MAX).await.unwrap();
        let mut journal: Vec<Value> = records.iter().map(|it| serde_json::to_value(it).unwrap()).collect();
        if let Some(parent) = journal[0].pointer_mut("/run_started/parent/execution") {
            *parent = json!(execution);
        }
        let batch = Write { records: decoded(&journal), run: stored.run };
        copy.append(&stored.id, Position(0), batch).await.unwrap();
    }
    copy
}

// S31, S39
#[tokio::test(start_paused = true)]
async fn a_child_of_an_execution_that_never_was_is_in_no_journal_of_its_parent() {
    parent_is_readable_with_child_of(0).await;
}

// S31, S39
#[tokio::test(start_paused = true)]
async fn a_child_of_an_execution_of_another_step_is_in_no_journal_of_its_parent() {
    parent_is_readable_with_child_of(2).await;
}

async fn parent_is_readable_with_child_of(execution: u64) {
    let store = Arc::new(MemoryStore::default());
    let engine = hosts(&store);
    let run = engine.start_with::<Starts>(Begin(3), RunOptions::new().id("r")).await.unwrap();
    run.settled().await;
    let store = with_child_of(&store, execution).await;
    let engine = hosts(&store);
    assert_eq!(engine.resume_open_runs().await.unwrap().runs.len(), 2);
    let run = engine.attach::<Starts>("r").await.unwrap();
    run.send(Note(4)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    let journal = engine.history(&"r".into()).await.unwrap();
    let children = journal.iter().filter(|record| matches!(record, Record::ChildStarted { .. }));
    assert_eq!(children.count(), 1, "{journal:?}");
    assert!(RecordedRun::of(&"r".into(), &journal).is_ok());
}

// S32, S43
#[tokio::test(start_paused = true)]
async fn a_timer_that_closes_a_request_and_brings_something_else_is_a_contradiction() {
    let mut journal = journal(Waits, Duration::ZERO).await;
    let closes = of(&mut journal, "timer_set").find(|timer| timer["request"].is_u64()).unwrap();
    closes["event"]["type"] = json!("Item");
    assert_eq!(contradicted(Waits, &journal).await, Position(2));
}
