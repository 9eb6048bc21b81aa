//! Runs known only by their records: the results equal those of the engine that drives them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use workflow_core::errors::RecordedRunError;
use workflow_core::prelude::*;
use workflow_core::report::{OpenRequest, RunReport, WaitsFor};
use workflow_core::scheduler::Cause;
use workflow_core::store::{
    EngineId, EventStore, MemoryStore, Position, Record, Retention, RunQuery, StoreFuture, StoredRun, Write,
};
use workflow_core::{
    ErrorClass, ExecutionId, Pause, RecordedRun, Retries, RetryPolicy, RunHandle, RunId, RunOptions,
    RunStatus,
};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item};

/// Asserts that report, explanation and drawing from the records equal those of the handle. Called while the run is
/// idle.
pub(crate) async fn same_by_its_records<W: Workflow>(run: &RunHandle<W>, store: &MemoryStore) {
    let report = run.report_so_far().await.unwrap();
    let explanation = run.explain().await.unwrap();
    let records = store.read(run.id(), Position(0), usize::MAX).await.unwrap();
    let recorded = RecordedRun::of(run.id(), &as_read(&records)).unwrap();
    assert_eq!(recorded.status(), run.status());
    assert_eq!(facts(recorded.report()), facts(&report));
    assert_eq!(values(recorded.report()), values(&report));
    let requests = run.requests().await.unwrap_or_default();
    assert_eq!(requests_of(&recorded.requests()), requests_of(&requests));
    assert_eq!(recorded.explain().to_string(), without_times(&explanation.to_string()));
    assert_eq!(told(&recorded.explain()), told(&explanation));
    let mut drawn = W::graph().with_report(&report);
    drawn.description = "".into();
    drawn.nodes.iter_mut().for_each(|node| node.description = "".into());
    assert_eq!(recorded.graph().to_json(), drawn.to_json());
}

/// Requests without the schemas of their replies, which no journal has.
fn requests_of(requests: &[OpenRequest]) -> Vec<Value> {
    let without_schema = |request| {
        let mut request = told(request);
        request["reply_schema"] = Value::Null;
        request
    };
    requests.iter().map(without_schema).collect()
}

/// The records as a store on disk returns them, without values in memory.
pub(crate) fn as_read(records: &[Record]) -> Vec<Record> {
    serde_json::from_slice(&serde_json::to_vec(records).unwrap()).unwrap()
}

/// A report without the facts of other journals and the exact start times of executions.
fn facts(report: &RunReport) -> Value {
    let mut facts = told(report);
    for child in facts.get_mut("children").and_then(Value::as_array_mut).into_iter().flatten() {
        let child = child.as_object_mut().unwrap();
        // An open child has another status where it is driven.
        if ["running", "waiting", "paused", "cleaning_up"].contains(&child["status"].as_str().unwrap()) {
            child.remove("status");
        }
        child.remove("report");
    }
    without_start_times(facts)
}

/// The JSON of a report without the exact start times of executions.
pub(crate) fn without_start_times(mut report: Value) -> Value {
    for execution in report["trace"].as_array_mut().unwrap() {
        let execution = execution.as_object_mut().unwrap();
        execution.remove("started");
        execution.remove("took");
    }
    report
}

/// The text of an explanation without for how long steps have been running.
pub(crate) fn without_times(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("running for ") {
        Some((before, _)) => format!("{before}still running"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// As JSON, without parameters that have no event, and without for how long steps have been running.
pub(crate) fn told(what: &impl serde::Serialize) -> Value {
    let mut told = serde_json::to_value(what).unwrap();
    without_injected(&mut told);
    told
}

fn without_injected(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("running").is_some_and(|running| running.get("running_for").is_some()) {
                fields.remove("running");
            }
            if let Some(Value::Array(inputs)) = fields.get_mut("inputs") {
                inputs.retain(|input| input != "nothing");
            }
            fields.values_mut().for_each(without_injected);
        }
        Value::Array(items) => items.iter_mut().for_each(without_injected),
        _ => {}
    }
}

pub(crate) fn values(report: &RunReport) -> Vec<Value> {
    report.log.iter().map(|logged| logged.value.to_json().unwrap()).collect()
}

/// The journals of the golden files, by their names.
fn journals() -> Vec<(String, Vec<Record>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/durable/journals/v1");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let journals = paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let read = |path: std::path::PathBuf| {
        let lines = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    };
    let journals: Vec<_> = journals.map(read).collect();
    assert!(journals.len() > 10);
    journals
}

/// Computes everything from the records; returns the status, if they can be replayed.
fn looked_at(name: &str, records: &[Record]) -> Result<RunStatus, RecordedRunError> {
    let recorded = RecordedRun::of(&name.into(), records)?;
    let report = recorded.report();
    assert_eq!(report.status, recorded.status());
    drop((report.to_string(), report.timeline().to_string(), values(report), format!("{recorded:?}")));
    drop(recorded.explain().to_string());
    drop((recorded.graph().to_mermaid(), recorded.graph().to_dot()));
    assert!(recorded.table().steps().len() <= report.steps.len());
    Ok(recorded.status())
}

#[test]
fn every_prefix_of_a_journal_can_be_read() {
    for (name, records) in journals() {
        for end in 0..=records.len() {
            let looked_at = looked_at(&name, &records[..end]);
            let is_begun = records[..end]
                .iter()
                .any(|record| matches!(record, Record::EventLogged { .. } | Record::RunEnded { .. }));
            // The records of a batch belong together.
            let is_torn = matches!(looked_at, Err(RecordedRunError::Contradiction { .. }));
            assert_eq!(looked_at.is_ok(), is_begun && !is_torn, "{name}, {end}: {looked_at:?}");
            assert!(!is_torn || is_within_a_batch(&records, end), "{name}, {end}: {looked_at:?}");
        }
    }
}

/// Whether an execution's batch continues after the end.
fn is_within_a_batch(records: &[Record], end: usize) -> bool {
    let is_of_batch = |record: &Record| match record {
        Record::TimerSet { .. } => true,
        Record::EventLogged { cause, .. } => matches!(cause, Cause::Execution(_)),
        _ => false,
    };
    records.get(end).is_some_and(is_of_batch)
}

#[test]
fn journals_that_tell_what_cannot_be_are_refused_or_followed_and_never_panic() {
    let (mut refused, mut followed) = (0, 0);
    let mut look = |name: &str, lines: &[String]| {
        let records: Result<Vec<Record>, _> = lines.iter().map(|line| serde_json::from_str(line)).collect();
        let Ok(records) = records else { return };
        match looked_at(name, &records) {
            Ok(_) => followed += 1,
            Err(_) => refused += 1,
        }
    };
    for (name, records) in journals() {
        let lines: Vec<String> =
            records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        for place in 0..lines.len() {
            let mut without = lines.clone();
            without.remove(place);
            look(&name, &without);
            let mut twice = lines.clone();
            twice.insert(place, lines[place].clone());
            look(&name, &twice);
            let mut swapped = lines.clone();
            swapped.swap(place, (place + 1) % lines.len());
            look(&name, &swapped);
            for changed in changed(&lines[place]) {
                let mut lines = lines.clone();
                lines[place] = changed;
                look(&name, &lines);
            }
        }
    }
    assert!(refused > 1_000 && followed > 1_000, "{refused} were refused, {followed} were followed");
}

/// Variants of a record, each with one changed number.
fn changed(line: &str) -> Vec<String> {
    let mut changed = Vec::new();
    let mut rest = 0;
    while let Some(begin) = line[rest..].find(|char: char| char.is_ascii_digit()).map(|at| rest + at) {
        let end = line[begin..].find(|char: char| !char.is_ascii_digit()).map_or(line.len(), |at| begin + at);
        for number in ["0", "2", "4294967295", "9223372036854775807", "18446744073709551615"] {
            changed.push(format!("{}{number}{}", &line[..begin], &line[end..]));
        }
        rest = end;
    }
    changed
}

/// The records of a golden file, each as JSON.
fn golden(name: &str) -> Vec<Value> {
    let (_, records) = journals().into_iter().find(|(found, _)| found == name).unwrap();
    records.iter().map(|record| serde_json::to_value(record).unwrap()).collect()
}

fn recorded(records: &[Value]) -> Result<RecordedRun, RecordedRunError> {
    let records: Vec<Record> = records.iter().map(|record| Record::deserialize(record).unwrap()).collect();
    RecordedRun::of(&"r".into(), &records)
}

#[test]
fn records_without_a_beginning_are_refused() {
    let joins = golden("joins");
    for records in [&joins[..0], &joins[..1], &joins[1..]] {
        let error = recorded(records).unwrap_err();
        assert!(matches!(error, RecordedRunError::NoBeginning { .. }), "{error}");
    }
}

#[test]
fn a_later_format_is_refused_as_such() {
    let mut resumed = golden("resumed");
    let (at, last) =
        resumed.iter_mut().enumerate().rfind(|(_, record)| record.get("run_resumed").is_some()).unwrap();
    last["run_resumed"]["format"] = 2.into();
    let place = Position(at as u64);
    let error = recorded(&resumed).unwrap_err();
    assert!(
        matches!(error, RecordedRunError::NewerFormat { position, format: 2, known: 1, .. } if position == place),
        "{error}"
    );
}

#[test]
fn a_table_that_is_none_is_refused_with_the_record_that_has_it() {
    let mut unreadable = golden("joins");
    unreadable[0]["run_started"]["table"]["shape"] = 7.into();
    let error = recorded(&unreadable).unwrap_err();
    assert!(matches!(error, RecordedRunError::UnreadableTable { position: Position(0), .. }), "{error}");
    let mut unsound = golden("joins");
    let steps = &mut unsound[0]["run_started"]["table"]["shape"]["steps"];
    let again = steps[0].clone();
    steps.as_array_mut().unwrap().push(again);
    let error = recorded(&unsound).unwrap_err();
    assert!(matches!(error, RecordedRunError::UnsoundTable { position: Position(0), .. }), "{error}");
}

#[test]
fn a_fan_out_without_the_items_that_it_is_told_to_have_is_a_contradiction() {
    let mut branches = golden("branches");
    let opened = branches.iter_mut().find_map(|record| record.pointer_mut("/execution_succeeded/fan_outs"));
    let opened = opened.unwrap().as_array_mut().unwrap();
    let mut more = opened[0].clone();
    more["items"] = u32::MAX.into();
    opened.push(more);
    let error = recorded(&branches).unwrap_err();
    assert!(error.to_string().ends_with("a fan-out lacks items"), "{error}");
}

// S41
#[test]
fn a_run_is_read_by_the_last_table_and_what_does_not_fit_it_is_a_contradiction() {
    let resumed = recorded(&golden("resumed")).unwrap();
    assert!(resumed.table().step_named("count").is_some());
    let mut joins = golden("joins");
    let mut table = joins[0]["run_started"]["table"].clone();
    table["fingerprint"] = "another".into();
    table["shape"]["steps"].as_array_mut().unwrap().remove(0);
    let at = joins[0]["run_started"]["at"].clone();
    let another = serde_json::json!({ "run_resumed": { "format": 1, "table": table, "at": at } });
    let end = joins.len() - 1;
    joins.insert(end, another);
    let error = recorded(&joins).unwrap_err();
    assert!(matches!(error, RecordedRunError::Contradiction { .. }), "{error}");
    assert!(error.to_string().contains("step `first` ran, which the workflow does not have"), "{error}");
}

// S21
#[tokio::test(start_paused = true)]
async fn recorded_runs_show_step_limits_as_waiting_and_engine_limits_as_running() {
    struct Prints;

    #[workflow]
    impl Prints {
        #[step]
        async fn split(&self, begin: &Begin) -> Vec<Item> {
            (0..begin.0).map(Item).collect()
        }

        #[step(concurrency = 2)]
        async fn print(&self, item: &Item) -> Done {
            tokio::time::sleep(Duration::from_mins(1)).await;
            Done(item.0)
        }
    }

    let store = Arc::new(MemoryStore::default());
    for at_once in [1, 100] {
        let engine = Engine::builder().workflow(Prints).store(Arc::clone(&store)).clock(VirtualClock::new());
        let engine = engine.max_concurrent_executions(at_once).build().unwrap();
        let run = engine.start::<Prints>(Begin(3)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let records = engine.history(run.id()).await.unwrap();
        let waiting = RecordedRun::of(run.id(), &records).unwrap().report().waiting.clone();
        let held_by = [2, 3].map(ExecutionId).into();
        let step = WaitsFor::Step { step: "print".into(), limit: 2, held_by };
        assert_eq!(waiting.iter().map(|waiting| &waiting.waits_for).collect::<Vec<_>>(), [&step]);
        if at_once > 1 {
            same_by_its_records(&run, &store).await;
        }
        assert_eq!(run.report_so_far().await.unwrap().waiting.len(), if at_once > 1 { 1 } else { 2 });
    }
}

/// Fails once, and is under way from then on.
struct Retried;

#[workflow]
impl Retried {
    #[step(retry = RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(2, Duration::from_secs(5))))]
    async fn work(&self, _begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        if info.attempt() == 1 { Err(StepError::transient("busy")) } else { std::future::pending().await }
    }
}

// S34
#[tokio::test(start_paused = true)]
async fn an_attempt_whose_delay_had_passed_when_the_run_ended_was_made() {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(Retried).store(Arc::clone(&store)).clock(VirtualClock::new());
    let engine = engine.replay_check(true).build().unwrap();
    for (seconds, limited) in [(2, false), (10, false), (2, true), (10, true)] {
        let after = Duration::from_secs(seconds);
        let options = if limited { RunOptions::new().timeout(after) } else { RunOptions::new() };
        let run = engine.start_with::<Retried>(Begin(1), options).await.unwrap();
        if !limited {
            tokio::time::sleep(after).await;
            run.cancel("enough").await.unwrap();
        }
        assert!(run.outcome().await.is_err());
        same_by_its_records(&run, &store).await;
        let due = (seconds < 5).then_some(Duration::from_secs(5));
        assert_eq!(run.report().await.unwrap().trace[0].next_attempt, due, "after {seconds} s");
        // A process that looks back later says the same.
        let later = Engine::builder().workflow(Retried).store(Arc::clone(&store)).clock(VirtualClock::new());
        let later = later.build().unwrap();
        tokio::time::sleep(Duration::from_mins(1)).await;
        same_by_its_records(&later.attach::<Retried>(run.id().clone()).await.unwrap(), &store).await;
    }
}

// S34, S61
#[tokio::test(start_paused = true)]
async fn an_attempt_whose_delay_passed_in_a_pause_was_not_made() {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(Retried).store(Arc::clone(&store)).clock(VirtualClock::new());
    let engine = engine.replay_check(true).build().unwrap();
    let run = engine.start::<Retried>(Begin(1)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    run.pause(Pause::Now).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    run.cancel("enough").await.unwrap();
    assert!(run.outcome().await.is_err());
    same_by_its_records(&run, &store).await;
    let due = run.report().await.unwrap().trace[0].next_attempt;
    assert_eq!(due, Some(Duration::from_secs(5)));
}

// S34, S61
#[tokio::test(start_paused = true)]
async fn an_attempt_that_began_in_the_moment_of_a_pause_was_made() {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(Retried).store(Arc::clone(&store)).clock(VirtualClock::new());
    let engine = engine.replay_check(true).build().unwrap();
    for how in [Pause::Now, Pause::AfterRunning] {
        let run = engine.start::<Retried>(Begin(1)).await.unwrap();
        let attempts = async || run.report_so_far().await.unwrap().trace[0].next_attempt;
        tokio::time::sleep(Duration::from_secs(5)).await;
        crate::fixtures::until(async || attempts().await.is_none()).await;
        run.pause(how).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        run.cancel("enough").await.unwrap();
        assert!(run.outcome().await.is_err());
        assert_eq!(attempts().await, None, "{how:?}");
        same_by_its_records(&run, &store).await;
    }
}

/// Ends at once. The other steps return at the same time.
struct Late;

#[workflow]
impl Late {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[step]
    async fn fail(&self, _begin: &Begin) -> Result<Item, StepError> {
        Err(StepError::tool("no"))
    }

    #[step]
    async fn note(&self, _begin: &Begin) {}

    #[step]
    async fn take(&self, _item: &Item) {}
}

// S28, S34
#[tokio::test(start_paused = true)]
async fn what_comes_after_the_end_is_dropped_live_as_in_the_journal() {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(Late).store(Arc::clone(&store)).clock(VirtualClock::new());
    let engine = engine.replay_check(true).build().unwrap();
    let run = engine.start::<Late>(Begin(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    same_by_its_records(&run, &store).await;
}

/// Takes three seconds for each write.
#[derive(Clone, Default)]
struct Slow(Arc<MemoryStore>);

impl EventStore for Slow {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let (store, run) = (Arc::clone(&self.0), run.clone());
        StoreFuture::new(async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            store.append(&run, expected, batch).await
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.0.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.0.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.0.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.0.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.0.lease(engine, duration)
    }
}

// S28, S34
#[tokio::test(start_paused = true)]
async fn what_comes_after_the_end_is_dropped_at_the_end_however_long_the_store_takes() {
    let store = Slow::default();
    let engine = Engine::builder().workflow(Late).store(store.clone()).clock(VirtualClock::new());
    let engine = engine.replay_check(true).build().unwrap();
    let run = engine.start::<Late>(Begin(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    same_by_its_records(&run, &store.0).await;
}
